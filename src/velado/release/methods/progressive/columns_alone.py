"""What every column must lose by itself: a lower bound that counts where groups are large, or columns few.

Whatever the groups are, each column pays at least what it would pay were it the only one, and these sums may be added up.

In a sorted column of numbers a gap between neighbours is crossed by the groups that have rows on both sides, which hold *k*
rows or more together, so a crossed gap costs k times its width. Gaps that nobody crosses cut the column into runs: one of k rows
or more costs k times its width at least, and one of fewer can only be dropped, whole. The cheapest runs bound the column.
In a taxonomy a row is published as a node below which there are k rows, or dropped.
"""

from __future__ import annotations

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.encoded import EncodedColumn
from velado.data.partition import FloatArray, Int64Array

_MOST_STEPS = 300_000_000
"""Values x k up to which a column is looked at; of a longer one nothing is said."""


def columns_alone(data: EncodedTable, k: int) -> float:
    """No grouping in *k* rows or more costs less than this, in rows x cost; a dropped row costs all its columns.

    O(n log n + values x k) per column.

    >>> from velado.testing.examples import encoded
    >>> columns_alone(encoded(age=[20, 21, 22, 29, 30, 31]), 3)
    1.0909090909090908
    >>> columns_alone(encoded(age=[20, 30, 40]), 2)
    2.0
    """
    return sum(_column_alone(column, k) for column in data.columns)


def _column_alone(column: EncodedColumn, k: int) -> float:
    rows = np.bincount(column.codes, minlength=column.size)
    if column.tree is not None:
        return column.weight * _tree_alone(column, rows, k)
    met = np.flatnonzero(rows)
    if met.size * min(k, met.size) > _MOST_STEPS:
        return 0.0
    return column.weight * float(_runs_alone(np.ascontiguousarray(column.positions[met]), rows[met], k))


def _tree_alone(column: EncodedColumn, rows: Int64Array, k: int) -> float:
    tree = column.tree
    assert tree is not None
    loss = tree.loss(np.arange(len(tree.labels)))
    through = np.concatenate(([0], np.cumsum(rows)))
    held = through[tree.last + 1] - through[tree.first]
    node = np.arange(tree.leaves)
    for _ in range(tree.levels.shape[1]):
        node = np.where(held[node] >= k, node, tree.parent[node])
    # A row that finds no such node can only be dropped.
    return float((rows * np.where(held[node] >= k, np.minimum(loss[node], 1.0), 1.0)).sum())


@njit(cache=True)
def _runs_alone(position: FloatArray, rows: Int64Array, k: int) -> float:
    """The cheapest cutting of sorted positions into runs: k x width for one of *k* rows or more, its rows for another.

    A run that could be cut in two of k rows or more is never needed.
    """
    values = position.size
    best = np.full(values + 1, np.inf)
    best[0] = 0.0
    for j in range(1, values + 1):
        held, behind = 0, 0  # rows of the run, and of it those that stand before the shortest end of k rows
        for i in range(j - 1, -1, -1):
            if held >= k:
                behind += rows[i]
            held += rows[i]
            if held < k:
                cost = float(held)
            else:
                cost = k * min(position[j - 1] - position[i], 1.0)
            if best[i] + cost < best[j]:
                best[j] = best[i] + cost
            if behind >= k:
                break
    return best[values]  # type: ignore[no-any-return]
