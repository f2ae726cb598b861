"""The rounds of the annealing, compiled: rows moved or exchanged with a neighbouring group, then larger steps."""

from __future__ import annotations

import numpy as np

from velado.compiled import njit
from velado.data.partition import Int32Array, Int64Array
from velado.release.methods._row_covers import column_cost, cover_cost, joint_cost
from velado.release.methods.progressive._group_state import State, World, link, measure_group, unlink
from velado.release.methods.progressive._neighbour_graph import next_random
from velado.release.methods.progressive._regroup_kernel import Plan, Stock, exponential, regroup_some

_WINDOW = 64


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
        regroup_some(world, state, rows, block, plan, random, stock)


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
        best = rows * price[mine] + theirs * price[other] - 1e-9 + exponential(random, plan.heat)
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
