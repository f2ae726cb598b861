"""Prices from pairs of rows: a lower bound that says something on numbers too.

Only groups of exactly k rows matter: if the prices of every k rows T add up to at most k cost(T), then, averaging over
the k-subsets of a larger group, the same holds for it. In a numeric column the gap between the i-th and the next of k
sorted rows is crossed by i (k - i) <= floor(k^2 / 4) pairs, so the distances of all pairs of T add up to at most
floor(k^2 / 4) times its width. Blanks and taxonomies keep the inequality when their distances are made smaller by a
factor f. For any u >= 0 the prices

    p_a = kappa [(k - 1) u_a - 1/2 sum_b max(0, u_a + u_b - d_ab)],    kappa = k / floor(k^2 / 4)

are therefore feasible, whatever u is; their sum is concave in u and is raised by subgradient steps. The sum over b needs
the rows near a alone: with u_a at most half the distance of the farthest row that is listed, all others add nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from velado.data.encode import EncodedTable
from velado.data.encoded import EncodedColumn
from velado.data.partition import group_by_codes
from velado.data.taxonomy import Taxonomy
from velado.release.methods.progressive._neighbour_graph import kd_blocks, offer

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]

_TABLED = 1024
"""A taxonomy's values are told apart by so many nodes at most: a table of their distances has the square of it."""
_BLOCK = 24
_STEPS = 300


class PairSpace(NamedTuple):
    """The distinct rows of a table in which the distances of pairs are summed; see `pair_space`.

    *line* has one row per tuple: the place in each numeric column; *most* is the largest distance of each. *leaf* has
    the node of each tuple in each taxonomy column, whose distances start at *base* in *apart* (*size* by *size*).
    *weight* counts the table's rows of each tuple, *of_row* is the tuple of each row.

    >>> from velado.testing.examples import encoded
    >>> pair_space(encoded(age=[20, 20, 30, 40]), 2).weight.tolist()
    [2, 1, 1]
    """

    line: FloatArray
    most: FloatArray
    leaf: IntArray
    base: IntArray
    size: IntArray
    apart: FloatArray
    weight: IntArray
    of_row: IntArray


def pair_space(data: EncodedTable, k: int, exact: bool = False) -> PairSpace:
    """The distinct rows of *data* with distances whose sum over *k* rows stays below floor(k^2/4) times their cover.

    *exact* leaves the factors out, so that the distance of two rows is what their cover costs, and each row alone.

    >>> from velado.testing.examples import encoded
    >>> pair_space(encoded(age=[20, 20, 30, 40]), 2).line.ravel().tolist()
    [0.0, 0.5, 1.0]
    """
    if exact:
        label, count = np.arange(data.rows, dtype=np.int32), data.rows
    else:
        label, count = group_by_codes([c.codes for c in data.columns], [c.size for c in data.columns])
    example = np.zeros(count, dtype=np.int64)
    example[label] = np.arange(label.size)
    codes = data.matrix[example]
    line = np.empty((count, sum(column.is_numeric for column in data.columns)))
    leaf = np.empty((count, len(data.columns) - line.shape[1]), dtype=np.int64)
    most: list[float] = []
    tables: list[FloatArray] = []
    for at, column in enumerate(data.columns):
        if column.is_numeric:
            factor = column.weight * (_blank_factor(k) if column.missing >= 0 and not exact else 1.0)
            line[:, len(most)] = factor * column.positions[codes[:, at]]
            most.append(factor)
        else:
            node, table = _tree_distances(column, k, exact)
            leaf[:, len(tables)] = node[codes[:, at]]
            tables.append(column.weight * table)
    sizes = [len(table) for table in tables]
    return PairSpace(
        line=line,
        most=np.array(most, dtype=np.float64),
        leaf=leaf,
        base=np.cumsum([0, *(size * size for size in sizes)])[:-1].astype(np.int64),
        size=np.array(sizes, dtype=np.int64),
        apart=np.concatenate([np.empty(0), *(table.ravel() for table in tables)]),
        weight=np.bincount(label, minlength=count).astype(np.int64),
        of_row=label.astype(np.int64),
    )


def _blank_factor(k: int) -> float:
    """With m blanks among k rows, m (k - m) pairs are a whole domain apart and the others' distances add up as ever."""
    return (k * k // 4) / max(m * (k - m) + (k - m) ** 2 // 4 for m in range(k + 1))


def _tree_distances(column: EncodedColumn, k: int, exact: bool) -> tuple[IntArray, FloatArray]:
    """The node that stands for each leaf, in the tree's order, and the distances of nodes: the loss of what joins them.

    Of k rows below a node of r children at most Turan(k, r) pairs lie in different children; the others cost no more
    than the dearest child: from that comes f. Of a tree with very many leaves the nodes of a level are told apart, which
    makes distances smaller.
    """
    tree = column.tree
    assert tree is not None
    level = 0
    while np.unique(tree.levels[:, level]).size > _TABLED:
        level += 1
    known = tree.levels[:, level]
    node_of = np.concatenate(([0], np.cumsum(known[1:] != known[:-1]))).astype(np.int64)
    first = np.flatnonzero(np.concatenate(([True], known[1:] != known[:-1])))
    low, high = np.minimum.outer(first, first), np.maximum.outer(first, first)
    joined = tree.loss(tree.common_ancestor(low.ravel(), high.ravel())).reshape(low.shape)
    np.fill_diagonal(joined, 0.0)
    return node_of, joined if exact else _tree_factor(tree, k) * joined


def _tree_factor(tree: Taxonomy, k: int) -> float:
    loss = tree.loss(np.arange(len(tree.labels)))
    below = np.arange(tree.root)  # the root is its own parent
    children = np.bincount(tree.parent[below], minlength=loss.size)
    dearest = np.zeros(loss.size)
    np.maximum.at(dearest, tree.parent[below], loss[below])
    pairs, worst = k * (k - 1) // 2, 0.0
    for node in np.flatnonzero((loss > 0) & (children > 0)).tolist():
        across = _across(k, int(children[node]))
        worst = max(worst, across + (pairs - across) * min(1.0, float(dearest[node] / loss[node])))
    return (k * k // 4) / worst if worst else 0.0


def _across(k: int, parts: int) -> int:
    """The most pairs of *k* things that can lie in different ones of *parts* boxes (Turan)."""
    if parts <= 1:
        return 0
    each, more = divmod(k, parts)
    within = more * (each + 1) * each // 2 + (parts - more) * each * (each - 1) // 2
    return k * (k - 1) // 2 - within


@njit(cache=True)
def _distance(space: PairSpace, a: int, b: int, limit: float) -> float:
    """The distance of two tuples; infinity as soon as it is known to reach *limit*."""
    out = 0.0
    for c in range(space.line.shape[1]):
        out += min(abs(space.line[a, c] - space.line[b, c]), space.most[c])
        if out >= limit:
            return np.inf
    for c in range(space.leaf.shape[1]):
        out += space.apart[space.base[c] + space.leaf[a, c] * space.size[c] + space.leaf[b, c]]
    return out if out < limit else np.inf


@njit(cache=True)
def _nearest(
    space: PairSpace, wanted: int, order: IntArray, starts: IntArray, low: FloatArray, high: FloatArray
) -> tuple[Int32Array, FloatArray]:
    """The *wanted* nearest other tuples of each tuple, exactly, and their distances, rising.

    Tuples lie in blocks with a box around each. A tuple looks at the blocks from the nearest box on and stops at the
    first whose box is as far away as the last it holds. Taxonomies are left out of the distance to a box.
    """
    line, most = space.line, space.most
    blocks = starts.size - 1
    found = np.full((order.size, wanted), -1, np.int32)
    far = np.full((order.size, wanted), np.inf)
    gap = np.empty(blocks)
    for a in range(order.size):
        for block in range(blocks):
            gap[block] = 0.0
            for c in range(line.shape[1]):
                if line[a, c] < low[block, c]:
                    gap[block] += min(low[block, c] - line[a, c], most[c])
                elif line[a, c] > high[block, c]:
                    gap[block] += min(line[a, c] - high[block, c], most[c])
        for block in np.argsort(gap):
            if gap[block] >= far[a, wanted - 1]:
                break
            for i in range(starts[block], starts[block + 1]):
                b = order[i]
                if b == a:
                    continue
                offer(found, far, a, b, _distance(space, a, b, far[a, wanted - 1]))
    return found, far


class _Listed(NamedTuple):
    """Each tuple's neighbours (those it lists and those that list it), nearest first; *most* is what u may be at most."""

    weight: IntArray
    starts: IntArray
    other: IntArray
    apart: FloatArray
    most: FloatArray


@njit(cache=True)
def _over(near: _Listed, u: FloatArray, a: int) -> tuple[float, float]:
    """sum_b max(0, u_a + u_b - d_ab), and how many rows b add to it."""
    over = (near.weight[a] - 1) * 2 * u[a]
    active = float(near.weight[a] - 1)
    for i in range(near.starts[a], near.starts[a + 1]):
        more = u[a] + u[near.other[i]] - near.apart[i]
        if more > 0:
            over += near.weight[near.other[i]] * more
            active += near.weight[near.other[i]]
    return over, active


@njit(cache=True)
def _ascend(near: _Listed, k: int, steps: int, scale: FloatArray) -> FloatArray:
    """Prices without kappa after the best of *steps* subgradient steps from half of *scale*.

    u rises where fewer than k - 1 pairs are active, and falls where more are.
    """
    u = np.minimum(scale / 2, near.most)
    price, best = np.empty(u.size), np.zeros(u.size)
    active = np.empty(u.size)
    best_total = 0.0
    for step in range(steps):
        total = 0.0
        for a in range(u.size):
            over, active[a] = _over(near, u, a)
            price[a] = (k - 1) * u[a] - 0.5 * over
            total += near.weight[a] * price[a]
        if total > best_total:
            best_total = total
            best[:] = price
        length = 0.5 * (1.0 - step / steps) / (1.0 + 0.05 * step)
        for a in range(u.size):
            push = max((k - 1 - active[a]) / (k - 1), -1.0)
            u[a] = min(max(u[a] + length * scale[a] * push, 0.0), near.most[a])
    return best


@njit(cache=True)
def _kth(near: _Listed, wanted: int) -> FloatArray:
    """The distance of the *wanted*-th nearest row of each tuple, copies of its own first."""
    out = np.full(near.weight.size, 1e-9)
    for a in range(near.weight.size):
        held = near.weight[a] - 1
        i = near.starts[a]
        while held < wanted and i < near.starts[a + 1]:
            out[a] = max(near.apart[i], 1e-9)
            held += near.weight[near.other[i]]
            i += 1
    return out


def pair_prices(data: EncodedTable, k: int) -> FloatArray:
    """A price for each row of *data*: those of any k rows add up to at most k times what their cover costs.

    O(rows^2) where nothing tells far rows apart early; with few numeric columns far less.

    >>> from velado.testing.examples import encoded
    >>> pair_prices(encoded(age=[20, 20, 30, 40]), 2).round(3).tolist()
    [0.0, 0.0, 0.5, 0.5]
    """
    space = pair_space(data, k)
    if space.weight.size < 2:
        return np.zeros(data.rows)
    near = _listed(space, max(3 * k, 24))
    prices = _ascend(near, k, _STEPS, _kth(near, k - 1)) * k / (k * k // 4)
    # A dropped row costs all its columns: no price may be higher.
    return np.minimum(prices, sum(column.weight for column in data.columns))[space.of_row]


def nearest(space: PairSpace, wanted: int) -> tuple[Int32Array, FloatArray]:
    """The *wanted* nearest other tuples of each tuple of *space*, exactly, and their distances.

    >>> from velado.testing.examples import encoded
    >>> nearest(pair_space(encoded(age=[20, 22, 30, 40]), 2), 1)[0].ravel().tolist()
    [1, 0, 1, 2]
    """
    places = space.line if space.line.shape[1] else space.leaf.astype(np.float64)
    ones = np.ones(len(places), dtype=np.int64)
    order, blocks = kd_blocks(np.ascontiguousarray(places.T), ones, _BLOCK, np.array([1], dtype=np.int64))
    low = np.minimum.reduceat(space.line[order], blocks[:-1], axis=0)
    high = np.maximum.reduceat(space.line[order], blocks[:-1], axis=0)
    return _nearest(space, wanted, order, blocks, low, high)


def _listed(space: PairSpace, wanted: int) -> _Listed:
    count = space.weight.size
    wanted = min(wanted, count - 1)
    found, far = nearest(space, wanted)
    most = np.full(count, np.inf) if wanted == count - 1 else far[:, -1] / 2
    a = np.repeat(np.arange(count), wanted)
    key = np.minimum(a, found.ravel()).astype(np.int64) * count + np.maximum(a, found.ravel())
    key, at = np.unique(key, return_index=True)
    one, two, distance = key // count, key % count, far.ravel()[at]
    rows = np.concatenate((one, two))
    others = np.concatenate((two, one))
    distances = np.concatenate((distance, distance))
    sort = np.lexsort((distances, rows))
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count)))).astype(np.int64)
    return _Listed(space.weight, starts, others[sort], distances[sort], most)
