"""RowCovers: distinct records as doubles, and what the cover of some of them costs, for compiled code.

A record is one double a column: weight x position for a number, the leaf code for a category. Numbers come first. A
group is then a lowest and a highest double a column, and one routine, `score`, says for every record what the cover
of a group costs once the record is taken in. Blanks lie one domain beyond the largest number, and no column costs more
than its weight, so a blank among numbers costs all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import FloatArray, Int32Array, Int64Array, group_by_codes

_TABLED = 512
"""Categories of no more values than this get a table of what each pair of values costs to join."""


class CoverMeasure(NamedTuple):
    """What covers cost: the first *lines* columns are measured on a line, the others by table or by climbing a tree.

    *most[c]* is what column c costs at most. Where *table_at[c]* is -1 the tree's *parent*, *first*, *last* and *loss* are
    read from *node_at[c]* on. *size[c]* is the number of codes; *widest* the largest of them.
    """

    lines: int
    most: FloatArray
    size: Int64Array
    table: FloatArray
    table_at: Int64Array
    node_at: Int64Array
    parent: Int32Array
    first: Int32Array
    last: Int32Array
    loss: FloatArray
    widest: int


@dataclass(frozen=True, repr=False)
class RowCovers:
    """The distinct records of a table, *points* record x column and *across* column x record, with their weights.

    Records are sorted by their codes, so that nothing depends on the order of rows. *record_of* leads from a row of
    the table to its record.

    >>> from velado.testing.examples import encoded
    >>> covers = RowCovers.of(encoded(age=[20, 30, 20, 40]))
    >>> covers.points.ravel().tolist(), covers.weight.tolist(), covers.record_of.tolist()
    ([0.0, 0.5, 1.0], [2, 1, 1], [0, 1, 0, 2])
    """

    points: FloatArray
    across: FloatArray
    weight: Int64Array
    record_of: Int32Array
    measure: CoverMeasure

    @classmethod
    def of(cls, data: EncodedTable) -> RowCovers:
        """The records of *data*. O(n log n)."""
        order = sorted(range(len(data.columns)), key=lambda c: not _on_a_line(data.columns[c]))
        columns = [data.columns[c] for c in order]
        record_of, count = group_by_codes([c.codes for c in columns], [c.size for c in columns])
        example = np.zeros(count, dtype=np.int64)
        example[record_of] = np.arange(data.rows)
        across = np.empty((len(columns), count))
        for at, column in enumerate(columns):
            codes = column.codes[example]
            across[at] = column.weight * column.positions[codes] if _on_a_line(column) else codes
        weight = np.bincount(record_of, minlength=count).astype(np.int64)
        return cls(np.ascontiguousarray(across.T), across, weight, record_of, _measure(columns))

    @property
    def records(self) -> int:
        """How many different records there are."""
        return int(self.weight.size)

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return int(self.points.shape[1])


def _on_a_line(column: EncodedColumn) -> bool:
    # Rounded ends cost steps, which a table says exactly; a long rounded column is taken for an unrounded one.
    return column.is_numeric and (column.rounding is None or column.size > _TABLED)


def _measure(columns: list[EncodedColumn]) -> CoverMeasure:
    lines = sum(_on_a_line(column) for column in columns)
    table_at = np.full(len(columns), -1, dtype=np.int64)
    node_at = np.full(len(columns), -1, dtype=np.int64)
    tables: list[FloatArray] = [np.zeros(0)]
    parents, firsts, lasts = ([np.zeros(0, dtype=np.int32)] for _ in range(3))
    losses: list[FloatArray] = [np.zeros(0)]
    filled = nodes = 0
    for at, column in enumerate(columns[lines:], start=lines):
        if column.size <= _TABLED:
            code = np.arange(column.size)
            low, high = np.minimum.outer(code, code).ravel(), np.maximum.outer(code, code).ravel()
            table_at[at] = filled
            tables.append(column.loss(low, high))
            filled += low.size
        else:
            tree = column.tree
            assert tree is not None
            node_at[at] = nodes
            parents.append(tree.parent)
            firsts.append(tree.first)
            lasts.append(tree.last)
            losses.append(column.weight * tree.loss(np.arange(len(tree.labels))))
            nodes += len(tree.labels)
    return CoverMeasure(
        lines=lines,
        most=np.array([column.weight for column in columns]),
        size=np.array([column.size for column in columns], dtype=np.int64),
        table=np.concatenate(tables),
        table_at=table_at,
        node_at=node_at,
        parent=np.concatenate(parents),
        first=np.concatenate(firsts),
        last=np.concatenate(lasts),
        loss=np.concatenate(losses),
        widest=max((column.size for column in columns[lines:]), default=0),
    )


@njit(cache=True)
def column_cost(measure: CoverMeasure, column: int, low: float, high: float) -> float:
    """What the cover low..high of one column costs."""
    if low == high and column < measure.lines:
        return 0.0
    if column < measure.lines:
        width = high - low
        most = measure.most[column]
        return width if width < most else most
    at = measure.table_at[column]
    if at >= 0:
        return measure.table[at + int(low) * measure.size[column] + int(high)]  # type: ignore[no-any-return]
    at = measure.node_at[column]
    node = int(low)
    while measure.last[at + node] < high:
        node = measure.parent[at + node]
    return measure.loss[at + node]  # type: ignore[no-any-return]


@njit(cache=True)
def cover_cost(measure: CoverMeasure, low: FloatArray, high: FloatArray, g: int) -> float:
    """What the cover low[g]..high[g] of all columns costs."""
    total = 0.0
    for c in range(low.shape[1]):
        total += column_cost(measure, c, low[g, c], high[g, c])
    return total


@njit(cache=True)
def joint_cost(
    measure: CoverMeasure,
    low: FloatArray,
    high: FloatArray,
    g: int,
    points: FloatArray,
    at: int,
    limit: float,
) -> float:
    """What the cover low[g]..high[g] costs once points[at] is in it; infinity as soon as that is *limit* or more.

    Whole matrices and indices: a row of a matrix is a new array each time, which costs more than the sum.
    """
    most = measure.most
    lines = measure.lines
    total = 0.0
    for c in range(lines):
        x = points[at, c]
        a = low[g, c]
        b = high[g, c]
        width = (b if b > x else x) - (a if a < x else x)
        total += width if width < most[c] else most[c]
    if total >= limit:
        return np.inf
    for c in range(lines, points.shape[1]):
        x = points[at, c]
        a = low[g, c]
        b = high[g, c]
        total += column_cost(measure, c, a if a < x else x, b if b > x else x)
        if total >= limit:
            return np.inf
    return total


@njit(cache=True)
def _widened(measure: CoverMeasure, column: int, low: float, high: float, costs: FloatArray) -> None:
    """``costs[code]`` becomes what the cover low..high of a column not on a line costs once it takes in *code*."""
    size = measure.size[column]
    at = measure.table_at[column]
    if at >= 0:
        for code in range(size):
            costs[code] = measure.table[at + int(min(low, code)) * size + int(max(high, code))]
        return
    at = measure.node_at[column]
    node = int(low)
    while measure.last[at + node] < high:
        node = measure.parent[at + node]
    left, right = measure.first[at + node], measure.last[at + node]
    costs[left : right + 1] = measure.loss[at + node]
    while left > 0 or right < size - 1:
        node = measure.parent[at + node]
        costs[measure.first[at + node] : left] = measure.loss[at + node]
        costs[right + 1 : measure.last[at + node] + 1] = measure.loss[at + node]
        left, right = measure.first[at + node], measure.last[at + node]


@njit(cache=True)
def score(
    measure: CoverMeasure,
    across: FloatArray,
    count: int,
    low: FloatArray,
    high: FloatArray,
    costs: FloatArray,
    out: FloatArray,
) -> None:
    """``out[i]`` becomes the cost of the cover low..high once it takes in record i, for the first *count* of *across*.

    *costs* is room for the codes of a column. Column by column, so that the compiler uses vector instructions.
    """
    out[:count] = 0.0
    for c in range(measure.lines):
        values = across[c]
        a, b, most = low[c], high[c], measure.most[c]
        for i in range(count):
            x = values[i]
            width = (b if b > x else x) - (a if a < x else x)
            out[i] += width if width < most else most
    for c in range(measure.lines, low.size):
        values = across[c]
        _widened(measure, c, low[c], high[c], costs)
        for i in range(count):
            out[i] += costs[int(values[i])]
