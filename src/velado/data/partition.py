"""Partition: which row is in which group. GroupCounts: all that a guarantee may see of the groups.

A row may be an *entry* that stands for several rows of the source which share their quasi-identifiers: then a partition
has weights, and what the rows behind an entry hold is listed as ValueEntries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.data.tallies import by_label, ranked_keys

IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

_KEY_LIMIT = 1 << 62
_MANY_KEYS = 1 << 14  # fewer are sorted before a compiled kernel is loaded


def _is_dense(space: int, keys: int) -> bool:
    """Whether a look-up table over the whole key space is cheaper than sorting the keys."""
    return space <= max(1 << 12, 8 * keys)


def group_by_codes(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[Int32Array, int]:
    """Rows with the same code in every column share a label; returns the labels and how many there are.

    Exact: columns are packed into one 63-bit integer key, re-ranked whenever the product of the column
    sizes would not fit. Labels are numbered in order of the packed key. O(n log n), O(n) where the key space is small.

    >>> group_by_codes([np.array([0, 1, 0]), np.array([2, 2, 2])], [2, 3])
    (array([0, 1, 0], dtype=int32), 2)
    """
    labels, count = _rank(*_packed(codes, sizes))
    return labels.astype(np.int32, copy=False), count


def group_sizes(
    codes: Sequence[IntArray], sizes: Sequence[int], weights: IntArray | None = None
) -> Int64Array:
    """How many rows each group of `group_by_codes` has, each row counting by its weight: no row is labelled.

    >>> group_sizes([np.array([0, 1, 0]), np.array([2, 2, 2])], [2, 3])
    array([2, 1])
    """
    return _counted(*_packed(codes, sizes), weights)[1]


def _packed(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[Int64Array, int]:
    """A key for each row, equal where all columns are, and how many keys there may be."""
    if not codes:
        raise ValueError("at least one column is needed to group by")
    key = codes[0].astype(np.int64)
    space = max(int(sizes[0]), 1)
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        size = max(int(size), 1)
        if space > _KEY_LIMIT // size:
            ranks, space = _rank(key, space)
            key = ranks.astype(np.int64)
        key *= size
        key += column
        space *= size
    return key, space


def _rank(key: Int64Array, space: int) -> tuple[IntArray, int]:
    if key.size == 0:
        return key, 0
    if _is_dense(space, key.size):
        seen = np.zeros(space, dtype=bool)
        seen[key] = True
        rank = np.cumsum(seen, dtype=np.int64) - 1
        return rank[key], int(rank[-1]) + 1
    if key.size > _MANY_KEYS:
        ranks, count = ranked_keys(key, space)
        return ranks, count
    _, labels = np.unique(key, return_inverse=True)
    return labels, int(labels.max()) + 1


@dataclass(frozen=True)
class Partition:
    """Each row is in exactly one group, or suppressed (label -1).

    *labels* are 0..count-1 without holes. *centres* optionally names one row per group that the method
    regards as its centre (used by the centroid recoder). *weights* says how many rows each entry stands for where the
    table is one of counted entries, None for one each: sizes are in rows, members are entries.

    >>> groups = Partition.of(np.array([7, 7, -1, 9]))
    >>> groups.sizes, groups.least_and_greatest(np.array([30, 20, 99, 40]))
    (array([2, 1]), (array([20, 40], dtype=int32), array([30, 40], dtype=int32)))
    >>> Partition.of(np.array([7, 7, -1, 9]), weights=np.array([5, 1, 1, 3])).sizes
    array([6, 3])
    """

    labels: Int32Array
    count: int
    centres: Int64Array | None = None
    weights: Int64Array | None = None

    @classmethod
    def of(
        cls, labels: IntArray, centres: IntArray | None = None, weights: Int64Array | None = None
    ) -> Partition:
        """A partition from any integer labels: re-numbered without holes, negative means suppressed."""
        labels = np.asarray(labels)
        kept = labels >= 0
        if not kept.any():
            return cls(np.full(labels.size, -1, dtype=np.int32), 0, weights=weights)
        dense, count = _rank(labels[kept].astype(np.int64), int(labels.max()) + 1)
        out = np.full(labels.size, -1, dtype=np.int32)
        out[kept] = dense
        if centres is not None:
            present = np.zeros(int(labels.max()) + 1, dtype=bool)
            present[labels[kept]] = True
            return cls(out, count, np.asarray(centres, dtype=np.int64)[np.flatnonzero(present)], weights)
        return cls(out, count, weights=weights)

    @classmethod
    def by_codes(
        cls, codes: Sequence[IntArray], sizes: Sequence[int], weights: Int64Array | None = None
    ) -> Partition:
        """Rows that agree in every column form a group."""
        labels, count = group_by_codes(codes, sizes)
        return cls(labels, count, weights=weights)

    @property
    def rows(self) -> int:
        """How many rows (entries, where they are counted) there are, suppressed ones included."""
        return int(self.labels.size)

    @cached_property
    def kept(self) -> BoolArray:
        """True where a row is in a group."""
        return np.asarray(self.labels >= 0)

    @property
    def codes(self) -> Int32Array:
        """The group of each row as a code; suppressed rows, which are never published, point at group 0."""
        return np.maximum(self.labels, 0).astype(np.int32)

    @cached_property
    def sizes(self) -> Int64Array:
        """How many rows each group has."""
        if self.weights is None:
            return self.entries
        return _summed(self.labels[self.kept], self.weights[self.kept], self.count)

    @cached_property
    def entries(self) -> Int64Array:
        """How many entries each group has: its rows, where no entry stands for several."""
        return np.bincount(self.labels[self.kept], minlength=self.count).astype(np.int64)

    @cached_property
    def _order(self) -> tuple[Int64Array, Int64Array]:
        # Rows sorted by group, and where each group starts: the basis of every per-group reduction.
        starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self.entries, dtype=np.int64)))
        return by_label(self.labels, starts), starts[:-1]

    def least_and_greatest(self, codes: IntArray) -> tuple[Int32Array, Int32Array]:
        """The smallest and the largest code of each group: with ordered codes, its cover."""
        order, starts = self._order
        if not self.count:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        gathered = codes[order]
        low = np.minimum.reduceat(gathered, starts)
        return low.astype(np.int32), np.maximum.reduceat(gathered, starts).astype(np.int32)

    def members(self) -> tuple[Int64Array, Int64Array]:
        """Row (entry) numbers sorted by group, and the position where each group starts."""
        return self._order

    def suppress(self, groups: BoolArray) -> Partition:
        """The same partition with the groups marked True suppressed."""
        labels = np.where(self.kept & groups[self.codes], -1, self.labels)
        centres = None if self.centres is None else self.centres
        return Partition.of(labels, centres, self.weights)

    def of_rows(self, entry_of_row: IntArray) -> Partition:
        """The same groups over the rows behind the entries; centres, which are entries, are left out.

        >>> Partition.of(np.array([0, 1])).of_rows(np.array([1, 0, 1])).labels
        array([1, 0, 1], dtype=int32)
        """
        return Partition(self.labels[entry_of_row], self.count)


def _summed(groups: IntArray, weights: IntArray, count: int) -> Int64Array:
    # Sums of whole numbers, exact in double precision far beyond any number of rows.
    return np.bincount(groups, weights=weights, minlength=count).astype(np.int64)


CodedValues = tuple[Int32Array, int]
"""A value code for each row, and how many codes there are."""


@dataclass(frozen=True, repr=False)
class ValueEntries:
    """What the rows behind counted entries hold, sparsely: entry ``at[e]`` has value ``codes[e]`` in ``counts[e]`` rows.

    *at* rises, and each entry's counts add up to its rows. *size* is the number of codes; code 0 is "no value". People
    are listed so too, the code being the person's.

    >>> ValueEntries.of(np.array([1, 0]), np.array([2, 1]), np.array([3, 4]), 3)
    ValueEntries(2 of 3 codes, rows=7)
    """

    at: Int64Array
    codes: Int32Array
    counts: Int64Array
    size: int

    def __post_init__(self) -> None:
        if bool((self.at[1:] < self.at[:-1]).any()):
            raise ValueError("the entries of a list of values must rise: make it with ValueEntries.of")

    def __repr__(self) -> str:
        return f"ValueEntries({self.at.size} of {self.size} codes, rows={int(self.counts.sum())})"

    @classmethod
    def of(cls, at: IntArray, codes: IntArray, counts: IntArray | None, size: int) -> ValueEntries:
        """The list in order, equal (entry, value) pairs added up; without *counts* each is one row."""
        found, number = _counted(at.astype(np.int64) * size + codes, None, counts)
        return cls(found // size, (found % size).astype(np.int32), number, size)

    @property
    def totals(self) -> Int64Array:
        """How many rows hold each value."""
        return _summed(self.codes, self.counts, self.size)

    def subset(self, entries: IntArray) -> ValueEntries:
        """The list of some entries, numbered anew; an entry may be asked for more than once.

        >>> ValueEntries.of(np.array([0, 1]), np.array([1, 2]), np.array([4, 3]), 3).subset(np.array([1, 1])).at
        array([0, 1])
        """
        first = np.searchsorted(self.at, entries, "left")
        many = np.searchsorted(self.at, entries, "right") - first
        at = np.repeat(np.arange(many.size), many)
        place = first[at] + np.arange(at.size) - (np.cumsum(many) - many)[at]
        return ValueEntries(at, self.codes[place], self.counts[place], self.size)

    @classmethod
    def regrouped(
        cls, values: CodedValues | ValueEntries, label_of_entry: IntArray, counts: IntArray | None
    ) -> ValueEntries:
        """The list after entries became new ones: entry e, which stands for ``counts[e]`` rows, is now ``label_of_entry[e]``.

        >>> values = np.array([1, 2, 1], dtype=np.int32)
        >>> ValueEntries.regrouped((values, 3), np.array([0, 0, 1]), None).codes
        array([1, 2, 1], dtype=int32)
        """
        if isinstance(values, ValueEntries):
            return cls.of(label_of_entry[values.at], values.codes, values.counts, values.size)
        return cls.of(label_of_entry, values[0], counts, values[1])


def _counted(key: Int64Array, space: int | None, counts: IntArray | None) -> tuple[Int64Array, Int64Array]:
    """The distinct keys, rising, and how many rows (*counts* of them, or one each) have each."""
    if space is not None and _is_dense(space, key.size):
        dense = np.bincount(key, minlength=space) if counts is None else _summed(key, counts, space)
        found = np.flatnonzero(dense)
        return found, dense[found].astype(np.int64)
    if counts is None:
        found, number = np.unique(key, return_counts=True)
        return found, number.astype(np.int64)
    found, where = np.unique(key, return_inverse=True)
    return found, _summed(where, counts, found.size)


@dataclass(frozen=True)
class ValueShape:
    """How the values of a sensitive column lie to one another, for guarantees that weigh distances.

    *order* ranks the value codes (entry of code 0, "no value", unused). *levels* is a level matrix, value
    code x level: column 0 the value itself, the last column one number throughout, equal numbers one node.

    >>> ValueShape(order=np.array([0, 0, 1, 2])).order.size
    4
    """

    order: npt.NDArray[np.integer[Any]] | None = None
    levels: npt.NDArray[np.integer[Any]] | None = None


@dataclass(frozen=True)
class ValueCounts:
    """How often each sensitive value occurs in each group, and in the whole table.

    Sparse: entry e says that group ``groups[e]`` holds value ``values[e]`` ``counts[e]`` times. *totals* is
    the count of every value in the whole table, handed down once and never recomputed from a part.

    >>> ValueCounts.of(np.array([0, 0, 1]), 2, np.array([1, 2, 1]), 3).distinct(2)
    array([2, 1])
    """

    groups: Int64Array
    values: Int64Array
    counts: Int64Array
    totals: Int64Array
    shape: ValueShape | None = None

    @classmethod
    def of(
        cls,
        labels: IntArray,
        count: int,
        codes: IntArray,
        size: int,
        totals: Int64Array | None = None,
        shape: ValueShape | None = None,
        weights: IntArray | None = None,
    ) -> ValueCounts:
        """Count value *codes* (0..size-1) within group *labels* (0..count-1, -1 ignored), each *weights* times."""
        kept = labels >= 0
        key = labels[kept].astype(np.int64) * size + codes[kept]
        found, number = _counted(key, count * size, None if weights is None else weights[kept])
        if totals is None:
            totals = np.bincount(codes, weights, minlength=size).astype(np.int64)
        return cls(found // size, found % size, number, totals, shape)

    @classmethod
    def of_values(
        cls,
        partition: Partition,
        values: tuple[IntArray, int] | ValueEntries,
        totals: Int64Array | None = None,
        shape: ValueShape | None = None,
    ) -> ValueCounts:
        """Count the values of each group, whether they are given for each row or listed for each entry."""
        if isinstance(values, ValueEntries):
            labels, codes, size, weights = (
                partition.labels[values.at],
                values.codes,
                values.size,
                values.counts,
            )
            return cls.of(labels, partition.count, codes, size, totals, shape, weights)
        return cls.of(partition.labels, partition.count, *values, totals, shape, partition.weights)

    def distinct(self, count: int, blanks: bool = False) -> Int64Array:
        """How many different values each of the *count* groups holds.

        Code 0 is "no value". It is left out unless *blanks* is True: a blank tells an attacker nothing
        that would hide a neighbour's value, so it must not pass for diversity.
        """
        groups = self.groups if blanks else self.groups[self.values != 0]
        return np.bincount(groups, minlength=count).astype(np.int64)


@dataclass(frozen=True)
class GroupCounts:
    """Group sizes, people per group, and sensitive-value counts: what guarantees read instead of rows.

    *people* is the number of different people in each group, None when no person column is declared (then
    every row is a person of its own). *population* is the number of people of a wider population that match
    each group, None when no population is known; *unmatched* those of it that match no group.

    >>> GroupCounts.of(Partition.of(np.array([0, 0, 1])), people=np.array([1, 1, 2])).people
    array([1, 1])
    """

    rows: Int64Array
    people: Int64Array | None = None
    sensitive: Mapping[str, ValueCounts] = field(default_factory=dict)
    population: Int64Array | None = None
    unmatched: int = 0

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.rows.size)

    @classmethod
    def of(
        cls,
        partition: Partition,
        people: IntArray | ValueEntries | None = None,
        sensitive: Mapping[str, tuple[IntArray, int] | ValueEntries] | None = None,
        totals: Mapping[str, Int64Array] | None = None,
        shapes: Mapping[str, ValueShape] | None = None,
        population: Int64Array | None = None,
        unmatched: int = 0,
    ) -> GroupCounts:
        """Count the groups of *partition*; *people* and *sensitive* are codes per row, or listed for each entry."""
        distinct_people = None
        if people is not None:
            persons = (
                people
                if isinstance(people, ValueEntries)
                else (people, int(people.max()) + 1 if people.size else 1)
            )
            distinct_people = ValueCounts.of_values(partition, persons).distinct(
                partition.count,
                blanks=True,  # rows without a person are counted as one person, never as many
            )
        counted = {
            name: ValueCounts.of_values(partition, values, (totals or {}).get(name), (shapes or {}).get(name))
            for name, values in (sensitive or {}).items()
        }
        return cls(partition.sizes, distinct_people, counted, population, unmatched)
