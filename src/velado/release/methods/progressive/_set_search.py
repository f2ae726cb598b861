"""The set of k rows whose prices exceed what its cover costs most, by branch and bound.

Let S be the rows chosen, m = k - |S| those still to choose, the next one b the farthest from S of them: the others lie
before b in the list sorted by cost(S + b). Two bounds cut the search short:

- T costs at least cost(S + b), so its excess is at most p(S) + p_b - k cost(S + b) + the m - 1 largest prices before b;
- by the inequality of pairs (`pair_prices`) k cost(T) >= kappa sum of d over the pairs of T. The pairs within S and from S
  to each b are known, and of b's distances to the m - 1 others half of the m - 1 smallest that b has to any row counts
  for b. So the excess is at most p(S) - kappa d(S) + the m largest of p_b - kappa (d(S, b) + half of those).

A search that is broken off gives the largest bound of what it did not look at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.release.methods.progressive.pair_prices import (
    FloatArray,
    Int32Array,
    IntArray,
    PairSpace,
    distance,
    nearest,
    pair_space,
)

BoolArray = npt.NDArray[np.bool_]


class SearchSpace(NamedTuple):
    """Covers as they cost, distances of pairs whose inequality holds, and of each tuple the sums of its smallest.

    >>> from velado.testing.examples import encoded
    >>> space, near, _ = search_space(encoded(age=[20, 21, 40]), 2, 2)
    >>> space.sums.shape
    (3, 2)
    """

    cover: PairSpace
    pairs: PairSpace
    sums: FloatArray


class SearchRoom(NamedTuple):
    """What a search writes to.

    Of each candidate its places, price, tuple and sums; *apart* has distances of candidates, row by row as *known* says.
    By depth: the list of candidates that may follow (*at*), what the cover costs with each (*cost*), how far each is from
    the rows chosen (*away*), the excess possible (*most*); the cover (*low* .. *last*), the prices (*value*) and
    distances (*inside*) of the rows chosen, the length of the list and the next to try.

    >>> from velado.testing.examples import encoded
    >>> space, near, _ = search_space(encoded(age=[20, 21, 40]), 2, 2)
    >>> search_room(space, 2, 4).price.size
    4
    """

    line: FloatArray
    leaf: IntArray
    pair_line: FloatArray
    pair_leaf: IntArray
    price: FloatArray
    tuple_: IntArray
    sums: FloatArray
    apart: FloatArray
    known: BoolArray
    at: IntArray
    cost: FloatArray
    away: FloatArray
    most: FloatArray
    low: FloatArray
    high: FloatArray
    first: IntArray
    last: IntArray
    value: FloatArray
    inside: FloatArray
    length: IntArray
    next: IntArray
    top: FloatArray
    top_gain: FloatArray
    gain: FloatArray
    taken: IntArray
    chosen: IntArray


@njit(cache=True)
def search_room(space: SearchSpace, k: int, entries: int) -> SearchRoom:
    """Room for searches with so many candidates.

    >>> from velado.testing.examples import encoded
    >>> space, near, _ = search_space(encoded(age=[20, 21, 40]), 2, 2)
    >>> search_room(space, 2, 4).apart.shape
    (4, 4)
    """
    lines, leaves = space.cover.line.shape[1], space.cover.leaf.shape[1]
    return SearchRoom(
        line=np.empty((entries, lines)),
        leaf=np.empty((entries, leaves), np.int64),
        pair_line=np.empty((entries, lines)),
        pair_leaf=np.empty((entries, leaves), np.int64),
        price=np.empty(entries),
        tuple_=np.empty(entries, np.int64),
        sums=np.empty((entries, k)),
        apart=np.empty((entries, entries)),
        known=np.zeros(entries, np.bool_),
        at=np.empty((k, entries), np.int64),
        cost=np.empty((k, entries)),
        away=np.empty((k, entries)),
        most=np.empty((k, entries)),
        low=np.empty((k, lines)),
        high=np.empty((k, lines)),
        first=np.empty((k, leaves), np.int64),
        last=np.empty((k, leaves), np.int64),
        value=np.empty(k),
        inside=np.empty(k),
        length=np.zeros(k, np.int64),
        next=np.zeros(k, np.int64),
        top=np.empty(k),
        top_gain=np.empty(k),
        gain=np.empty(entries),
        taken=np.empty(k, np.int64),
        chosen=np.empty(k, np.int64),
    )


@njit(cache=True)
def _alone(space: SearchSpace, room: SearchRoom, a: int) -> None:
    """The cover of depth 0 is that of tuple *a* alone."""
    for c in range(room.line.shape[1]):
        room.low[0, c] = room.high[0, c] = space.cover.line[a, c]
    for c in range(room.leaf.shape[1]):
        room.first[0, c] = room.last[0, c] = space.cover.leaf[a, c]


@njit(cache=True)
def _take(room: SearchRoom, depth: int, into: int, b: int) -> None:
    """The cover of depth *depth* with candidate *b* becomes that of depth *into*."""
    for c in range(room.line.shape[1]):
        x = room.line[b, c]
        room.low[into, c] = min(room.low[depth, c], x)
        room.high[into, c] = max(room.high[depth, c], x)
    for c in range(room.leaf.shape[1]):
        y = room.leaf[b, c]
        room.first[into, c] = min(room.first[depth, c], y)
        room.last[into, c] = max(room.last[depth, c], y)


@njit(cache=True)
def _widened(cover: PairSpace, room: SearchRoom, depth: int, b: int, limit: float) -> float:
    """What the cover of depth *depth* costs with candidate *b* in it; infinity where the numbers alone reach *limit*."""
    cost = 0.0
    for c in range(room.line.shape[1]):
        x = room.line[b, c]
        cost += min(max(room.high[depth, c], x) - min(room.low[depth, c], x), cover.most[c])
    if cost >= limit:
        return np.inf
    for c in range(room.leaf.shape[1]):
        y = room.leaf[b, c]
        least, largest = min(room.first[depth, c], y), max(room.last[depth, c], y)
        cost += cover.apart[cover.base[c] + least * cover.size[c] + largest]
    return cost


@njit(cache=True)
def _push(top: FloatArray, held: int, wanted: int, total: float, value: float) -> tuple[int, float]:
    """*value* takes its place among the *wanted* largest in *top*; how many are held, and their sum."""
    if wanted == 0 or (held == wanted and value <= top[held - 1]):
        return held, total
    if held == wanted:
        total -= top[held - 1]
        j = held - 1
    else:
        j = held
        held += 1
    while j > 0 and top[j - 1] < value:
        top[j] = top[j - 1]
        j -= 1
    top[j] = value
    return held, total + value


@njit(cache=True)
def _bounds(room: SearchRoom, depth: int, left: int, k: int) -> None:
    """What a set can exceed by at most whose farthest row is each of the list at *depth*."""
    kappa = k / (k * k // 4)
    wanted = left - 1
    held, total, held_gain, total_gain = 0, 0.0, 0, 0.0
    value = room.value[depth]
    less = value - kappa * room.inside[depth]
    for i in range(room.length[depth]):
        b = room.at[depth, i]
        price = room.price[b]
        gain = price - kappa * (room.away[depth, i] + 0.5 * room.sums[b, wanted])
        if held < wanted:
            room.most[depth, i] = -np.inf
        else:
            room.most[depth, i] = min(
                value + price + total - k * room.cost[depth, i], less + gain + total_gain
            )
        held, total = _push(room.top, held, wanted, total, price)
        held_gain, total_gain = _push(room.top_gain, held_gain, wanted, total_gain, gain)


@njit(cache=True)
def _know(pairs: PairSpace, room: SearchRoom, b: int) -> None:
    """The distances of candidate *b* to all others."""
    room.known[b] = True
    for o in range(room.length[0]):
        apart = 0.0
        for c in range(room.line.shape[1]):
            apart += min(abs(room.pair_line[b, c] - room.pair_line[o, c]), pairs.most[c])
        for c in range(room.leaf.shape[1]):
            apart += pairs.apart[pairs.base[c] + room.pair_leaf[b, c] * pairs.size[c] + room.pair_leaf[o, c]]
        room.apart[b, o] = apart


@njit(cache=True)
def begin_search(
    space: SearchSpace, room: SearchRoom, price: FloatArray, k: int, a: int, copies: int, among: IntArray
) -> bool:
    """Depth 0: so many *copies* of tuple *a*, and those of *among* that an exceeding set can hold, nearest first.

    False where they are too many for the room.

    >>> from velado.testing.examples import encoded
    >>> space, near, _ = search_space(encoded(age=[20, 21, 40]), 2, 2)
    >>> room = search_room(space, 2, 4)
    >>> begin_search(space, room, np.array([0.2, 0.2, 2.0]), 2, 2, 1, np.array([0, 1])), int(room.length[0])
    (True, 2)
    """
    kappa = k / (k * k // 4)
    cover, wanted = space.cover, k - copies
    _alone(space, room, a)
    room.taken[:copies] = a
    value = copies * price[a]
    room.value[0], room.inside[0], room.length[0] = value, 0.0, 0
    cost, away = np.empty(among.size), np.empty(among.size)
    held, total, held_gain, total_gain = 0, 0.0, 0, 0.0
    for i in range(among.size):
        b = among[i]
        cost[i] = distance(cover, a, b, np.inf)
        away[i] = copies * distance(space.pairs, a, b, np.inf)
        gain = price[b] - kappa * (away[i] + 0.5 * space.sums[b, wanted - 1])
        for _ in range(min(cover.weight[b], wanted)):
            held, total = _push(room.top, held, wanted, total, price[b])
            held_gain, total_gain = _push(room.top_gain, held_gain, wanted, total_gain, gain)
    if held < wanted:
        return True
    total -= room.top[wanted - 1]
    total_gain -= room.top_gain[wanted - 1]
    entries = 0
    for i in np.argsort(cost, kind="mergesort"):
        b = among[i]
        gain = price[b] - kappa * (away[i] + 0.5 * space.sums[b, wanted - 1])
        if value + price[b] + total - k * cost[i] <= 0 or value + gain + total_gain <= 0:
            continue
        for _ in range(min(cover.weight[b], wanted)):
            if entries == room.price.size:
                return False
            room.line[entries] = cover.line[b]
            room.leaf[entries] = cover.leaf[b]
            room.pair_line[entries] = space.pairs.line[b]
            room.pair_leaf[entries] = space.pairs.leaf[b]
            room.sums[entries] = space.sums[b]
            room.price[entries] = price[b]
            room.tuple_[entries] = b
            room.known[entries] = False
            room.at[0, entries] = entries
            room.cost[0, entries] = cost[i]
            room.away[0, entries] = away[i]
            entries += 1
    room.length[0] = entries
    return True


@njit(cache=True)
def _last(space: SearchSpace, room: SearchRoom, k: int, depth: int, i: int, best: float) -> tuple[float, int]:
    """The largest excess, over *best*, of the rows chosen with each that stands before entry *i* of the list."""
    kappa = k / (k * k // 4)
    b = room.at[depth, i]
    value = room.value[depth + 1]
    less = value - kappa * room.inside[depth + 1]
    looked = i // 8
    for j in range(i):
        o = room.at[depth, j]
        limit = (value + room.price[o] - best) / k
        if room.cost[depth, i] >= limit:
            continue
        if less + room.price[o] - kappa * (room.away[depth, j] + room.apart[b, o]) <= best:
            continue
        looked += 1
        cost = _widened(space.cover, room, depth + 1, o, limit)
        if cost < limit:
            best = value + room.price[o] - k * cost
            room.taken[room.taken.size - 1] = room.tuple_[o]
            room.chosen[:] = room.taken
    return best, looked


@njit(cache=True)
def _follow(
    space: SearchSpace, room: SearchRoom, k: int, depth: int, i: int, wanted: int, best: float
) -> int:
    """The list of the next depth: those before entry *i* that can be among the *wanted* rows still to choose; steps."""
    kappa = k / (k * k // 4)
    b, into = room.at[depth, i], depth + 1
    value = room.value[into]
    less = value - kappa * room.inside[into]
    held, total, held_gain, total_gain = 0, 0.0, 0, 0.0
    for j in range(i):
        o = room.at[depth, j]
        beyond = room.away[depth, j] + room.apart[b, o] + 0.5 * room.sums[o, wanted - 1]
        room.gain[j] = room.price[o] - kappa * beyond
        held, total = _push(room.top, held, wanted, total, room.price[o])
        held_gain, total_gain = _push(room.top_gain, held_gain, wanted, total_gain, room.gain[j])
    room.length[into] = 0
    if held < wanted:
        return i // 4
    total -= room.top[held - 1]
    total_gain -= room.top_gain[held_gain - 1]
    looked, count = i // 4, 0
    for j in range(i):
        if less + room.gain[j] + total_gain <= best:
            continue
        o = room.at[depth, j]
        limit = (value + room.price[o] + total - best) / k
        looked += 1
        cost = _widened(space.cover, room, into, o, limit)
        if cost >= limit:
            continue
        at = count  # the lists are short, and nearly sorted
        while at > 0 and room.cost[into, at - 1] > cost:
            room.cost[into, at] = room.cost[into, at - 1]
            room.at[into, at] = room.at[into, at - 1]
            room.away[into, at] = room.away[into, at - 1]
            at -= 1
        room.cost[into, at] = cost
        room.at[into, at] = o
        room.away[into, at] = room.away[depth, j] + room.apart[b, o]
        count += 1
    room.length[into] = count
    return looked


@njit(cache=True)
def worst_set(
    space: SearchSpace, room: SearchRoom, k: int, copies: int, steps: int
) -> tuple[float, float, int]:
    """The largest excess over 0 of a set that begins as `begin_search` wrote, what no set exceeds, and the steps taken.

    After more than *steps* the search is broken off. *chosen* becomes the set; its first entry is -1 where there is none.

    >>> from velado.testing.examples import encoded
    >>> space, near, _ = search_space(encoded(age=[20, 21, 40]), 2, 2)
    >>> room = search_room(space, 2, 4)
    >>> ready = begin_search(space, room, np.array([0.2, 0.2, 2.0]), 2, 2, 1, np.array([0, 1]))
    >>> round(worst_set(space, room, 2, 1, 100)[0], 3), room.chosen.tolist()
    (0.3, [2, 1])
    """
    room.chosen[0] = -1
    best, taken, depth = 0.0, 0, 0
    _bounds(room, 0, k - copies, k)
    room.next[0] = 0
    likely = np.argsort(-room.most[0, : room.length[0]])
    while depth >= 0:
        left = k - copies - depth
        i = room.next[depth]
        if i >= room.length[depth]:
            depth -= 1
            continue
        room.next[depth] = i + 1
        if depth == 0:
            i = likely[i]
        if room.most[depth, i] <= best:
            continue
        b = room.at[depth, i]
        if i + 1 < room.length[depth] and room.tuple_[room.at[depth, i + 1]] == room.tuple_[b]:
            continue  # of equal rows the last one stands for all
        room.taken[copies + depth] = room.tuple_[b]
        if left == 1:
            best = room.most[depth, i]
            room.chosen[:] = room.taken
            continue
        if taken > steps:
            bound = best
            for j in range(room.next[0] - 1, room.length[0]):
                bound = max(bound, room.most[0, likely[j]])
            return best, bound, taken
        _take(room, depth, depth + 1, b)
        room.value[depth + 1] = room.value[depth] + room.price[b]
        room.inside[depth + 1] = room.inside[depth] + room.away[depth, i]
        taken += 5
        if not room.known[b]:
            _know(space.pairs, room, b)
            taken += room.length[0]
        if left == 2:
            best, looked = _last(space, room, k, depth, i, best)
            taken += looked
            continue
        taken += _follow(space, room, k, depth, i, left - 1, best)
        if room.length[depth + 1] >= left - 1:
            depth += 1
            _bounds(room, depth, left - 1, k)
            room.next[depth] = 0
    return best, best, taken


class RowSets(NamedTuple):
    """Sets of k rows and k times what each costs, with room for more.

    >>> RowSets(np.empty((3, 2), np.int64), np.empty(3)).right.size
    3
    """

    rows: IntArray
    right: FloatArray


@njit(cache=True)
def seed_sets(space: SearchSpace, near: Int32Array, k: int, sets: RowSets) -> int:
    """A set around each tuple: the rows that widen its cover least, one after another; how many.

    >>> from velado.testing.examples import encoded
    >>> space, near, _ = search_space(encoded(age=[20, 21, 40]), 2, 2)
    >>> sets = RowSets(np.empty((3, 2), np.int64), np.empty(3))
    >>> seed_sets(space, near, 2, sets), sets.rows[2].tolist()
    (3, [2, 1])
    """
    cover, filled = space.cover, 0
    room = search_room(space, k, near.shape[1] * k)
    used = np.empty(near.shape[1] * k, np.bool_)
    for a in range(near.shape[0]):
        entries = 0
        _alone(space, room, a)
        for b in near[a]:
            for _ in range(min(cover.weight[b], k)):
                room.line[entries] = cover.line[b]
                room.leaf[entries] = cover.leaf[b]
                room.tuple_[entries] = b
                entries += 1
        copies = min(cover.weight[a], k)
        if copies + entries < k:
            continue
        sets.rows[filled, :copies] = a
        used[:] = False
        cost = 0.0
        for j in range(copies, k):
            cost, chosen = np.inf, -1
            for i in range(entries):
                if not used[i]:
                    wider = _widened(cover, room, 0, i, cost)
                    if wider < cost or chosen < 0:
                        cost, chosen = wider, i
            used[chosen] = True
            sets.rows[filled, j] = room.tuple_[chosen]
            _take(room, 0, 0, chosen)
        sets.right[filled] = k * cost
        filled += 1
    return filled


def _near_sums(space: PairSpace, near: Int32Array, far: FloatArray, k: int) -> FloatArray:
    """Of each tuple's row, the sum of its 0, 1, .. k - 1 smallest distances to other rows, copies of its own first."""
    held = np.minimum(space.weight - 1, k)
    out = np.zeros((space.weight.size, k))
    for j in range(near.shape[1]):
        more = np.minimum(space.weight[near[:, j]], k)
        for i in range(1, k):
            out[:, i] += far[:, j] * np.clip(i - held, 0, more)
        held = held + more
    return out


def search_space(data: EncodedTable, k: int, listed: int) -> tuple[SearchSpace, Int32Array, FloatArray]:
    """The distinct rows of *data* to search, and the *listed* nearest of each with their distances.

    >>> from velado.testing.examples import encoded
    >>> search_space(encoded(age=[20, 21, 40]), 2, 1)[1].ravel().tolist()
    [1, 0, 1]
    """
    cover, pairs = pair_space(data, k, exact=True), pair_space(data, k)
    most = cover.weight.size - 1
    near, far = nearest(cover, min(listed, most))
    same = bool(np.array_equal(cover.line, pairs.line) and np.array_equal(cover.apart, pairs.apart))
    of_pairs = (near, far) if same else nearest(pairs, min(k, most))
    return SearchSpace(cover, pairs, _near_sums(pairs, *of_pairs, k)), near, far
