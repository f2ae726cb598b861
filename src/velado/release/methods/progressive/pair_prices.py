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

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.encoded import EncodedColumn
from velado.data.taxonomy import Taxonomy
from velado.release.methods.progressive._neighbour_graph import kd_blocks, offer

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]

_TABLED = 1024
"""A taxonomy's values are told apart by so many nodes at most: a table of their distances has the square of it."""
_BLOCK, _LARGE_BLOCK, _LARGE = 24, 128, 100_000
"""Tuples in a block; from so many on in all, blocks are larger: few rows look at all blocks then."""
_STEPS, _FEWER_STEPS, _FEW_PAIRS = 300, 60, 1_200_000
"""Subgradient steps, and those of lists of more pairs than that: the last 240 gained next to nothing there."""
MOST_PAIRS = 3_200_000
"""Pairs of a tuple and one near it that are listed, about: some seconds, and half a gigabyte."""


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
    of_row: Int32Array


def pair_space(data: EncodedTable, k: int, exact: bool = False) -> PairSpace:
    """The distinct rows of *data* with distances whose sum over *k* rows stays below floor(k^2/4) times their cover.

    *exact* leaves the factors out, so that the distance of two rows is what their cover costs.

    >>> from velado.testing.examples import encoded
    >>> pair_space(encoded(age=[20, 20, 30, 40]), 2).line.ravel().tolist()
    [0.0, 0.5, 1.0]
    """
    label, count = data.classes.labels, data.classes.count
    example = np.zeros(count, dtype=np.int64)
    example[label] = np.arange(label.size)
    line = np.empty((count, sum(column.is_numeric for column in data.columns)))
    leaf = np.empty((count, len(data.columns) - line.shape[1]), dtype=np.int64)
    most: list[float] = []
    tables: list[FloatArray] = []
    for column in data.columns:
        if column.is_numeric:
            factor = column.weight * (_blank_factor(k) if column.missing >= 0 and not exact else 1.0)
            line[:, len(most)] = factor * column.positions[column.codes[example]]
            most.append(factor)
        else:
            node, table = _tree_distances(column, k, exact)
            leaf[:, len(tables)] = node[column.codes[example]]
            tables.append(column.weight * table)
    sizes = [len(table) for table in tables]
    return PairSpace(
        line=line,
        most=np.array(most, dtype=np.float64),
        leaf=leaf,
        base=np.cumsum([0, *(size * size for size in sizes)])[:-1].astype(np.int64),
        size=np.array(sizes, dtype=np.int64),
        apart=np.concatenate([np.empty(0), *(table.ravel() for table in tables)]),
        weight=data.classes.entries,
        of_row=label,
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
def distance(space: PairSpace, a: int, b: int, limit: float) -> float:
    """The distance of two tuples; infinity as soon as it is known to reach *limit*.

    >>> from velado.testing.examples import encoded
    >>> distance(pair_space(encoded(age=[20, 30, 40]), 2), 0, 1, 1.0)
    0.5
    """
    # Plain local arrays: reading a field of a named tuple inside a loop counts references each time.
    line, most, leaf = space.line, space.most, space.leaf
    base, size, apart = space.base, space.size, space.apart
    out = 0.0
    for c in range(line.shape[1]):
        out += min(abs(line[a, c] - line[b, c]), most[c])
        if out >= limit:
            return np.inf
    for c in range(leaf.shape[1]):
        out += apart[base[c] + leaf[a, c] * size[c] + leaf[b, c]]
    return out if out < limit else np.inf


class Blocks(NamedTuple):
    """Tuples in blocks of few that lie together, and the ends of each block in each numeric and each taxonomy column.

    >>> from velado.testing.examples import encoded
    >>> blocks_of(pair_space(encoded(age=[20, 30, 40]), 2)).high.tolist()
    [[1.0]]
    """

    order: IntArray
    starts: IntArray
    low: FloatArray
    high: FloatArray
    first: IntArray
    last: IntArray


def blocks_of(space: PairSpace) -> Blocks:
    """The tuples of *space* in blocks.

    >>> from velado.testing.examples import encoded
    >>> blocks_of(pair_space(encoded(age=[20, 30, 40]), 2)).starts.tolist()
    [0, 3]
    """
    scale = [
        float(space.apart[at : at + n * n].max(initial=0.0)) / n
        for at, n in zip(space.base, space.size, strict=True)
    ]
    # Filled column by column: of a large table each copy of all columns is one too many.
    places = np.empty((space.line.shape[1] + space.leaf.shape[1], len(space.line)))
    places[: space.line.shape[1]] = space.line.T
    for c, factor in enumerate(scale):
        places[space.line.shape[1] + c] = space.leaf[:, c] * factor
    ones = np.ones(places.shape[1], dtype=np.int64)
    most = _BLOCK if places.shape[1] < _LARGE else _LARGE_BLOCK
    order, starts = kd_blocks(places, ones, most, np.array([1], dtype=np.int64))
    del places, ones
    low, high = _ends(space.line, order, starts[:-1])
    first, last = _ends(space.leaf, order, starts[:-1])
    return Blocks(order, starts, low, high, first, last)


_Values = TypeVar("_Values", FloatArray, IntArray)


def _ends(values: _Values, order: IntArray, starts: IntArray) -> tuple[_Values, _Values]:
    """The least and the greatest of each run of *order*, column by column."""
    low, high = (np.empty((starts.size, values.shape[1]), dtype=values.dtype) for _ in range(2))
    for c in range(values.shape[1]):
        column = values[order, c]
        low[:, c], high[:, c] = np.minimum.reduceat(column, starts), np.maximum.reduceat(column, starts)
    return low, high


@njit(cache=True)
def block_gap(space: PairSpace, blocks: Blocks, block: int, a: int) -> float:
    """No tuple of the block is nearer to tuple *a* than this.

    In a taxonomy what joins a leaf with others beyond an end of the block's leaves joins it with that end too.

    >>> from velado.testing.examples import encoded
    >>> space = pair_space(encoded(age=[20, 30, 40]), 2)
    >>> block_gap(space, blocks_of(space), 0, 1)
    0.0
    """
    gap = 0.0
    for c in range(space.line.shape[1]):
        x = space.line[a, c]
        if x < blocks.low[block, c]:
            gap += min(blocks.low[block, c] - x, space.most[c])
        elif x > blocks.high[block, c]:
            gap += min(x - blocks.high[block, c], space.most[c])
    for c in range(space.leaf.shape[1]):
        y = space.leaf[a, c]
        row = space.base[c] + y * space.size[c]
        if y < blocks.first[block, c]:
            gap += space.apart[row + blocks.first[block, c]]
        elif y > blocks.last[block, c]:
            gap += space.apart[row + blocks.last[block, c]]
    return gap


@njit(cache=True)
def _look(
    placed: PairSpace, blocks: Blocks, block: int, own: int, found: Int32Array, far: FloatArray, at: int
) -> None:
    order = blocks.order
    for i in range(blocks.starts[block], blocks.starts[block + 1]):
        if i != own:
            away = distance(placed, own, i, far[at, far.shape[1] - 1])
            if away < np.inf:
                offer(found, far, at, order[i], away)


@njit(cache=True)
def _block_gaps(space: PairSpace, blocks: Blocks, a: int, gap: FloatArray) -> None:
    """``gap[block]`` becomes what `block_gap` says of each block: column by column, all blocks at once."""
    gap[:] = 0.0
    for c in range(space.line.shape[1]):
        x, most = space.line[a, c], space.most[c]
        low, high = blocks.low[:, c], blocks.high[:, c]
        for block in range(gap.size):
            below, above = low[block] - x, x - high[block]
            away = below if below > 0 else (above if above > 0 else 0.0)
            gap[block] += away if away < most else most
    for c in range(space.leaf.shape[1]):
        y = space.leaf[a, c]
        row = space.base[c] + y * space.size[c]
        apart = space.apart[row : row + space.size[c]]
        first, last = blocks.first[:, c], blocks.last[:, c]
        for block in range(gap.size):
            if y < first[block]:
                gap[block] += apart[first[block]]
            elif y > last[block]:
                gap[block] += apart[last[block]]


@njit(cache=True)
def _nearest_places(
    placed: PairSpace, blocks: Blocks, wanted: int, places: IntArray
) -> tuple[Int32Array, FloatArray]:
    """What `_nearest` says of the tuples at *places* of the blocks' order, in which *placed* has them."""
    count = blocks.starts.size - 1
    found = np.full((places.size, wanted), -1, np.int32)
    far = np.full((places.size, wanted), np.inf)
    near, gap, away = np.empty(count, np.int64), np.empty(count), np.empty(count)
    for at in range(places.size):
        a = places[at]
        own = np.searchsorted(blocks.starts, a, "right") - 1
        for block in range(max(own - 1, 0), min(own + 2, count)):
            _look(placed, blocks, block, a, found, far, at)
        _block_gaps(placed, blocks, a, away)
        limit = far[at, wanted - 1]
        held = 0
        for block in range(count):
            if away[block] < limit and abs(block - own) > 1:
                near[held], gap[held] = block, away[block]
                held += 1
        for i in np.argsort(gap[:held]):
            if gap[i] >= far[at, wanted - 1]:
                break
            _look(placed, blocks, near[i], a, found, far, at)
    return found, far


def _nearest(space: PairSpace, blocks: Blocks, wanted: int, rows: IntArray) -> tuple[Int32Array, FloatArray]:
    """The *wanted* nearest other tuples of each of *rows*, exactly, and their distances, rising.

    A tuple looks at its own block and one on each side, then at the others from the nearest on; it stops at the first
    that is as far away as the last tuple it holds. Tuples are laid out block by block first: a block is then read in a row.
    """
    placed = space._replace(line=space.line[blocks.order], leaf=space.leaf[blocks.order])
    places = np.empty(blocks.order.size, dtype=np.int64)
    places[blocks.order] = np.arange(blocks.order.size)
    return _nearest_places(placed, blocks, wanted, places[rows])


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


def pair_prices(data: EncodedTable, k: int, part: int | None = None, most: int = MOST_PAIRS) -> FloatArray:
    """A price for each row of *data*: those of any k rows add up to at most k times what their cover costs.

    With *part* only so many distinct rows, those that lie most apart, are given u > 0, and the nearest of all rows are
    looked for around them alone. The others' prices are 0, or below where such a row is near: any u >= 0 will do. So it is
    where those near all rows, 3 k to each, would be more than *most*.

    O(rows^2) where nothing tells far rows apart early; with few numeric columns far less.

    >>> from velado.testing.examples import encoded
    >>> pair_prices(encoded(age=[20, 20, 30, 40]), 2).round(3).tolist()
    [0.0, 0.0, 0.5, 0.5]
    """
    space = pair_space(data, k)
    if space.weight.size < 2:
        return np.zeros(data.rows)
    blocks = blocks_of(space)
    wanted = min(max(3 * k, 24), space.weight.size - 1)
    priced = min(part or space.weight.size, space.weight.size)
    if priced * wanted > most:
        wanted = min(max(k + k // 4, 24, most // priced), wanted)
        priced = min(priced, max(most // wanted, 1))
    whole = priced == space.weight.size
    rows = np.arange(priced) if whole else _apart_most(space, blocks, priced)
    near, tuples = _listed(space, blocks, rows, wanted)
    prices = np.zeros(space.weight.size)
    steps = _STEPS if priced * wanted <= _FEW_PAIRS or most > MOST_PAIRS else _FEWER_STEPS
    prices[tuples] = _ascend(near, k, steps, _kth(near, k - 1)) * k / (k * k // 4)
    # A dropped row costs all its columns: no price may be higher.
    return np.minimum(prices, sum(column.weight for column in data.columns))[space.of_row]


def nearest(space: PairSpace, wanted: int) -> tuple[Int32Array, FloatArray]:
    """The *wanted* nearest other tuples of each tuple of *space*, exactly, and their distances.

    >>> from velado.testing.examples import encoded
    >>> nearest(pair_space(encoded(age=[20, 22, 30, 40]), 2), 1)[0].ravel().tolist()
    [1, 0, 1, 2]
    """
    return _nearest(space, blocks_of(space), wanted, np.arange(space.weight.size))


def _apart_most(space: PairSpace, blocks: Blocks, part: int) -> IntArray:
    """The tuples of the blocks with the widest covers, *part* of them."""
    width = (blocks.high - blocks.low).sum(axis=1)
    for c in range(space.leaf.shape[1]):
        width += space.apart[space.base[c] + blocks.first[:, c] * space.size[c] + blocks.last[:, c]]
    size = np.diff(blocks.starts)
    wide = np.empty(space.weight.size)
    wide[blocks.order] = np.repeat(width, size)
    return np.sort(np.argsort(-wide, kind="stable")[:part])


def _listed(space: PairSpace, blocks: Blocks, rows: IntArray, wanted: int) -> tuple[_Listed, IntArray]:
    """The neighbours of *rows* and of those near them, and which tuples these are; u of the latter must be 0."""
    wanted = min(wanted, space.weight.size - 1)
    found, far = _nearest(space, blocks, wanted, rows)
    tuples = np.unique(np.concatenate((rows, found.ravel())))
    count = tuples.size
    most = np.zeros(count)
    most[np.searchsorted(tuples, rows)] = np.inf if wanted == space.weight.size - 1 else far[:, -1] / 2
    a = np.repeat(np.searchsorted(tuples, rows), wanted)
    b = np.searchsorted(tuples, found.ravel())
    key = np.minimum(a, b).astype(np.int64) * count + np.maximum(a, b)
    key, at = np.unique(key, return_index=True)
    one, two, distances = key // count, key % count, far.ravel()[at]
    first, others = np.concatenate((one, two)), np.concatenate((two, one))
    distances = np.concatenate((distances, distances))
    sort = np.lexsort((distances, first))
    starts = np.concatenate(([0], np.cumsum(np.bincount(first, minlength=count)))).astype(np.int64)
    return _Listed(space.weight[tuples], starts, others[sort], distances[sort], most), tuples
