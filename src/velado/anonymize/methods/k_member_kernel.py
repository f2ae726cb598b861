"""The loops of k-member and of nearest-neighbour clustering, on distinct records with weights."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from velado.anonymize.methods.cover_tables import Tables, cover_loss, fill_costs

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


@njit(cache=True)
def _score(records, alive, living, costs, base, out):  # type: ignore[no-untyped-def]
    columns = records.shape[1]
    for at in range(living):
        record = alive[at]
        total = 0.0
        for column in range(columns):
            total += costs[base[column] + records[record, column]]
        out[at] = total


@njit(cache=True)
def grow_clusters(
    records: Int32Array, left: Int64Array, k: int, turn: Int64Array, greedy: bool, tables: Tables, width: int
) -> tuple[Int64Array, Int64Array, Int64Array, int]:
    """Clusters of exactly *k* rows; what remains in *left* are fewer than k rows.

    If *greedy* (k-member, Byun et al. 2007) the next seed is the record farthest from the last one, and each
    next member the record that widens the cluster least, asked again after every member; else (nearest-neighbour
    clustering) seeds come in the order *turn* and take their k - 1 nearest records at once. Returns the moves (record, rows, cluster) and
    the number of clusters. O(n^2 d) for k-member over distinct records, O(n^2 d / k) for the other.
    """
    base = tables[1]
    count, columns = records.shape
    total = left.sum()
    most = total // k
    moved_record = np.empty(count + most, dtype=np.int64)  # a move empties a record or fills a cluster
    moved_rows = np.empty(moved_record.size, dtype=np.int64)
    moved_into = np.empty(moved_record.size, dtype=np.int64)
    moves = 0
    alive = np.arange(count)
    living = count
    costs = np.empty(width)
    score = np.empty(count)
    low = np.empty(columns, dtype=np.int32)
    high = np.empty(columns, dtype=np.int32)
    seed = turn[0]
    following = 0
    clusters = 0
    while total >= k:
        if greedy:
            low[:] = records[seed]
            high[:] = records[seed]
            fill_costs(low, high, tables, costs)
            _score(records, alive, living, costs, base, score)
            far = 0
            for at in range(1, living):
                if score[at] > score[far]:
                    far = at
            seed = alive[far]
        else:
            while left[turn[following]] == 0:
                following += 1
            seed = turn[following]
        low[:] = records[seed]
        high[:] = records[seed]
        fill_costs(low, high, tables, costs)
        _score(records, alive, living, costs, base, score)
        need = k
        while need > 0:
            best = -1
            for at in range(living):
                if left[alive[at]] > 0 and (best < 0 or score[at] < score[best]):
                    best = at
            record = alive[best]
            rows = min(need, left[record])
            left[record] -= rows
            need -= rows
            moved_record[moves] = record
            moved_rows[moves] = rows
            moved_into[moves] = clusters
            moves += 1
            if greedy and need > 0:
                changed = False
                for column in range(columns):
                    code = records[record, column]
                    if code < low[column]:
                        low[column] = code
                        changed = True
                    if code > high[column]:
                        high[column] = code
                        changed = True
                if changed:
                    fill_costs(low, high, tables, costs)
                    _score(records, alive, living, costs, base, score)
        total -= k
        clusters += 1
        write = 0
        for at in range(living):
            if left[alive[at]] > 0:
                alive[write] = alive[at]
                write += 1
        living = write
    return moved_record[:moves], moved_rows[:moves], moved_into[:moves], clusters


@njit(cache=True)
def place_leftovers(
    records: Int32Array,
    left: Int64Array,
    low: Int32Array,
    high: Int32Array,
    rows: Int64Array,
    tables: Tables,
) -> Int64Array:
    """For each record with rows left, the cluster whose rows lose least by taking them in; covers grow in place.

    Loss is |cluster| x cover, so a wide cluster with few rows is cheaper to widen than a narrow one with many.
    """
    count, columns = records.shape
    target = np.full(count, -1, dtype=np.int64)
    for record in range(count):
        if left[record] == 0:
            continue
        best = np.inf
        for cluster in range(low.shape[0]):
            before = 0.0
            after = 0.0
            for column in range(columns):
                code = records[record, column]
                before += cover_loss(column, low[cluster, column], high[cluster, column], tables)
                after += cover_loss(
                    column, min(low[cluster, column], code), max(high[cluster, column], code), tables
                )
            increase = (rows[cluster] + left[record]) * after - rows[cluster] * before
            if increase < best:
                best = increase
                target[record] = cluster
        chosen = target[record]
        for column in range(columns):
            code = records[record, column]
            low[chosen, column] = min(low[chosen, column], code)
            high[chosen, column] = max(high[chosen, column], code)
        rows[chosen] += left[record]
    return target
