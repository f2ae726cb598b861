"""Lattice: the distinct tuples of a table, their weights, and the nodes and costs of every column's levels.

A *box* is one generalized tuple: a node per column. All that progressive generalization needs to know of a
column is which node each code has at each level and what that node costs, so both are flat look-up tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from velado.anonymize.methods.separatrices import bin_of, elbow, nested
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import FloatArray, group_by_codes

_FINEST_BINS = 64
"""Numeric columns are cut into about this many bins above their single values, then into unions of two."""


@dataclass(frozen=True, repr=False)
class Lattice:
    """The table as distinct weighted tuples over columns of levels, costliest column first.

    *codes* is column x tuple; *base[c, l]* is where level l of column c starts in *node* and *cost*, each
    indexed by code; *levels[c]* says how many levels the column has, level 0 the value itself, the last one
    everything. *tuple_of_row* leads back. Tuples are sorted by their codes, so nothing depends on row order.
    """

    codes: npt.NDArray[np.int32]
    weight: npt.NDArray[np.int64]
    base: npt.NDArray[np.int64]
    levels: npt.NDArray[np.int64]
    node: npt.NDArray[np.int32]
    cost: FloatArray
    tuple_of_row: npt.NDArray[np.int32]
    order: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Lattice(tuples={self.weight.size}, levels={self.levels.tolist()})"

    @property
    def combinations(self) -> float:
        """How many combinations of levels there are."""
        return float(np.prod(self.levels.astype(np.float64)))

    def coarser(self) -> Lattice | None:
        """Without the level whose absence is felt least: one of the column with the most levels.

        Of that column's inner levels the one leaves that is nearest in mean cost to the level above it.
        None when every column has only its values and the root.
        """
        column = int(np.argmax(self.levels))
        count = int(self.levels[column])
        if count <= 2:
            return None
        size = self._size(column)
        mean = [float(self.cost[start : start + size].mean()) for start in self.base[column, :count].tolist()]
        drop = 1 + int(np.argmin(np.diff(mean[1:])))
        base, levels = self.base.copy(), self.levels.copy()
        base[column, drop : count - 1] = base[column, drop + 1 : count]
        levels[column] -= 1
        return replace(self, base=base, levels=levels)

    def _size(self, column: int) -> int:
        return int(self.codes[column].max()) + 1


def lattice(data: EncodedTable) -> Lattice:
    """The lattice of *data*: O(n log n) for the tuples, O(values x levels) for the look-up tables."""
    tables = [_levels(column) for column in data.columns]
    # A column in which the first step up is dear separates rows early and is seldom generalized: first.
    first_step = [float(costs[1].mean()) if len(costs) > 1 else 0.0 for _, costs in tables]
    order = tuple(sorted(range(len(tables)), key=lambda c: (-first_step[c], c)))
    columns = [data.columns[c] for c in order]
    labels, count = group_by_codes([c.codes for c in columns], [c.size for c in columns])
    one_row = np.zeros(count, dtype=np.int64)
    one_row[labels] = np.arange(data.rows)
    codes = np.ascontiguousarray(np.stack([c.codes[one_row] for c in columns]))
    most = max(len(tables[c][0]) for c in order)
    base = np.zeros((len(order), most), dtype=np.int64)
    nodes: list[npt.NDArray[np.int32]] = []
    costs: list[FloatArray] = []
    at = 0
    for place, c in enumerate(order):
        for level, (node, cost) in enumerate(zip(*tables[c], strict=True)):
            base[place, level] = at
            nodes.append(node)
            costs.append(cost)
            at += node.size
    return Lattice(
        codes,
        np.bincount(labels, minlength=count).astype(np.int64),
        base,
        np.array([len(tables[c][0]) for c in order], dtype=np.int64),
        np.concatenate(nodes),
        np.concatenate(costs),
        labels,
        order,
    )


def _levels(column: EncodedColumn) -> tuple[list[npt.NDArray[np.int32]], list[FloatArray]]:
    """Node and cost of each code at each level, from the value itself to everything."""
    if column.tree is not None:
        matrix = column.tree.levels
        raw = [matrix[:, level] for level in range(matrix.shape[1])]
    else:
        raw = _numeric_levels(column)
    nodes: list[npt.NDArray[np.int32]] = []
    costs: list[FloatArray] = []
    for level in raw:
        distinct, node = np.unique(level, return_inverse=True)
        low = np.full(distinct.size, column.size, dtype=np.int64)
        high = np.zeros(distinct.size, dtype=np.int64)
        np.minimum.at(low, node, np.arange(column.size))
        np.maximum.at(high, node, np.arange(column.size))
        nodes.append(node.astype(np.int32))
        costs.append(column.loss(low, high)[node])
    return nodes, costs


def _numeric_levels(column: EncodedColumn) -> list[npt.NDArray[np.int32]]:
    """Single values, then DAS's bins: its elbow times a power of two at the finest, unions of two above.

    The code of a missing value is alone at every level but the last.
    """
    assert column.points is not None
    known = column.codes[column.codes != column.missing] if column.missing >= 0 else column.codes
    points = column.points[: column.missing] if column.missing >= 0 else column.points
    size = column.size
    out = [np.arange(size, dtype=np.int32)]
    if points.size > 2 and known.size:
        bins = elbow(points)
        while 2 * bins <= min(_FINEST_BINS, points.size // 2):
            bins *= 2
        for ends in nested(column.points[known], bins):
            if ends.size == 1:
                break
            level = np.full(size, size - 1, dtype=np.int32)
            level[: points.size] = bin_of(ends, points.size)
            out.append(level)
    if column.missing >= 0 and points.size > 1:
        joined = np.zeros(size, dtype=np.int32)
        joined[column.missing] = 1
        out.append(joined)
    if size > 1:
        out.append(np.zeros(size, dtype=np.int32))
    return out
