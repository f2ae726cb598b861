"""Pair prices: a lower bound from how far rows are from each other, for tables of numbers too.

Only sets of exactly k rows matter: if the prices of the rows of every k-set T add up to k cost(T) or less, then, averaged
over its k-subsets, those of every group S of s >= k rows add up to s cost(S) or less. In a column of numbers a gap that
lies between i and k - i rows of T is counted by i (k - i) <= floor(k^2 / 4) of its pairs, so the pairs' distances add up to
floor(k^2 / 4) times the width of T at most. Columns with blanks or trees are scaled by a factor f <= 1 that makes the same
true. With d(a, b) the sum of the scaled columns and any u >= 0,

    p(a) = kappa ((k - 1) u(a) - 1/2 sum over b of max(0, u(a) + u(b) - d(a, b))),    kappa = k / floor(k^2 / 4)

are such prices: summed over T they are at most kappa times the distances of its pairs. They are concave in u, which is
raised by subgradient steps. Only the nearest rows can have a part in the sum if u(a) is at most half the distance of the
last row that is looked at; these nearest rows are exact, not approximate.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
from numba import njit

from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.data.taxonomy import Taxonomy
from velado.release.methods._one_scan import keep_nearest
from velado.release.methods._row_covers import CoverMeasure, RowCovers, score

_STEPS = 300


def _factor(column: EncodedColumn, k: int) -> float:
    """f: the pairs of k rows whose cover costs c cost floor(k^2 / 4) c / f at most; 0 where that is not known."""
    half = k * k // 4
    if column.tree is not None:
        return half / _most_pairs(column.tree, k)
    places = column.positions[: column.missing] if column.missing >= 0 else column.positions
    if (
        places.size and places[-1] > 1 + 1e-9
    ):  # numbers beyond their domain: the cap on the cost breaks the count
        return 0.0
    if column.missing < 0:
        return 1.0
    return half / max(m * (k - m) + (k - m) ** 2 // 4 for m in range(k + 1))


def _most_pairs(tree: Taxonomy, k: int) -> float:
    """The largest sum over the pairs of k leaves, in units of what their common ancestor costs."""
    loss = tree.loss(np.arange(len(tree.labels)))
    most = float(k * k // 4)
    for node, children in enumerate(tree.children):
        if children and loss[node] > 0:
            parts = len(children)
            # Most pairs lie in different children when the rows are shared out evenly (Turan).
            small, more = divmod(k, parts)
            across = comb(k, 2) - more * comb(small + 1, 2) - (parts - more) * comb(small, 2)
            inside = max(float(loss[child]) for child in children) / float(loss[node])
            most = max(most, across + (comb(k, 2) - across) * inside)
    return most


@njit(cache=True)
def _exact_neighbours(
    measure: CoverMeasure, points: FloatArray, across: FloatArray, held: int
) -> tuple[Int32Array, FloatArray]:
    """The *held* nearest other records of each record, nearest first, and how far they are."""
    count = points.shape[0]
    near = np.empty((count, held), dtype=np.int32)
    far = np.empty((count, held))
    distance = np.empty(count)
    costs = np.empty(measure.widest)
    heap = np.empty(held, dtype=np.int64)
    for r in range(count):
        score(measure, across, count, points[r], points[r], costs, distance)
        limit = np.inf
        kept = 0
        for i in range(count):
            if i != r and distance[i] < limit:
                kept = keep_nearest(heap, distance, kept, held, i)
                if kept == held:
                    limit = distance[heap[0]]
        order = np.argsort(distance[heap])
        for j in range(held):
            near[r, j] = heap[order[j]]
            far[r, j] = distance[heap[order[j]]]
    return near, far


@njit(cache=True)
def _prices(
    u: FloatArray,
    k: int,
    weight: Int64Array,
    one: Int32Array,
    other: Int32Array,
    distance: FloatArray,
    active: FloatArray,
) -> FloatArray:
    """p of every record for *u*; *active* becomes the rows whose part in its sum is above nothing."""
    kappa = k / (k * k // 4)
    p = np.empty(u.size)
    for t in range(u.size):
        p[t] = (k - 1) * u[t] - (weight[t] - 1) * u[t]
        active[t] = weight[t] - 1
    for e in range(one.size):
        a, b = one[e], other[e]
        over = u[a] + u[b] - distance[e]
        if over > 0:
            p[a] -= 0.5 * weight[b] * over
            p[b] -= 0.5 * weight[a] * over
            active[a] += weight[b]
            active[b] += weight[a]
    return p * kappa


@njit(cache=True)
def _raised(
    u: FloatArray,
    most: FloatArray,
    k: int,
    weight: Int64Array,
    one: Int32Array,
    other: Int32Array,
    distance: FloatArray,
    cap: float,
    steps: int,
) -> FloatArray:
    """The prices of the best u met on the way up."""
    active = np.empty(u.size)
    best = np.zeros(u.size)
    highest = 0.0
    step = 0.3 * max(u.mean(), 1e-12) / k
    for _ in range(steps):
        p = np.minimum(_prices(u, k, weight, one, other, distance, active), cap)
        total = (p * weight).sum()
        if total > highest:
            highest = total
            best = p
        for t in range(u.size):
            u[t] = min(max(u[t] + step * (k - 1 - active[t]), 0.0), most[t])
        step *= 0.985
    return best


def _edges(near: Int32Array, far: FloatArray) -> tuple[Int32Array, Int32Array, FloatArray]:
    """Every pair of records one of which has the other among its neighbours, once."""
    count, held = near.shape
    one = np.repeat(np.arange(count, dtype=np.int64), held)
    other = near.ravel().astype(np.int64)
    key = np.minimum(one, other) * count + np.maximum(one, other)
    _, first = np.unique(key, return_index=True)
    return one[first].astype(np.int32), other[first].astype(np.int32), far.ravel()[first]


def pair_bound(data: EncodedTable, k: int, most_work: int) -> float:
    """A number that rows x cost of no grouping of *data* into groups of k rows or more undercuts, dropped rows at full cost.

    O(n^2 d) for the exact neighbours of n distinct records; 0 where that is more than *most_work*, or k is 1.

    >>> from velado.testing.examples import encoded
    >>> round(pair_bound(encoded(age=[20, 21, 30, 31]), 2, 1_000_000), 3)
    0.364
    """
    if k < 2 or data.rows < k:
        return 0.0
    factors = [_factor(column, k) for column in data.columns]
    used = tuple(
        replace(column, weight=column.weight * f, rounding=None)
        for column, f in zip(data.columns, factors, strict=True)
        if f > 0 and column.weight > 0
    )
    if not used:
        return 0.0
    covers = RowCovers.of(replace(data, columns=used))
    # A look into a table costs about three times what a difference costs.
    numbers = covers.measure.lines + 3 * (covers.columns - covers.measure.lines)
    if covers.records < 2 or covers.records**2 * numbers > most_work:
        return 0.0
    held = min(max(3 * k, 24), covers.records - 1)
    near, far = _exact_neighbours(covers.measure, covers.points, covers.across, held)
    whole = held == covers.records - 1
    most = np.full(covers.records, np.inf) if whole else far[:, -1] / 2
    # Half the distance of the (k - 1)-th other row.
    rows = covers.weight[:, None] - 1 + np.cumsum(covers.weight[near], axis=1)
    at = np.argmax(rows >= k - 1, axis=1)
    u = np.where(covers.weight >= k, 0.0, far[np.arange(covers.records), at] / 2)
    one, other, distance = _edges(near, far)
    price = _raised(
        u=np.minimum(u, most),
        most=most,
        k=k,
        weight=covers.weight,
        one=one,
        other=other,
        distance=distance,
        cap=float(sum(column.weight for column in data.columns)),
        steps=_STEPS,
    )
    # Sums in double precision err by less than this.
    return max(float((price * covers.weight).sum()) * (1 - 1e-9), 0.0)
