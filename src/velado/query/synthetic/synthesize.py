"""A synthetic table, paid for before a row is counted; asked again in the same way it is the same table for nothing.

The order is that of an answer: what is asked is settled by the schema alone -> is it stored? -> reserve (durable) -> count -> draw ->
record (durable) -> fit and sample. What is recorded are the noisy counts; everything after them is post-processing, so the
rows' seed may be known to everybody. Protects the declared unit against whoever has the table and everything else that was ever
answered from the same ledger.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.data.io import read_schema, read_table
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import EngineError, LedgerError, ParameterError
from velado.query.answer import Cost
from velado.query.budget import Amount, Budget, Charge, Facts, exact, plain, spend_of
from velado.query.engines import engine_for_file, engine_for_table
from velado.query.needs import Counts, Engine
from velado.query.session import Session, table_name
from velado.query.store import ChainedLedger, UnitOfAccount, account_of, memory_ledger
from velado.query.synthetic.axes import DEFAULT_BINS, Axis, axes_of
from velado.query.synthetic.fit import Measured, fit, total_of
from velado.query.synthetic.junction_tree import Clique
from velado.query.synthetic.measuring import Step, Till, measure
from velado.query.synthetic.microaggregate import Averages, microaggregate, shown
from velado.query.synthetic.sampling import sample
from velado.query.unit import Promise, Unit
from velado.randomness import seeded
from velado.settings import Setting, Where, made, settings
from velado.text import say

LAYOUT = 1
"""The layout of what is recorded; another layout is another question."""
SCANNED = (".csv", ".parquet", ".pq")
MOST_ROWS = 100_000_000
FINAL = 300
"""Steps of the fit that rows are drawn from."""
Method = Literal["auto", "tree", "adaptive", "microaggregate"]
Codes = NDArray[np.int32]


@settings
class Wanted:
    """How a synthetic table is made; nothing of it is read off the rows.

    >>> Wanted().method
    'auto'
    """

    name: ClassVar[str] = say("the synthetic table")

    method: Annotated[
        Method,
        Setting(
            "counts of a tree of column pairs; adaptive: further pairs where they are most wrong; auto: whichever is "
            "expected to win; microaggregate: noisy averages of groups"
        ),
    ] = "auto"
    bins: Annotated[
        int,
        Setting(
            "the most cells a number is cut into", ge=1, le=1000, why=say("Each cell gets noise of its own.")
        ),
    ] = DEFAULT_BINS
    rows: Annotated[
        int | None,
        Setting("how many rows are drawn; none: as many as the noisy counts say", ge=1, le=MOST_ROWS),
    ] = None
    group_size: Annotated[
        int | None, Setting("with microaggregate: rows of a group; none: rows^(2/3)", ge=1, le=MOST_ROWS)
    ] = None
    seed: Annotated[
        int, Setting("of the rows that are drawn from the noisy counts; never of the noise", ge=0, lt=2**63)
    ] = 0
    columns: Annotated[
        tuple[str, ...] | None, Setting("which columns; none: all but identifiers", items=1)
    ] = None


class CodedRows(Engine, Protocol):
    """An engine that also tells every row's cells; they stay in this room.

    >>> CodedRows.__name__
    'CodedRows'
    """

    def coded(self, axes: Sequence[Axis]) -> list[Codes]:
        """One array of cells for each axis, a place for each kept row."""


@dataclass(frozen=True, kw_only=True)
class SyntheticMaking:
    """How a synthetic table was made: the way taken, the cells of each column, the columns counted together, and every draw.

    >>> SyntheticMaking(method="auto", way="tree", cells={"age": 33}, pairs=(), steps=(), seed=0, table="t", durable=False).way
    'tree'
    """

    method: str
    way: str
    cells: dict[str, int]
    pairs: tuple[tuple[str, ...], ...]
    steps: tuple[Step, ...]
    seed: int
    table: str
    durable: bool
    group_size: int | None = None
    groups: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Synthetic:
    """A synthetic table with its promise and cost. Everything in it but *entry* may be shown to anybody.

    *frame* holds declared values and blanks alone, as texts; *schema* is that of its columns. *stored* tells that the noisy counts
    were drawn before and cost nothing now. It is not k-anonymous, and need not be: no row is about a person.
    """

    frame: pl.DataFrame
    schema: Schema
    guarantee: Promise
    cost: Cost
    how: SyntheticMaking
    stored: bool
    receipt: str

    def __repr__(self) -> str:
        return f"Synthetic({self.frame.height} rows, {self.frame.width} columns)"

    def facts(self) -> dict[str, Facts]:
        """Result, promise, cost and making, as JSON has them."""
        return {
            "result": {"rows": self.frame.height, "columns": self.frame.columns},
            "promise": {**self.guarantee.to_dict(), "k_anonymity": "not promised"},
            "cost": self.cost.to_dict(),
            "how": {**plain(self.how), "receipt": self.receipt, "stored": self.stored},
        }


def spend(epsilon: Amount | None, rho: Amount | None, delta: Amount | None) -> Budget:
    """What the table may cost: a pure epsilon, a rho, or the rho that stands for (epsilon, delta).

    >>> spend(1, None, None).measure, spend(1, None, "1e-9").measure
    ('epsilon', 'rho')
    """
    where = Where("python", say("the synthetic table"))
    if (epsilon is None) == (rho is None):
        raise ParameterError(
            "A synthetic table costs either epsilon or rho, and one of them must be said.",
            "It is what the table may tell of one person at most.",
            "Give for example epsilon 1; with delta 1e-9 it is spent as zCDP, which is more exact.",
        )
    if rho is not None:
        return Budget.rho(spend_of(rho, "rho", where), delta)
    found = spend_of(epsilon, "epsilon", where)
    return Budget.epsilon(found) if delta is None else Budget.approximate(found, exact(delta))


def synthesize(
    source: Any,
    schema: Schema | str | Path | None = None,
    *,
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    delta: Amount | None = None,
    unit: Unit | None = None,
    ledger: ChainedLedger | str | Path | None = None,
    budget: Amount | None = None,
    seal: Path | None = None,
    analyst: str = "owner",
    **wanted: Any,
) -> Synthetic:
    """A synthetic table of *source* for *epsilon* (pure), *rho* (zCDP) or *epsilon* with *delta* (as zCDP), debited first.

    *source* is a path, a data frame or a Table. *unit* is who is protected; by default what the schema declares. A file is
    accounted for in the ledger that its queries have (*ledger*, else beside it; *budget* is the total when it is made, as an epsilon
    or a rho like the spend); a frame in
    the open ledger that is handed in, else in one of this call alone. Further: method, bins, rows, group_size, seed and columns of
    `Wanted`. O(n log n) for the rows, and O(cells) for each step of the fit.

    >>> from velado.data.schema import Column
    >>> wards = pl.DataFrame({"ward": ["a", "a", "b"] * 100})
    >>> found = synthesize(wards, Schema({"ward": Column("ward", values=("a", "b"), missing="refuse")}), epsilon=100)
    >>> found.frame["ward"].n_unique(), abs(found.frame.height - 300) < 10
    (2, True)
    """
    settled = made(Wanted, wanted, Where("python", say("the synthetic table")))
    asked = spend(epsilon, rho, delta)
    declared = _schema(source, schema)
    whom = Unit.declared(declared) if unit is None else unit
    # All of this is public: what is wrong with it is said before a row is read or a ledger is made.
    axes = axes_of(declared, whom, settled.columns, settled.bins)
    total = None
    if budget is not None:
        # It is said in the measure of the spend beside it: with a delta an epsilon stands for its rho here too.
        whole = exact(budget)
        total = spend(whole, None, delta) if rho is None else spend(None, whole, delta)
    with (
        _engine(source, declared, whom) as (engine, name),
        _account(source, ledger, asked, total, seal, name, engine) as held,
    ):
        return from_engine(engine, declared, axes, settled, asked, held, name=name, analyst=analyst)


def from_engine(
    engine: CodedRows,
    schema: Schema,
    axes: tuple[Axis, ...],
    wanted: Wanted,
    asked: Budget,
    ledger: ChainedLedger,
    *,
    name: str = "table",
    analyst: str = "owner",
) -> Synthetic:
    """The synthetic table of an engine's rows, paid from *ledger*: never counted before it is paid."""
    state = ledger.state()
    if state.budget.measure != asked.measure:
        raise ParameterError(
            say(
                "The ledger counts in {held}, and the table was asked for in {asked}.",
                held=state.budget.measure,
                asked=asked.measure,
            ),
            "The two measures cannot be added.",
            say("Ask with {measure}; epsilon with a delta is spent as rho.", measure=state.budget.measure),
        )
    session = Session(engine, engine.unit, ledger, schema=schema, name=name, analyst=analyst)
    question = _fingerprint(axes, engine.unit, asked, wanted, session.version)
    found = ledger.stored(question)
    if found is None:
        UnitOfAccount(ledger, engine.unit, session.analyst).hold()
        text = f"SYNTHESIZE {', '.join(axis.column for axis in axes)}"
        reservation = ledger.reserve(Charge(session.analyst, question, text, asked.total))
        drawn = _draw(engine, axes, wanted, asked)
        receipt = ledger.record(reservation, question, drawn.written())
    else:
        drawn, receipt = _Drawn.read(found[0], axes), found[1]
    account = ledger.state()
    frame = _rows(drawn, axes, wanted)
    averages = drawn.averages
    return Synthetic(
        frame=frame,
        schema=schema.with_columns(schema.columns[axis.column] for axis in axes),
        guarantee=session.guarantee(asked.total, account),
        cost=Cost(
            measure=asked.measure,
            spent=Fraction(0) if found is not None else asked.total,
            asked=asked.total,
            left=account.left,
            budget=account.budget.total,
        ),
        how=SyntheticMaking(
            method=wanted.method,
            way=drawn.way,
            cells={axis.column: axis.size for axis in axes},
            pairs=tuple(
                dict.fromkeys(
                    tuple(axes[at].column for at in one.columns)
                    for one in drawn.measured
                    if len(one.columns) > 1
                )
            ),
            steps=drawn.steps,
            seed=wanted.seed,
            table=name,
            durable=ledger.lasting,
            group_size=None if averages is None else averages.size,
            groups=None if averages is None else averages.groups,
        ),
        stored=found is not None,
        receipt=receipt,
    )


def unpaid(table: Table, axes: tuple[Axis, ...], wanted: Wanted, asked: Budget, unit: Unit) -> pl.DataFrame:
    """The rows that a table made like this would hold, to be looked at by the owner alone.

    Nobody paid for them and no ledger knows of them: what is published comes from `synthesize`.

    >>> from velado.data.schema import Column
    >>> wards = Table.of(pl.DataFrame({"ward": ["a", "b"] * 50}), Schema({"ward": Column("ward", values=("a", "b"))}))
    >>> unpaid(wards, axes_of(wards.schema, Unit()), Wanted(rows=7), Budget.epsilon(9), Unit()).height
    7
    """
    engine: Any = engine_for_table(table, unit)
    with closing(engine):
        return _rows(_draw(engine, axes, wanted, asked), axes, wanted)


@dataclass(frozen=True, repr=False)
class _Drawn:
    """What was drawn: all that the rows ever tell."""

    way: str
    measured: tuple[Measured, ...]
    steps: tuple[Step, ...]
    averages: Averages | None = None

    def written(self) -> str:
        """As the ledger keeps it."""
        averages = self.averages
        return json.dumps(
            {
                "layout": LAYOUT,
                "way": self.way,
                "counts": [[list(one.columns), one.deviation, _packed(one.counts)] for one in self.measured],
                "steps": [[*plain(step).values()] for step in self.steps],
                "averages": None
                if averages is None
                else [averages.rows, averages.size, [_packed(part) for part in averages.parts]],
            },
            separators=(",", ":"),
        )

    @classmethod
    def read(cls, text: str, axes: Sequence[Axis]) -> _Drawn:
        """What `written` wrote, held to the shapes of the axes."""
        try:
            told: Facts = json.loads(text)
            if told["layout"] != LAYOUT:
                raise ValueError
            sizes = [axis.size for axis in axes]
            measured = tuple(
                Measured(tuple(columns), _unpacked(packed, [sizes[at] for at in columns]), float(deviation))
                for columns, deviation, packed in told["counts"]
            )
            steps = tuple(
                Step(what, tuple(columns), mechanism, int(reach), float(scale), Fraction(charge))
                for what, columns, mechanism, reach, scale, charge in told["steps"]
            )
            kept = told["averages"]
            averages = None
            if kept is not None:
                empty = Averages(int(kept[0]), int(kept[1]), ())
                shapes = [
                    [empty.groups] if axis.grid is not None else [empty.groups, axis.size] for axis in axes
                ]
                parts = tuple(_unpacked(*pair) for pair in zip(kept[2], shapes, strict=True))
                averages = Averages(empty.rows, empty.size, parts)
            return cls(str(told["way"]), measured, steps, averages)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, zlib.error):
            raise LedgerError(
                "The ledger holds a synthetic table of this kind that cannot be read.",
                "Drawing another would tell more than was paid for.",
                "Check the ledger with `velado ledger verify`, or ask with another spend.",
            ) from None


def _packed(counts: Counts) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(counts, dtype="<i8").tobytes())).decode()


def _unpacked(text: str, shape: Sequence[int]) -> Counts:
    size = prod(shape)
    data = zlib.decompress(base64.b64decode(text, validate=True))
    if len(data) != 8 * size:
        raise ValueError
    return np.frombuffer(data, dtype="<i8").astype(np.int64).reshape(shape)


@dataclass(frozen=True, repr=False)
class RowCounts:
    """Exact counts of the rows whose cells these are.

    >>> RowCounts((2, 2), [np.array([0, 1, 1]), np.array([0, 0, 1])]).count((0, 1)).tolist()
    [[1, 0], [1, 1]]
    """

    sizes: Sequence[int]
    codes: Sequence[Codes]

    def count(self, columns: Clique) -> Counts:
        """Rows in each cell that the columns make together. O(rows + cells)."""
        shape = [self.sizes[at] for at in columns]
        cells = np.zeros(self.codes[0].size, dtype=np.int64)
        for at in columns:
            cells *= self.sizes[at]
            cells += self.codes[at]
        return np.bincount(cells, minlength=prod(shape)).astype(np.int64).reshape(shape)


def _draw(engine: CodedRows, axes: tuple[Axis, ...], wanted: Wanted, asked: Budget) -> _Drawn:
    """Look, and add noise; what was paid stays paid where an engine fails."""
    try:
        codes = engine.coded(axes)
    except EngineError as error:
        raise EngineError(
            error.what,
            say("{why} The table was paid before the engine was asked, and stays paid.", why=error.why),
            error.fix,
        ) from None
    till = Till(asked.measure, asked.total, engine.unit)
    sizes = [axis.size for axis in axes]
    if wanted.method == "microaggregate":
        averages = microaggregate(axes, codes, till, wanted.group_size)
        return _Drawn("microaggregate", (), tuple(till.steps), averages)
    model = measure(sizes, RowCounts(sizes, codes), till, wanted.method)
    return _Drawn(model.way, model.measured, tuple(till.steps))


def _rows(drawn: _Drawn, axes: tuple[Axis, ...], wanted: Wanted) -> pl.DataFrame:
    """Rows of declared values and blanks, in an order that tells nothing; from what was drawn alone, so it is always the same."""
    random = seeded(wanted.seed, "synthetic")
    if drawn.averages is not None:
        told = shown(axes, drawn.averages, random)
        order = random.permutation(told[0].size)
        rows = order if wanted.rows is None else random.choice(order, wanted.rows)
        return pl.DataFrame(
            [
                axis.numbers(part[rows])
                if axis.grid is not None
                else axis.values(part[rows].astype(np.int32), random)
                for axis, part in zip(axes, told, strict=True)
            ]
        )
    fitted = fit([axis.size for axis in axes], drawn.measured, total_of(drawn.measured), rounds=FINAL)
    count = wanted.rows or min(max(1, round(fitted.total)), MOST_ROWS)
    codes = sample(fitted, count, random)
    return pl.DataFrame([axis.values(part, random) for axis, part in zip(axes, codes, strict=True)])


def _fingerprint(axes: tuple[Axis, ...], unit: Unit, asked: Budget, wanted: Wanted, version: str) -> str:
    """Equal only where the same noisy counts would be drawn of the same content: seed and rows come after them."""
    form = {
        "layout": LAYOUT,
        "synthesize": wanted.method,
        "group_size": wanted.group_size,
        "axes": [plain(axis) for axis in axes],
        "unit": [unit.column, unit.rows, str(unit.dependence)],
        "measure": asked.measure,
        "spend": str(asked.total),
        "version": version,
    }
    text = json.dumps(form, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _schema(source: Any, schema: Schema | str | Path | None) -> Schema:
    if isinstance(schema, Schema):
        return schema
    if schema is not None:
        return read_schema(schema)
    if isinstance(source, Table):
        return source.schema
    raise ParameterError(
        "No schema was given.",
        "Bounds, values and who is protected are declared there and never read off the rows.",
        "Pass a schema; `velado inspect` writes a first version.",
    )


@contextmanager
def _engine(source: Any, schema: Schema, unit: Unit) -> Iterator[tuple[CodedRows, str]]:
    """The rows, cut to the unit's most, and the table's name."""
    engine: Any
    if isinstance(source, str | Path):
        path = Path(source)
        name = table_name(path.name)
        scanned = path.suffix.lower() in SCANNED
        engine = (
            engine_for_file(path, schema, unit)
            if scanned
            else engine_for_table(read_table(path, schema), unit)
        )
    else:
        table = source if isinstance(source, Table) else read_table(source, schema, "drop")
        name = table_name(table.source)
        engine = engine_for_table(table.with_schema(schema), unit)
    with closing(engine):
        yield engine, name


@contextmanager
def _account(
    source: Any,
    ledger: ChainedLedger | str | Path | None,
    asked: Budget,
    total: Budget | None,
    seal: Path | None,
    name: str,
    engine: CodedRows,
) -> Iterator[ChainedLedger]:
    """The ledger that pays: the one handed in, the file's own, or one of this call alone."""
    if isinstance(ledger, ChainedLedger):
        yield ledger
        return
    if isinstance(source, str | Path):
        # An engine on the file itself knows what its rows say, and need not read them for that again.
        scanned = Path(source).suffix.lower() in SCANNED
        known = engine.identity if scanned else None
        opened = account_of(source, asked, where=ledger, seal=seal, budget=total, table=known).ledger
    elif ledger is None:
        opened = memory_ledger(name, total or asked)
    else:
        raise ParameterError(
            "A ledger was named for rows that have no file.",
            "Which ledger a table has is found by its file.",
            "Pass the file's path, or an open ledger.",
        )
    with closing(opened):
        yield opened
