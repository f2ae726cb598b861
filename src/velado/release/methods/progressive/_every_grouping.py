"""The best of all groupings of a table of a dozen rows: a search by steps may miss it, and to try everything costs nothing."""

from __future__ import annotations

import numpy as np

from velado.compiled import njit
from velado.data.partition import FloatArray, Int32Array
from velado.release.methods._row_covers import CoverMeasure, RowCovers, cover_cost

MOST_ROWS = 12
"""Every set of rows is looked at once for each set that it is part of: 3^11 steps."""


def best_grouping(covers: RowCovers, least: int) -> Int32Array:
    """The labels of groups of *least* rows or more that cost least together: rows x price of each.

    f(S) = min over groups G of S that hold the first row of S of |G| price(G) + f(S without G), f(nothing) = 0: sets are
    numbers whose bits are rows. A set of fewer than *least* rows has no grouping. O(3^n) for n rows.

    >>> from velado.testing.examples import encoded
    >>> best_grouping(RowCovers.of(encoded(age=[20, 31, 21, 30, 22])), 2).tolist()
    [0, 1, 0, 1, 0]
    """
    return _best(covers.measure, np.ascontiguousarray(covers.points[covers.record_of]), least)


@njit(cache=True)
def _best(measure: CoverMeasure, points: FloatArray, least: int) -> Int32Array:
    rows, columns = points.shape
    sets = 1 << rows
    alone = np.full(sets, np.inf)
    low, high = np.empty((1, columns)), np.empty((1, columns))
    for one in range(1, sets):
        size = 0
        low[:] = np.inf
        high[:] = -np.inf
        for row in range(rows):
            if one >> row & 1:
                size += 1
                for c in range(columns):
                    low[0, c] = min(low[0, c], points[row, c])
                    high[0, c] = max(high[0, c], points[row, c])
        if size >= least:
            alone[one] = size * cover_cost(measure, low, high, 0)
    best = np.full(sets, np.inf)
    first = np.zeros(sets, dtype=np.int64)
    best[0] = 0.0
    for whole in range(1, sets):
        lowest = whole & -whole
        rest = whole ^ lowest
        part = rest
        while True:
            group = part | lowest
            cost = alone[group] + best[whole ^ group]
            if cost < best[whole]:
                best[whole], first[whole] = cost, group
            if part == 0:
                break
            part = (part - 1) & rest
    labels = np.zeros(rows, dtype=np.int32)
    left, group = sets - 1, 0
    while left and first[left]:
        for row in range(rows):
            if first[left] >> row & 1:
                labels[row] = group
        left ^= first[left]
        group += 1
    return labels
