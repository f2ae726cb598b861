"""Random tables with spellings, blanks and people, and what memory and an engine make of each: equal, or refused alike."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.data.table import Table
from velado.engines.row_source import Recoding, RowSource
from velado.errors import VeladoError
from velado.release.anonymize import anonymize
from velado.release.guarantees import (
    BetaLikeness,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from velado.release.methods import DAS, FixedInterval, FullDomain, Mondrian, TopDownGreedy
from velado.release.sources.source_check import Judged
from velado.release.sources.source_plan import ChosenPlan
from velado.release.sources.source_release import PreparedSource, plan_release, prepare_source
from velado.release.sources.source_tuples import count_tuples, read_codes
from velado.release.sources.source_written import SourceRelease, check_written

KEY = Key(bytes(range(40)))
NASTY = [
    "São Paulo",
    "sao paulo",
    "SÃO  PAULO",
    " São Paulo ",
    "Sa\u0303o Paulo",
    "07",
    "7",
    "7.0",
    "+7",
    "-0",
    "0",
]
NASTY += [
    "1e3",
    "1000",
    "ß",
    "SS",
    "ﬁ",
    "fi",
    "a\u200bb",
    "ab",
    "Ⅷ",
    "VIII",
    "NA",
    "na",
    "",
    "' OR 1=1",
    'a"b',
    "x;y",
]


def seeds(first: int, few: int) -> range:
    """The seeds of *few* random tables, from *first* on, or of as many as VELADO_TABLES says.

    Every engine, either plan, compared on two hundred tables: `VELADO_TABLES=200 make test-engines`.
    """
    return range(first, first + int(os.environ.get("VELADO_TABLES", few)))


@dataclass(frozen=True)
class Case:
    """A frame with its schema, and how it is to be released."""

    frame: pl.DataFrame
    schema: Schema
    method: object
    k: int
    guarantees: tuple[object, ...]
    suppression: float
    per: str | None


def random_case(seed: int, typed: bool = True) -> Case:
    """One random table; with *typed* columns of numbers and days, else of texts alone."""
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(20, 160))
    words = draw.choice(NASTY, int(draw.integers(2, 7)), replace=False)
    ages = draw.integers(18, 18 + int(draw.integers(3, 50)), rows)
    columns = {
        "age": pl.Series(ages) if typed and draw.random() < 0.5 else pl.Series([str(a) for a in ages]),
        "town": pl.Series(draw.choice(words, rows)),
        "weight": pl.Series(np.round(draw.normal(70, 3, rows), int(draw.integers(0, 2)))),
        "day": pl.Series([f"2024-0{m}-1{d}" for m, d in draw.integers(1, 4, (rows, 2))]),
        "ill": pl.Series(draw.choice(["flu", "Flu", "cold", "asthma", "NA"], rows)),
        "note": pl.Series(draw.choice(["x", "y", "Z"], rows)),
        "who": pl.Series([f"P{n}" for n in draw.integers(0, max(2, rows // 2), rows)]),
    }
    frame = pl.DataFrame(columns)
    if typed and draw.random() < 0.5:
        frame = frame.with_columns(pl.col("day").str.to_date())
    if not typed:
        frame = frame.cast(pl.String)
    blank = draw.random(rows) < 0.08 * draw.integers(0, 2)
    frame = frame.with_columns(pl.when(pl.Series(~blank)).then(pl.col("weight")).alias("weight"))
    policy = str(draw.choice(["value", "suppress"]))
    meaning = {
        "age": {"role": "quasi", "kind": "numeric"},
        "town": {"role": "quasi", "kind": "categorical", "missing": policy},
        "weight": {"role": "quasi", "kind": "numeric", "missing": policy},
        "day": {"role": "quasi", "kind": "date"},
        "ill": {"role": "sensitive", "kind": "categorical"},
        "note": {"role": "other", "kind": "categorical"},
        "who": {"role": "identifier", "kind": "text", "person": True},
    }
    kept = ["age", "ill", "note", *[n for n in ("town", "weight", "day") if draw.random() < 0.6]]
    if draw.random() < 0.5:
        kept.append("who")
    missing = {"missing_values": ["", "NA"], "constant": "allow"}
    schema = Schema.from_dict(
        {"table": missing, "columns": {n: meaning[n] for n in frame.columns if n in kept}}
    )
    methods = (Mondrian(), TopDownGreedy(), FullDomain(), DAS(), FixedInterval())
    promises = ((), (LDiversity(2),), (TCloseness(0.5),))
    return Case(
        frame=frame.select([n for n in frame.columns if n in kept]),
        schema=schema,
        method=methods[int(draw.choice(5, p=[0.4, 0.2, 0.2, 0.1, 0.1]))],
        k=int(draw.choice([2, 3, 5, 10])),
        guarantees=promises[int(draw.choice(3, p=[0.6, 0.2, 0.2]))],
        suppression=float(draw.choice([0.0, 0.1, 0.3])),
        per=str(draw.choice(["row", "person"])) if "who" in kept else "row",
    )


EVERY = (
    KAnonymity(4),
    LDiversity(2),
    EntropyLDiversity(1.5),
    RecursiveLDiversity(c=3.0, l=2),
    TCloseness(0.3),
    BetaLikeness(1.0),
)
"""A guarantee of each kind that is read off the table alone."""


def widened_case(seed: int) -> Case:
    """One random table, with a promise of any kind asked for beside k in two of three cases."""
    case, draw = random_case(seed), np.random.default_rng([seed, 1])
    more = tuple(EVERY[n] for n in draw.choice(range(1, len(EVERY)), int(draw.integers(0, 3)), replace=False))
    return replace(case, guarantees=more, suppression=float(draw.choice([0.0, 0.3, 0.6])))


def in_memory(case: Case) -> tuple[object, ...]:
    """The table that memory publishes, its rows in order, with every verdict; or the refusal."""
    try:
        made = anonymize(
            case.frame,
            case.schema,
            case.method,
            case.guarantees,
            k=case.k,
            suppression=case.suppression,
            per=case.per,
            key=KEY,
        )
    except VeladoError as error:
        return (type(error).__name__,)
    return "held", rows_of(made.frame), verdicts_of(made), made.suppressed, round(made.loss, 9)


def on_engine(
    case: Case, source: RowSource, write: Callable[[Recoding], RowSource], judge: bool = True
) -> tuple[object, ...]:
    """The same by an engine, from what *write* wrote.

    Without *judge* nobody looks for identifiers and side doors, which takes most of the time of a small table.
    """
    try:
        if judge:
            ready = prepare_source(source, case.schema, per=case.per)
        else:
            judged = Judged(Table.of(case.frame, case.schema), whole=True)
            codes = read_codes(source, judged.schema)
            chosen = ChosenPlan("compress", "chosen by the test")
            ready = PreparedSource(source, judged, codes, chosen, count_tuples(codes), case.per, ())
        plan = plan_release(
            ready, case.method, k=case.k, guarantees=case.guarantees, suppression=case.suppression
        )
        written = write(plan.recoding(KEY))
        made = check_written(plan, written)
    except VeladoError as error:
        return (type(error).__name__,)
    return (
        "held",
        rows_of(pl.DataFrame(written.sample(written.rows))),
        verdicts_of(made),
        plan.suppressed,
        round(plan.loss, 9),
    )


def rows_of(frame: pl.DataFrame) -> list[tuple[str, ...]]:
    """The rows as texts, sorted: a table as a multiset."""
    return sorted(
        tuple("" if cell is None else str(cell) for cell in row) for row in frame.cast(pl.String).rows()
    )


def verdicts_of(made: object) -> list[tuple[object, ...]]:
    """Guarantee, whether it holds, and the weakest group; of a release in memory or on an engine."""
    assert isinstance(made, SourceRelease) or hasattr(made, "verdicts")
    return [(v.guarantee, v.holds, round(float(v.achieved), 9)) for v in made.verdicts]
