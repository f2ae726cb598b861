"""Groups of whole tuples made cheaper: a tuple moves or changes places with another, a group is cut in two or given up.

Where an engine counts equal rows together they cannot be parted, so a step takes all rows of a tuple along. Early
rounds keep some steps for the worse, the last none, and no step leaves a group with too few rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from velado.compiled import njit
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.release.goal import Progress
from velado.release.methods._row_covers import RowCovers, column_cost, cover_cost, joint_cost
from velado.release.methods.progressive._annealing import world_of
from velado.release.methods.progressive._group_state import (
    State,
    World,
    fill_state,
    link,
    measure_group,
    unlink,
)
from velado.release.methods.progressive._neighbour_graph import next_random

MOST_SEARCHED = 1_000_000
"""More tuples than these are published as the start has them: their neighbours alone take a minute to find."""
_VISITS = 2_000_000
"""Tuples looked at in all rounds together, about: a count of steps, never a clock."""
_MOST_ROUNDS = 24
_HEAT, _HOTTEST = 0.5, 0.1
"""How much worse a step may be at first, as a share of what a mean group costs: less where groups are large."""
_COLD = 0.75
"""From this share of the rounds on no step is worse."""
_LEAST_GAIN = 1e-9
_FEW = 16
"""Groups of no more tuples are given up where each of these is better off elsewhere."""
_MOST_CUT = 256
"""Groups of more tuples are not looked at for a cut."""


class Held(NamedTuple):
    """The rows behind each tuple, the rows of each group, and the least of the latter."""

    weight: Int64Array
    rows: Int64Array
    least: int


def searched_tuples(
    covers: RowCovers,
    weight: Int64Array,
    labels: Int32Array,
    least: int,
    effort: float,
    seed: int,
    progress: Progress,
) -> Int32Array:
    """Labels of whole tuples that cost no more than the given ones; groups keep *least* rows, label -1 stays.

    *weight* is the number of rows behind each tuple. O(tuples x neighbours x members of a group) in each round.

    >>> from velado.testing.examples import encoded
    >>> covers = RowCovers.of(encoded(age=[20, 21, 30, 31]))
    >>> rows, given = np.array([2, 2, 2, 2]), np.array([0, 1, 0, 1], dtype=np.int32)
    >>> searched_tuples(covers, rows, given, 4, 1.0, 0, lambda *told: None).tolist()
    [1, 1, 0, 0]
    """
    world = world_of(covers, np.array([2 * seed + 1], dtype=np.int64))
    count = int(labels.max(initial=-1)) + 1
    room = count + int(weight.sum() // max(least, 1)) + 1
    room = min(room, labels.size + 1)
    state = fill_state(world, np.ascontiguousarray(labels, dtype=np.int32), count, max(room, count))
    rows = np.zeros(state.size.size, dtype=np.int64)
    np.add.at(rows, labels[labels >= 0], weight[labels >= 0])
    held = Held(np.ascontiguousarray(weight, dtype=np.int64), rows, least)
    rounds = min(max(int(effort * _VISITS / max(labels.size, 1)), 1), int(_MOST_ROUNDS * max(effort, 1.0)))
    random = np.array([2 * seed + 1], dtype=np.int64)
    best, least_cost = labels, float((rows * state.price).sum())
    warmth = min(_HEAT / least, _HOTTEST) * least_cost / max(count, 1)
    for at in range(rounds):
        progress(at / rounds, "searching for better groups")
        count = _cut_groups(world, state, held, count)
        _visit_tuples(world, state, held, warmth * max(1 - at / (_COLD * rounds), 0.0) ** 2, random)
        _give_up_groups(world, state, held, count)
        cost = float((rows * state.price).sum())
        if cost < least_cost:
            best, least_cost = state.label.copy(), cost
    return np.asarray(best, dtype=np.int32)


@njit(cache=True)
def _take(world: World, state: State, held: Held, a: int, target: int) -> None:
    """Tuple *a* leaves its group for *target*; both are measured anew."""
    g = state.label[a]
    unlink(state, g, a)
    link(state, target, a)
    held.rows[g] -= held.weight[a]
    held.rows[target] += held.weight[a]
    measure_group(world, state, g)
    measure_group(world, state, target)


@njit(cache=True)
def _without(world: World, state: State, a: int, low: FloatArray, high: FloatArray) -> bool:
    """The cover of the group of *a* without it, in row 0 of *low* and *high*; whether that is another cover."""
    g, own = state.label[a], world.record[a]
    other = False
    for c in range(world.points.shape[1]):
        x = world.points[own, c]
        low[0, c] = state.low2[g, c] if x == state.low[g, c] else state.low[g, c]
        high[0, c] = state.high2[g, c] if x == state.high[g, c] else state.high[g, c]
        if low[0, c] != state.low[g, c] or high[0, c] != state.high[g, c]:
            other = True
    return other


@njit(cache=True)
def _visit_tuples(world: World, state: State, held: Held, heat: float, random: Int64Array) -> None:
    """Every tuple that widens its group moves to a near group, or changes places with a tuple of one, where that pays.

    With *heat* a step may also cost a little.
    """
    measure, points, record_of, near = world.measure, world.points, world.record, world.near
    weight, rows, least = held.weight, held.rows, held.least
    low, high = np.empty((2, points.shape[1])), np.empty((2, points.shape[1]))
    for a in world.route:
        g = state.label[a]
        if g < 0 or state.price[g] <= 0.0 or state.size[g] < 2:
            continue
        if not _without(world, state, a, low, high):
            continue
        own = record_of[a]
        without = cover_cost(measure, low, high, 0)
        slack = -heat * np.log(1.0 - next_random(random)) if heat > 0 else 0.0
        best, target, partner = slack - _LEAST_GAIN, -1, -1
        last = g
        for j in range(near.shape[1]):
            if near[own, j] < 0:
                break
            h = state.label[world.rows_of[world.row_at[near[own, j]]]]
            if h < 0 or h in (g, last):
                continue
            last = h
            before = rows[g] * state.price[g] + rows[h] * state.price[h]
            left = rows[g] - weight[a]
            if left >= least:
                limit = (before + best - left * without) / (rows[h] + weight[a])
                joint = joint_cost(measure, state.low, state.high, h, points, own, limit)
                gain = left * without + (rows[h] + weight[a]) * joint - before
                if gain < best:
                    best, target, partner = gain, h, -1
            seen = 0
            b = state.head[h]
            while b >= 0 and seen < _MOST_CUT and state.size[h] > 1:
                seen += 1
                mine, theirs = left + weight[b], rows[h] + weight[a] - weight[b]
                if mine >= least and theirs >= least:
                    limit = (before + best) / mine
                    in_mine = joint_cost(measure, low, high, 0, points, record_of[b], limit)
                    if in_mine < limit:
                        limit = (before + best - mine * in_mine) / theirs
                        total = mine * in_mine + theirs * _in_place(world, state, b, own, limit)
                        if total - before < best:
                            best, target, partner = total - before, h, b
                b = state.after[b]
        if target >= 0:
            _take(world, state, held, a, target)
            if partner >= 0:
                _take(world, state, held, partner, g)


@njit(cache=True)
def _in_place(world: World, state: State, b: int, record: int, limit: float) -> float:
    """What the group of *b* costs with *record* in its place; infinity as soon as that is *limit* or more."""
    g, gone = state.label[b], world.record[b]
    total = 0.0
    for c in range(world.points.shape[1]):
        x, y = world.points[gone, c], world.points[record, c]
        least = state.low2[g, c] if x == state.low[g, c] else state.low[g, c]
        most = state.high2[g, c] if x == state.high[g, c] else state.high[g, c]
        total += column_cost(world.measure, c, least if least < y else y, most if most > y else y)
        if total >= limit:
            return np.inf
    return total


@njit(cache=True)
def _give_up_groups(world: World, state: State, held: Held, count: int) -> None:
    """Groups of few tuples are given up where their tuples cost less in near groups; else they stay as they are."""
    rows, weight, near = held.rows, held.weight, world.near
    members = np.empty(_FEW, dtype=np.int64)
    for g in range(count):
        if state.price[g] <= 0.0 or state.size[g] > _FEW or state.size[g] == 0:
            continue
        size, at = 0, state.head[g]
        while at >= 0:
            members[size] = at
            size += 1
            at = state.after[at]
        allowed = rows[g] * state.price[g]
        spent, moved = 0.0, 0
        while moved < size and spent < allowed:
            a = members[moved]
            own = world.record[a]
            least_rise, target = np.inf, -1
            for j in range(near.shape[1]):
                if near[own, j] < 0:
                    break
                h = state.label[world.rows_of[world.row_at[near[own, j]]]]
                if h < 0 or h == g:
                    continue
                limit = (least_rise + rows[h] * state.price[h]) / (rows[h] + weight[a])
                joint = joint_cost(world.measure, state.low, state.high, h, world.points, own, limit)
                rise = (rows[h] + weight[a]) * joint - rows[h] * state.price[h]
                if rise < least_rise:
                    least_rise, target = rise, h
            if target < 0:
                spent = np.inf
                break
            spent += least_rise
            _take(world, state, held, a, target)
            moved += 1
        if spent > allowed - _LEAST_GAIN:
            for i in range(moved):
                _take(world, state, held, members[i], g)


@njit(cache=True)
def _cut_groups(world: World, state: State, held: Held, count: int) -> int:
    """Groups with rows enough for two are cut along a column where that pays; returns how many numbers are in use."""
    rows, weight = held.rows, held.weight
    columns = world.points.shape[1]
    members = np.empty(_MOST_CUT, dtype=np.int64)
    values, prices = np.empty(_MOST_CUT), np.empty(_MOST_CUT)
    low, high = np.empty((1, columns)), np.empty((1, columns))
    at = 0
    while at < count and count < rows.size:
        size = state.size[at]
        if state.price[at] <= 0.0 or rows[at] < 2 * held.least or size > _MOST_CUT or size < 2:
            at += 1
            continue
        a = state.head[at]
        for i in range(size):
            members[i] = a
            a = state.after[a]
        best, chosen, place = rows[at] * state.price[at] - _LEAST_GAIN, -1, 0
        for c in range(columns):
            if state.low[at, c] == state.high[at, c]:
                continue
            for i in range(size):
                values[i] = world.points[world.record[members[i]], c]
            order = np.argsort(values[:size], kind="mergesort")
            _run_prices(world, members, order, low, high, prices)
            low[0], high[0] = np.inf, -np.inf
            right = 0
            for i in range(size - 1, 0, -1):
                b = members[order[i]]
                right += weight[b]
                _widen(world, b, low, high)
                left = rows[at] - right
                if right < held.least or values[order[i]] == values[order[i - 1]]:
                    continue
                if left < held.least:
                    break
                total = left * prices[i - 1] + right * cover_cost(world.measure, low, high, 0)
                if total < best:
                    best, chosen, place = total, c, i
        if chosen < 0:
            at += 1
            continue
        for i in range(size):
            values[i] = world.points[world.record[members[i]], chosen]
        order = np.argsort(values[:size], kind="mergesort")
        for i in range(place, size):
            b = members[order[i]]
            unlink(state, at, b)
            link(state, count, b)
            rows[at] -= weight[b]
            rows[count] += weight[b]
        state.block[count] = 0
        measure_group(world, state, at)
        measure_group(world, state, count)
        count += 1  # and the left part is looked at again
    return count


@njit(cache=True)
def _widen(world: World, a: int, low: FloatArray, high: FloatArray) -> None:
    for c in range(world.points.shape[1]):
        x = world.points[world.record[a], c]
        low[0, c] = x if x < low[0, c] else low[0, c]
        high[0, c] = x if x > high[0, c] else high[0, c]


@njit(cache=True)
def _run_prices(
    world: World, members: Int64Array, order: Int64Array, low: FloatArray, high: FloatArray, out: FloatArray
) -> None:
    """``out[i]`` becomes what the cover of the first i + 1 of *members* in *order* costs."""
    low[0], high[0] = np.inf, -np.inf
    for i in range(order.size):
        _widen(world, members[order[i]], low, high)
        out[i] = cover_cost(world.measure, low, high, 0)
