"""Checked prices: for small tables, prices that are guessed high and then proved, group by group.

Prices are feasible when those of every k rows T add up to at most k cost(T). Prices that hold for another reason (pairs
of rows, boxes) leave most sets room: a row's price may rise by what the tightest set with it in it leaves over. How far
each should rise is guessed first, by subgradient steps on

    sum_a (p_a - w_a / k),   w_a the largest excess p(T) - k cost(T) of a set near row a,

and then proved row by row: branch and bound over all sets of k rows with that row. With j rows S chosen, each further row
b of T adds at most p_b - k / (k - j) cost(S + b), since T costs at least as much as S + b does. A search that would need
more steps than it may take raises nothing, so the bound is then lower than it could be, never wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from velado.data.encode import EncodedTable
from velado.release.methods.progressive.pair_prices import (
    FloatArray,
    Int32Array,
    IntArray,
    PairSpace,
    nearest,
    pair_space,
)

_LISTED = 24
_QUICK = 500
"""Rows looked at in one search of the guess, and (below) of the proof."""
_EACH = 200_000
_LEAST_ROUNDS, _MOST_ROUNDS, _SEARCHES = 6, 60, 60_000
_SHARES = (0.25, 0.5, 0.75, 1.0, 1.25)
"""How far prices rise in each pass, from those that hold to those that were guessed and a little beyond."""


class _Covers(NamedTuple):
    """The covers of the rows chosen so far, one per depth: the ends in each numeric and each taxonomy column."""

    low: FloatArray
    high: FloatArray
    first: IntArray
    last: IntArray


@njit(cache=True)
def _widened(space: PairSpace, covers: _Covers, depth: int, at: int) -> float:
    """What the cover of depth *depth* costs once it takes in row *at*."""
    cost = 0.0
    for c in range(space.line.shape[1]):
        x = space.line[at, c]
        cost += min(max(covers.high[depth, c], x) - min(covers.low[depth, c], x), space.most[c])
    for c in range(space.leaf.shape[1]):
        x = space.leaf[at, c]
        least, largest = min(covers.first[depth, c], x), max(covers.last[depth, c], x)
        cost += space.apart[space.base[c] + least * space.size[c] + largest]
    return cost


@njit(cache=True)
def _take(space: PairSpace, covers: _Covers, depth: int, at: int) -> None:
    """The cover of depth *depth* with row *at* becomes that of the next depth; of -1, the row alone that of depth 0."""
    for c in range(space.line.shape[1]):
        x = space.line[at, c]
        covers.low[depth + 1, c] = x if depth < 0 else min(covers.low[depth, c], x)
        covers.high[depth + 1, c] = x if depth < 0 else max(covers.high[depth, c], x)
    for c in range(space.leaf.shape[1]):
        x = space.leaf[at, c]
        covers.first[depth + 1, c] = x if depth < 0 else min(covers.first[depth, c], x)
        covers.last[depth + 1, c] = x if depth < 0 else max(covers.last[depth, c], x)


class _Room(NamedTuple):
    """What a search writes to: covers, by depth the rows that may follow and what each adds at most, and scratch."""

    covers: _Covers
    follow: IntArray
    adds: FloatArray
    gain: FloatArray
    largest: FloatArray
    worst: IntArray


@njit(cache=True)
def _room(space: PairSpace, k: int, rows: int) -> _Room:
    lines, leaves = space.line.shape[1], space.leaf.shape[1]
    covers = _Covers(
        np.empty((k, lines)),
        np.empty((k, lines)),
        np.empty((k, leaves), np.int64),
        np.empty((k, leaves), np.int64),
    )
    follow, adds = np.empty((k, rows), np.int64), np.empty((k, rows))
    return _Room(covers, follow, adds, np.empty(rows), np.empty(k), np.empty(k, np.int64))


@njit(cache=True)
def _listed(
    space: PairSpace, room: _Room, price: FloatArray, depth: int, rows: IntArray, value: float, best: float
) -> int:
    """The *rows* that can follow at *depth*, sorted by what each adds at most, written to *room*; how many there are.

    A row is left out when even with the best of the others beside it the set would not exceed *best*.
    """
    k = room.worst.size
    left = k - 1 - depth
    gain, largest, a = room.gain, room.largest, room.worst[0]
    largest[:left] = -np.inf
    for i in range(rows.size):
        b = rows[i]
        if b == a:
            gain[i] = -np.inf
            continue
        gain[i] = price[b] - k / left * _widened(space, room.covers, depth, b)
        j = left - 1
        if gain[i] > largest[j]:
            while j > 0 and largest[j - 1] < gain[i]:
                largest[j] = largest[j - 1]
                j -= 1
            largest[j] = gain[i]
    others = value
    for j in range(left - 1):
        others += largest[j]
    follow, adds = room.follow[depth], room.adds[depth]
    count = 0
    for i in range(rows.size):
        if others + gain[i] > best:
            j = count  # the lists are short: put where it belongs
            while j > 0 and adds[j - 1] < gain[i]:
                adds[j] = adds[j - 1]
                follow[j] = follow[j - 1]
                j -= 1
            adds[j] = gain[i]
            follow[j] = rows[i]
            count += 1
    return count


@njit(cache=True)
def _excess(
    space: PairSpace,
    room: _Room,
    price: FloatArray,
    a: int,
    among: IntArray,
    least: float,
    steps: int,
    chosen: IntArray,
) -> tuple[float, int]:
    """The largest excess over *least* of row *a* with k - 1 others of *among*, and the steps taken.

    After more than *steps* the search is broken off, and there may be a larger one. Depth-first; the first row of a
    list that cannot lead beyond the best ends the list. A set is looked at once: its rows are taken in the order of
    the list. *chosen* becomes the set; its first entry is -1 where none exceeds *least*.
    """
    k = room.worst.size
    length, at, value = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k)
    room.worst[0] = a
    chosen[0] = -1
    value[0] = price[a]
    best = least
    _take(space, room.covers, -1, a)
    taken = among.size
    length[0] = _listed(space, room, price, 0, among, value[0], best)
    depth = 0
    while depth >= 0 and taken <= steps:
        left = k - 1 - depth  # rows still to choose
        i = at[depth]
        possible = value[depth]
        for j in range(i, min(i + left, length[depth])):
            possible += room.adds[depth, j]
        if i + left > length[depth] or possible <= best:
            depth -= 1
            continue
        room.worst[depth + 1] = room.follow[depth, i]
        if left == 1:  # what the last row adds is exact, and the first of the list adds most
            best = possible
            chosen[:] = room.worst
            depth -= 1
            continue
        at[depth] = i + 1
        _take(space, room.covers, depth, room.follow[depth, i])
        value[depth + 1] = value[depth] + price[room.follow[depth, i]]
        depth += 1
        after = room.follow[depth - 1, i + 1 : length[depth - 1]]
        taken += after.size
        at[depth] = 0
        length[depth] = _listed(space, room, price, depth, after, value[depth], best)
    return best, taken


@njit(cache=True)
def _climb(
    space: PairSpace, price: FloatArray, near: Int32Array, k: int, rounds: int, length: float
) -> FloatArray:
    """Prices after *rounds* subgradient steps against the worst sets among the rows *near* each; the best of them."""
    room = _room(space, k, near.shape[1])
    worst = np.empty(k, np.int64)
    taken = np.empty(price.size)
    best, best_total = price.copy(), -np.inf
    for turn in range(rounds):
        taken[:] = 0.0
        total = 0.0
        for a in range(price.size):
            excess, _ = _excess(space, room, price, a, among=near[a], least=0.0, steps=_QUICK, chosen=worst)
            total += price[a] - excess / k
            if worst[0] >= 0:
                for j in range(k):
                    taken[worst[j]] += 1.0
        if total > best_total:
            best_total = total
            best[:] = price
        step = length * (1.0 - turn / rounds)
        for a in range(price.size):
            price[a] = max(price[a] + step * max(1.0 - taken[a] / k, -2.0), 0.0)
    return best


@njit(cache=True)
def _raise(space: PairSpace, price: FloatArray, target: FloatArray, k: int, steps: int) -> int:
    """Each row rises towards its *target* as far as every set with it in it allows; the steps that are left.

    What a search must show is that no set exceeds the row's wish: the smaller the wish, the less is looked at. A
    search that is broken off raises nothing.
    """
    room = _room(space, k, price.size)
    worst = np.empty(k, np.int64)
    among = np.arange(price.size)
    for a in range(price.size):
        wish = target[a] - price[a]
        if wish <= 0:
            continue
        most = min(_EACH, steps)
        excess, taken = _excess(space, room, price, a, among=among, least=-wish, steps=most, chosen=worst)
        if taken <= most:
            price[a] -= excess
        steps -= taken
        if steps <= 0:
            break
    return steps


def checked_prices(data: EncodedTable, k: int, held: FloatArray, steps: int) -> FloatArray:
    """Prices of the rows of *data*, raised from *held* ones as far as the search through all groups of *k* rows proves.

    *steps* bounds the rows looked at, some 5 10^7 a second. O(rows^2) at the least: for small tables.

    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 21, 22, 29, 30, 31])
    >>> float(checked_prices(data, 3, np.zeros(6), 100_000).sum().round(3))
    1.091
    """
    if data.rows <= k or not data.columns:
        return held
    space = pair_space(data, k, exact=True)
    near, far = nearest(space, min(_LISTED, data.rows - 1))
    rounds = max(_LEAST_ROUNDS, min(_MOST_ROUNDS, _SEARCHES // data.rows))
    usual = float(held.mean()) if held.mean() > 0 else float(far[:, min(k, far.shape[1]) - 1].mean()) / 2
    guess = _climb(space, np.maximum(held, 0.0), near, k, rounds, 4.0 * usual / (rounds + 10))
    whole = sum(column.weight for column in data.columns)
    price = held.copy()
    for share in _SHARES:
        target = np.minimum(held + share * (guess - held), whole)
        steps = _raise(space, price, target, k, steps)
    return price
