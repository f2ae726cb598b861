"""GFKMC's four phases, from the generalized view to the cluster of each row (algorithms 4.2-4.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from velado.anonymize.methods.gfkmc_kernels import Int64Array, Trees, cluster_groups, place_groups
from velado.anonymize.methods.gfkmc_view import Generalized
from velado.anonymize.methods.gfkmc_weights import outliers, weights
from velado.data.encode import EncodedTable
from velado.data.partition import BoolArray, FloatArray, Partition, group_by_codes


@dataclass(frozen=True, repr=False)
class Found:
    """Moves of rows from groups into clusters, and the group that seeded each cluster.

    The last *placed* moves are those of the adjustment: what was left over, or set aside as an outlier.
    """

    group: Int64Array
    rows: Int64Array
    into: Int64Array
    seeds: Int64Array
    initial: int
    outliers: int
    placed: int


def cluster(seen: Generalized, k: int, beta: float, paper: bool, random: np.random.Generator) -> Found:
    """Every group's rows are in clusters of at least k rows."""
    large = np.flatnonzero(seen.sizes >= k)  # algorithm 4.2
    small = np.flatnonzero(seen.sizes < k)
    moves = [(large, seen.sizes[large], np.arange(large.size))]
    if not small.size:
        return Found(*moves[0], large, int(large.size), 0, 0)
    weight = weights(seen, small, paper)
    strange = outliers(weight[small], seen.sizes[small], int(seen.sizes.sum()), beta, paper)
    if not large.size and seen.sizes[small[~strange]].sum() < k:
        strange[:] = False  # without any class yet, nobody may be set aside
    trees = (seen.n_parent, seen.n_first, seen.n_last, seen.n_leaves, seen.n_height)
    scale = seen.ranges if paper else np.ones(seen.numeric.size)
    usual = small[~strange]
    left = seen.sizes.copy()
    part = seen.sizes[usual].copy()
    seeds = np.empty(0, dtype=np.int64)
    if part.sum() >= k:
        group, rows, into, seeds = cluster_groups(
            k,
            int(random.integers(usual.size)),
            not paper,
            seen.places[usual],
            part,
            weight[usual],
            seen.numeric,
            scale,
            trees,
        )
        moves.append((usual[group], rows, into + large.size))
        seeds = usual[seeds]
        left[usual] = part
    every = np.concatenate([large, seeds])
    remaining = usual[left[usual] > 0]
    order = np.concatenate([random.permutation(remaining), random.permutation(small[strange])])
    if not every.size:  # fewer rows than k: one cluster of all, for repair() to judge
        return Found(small, seen.sizes[small], np.zeros(small.size, np.int64), small[:1], 0, 0, 0)
    if order.size:
        # The code of the paper offers new clusters only; without any, the initial classes must do.
        candidates = np.arange(every.size)
        if paper and seeds.size:
            candidates = candidates[large.size :]
        low, high, rows, squares = _covers(seen, moves, every.size, weight, trees)
        target = place_groups(
            order,
            left,
            seen.places,
            weight,
            low[candidates],
            high[candidates],
            rows[candidates],
            squares[candidates],
            seen.numeric,
            scale,
            trees,
        )
        moves.append((order, left[order], candidates[target]))
    group, rows, into = (np.concatenate(parts) for parts in zip(*moves, strict=True))
    return Found(group, rows, into, every, int(large.size), int(strange.sum()), int(order.size))


def _covers(
    seen: Generalized,
    moves: list[tuple[Int64Array, Int64Array, Int64Array]],
    clusters: int,
    weight: FloatArray,
    trees: Trees,
) -> tuple[FloatArray, FloatArray, Int64Array, FloatArray]:
    """Cover, rows and summed squared weights of the clusters as they stand after *moves*."""
    group, rows, into = (np.concatenate(parts) for parts in zip(*moves, strict=True))
    size = np.bincount(into, weights=rows, minlength=clusters).astype(np.int64)
    squares = np.bincount(into, weights=rows * weight[group] ** 2, minlength=clusters).astype(np.float64)
    low: FloatArray = np.full((clusters, seen.numeric.size), np.inf)
    high: FloatArray = np.full((clusters, seen.numeric.size), -np.inf)
    for at, numeric in enumerate(seen.numeric):
        place = seen.places[group, at]
        if numeric:
            np.minimum.at(low[:, at], into, place)
            np.maximum.at(high[:, at], into, place)
            continue
        parent, first, last = trees[0][at], trees[1][at], trees[2][at]
        node = place.astype(np.int64)
        least = np.full(clusters, first.size, dtype=np.int64)
        most = np.full(clusters, -1, dtype=np.int64)
        np.minimum.at(least, into, first[node])
        np.maximum.at(most, into, last[node])
        common = np.zeros(clusters, dtype=np.int64)
        common[into] = node  # climb from any member until everything is covered
        while True:
            narrow = (first[common] > least) | (last[common] < most)
            if not narrow.any():
                break
            common[narrow] = parent[common[narrow]]
        low[:, at] = high[:, at] = common
    return low, high, size, squares


def to_rows(data: EncodedTable, seen: Generalized, found: Found) -> tuple[Int64Array, BoolArray, Int64Array]:
    """The cluster of each row, whether the adjustment put it there, and a row that seeded each cluster.

    A group whose rows go to several clusters is dealt out in order of the true codes, so that neighbours
    stay together and the order of rows in the table does not matter.
    """
    record, _ = group_by_codes([c.codes for c in data.columns], [c.size for c in data.columns])
    order = np.lexsort((record, seen.group))
    dealt = np.argsort(found.group, kind="stable")
    labels = np.empty(data.rows, dtype=np.int64)
    labels[order] = np.repeat(found.into[dealt], found.rows[dealt])
    placed = np.empty(data.rows, dtype=bool)
    late = np.arange(found.group.size) >= found.group.size - found.placed
    placed[order] = np.repeat(late[dealt], found.rows[dealt])
    starts = np.concatenate(([0], np.cumsum(seen.sizes)[:-1]))
    return labels, placed, order[starts[found.seeds]]


def drop_costly(data: EncodedTable, labels: Int64Array, placed: BoolArray, droppable: int) -> Int64Array:
    """The labels with -1 for placed rows that cost their class more certainty than they hold themselves.

    For each class the loss of its rows together is compared with the loss of the others alone plus a
    whole loss for each placed row dropped; the classes that gain most per dropped row come first, while
    *droppable* rows last. So the loss, suppressed rows counted as 1, never rises. O(n d).
    """
    count = int(labels.max()) + 1
    together = Partition(labels.astype(np.int32), count)
    alone = Partition(np.where(placed, -1, labels).astype(np.int32), count)
    extra = together.sizes - alone.sizes
    gain = -extra.astype(np.float64) * len(data.columns)
    for column in data.columns:
        gain += together.sizes * column.loss(*together.least_and_greatest(column.codes))
        gain -= alone.sizes * column.loss(*alone.least_and_greatest(column.codes))
    good = np.flatnonzero(gain > 1e-9)
    good = good[np.argsort(-gain[good] / extra[good], kind="stable")]
    good = good[np.cumsum(extra[good]) <= droppable]
    chosen = np.zeros(count, dtype=bool)
    chosen[good] = True
    return np.where(placed & chosen[labels], -1, labels)
