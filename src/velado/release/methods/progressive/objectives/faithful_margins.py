"""Objective `marginals`: one- and two-way tables that a reader makes of the release lie near the true ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.data.tallies import pair_counts
from velado.release.methods.progressive.objectives._ingredients import (
    MarginCounts,
    Margins,
    cell_of,
    shown_range,
)
from velado.release.methods.progressive.objectives._shown_groups import PerCell, ShownGroups
from velado.text import say

NUMBER_CELLS = 10
"""Classes that a cross table cuts a number into: tenths of the rows."""
CATEGORY_CELLS = 50
"""Values of a category that a cross table shows; longer lists are joined by a level of their taxonomy."""
_TOGETHER = 4096


@njit(cache=True)
def margins_after(margins: Margins, kept: MarginCounts, g: int, size: int, out: int, into: int) -> float:
    """Rows of g x total variation between its rows and the even spread of its cover, summed over columns. O(d x cells).

    After record *out* has left it and *into* has joined it (-1: none), *size* rows then. For one column,
    with n_b the rows in cell b and u_b the share of the cover's values that lie in it:
    m TV = sum over cells of max(0, n_b - m u_b).

    >>> from velado.testing.examples import encoded
    >>> margins = margins_of(encoded(age=[20, 21, 22, 30]), np.arange(4))
    >>> ends = [np.array([[code]], np.int32) for code in (0, 9, -1, 0)]
    >>> margins_after(margins, MarginCounts(np.array([[1, 0, 0, 0]], np.int32), *ends), 0, 2, -1, 3)
    1.0
    """
    codes, histogram, begins = margins.codes, kept.histogram, margins.begin
    total = 0.0
    for c in range(codes.shape[1]):
        low, high = kept.least[g, c], kept.most[g, c]
        gone, come = -1, -1
        if out >= 0:
            code = codes[out, c]
            low = kept.least2[g, c] if code == low else low
            high = kept.most2[g, c] if code == high else high
            gone = cell_of(margins, c, code)
        if into >= 0:
            code = codes[into, c]
            low = min(low, code)
            high = max(high, code)
            come = cell_of(margins, c, code)
        if low >= high:
            continue
        first, last = shown_range(margins, c, low, high)
        share = size / (last - first + 1)
        away = 0.0
        at = margins.cell_at[c]
        for b in range(cell_of(margins, c, low), cell_of(margins, c, high) + 1):
            rows = histogram[g, at + b]
            if b == gone:
                rows -= 1
            if b == come:
                rows += 1
            if rows > 0:
                begin, end = begins[at + c + b], begins[at + c + b + 1] - 1
                spread = share * (min(end, last) - max(begin, first) + 1)
                if rows > spread:
                    away += rows - spread
        total += margins.weight[c] * away
    return total


def table_cells(column: EncodedColumn) -> Int32Array:
    """The cell of each code in one- and two-way tables: runs of neighbouring codes, a blank by itself.

    Numbers are cut into ten classes with about as many rows each. A category shows its values, or, where there are more than
    50, the finest level of its taxonomy with no more; without one, runs of values with about as many rows each.

    >>> from velado.testing.examples import column
    >>> table_cells(column([20, 30, 40])).tolist()
    [0, 1, 2]
    """
    real = column.missing if column.missing >= 0 else column.size
    most = NUMBER_CELLS if column.is_numeric else CATEGORY_CELLS
    if real <= most:
        cells = np.arange(real)
    else:
        levels = (
            []
            if column.tree is None
            else [column.tree.levels[:real, at] for at in range(1, column.tree.height)]
        )
        runs = [np.concatenate(([0], np.cumsum(level[1:] != level[:-1]))) for level in levels]
        fitting = [run for run in runs if 1 <= run[-1] < most]
        if fitting:
            cells = fitting[0]
        else:
            counts = np.bincount(column.codes, minlength=column.size)[:real]
            # The cell of a code is that of its middle row.
            middle = np.cumsum(counts) - counts / 2
            cells = np.unique((most * middle / max(counts.sum(), 1)).astype(np.int64), return_inverse=True)[1]
    if column.missing >= 0:
        cells = np.concatenate((cells, [cells[-1] + 1 if cells.size else 0]))
    return np.asarray(cells, dtype=np.int32)


def margins_of(data: EncodedTable, example: Int64Array) -> Margins:
    """The columns of *data* as cross tables show them, with the codes of the rows *example*, for compiled code.

    >>> from velado.testing.examples import encoded
    >>> margins_of(encoded(age=[20, 21, 21]), np.arange(3)).cells.tolist()
    [2]
    """
    cells = [table_cells(column) for column in data.columns]
    counts = np.array([int(cell[-1]) + 1 for cell in cells], dtype=np.int64)
    node_at, nodes = np.full(len(cells), -1, dtype=np.int64), 0
    trees = []
    for at, column in enumerate(data.columns):
        if column.tree is not None:
            node_at[at] = nodes
            nodes += column.tree.parent.size
            trees.append(column.tree)
    none = [np.zeros(0, dtype=np.int32)]
    codes = np.stack([column.codes[example] for column in data.columns], axis=1)
    return Margins(
        codes=np.ascontiguousarray(codes, dtype=np.int32),
        weight=np.array([column.weight for column in data.columns]),
        size=np.array([column.size for column in data.columns], dtype=np.int64),
        blank=np.array([column.missing for column in data.columns], dtype=np.int64),
        cells=counts,
        cell_at=np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64),
        cell_of=np.concatenate(cells),
        code_at=np.concatenate(([0], np.cumsum([cell.size for cell in cells])[:-1])).astype(np.int64),
        begin=np.concatenate([np.searchsorted(cell, np.arange(cell[-1] + 2)) for cell in cells]),
        node_at=node_at,
        parent=np.concatenate([*none, *(tree.parent for tree in trees)]).astype(np.int32),
        first=np.concatenate([*none, *(tree.first for tree in trees)]).astype(np.int32),
        last=np.concatenate([*none, *(tree.last for tree in trees)]).astype(np.int32),
    )


@dataclass(frozen=True)
class TableErrors:
    """Mean total variation of the one-way and of the two-way tables; *overall* is the mean of the two.

    >>> TableErrors(0.1, 0.3).overall
    0.2
    """

    one_way: float
    two_way: float | None

    @property
    def overall(self) -> float:
        """One number: half from the one-way, half from the two-way tables where there are any."""
        return self.one_way if self.two_way is None else (self.one_way + self.two_way) / 2


class FaithfulMargins(PerCell):
    """Total variation between true tables and those of a reader who spreads each published cover evenly over its values.

    For a table with cells v, P(v) the share of rows truly in v, and Q(v) = sum over groups of |G| u_G(v) / n, where u_G is the
    share of the group's cover that lies in v: TV = 1/2 sum over v of |P(v) - Q(v)|, a suppressed row counted as moved. It is
    measured over all one-way and all two-way tables (`table_errors`).

    What the search lowers is a sum over groups, |G| TV(values of G, u_G), over the columns. By the triangle inequality
    n TV = 1/2 sum over v |sum over G (n_G(v) - |G| u_G(v))| <= sum over G |G| TV_G for every one-way table: it is a bound of
    those errors from above. For two-way tables it bounds only groups that generalize one of the two columns at most. Where
    errors of groups cancel, the true error is far lower: both are computed, and of start and result the truly better is kept.

    >>> from velado.testing.examples import encoded
    >>> FaithfulMargins.value(ShownGroups.of(encoded(age=[20, 21, 30, 31]), np.array([0, 0, 1, 1])))
    0.0
    """

    name: ClassVar[str] = "marginals"
    title: ClassVar[str] = say("error of one- and two-way tables")
    heading: ClassVar[str] = say("error of tables")
    slowness: ClassVar[float] = 9.0

    @staticmethod
    def value(groups: ShownGroups) -> float:
        """The true error of the published classes."""
        return table_errors(groups).overall


def table_errors(groups: ShownGroups) -> TableErrors:
    """How far one- and two-way tables made from the release are from the true ones. O(n d^2 + groups x cells^2).

    >>> from velado.testing.examples import encoded
    >>> table_errors(ShownGroups.of(encoded(age=[20, 21, 21, 22]), np.array([0, 0, 0, 0]))).one_way
    0.16666666666666666
    """
    data, classes = groups.data, groups.classes
    cells = [table_cells(column) for column in data.columns]
    counts = [int(cell[-1]) + 1 for cell in cells]
    at = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    seen = np.zeros((int(at[-1]), int(at[-1])))
    alone = np.zeros(int(at[-1]))
    begins = [np.searchsorted(cell, np.arange(cell[-1] + 2)) for cell in cells]
    for start in range(0, classes.count, _TOGETHER):
        part = slice(start, start + _TOGETHER)
        low, high, rows = groups.low[part], groups.high[part], groups.sizes[part].astype(np.float64)
        spread = np.concatenate(
            [_spread(low[:, c], high[:, c], begin) for c, begin in enumerate(begins)], axis=1
        )
        alone += rows @ spread
        seen += spread.T @ (rows[:, None] * spread)
    codes = np.empty((len(cells), data.rows), dtype=np.int32)
    for c, (cell, column) in enumerate(zip(cells, data.columns, strict=True)):
        np.take(cell, column.codes, out=codes[c])
    true = pair_counts(codes, at, np.empty(0, dtype=np.int64))
    weights = np.array([column.weight for column in data.columns])
    lost = groups.suppressed + groups.rows - data.rows
    every = [slice(int(at[c]), int(at[c + 1])) for c in range(len(cells))]

    def apart(true: Int64Array, told: FloatArray) -> float:
        return float((np.abs(true - told).sum() + lost) / (2 * max(groups.rows, 1)))

    one = [apart(true.diagonal()[part], alone[part]) for part in every]
    two, pairs = [], []
    for c, part in enumerate(every):
        for e in range(c + 1, len(cells)):
            two.append(apart(true[part, every[e]], seen[part, every[e]]))
            pairs.append(weights[c] + weights[e])
    return TableErrors(_mean(one, weights.tolist()), _mean(two, pairs) if two else None)


def _mean(errors: list[float], weights: list[float]) -> float:
    return float(np.average(errors, weights=weights)) if sum(weights) > 0 else 0.0


def _spread(low: Int32Array, high: Int32Array, begin: Int64Array) -> FloatArray:
    """Class x cell: the share of the codes low..high of each class that lie in each cell."""
    inside = np.minimum(high[:, None] + 1, begin[None, 1:]) - np.maximum(low[:, None], begin[None, :-1])
    return np.asarray(np.maximum(inside, 0) / (high - low + 1)[:, None], dtype=np.float64)
