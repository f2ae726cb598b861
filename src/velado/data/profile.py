"""profile(): a table as its steward first sees it: how it was read, each column's shape, who may be a person.

It adds pictures and an order to what `inspect` found and judges nothing itself. It shows values of the table (the most
frequent ones, ends of bars), so it is for whoever holds the table and never leaves; columns that surely identify show none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.identifiers.people import PERSON_ORDER
from velado.data.inspect import ColumnFinding, Inspection, inspect
from velado.data.io import read_table
from velado.data.normal import distinct_texts
from velado.data.numbers import parse_numbers
from velado.data.schema import Column
from velado.data.table import Table
from velado.errors import VeladoError
from velado.text import say, say_n

MOST_BARS = 12
_LEAST_ALIKE = 3


@dataclass(frozen=True)
class Reading:
    """How a file was read: what a steward may correct before anything else.

    >>> Reading("utf-8", ";", ",", ("", "NA")).decimal
    ','
    """

    encoding: str
    separator: str
    decimal: str
    missing_values: tuple[str, ...]


@dataclass(frozen=True)
class Bar:
    """One bar of a column's small histogram: *label* is a value, an interval or a year, or counts all other values.

    >>> Bar("F", 1204).rows
    1204
    """

    label: str
    rows: int


@dataclass(frozen=True)
class ColumnProfile:
    """A column's card: what was *found*, the share of rows with a value nobody else has, its bars and its danger.

    *danger* is 1 for what surely identifies and falls through what may identify, free text, quasi-identifiers and
    sensitive columns to the others; within each by how well the column tells rows apart.

    >>> from velado.testing.examples import small_table
    >>> profile(small_table(sexo=("other", "text", "F M F"))).columns[0].bars
    (Bar(label='F', rows=2), Bar(label='M', rows=1))
    """

    found: ColumnFinding
    unique: float
    danger: float
    bars: tuple[Bar, ...]

    @property
    def name(self) -> str:
        """The column's header."""
        return self.found.name


@dataclass(frozen=True)
class PersonCandidate:
    """A column whose values may be people: how many they would be, and the rows of one on average and at most.

    >>> PersonCandidate("cpf", people=100, mean=1.5, most=9, proposed=True).mean
    1.5
    """

    column: str
    people: int
    mean: float
    most: int
    proposed: bool


@dataclass(frozen=True)
class Profile:
    """What opening a table shows: *columns* most dangerous first, *alike* those that one decision may settle together.

    >>> from velado.testing.examples import small_table
    >>> profile(small_table(cpf=("other", "text", "a b c"), sexo=("other", "text", "F M F"))).columns[0].name
    'cpf'
    """

    inspection: Inspection
    reading: Reading
    columns: tuple[ColumnProfile, ...]
    alike: tuple[tuple[str, ...], ...]
    candidates: tuple[PersonCandidate, ...]


def profile(source: Any, inspection: Inspection | None = None) -> Profile:
    """The profile of a table, a data frame or a file; *inspection* is that of `inspect`, if it was made already.

    All rows are counted; what `inspect` judges on samples is judged on samples here too. O(n log n) for each column.

    >>> from velado.testing.examples import small_table
    >>> profile(small_table(sexo=("other", "text", "F M F"))).reading.separator
    ','
    """
    table = read_table(source)
    found = inspect(table) if inspection is None else inspection
    schema = found.schema
    proposed = table.with_schema(schema)
    cards = [_card(proposed, finding, found.rows) for finding in found.columns]
    cards.sort(key=lambda card: (-card.danger, card.name))
    return Profile(
        inspection=found,
        reading=Reading(table.encoding, table.separator, schema.decimal, schema.missing_values),
        columns=tuple(cards),
        alike=_alike(found.columns),
        candidates=_candidates(proposed, found),
    )


def _card(table: Table, finding: ColumnFinding, rows: int) -> ColumnProfile:
    often = distinct_texts(table, finding.name)
    alone = int((often.get_column("n") == 1).sum())
    bars = () if finding.identifier is not None else _bars(table, table.schema.columns[finding.name], often)
    return ColumnProfile(finding, alone / rows, _danger(finding), bars)


def _danger(finding: ColumnFinding) -> float:
    if finding.identifier is not None:
        return 1.0
    if finding.suspected is not None:
        base = 0.8
    elif finding.kind == "text":
        base = 0.7
    else:
        base = {"quasi": 0.5, "sensitive": 0.3}.get(finding.role, 0.0 if finding.publish else 0.6)
    return base + 0.1 * finding.separation


def _bars(table: Table, column: Column, often: pl.DataFrame) -> tuple[Bar, ...]:
    if not often.height or column.kind == "text":
        return ()
    if column.kind == "numeric" and often.height > MOST_BARS:
        return _number_bars(table, column, often)
    if column.kind == "date" and often.height > MOST_BARS:
        return _year_bars(column, often)
    if often.height > MOST_BARS and 2 * often.height > int(often.get_column("n").sum()):
        return ()  # hardly any value repeats: bars of one row each would show people, not a shape
    first = often.sort(["n", "text"], descending=[True, False]).head(MOST_BARS)
    bars = [Bar(text, int(n)) for text, n in first.iter_rows()]
    rest = int(often.get_column("n").sum()) - sum(bar.rows for bar in bars)
    others = say_n("{n:,} other value", "{n:,} other values", often.height - MOST_BARS)
    return (*bars, Bar(others, rest)) if rest else tuple(bars)


def _number_bars(table: Table, column: Column, often: pl.DataFrame) -> tuple[Bar, ...]:
    texts = pl.DataFrame({column.name: often.get_column("text")})
    try:
        numbers = parse_numbers(table.with_frame(texts), column, np.zeros(texts.height, dtype=bool))[0]
    except VeladoError:  # what the schema proposes does not fit every value: there is nothing to draw
        return ()
    # Nearly all rows share the width; the few far out are counted with the first and the last bar, which reach so far.
    weights = often.get_column("n").to_numpy().astype(np.float64)
    order = np.argsort(numbers, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    low, high = (float(numbers[order][np.searchsorted(reached, share)]) for share in (0.01, 0.99))
    if low == high:
        low, high = float(numbers.min()), float(numbers.max())
    if (numbers == np.floor(numbers)).all():
        return _whole_bars(numbers, weights, low, high)
    ends = _ends(low, high)
    at = np.searchsorted(ends[1:-1], numbers, side="right")
    rows = np.bincount(at, weights=weights, minlength=MOST_BARS)
    ends = np.concatenate([[min(ends[0], numbers.min())], ends[1:-1], [max(ends[-1], numbers.max())]])
    return tuple(
        Bar(say("{low:.12g} to {high:.12g}", low=float(low), high=float(high)), int(count))
        for low, high, count in zip(ends, ends[1:], rows, strict=False)
    )


def _whole_bars(
    numbers: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], low: float, high: float
) -> tuple[Bar, ...]:
    """Bars of whole numbers, each of as many: between others a bar would hold a number more or less, and look like a gap."""
    width = -(-(high - low + 1) // MOST_BARS)
    count = int(-(-(high - low + 1) // width))
    at = np.clip((numbers - low) // width, 0, count - 1).astype(np.int64)
    first = low + width * np.arange(count)
    last = first + width - 1
    first[0], last[-1] = min(first[0], numbers.min()), max(high, numbers.max())
    rows = np.bincount(at, weights=weights, minlength=count)
    return tuple(
        Bar(
            f"{low:.12g}"
            if low == high
            else say("{low:.12g} to {high:.12g}", low=float(low), high=float(high)),
            int(n),
        )
        for low, high, n in zip(first, last, rows, strict=True)
    )


def _ends(low: float, high: float) -> npt.NDArray[np.float64]:
    """The ends of the bars from *low* to *high*, as short as they can be written: rows are counted between them as said."""
    exact = np.linspace(low, high, MOST_BARS + 1)
    step = (high - low) / MOST_BARS
    return np.round(exact, max(0, 1 - int(np.floor(np.log10(step)))))


def _year_bars(column: Column, often: pl.DataFrame) -> tuple[Bar, ...]:
    days = often.get_column("text").str.strip_chars().str.to_date(column.format, strict=False)
    years = (
        often.select("n").with_columns(year=days.dt.year()).drop_nulls().group_by("year").sum().sort("year")
    )
    if not years.height:
        return ()
    first, last = int(years["year"][0]), int(years["year"][-1])
    step = -(-(last - first + 1) // MOST_BARS)
    at = (years["year"].to_numpy() - first) // step
    rows = np.bincount(at, weights=years["n"].to_numpy())
    return tuple(
        Bar(
            str(first + i * step)
            if step == 1
            else f"{first + i * step}..{min(first + (i + 1) * step - 1, last)}",
            int(n),
        )
        for i, n in enumerate(rows)
    )


def _alike(found: Sequence[ColumnFinding]) -> tuple[tuple[str, ...], ...]:
    """Columns for which the same is proposed for the same reason: numbered ones, and quantities of no role."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for finding in found:
        if finding.identifier is not None or finding.suspected is not None or finding.person:
            continue
        quantity = finding.role == "other" and finding.kind == "numeric"
        stem = "" if quantity else re.sub(r"\d+", "#", finding.name.lower())
        if not quantity and "#" not in stem:
            continue
        groups.setdefault((finding.role, finding.kind, finding.publish, finding.why, stem), []).append(
            finding.name
        )
    return tuple(tuple(names) for names in groups.values() if len(names) >= _LEAST_ALIKE)


def _candidates(table: Table, found: Inspection) -> tuple[PersonCandidate, ...]:
    out = []
    for finding in found.columns:
        kind = finding.identifier or finding.suspected
        told = finding.person or finding.may_be_person
        if not told and (kind not in PERSON_ORDER or finding.distinct < 2):
            continue
        people = max(finding.distinct, 1)
        most = distinct_texts(table, finding.name).get_column("n").max()
        mean = (found.rows - finding.missing) / people
        sure = finding.identifier is not None
        candidate = PersonCandidate(finding.name, people, mean, int(str(most or 0)), finding.person)
        out.append(((not finding.person, not finding.may_be_person, not sure, mean <= 1), candidate))
    return tuple(candidate for _, candidate in sorted(out, key=lambda pair: pair[0]))
