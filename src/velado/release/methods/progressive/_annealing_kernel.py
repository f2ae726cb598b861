"""The steps of the annealing, compiled: a row moved or exchanged with a neighbouring group, a few groups made anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.release.methods._row_covers import column_cost, cover_cost, joint_cost
from velado.release.methods.progressive._group_state import State, World, link, measure_group, unlink
from velado.release.methods.progressive._neighbour_graph import next_random

_WINDOW = 64
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
def anneal_block(
    world: World, state: State, rows: Int32Array, block: int, plan: Plan, seed: int, stock: Stock
) -> None:
    """One round over the *rows* of a block: they are all rows of its groups, and stay in it."""
    random = np.array([seed * 2 + 1], dtype=np.int64)
    for _ in range(8):
        next_random(random)
    order = rows.copy()
    for _ in range(plan.sweeps):
        # Rows come nearly in the order given, neighbours together, so that what they touch stays in the cache.
        for i in range(order.size - 1):
            j = i + int(next_random(random) * min(_WINDOW, order.size - i))
            order[i], order[j] = order[j], order[i]
        _sweep(world, state, order, block, plan, random)
    if plan.rebuilds and rows.size:
        _rebuild_some(world, state, rows, block, plan, random, stock)


@njit(cache=True, nogil=True)
def _exponential(random: Int64Array, heat: float) -> float:
    return -heat * np.log(1.0 - next_random(random)) if heat > 0 else 0.0


@njit(cache=True, nogil=True)
def _other_group(world: World, state: State, row: int, block: int, random: Int64Array) -> int:
    """A group near *row* that is not its own: along the neighbours, each passed over with some chance; -1: none."""
    label, record_of, near = state.label, world.record, world.near
    own = label[row]
    record = record_of[row]
    start, end = world.row_at[record], world.row_at[record + 1]
    if end - start > 1 and next_random(random) < 0.5:
        g = label[world.rows_of[start + int(next_random(random) * (end - start))]]
        if g >= 0 and g != own and state.block[g] == block:
            return g  # type: ignore[no-any-return]
    found = -1
    for j in range(near.shape[1]):
        other = near[record, j]
        if other < 0:
            break
        start, end = world.row_at[other], world.row_at[other + 1]
        at = start if end - start == 1 else start + int(next_random(random) * (end - start))
        g = label[world.rows_of[at]]
        if g >= 0 and g != own and state.block[g] == block:
            found = g
            if next_random(random) < 0.65:
                break
    return found


@njit(cache=True, nogil=True)
def _sweep(world: World, state: State, order: Int32Array, block: int, plan: Plan, random: Int64Array) -> None:
    measure, points, record_of = world.measure, world.points, world.record
    label, price, size = state.label, state.price, state.size
    lows, lows2, highs2, highs = state.low, state.low2, state.high2, state.high
    after, head = state.after, state.head
    columns = points.shape[1]
    lines, table, table_at, codes, most = (
        measure.lines,
        measure.table,
        measure.table_at,
        measure.size,
        measure.most,
    )
    low = np.empty((1, columns))
    high = np.empty((1, columns))
    visits = 4 * plan.least + 32
    for a in order:
        mine = label[a]
        if mine < 0 or price[mine] <= 0.0 or size[mine] < 2:
            continue
        own = record_of[a]
        outer = False
        for c in range(columns):
            x = points[own, c]
            low[0, c] = lows2[mine, c] if x == lows[mine, c] else lows[mine, c]
            high[0, c] = highs2[mine, c] if x == highs[mine, c] else highs[mine, c]
            if low[0, c] != lows[mine, c] or high[0, c] != highs[mine, c]:
                outer = True
        if not outer:
            continue
        other = _other_group(world, state, a, block, random)
        if other < 0:
            continue
        rows, theirs = size[mine], size[other]
        best = rows * price[mine] + theirs * price[other] - 1e-9 + _exponential(random, plan.heat)
        chosen = -2
        without = cover_cost(measure, low, high, 0)
        if rows > plan.least:
            limit = (best - (rows - 1) * without) / (theirs + 1)
            joint = joint_cost(measure, lows, highs, other, points, own, limit)
            if joint < limit:
                best = (rows - 1) * without + (theirs + 1) * joint
                chosen = -1
        if rows * without + theirs * _least_in_place(world, state, other, own) >= best:
            q = -1
        else:
            q = head[other]
        seen = 0
        while q >= 0 and seen < visits:
            seen += 1
            record = record_of[q]
            in_mine = 0.0
            in_other = 0.0
            for c in range(columns):
                x = points[record, c]
                y = points[own, c]
                p = low[0, c] if low[0, c] < x else x
                r = high[0, c] if high[0, c] > x else x
                s = lows2[other, c] if x == lows[other, c] else lows[other, c]
                t = highs2[other, c] if x == highs[other, c] else highs[other, c]
                s = s if s < y else y
                t = t if t > y else y
                if c < lines:
                    in_mine += min(r - p, most[c])
                    in_other += min(t - s, most[c])
                elif table_at[c] >= 0:
                    in_mine += table[table_at[c] + int(p) * codes[c] + int(r)]
                    in_other += table[table_at[c] + int(s) * codes[c] + int(t)]
                else:
                    in_mine += _climbed(world, c, p, r)
                    in_other += _climbed(world, c, s, t)
                if rows * in_mine + theirs * in_other >= best:
                    break
            total = rows * in_mine + theirs * in_other
            if total < best:
                best = total
                chosen = q
            q = after[q]
        if chosen == -2:
            continue
        unlink(state, mine, a)
        link(state, other, a)
        if chosen >= 0:
            unlink(state, other, chosen)
            link(state, mine, chosen)
        measure_group(world, state, mine)
        measure_group(world, state, other)


@njit(cache=True, nogil=True)
def _least_in_place(world: World, state: State, g: int, record: int) -> float:
    """What g costs at least once *record* has taken the place of one of its rows, whichever that is."""
    measure, points = world.measure, world.points
    lows2, highs2 = state.low2, state.high2
    total = 0.0
    for c in range(measure.lines):
        x = points[record, c]
        a, b = lows2[g, c], highs2[g, c]
        width = (b if b > x else x) - (a if a < x else x)
        total += width if width < measure.most[c] else measure.most[c]
    for c in range(measure.lines, points.shape[1]):
        x = points[record, c]
        a, b = lows2[g, c], highs2[g, c]
        total += column_cost(measure, c, a if a < x else x, b if b > x else x)
    return total


@njit(cache=True, nogil=True)
def _climbed(world: World, column: int, low: float, high: float) -> float:
    measure = world.measure
    at = measure.node_at[column]
    node = int(low)
    while measure.last[at + node] < high:
        node = measure.parent[at + node]
    return measure.loss[at + node]  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def anneal_small_blocks(
    world: World,
    state: State,
    rows: Int32Array,
    edges: Int64Array,
    plan: Plan,
    seed: int,
    spare: Int64Array,
    spare_edges: Int64Array,
) -> None:
    """One round in every block: block b has the rows edges[b]..edges[b + 1], and spare numbers likewise; none is dropped."""
    none = np.zeros(1, dtype=np.int64)
    for b in range(edges.size - 1):
        mine = rows[edges[b] : edges[b + 1]]
        groups = 0
        for i in range(mine.size):
            g = state.label[mine[i]]
            if state.head[g] == mine[i]:
                groups += 1
        room = np.empty(spare_edges[b + 1] - spare_edges[b] + groups + 1, dtype=np.int64)
        room[0] = spare_edges[b + 1] - spare_edges[b]
        for i in range(room[0]):
            room[i + 1] = spare[spare_edges[b] + i]
        anneal_block(world, state, mine, b, plan, seed + b, Stock(room, none))


class FreedRows(NamedTuple):
    """Room for one rebuild: rows and points of the freed groups, and the trial groups made of them."""

    row: Int32Array
    points: FloatArray
    left: Int32Array
    score: FloatArray
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
def _rebuild_some(
    world: World, state: State, rows: Int32Array, block: int, plan: Plan, random: Int64Array, stock: Stock
) -> None:
    least = plan.least
    room = 14 * least + 64
    pool = _empty_pool(room, world.points.shape[1], least)
    met = np.empty(_SEEN, dtype=np.int64)
    distance = np.empty(_SEEN)
    # Heaps of equal rows cost nothing and may be most of the table: the others are drawn from.
    costly = np.empty(rows.size, dtype=np.int32)
    count = 0
    for row in rows:
        if state.label[row] >= 0 and state.price[state.label[row]] > 0.0:
            costly[count] = row
            count += 1
    if count == 0:
        return
    for _ in range(plan.rebuilds):
        dear = -1
        for _ in range(2):
            g = state.label[costly[int(next_random(random) * count)]]
            if g >= 0 and (dear < 0 or state.price[g] > state.price[dear]):
                dear = g
        if dear < 0 or state.price[dear] <= 0.0 or state.size[dear] > room:
            continue
        held = _nearest_groups(world, state, dear, block, met, distance, random)
        if held == 0:
            continue
        wanted = 1 + int(next_random(random) * 5)
        freed, donors, members = _freed(world, state, pool, dear, met, held, wanted, least, room, random)
        if freed + donors < 2:
            continue
        before = 0.0
        for j in range(freed):
            before += state.size[pool.freed[j]] * state.price[pool.freed[j]]
        slack = before - 1e-9 + _exponential(random, plan.heat)
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
    left, score, blur, into = pool.left, pool.score, pool.blur, pool.into
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
        fresh = True
        price = 0.0
        while True:
            end = remaining - 1 - taken
            left[at], left[end] = left[end], left[at]
            score[at] = score[end]
            blur[at] = blur[end]
            into[left[end]] = groups
            taken += 1
            if taken == number:
                break
            cheapest = np.inf
            for i in range(end):
                if fresh:
                    score[i] = joint_cost(measure, lows, highs, groups, points, left[i], np.inf)
                blurred = score[i] * blur[i] if noise > 0.0 else score[i]
                if blurred < cheapest:
                    cheapest = blurred
                    at = i
            fresh = score[at] > price
            price = score[at]
            if total + least * price >= slack:
                return 0, np.inf
            if fresh:
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
