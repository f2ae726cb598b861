"""The larger steps of the annealing, compiled: dear groups given up, and a few near groups made anew together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from velado.compiled import njit
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.release.methods._row_covers import cover_cost, joint_cost
from velado.release.methods.progressive._group_state import State, World, link, measure_group, unlink
from velado.release.methods.progressive._neighbour_graph import next_random

_NEAREST = 10
_SEEN = 24
"""Groups met around a group before the nearest of them are chosen."""


class Plan(NamedTuple):
    """One round: the least rows of a group, how much worse a step may be, how many steps of each kind.

    *drop* is what a row costs that is in no group.
    """

    least: int
    heat: float
    sweeps: int
    rebuilds: int
    drop: float


class Stock(NamedTuple):
    """What a block may use up: *spare* group numbers (how many, then which), and *droppable[0]* rows to drop."""

    spare: Int64Array
    droppable: Int64Array


@njit(cache=True, nogil=True)
def exponential(random: Int64Array, heat: float) -> float:
    """How much worse a step may be this time."""
    return -heat * np.log(1.0 - next_random(random)) if heat > 0 else 0.0


@njit(cache=True, nogil=True)
def regroup_some(
    world: World, state: State, rows: Int32Array, block: int, plan: Plan, random: Int64Array, stock: Stock
) -> None:
    """As many groups given up and as many rebuilt as the plan says, where that costs less."""
    costly = _costly(state, rows)
    _dissolve_some(world, state, costly, block, plan, random, stock)
    _rebuild_some(world, state, costly, block, plan, random, stock)


class FreedRows(NamedTuple):
    """Room for one rebuild: rows and points of the freed groups, and the trial groups made of them."""

    row: Int32Array
    points: FloatArray
    left: Int32Array
    score: FloatArray
    known: Int32Array
    blur: FloatArray
    into: Int32Array
    low: FloatArray
    high: FloatArray
    size: Int64Array
    price: FloatArray
    freed: Int64Array
    donors: Int64Array


@njit(cache=True, nogil=True)
def _empty_pool(most: int, columns: int, least: int) -> FreedRows:
    groups = most // max(least, 1) + 8
    return FreedRows(
        np.empty(most, dtype=np.int32),
        np.empty((most, columns)),
        np.empty(most, dtype=np.int32),
        np.empty(most),
        np.empty(most, dtype=np.int32),
        np.empty(most),
        np.empty(most, dtype=np.int32),
        np.empty((groups, columns)),
        np.empty((groups, columns)),
        np.empty(groups, dtype=np.int64),
        np.empty(groups),
        np.empty(8, dtype=np.int64),
        np.empty(8, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def _costly(state: State, rows: Int32Array) -> Int32Array:
    """Those in groups that cost something: heaps of equal rows cost nothing and may be most of the table."""
    out = np.empty(rows.size, dtype=np.int32)
    count = 0
    for row in rows:
        if state.label[row] >= 0 and state.price[state.label[row]] > 0.0:
            out[count] = row
            count += 1
    return out[:count]


@njit(cache=True, nogil=True)
def _dear(state: State, costly: Int32Array, random: Int64Array) -> int:
    """The dearer of the groups of two rows drawn; -1 where both were dropped meanwhile, or there are none."""
    dear = -1
    if costly.size:
        for _ in range(2):
            g = state.label[costly[int(next_random(random) * costly.size)]]
            if g >= 0 and (dear < 0 or state.price[g] > state.price[dear]):
                dear = g
    return dear


@njit(cache=True, nogil=True)
def _dissolve_some(
    world: World, state: State, costly: Int32Array, block: int, plan: Plan, random: Int64Array, stock: Stock
) -> None:
    """Dear groups are given up where each of their rows finds another group near it, and all together cost less.

    Rows that are far from all others are put together by any start, since nobody else takes them in. To rebuild a group
    with its nearest does not part them: the groups near one of them are not near the others.
    """
    measure, points = world.measure, world.points
    columns = points.shape[1]
    most = 2 * plan.least
    # What the groups that rows were promised to would be: several rows may go to the same.
    target = np.empty(most, dtype=np.int64)
    low, high = np.empty((most, columns)), np.empty((most, columns))
    size, price = np.empty(most, dtype=np.int64), np.empty(most)
    goes_to = np.empty(most, dtype=np.int64)
    for _ in range(plan.rebuilds):
        dear = _dear(state, costly, random)
        if dear < 0 or state.price[dear] <= 0.0 or state.size[dear] > most:
            continue
        slack = state.size[dear] * state.price[dear] - 1e-9 + exponential(random, plan.heat)
        moved = 0
        targets = 0
        row = state.head[dear]
        while row >= 0:
            record = world.record[row]
            best, chosen, place, wider = slack, -1, -1, 0.0
            for j in range(-1, world.near.shape[1]):
                other = record if j < 0 else world.near[record, j]
                if other < 0:
                    break
                # Written out: a function that takes world and state would cost more than the step.
                start, end = world.row_at[other], world.row_at[other + 1]
                at = start if end - start == 1 else start + int(next_random(random) * (end - start))
                g = state.label[world.rows_of[at]]
                if g < 0 or g in (dear, chosen) or state.block[g] != block:
                    continue
                t = -1
                for i in range(targets):
                    if target[i] == g:
                        t = i
                rows = size[t] if t >= 0 else state.size[g]
                before = rows * (price[t] if t >= 0 else state.price[g])
                limit = (best + before) / (rows + 1)
                if t >= 0:
                    joint = joint_cost(measure, low, high, t, points, record, limit)
                else:
                    joint = joint_cost(measure, state.low, state.high, g, points, record, limit)
                if joint < limit:
                    best, chosen, place, wider = (rows + 1) * joint - before, g, t, joint
            if chosen < 0:
                break
            if place < 0:
                place = targets
                targets += 1
                target[place], size[place] = chosen, state.size[chosen]
                for c in range(columns):
                    low[place, c] = state.low[chosen, c]
                    high[place, c] = state.high[chosen, c]
            for c in range(columns):
                low[place, c] = min(low[place, c], points[record, c])
                high[place, c] = max(high[place, c], points[record, c])
            size[place] += 1
            price[place] = wider
            slack -= best
            goes_to[moved] = chosen
            moved += 1
            row = state.after[row]
        if row >= 0:
            continue
        for i in range(moved):
            row = state.head[dear]
            unlink(state, dear, row)
            link(state, goes_to[i], row)
        for t in range(targets):
            measure_group(world, state, target[t])
        state.block[dear] = -1
        state.size[dear] = 0
        state.price[dear] = 0.0
        stock.spare[0] += 1
        stock.spare[stock.spare[0]] = dear


@njit(cache=True, nogil=True)
def _rebuild_some(
    world: World, state: State, costly: Int32Array, block: int, plan: Plan, random: Int64Array, stock: Stock
) -> None:
    least = plan.least
    room = 14 * least + 64
    pool = _empty_pool(room, world.points.shape[1], least)
    met = np.empty(_SEEN, dtype=np.int64)
    distance = np.empty(_SEEN)
    for _ in range(plan.rebuilds):
        dear = _dear(state, costly, random)
        if dear < 0 or state.price[dear] <= 0.0 or state.size[dear] > room:
            continue
        held = _nearest_groups(world, state, dear, block, met, distance, random)
        if held == 0 and state.size[dear] < 2 * least:
            continue
        wanted = 1 + int(next_random(random) * 5)
        freed, donors, members = _freed(world, state, pool, dear, met, held, wanted, least, room, random)
        if freed + donors < 2 and members < 2 * least:
            continue
        before = 0.0
        for j in range(freed):
            before += state.size[pool.freed[j]] * state.price[pool.freed[j]]
        slack = before - 1e-9 + exponential(random, plan.heat)
        groups, total = _regrow(world, state, pool, members, donors, plan, slack, random, stock.droppable[0])
        if groups > 0 and total < slack:
            _commit(world, state, pool, members, freed, donors, groups, block, stock)


@njit(cache=True, nogil=True)
def _nearest_groups(
    world: World,
    state: State,
    dear: int,
    block: int,
    met: Int64Array,
    distance: FloatArray,
    random: Int64Array,
) -> int:
    """The groups that neighbours of the members of *dear* are in, nearest by joint cover first; returns how many."""
    found = 0
    columns = world.points.shape[1]
    lows, highs = state.low, state.high
    low = np.empty((1, columns))
    high = np.empty((1, columns))
    row = state.head[dear]
    while row >= 0 and found < met.size:
        record = world.record[row]
        skip = next_random(random)
        for j in range(-1, world.near.shape[1]):
            other = record if j < 0 else world.near[record, j]
            if other < 0:
                break
            start, end = world.row_at[other], world.row_at[other + 1]
            at = start if end - start == 1 else start + int(next_random(random) * (end - start))
            g = state.label[world.rows_of[at]]
            if g < 0 or g == dear or state.block[g] != block:
                continue
            known = False
            for i in range(found):
                if met[i] == g:
                    known = True
                    break
            if known:
                continue
            for c in range(columns):
                low[0, c] = lows[dear, c] if lows[dear, c] < lows[g, c] else lows[g, c]
                high[0, c] = highs[dear, c] if highs[dear, c] > highs[g, c] else highs[g, c]
            away = cover_cost(world.measure, low, high, 0)
            at = found
            while at > 0 and distance[at - 1] > away:
                distance[at] = distance[at - 1]
                met[at] = met[at - 1]
                at -= 1
            distance[at] = away
            met[at] = g
            found += 1
            if found == met.size:
                break
        row = state.after[row]
        if skip < 0.3 and found > _NEAREST and row >= 0:
            row = state.after[row]
    return min(found, _NEAREST)


@njit(cache=True, nogil=True)
def _freed(
    world: World,
    state: State,
    pool: FreedRows,
    dear: int,
    met: Int64Array,
    held: int,
    wanted: int,
    least: int,
    room: int,
    random: Int64Array,
) -> tuple[int, int, int]:
    """Rows of *dear* and of some of its nearest groups into the pool: (groups freed, donors, rows).

    A heap of equal rows that has rows to spare gives some and stays: it is a donor.
    """
    freed = 0
    donors = 0
    members = 0
    for step in range(-1, held):
        if step >= 0 and freed + donors > wanted:
            break
        if step >= 0 and next_random(random) > 0.6 and held - step > wanted - freed - donors + 1:
            continue
        g = dear if step < 0 else met[step]
        if state.price[g] <= 0.0 and state.size[g] > least:
            give = min(state.size[g] - least, least)
            if members + give > room:
                continue
            pool.donors[donors] = g
            donors += 1
        else:
            give = state.size[g]
            if members + give > room:
                continue
            pool.freed[freed] = g
            freed += 1
        row = state.head[g]
        for _ in range(give):
            pool.row[members] = row
            record = world.record[row]
            for c in range(pool.points.shape[1]):
                pool.points[members, c] = world.points[record, c]
            members += 1
            row = state.after[row]
    return freed, donors, members


@njit(cache=True, nogil=True)
def _regrow(
    world: World,
    state: State,
    pool: FreedRows,
    members: int,
    donors: int,
    plan: Plan,
    slack: float,
    random: Int64Array,
    droppable: int,
) -> tuple[int, float]:
    """Trial groups over the pool's rows: (groups, rows x price); the first *donors* groups are what is left of the donors.

    What is left over joins the group it widens least, or is dropped (group -1) where that costs less. Ends early, with
    0 groups, once the total is *slack* or more.
    """
    measure = world.measure
    least = plan.least
    points, lows, highs, sizes, prices = pool.points, pool.low, pool.high, pool.size, pool.price
    left, score, known, blur, into = pool.left, pool.score, pool.known, pool.blur, pool.into
    columns = points.shape[1]
    groups = 0
    total = 0.0
    for j in range(donors):
        g = pool.donors[j]
        for c in range(columns):
            lows[groups, c] = state.low[g, c]
            highs[groups, c] = state.high[g, c]
        sizes[groups] = state.size[g] - min(state.size[g] - least, least)
        prices[groups] = 0.0
        groups += 1
    for i in range(members):
        left[i] = i
    remaining = members
    noise = 0.0
    if next_random(random) < 0.3:
        noise = 0.1 + 0.5 * next_random(random)
    way = int(next_random(random) * 3)
    together = next_random(random) < 0.5
    last = int(next_random(random) * members)
    while remaining >= least:
        # The seed: any row, the one farthest from the last seed, or the one the last group could least take in.
        at = int(next_random(random) * remaining)
        if way > 0:
            far = -1.0
            for i in range(remaining):
                if way == 1 or groups == donors:
                    away = joint_cost(measure, points, points, last, points, left[i], np.inf)
                else:
                    away = joint_cost(measure, lows, highs, groups - 1, points, left[i], np.inf)
                if noise > 0.0:
                    away *= 1.0 + noise * next_random(random)
                if away > far:
                    far = away
                    at = i
        last = left[at]
        for c in range(columns):
            lows[groups, c] = points[last, c]
            highs[groups, c] = points[last, c]
        number = remaining if remaining < 2 * least and together else least
        if noise > 0.0:
            for i in range(remaining):
                blur[i] = 1.0 + noise * next_random(random)
        taken = 0
        price = 0.0
        # A row's score only rises as the group grows: what it was once is passed over where that is too much already.
        # known[i] is the cover that score[i] is exact for; of an older one it is a lower bound.
        cover = 0
        for i in range(remaining):
            score[i] = 0.0
            known[i] = -1
        while True:
            end = remaining - 1 - taken
            left[at], left[end] = left[end], left[at]
            score[at] = score[end]
            known[at] = known[end]
            blur[at] = blur[end]
            into[left[end]] = groups
            taken += 1
            if taken == number:
                break
            cheapest = np.inf
            for i in range(end):
                factor = blur[i] if noise > 0.0 else 1.0
                if score[i] * factor >= cheapest:
                    continue
                if known[i] != cover:
                    limit = cheapest / factor
                    joint = joint_cost(measure, lows, highs, groups, points, left[i], limit)
                    if joint >= limit:
                        score[i] = limit
                        continue
                    score[i] = joint
                    known[i] = cover
                cheapest = score[i] * factor
                at = i
            wider = score[at] > price
            price = score[at]
            if total + least * price >= slack:
                return 0, np.inf
            if wider:
                cover += 1
                row = left[at]
                for c in range(columns):
                    x = points[row, c]
                    lows[groups, c] = x if x < lows[groups, c] else lows[groups, c]
                    highs[groups, c] = x if x > highs[groups, c] else highs[groups, c]
        remaining -= taken
        sizes[groups] = taken
        prices[groups] = price
        total += taken * price
        groups += 1
        if total >= slack:
            return 0, np.inf
    if groups == 0:
        return 0, np.inf
    for i in range(remaining):
        row = left[i]
        best = np.inf
        target = 0
        for g in range(groups):
            limit = (best + sizes[g] * prices[g]) / (sizes[g] + 1)
            joint = joint_cost(measure, lows, highs, g, points, row, limit)
            if joint < limit:
                best = (sizes[g] + 1) * joint - sizes[g] * prices[g]
                target = g
        if droppable > 0 and plan.drop < best:
            droppable -= 1
            total += plan.drop
            into[row] = -1
            continue
        total += best
        if total >= slack:
            return 0, np.inf
        for c in range(columns):
            lows[target, c] = min(lows[target, c], points[row, c])
            highs[target, c] = max(highs[target, c], points[row, c])
        sizes[target] += 1
        prices[target] = cover_cost(measure, lows, highs, target)
        into[row] = target
    return groups, total


@njit(cache=True, nogil=True)
def _commit(
    world: World,
    state: State,
    pool: FreedRows,
    members: int,
    freed: int,
    donors: int,
    groups: int,
    block: int,
    stock: Stock,
) -> None:
    """The trial groups take the place of the freed ones; numbers no longer needed become spare."""
    for i in range(members):
        unlink(state, state.label[pool.row[i]], pool.row[i])
    spare = stock.spare
    names = np.empty(groups, dtype=np.int64)
    used = 0
    for g in range(groups):
        if g < donors:
            names[g] = pool.donors[g]
        elif used < freed:
            names[g] = pool.freed[used]
            used += 1
        else:
            names[g] = spare[spare[0]]
            spare[0] -= 1
        state.block[names[g]] = block
    for j in range(used, freed):
        g = pool.freed[j]
        state.block[g] = -1
        state.size[g] = 0
        state.price[g] = 0.0
        spare[0] += 1
        spare[spare[0]] = g
    for i in range(members):
        if pool.into[i] >= 0:
            link(state, names[pool.into[i]], pool.row[i])
        else:
            state.label[pool.row[i]] = -1
            stock.droppable[0] -= 1
    for g in range(groups):
        measure_group(world, state, names[g])
