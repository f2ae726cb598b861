"""What is had at another goal from what a search has found: rows leave its groups, or one start is made instead of three."""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.release.goal import Goal, silent
from velado.release.methods._row_covers import column_cost
from velado.release.methods.progressive._annealing import Schedule, annealed, records_of, world_for
from velado.release.methods.progressive._group_state import (
    State,
    World,
    fill_state,
    measure_group,
    unlink,
)
from velado.release.methods.progressive.progressive import EFFORT, Progressive

_LITTLE_HEAT = 0.02


def without_dear_rows(data: EncodedTable, groups: Partition, least: int, droppable: int) -> Partition:
    """The same groups without the rows, *droppable* at most, that cost the others more than they are worth themselves.

    The loss, a row that is dropped counting as wholly lost, never rises, and every group keeps *least* rows. Of all rows
    the one that gains most goes first. Only groups that lose more than one row could are looked at.

    >>> from velado.testing.examples import encoded
    >>> data, whole = encoded(age=[20, 21, 22, 23, 90]), Partition.of(np.zeros(5, dtype=np.int32))
    >>> without_dear_rows(data, whole, 2, 1).labels.tolist()
    [0, 0, 0, 0, -1]
    """
    records, nothing = records_of(data), np.zeros(0, dtype=np.int32)
    world = World(
        records.measure,
        records.points,
        nothing.reshape(0, 0),
        records.record_of,
        nothing,
        np.zeros(0, dtype=np.int64),
        nothing,
    )
    state = fill_state(world, groups.labels, groups.count, groups.count)
    left = droppable - int((groups.labels < 0).sum())
    whole = float(sum(column.weight for column in data.columns))
    _drop_dear_rows(world, state, max(least, 1), left, whole)
    return Partition.of(state.label)


@njit(cache=True)
def _drop_dear_rows(world: World, state: State, least: int, droppable: int, whole: float) -> None:
    """Rows that gain most leave first; what a group's best one gains is found anew when one has left it."""
    heap = [(0.0, 0, 0)]
    heap.pop()
    for g in range(state.size.size):
        if state.size[g] * state.price[g] > whole:
            _offer_dearest(world, state, g, least, whole, heap)
    while droppable > 0 and len(heap) > 0:
        _, row, g = heapq.heappop(heap)
        unlink(state, g, row)
        state.label[row] = -1
        measure_group(world, state, g)
        _offer_dearest(world, state, g, least, whole, heap)
        droppable -= 1


@njit(cache=True)
def _offer_dearest(
    world: World, state: State, g: int, least: int, whole: float, heap: list[tuple[float, int, int]]
) -> None:
    """The row of g without which it loses least goes onto the heap, if the group can spare it and that gains anything."""
    rows = state.size[g]
    if rows <= least:
        return
    most, dearest = 1e-9, -1
    row = state.head[g]
    while row >= 0:
        without = 0.0
        for c in range(world.points.shape[1]):
            x = world.points[world.record[row], c]
            low = state.low2[g, c] if x == state.low[g, c] else state.low[g, c]
            high = state.high2[g, c] if x == state.high[g, c] else state.high[g, c]
            without += column_cost(world.measure, c, low, high)
        gain = rows * state.price[g] - (rows - 1) * without - whole
        if gain > most:
            most, dearest = gain, row
        row = state.after[row]
    if dearest >= 0:
        heapq.heappush(heap, (-most, dearest, g))


def at_another_goal(
    data: EncodedTable, goal: Goal, begun: str, seed: int, searched: bool = True
) -> Partition:
    """About what the default gives at another goal, on a table whose best start is known by its name.

    Records, boxes and neighbours are those of the search before; other starts are made only where that one cannot be. With
    *searched* numbers are searched for as many rounds as the fast effort has, on a large table two; else, and on
    categories alone, the groups are those of the fast effort.

    >>> from velado.release.guarantees.k_anonymity import KAnonymity
    >>> from velado.testing.examples import encoded
    >>> at_another_goal(encoded(age=[20, 31, 21, 30]), Goal((KAnonymity(2),)), "groups around seeds", 0).labels.tolist()
    [0, 1, 0, 1]
    """
    method, records = Progressive("fast"), records_of(data)
    start = method.start(data, records, goal, seed, silent, only=begun)
    if not searched or not records.measure.lines:
        return Partition.of(method.searched(data, records, goal, start, seed, silent))
    least, droppable = max(goal.least_rows, 1), goal.suppressible(data.rows)
    schedule = Schedule.of(data.rows, len(data.columns), least, droppable, EFFORT["fast"], fewest=2)
    # Heat that the first of few rounds must give up would be a round lost.
    schedule = replace(schedule, heat=min(schedule.heat, _LITTLE_HEAT))
    return Partition.of(annealed(world_for(data, records), start.labels, least, schedule, seed, _unsaid))


def _unsaid(share: float, cost: float) -> None:
    """Nobody is told of the rounds of a what-if."""
