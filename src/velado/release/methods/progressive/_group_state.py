"""The groups of a search: members as linked rows, and of each column the two lowest and the two highest values.

With those, what a group costs without one of its rows, or with another in its place, is known without looking at
its members.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from velado.compiled import njit
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.release.methods._row_covers import CoverMeasure, cover_cost


class World(NamedTuple):
    """What does not change in a search: measure, records, their neighbours, and which rows each record has.

    The rows of record r are ``rows_of[row_at[r] : row_at[r + 1]]``; *record* leads back. *route* is
    all rows in an order in which near ones come together.
    """

    measure: CoverMeasure
    points: FloatArray
    near: Int32Array
    record: Int32Array
    rows_of: Int32Array
    row_at: Int64Array
    route: Int32Array


class State(NamedTuple):
    """Which row is in which group, and what each group is.

    *head[g]*, *after* and *before* link the rows of a group. *low*, *low2*, *high2*
    and *high* [g, c] are the lowest, second lowest, second highest and highest value in column c. *block[g]* is the part of the table a group is in, -1 for a number not in use.
    """

    label: Int32Array
    head: Int32Array
    after: Int32Array
    before: Int32Array
    size: Int64Array
    low: FloatArray
    low2: FloatArray
    high2: FloatArray
    high: FloatArray
    price: FloatArray
    block: Int32Array


@njit(cache=True)
def link(state: State, g: int, row: int) -> None:
    """*row* becomes the first member of g; sizes and ends are left as they are."""
    first = state.head[g]
    state.after[row] = first
    state.before[row] = -1
    if first >= 0:
        state.before[first] = row
    state.head[g] = row
    state.label[row] = g


@njit(cache=True)
def unlink(state: State, g: int, row: int) -> None:
    """*row* is no longer linked in g."""
    before, after = state.before[row], state.after[row]
    if before >= 0:
        state.after[before] = after
    else:
        state.head[g] = after
    if after >= 0:
        state.before[after] = before


@njit(cache=True)
def measure_group(world: World, state: State, g: int) -> None:
    """Size, ends and price of g from its members."""
    low, low2, high2, high = state.low, state.low2, state.high2, state.high
    points, record, after = world.points, world.record, state.after
    columns = points.shape[1]
    for c in range(columns):
        low[g, c] = np.inf
        low2[g, c] = np.inf
        high2[g, c] = -np.inf
        high[g, c] = -np.inf
    rows = 0
    row = state.head[g]
    while row >= 0:
        rows += 1
        at = record[row]
        for c in range(columns):
            x = points[at, c]
            # Without a branch: the larger of the old lowest and x is the new second lowest, if below it.
            first = low[g, c]
            second = x if x > first else first
            low[g, c] = x if x < first else first
            low2[g, c] = second if second < low2[g, c] else low2[g, c]
            first = high[g, c]
            second = x if x < first else first
            high[g, c] = x if x > first else first
            high2[g, c] = second if second > high2[g, c] else high2[g, c]
        row = after[row]
    state.size[g] = rows
    state.price[g] = cover_cost(world.measure, low, high, g) if rows else 0.0


@njit(cache=True)
def fill_state(world: World, label: Int32Array, count: int, room: int) -> State:
    """The state of a grouping of *count* groups (label -1: in none), with *room* for so many groups."""
    columns = world.points.shape[1]
    rows = label.size
    state = State(
        label=label.copy(),
        head=np.full(room, -1, dtype=np.int32),
        after=np.full(rows, -1, dtype=np.int32),
        before=np.full(rows, -1, dtype=np.int32),
        size=np.zeros(room, dtype=np.int64),
        low=np.zeros((room, columns)),
        low2=np.zeros((room, columns)),
        high2=np.zeros((room, columns)),
        high=np.zeros((room, columns)),
        price=np.zeros(room),
        block=np.full(room, -1, dtype=np.int32),
    )
    for row in range(rows - 1, -1, -1):
        if label[row] >= 0:
            link(state, label[row], row)
    for g in range(count):
        measure_group(world, state, g)
        state.block[g] = 0
    return state


@njit(cache=True)
def total_cost(state: State) -> float:
    """Rows x price, summed over the groups."""
    total = 0.0
    for g in range(state.size.size):
        if state.block[g] >= 0:
            total += state.size[g] * state.price[g]
    return total
