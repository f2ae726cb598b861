"""Encoded columns and tables: every quasi-identifier as ordered integer codes, and what a range of codes costs.

Numbers are coded by rank among their distinct values, categories by the depth-first number of their leaf.
Either way the *cover* of a group is the pair (smallest code, largest code), and two array look-ups turn a
cover into its published label and its loss. A missing value is the last code: alone it is published as a
blank, together with anything else only `*` covers it. Where a schema declares a step, the ends of an interval are moved
outwards to its multiples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from velado.compiled import njit
from velado.data.numbers import number_text
from velado.data.partition import (
    BoolArray,
    CodedValues,
    FloatArray,
    GroupCounts,
    Int32Array,
    Int64Array,
    IntArray,
    Partition,
    ValueEntries,
    ValueShape,
)
from velado.data.schema import Schema
from velado.data.taxonomy import ROOT_LABEL, Taxonomy
from velado.errors import ParameterError, SchemaError
from velado.text import say

T = TypeVar("T")
_MOST_KEPT = 1_000_000
"""Cells of a table that remembers what was worked out of it."""

# Rounding: interval ends moved outwards to multiples of a declared step, so that no end is somebody's true value by rule.
# The ends of a tight cover are the least and the greatest value of a group: two members' own numbers. Rounded ends
# depend on which cells of a public grid the group touches, and on nothing finer.

_EXACT = 2.0**52
"""Whole numbers up to here, and one step beyond, are exact in double precision."""


@dataclass(frozen=True)
class Rounding:
    """Multiples of *step*, cut off at the public *bounds* where they are declared.

    A multiple is computed as a whole number over a power of ten, which double precision rounds once: it is the
    very number a reader gets from the published text (0.3, never 0.30000000000000004).

    >>> Rounding(5).outwards(np.array([21.0, 25.0]), np.array([23.0, 25.0]))
    (array([20., 25.]), array([25., 30.]))
    """

    step: float
    bounds: tuple[float, float] | None = None

    @cached_property
    def _ratio(self) -> tuple[int, int]:
        """The step as whole number / power of ten."""
        _, digits, exponent = Decimal(repr(self.step)).as_tuple()
        assert isinstance(exponent, int)
        whole = int("".join(map(str, digits)))
        return whole * 10 ** max(exponent, 0), 10 ** max(-exponent, 0)

    def check(self, points: FloatArray, column: str) -> None:
        """Every number of the column can be placed on the grid exactly, or a SchemaError names the column."""
        whole, power = self._ratio
        largest = float(np.abs(points).max(initial=0.0))
        if (largest + self.step) * power >= _EXACT or whole >= _EXACT:
            raise SchemaError(
                say(
                    "'round' in [columns.{column}] is too fine for numbers as large as the column's.",
                    column=column,
                ),
                "Its multiples could not be told apart in double precision.",
                "Declare a coarser step.",
            )

    def outwards(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The narrowest lower..upper on the grid that covers *low*..*high* and is no single number, elementwise.

        A lone number that is a multiple itself gets the neighbouring cell above, or below where a bound makes
        that one narrower: publishing it bare would say that all members have it. An end beyond a public bound is
        moved onto the bound. A wider low..high never gets a narrower result.
        """
        first, last = self._floor(low), -self._floor(-np.asarray(high))
        lower, upper = self._clipped(first), self._clipped(last)
        alone = first == last
        if bool(alone.any()):
            above, below = self._clipped(last + 1), self._clipped(first - 1)
            # Widths of whole cells are compared as what they are, not by subtraction, which leaves dust.
            rise = np.where(above == self._multiple(last + 1), self.step, above - upper)
            fall = np.where(below == self._multiple(first - 1), self.step, lower - below)
            goes_up = (rise > 0) & ((rise <= fall) | (fall <= 0))
            upper = np.where(alone & goes_up, above, upper)
            lower = np.where(alone & ~goes_up, below, lower)
        return lower, upper

    def _floor(self, numbers: FloatArray) -> Int64Array:
        """How many steps the greatest multiple lies from 0 that is no more than each number."""
        numbers = np.asarray(numbers, dtype=np.float64)
        steps = np.floor(numbers / self.step).astype(np.int64)
        # The division may err by one on either side of a multiple.
        steps -= self._multiple(steps) > numbers
        steps += self._multiple(steps + 1) <= numbers
        return np.asarray(steps, dtype=np.int64)

    def _multiple(self, steps: Int64Array) -> FloatArray:
        whole, power = self._ratio
        return np.asarray((steps * whole) / power, dtype=np.float64)

    def _clipped(self, steps: Int64Array) -> FloatArray:
        numbers = self._multiple(steps)
        return numbers if self.bounds is None else np.clip(numbers, *self.bounds)


def with_rounding(schema: Schema, steps: Mapping[str, float]) -> Schema:
    """The same schema with ``round`` set on the columns of *steps*; each must be a plain numeric quasi-identifier.

    >>> from velado.data.schema import Column
    >>> with_rounding(Schema({"age": Column("age", "quasi", "numeric")}), {"age": 5}).columns["age"].round
    5.0
    """
    columns = dict(schema.columns)
    for name, step in steps.items():
        if name not in columns:
            raise ParameterError(
                say("There is no column '{name}' whose intervals could be rounded.", name=name),
                "The schema does not name it.",
                "Name a numeric quasi-identifier, for example --round-intervals age=5.",
            )
        columns[name] = replace(columns[name], round=step)
    return schema.with_columns(columns.values())


# Counting compatible tuples: a hash join for every pair of blank patterns; people of a population in covers.


@njit(cache=True)
def _hash(tuples, row, shown, count):  # type: ignore[no-untyped-def]
    value = np.uint64(1469598103934665603)
    for at in range(count):
        value = (value ^ np.uint64(tuples[row, shown[at]])) * np.uint64(1099511628211)
        value ^= value >> np.uint64(29)
    return value


@njit(cache=True)
def _same(tuples, one, other, shown, count):  # type: ignore[no-untyped-def]
    for at in range(count):  # noqa: SIM110 (compiled: a generator would not be)
        if tuples[one, shown[at]] != tuples[other, shown[at]]:
            return False
    return True


@njit(cache=True)
def count_matches(
    tuples: Int32Array, weight: Int64Array, patterns: BoolArray, begins: Int64Array
) -> Int64Array:
    """For each tuple, the summed weight of all tuples that agree with it wherever both show a value.

    *tuples* are distinct and sorted by pattern; pattern p holds the tuples begins[p]..begins[p + 1] - 1 and is
    True where a column is blank. Equal hashes are compared value by value, so the count is exact.

    >>> rows = np.array([[1, 2], [0, 2]], dtype=np.int32)
    >>> count_matches(rows, np.array([3, 1]), np.array([[False, False], [True, False]]), np.array([0, 1, 2]))
    array([4, 4])
    """
    total, width = tuples.shape
    out = np.zeros(total, dtype=np.int64)
    shown = np.empty(width, dtype=np.int64)
    for theirs in range(patterns.shape[0]):
        low, high = begins[theirs], begins[theirs + 1]
        slots = 8
        while slots < 2 * (high - low):
            slots *= 2
        mask = np.uint64(slots - 1)
        keeper = np.empty(slots, dtype=np.int64)
        sums = np.empty(slots, dtype=np.int64)
        for mine in range(patterns.shape[0]):
            count = 0
            for column in range(width):
                if not patterns[theirs, column] and not patterns[mine, column]:
                    shown[count] = column
                    count += 1
            keeper[:] = -1
            for row in range(low, high):
                slot = _hash(tuples, row, shown, count) & mask
                while keeper[slot] >= 0 and not _same(tuples, keeper[slot], row, shown, count):
                    slot = (slot + np.uint64(1)) & mask
                if keeper[slot] < 0:
                    keeper[slot] = row
                    sums[slot] = 0
                sums[slot] += weight[row]
            for row in range(begins[mine], begins[mine + 1]):
                slot = _hash(tuples, row, shown, count) & mask
                while keeper[slot] >= 0 and not _same(tuples, keeper[slot], row, shown, count):
                    slot = (slot + np.uint64(1)) & mask
                if keeper[slot] >= 0:
                    out[row] += sums[slot]
    return out


@njit(cache=True)
def _match_population(low: Int32Array, high: Int32Array, population: Int32Array) -> tuple[Int64Array, int]:
    """For each cover, how many people of the population lie in it; and how many lie in none."""
    groups, width = low.shape
    people = population.shape[0]
    out = np.zeros(groups, dtype=np.int64)
    seen = np.zeros(people, dtype=np.bool_)
    for group in range(groups):
        for person in range(people):
            inside = True
            for column in range(width):
                code = population[person, column]
                if code < low[group, column] or code > high[group, column]:
                    inside = False
                    break
            if inside:
                out[group] += 1
                seen[person] = True
    return out, people - int(seen.sum())


CellValue = str | None


@dataclass(frozen=True, repr=False)
class EncodedColumn:
    """One quasi-identifier as ordered codes.

    *codes* has one entry per row, 0..size-1. A numeric column has *points*, the number of each code, and
    *span*, the width of its domain (declared bounds, else the observed range, rounded outwards where ends are); a
    taxonomy column has *tree*.
    *missing* is the code of "no value", or -1 when there is none. *moved* marks rows whose number lay outside
    the bounds and was moved onto one: whatever is published for them but `*` is false. With a *rounding* the
    column is published by, and charged for, intervals with rounded ends. *case* says whether the case of letters
    tells labels apart when texts are read.

    >>> codes, points = np.array([0, 2], np.int32), np.array([20.0, 25.0, 29.0])
    >>> ages = EncodedColumn("age", codes, 3, points=points, span=10, whole=True)
    >>> ages.label([0, 1], [2, 1]), ages.loss([0, 1], [2, 1])
    (['[20..29]', '25'], array([0.9, 0. ]))
    """

    name: str
    codes: Int32Array
    size: int
    missing: int = -1
    points: FloatArray | None = None
    span: float = 0.0
    whole: bool = False
    decimal: str = "."
    tree: Taxonomy | None = None
    weight: float = 1.0
    moved: BoolArray | None = None
    rounding: Rounding | None = None
    case: str = "same"

    def __repr__(self) -> str:
        kind = "numeric" if self.tree is None else "taxonomy"
        return f"EncodedColumn({self.name!r}, {kind}, rows={self.codes.size}, size={self.size})"

    def rows(self, rows: IntArray | slice) -> EncodedColumn:
        """The same column for some rows only."""
        moved = None if self.moved is None else self.moved[rows]
        return replace(self, codes=self.codes[rows], moved=moved)

    @property
    def is_numeric(self) -> bool:
        """True for a numeric column, False for one with a taxonomy."""
        return self.tree is None

    @property
    def numbers(self) -> FloatArray:
        """The number of each code of a numeric column that is a value, rising; "no value" is left out."""
        assert self.points is not None
        return self.points[: self.missing] if self.missing >= 0 else self.points

    @cached_property
    def positions(self) -> FloatArray:
        """Where each code lies on a line of length 1 (its domain), for distances and widths.

        A missing number lies one domain width beyond the largest value: far from everything.
        """
        if self.points is None:
            return np.arange(self.size, dtype=np.float64) / max(self.size - 1, 1)
        scale = self.span if self.span > 0 else 1.0
        out = (self.points - self.points[0]) / scale
        if self.missing >= 0:
            out[self.missing] = (out[self.missing - 1] if self.missing > 0 else 0.0) + 1.0
        return np.asarray(out, dtype=np.float64)

    def loss(self, low: IntArray, high: IntArray) -> FloatArray:
        """Normalized certainty penalty of publishing the cover of codes *low*..*high*, elementwise.

        Numbers: (highest - lowest value, or upper - lower rounded end) / domain width. Taxonomies: (leaves under the lowest common
        ancestor - 1) / (leaves - 1). A cover that joins a missing value with others loses everything.
        """
        low = np.asarray(low)
        high = np.asarray(high)
        if self.tree is not None:
            return self.weight * self.tree.loss(self.tree.common_ancestor(low, high))
        assert self.points is not None
        lower, upper = self._stated_ends(low, high)
        width = (upper - lower) / (self.span if self.span > 0 else 1.0)
        if self.missing >= 0:
            width = np.where(high == self.missing, np.where(low == self.missing, 0.0, 1.0), width)
        return np.asarray(self.weight * np.clip(width, 0.0, 1.0), dtype=np.float64)

    def label(self, low: IntArray, high: IntArray) -> list[CellValue]:
        """What the cover of codes *low*..*high* is published as: `[20..29]`, a taxonomy label, `*`, or None."""
        low = np.asarray(low)
        high = np.asarray(high)
        if self.tree is not None:
            nodes = self.tree.common_ancestor(low, high)
            out: list[CellValue] = [self.tree.labels[node] for node in nodes.tolist()]
            if self.missing >= 0:
                for at in np.flatnonzero(nodes == self.missing):
                    out[at] = None
            return out
        # Only the numbers that are shown are written out: a column may have a million distinct ones.
        lower, upper = self._stated_ends(low, high)
        shown, at = np.unique(np.concatenate((lower, upper)), return_inverse=True)
        # A step may have decimals where the numbers have none.
        whole = self.whole and self.rounding is None
        texts = [number_text(number, whole, self.decimal) for number in shown.tolist()]
        result: list[CellValue] = [
            texts[least] if least == most else f"[{texts[least]}..{texts[most]}]"
            for least, most in zip(at[: lower.size].tolist(), at[lower.size :].tolist(), strict=True)
        ]
        if self.missing >= 0:
            for place in np.flatnonzero(high == self.missing).tolist():
                result[place] = None if low[place] == self.missing else ROOT_LABEL
        return result

    def _stated_ends(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """The two numbers that the cover of codes *low*..*high* of a numeric column is published with."""
        assert self.points is not None
        lower, upper = self.points[np.asarray(low)], self.points[np.asarray(high)]
        return (lower, upper) if self.rounding is None else self.rounding.outwards(lower, upper)

    def stated(self, low: IntArray, high: IntArray) -> tuple[Int32Array, Int32Array]:
        """All codes that the published text of the cover *low*..*high* is true of: more than it, where ends are rounded.

        Covers that are published alike become equal. Unrounded numbers and taxonomies state what they are given.
        """
        least, most = np.asarray(low, dtype=np.int32), np.asarray(high, dtype=np.int32)
        if self.rounding is None or self.points is None:
            return least, most
        lower, upper = self._stated_ends(least, most)
        first = np.searchsorted(self.numbers, lower, "left").astype(np.int32)
        last = (np.searchsorted(self.numbers, upper, "right") - 1).astype(np.int32)
        if self.missing >= 0:
            # `*` states every code, a blank only itself.
            gone = most == self.missing
            first = np.where(gone, np.where(least == most, self.missing, 0), first).astype(np.int32)
            last = np.where(gone, self.missing, last).astype(np.int32)
        return first, last

    @property
    def unrounded(self) -> EncodedColumn:
        """The same column with its true values as interval ends."""
        return self if self.rounding is None else replace(self, rounding=None)

    @cached_property
    def value_texts(self) -> list[CellValue]:
        """The published text of each single code; None for a missing value."""
        if self.tree is not None:
            texts: list[CellValue] = list(self.tree.labels[: self.tree.leaves])
        else:
            assert self.points is not None
            texts = [number_text(number, self.whole, self.decimal) for number in self.points.tolist()]
        if self.missing >= 0:
            texts[self.missing] = None
        return texts


@dataclass(frozen=True, repr=False)
class EncodedTable:
    """All that methods see of a table: encoded quasi-identifiers, person codes, sensitive codes.

    Each entry is a tuple of codes, and *counts* says how many rows of the source stand behind it; None: one each, the
    entries are the rows. *rows* is the number of entries, *total* that of the source's rows.

    *sensitive* maps a column name to (codes per row, number of codes); code 0 of each is "no value". Where entries are
    counted it maps to ValueEntries, which list what the rows behind each hold, and so does *people*. *shapes*
    says how the values of a sensitive column lie to one another. *population* holds the codes of a wider
    population's quasi-identifiers, people x columns, where one was given. *whole* is for a part of a table: how often each
    sensitive value occurs in all of it.

    >>> from velado.data.encode import encode
    >>> from velado.testing.examples import small_table
    >>> encode(small_table(age=("quasi", "numeric", "31 35 31"))).matrix.tolist()
    [[0], [1], [0]]
    """

    columns: tuple[EncodedColumn, ...]
    rows: int
    people: Int32Array | ValueEntries | None = None
    sensitive: Mapping[str, CodedValues | ValueEntries] | None = None
    shapes: Mapping[str, ValueShape] | None = None
    population: Int32Array | None = None
    counts: Int64Array | None = None
    whole: Mapping[str, Int64Array] | None = None

    def __repr__(self) -> str:
        behind = "" if self.counts is None else f", total={self.total}"
        return f"EncodedTable(rows={self.rows}{behind}, columns={[c.name for c in self.columns]})"

    @cached_property
    def total(self) -> int:
        """How many rows the source has."""
        return self.rows if self.counts is None else int(self.counts.sum())

    @property
    def matrix(self) -> Int32Array:
        """Codes as one row-major matrix, rows x columns; made anew each time, since it is as large as the table."""
        return np.ascontiguousarray(np.stack([column.codes for column in self.columns], axis=1))

    @cached_property
    def classes(self) -> Partition:
        """Entries with the same codes in every column form a group, numbered in the order of their codes."""
        found = Partition.by_codes([c.codes for c in self.columns], [c.size for c in self.columns])
        return self.weighed(found)

    @property
    def row_people(self) -> Int32Array | None:
        """The person of each row, None where none is declared; of a table whose entries are rows."""
        if isinstance(self.people, ValueEntries):
            raise ValueError(
                "the entries of this table stand for several rows each: there is no person of each row"
            )
        return self.people

    @property
    def row_values(self) -> Mapping[str, CodedValues]:
        """The sensitive values of each row, by column; of a table whose entries are rows."""
        out: dict[str, CodedValues] = {}
        for name, values in (self.sensitive or {}).items():
            if isinstance(values, ValueEntries):
                raise ValueError(
                    "the entries of this table stand for several rows each: no value is that of each row"
                )
            out[name] = values
        return out

    @cached_property
    def totals(self) -> Mapping[str, Int64Array]:
        """How often each sensitive value occurs in the whole table."""
        if self.whole is not None:
            return self.whole
        return {
            name: values.totals
            if isinstance(values, ValueEntries)
            else np.bincount(values[0], minlength=values[1]).astype(np.int64)
            for name, values in (self.sensitive or {}).items()
        }

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}

    def once(self, asked: str, make: Callable[[], T]) -> T:
        """What *make* works out of the table alone; the second who asks for it gets what the first got.

        Of a large table nothing is kept: what is worked out of it can take as much room as the table.
        """
        if self.rows * len(self.columns) > _MOST_KEPT:
            return make()
        if asked not in self._known:
            self._known[asked] = make()
        found: T = self._known[asked]
        return found

    def weighed(self, partition: Partition) -> Partition:
        """*partition* of the entries with their rows as weights."""
        return partition if partition.weights is self.counts else replace(partition, weights=self.counts)

    def group_counts(self, partition: Partition) -> GroupCounts:
        """What a guarantee may see of *partition*."""
        population, unmatched = None, 0
        if self.population is not None:
            covers = [partition.least_and_greatest(column.codes) for column in self.columns]
            population, unmatched = self.matching([low for low, _ in covers], [high for _, high in covers])
        return GroupCounts.of(
            self.weighed(partition),
            self.people,
            self.sensitive,
            self.totals,
            self.shapes,
            population,
            unmatched,
        )

    def matching(self, low: Sequence[IntArray], high: Sequence[IntArray]) -> tuple[Int64Array, int]:
        """How many people of the population each cover low..high matches, and how many match none.

        A taxonomy cover is the node that is published for it, so it may match more than low..high. O(G N d) at
        worst, most pairs differing in the first column.
        """
        assert self.population is not None
        lows, highs = [], []
        for column, least, most in zip(self.columns, low, high, strict=True):
            if column.tree is not None:
                node = column.tree.common_ancestor(least, most)
                least, most = column.tree.first[node], column.tree.last[node]
            lows.append(least)
            highs.append(most)
        return _match_population(
            np.ascontiguousarray(np.stack(lows, axis=1).astype(np.int32)),
            np.ascontiguousarray(np.stack(highs, axis=1).astype(np.int32)),
            self.population,
        )

    def weighted(self, weights: Mapping[str, float]) -> EncodedTable:
        """The same table as a method sees it whose columns count by *weights* (1 where none is given)."""
        if not any(weights.get(column.name, 1.0) != 1.0 for column in self.columns):
            return self
        columns = tuple(replace(c, weight=weights.get(c.name, 1.0)) for c in self.columns)
        return replace(self, columns=columns)

    def subset(self, rows: IntArray) -> EncodedTable:
        """The same columns for some rows (entries) only; codes, domains and trees stay those of the whole."""

        def part(values: CodedValues | ValueEntries) -> CodedValues | ValueEntries:
            return values.subset(rows) if isinstance(values, ValueEntries) else (values[0][rows], values[1])

        people = self.people
        if people is not None:
            people = people.subset(rows) if isinstance(people, ValueEntries) else people[rows]
        return replace(
            self,
            columns=tuple(column.rows(rows) for column in self.columns),
            rows=int(np.asarray(rows).size),
            people=people,
            sensitive={name: part(values) for name, values in (self.sensitive or {}).items()},
            counts=None if self.counts is None else self.counts[rows],
        )
