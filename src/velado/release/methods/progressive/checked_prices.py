"""Checked prices: guessed by a linear programme over groups that matter, then proved against every group of k rows.

Prices are feasible when those of every k rows T add up to at most k cost(T). The best such prices are the optimum of a
linear programme with one condition for each T: far too many, of which few count. So

1. *guess*: start from a cheap set around each row; find prices that are best for the sets known (a first-order method),
   look among the rows near each for the set that they exceed most, and add those, for some rounds;
2. *prove*: put the rows in an order, here from the highest price down. Every T has a first row a; for each a in turn, find
   the largest excess w = p(T) - k cost(T) over the sets that begin with it, and lower p_a by w (by w / c if T has c copies
   of a). Then no set that begins with a exceeds its cost, and none will later, as prices only fall: at the end all hold.

The search for w is branch and bound (`_set_search`). The farthest row that can follow a is near because no later price is
higher than that of a. A search that is broken off lowers p_a by the largest bound of what it did not look at: the result
is then lower than it could be, never wrong. Such rows are guessed lower the next time, nearer to the prices that held
before, and the best of a few proofs counts.
"""

from __future__ import annotations

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.randomness import seeded
from velado.release.methods.progressive._set_search import (
    BoolArray,
    RowSets,
    SearchRoom,
    SearchSpace,
    begin_search,
    search_room,
    search_space,
    seed_sets,
    worst_set,
)
from velado.release.methods.progressive.pair_prices import (
    Blocks,
    FloatArray,
    Int32Array,
    IntArray,
    block_gap,
    blocks_of,
    distance,
)

_LISTED = 32
_ENTRIES = 1500
"""Rows that may follow in one search at most; a row with more of them is guessed lower."""
_ROUNDS, _LEAST_ROUNDS, _SEARCHES = 30, 10, 60_000
_LEAST_QUICK, _QUICK, _QUICK_ALL = 500, 3000, 30_000_000
"""Steps of one search of the guess, and of a round of them."""
_ITERATIONS = 200
_PROOFS, _SMALL, _LARGE = 3, 2000, 10_000
"""Proofs of a table; from so many rows on each search is kept short, and then the guess too."""
_START, _LOWER = 0.4, 0.3
"""How far from the guess towards the prices that held the first proof of a larger table begins, and hard rows go."""


@njit(cache=True)
def _keep(sets: RowSets, filled: int, room: SearchRoom, price: FloatArray, excess: float) -> int:
    if room.chosen[0] < 0 or filled == sets.right.size:
        return filled
    sets.rows[filled] = room.chosen
    total = 0.0
    for a in room.chosen:
        total += price[a]
    sets.right[filled] = total - excess
    return filled + 1


@njit(cache=True)
def _find(
    space: SearchSpace,
    price: FloatArray,
    near: Int32Array,
    k: int,
    least: float,
    steps: int,
    part: int,
    sets: RowSets,
) -> int:
    """The sets that exceed most among the rows near each, by more than *least*; how many. *steps* is for each search.

    With *part* 0 or 1 only every other tuple is looked at.
    """
    room = search_room(space, k, near.shape[1] * 3)
    among = np.empty(near.shape[1], np.int64)
    filled = 0
    for a in range(price.size):
        if part >= 0 and a % 2 != part:
            continue
        count = 0
        for b in near[a]:
            if price[b] < price[a] or (price[b] == price[a] and b > a):
                among[count] = b
                count += 1
        for copies in range(1, min(space.cover.weight[a] + 1, k)):
            if begin_search(space, room, price, k, a, copies, among[:count]):
                excess, _, _ = worst_set(space, room, k, copies, steps)
                if excess > least:
                    filled = _keep(sets, filled, room, price, excess)
    return filled


@njit(cache=True)
def _settle(
    sets: RowSets,
    dual: FloatArray,
    price: FloatArray,
    weight: IntArray,
    most: FloatArray,
    unit: float,
    turns: int,
) -> None:
    """Prices, from 0 to *most*, with the largest sum that the sets allow: primal-dual hybrid gradient steps.

    Both *dual* (how often each set is used) and *price* go on from what they were. Nothing here is relied on.
    """
    k = sets.rows.shape[1]
    degree, used, ahead = np.zeros(price.size), np.zeros(price.size), np.empty(price.size)
    for t in range(dual.size):
        for a in sets.rows[t]:
            degree[a] += 1.0
            used[a] += dual[t]
    for _ in range(turns):
        for a in range(price.size):
            if degree[a] > 0:
                new = min(max(price[a] + unit / degree[a] * (weight[a] - used[a]), 0.0), most[a])
            else:
                new = price[a]
            ahead[a] = 2 * new - price[a]
            price[a] = new
            used[a] = 0.0
        for t in range(dual.size):
            over = -sets.right[t]
            for j in range(k):
                over += ahead[sets.rows[t, j]]
            dual[t] = max(dual[t] + over / (unit * k), 0.0)
            if dual[t] > 0:
                for j in range(k):
                    used[sets.rows[t, j]] += dual[t]


@njit(cache=True)
def _later(
    space: SearchSpace,
    blocks: Blocks,
    price: FloatArray,
    rank: IntArray,
    a: int,
    highest: float,
    k: int,
    out: IntArray,
) -> int:
    """The tuples after *a* in the order, none dearer than *highest*, that a set beginning with *a* can hold.

    A set has as many copies of *a* as there are, and each may be dearer than *highest*.
    """
    count = 0
    begun = price[a] + (min(space.cover.weight[a], k - 1) - 1) * max(price[a] - highest, 0.0)
    limit = (begun + (k - 1) * highest) / k
    for block in range(blocks.starts.size - 1):
        if block_gap(space.cover, blocks, block, a) >= limit:
            continue
        for i in range(blocks.starts[block], blocks.starts[block + 1]):
            b = blocks.order[i]
            reach = (begun + (k - 2) * highest + price[b]) / k
            if rank[b] > rank[a] and distance(space.cover, a, b, np.inf) < reach:
                out[count] = b
                count += 1
    return count


@njit(cache=True)
def _prove(
    space: SearchSpace, blocks: Blocks, price: FloatArray, order: IntArray, k: int, steps: int, sets: RowSets
) -> tuple[int, BoolArray]:
    """Prices lowered until no set of k rows exceeds its cost; how many *sets* were found, and the rows too hard to search.

    *steps* is for all searches together; when they are used up, the bound of what was not looked at is taken.
    """
    cover = space.cover
    room = search_room(space, k, min(price.size * k, _ENTRIES))
    rank, among = np.empty(price.size, np.int64), np.empty(price.size, np.int64)
    rank[order] = np.arange(price.size)
    hard = np.zeros(price.size, np.bool_)
    filled = 0
    each = 1 + (steps // 40 if price.size <= _SMALL else steps // price.size)
    for s in range(price.size):
        a = order[s]
        highest = price[order[s + 1]] if s + 1 < price.size else 0.0
        if cover.weight[a] >= k:
            price[a] = min(price[a], 0.0)
        highest = max(highest, 0.0)
        if price[a] + (k - 1) * highest <= 0:
            continue
        count = _later(space, blocks, price, rank, a, highest=highest, k=k, out=among)
        for copies in range(1, min(cover.weight[a] + 1, k)):
            step = 0.05 * abs(price[a]) + 1e-9
            while not begin_search(space, room, price, k, a, copies, among[:count]):
                hard[a] = True
                price[a] -= step
                step *= 1.5
            excess, bound, taken = worst_set(space, room, k, copies, min(each, max(steps, 0)))
            steps -= taken
            filled = _keep(sets, filled, room, price, excess)
            hard[a] |= bound > excess
            price[a] -= bound / copies
    return filled, hard


def _joined(
    sets: RowSets, dual: FloatArray, more: RowSets, filled: int, key: IntArray
) -> tuple[RowSets, FloatArray]:
    """Both, each set once."""
    rows = np.concatenate((sets.rows, more.rows[:filled]))
    right = np.concatenate((sets.right, more.right[:filled]))
    _, first = np.unique(key[rows].sum(axis=1), return_index=True)
    first.sort()
    return RowSets(rows[first], right[first]), np.concatenate((dual, np.zeros(filled)))[first]


def checked_prices(data: EncodedTable, k: int, held: FloatArray, steps: int) -> FloatArray:
    """Prices of the rows of *data* that are proved against all groups of *k* rows; *held* ones where those add up to more.

    *steps* bounds the work of each of the proofs, some 5 10^7 a second.

    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 21, 22, 29, 30, 31])
    >>> float(checked_prices(data, 3, np.zeros(6), 100_000).sum().round(3))
    1.091
    """
    if data.rows <= k or not data.columns or k < 2:
        return held
    if (data.matrix == data.matrix[0]).all():
        return held
    listed = _LISTED if data.rows <= _LARGE else _LISTED * 3 // 4
    space, near, far = search_space(data, k, listed)
    cover = space.cover
    count = cover.weight.size
    whole = float(sum(column.weight for column in data.columns))
    floor = np.zeros(count)
    floor[cover.of_row] = held
    most = np.where(cover.weight >= k, 0.0, np.minimum(whole, k * k * far[:, min(k - 2, far.shape[1] - 1)]))
    price = np.minimum(1.3 * np.maximum(floor, 0.0), most)
    unit = float(price.mean()) or float(far[:, 0].mean()) or 1.0
    key = seeded(0, "bound").integers(0, 1 << 62, count)
    more = RowSets(np.empty((4 * count + k, k), np.int64), np.empty(4 * count + k))
    sets, dual = RowSets(np.empty((0, k), np.int64), np.empty(0)), np.empty(0)
    filled = seed_sets(space, near, k, more)
    quick = max(_LEAST_QUICK, min(_QUICK, _QUICK_ALL // count))
    for turn in range(max(_LEAST_ROUNDS, min(_ROUNDS, _SEARCHES // count))):
        part = turn % 2 if turn > 1 and count > _LARGE else -1
        sets, dual = _joined(sets, dual, more, filled, key)
        _settle(sets, dual, price, cover.weight, most, unit, _ITERATIONS)
        filled = _find(space, price, near, k, 1e-4 * unit, quick, part=part, sets=more)
    blocks = blocks_of(cover)
    best, best_total = held, float(held.sum())
    share = np.full(count, _START if count > _SMALL else 0.0)
    # A large table's first proof is short: it tells which rows are hard.
    efforts = (steps,) * _PROOFS if count <= _LARGE else (steps // 4, steps)
    for effort in efforts:
        proved = np.minimum(price * (1 - share) + share * floor, whole)
        order = np.argsort(-proved, kind="stable")
        filled, hard = _prove(space, blocks, proved, order, k, effort, more)
        total = float((proved * cover.weight).sum())
        if total > best_total:
            best, best_total = proved[cover.of_row], total
        share[hard] = np.minimum(share[hard] + _LOWER, 1.0)
        sets, dual = _joined(sets, dual, more, filled, key)
        _settle(sets, dual, price, cover.weight, most, unit, _ITERATIONS)
    return best
