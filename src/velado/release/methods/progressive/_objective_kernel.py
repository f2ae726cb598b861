"""The steps of a search for any mixture of objectives, compiled: a row moved or exchanged, a few groups made anew.

The same steps as `_annealing_kernel` has for the loss alone, which reads covers only and is far faster at it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from velado.compiled import njit
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.release.methods.progressive._group_state import link, unlink
from velado.release.methods.progressive._neighbour_graph import next_random
from velado.release.methods.progressive._regroup_kernel import Plan, Stock
from velado.release.methods.progressive.objectives._ingredients import (
    GroupTallies,
    Ingredients,
    clear_group,
    empty_groups,
    priced,
    take_in,
)
from velado.release.methods.progressive.objectives.mixture import cost_after

# Groups have the fields of a State that these read.
_link: Any = link
_unlink: Any = unlink

_WINDOW = 64
_MET = 10
_FREED = 6


@njit(cache=True, nogil=True)
def weigh_group(world: Ingredients, groups: GroupTallies, g: int) -> None:
    """All that is known of g, from its members."""
    g = g + 0  # 64 bits wide whatever it was, so that this is compiled once
    clear_group(groups, g)
    row = groups.head[g]
    while row >= 0:
        take_in(world, groups, g, world.record[row])
        row = groups.after[row]
    if groups.size[g] > 0:
        priced(world, groups, g)
        groups.cost[g] = cost_after(world, groups, g, -1, -1)


@njit(cache=True, nogil=True)
def fill_groups(world: Ingredients, label: Int32Array, count: int, room: int) -> GroupTallies:
    """The groups of a labelling (-1: in none), with *room* for so many."""
    groups = empty_groups(world, label.size, room)
    for row in range(label.size - 1, -1, -1):
        if label[row] >= 0:
            _link(groups, label[row], row)
    for g in range(count):
        weigh_group(world, groups, g)
        groups.block[g] = 0
    return groups


@njit(cache=True)
def total_of(groups: GroupTallies) -> float:
    """What the mixture charges for all groups."""
    total = 0.0
    for g in range(groups.size.size):
        if groups.block[g] >= 0:
            total += groups.cost[g]
    return total


@njit(cache=True, nogil=True)
def lower_block(
    world: Ingredients,
    groups: GroupTallies,
    rows: Int32Array,
    block: int,
    plan: Plan,
    seed: int,
    stock: Stock,
) -> None:
    """One round over the *rows* of a block: they are all rows of its groups, and stay in it."""
    random = np.array([2 * seed + 1], dtype=np.int64)
    for _ in range(8):  # the first numbers of near seeds are near
        next_random(random)
    for _ in range(plan.sweeps):
        _exchange_rows(world, groups, _nearly_in_order(rows, random), block, plan, random)
    if plan.rebuilds and rows.size:
        _remake_groups(world, groups, rows, block, plan, random, stock)


@njit(cache=True, nogil=True)
def _nearly_in_order(rows: Int32Array, random: Int64Array) -> Int32Array:
    """The rows, each at most some dozens of places away: neighbours stay together."""
    order = rows.copy()
    for i in range(order.size - 1):
        j = i + int(next_random(random) * min(_WINDOW, order.size - i))
        order[i], order[j] = order[j], order[i]
    return order


@njit(cache=True, nogil=True)
def lower_small_blocks(
    world: Ingredients,
    state: GroupTallies,
    plan: Plan,
    seed: int,
    rows: Int32Array,
    edges: Int64Array,
    spare: Int64Array,
    spare_edges: Int64Array,
) -> None:
    """One round in every block: block b has the rows edges[b]..edges[b + 1], and spare numbers likewise; none is dropped."""
    none = np.zeros(1, dtype=np.int64)
    for b in range(edges.size - 1):
        mine = rows[edges[b] : edges[b + 1]]
        given = spare[spare_edges[b] : spare_edges[b + 1]]
        room = np.zeros(given.size + mine.size + 1, dtype=np.int64)
        room[0] = given.size
        room[1 : given.size + 1] = given
        lower_block(world, state, mine, b, plan, seed + b, Stock(room, none))


@njit(cache=True, nogil=True)
def _slack(random: Int64Array, heat: float) -> float:
    return -heat * np.log(1.0 - next_random(random)) - 1e-9 if heat > 0 else -1e-9


@njit(cache=True, nogil=True)
def _group_near(
    world: Ingredients, groups: GroupTallies, record: int, own: int, block: int, random: Int64Array
) -> int:
    """A group that holds an equal or a neighbouring row and is not *own*; nearer ones are likelier; -1: none."""
    found = -1
    for j in range(-1, world.near.shape[1]):
        other = record if j < 0 else world.near[record, j]
        if other < 0:
            break
        first, count = world.row_at[other], world.row_at[other + 1] - world.row_at[other]
        row = world.rows_of[first + int(next_random(random) * count)]
        g = groups.label[row]
        if g >= 0 and g != own and groups.block[g] == block:
            found = g
            if next_random(random) < 0.5:
                break
    return found


@njit(cache=True, nogil=True)
def _exchange_rows(
    world: Ingredients, groups: GroupTallies, order: Int32Array, block: int, plan: Plan, random: Int64Array
) -> None:
    visits = 4 * plan.least + 32
    for a in order:
        mine = groups.label[a]
        if mine < 0 or groups.cost[mine] <= 0.0 or groups.size[mine] < 2:
            continue
        own = world.record[a]
        other = _group_near(world, groups, own, mine, block, random)
        if other < 0:
            continue
        best = groups.cost[mine] + groups.cost[other] + _slack(random, plan.heat)
        chosen = -2
        if groups.size[mine] > plan.least:
            total = cost_after(world, groups, mine, own, -1)
            if total < best:
                total += cost_after(world, groups, other, -1, own)
                if total < best:
                    best = total
                    chosen = -1
        q = groups.head[other]
        seen = 0
        while q >= 0 and seen < visits:
            seen += 1
            record = world.record[q]
            if record != own:
                total = cost_after(world, groups, mine, own, record)
                if total < best:
                    total += cost_after(world, groups, other, record, own)
                    if total < best:
                        best = total
                        chosen = q
            q = groups.after[q]
        if chosen == -2:
            continue
        _unlink(groups, mine, a)
        _link(groups, other, a)
        if chosen >= 0:
            _unlink(groups, other, chosen)
            _link(groups, mine, chosen)
        weigh_group(world, groups, mine)
        weigh_group(world, groups, other)


class Freed(NamedTuple):
    """Room for one rebuild: the rows of the freed groups, which trial group each is put into, and those groups."""

    row: Int32Array
    left: Int32Array
    into: Int32Array
    score: FloatArray
    groups: Int64Array
    trial: GroupTallies


@njit(cache=True, nogil=True)
def _remake_groups(
    world: Ingredients,
    groups: GroupTallies,
    rows: Int32Array,
    block: int,
    plan: Plan,
    random: Int64Array,
    stock: Stock,
) -> None:
    room = 14 * plan.least + 64
    free = Freed(
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32),
        np.empty(room),
        np.empty(_FREED + 1, dtype=np.int64),
        empty_groups(world, 1, room // max(plan.least, 1) + 2),
    )
    met = np.empty(_MET, dtype=np.int64)
    # A rebuild takes some ten times as long as where covers alone are read: there are fewer, and more sweeps.
    for _ in range(max(plan.rebuilds // 3, 1)):
        dear = -1
        for _ in range(2):
            g = groups.label[rows[int(next_random(random) * rows.size)]]
            if g >= 0 and (
                dear < 0 or groups.cost[g] * groups.size[dear] > groups.cost[dear] * groups.size[g]
            ):
                dear = g
        if dear < 0 or groups.cost[dear] <= 0.0 or groups.size[dear] > room:
            continue
        freed, members = _free_some(world, groups, dear, block, met, free, random)
        if freed < 2 and members < 2 * plan.least:
            continue
        before = 0.0
        for j in range(freed):
            before += groups.cost[free.groups[j]]
        limit = before + _slack(random, plan.heat)
        count, total = _grow_anew(world, free, members, plan, limit, random, stock.droppable[0])
        if count > 0 and total < limit:
            _take_over(world, groups, free, members, freed, count, block, stock)


@njit(cache=True, nogil=True)
def _free_some(
    world: Ingredients,
    groups: GroupTallies,
    dear: int,
    block: int,
    met: Int64Array,
    free: Freed,
    random: Int64Array,
) -> tuple[int, int]:
    """Rows of *dear* and of up to five groups near it, as (groups, rows); what does not fit stays."""
    wanted = 1 + int(next_random(random) * (_FREED - 1))
    found = 0
    for _ in range(4 * _MET):
        if found == met.size:
            break
        row = groups.head[dear]
        for _ in range(int(next_random(random) * min(groups.size[dear], 64))):
            row = groups.after[row]
        g = _group_near(world, groups, world.record[row], dear, block, random)
        known = g < 0
        for i in range(found):
            known = known or met[i] == g
        if not known:
            met[found] = g
            found += 1
    count, members = 0, 0
    for i in range(-1, found):
        if count > wanted:
            break
        g = dear if i < 0 else met[i]
        if members + groups.size[g] > free.row.size:
            continue
        free.groups[count] = g
        count += 1
        row = groups.head[g]
        while row >= 0:
            free.row[members] = row
            members += 1
            row = groups.after[row]
    return count, members


@njit(cache=True, nogil=True)
def _grow_anew(
    world: Ingredients,
    free: Freed,
    members: int,
    plan: Plan,
    limit: float,
    random: Int64Array,
    droppable: int,
) -> tuple[int, float]:
    """Trial groups over the freed rows: (groups, cost); 0 groups once the cost is *limit* or more.

    Each grows from a seed, any row or the one that the last group could least take in, by the row that costs least. What
    is left over joins where it costs least, or is dropped (group -1) where that costs less.
    """
    trial, left, into, score = free.trial, free.left, free.into, free.score
    record = world.record
    for i in range(members):
        left[i] = i
    remaining = members
    count = 0
    total = 0.0
    noise = 0.5 * next_random(random) if next_random(random) < 0.3 else 0.0
    far = next_random(random) < 0.6
    together = next_random(random) < 0.5
    while remaining >= plan.least and remaining > 0:
        at = int(next_random(random) * remaining)
        if far and count > 0:
            worst = -np.inf
            for i in range(remaining):
                cost = cost_after(world, trial, count - 1, -1, record[free.row[left[i]]])
                if cost > worst:
                    worst = cost
                    at = i
        clear_group(trial, count)
        number = remaining if remaining < 2 * plan.least and together else max(plan.least, 1)
        for taken in range(number):
            end = remaining - 1 - taken
            if taken > 0:
                cheapest = np.inf
                for i in range(end + 1):
                    cost = cost_after(world, trial, count, -1, record[free.row[left[i]]])
                    if noise > 0.0:
                        cost *= 1.0 + noise * next_random(random)
                    if cost < cheapest:
                        cheapest = cost
                        at = i
            left[at], left[end] = left[end], left[at]
            into[left[end]] = count
            take_in(world, trial, count, record[free.row[left[end]]])
        remaining -= number
        trial.cost[count] = cost_after(world, trial, count, -1, -1)
        total += trial.cost[count]
        count += 1
        if total >= limit:
            return 0, np.inf
    if count == 0:
        return 0, np.inf
    for i in range(remaining):
        own = record[free.row[left[i]]]
        best = np.inf
        target = 0
        for g in range(count):
            score[g] = cost_after(world, trial, g, -1, own)
            if score[g] - trial.cost[g] < best:
                best = score[g] - trial.cost[g]
                target = g
        if droppable > 0 and plan.drop < best:
            droppable -= 1
            total += plan.drop
            into[left[i]] = -1
            continue
        total += best
        if total >= limit:
            return 0, np.inf
        take_in(world, trial, target, own)
        trial.cost[target] = score[target]
        into[left[i]] = target
    return count, total


@njit(cache=True, nogil=True)
def _take_over(
    world: Ingredients,
    groups: GroupTallies,
    free: Freed,
    members: int,
    freed: int,
    count: int,
    block: int,
    stock: Stock,
) -> None:
    """The trial groups take the place of the freed ones; numbers no longer needed become spare."""
    spare = stock.spare
    names = np.empty(count, dtype=np.int64)
    for g in range(count):
        if g < freed:
            names[g] = free.groups[g]
        else:
            names[g] = spare[spare[0]]
            spare[0] -= 1
        groups.block[names[g]] = block
    for i in range(members):
        _unlink(groups, groups.label[free.row[i]], free.row[i])
    for j in range(count, freed):
        g = free.groups[j]
        clear_group(groups, g)
        groups.block[g] = -1
        spare[0] += 1
        spare[spare[0]] = g
    for i in range(members):
        if free.into[i] >= 0:
            _link(groups, names[free.into[i]], free.row[i])
        else:
            groups.label[free.row[i]] = -1
            stock.droppable[0] -= 1
    for g in range(count):
        weigh_group(world, groups, names[g])
