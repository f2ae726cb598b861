"""The lattice: one level per column is a node; counting a node says how many rows it would suppress."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from velado.compiled import njit
from velado.data.counted import listed
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import (
    BoolArray,
    FloatArray,
    GroupCounts,
    IntArray,
    Partition,
    ValueEntries,
    ValueShape,
    group_by_codes,
)
from velado.release.goal import Goal
from velado.release.methods.das import cut_counted, elbow

# Levels: for each column and level of generalization, which group of values each code falls into.

NumericBins = Literal["halves", "separatrices"]

_FINEST_HALVES = 64
"""No more quantile bins than this: below, a level would hardly differ from the values themselves."""


@dataclass(frozen=True)
class ColumnLevels:
    """One column's levels, finest first. Entry ``[level][code]`` of *group* is the value group of a code.

    *low* and *high* are the least and greatest code of each group (its cover), *loss* its certainty penalty.
    """

    group: tuple[npt.NDArray[np.int32], ...]
    low: tuple[npt.NDArray[np.int32], ...]
    high: tuple[npt.NDArray[np.int32], ...]
    loss: tuple[FloatArray, ...]

    @property
    def height(self) -> int:
        """The number of the coarsest level."""
        return len(self.group) - 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many value groups each level has."""
        return tuple(int(low.size) for low in self.low)


def column_levels(
    column: EncodedColumn, bins: NumericBins, counts: npt.NDArray[np.int64] | None = None
) -> ColumnLevels:
    """The levels of *column*: those of its taxonomy, or nested quantile bins of its numbers.

    Its entries stand for *counts* rows each, by default one.
    The coarsest level is always one group. A missing number stays by itself on every level below that.
    """
    if column.tree is not None:
        tree = column.tree
        nodes = [tree.levels[:, level] for level in range(tree.height + 1)]
        covers = [(tree.first[node], tree.last[node]) for node in nodes]
    else:
        covers = [_cover_of_bins(ends, column.size) for ends in _numeric_ends(column, bins, counts)]
    return _from_covers(column, covers)


def _from_covers(column: EncodedColumn, covers: Sequence[tuple[IntArray, IntArray]]) -> ColumnLevels:
    group, lows, highs, losses = [], [], [], []
    for low_of, high_of in covers:
        starts = np.flatnonzero(low_of == np.arange(column.size))
        low, high = low_of[starts].astype(np.int32), high_of[starts].astype(np.int32)
        group.append((np.searchsorted(starts, np.arange(column.size), side="right") - 1).astype(np.int32))
        lows.append(low)
        highs.append(high)
        losses.append(column.loss(low, high))
    return ColumnLevels(tuple(group), tuple(lows), tuple(highs), tuple(losses))


def _cover_of_bins(ends: IntArray, size: int) -> tuple[IntArray, IntArray]:
    inside = np.searchsorted(ends, np.arange(size), side="left")
    starts = np.concatenate(([0], ends[:-1] + 1))
    return starts[inside], ends[inside]


def _numeric_ends(
    column: EncodedColumn, bins: NumericBins, rows: npt.NDArray[np.int64] | None
) -> list[IntArray]:
    """The last code of each bin, level by level: every value, then bins, unions of two neighbours, all.

    "halves" starts from the largest power of two of quantile bins up to half the distinct values (at
    most 64); "separatrices" from as many as the elbow of the column asks for (Coelho et al. 2024).
    """
    values = column.size - (column.missing >= 0)
    every = np.arange(values)
    levels: list[IntArray] = [every]
    if values > 2:
        counts = np.bincount(column.codes, rows, minlength=column.size)[:values].astype(np.int64)
        if bins == "halves":
            wanted = min(1 << (int(values // 2).bit_length() - 1), _FINEST_HALVES)
        else:
            assert column.points is not None
            wanted = elbow(column.points[:values])
        ends: IntArray = cut_counted(counts, wanted)
        if ends.size < values:
            levels.append(ends)
        while levels[-1].size > 2:
            ends = levels[-1]
            levels.append(np.unique(np.append(ends[1::2], ends[-1])))
    if column.missing >= 0:
        levels = [np.append(ends, column.missing) for ends in levels]
    if levels[-1].size > 1:
        levels.append(np.array([column.size - 1]))
    return levels


# The two loops of full-domain search: put tuples into groups, and add up what failing tuples cost.
#
# Compiled by Numba on first use (about two seconds, then cached). A tuple's key is built from look-up tables,
# one per column and level, so that a node of the lattice costs one pass over the distinct tuples.

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_BLOCK = 2048


@njit(cache=True)
def group_tuples(
    codes: Int32,
    column: Int64,
    lookup: Int32,
    start: Int64,
    stride: Int64,
    slot_key: Int64,
    slot_group: Int32,
    slot_stamp: Int32,
    stamp: int,
    labels: Int32,
    first: Int32,
) -> int:
    """Give tuples that are equal in every column one label, in order of first appearance; returns how many.

    Of the columns listed, ``column[c]`` adds ``stride[c] * lookup[start[c] + code]`` to the key; strides are
    such that different tuples have different keys, below 2^62. The slots are an open hash table of a power
    of two entries, at least twice the tuples; an entry is live where its stamp is *stamp*, so that the table
    need not be cleared between nodes. *codes* is columns x tuples.
    """
    bits = 4
    while (1 << bits) < 2 * codes.shape[1]:
        bits += 1
    mask = np.int64((1 << bits) - 1)
    shift = np.uint64(64 - bits)
    keys = np.empty(_BLOCK, dtype=np.int64)
    groups = 0
    for begin in range(0, codes.shape[1], _BLOCK):
        rows = min(_BLOCK, codes.shape[1] - begin)
        keys[:rows] = 0
        for c in range(column.size):  # one column at a time: its look-up table stays in the fastest memory
            line = codes[column[c], begin : begin + rows]
            table = lookup[start[c] :]
            step = stride[c]
            for row in range(rows):
                keys[row] += step * table[line[row]]
        for row in range(rows):
            key = keys[row]
            at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> shift)
            while slot_stamp[at] == stamp and slot_key[at] != key:
                at = (at + 1) & mask
            if slot_stamp[at] != stamp:
                slot_stamp[at] = stamp
                slot_key[at] = key
                slot_group[at] = groups
                first[groups] = begin + row
                groups += 1
            labels[begin + row] = slot_group[at]
    return groups


@njit(cache=True)
def add_by_label(labels: Int32, weights: Int64, out: Int64) -> None:
    """Add each tuple's weight to its group."""
    for row in range(labels.size):
        out[labels[row]] += weights[row]


@njit(cache=True)
def failing_charges(
    codes: Int32,
    weights: Int64,
    labels: Int32,
    good: npt.NDArray[np.bool_],
    charge: npt.NDArray[np.float64],
    start: Int64,
    out: npt.NDArray[np.float64],
) -> None:
    """Add up, column by column, what the tuples of groups that are not *good* are charged at this node."""
    for row in range(labels.size):
        if not good[labels[row]]:
            for c in range(start.size):
                out[c] += weights[row] * charge[start[c] + codes[c, row]]


Node = tuple[int, ...]

_KEY_LIMIT = 1 << 62
_HEAVY_COMBINATIONS = 64
"""So many level combinations of the widest columns get a list of distinct tuples of their own."""


@dataclass(frozen=True)
class Tuples:
    """Distinct tuples, columns x tuples: codes of the quasi-identifiers.

    *weights* says how many rows a tuple stands for, *population* how many people of a wider population. *people* and
    *sensitive* list what the rows behind each tuple hold, where the guarantees ask for it.
    """

    codes: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64]
    population: npt.NDArray[np.int64] | None = None
    people: ValueEntries | None = None
    sensitive: Mapping[str, ValueEntries] = field(default_factory=dict)


@dataclass(frozen=True)
class Counted:
    """What was found at a node: the group of each tuple, rows per group, where the goal holds, rows suppressed."""

    node: Node
    tuples: Tuples
    labels: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int64]
    good: BoolArray
    suppressed: int
    short: int
    """Rows in groups below the least size: never fewer at a finer node, whatever the guarantees."""


@dataclass
class _Slots:
    # The hash table's memory, kept between nodes.
    key: npt.NDArray[np.int64]
    group: npt.NDArray[np.int32]
    stamp: npt.NDArray[np.int32]
    last: int = 0

    @classmethod
    def for_tuples(cls, count: int) -> _Slots:
        size = 1 << max(int(2 * count - 1).bit_length(), 4)
        return cls(np.empty(size, np.int64), np.empty(size, np.int32), np.zeros(size, np.int32))


@dataclass
class Lattice:
    """All level combinations of a table, and the distinct tuples they are counted on.

    *population* is a code matrix of a wider population in the coding of *data*, the table's own rows
    included; *shapes* the order or taxonomy of sensitive columns, for guarantees that weigh distances.
    """

    data: EncodedTable
    levels: tuple[ColumnLevels, ...]
    goal: Goal
    population: npt.NDArray[np.int32] | None = None
    shapes: dict[str, ValueShape] = field(default_factory=dict)
    visits: int = 0

    def __post_init__(self) -> None:
        data = self.data
        self._rows_only = self.goal.rows_only and self.population is None
        # One look-up table for all columns and levels.
        tables = [list(levels.group) for levels in self.levels]
        flat = [table for column in tables for table in column]
        starts = np.cumsum([0] + [table.size for table in flat])
        self._lookup = np.concatenate(flat)
        self._sizes = [list(levels.sizes) for levels in self.levels]
        self._starts: list[list[int]] = []
        at = 0
        for column in tables:
            self._starts.append([int(starts[at + level]) for level in range(len(column))])
            at += len(column)
        self.row_tuple, self._finest = self._distinct_rows()
        self._slots = _Slots.for_tuples(self._finest.weights.size)
        self._heavy = self._choose_heavy()
        self._lists: dict[Node, Tuples] = {}
        self.rows = data.total

    @property
    def heights(self) -> Node:
        """The coarsest level of each column."""
        return tuple(levels.height for levels in self.levels)

    @property
    def nodes(self) -> int:
        """How many level combinations there are."""
        return int(np.prod([height + 1.0 for height in self.heights]))

    def histogram(self, column: int) -> npt.NDArray[np.int64]:
        """How many rows have each code of a column."""
        codes, size = self.data.columns[column].codes, self.data.columns[column].size
        return np.bincount(codes, self.data.counts, minlength=size).astype(np.int64)

    def starts(self, node: Node) -> npt.NDArray[np.int64]:
        """Where each column's entries for *node* start in an array laid out column by column, level by level."""
        return np.array([self._starts[c][level] for c, level in enumerate(node)], dtype=np.int64)

    def count(self, node: Node) -> Counted:
        """Group the tuples at *node* and ask the goal about each group. O(distinct tuples)."""
        self.visits += 1
        tuples = self._tuples_for(node)
        labels, first = self._group(tuples.codes, node, self._slots)
        groups = first.size
        rows = np.zeros(groups, dtype=np.int64)
        add_by_label(labels, tuples.weights, rows)
        least = self.goal.least_rows
        short = int(rows[rows < least].sum())
        if self._rows_only:
            good = rows >= least
        elif short > self.goal.suppressible(self.rows):
            good = np.zeros(groups, dtype=bool)
        else:
            good = self._ask(tuples, labels, rows)
        return Counted(node, tuples, labels, rows, good, int(rows[~good].sum()), short)

    def kept(self, counted: Counted) -> tuple[BoolArray, npt.NDArray[np.int32]]:
        """For each entry of the table, whether its group holds, and which group it is in."""
        _, labels = self._relabel(counted.node)
        of_row = labels[self.row_tuple]
        return counted.good[of_row], of_row

    def _relabel(self, node: Node) -> tuple[int, npt.NDArray[np.int32]]:
        # Labels of the finest tuples; a shorter list has its tuples in the same order of first appearance,
        # so equal groups get equal numbers.
        labels, first = self._group(self._finest.codes, node, self._slots)
        return first.size, labels

    def _ask(self, tuples: Tuples, labels: npt.NDArray[np.int32], rows: npt.NDArray[np.int64]) -> BoolArray:
        # Groups of the population without a row of the table are not groups: they are its unmatched people.
        present = rows > 0
        number = np.cumsum(present) - 1
        population, unmatched = None, 0
        if tuples.population is not None:
            everyone = np.zeros(rows.size, dtype=np.int64)
            add_by_label(labels, tuples.population, everyone)
            population, unmatched = everyone[present], int(everyone[~present].sum())
        group = np.where(tuples.weights > 0, number[labels], -1).astype(np.int32)
        counts_of = GroupCounts.of(
            Partition(group, int(present.sum()), weights=tuples.weights),
            tuples.people,
            tuples.sensitive,
            self.data.totals,
            self.shapes,
            population,
            unmatched,
        )
        good = np.zeros(rows.size, dtype=bool)
        good[present] = self.goal.holds_in(counts_of)
        return good

    def _distinct_rows(self) -> tuple[npt.NDArray[np.int32], Tuples]:
        matrix = np.stack([column.codes for column in self.data.columns]).astype(np.int32)
        rows = matrix.shape[1]
        if self.population is not None:
            # People of the population come after the table's own.
            matrix = np.hstack([matrix, self.population.T.astype(np.int32)])
        labels, first = self._group(matrix, (0,) * len(self._sizes), _Slots.for_tuples(matrix.shape[1]))
        weights = np.bincount(labels[:rows], self.data.counts, minlength=first.size).astype(np.int64)
        population = None
        if self.population is not None:
            population = np.bincount(labels[rows:], minlength=first.size).astype(np.int64)
        people, sensitive = (None, {}) if self._rows_only else listed(self.data, labels[:rows])
        codes = np.ascontiguousarray(matrix[:, first])
        return labels[:rows], Tuples(codes, weights, population, people, sensitive)

    def _group(
        self, codes: npt.NDArray[np.int32], node: Node, slots: _Slots
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Labels of the tuples at *node*, and the first tuple of each group."""
        # A column at its broadest level tells no tuples apart; one is kept so that there is a key.
        column = [c for c, level in enumerate(node) if self._sizes[c][level] > 1] or [0]
        size = [self._sizes[c][node[c]] for c in column]
        start = [self._starts[c][node[c]] for c in column]
        if math.prod(size) >= _KEY_LIMIT:
            coarse = [self._lookup[at + codes[c]] for c, at in zip(column, start, strict=True)]
            sorted_labels, _ = group_by_codes(coarse, size)
            # Renumbered by first appearance, as the kernel does.
            _, first, inverse = np.unique(sorted_labels, return_index=True, return_inverse=True)
            rank = np.argsort(np.argsort(first))
            return rank[inverse].astype(np.int32), np.sort(first).astype(np.int32)
        labels = np.empty(codes.shape[1], dtype=np.int32)
        first = np.empty(codes.shape[1], dtype=np.int32)
        slots.last += 1
        groups = group_tuples(
            codes=codes,
            column=np.array(column, dtype=np.int64),
            lookup=self._lookup,
            start=np.array(start, dtype=np.int64),
            stride=np.cumprod([1, *size[:-1]], dtype=np.int64),
            slot_key=slots.key,
            slot_group=slots.group,
            slot_stamp=slots.stamp,
            stamp=slots.last,
            labels=labels,
            first=first,
        )
        return labels, first[:groups]

    def _choose_heavy(self) -> tuple[int, ...]:
        # Columns with the most values first, as long as their level combinations stay few.
        order = sorted(range(len(self.levels)), key=lambda c: -self.levels[c].sizes[0])
        chosen: list[int] = []
        combinations = 1
        for column in order:
            combinations *= self.heights[column] + 1
            if combinations > _HEAVY_COMBINATIONS:
                break
            chosen.append(column)
        return tuple(sorted(chosen))

    def _tuples_for(self, node: Node) -> Tuples:
        """The distinct tuples once the widest columns stand at the levels of *node*: far fewer to go through."""
        at = tuple(node[column] for column in self._heavy)
        if not any(at):
            return self._finest
        if at not in self._lists:
            finer = [known for known in self._lists if all(a <= b for a, b in zip(known, at, strict=True))]
            source = min(
                (self._lists[known] for known in finer), key=lambda t: t.weights.size, default=self._finest
            )
            level = [0] * len(self._sizes)
            for column, chosen in zip(self._heavy, at, strict=True):
                level[column] = chosen
            labels, first = self._group(source.codes, tuple(level), self._slots)
            weights = np.zeros(first.size, dtype=np.int64)
            add_by_label(labels, source.weights, weights)
            population = None
            if source.population is not None:
                population = np.zeros(first.size, dtype=np.int64)
                add_by_label(labels, source.population, population)
            people = source.people
            self._lists[at] = Tuples(
                codes=np.ascontiguousarray(source.codes[:, first]),
                weights=weights,
                population=population,
                people=None if people is None else ValueEntries.regrouped(people, labels, None),
                sensitive={
                    name: ValueEntries.regrouped(values, labels, None)
                    for name, values in source.sensitive.items()
                },
            )
        return self._lists[at]
