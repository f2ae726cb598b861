"""The compiled search of record linkage: for each distinct query, its nearest distinct targets, exactly.

Targets are sorted, so they form a tree whose levels are the columns: all targets that share the first values lie
side by side. A walk from left to right keeps the partial distance of each level; as soon as it, and the least
the remaining columns must add, exceeds the best distance found, the whole branch is skipped.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

IntVector = npt.NDArray[np.int64]
IntMatrix = npt.NDArray[np.int32]
FloatVector = npt.NDArray[np.float64]

SLACK = 1e-10  # distances nearer than this share of each other are one distance: rounding must break no tie


@numba.njit(cache=True)
def _tree_costs(
    node: int,
    targets: IntVector,
    first: IntVector,
    last: IntVector,
    parent: IntVector,
    share: FloatVector,
    base: int,
    costs: FloatVector,
) -> None:
    """Definition 2 between *node* and every target node: the share of leaves under their common ancestor."""
    for symbol in range(targets.size):
        other = targets[symbol]
        above = node
        while first[base + above] > first[base + other] or last[base + above] < last[base + other]:
            above = parent[base + above]
        costs[symbol] = 0.0 if node == other else share[base + above]


@numba.njit(cache=True)
def _gap(values: FloatVector, value: float) -> float:
    """How far *value* lies from the nearest of the rising *values*."""
    at = np.searchsorted(values, value)
    gap = np.inf
    if at < values.size:
        gap = values[at] - value
    if at > 0:
        gap = min(gap, value - values[at - 1])
    return gap


@numba.njit(cache=True)
def nearest(
    query: IntMatrix,
    query_value: FloatVector,
    query_node: IntVector,
    query_base: IntVector,
    target: IntMatrix,
    target_value: FloatVector,
    target_node: IntVector,
    target_base: IntVector,
    weight: IntVector,
    first_row: IntVector,
    change: IntVector,
    skip: IntMatrix,
    scale: FloatVector,
    first: IntVector,
    last: IntVector,
    parent: IntVector,
    share: FloatVector,
    node_base: IntVector,
    pair_start: IntVector,
    pair_target: IntVector,
    squared: bool,
) -> tuple[IntVector, IntVector, npt.NDArray[np.bool_]]:
    """For each query: how many target rows are nearest, the first of them; for each true pair, if it is nearest.

    *query* and *target* hold symbols; the numbers or tree nodes they stand for start at the column's base.
    *scale* is what a numeric difference is multiplied by, or negative for a tree column. *change* is the first
    level at which a target differs from the one before; *skip* the next target with another beginning.
    """
    queries, columns = query.shape
    targets = target.shape[0]
    ties = np.zeros(queries, dtype=np.int64)
    winner = np.empty(queries, dtype=np.int64)
    near = np.empty(pair_target.size, dtype=np.bool_)
    far = np.empty(pair_target.size, dtype=np.float64)
    costs = np.zeros(target_value.size, dtype=np.float64)
    value = np.zeros(columns, dtype=np.float64)
    least = np.zeros(columns, dtype=np.float64)
    rest = np.zeros(columns + 1, dtype=np.float64)
    partial = np.zeros(columns + 1, dtype=np.float64)
    for q in range(queries):
        for c in range(columns):
            if q > 0 and query[q, c] == query[q - 1, c]:
                continue
            symbol = query_base[c] + query[q, c]
            begin, end = target_base[c], target_base[c + 1]
            if scale[c] < 0:
                _tree_costs(
                    query_node[symbol], target_node[begin:end], first, last, parent, share, node_base[c],
                    costs[begin:end],
                )  # fmt: skip
                if squared:
                    costs[begin:end] *= costs[begin:end]
                least[c] = costs[begin:end].min()
            else:
                value[c] = query_value[symbol]
                least[c] = _gap(target_value[begin:end], value[c]) * scale[c]
                if squared:
                    least[c] *= least[c]
        for c in range(columns - 1, -1, -1):
            rest[c] = rest[c + 1] + least[c]
        # The true partners bound the search from the start.
        best = np.inf
        for p in range(pair_start[q], pair_start[q + 1]):
            total = 0.0
            for c in range(columns):
                at = target_base[c] + target[pair_target[p], c]
                if scale[c] < 0:
                    step = costs[at]
                else:
                    step = abs(value[c] - target_value[at]) * scale[c]
                    if squared:
                        step *= step
                total += step
            far[p] = total
            best = min(best, total)
        bound = best * (1 + SLACK)
        winner[q] = np.iinfo(np.int64).max
        t = 0
        level = 0
        while t < targets:
            total = partial[level]
            while level < columns:
                at = target_base[level] + target[t, level]
                if scale[level] < 0:
                    step = costs[at]
                else:
                    step = abs(value[level] - target_value[at]) * scale[level]
                    if squared:
                        step *= step
                total += step
                if total + rest[level + 1] > bound * (1 + SLACK):
                    break
                level += 1
                partial[level] = total
            if level < columns:
                t = skip[t, level]
            else:
                if total < best * (1 - SLACK):
                    best = total
                    bound = best * (1 + SLACK)
                    ties[q] = 0
                    winner[q] = np.iinfo(np.int64).max
                if total <= bound:
                    ties[q] += weight[t]
                    winner[q] = min(winner[q], first_row[t])
                t += 1
            if t < targets:
                level = change[t]
        for p in range(pair_start[q], pair_start[q + 1]):
            near[p] = far[p] <= bound
    return ties, winner, near
