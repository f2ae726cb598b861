"""How far one column narrows another: by any rule, rising, falling or neither, told from chance.

Chatterjee's coefficient (S. Chatterjee, "A new coefficient of correlation", JASA 116, 2021, equation 1.1 with ties)
orders the rows by one column and asks how far neighbours are apart in the ranks of the other. It is about 0 where the
two are independent (standard deviation sqrt(2/5n)) and 1 where the first settles the second by whatever function. One
less it is the part of the people that is left for a reader of the first: a five-year band of ages 0 to 99 gives 0.95.
Mere correlation stays far below: in the public tables we tried the largest of a harmless pair is 0.74 (a credit card's
bills of two months).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import text_codes
from velado.data.schema import Column
from velado.data.table import Table
from velado.release._copies import folded
from velado.release._written import days_in, in_small_letters, nearly_all_read, numbers_in, plain

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

ROWS = 20_000
"""As many evenly spaced rows (people, where the schema knows them) say how far a column narrows another."""
PROBE = 2_000
_PROMISING = 0.6
_FEW_CODES = 100
NARROWS = 0.85
NEAR_COPY = 0.95
LEAST_TO_LEARN = 20.0
"""Fewer neighbours that would differ by chance than these say nothing, however alike they are."""

_MONTH = r"^(?P<y>\d{4})[-/.](?P<m>\d{1,2})$|^(?P<m2>\d{1,2})[-/.](?P<y2>\d{4})$"


@dataclass(frozen=True, repr=False)
class Scale:
    """A column as numbers, NaN where blank; *ordered* False where only equality has a meaning (then codes).

    *coded* says that the numbers stand within texts (`34 y`, `c34`), so that their order may or may not mean anything.
    """

    name: str
    values: Floats
    ordered: bool
    coded: bool = False

    def __repr__(self) -> str:
        return f"Scale({self.name!r}, {self.values.size} rows)"

    def take(self, rows: Rows) -> Scale:
        """The same column in some rows."""
        return Scale(self.name, self.values[rows], self.ordered, self.coded)


def judged(table: Table, most: int = ROWS) -> Table:
    """Evenly spaced rows of *table*, one per person: a person's repeated rows would agree with themselves."""
    rows = np.arange(table.rows, dtype=np.int64)
    person = table.schema.person
    if person is not None:
        codes = text_codes(folded(table.text(person.name)))[0]
        rows = np.sort(np.unique(codes, return_index=True)[1]).astype(np.int64)
    if rows.size > most:
        rows = rows[(np.arange(most) * rows.size) // most]
    return table if rows.size == table.rows else table.with_frame(table.frame[rows])


def scale(table: Table, column: Column) -> Scale:
    """A column read as numbers, days or months where nearly all of its texts are such, else as codes of its texts."""
    series = table.frame.get_column(column.name)
    if series.dtype.is_numeric():
        missing = table.is_missing(column.name)
        return Scale(column.name, _floats(series.cast(pl.Float64).set(missing, None)), True)
    text = plain(table.text(column.name))
    read = _on_a_line(text, column.format if column.kind == "date" else None)
    if read is not None:
        return Scale(column.name, read, True)
    if column.role != "quasi" or column.kind == "numeric":
        within = numbers_in(text)
        if within:
            return Scale(column.name, _floats(within[0]), True, True)
    codes = text_codes(folded(table.text(column.name)))[0].astype(np.float64)
    return Scale(column.name, np.where(codes == 0, np.nan, codes), False)


def _on_a_line(text: pl.Series, date_format: str | None = None) -> Floats | None:
    """Plain texts as numbers, as days, or as months; None where they are neither."""
    if date_format is not None:
        days = text.str.to_date(in_small_letters(date_format), strict=False)
        if nearly_all_read(text, days):
            return _floats(days.to_physical().cast(pl.Float64))
    numbers = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    if nearly_all_read(text, numbers):
        return _floats(numbers)
    for days in days_in(text)[:1]:
        return _floats(days.to_physical().cast(pl.Float64))
    probe = text.drop_nulls().head(200)
    if len(probe) and 2 * int(probe.str.contains(_MONTH).sum()) > len(probe):
        parts = text.str.extract_groups(_MONTH).struct.unnest()
        year = parts["y"].fill_null(parts["y2"]).cast(pl.Float64, strict=False)
        months = year * 12 + parts["m"].fill_null(parts["m2"]).cast(pl.Float64, strict=False)
        if nearly_all_read(text, months):
            return _floats(months)
    return None


def _floats(series: pl.Series) -> Floats:
    out = series.fill_null(np.nan).to_numpy().astype(np.float64)
    return np.where(np.isfinite(out), out, np.nan)


def scattered(rows: int) -> npt.NDArray[np.uint64]:
    """A fixed order of the rows that follows no other: it parts equal values, so that a sorted file says nothing."""
    return (np.arange(rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(0x5DEECE66D1234567)


class Target:
    """A quasi-identifier ready to be held against orders of the rows: its ranks, or its codes where it has none."""

    def __init__(self, of: Scale) -> None:
        self.name = of.name
        self.ordered = of.ordered
        values = of.values
        n = values.size
        if of.ordered:
            line = np.sort(values)
            self.ranks = np.searchsorted(line, values, "right").astype(np.float64)
            above = (n - np.searchsorted(line, values, "left")).astype(np.float64)
            # Mean distance of two rows drawn at random; ties make it smaller than a third of the rows.
            self.apart = 2.0 * float((above * (n - above)).sum()) / n**2 if n else 0.0
        counts = np.unique(values, return_counts=True)[1] if n else np.zeros(1)
        self.differing = 1.0 - float(((counts / max(n, 1)) ** 2).sum())
        if not of.ordered:
            self.ranks = values
            self.apart = self.differing

    def settled(self, order: Rows, beside: npt.NDArray[np.bool_] | None = None) -> float:
        """How far neighbours in *order* agree beyond chance: 0 by chance, 1 fully. *beside* picks neighbours."""
        gaps = self.gaps(order)
        if beside is not None:
            gaps = gaps[beside]
        if self.apart <= 0.0 or gaps.size * self.differing < LEAST_TO_LEARN:
            return 0.0
        return 1.0 - float(gaps.mean()) / self.apart

    def gaps(self, order: Rows) -> Floats:
        """How far each row is from the next one in *order*."""
        sorted_ = self.ranks[order]
        steps = np.diff(sorted_)
        gaps = np.abs(steps) if self.ordered else steps != 0
        return np.asarray(gaps, dtype=np.float64)


def narrowed(own: Scale, quasi: Scale) -> float:
    """How far *own* settles *quasi* in the rows where both have a value: about 0 by chance, at most 1.

    Most pairs have nothing to do with one another, and a few thousand rows show it: only what they leave open is
    looked at in all rows.
    """
    dense = own.ordered or not own.values.size or np.nanmax(own.values, initial=0.0) <= _FEW_CODES
    if dense and own.values.size > 2 * PROBE:
        few = (np.arange(PROBE) * own.values.size) // PROBE
        share = _narrowed(own.take(few), quasi.take(few))
        if share < _PROMISING:
            return share
    return _narrowed(own, quasi)


def _narrowed(own: Scale, quasi: Scale) -> float:
    both = np.flatnonzero(~(np.isnan(own.values) | np.isnan(quasi.values)))
    if both.size < LEAST_TO_LEARN:
        return 0.0
    values = own.values[both]
    order = np.lexsort((scattered(both.size), values))
    target = Target(quasi.take(both))
    if own.coded or not own.ordered or not quasi.ordered:
        # The order of codes has no meaning: only neighbours of one value tell, if such are most.
        same = np.diff(values[order]) == 0
        if 2 * int(same.sum()) >= same.size:
            alike = target.settled(order, same)
            return max(alike, target.settled(order)) if own.coded else alike
    return target.settled(order)


def as_guess(share: float, quasi: Scale) -> tuple[float, float]:
    """A settled share of a column of categories as the chance of a right guess, and that without any reading.

    Both guess the category of another row: one with the same value, one drawn at random.
    """
    seen = quasi.values[~np.isnan(quasi.values)]
    alike = 1.0 - Target(Scale(quasi.name, seen, False)).differing
    return alike + share * (1.0 - alike), alike
