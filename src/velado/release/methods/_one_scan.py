"""One-scan k-member: each seed is scored against all records left once; that gives its nearest, and the next seed."""

from __future__ import annotations

import numpy as np

from velado.compiled import njit
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.release.methods._row_covers import CoverMeasure, RowCovers, cover_cost, joint_cost, score


@njit(cache=True, nogil=True)
def keep_nearest(heap: Int64Array, key: FloatArray, held: int, room: int, item: int) -> int:
    """*item* in the heap of the *room* items of least key (the largest on top) if it is one; returns how many there are."""
    if held < room:
        at = held
        held += 1
        while at > 0 and key[heap[(at - 1) // 2]] < key[item]:
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
        heap[at] = item
        return held
    at = 0
    while True:
        below = 2 * at + 1
        if below >= held:
            break
        if below + 1 < held and key[heap[below + 1]] > key[heap[below]]:
            below += 1
        if key[heap[below]] <= key[item]:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = item
    return held


@njit(cache=True, nogil=True)
def note_move(
    moved_record: Int64Array,
    moved_rows: Int64Array,
    moved_into: Int64Array,
    moves: int,
    record: int,
    rows: int,
    cluster: int,
) -> int:
    """That *rows* rows of *record* went into *cluster* is the next entry of the list; returns how many there are."""
    moved_record[moves] = record
    moved_rows[moves] = rows
    moved_into[moves] = cluster
    return moves + 1


@njit(cache=True, nogil=True)
def grow_clusters(
    measure: CoverMeasure, points: FloatArray, left: Int64Array, k: int, seed: int
) -> tuple[Int64Array, Int64Array, Int64Array, int]:
    """Clusters of *k* rows each from records with *left* rows; fewer than k rows stay in *left*.

    One `score` from the seed over all records left gives the 16 k + 64 nearest, from which the cluster grows by
    whatever widens it least, and the farthest, the next seed. Returns the moves (record, rows, cluster) and the number
    of clusters. O(n^2 d / k) for n distinct records, a k-th of asking all of them again for every member.
    """
    count, columns = points.shape
    total = left.sum()
    moved_record = np.empty(count + total // k, dtype=np.int64)  # a move empties a record or fills a cluster
    moved_rows = np.empty(moved_record.size, dtype=np.int64)
    moved_into = np.empty(moved_record.size, dtype=np.int64)
    moves = 0
    across = np.empty((columns, count))
    name = np.empty(count, dtype=np.int64)
    place = np.full(count, -1, dtype=np.int64)
    living = 0
    for r in range(count):
        if left[r] > 0:
            name[living] = r
            place[r] = living
            for c in range(columns):
                across[c, living] = points[r, c]
            living += 1
    distance = np.empty(count)
    costs = np.empty(measure.widest)
    room = 16 * k + 64
    near = np.empty(room, dtype=np.int64)
    low = np.empty((1, columns))
    high = np.empty((1, columns))
    if left[seed] == 0 and living:
        seed = name[0]
    clusters = 0
    while total >= k:
        low[0] = points[seed]
        high[0] = points[seed]
        score(measure, across, living, points[seed], points[seed], costs, distance)
        held = 0
        far = -1
        farthest = -1.0
        limit = np.inf
        for i in range(living):
            if distance[i] > farthest:
                farthest = distance[i]
                far = i
            if distance[i] < limit:
                held = keep_nearest(near, distance, held, room, i)
                if held == room:
                    limit = distance[near[0]]
        following = name[far]
        for j in range(held):
            near[j] = name[near[j]]
        need = k
        record = seed
        while True:
            rows = min(need, left[record])
            left[record] -= rows
            need -= rows
            moves = note_move(moved_record, moved_rows, moved_into, moves, record, rows, clusters)
            for c in range(columns):
                low[0, c] = min(low[0, c], points[record, c])
                high[0, c] = max(high[0, c], points[record, c])
            if left[record] == 0:
                living -= 1
                at = place[record]
                last = name[living]
                name[at] = last
                place[last] = at
                for c in range(columns):
                    across[c, at] = across[c, living]
            if need == 0:
                break
            best = np.inf
            kept = 0
            for j in range(held):
                if left[near[j]] == 0:
                    continue
                near[kept] = near[j]
                kept += 1
                joint = joint_cost(measure, low, high, 0, points, near[j], best)
                if joint < best:
                    best = joint
                    record = near[j]
            held = kept
        total -= k
        clusters += 1
        if living:
            seed = following if left[following] > 0 else name[0]
    return moved_record[:moves], moved_rows[:moves], moved_into[:moves], clusters


@njit(cache=True, nogil=True)
def place_leftovers(
    measure: CoverMeasure,
    points: FloatArray,
    left: Int64Array,
    low: FloatArray,
    high: FloatArray,
    rows: Int64Array,
) -> Int64Array:
    """For each record with rows left, the cluster whose rows lose least by taking them in; covers grow in place.

    Loss is |cluster| x cover, so a wide cluster with few rows is cheaper to widen than a narrow one with many.
    """
    count, columns = points.shape
    clusters = low.shape[0]
    target = np.full(count, -1, dtype=np.int64)
    price = np.empty(clusters)
    for g in range(clusters):
        price[g] = cover_cost(measure, low, high, g)
    for record in range(count):
        if left[record] == 0:
            continue
        best = np.inf
        for g in range(clusters):
            limit = (best + rows[g] * price[g]) / (rows[g] + left[record])
            after = joint_cost(measure, low, high, g, points, record, limit)
            if after < np.inf:
                best = (rows[g] + left[record]) * after - rows[g] * price[g]
                target[record] = g
        chosen = target[record]
        for c in range(columns):
            low[chosen, c] = min(low[chosen, c], points[record, c])
            high[chosen, c] = max(high[chosen, c], points[record, c])
        price[chosen] = cover_cost(measure, low, high, chosen)
        rows[chosen] += left[record]
    return target


def farthest(covers: RowCovers, record: int) -> int:
    """The record whose joint cover with *record* costs most.

    >>> from velado.testing.examples import encoded
    >>> farthest(RowCovers.of(encoded(age=[20, 21, 30])), 0)
    2
    """
    out = np.empty(covers.records)
    point = covers.points[record]
    score(covers.measure, covers.across, covers.records, point, point, np.empty(covers.measure.widest), out)
    return int(np.argmax(out))


def one_scan(
    covers: RowCovers, weight: Int64Array, k: int, seed: int
) -> tuple[Int64Array, Int64Array, Int64Array, int]:
    """Clusters of *k* rows or more over all rows of *weight*: the moves (record, rows, cluster) and how many clusters.

    What is left at the end joins the cluster it widens least. With fewer than k rows there is no cluster.

    >>> from velado.testing.examples import encoded
    >>> covers = RowCovers.of(encoded(age=[20, 21, 30, 31]))
    >>> record, rows, into, count = one_scan(covers, covers.weight, 2, 0)
    >>> record.tolist(), into.tolist()
    ([0, 1, 3, 2], [0, 0, 1, 1])
    """
    left = weight.copy()
    return with_leftovers(covers, left, k, grow_clusters(covers.measure, covers.points, left, k, seed))


def with_leftovers(
    covers: RowCovers, left: Int64Array, k: int, grown: tuple[Int64Array, Int64Array, Int64Array, int]
) -> tuple[Int64Array, Int64Array, Int64Array, int]:
    """The moves of *grown* clusters of *k* rows, and those of the rows *left*: each joins the cluster it widens least.

    >>> from velado.testing.examples import encoded
    >>> covers = RowCovers.of(encoded(age=[20, 21, 30, 31, 40]))
    >>> grown = np.array([0, 1, 2, 3]), np.ones(4, np.int64), np.array([0, 0, 1, 1]), 2
    >>> with_leftovers(covers, np.array([0, 0, 0, 0, 1]), 2, grown)[2].tolist()
    [0, 0, 1, 1, 1]
    """
    record, rows, into, count = grown
    rest = np.flatnonzero(left > 0)
    if not rest.size or not count:
        return record, rows, into, count
    low = np.full((count, covers.columns), np.inf)
    high = np.full((count, covers.columns), -np.inf)
    np.minimum.at(low, into, covers.points[record])
    np.maximum.at(high, into, covers.points[record])
    target = place_leftovers(
        covers.measure, covers.points, left, low, high, np.full(count, k, dtype=np.int64)
    )
    return (
        np.concatenate((record, rest)),
        np.concatenate((rows, left[rest])),
        np.concatenate((into, target[rest])),
        count,
    )


def labels_of_moves(
    record_of: Int32Array, record: Int64Array, rows: Int64Array, into: Int64Array
) -> Int64Array:
    """The cluster of each table row: the moves of a record are spread over its rows in table order.

    >>> labels_of_moves(np.array([0, 1, 0], np.int32), np.array([1, 0, 0]), np.array([1, 1, 1]), np.array([5, 7, 8]))
    array([7, 5, 8])
    """
    order = np.argsort(record, kind="stable")
    labels = np.empty(record_of.size, dtype=np.int64)
    labels[np.argsort(record_of, kind="stable")] = np.repeat(into[order], rows[order])
    return labels
