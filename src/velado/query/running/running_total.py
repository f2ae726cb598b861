"""A running total: paid once, told after each delivery, every block's noise drawn once and kept.

The order: what is counted is settled by declarations -> reserve and record the whole charge (durable) -> for each delivery: is it known?
-> count -> draw the noise of the blocks that end -> keep the private state -> record the noisy numbers (durable, for nothing) -> reply.
Nobody sees a draw that the ledger does not hold, and what it holds is given again for nothing. Protects the declared unit over all
deliveries together against whoever sees every total, however the later deliveries depend on earlier totals.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import polars as pl

from velado.data.normal import normal_of
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import LedgerError, NoRows, ParameterError, QueryRefused
from velado.query import noise
from velado.query.accuracy import Wish, check_least, check_most, least_spend
from velado.query.answer import Cost, bin_names, key_columns
from velado.query.budget import Amount, Budget, Charge, Facts, implied, plain, spend_of
from velado.query.engines import engine_for_table
from velado.query.engines._row_marks import identity_of_table
from velado.query.identity import TableIdentity
from velado.query.needs import Counts, GridCells, cells_of
from velado.query.plan import name_of, one_sided
from velado.query.running.running_plan import Running, RunningPlan, plan_running, plan_running_within
from velado.query.running.tree_counter import Exact, Floats, Told
from velado.query.session import IN_LEDGER, IN_PROCESS, analyst_name, check_unit_column, confidence_level
from velado.query.sql import parse
from velado.query.store import (
    ChainedLedger,
    RunningShelf,
    UnitOfAccount,
    memory_ledger,
    refuse_second,
    settle,
)
from velado.query.unit import Promise, Unit
from velado.settings import Where, made
from velado.text import Sentence, say, say_n, told

MARK = 16
"""Bytes by which a person is known in the private state, under the series' key."""
_ASKED = Where("python", say("the running total"))


@dataclass(frozen=True, kw_only=True)
class RunningRelease:
    """The total after one delivery; everything in it may be shown to anybody. *stored*: it was told before, and nothing was counted now."""

    number: int
    frame: pl.DataFrame
    guarantee: Promise
    cost: Cost
    plan: Facts
    notes: tuple[Sentence, ...]
    stored: bool
    receipt: str

    def to_dict(self) -> Facts:
        """Everything as JSON has it."""
        return {
            "release": self.number,
            "stored": self.stored,
            "receipt": self.receipt,
            "guarantee": self.guarantee.to_dict(),
            "cost": self.cost.to_dict(),
            "plan": self.plan,
            "notes": [told(note) for note in self.notes],
            "answer": {"columns": list(self.frame.columns), "rows": plain(list(self.frame.iter_rows()))},
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)


class RunningTotal:
    """COUNT, SUM or a histogram over all deliveries so far, told after each of at most *releases* of them.

    *ledger* is an open ledger, or a number (an epsilon of an account in memory). All releases together cost *spend*, or as little as
    keeps each total *within* a half-width; it is booked here, once: the same declarations on the same ledger are the same series, and
    go on where it stands. *unit* is who is protected, by default what the schema declares; a person or group counts with at most its
    most rows in a delivery, and in its first *deliveries* deliveries alone, which is enforced, unless it is *bounded*: the unit is by
    its own definition in no more. Each delivery belongs to the ledger from then on. The totals are kept by a tree as high as is best:
    where deliveries are few, they are told one by one and added up.

    >>> from velado.data.schema import Column
    >>> schema = Schema({"ward": Column("ward", values=("a", "b"))})
    >>> visits = RunningTotal("SELECT COUNT(*) FROM deliveries", schema, 100, releases=4)
    >>> for rows in (["a"] * 50, ["a", "b"] * 30):
    ...     release = visits.add(Table.of(pl.DataFrame({"ward": rows}), schema))
    >>> release.number, abs(release.frame["count"][0] - 110) < 10
    (2, True)
    """

    def __init__(
        self,
        sql: str,
        schema: Schema,
        ledger: ChainedLedger | Amount,
        *,
        releases: int,
        deliveries: int = 1,
        spend: Amount | None = None,
        within: Amount | None = None,
        unit: Unit | None = None,
        name: str = "deliveries",
        analyst: str = "owner",
        bounded: bool = False,
    ) -> None:
        self._bounded = bounded
        self.schema, self.analyst = schema, analyst_name(analyst)
        self.unit = Unit.declared(schema) if unit is None else unit
        self._ledger = (
            ledger if isinstance(ledger, ChainedLedger) else memory_ledger(name, Budget.epsilon(ledger))
        )
        budget = self._ledger.state().budget
        if spend is None and within is None:
            spend = budget.total
        self.plan = price_running(
            sql, schema, budget.measure, releases=releases, deliveries=deliveries, spend=spend, within=within,
            unit=self.unit, name=name,
        )  # fmt: skip
        if within is None:
            check_least(spend_of(spend, "spend", _ASKED), least_spend(budget.total), budget.measure)
        self.series = hashlib.sha256(self.plan.known_by().encode()).hexdigest()
        self._shelf = RunningShelf(self._ledger, self.series)
        with self._shelf.alone():
            self._book()

    def add(
        self,
        table: Table | None,
        *,
        confidence: float | Fraction = 0.95,
        known_as: str | None = None,
        known: TableIdentity | None = None,
    ) -> RunningRelease:
        """The total with this delivery. One that was counted before, in whatever order or format, is not counted again: its total is given once more.

        Deliveries that may be alike, such as windows of a stream, are told apart by the name that each is *known_as*; without one, that two have the
        very same rows is told exactly, and the notes say so. *known* is
        by what a server knows the table that the rows were read from: it belongs to this ledger too, as does every table without a name. None is a delivery without
        rows: it is counted like every other, or its absence would tell that nobody came. Nothing tells two of them apart, so each is a new one.
        """
        level = confidence_level(confidence)
        # Rows are read by the declarations that were paid for, whatever schema they came with.
        table = None if table is None else table.with_schema(self.schema)
        with self._shelf.alone(), self._opened(table, known_as, known) as delivery:
            state, number = self._current()
            if delivery is None:
                delivery = self._shelf.digest(f"empty:{number + 1}".encode())
            found = state.deliveries.get(delivery)
            if found is None:
                self._refuse_beyond(number)
                found = self._count(table, delivery, state)
                stored = False
            else:
                stored = True
        return self._release(found, level, stored, by_rows=known_as is None)

    def release(self, number: int, *, confidence: float | Fraction = 0.95) -> RunningRelease:
        """A total that was told before, once more and for nothing."""
        return self._release(number, confidence_level(confidence), True)

    @property
    def done(self) -> int:
        """How many totals were told."""
        with self._shelf.alone():
            return self._current()[1]

    def _book(self) -> None:
        """The whole charge stands in the ledger, once; nothing was looked at."""
        if self._ledger.stored(self._question(0)) is not None:
            return
        account = UnitOfAccount(self._ledger, self.unit, self.analyst)
        account.check()
        account.hold()
        form = {
            "running": json.loads(self.plan.outline.query.canonical()),
            "releases": self.plan.running.releases,
        }
        text = json.dumps({**form, "deliveries": self.plan.running.deliveries}, ensure_ascii=False)
        held = self._ledger.reserve(Charge(self.analyst, self._question(0), text, self.plan.charge))
        mark = self._shelf.put(0, self._first().written())
        self._ledger.record(held, self._question(0), json.dumps({"layout": 1, "state": mark}))

    def _count(self, table: Table | None, delivery: str, state: _State) -> int:
        """Count the delivery, draw the blocks that end with it, keep the state, and record: in this order alone."""
        outline = self.plan.outline
        people, tally = state.people, np.zeros(_size(self.plan), dtype=np.int64)
        if table is not None:
            kept, people = self._let_count(table, people)
            if kept is not None:
                with closing(engine_for_table(kept, self.unit)) as engine:
                    tally = engine.tally(outline.query.where, outline.keys, outline.needs)[0].ravel()
        exact, whole = state.exact.after(tally)
        name: Literal["laplace", "gaussian"] = "laplace" if self.plan.mechanism == "laplace" else "gaussian"
        noisy = {
            at: noise.add(name, outline.measure, self.plan.levels[at].scale, sums)
            for at, sums in whole.items()
        }
        number = exact.done
        after = _State(
            exact,
            state.told.after(noisy, self.plan.deviations),
            {**state.deliveries, delivery: number},
            people,
        )
        mark = self._shelf.put(number, after.written())
        question = self._question(number)
        held = self._ledger.reserve(
            Charge(self.analyst, question, json.dumps({"release": number}), Fraction(0))
        )
        told_now = {"layout": 1, "blocks": {str(at): block.tolist() for at, block in noisy.items()}}
        told_now |= {"total": after.told.total.tolist(), "state": mark}
        self._ledger.record(held, question, json.dumps(told_now, separators=(",", ":")))
        self._shelf.forget_but(number, mark)
        return number

    def _let_count(self, table: Table, before: dict[bytes, int]) -> tuple[Table | None, dict[bytes, int]]:
        """The rows of people who still count, if there are any, and how often each has counted then. It depends on a person's own rows alone."""
        if self.unit.column is None or self._bounded:
            return table, before
        column = self.schema.columns[self.unit.column]
        cells = table.frame.get_column(column.name)
        if cells.dtype.is_float():
            raise ParameterError(
                say("The unit's column '{column}' holds decimal numbers.", column=column.name),
                "Over several deliveries people are known by the text in it.",
                "Hand the table over with that column as text.",
            )
        texts = cells.cast(pl.String).unique().drop_nulls()
        marks = {
            text: hmac.digest(self._shelf.key, b"person:" + normal.encode(), "sha256")[:MARK]
            for text, normal in zip(texts.to_list(), normal_of(table, column, texts).to_list(), strict=True)
        }
        allowed = {mark for mark in marks.values() if before.get(mark, 0) < self.plan.running.deliveries}
        out = [text for text, mark in marks.items() if mark not in allowed]
        people = before | {mark: before.get(mark, 0) + 1 for mark in allowed}
        if not out:
            return table, people
        left = table.frame.filter(~cells.cast(pl.String).is_in(out).fill_null(False))
        try:
            return Table.of(left, self.schema, table.source), people
        except NoRows:
            return None, people

    @contextmanager
    def _opened(
        self, table: Table | None, known_as: str | None, known: TableIdentity | None
    ) -> Iterator[str | None]:
        """By what the delivery is known under the series' key, if anything; the table belongs to this ledger from here on."""
        check_unit_column(self.unit, self.schema)
        named = None if known_as is None else self._shelf.digest(f"named:{known_as}".encode())
        if known_as is not None and known is None:
            yield named
            return
        identity = TableIdentity(()) if table is None else identity_of_table(table)
        if known is not None:
            identity = identity.with_marks(known.marks)
        if self._ledger.lasting:
            settle(identity, self._ledger)
        else:
            refuse_second(identity)
        rows = next((mark for mark in identity.marks if mark.startswith("rows:")), None)
        if named is not None:
            yield named
            return
        yield None if rows is None else self._shelf.digest(f"delivery:{rows}".encode())

    def _current(self) -> tuple[_State, int]:
        """The private state that the ledger names, and how many totals were told."""
        for number in (*self._shelf.releases(), 0):
            entry = self._ledger.stored(self._question(number))
            if entry is None:
                continue  # written by somebody who died before it was recorded
            content = self._shelf.find(number, str(json.loads(entry[0])["state"]))
            if content is not None and self._ledger.stored(self._question(number + 1)) is None:
                return _State.read(content, self.plan), number
            break
        raise LedgerError(
            "What this running total keeps between deliveries is gone, changed, or older than its ledger.",
            "The sums of unfinished blocks are in it, and drawing noise for a block again would tell more than was paid for.",
            "Put the newest copy of the state folder back (VELADO_STATE). If it is lost, the totals already told stay; begin a new running total.",
        )

    def _refuse_beyond(self, number: int) -> None:
        if number >= self.plan.running.releases:
            raise QueryRefused(
                say_n(
                    "The {n:,} total that was declared has been told.",
                    "All {n:,} totals that were declared have been told.",
                    self.plan.running.releases,
                ),
                "The noise was made for that many; one more was not paid for.",
                "Begin another running total with a new spend.",
            )

    def _release(self, number: int, level: Fraction, stored: bool, by_rows: bool = False) -> RunningRelease:
        found = self._ledger.stored(self._question(number)) if number > 0 else None
        if found is None:
            raise ParameterError(
                "That total has not been told.",
                "Totals are numbered from 1, in the order of the deliveries.",
                "Ask for one that was told.",
            )
        account = self._ledger.last_state()
        measure, charge = account.budget.measure, self.plan.charge
        pure = measure == "epsilon"
        promise = replace(
            self.plan.promise(),
            definition=say("epsilon-differential privacy") if pure else say("rho-zCDP"),
            epsilon=charge if pure else None,
            rho=None if pure else charge,
            implies=None if account.budget.delta is None else implied(charge, account.budget.delta),
            budget=account.budget.to_dict(),
            covers=IN_LEDGER if self._ledger.lasting else IN_PROCESS,
        )
        first = number == 1 and not stored
        notes = [*self.plan.sentences(level)]
        if stored:
            notes.append(
                say("This total was told before; these are the same numbers, and nothing was counted again.")
            )
        if by_rows:
            notes.append(
                say(
                    "Deliveries are known by their rows here: that one has the very same rows as an earlier one is told exactly, which the promise does not "
                    "cover. Give each a name (--delivery, in Python known_as) and it is not told."
                )
            )
        return RunningRelease(
            number=number,
            frame=_frame(self.plan, np.array(json.loads(found[0])["total"], dtype=np.float64), number, level),
            guarantee=promise,
            cost=Cost(
                measure=measure,
                spent=charge if first else Fraction(0),
                asked=charge,
                left=account.left,
                budget=account.budget.total,
            ),
            plan=self.plan.to_dict(level),
            notes=tuple(notes),
            stored=stored,
            receipt=found[1],
        )

    def _question(self, number: int) -> str:
        return hashlib.sha256(f"running:{self.series}:{number}".encode()).hexdigest()

    def _first(self) -> _State:
        empty = Exact.empty(self.plan.running.releases, _size(self.plan), len(self.plan.levels))
        return _State(empty, Told(), {}, {})


def price_running(
    sql: str,
    schema: Schema,
    measure: Literal["epsilon", "rho"],
    *,
    releases: int,
    deliveries: int = 1,
    spend: Amount | None = None,
    within: Amount | None = None,
    unit: Unit | None = None,
    name: str = "deliveries",
) -> RunningPlan:
    """What a running total would cost and how exact each total would be. Nothing is booked or looked at."""
    whom = Unit.declared(schema) if unit is None else unit
    check_unit_column(whom, schema)
    running = made(Running, {"releases": releases, "deliveries": deliveries}, _ASKED)
    query = parse(sql, schema, name)
    most = None if spend is None else spend_of(spend, "spend", _ASKED)
    if within is None:
        if most is None:
            raise ParameterError(
                "It was not said how exact the totals are to be, nor what they may cost together.",
                "Both are yours to decide: the more exact, the more of the budget they take.",
                "Give a half-width (within) or a spend.",
            )
        return plan_running(query, schema, whom, measure, most, running)
    found = plan_running_within(query, schema, whom, measure, Wish.of(within, "within", _ASKED), running)
    check_most(found.charge, most, measure)
    return found


@dataclass(frozen=True, repr=False)
class _State:
    """What the next delivery needs. Exact sums and people under the series' key are private; the rest was told."""

    exact: Exact
    told: Told
    deliveries: dict[str, int]
    people: dict[bytes, int]

    def written(self) -> bytes:
        """As the state folder keeps it."""
        marks = sorted(self.people)
        form = {
            "done": self.exact.done,
            "sums": self.exact.sums.tolist(),
            "told": [[level, estimate.tolist()] for level, estimate in self.told.blocks],
            "deliveries": self.deliveries,
            "people": base64.b64encode(zlib.compress(b"".join(marks))).decode(),
            "counted": [self.people[mark] for mark in marks],
        }
        return json.dumps(form, separators=(",", ":")).encode()

    @classmethod
    def read(cls, content: bytes, plan: RunningPlan) -> _State:
        """What `written` wrote; its hash was checked before."""
        form: dict[str, Any] = json.loads(content)
        marks = zlib.decompress(base64.b64decode(form["people"]))
        shape = (len(plan.levels), _size(plan))
        return cls(
            Exact(plan.running.releases, form["done"], np.array(form["sums"], dtype=np.int64).reshape(shape)),
            Told(tuple((level, np.array(estimate, dtype=np.float64)) for level, estimate in form["told"])),
            form["deliveries"],
            {marks[MARK * at : MARK * (at + 1)]: n for at, n in enumerate(form["counted"])},
        )


def _size(plan: RunningPlan) -> int:
    need = plan.outline.draws[0].need
    return cells_of(plan.outline.keys) * (len(need.edges) - 1 if isinstance(need, GridCells) else 1)


def _frame(plan: RunningPlan, totals: Floats, number: int, confidence: Fraction) -> pl.DataFrame:
    """Keys, then value, low and high; what a total cannot be is cut off, which costs nothing."""
    outline = plan.outline
    aggregate, need = outline.query.aggregates[0], outline.draws[0].need
    bins = bin_names(need) if isinstance(need, GridCells) else ()
    columns: dict[str, pl.Series] = {
        key.column: series
        for key, series in zip(outline.keys, key_columns(outline.keys, max(1, len(bins))), strict=True)
    }
    name = name_of(aggregate)
    if bins:
        columns[f"{name}_bin"] = pl.Series(list(bins) * cells_of(outline.keys), dtype=pl.String)
    half, hair = plan.half_width(number, confidence), 1e-6 * (1 + np.abs(totals))
    grid = outline.parts[0].grid if aggregate.kind == "sum" else None
    least, most = -np.inf, np.inf
    if one_sided(grid):
        least, most = (0.0, np.inf) if grid is None or grid.low >= 0 else (-np.inf, 0.0)
    value = np.clip(totals, least, most)
    low, high = np.clip(totals - half - hair, least, most), np.clip(totals + half + hair, least, most)
    # A total that noise moved beyond what is possible has the interval of the bound itself.
    low, high = (
        np.minimum(low, np.clip(value - half, least, most)),
        np.maximum(high, np.clip(value + half, least, most)),
    )
    if grid is not None:
        step = float(grid.step)
        shown: tuple[Counts | Floats, ...] = (value * step, low * step, high * step)
    else:
        shown = tuple(one.astype(np.int64) for one in (np.rint(value), np.floor(low), np.ceil(high)))
    for end, numbers in zip(("", "_low", "_high"), shown, strict=True):
        columns[f"{name}{end}"] = pl.Series(numbers)
    return pl.DataFrame(columns)
