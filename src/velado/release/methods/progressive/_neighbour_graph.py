"""Which records are near each other: a few neighbours of each, exact on small tables, nearly so on large ones."""

from __future__ import annotations

import numpy as np

from velado.compiled import njit
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.release.methods._row_covers import CoverMeasure, RowCovers, column_cost, score

NEIGHBOURS = 12
_BRUTE = 1500
"""Up to so many records every pair is looked at."""
_BLOCK = 600
_TOGETHER = 64
"""Records are put by such heaps of near ones."""
_LARGE = 200_000
"""From so many records on blocks are half as large: the graph must not cost more than the search."""


@njit(cache=True)
def next_random(state: Int64Array) -> float:
    """A number in 0..1 from a small generator kept in *state* (xorshift64*): the same on every machine.

    >>> next_random(np.array([1], dtype=np.int64)) == next_random(np.array([1], dtype=np.int64))
    True
    """
    x = np.uint64(state[0])
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = np.int64(x)
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def kd_blocks(
    places: FloatArray, rows: Int64Array, most: int, random: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """The items (columns of *places*) in blocks of at most *most* rows: an order of items, and where blocks begin.

    A part is cut at a random place near its median, along the wider of two columns drawn at random, so that every call
    cuts elsewhere. An item alone may have more rows than that.

    >>> places, rows = np.array([[3.0, 1.0, 2.0, 0.0]]), np.ones(4, dtype=np.int64)
    >>> order, begins = kd_blocks(places, rows, 2, np.array([7], dtype=np.int64))
    >>> order.tolist(), begins.tolist()
    ([3, 1, 2, 0], [0, 2, 4])
    """
    columns, count = places.shape
    order = np.arange(count)
    begins = np.empty(count + 1, dtype=np.int64)
    blocks = 0
    stack_start = np.empty(count + 2, dtype=np.int64)
    stack_end = np.empty(count + 2, dtype=np.int64)
    stack_start[0], stack_end[0] = 0, count
    waiting = 1
    while waiting > 0:
        waiting -= 1
        start, end = stack_start[waiting], stack_end[waiting]
        total = 0
        for i in range(start, end):
            total += rows[order[i]]
        chosen = -1
        if total > most and end - start > 1:
            widest = 0.0
            step = max((end - start) // 64, 1)
            for _ in range(3):
                c = int(next_random(random) * columns)
                mean = 0.0
                square = 0.0
                seen = 0
                for i in range(start, end, step):
                    x = places[c, order[i]]
                    mean += x
                    square += x * x
                    seen += 1
                spread = square / seen - (mean / seen) ** 2
                if spread > widest or chosen < 0:
                    widest = spread
                    chosen = c
        if chosen < 0:
            begins[blocks] = start
            blocks += 1
            continue
        values = np.empty(end - start)
        for i in range(start, end):
            values[i - start] = places[chosen, order[i]]
        rank = np.argsort(values, kind="mergesort")
        order[start:end] = order[start:end][rank]
        half = 0
        wanted = total * (0.4 + 0.2 * next_random(random))
        cut = start
        while cut < end - 1 and (half < wanted or cut == start):
            half += rows[order[cut]]
            cut += 1
        stack_start[waiting], stack_end[waiting] = cut, end
        waiting += 1
        stack_start[waiting], stack_end[waiting] = start, cut
        waiting += 1
    begins[blocks] = count
    return order, begins[: blocks + 1]


@njit(cache=True)
def offer(near: Int32Array, far: FloatArray, r: int, other: int, distance: float) -> bool:
    """*other* takes its place among the neighbours of r if it is nearer than the last of them; True if it did.

    >>> near, far = np.array([[4, -1]], dtype=np.int32), np.array([[0.5, np.inf]])
    >>> offer(near, far, 0, 7, 0.2), near.tolist(), offer(near, far, 0, 9, 0.9)
    (True, [[7, 4]], False)
    """
    held = near.shape[1]
    if distance >= far[r, held - 1]:
        return False
    for j in range(held):
        if near[r, j] == other:
            return False
    at = held - 1
    while at > 0 and far[r, at - 1] > distance:
        near[r, at] = near[r, at - 1]
        far[r, at] = far[r, at - 1]
        at -= 1
    near[r, at] = other
    far[r, at] = distance
    return True


@njit(cache=True)
def _pair_cost(measure: CoverMeasure, one: FloatArray, other: FloatArray, limit: float) -> float:
    total = 0.0
    for c in range(one.size):
        if one[c] < other[c]:
            total += column_cost(measure, c, one[c], other[c])
        elif one[c] > other[c]:
            total += column_cost(measure, c, other[c], one[c])
        if total >= limit:
            return np.inf
    return total


@njit(cache=True)
def _within_blocks(
    measure: CoverMeasure,
    points: FloatArray,
    order: Int64Array,
    begins: Int64Array,
    near: Int32Array,
    far: FloatArray,
) -> None:
    columns = points.shape[1]
    costs = np.empty(measure.widest)
    largest = 0
    for b in range(begins.size - 1):
        largest = max(largest, begins[b + 1] - begins[b])
    across = np.empty((columns, largest))
    distance = np.empty(largest)
    for b in range(begins.size - 1):
        start, count = begins[b], begins[b + 1] - begins[b]
        for i in range(count):
            for c in range(columns):
                across[c, i] = points[order[start + i], c]
        for i in range(count):
            r = order[start + i]
            score(measure, across, count, points[r], points[r], costs, distance)
            for j in range(count):
                if j != i:
                    offer(near, far, r, order[start + j], distance[j])


@njit(cache=True)
def _through_neighbours(measure: CoverMeasure, points: FloatArray, near: Int32Array, far: FloatArray) -> None:
    """Neighbours of neighbours are tried as neighbours, both ways."""
    count, held = near.shape
    stamp = np.full(count, -1, dtype=np.int32)
    for r in range(count):
        stamp[r] = r
        for j in range(held):
            if near[r, j] >= 0:
                stamp[near[r, j]] = r
        for j in range(held):
            between = near[r, j]
            if between < 0:
                continue
            for i in range(held // 2):
                other = near[between, i]
                if other < 0 or stamp[other] == r:
                    continue
                stamp[other] = r
                limit = max(far[r, held - 1], far[other, held - 1])
                distance = _pair_cost(measure, points[r], points[other], limit)
                if distance < limit:
                    offer(near, far, r, other, distance)
                    offer(near, far, other, r, distance)


def neighbour_graph(covers: RowCovers, random: Int64Array) -> Int32Array:
    """The nearest other records of each record, nearest first; -1 where there are not that many.

    Exact to 1,500 records. Above, two random cuts into blocks of 600 are searched, then twice (on large tables once)
    the neighbours of neighbours. O(n d) with a factor of the block.

    >>> from velado.testing.examples import encoded
    >>> covers = RowCovers.of(encoded(age=[20, 21, 30]))
    >>> neighbour_graph(covers, np.array([1], dtype=np.int64))[:, :2].tolist()
    [[1, 2], [0, 2], [1, 0]]
    """
    near = np.full((covers.records, NEIGHBOURS), -1, dtype=np.int32)
    far = np.full((covers.records, NEIGHBOURS), np.inf)
    ones = np.ones(covers.records, dtype=np.int64)
    small = covers.records <= _BRUTE
    block = _BRUTE if small else _BLOCK if covers.records < _LARGE else _BLOCK // 2
    places = scaled(covers)
    for _ in range(1 if small else 2):
        order, begins = kd_blocks(places, ones, block, random)
        _within_blocks(covers.measure, covers.points, order, begins, near, far)
    if not small:
        for _ in range(2 if covers.records < _LARGE else 1):
            _through_neighbours(covers.measure, covers.points, near, far)
    return near


def gathered(covers: RowCovers, random: Int64Array) -> RowCovers:
    """The same records in an order in which near ones lie together, so that what a step touches is in the cache.

    >>> from velado.testing.examples import encoded
    >>> covers = gathered(RowCovers.of(encoded(age=[20, 30, 20, 40])), np.array([1], dtype=np.int64))
    >>> covers.points[covers.record_of].ravel().tolist()
    [0.0, 0.5, 0.0, 1.0]
    """
    ones = np.ones(covers.records, dtype=np.int64)
    order, _ = kd_blocks(scaled(covers), ones, _TOGETHER, random)
    place = np.empty(covers.records, dtype=np.int32)
    place[order] = np.arange(covers.records, dtype=np.int32)
    points = np.ascontiguousarray(covers.points[order])
    across = np.ascontiguousarray(covers.across[:, order])
    return RowCovers(points, across, covers.weight[order], place[covers.record_of], covers.measure)


def scaled(covers: RowCovers) -> FloatArray:
    """Column x record, every column as long as its weight: leaf codes become places on a line too."""
    size, lines = covers.measure.size, covers.measure.lines
    factor = np.ones(covers.columns)
    factor[lines:] = covers.measure.most[lines:] / np.maximum(size[lines:] - 1, 1)
    return np.asarray(covers.across * factor[:, None])
