"""What guarantees about sensitive values share: their counts without blanks, and the earth mover's distances.

A blank is not a value: it neither stands for diversity nor dilutes a distribution. Shares are therefore
taken among the rows whose value is known, in the group and in the whole table alike, and a group in which
no value is known holds no such guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.data.partition import FloatArray, IntArray, ValueCounts

_BLOCK_CELLS = 1 << 22
"""Groups x values are worked on in blocks of this many cells, so that memory stays bounded."""


@dataclass(frozen=True)
class KnownValues:
    """The entries of a ValueCounts without blanks, each with its share of the group and of the table.

    Entry e: group ``groups[e]`` holds value ``values[e]`` ``counts[e]`` times, which is ``share[e]`` of its
    *rows* known values; ``overall[v]`` is the share of value v in the whole table.
    """

    groups: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    share: FloatArray
    overall: FloatArray
    rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, counted: ValueCounts, count: int) -> KnownValues:
        """The known values of *count* groups."""
        known = counted.values != 0
        groups, values, counts = counted.groups[known], counted.values[known], counted.counts[known]
        rows = np.bincount(groups, weights=counts, minlength=count).astype(np.int64)
        totals = counted.totals.astype(np.float64)
        totals[0] = 0.0
        overall = totals / max(float(totals.sum()), 1.0)
        return cls(groups, values, counts, counts / np.maximum(rows[groups], 1), overall, rows)

    def sum_in(self, weights: npt.NDArray[Any]) -> FloatArray:
        """The sum of *weights*, one per entry, in each group."""
        return np.bincount(self.groups, weights=weights, minlength=self.rows.size).astype(np.float64)

    def most_in(self, weights: npt.NDArray[Any]) -> FloatArray:
        """The largest of *weights*, one per entry, in each group; 0 where there is none above."""
        out = np.zeros(self.rows.size)
        np.maximum.at(out, self.groups, weights)
        return out


def moved_along_order(known: KnownValues, order: IntArray) -> FloatArray:
    """What moving a group's shares to the table's costs, one step per rank: the sum of |running surplus|."""
    present = np.flatnonzero(known.overall > 0)
    values = present[np.argsort(order[present], kind="stable")]

    def cost(surplus: FloatArray) -> FloatArray:
        return np.asarray(np.abs(np.cumsum(surplus, axis=1)).sum(axis=1) / max(values.size - 1, 1))

    return _moved(known, values, cost)


def moved_along_tree(known: KnownValues, levels: IntArray) -> FloatArray:
    """What it costs where two values are as far apart as their lowest common ancestor is high."""
    # Values of one node side by side at every level, so that sums over children are runs.
    everything = np.arange(1, levels.shape[0])
    values = everything[np.lexsort(levels[everything].T)]
    return _moved(known, values, lambda surplus: _hierarchical(surplus, levels[values]))


def _moved(known: KnownValues, values: IntArray, cost: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """*cost* of each group's surplus over the table, value by value in the order of *values*, block by block."""
    column_of = np.zeros(known.overall.size, dtype=np.int64)
    column_of[values] = np.arange(values.size)
    out = np.zeros(known.rows.size)
    step = max(_BLOCK_CELLS // max(values.size, 1), 1)
    order = np.argsort(known.groups, kind="stable")
    of = known.groups[order]
    for first in range(0, known.rows.size, step):
        last = min(first + step, known.rows.size)
        inside = order[np.searchsorted(of, first) : np.searchsorted(of, last)]
        surplus = np.tile(-known.overall[values], (last - first, 1))
        surplus[known.groups[inside] - first, column_of[known.values[inside]]] += known.share[inside]
        out[first:last] = cost(surplus)
    return out


def _hierarchical(surplus: FloatArray, levels: IntArray) -> FloatArray:
    """sum over inner nodes of height / H x min(surplus, shortage among its children), one value per row.

    A node that repeats at a higher level has one child there, whose surplus and shortage cannot both be
    above 0, so that uneven branches add nothing.
    """
    height = levels.shape[1] - 1
    out = np.zeros(surplus.shape[0])
    node = levels[:, 0]
    for level in range(1, height + 1):
        above = levels[:, level]
        child_start = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
        if level == 1:
            child_start = np.arange(node.size)
        parent = above[child_start]
        start = np.flatnonzero(np.append(True, parent[1:] != parent[:-1]))
        more = np.add.reduceat(np.maximum(surplus, 0.0), start, axis=1)
        less = np.add.reduceat(np.maximum(-surplus, 0.0), start, axis=1)
        out += level / height * np.minimum(more, less).sum(axis=1)
        surplus = np.add.reduceat(surplus, start, axis=1)
        node = above
    return out
