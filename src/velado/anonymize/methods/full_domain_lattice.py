"""The lattice: one level per column is a node; counting a node says how many rows it would suppress."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from velado.anonymize.goal import Goal
from velado.anonymize.methods import full_domain_kernel as kernel
from velado.anonymize.methods.full_domain_levels import ColumnLevels
from velado.data.encode import EncodedTable
from velado.data.partition import BoolArray, GroupCounts, ValueCounts, ValueShape, group_by_codes

Node = tuple[int, ...]

_KEY_LIMIT = 1 << 62
_HEAVY_COMBINATIONS = 64
"""So many level combinations of the widest columns get a list of distinct tuples of their own."""


@dataclass(frozen=True)
class Tuples:
    """Distinct tuples, columns x tuples: codes of the quasi-identifiers, then of what the guarantees need.

    *weights* says how many rows a tuple stands for, *population* how many people of a wider population.
    """

    codes: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64]
    population: npt.NDArray[np.int64] | None = None


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
        further: list[tuple[npt.NDArray[np.int32], int]] = []
        self._sensitive = {} if self._rows_only else dict(data.sensitive or {})
        self._people = None if self._rows_only else data.people
        further += list(self._sensitive.values())
        if self._people is not None:
            further.append((self._people, int(self._people.max()) + 1 if data.rows else 1))
        identity = [np.arange(size, dtype=np.int32) for _, size in further]
        # One look-up table for all columns and levels; the further columns have a single level, themselves.
        tables = [list(levels.group) for levels in self.levels] + [[table] for table in identity]
        flat = [table for column in tables for table in column]
        starts = np.cumsum([0] + [table.size for table in flat])
        self._lookup = np.concatenate(flat)
        self._sizes = [list(levels.sizes) for levels in self.levels] + [[size] for _, size in further]
        self._starts: list[list[int]] = []
        at = 0
        for column in tables:
            self._starts.append([int(starts[at + level]) for level in range(len(column))])
            at += len(column)
        self.row_tuple, self._finest = self._distinct_rows([codes for codes, _ in further])
        self._slots = _Slots.for_tuples(self._finest.weights.size)
        self._heavy = self._choose_heavy()
        self._lists: dict[Node, Tuples] = {}
        self.rows = data.rows

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
        return np.bincount(self.data.columns[column].codes, minlength=self.data.columns[column].size)

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
        kernel.add_by_label(labels, tuples.weights, rows)
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
        """For each row of the table, whether its group holds, and which group it is in."""
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
            kernel.add_by_label(labels, tuples.population, everyone)
            population, unmatched = everyone[present], int(everyone[~present].sum())
        inside = tuples.weights > 0
        group = number[labels[inside]]
        count = int(present.sum())
        sensitive = {}
        for at, (name, (_, size)) in enumerate(self._sensitive.items(), start=len(self.levels)):
            values = tuples.codes[at, inside].astype(np.int64)
            entries, counts = _weighted(group * size + values, tuples.weights[inside], count * size)
            totals = self.data.totals[name]
            sensitive[name] = ValueCounts(
                entries // size, entries % size, counts, totals, self.shapes.get(name)
            )
        people = None
        if self._people is not None:
            code = tuples.codes[-1, inside].astype(np.int64)
            size = self._sizes[-1][0]
            entries, _ = _weighted(group * size + code, tuples.weights[inside], count * size)
            people = np.bincount(entries // size, minlength=count).astype(np.int64)
        counts_of = GroupCounts(rows[present], people, sensitive, population, unmatched)
        good = np.zeros(rows.size, dtype=bool)
        good[present] = self.goal.holds_in(counts_of)
        return good

    def _distinct_rows(self, further: list[npt.NDArray[np.int32]]) -> tuple[npt.NDArray[np.int32], Tuples]:
        matrix = np.stack([*(column.codes for column in self.data.columns), *further]).astype(np.int32)
        rows = matrix.shape[1]
        if self.population is not None:
            # People of the population come after the table's rows, with the further columns blank.
            blank = np.zeros((len(further), self.population.shape[0]), dtype=np.int32)
            matrix = np.hstack([matrix, np.vstack([self.population.T.astype(np.int32), blank])])
        labels, first = self._group(matrix, (0,) * len(self._sizes), _Slots.for_tuples(matrix.shape[1]))
        weights = np.bincount(labels[:rows], minlength=first.size).astype(np.int64)
        population = None
        if self.population is not None:
            population = np.bincount(labels[rows:], minlength=first.size).astype(np.int64)
        return labels[:rows], Tuples(np.ascontiguousarray(matrix[:, first]), weights, population)

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
        groups = kernel.group_tuples(
            codes,
            np.array(column, dtype=np.int64),
            self._lookup,
            np.array(start, dtype=np.int64),
            np.cumprod([1, *size[:-1]], dtype=np.int64),
            slots.key,
            slots.group,
            slots.stamp,
            slots.last,
            labels,
            first,
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
            kernel.add_by_label(labels, source.weights, weights)
            population = None
            if source.population is not None:
                population = np.zeros(first.size, dtype=np.int64)
                kernel.add_by_label(labels, source.population, population)
            self._lists[at] = Tuples(np.ascontiguousarray(source.codes[:, first]), weights, population)
        return self._lists[at]


def _weighted(
    key: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], space: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct keys in order, and the sum of the weights of each."""
    if space <= max(1 << 16, 8 * key.size):
        dense = np.bincount(key, weights=weights, minlength=space)
        found = np.flatnonzero(dense)
        return found, dense[found].astype(np.int64)
    found, inverse = np.unique(key, return_inverse=True)
    return found, np.bincount(inverse, weights=weights).astype(np.int64)
