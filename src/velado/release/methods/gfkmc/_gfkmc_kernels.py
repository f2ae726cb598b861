"""GFKMC's loops: cluster the small groups (algorithms 4.4, 4.5), then place what is left (4.6).

Everything works on groups of identical generalized records, never on pairs of rows. A cluster is kept as
its cover (a range of positions per numeric column, a node per taxonomy column), its rows and the sum of
its squared weights; that is all definitions 4 and 10 need. Ties go to the group or cluster with the
smaller number, and groups are numbered by their codes, so the order of rows decides nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from velado.compiled import njit
from velado.data.partition import BoolArray, FloatArray

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Trees = tuple[Int32Array, Int32Array, Int32Array, FloatArray, FloatArray]


@njit(cache=True)
def _join(at: int, one: int, two: int, trees: Trees) -> int:
    """The lowest common ancestor of two nodes of column *at*."""
    parent, first, last = trees[0], trees[1], trees[2]
    low, high = first[at, two], last[at, two]
    while first[at, one] > low or last[at, one] < high:
        one = parent[at, one]
    return one


@njit(cache=True)
def _distance(
    one: FloatArray, two: FloatArray, numeric: BoolArray, importance: FloatArray, trees: Trees
) -> float:
    """Definition 3: the distance of two generalized records, each column 0..1 times its weight."""
    total = 0.0
    for at in range(one.size):
        if one[at] == two[at]:
            continue
        if numeric[at]:
            total += importance[at] * min(abs(one[at] - two[at]), 1.0)
        else:
            total += trees[3][at, _join(at, int(one[at]), int(two[at]), trees)]
    return total


@njit(cache=True)
def _spread(
    low: FloatArray,
    high: FloatArray,
    new_low: FloatArray,
    new_high: FloatArray,
    numeric: BoolArray,
    scale: FloatArray,
    trees: Trees,
) -> float:
    """Definition 4 without its factor |e|: the summed spread of one cover joined with another."""
    total = 0.0
    for at in range(low.size):
        if numeric[at]:
            width = max(high[at], new_high[at]) - min(low[at], new_low[at])
            total += scale[at] * min(width, 1.0)
        else:
            total += trees[4][at, _join(at, int(low[at]), int(new_low[at]), trees)]
    return total


@njit(cache=True)
def _absorb(
    low: FloatArray,
    high: FloatArray,
    new_low: FloatArray,
    new_high: FloatArray,
    numeric: BoolArray,
    trees: Trees,
) -> None:
    """The first cover becomes the joint cover. A taxonomy column keeps its node in *low* and in *high*."""
    for at in range(low.size):
        if numeric[at]:
            low[at] = min(low[at], new_low[at])
            high[at] = max(high[at], new_high[at])
        else:
            node = _join(at, int(low[at]), int(new_low[at]), trees)
            low[at] = high[at] = node


@njit(cache=True)
def cluster_groups(
    k: int,
    start: int,
    farthest_first: bool,
    places: FloatArray,
    left: Int64Array,
    weight: FloatArray,
    numeric: BoolArray,
    importance: FloatArray,
    scale: FloatArray,
    trees: Trees,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Clusters of exactly k rows, seeded far apart and filled by least weighted information loss.

    *left* holds the rows of each group and is emptied in place; what remains are fewer than k rows.
    Returns the moves (group, rows, cluster) in order and the seed group of each cluster. The next seed is
    the group whose nearest seed so far is farthest in weighted distance (or, if not *farthest_first*, whose
    farthest seed is, as the authors' code has it). O(G C d) for G groups and C clusters.
    """
    groups, columns = places.shape
    total = left.sum()
    most = total // k
    moved_group = np.empty(groups + most, dtype=np.int64)
    moved_rows = np.empty(groups + most, dtype=np.int64)
    moved_into = np.empty(groups + most, dtype=np.int64)
    moves = 0
    seeds = np.empty(most, dtype=np.int64)
    alive = np.arange(groups)
    living = groups
    reach = np.full(groups, np.inf if farthest_first else -1.0)
    best_cost = np.empty(k)
    best_group = np.empty(k, dtype=np.int64)
    low = np.empty(columns)
    high = np.empty(columns)
    clusters = 0
    seed = start
    while total >= k:
        if clusters > 0:
            seed = -1
            for where in range(living):
                group = alive[where]
                if seed < 0 or reach[group] > reach[seed]:
                    seed = group
        seeds[clusters] = seed
        low[:] = places[seed]
        high[:] = places[seed]
        need = k - left[seed]
        spread = _spread(low, high, low, high, numeric, scale, trees)
        squares = left[seed] * weight[seed] ** 2
        before = np.sqrt(squares) * left[seed] * spread
        held = 0
        for where in range(living):
            group = alive[where]
            if group == seed:
                continue
            pair = np.sqrt(weight[seed] ** 2 + weight[group] ** 2)
            away = pair * _distance(places[seed], places[group], numeric, importance, trees)
            if farthest_first:
                reach[group] = min(reach[group], away)
            else:
                reach[group] = max(reach[group], away)
            joint = _spread(low, high, places[group], places[group], numeric, scale, trees)
            cost = np.sqrt(squares + weight[group] ** 2) * (left[seed] + 1) * joint - before
            if held == need and (held == 0 or cost >= best_cost[held - 1]):
                continue
            # A short sorted list of the best; each group has at least one row, so `need` of them suffice.
            slot = held if held < need else held - 1
            held = min(held + 1, need)
            while slot > 0 and best_cost[slot - 1] > cost:
                best_cost[slot] = best_cost[slot - 1]
                best_group[slot] = best_group[slot - 1]
                slot -= 1
            best_cost[slot] = cost
            best_group[slot] = group
        moved_group[moves], moved_rows[moves], moved_into[moves] = seed, left[seed], clusters
        moves += 1
        left[seed] = 0
        for at in range(held):
            if need == 0:
                break
            group = best_group[at]
            take = min(need, left[group])
            moved_group[moves], moved_rows[moves], moved_into[moves] = group, take, clusters
            moves += 1
            left[group] -= take
            need -= take
        total -= k
        clusters += 1
        keep = 0
        for where in range(living):  # order is kept, so that ties stay with the smaller number
            if left[alive[where]] > 0:
                alive[keep] = alive[where]
                keep += 1
        living = keep
    return moved_group[:moves], moved_rows[:moves], moved_into[:moves], seeds[:clusters]


@njit(cache=True)
def place_groups(
    order: Int64Array,
    left: Int64Array,
    places: FloatArray,
    weight: FloatArray,
    low: FloatArray,
    high: FloatArray,
    rows: Int64Array,
    squares: FloatArray,
    numeric: BoolArray,
    scale: FloatArray,
    trees: Trees,
) -> Int64Array:
    """The cluster each group of *order* joins whole: the one whose weighted information loss rises least.

    Clusters (covers *low*..*high*, *rows*, *squares*) grow in place. O(G C d).
    """
    clusters = low.shape[0]
    out = np.empty(order.size, dtype=np.int64)
    spread = np.empty(clusters)
    for cluster in range(clusters):
        spread[cluster] = _spread(
            low[cluster], high[cluster], low[cluster], high[cluster], numeric, scale, trees
        )
    for at in range(order.size):
        group = order[at]
        size = left[group]
        added = size * weight[group] ** 2
        best, least, joint_best = 0, np.inf, 0.0
        for cluster in range(clusters):
            joint = _spread(low[cluster], high[cluster], places[group], places[group], numeric, scale, trees)
            cost = np.sqrt(squares[cluster] + added) * (rows[cluster] + size) * joint
            cost -= np.sqrt(squares[cluster]) * rows[cluster] * spread[cluster]
            if cost < least:
                best, least, joint_best = cluster, cost, joint
        out[at] = best
        _absorb(low[best], high[best], places[group], places[group], numeric, trees)
        rows[best] += size
        squares[best] += added
        spread[best] = joint_best
    return out
