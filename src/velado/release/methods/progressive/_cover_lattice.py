"""CoverLattice: the distinct tuples of a table, their weights, and the nodes and costs of every column's levels.

A *box* is one generalized tuple: a node per column. All that progressive generalization needs to know of a
column is which node each code has at each level and what that node costs, so both are flat look-up tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import FloatArray, Int64Array, group_by_codes
from velado.release.methods.das import bin_of, elbow, nested_counted

_FINEST_BINS = 64
"""Numeric columns are cut into about this many bins above their single values, then into unions of two."""
_TABLED = 512
"""Columns of no more values than this get a table of what each pair of values costs to join."""


class Space(NamedTuple):
    """The lattice as plain arrays, for compiled code.

    *nested[c]* says that each level of the column only joins nodes of the level before, at no less cost.
    *dearest[c]* is what the columns from c on can cost at most, *level_least[c, l]* and *level_most[c, l]* what the nodes of a
    level cost. What it costs to publish the cover of two
    codes is read from *pair* (from *pair_at[c]* on, -1: no table), else measured on *line* (*line_at[c]*),
    else found by climbing the full levels *tree_base*, *tree_levels*.
    """

    codes: npt.NDArray[np.int32]
    weight: npt.NDArray[np.int64]
    base: npt.NDArray[np.int64]
    levels: npt.NDArray[np.int64]
    nested: npt.NDArray[np.bool_]
    node: npt.NDArray[np.int32]
    cost: FloatArray
    dearest: FloatArray
    level_least: FloatArray
    level_most: FloatArray
    size: npt.NDArray[np.int64]
    pair: FloatArray
    pair_at: npt.NDArray[np.int64]
    line: FloatArray
    line_at: npt.NDArray[np.int64]
    tree_base: npt.NDArray[np.int64]
    tree_levels: npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class CoverLattice:
    """The table as distinct weighted tuples over columns of levels, costliest column first.

    In *space*, *codes* is column x tuple; *base[c, l]* is where level l of column c starts in *node* and
    *cost*, each indexed by code; *levels[c]* says how many levels the column has, level 0 the value itself,
    the last one everything. *tuple_of_row* leads back. Tuples are sorted by their codes, so nothing depends
    on row order.
    """

    space: Space
    tuple_of_row: npt.NDArray[np.int32]

    def __repr__(self) -> str:
        return f"CoverLattice(tuples={self.tuples}, levels={self.space.levels.tolist()})"

    @property
    def tuples(self) -> int:
        """How many different tuples there are."""
        return int(self.space.weight.size)

    @property
    def top_cost(self) -> float:
        """What the box that covers everything costs."""
        return float(self.space.dearest[0])


def lattice(data: EncodedTable) -> CoverLattice:
    """The lattice of *data*: O(n log n) for the tuples, O(values x levels) for the look-up tables."""
    return data.once("lattice", lambda: _over(data, [_levels(c, data.counts) for c in data.columns]))


def bound_lattice(data: EncodedTable) -> CoverLattice:
    """A lattice in which every group has a box that costs no more than its cover: for lower bounds only."""
    return _over(data, [_windows(c) if c.is_numeric else _levels(c, data.counts) for c in data.columns])


def _over(data: EncodedTable, tables: list[Levels]) -> CoverLattice:
    # A column in which the first step up is dear separates rows early and is seldom generalized: first.
    first_step = [float(costs[1].mean()) if len(costs) > 1 else 0.0 for _, costs in tables]
    order = tuple(sorted(range(len(tables)), key=lambda c: (-first_step[c], c)))
    columns = [data.columns[c] for c in order]
    labels, count = group_by_codes([c.codes for c in columns], [c.size for c in columns])
    one_row = np.zeros(count, dtype=np.int32)
    one_row[labels] = np.arange(data.rows, dtype=np.int32)
    # Filled row by row: stacking a list of copies would hold the tuples twice.
    codes = np.empty((len(columns), count), dtype=np.int32)
    for at, column in enumerate(columns):
        codes[at] = column.codes[one_row]
    weight = np.bincount(labels, data.counts, minlength=count).astype(np.int64)
    return CoverLattice(_space(codes, weight, columns, [tables[c] for c in order]), labels)


Levels = tuple[list[npt.NDArray[np.int32]], list[FloatArray]]


def _space(
    codes: npt.NDArray[np.int32],
    weight: npt.NDArray[np.int64],
    columns: list[EncodedColumn],
    tables: list[Levels],
) -> Space:
    base = np.zeros((len(columns), max(len(nodes) for nodes, _ in tables)), dtype=np.int64)
    level_least, level_most = np.zeros(base.shape), np.zeros(base.shape)
    at = 0
    for place, (nodes, costs) in enumerate(tables):
        for level, (node, cost) in enumerate(zip(nodes, costs, strict=True)):
            level_least[place, level], level_most[place, level] = cost.min(), cost.max()
            base[place, level] = at
            at += node.size
    levels = np.array([len(nodes) for nodes, _ in tables], dtype=np.int64)
    top = np.array([float(costs[-1].max()) for _, costs in tables])
    pairs, pair_at = _laid_out([_pair_losses(c) if c.size <= _TABLED else None for c in columns])
    lines, line_at = _laid_out([c.positions if c.is_numeric else None for c in columns])
    return Space(
        codes=codes,
        weight=weight,
        base=base,
        levels=levels,
        nested=np.array([_is_nested(nodes) for nodes, _ in tables]),
        node=np.concatenate([node for nodes, _ in tables for node in nodes]),
        cost=np.concatenate([cost for _, costs in tables for cost in costs]),
        dearest=np.append(np.cumsum(top[::-1])[::-1], 0.0),
        level_least=level_least,
        level_most=level_most,
        size=np.array([column.size for column in columns], dtype=np.int64),
        pair=pairs,
        pair_at=pair_at,
        line=lines,
        line_at=line_at,
        tree_base=base,
        tree_levels=levels,
    )


def _is_nested(nodes: list[npt.NDArray[np.int32]]) -> bool:
    for fine, coarse in pairwise(nodes):
        joint = np.zeros(int(fine.max()) + 1, dtype=np.int32)
        joint[fine] = coarse
        if not np.array_equal(joint[fine], coarse):
            return False
    return True


def _laid_out(parts: list[FloatArray | None]) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """The parts one after another, and where each starts; -1 where there is none."""
    at = np.full(len(parts), -1, dtype=np.int64)
    filled = 0
    for place, part in enumerate(parts):
        if part is not None:
            at[place] = filled
            filled += part.size
    present = [part for part in parts if part is not None]
    return (np.concatenate(present) if present else np.zeros(0)), at


def _pair_losses(column: EncodedColumn) -> FloatArray:
    code = np.arange(column.size)
    low, high = np.minimum.outer(code, code).ravel(), np.maximum.outer(code, code).ravel()
    return column.loss(low, high)


def _levels(column: EncodedColumn, counts: Int64Array | None) -> Levels:
    """Node and cost of each code at each level, from the value itself to everything."""
    if column.tree is not None:
        matrix = column.tree.levels
        raw = [matrix[:, level] for level in range(matrix.shape[1])]
    else:
        raw = _numeric_levels(column, counts)
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


def _numeric_levels(column: EncodedColumn, counts: Int64Array | None) -> list[npt.NDArray[np.int32]]:
    """Single values, then DAS's bins: its elbow times a power of two at the finest, unions of two above.

    The code of a missing value is alone at every level but the last.
    """
    assert column.points is not None
    points = column.points[: column.missing] if column.missing >= 0 else column.points
    size = column.size
    out = [np.arange(size, dtype=np.int32)]
    rows = np.bincount(column.codes, counts, minlength=size)[: points.size].astype(np.int64)
    rows = rows[rows > 0]
    if points.size > 2 and rows.size:
        bins = elbow(points)
        while 2 * bins <= min(_FINEST_BINS, points.size // 2):
            bins *= 2
        for ends in nested_counted(rows, bins):
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


def _windows(column: EncodedColumn) -> Levels:
    """Levels of overlapping windows of a numeric column, each charged the least that what needs it costs.

    At every size the values are cut into bins, and two levels pair neighbouring bins, one from the first bin
    on and one from the second, so that a set of values fits a window of some size unless it reaches over a
    whole bin. What does not fit is at least as wide as the narrowest bin it reaches over, with the gaps on
    both sides: that width is what the windows of the next size cost. A missing value is alone, or with all.
    """
    assert column.points is not None
    size = column.size
    known = column.missing if column.missing >= 0 else size
    points = column.points[:known] / (column.span if column.span > 0 else 1.0)
    nodes = [np.arange(size, dtype=np.int32)]
    costs = [np.zeros(size)]
    code = np.arange(known)
    width = max(1, known // _FINEST_BINS)  # codes in a bin
    low, high = code[:-1], code[1:]  # whatever is no single value spans one of these pairs
    while width < known:
        for shift in (0, 1):
            window = (code // width + shift) // 2
            node = np.full(size, int(window[-1]) + 1, dtype=np.int32)
            node[:known] = window
            within = window[low] == window[high]
            least = np.ones(int(window[-1]) + 1)
            np.minimum.at(least, window[low[within]], (points[high] - points[low])[within])
            nodes.append(node)
            costs.append(np.append(least, np.zeros(1))[node] if column.missing >= 0 else least[node])
        # What fits no window of this width starts in some bin and ends beyond the next one.
        start = np.arange(0, known - 2 * width, width)
        low, high = start + width - 1, start + 2 * width
        width *= 2
    if size > 1:
        nodes.append(np.zeros(size, dtype=np.int32))
        costs.append(np.ones(size))
    return nodes, [column.weight * cost for cost in costs]
