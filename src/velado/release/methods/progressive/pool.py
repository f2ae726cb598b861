"""The state of the large neighbourhood search: classes over rows, the pool of freed rows, a trial grouping."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from velado.release.methods.progressive.cover_lattice import Space
from velado.release.methods.progressive.progressive_kernel import Floats, Ints, Longs, cover_cost


class Classes(NamedTuple):
    """The state: each class's rows as a linked list from *head* over *following*, its cover and cost."""

    label: Ints
    head: Ints
    following: Ints
    size: Longs
    low: Ints
    high: Ints
    price: Floats


class Pool(NamedTuple):
    """The rows of the freed classes as weighted tuples with their own numbers; rows linked per tuple."""

    name: Ints
    weight: Longs
    codes: Ints
    head: Ints
    following: Ints
    row: Ints


class Trial(NamedTuple):
    """New classes over a pool: shares (tuple, class, rows), and cover, rows and cost of each class."""

    tuples: Ints
    classes: Ints
    rows: Longs
    low: Ints
    high: Ints
    size: Longs
    price: Floats


@numba.njit(cache=True)
def start(space: Space, tuple_of_row: Ints, label: Ints, least: int) -> tuple[Classes, int]:
    """The state of a given grouping, with room for every grouping there can be, and the number of classes."""
    columns = space.codes.shape[0]
    most = label.size // least + 1
    state = Classes(
        label.copy(),
        np.full(most, -1, dtype=np.int32),
        np.full(label.size, -1, dtype=np.int32),
        np.zeros(most, dtype=np.int64),
        np.full((most, columns), 2147483647, dtype=np.int32),
        np.full((most, columns), -1, dtype=np.int32),
        np.zeros(most),
    )
    count = 0
    for r in range(label.size - 1, -1, -1):
        if label[r] >= 0:
            count = max(count, label[r] + 1)
            _add(space, state, label[r], r, tuple_of_row[r])
    for g in range(count):
        state.price[g] = cover_cost(space, state.low, state.high, g)
    return state, count


@numba.njit(cache=True)
def _add(space: Space, state: Classes, g: int, row: int, tuple_: int) -> None:
    state.following[row] = state.head[g]
    state.head[g] = row
    state.label[row] = g
    state.size[g] += 1
    for c in range(space.codes.shape[0]):
        code = space.codes[c, tuple_]
        state.low[g, c] = min(state.low[g, c], code)
        state.high[g, c] = max(state.high[g, c], code)


@numba.njit(cache=True)
def pooled(space: Space, state: Classes, freed: Longs, tuple_of_row: Ints, number: Ints) -> Pool:
    """The rows of the *freed* classes, counted per tuple. *number* is -1 everywhere before and after."""
    rows = 0
    for g in freed:
        rows += state.size[g]
    name = np.empty(rows, dtype=np.int32)
    weight = np.zeros(rows, dtype=np.int64)
    head = np.full(rows, -1, dtype=np.int32)
    following = np.empty(rows, dtype=np.int32)
    row = np.empty(rows, dtype=np.int32)
    tuples = 0
    entry = 0
    for g in freed:
        r = state.head[g]
        while r >= 0:
            t = tuple_of_row[r]
            if number[t] < 0:
                number[t] = tuples
                name[tuples] = t
                tuples += 1
            at = number[t]
            weight[at] += 1
            row[entry] = r
            following[entry] = head[at]
            head[at] = entry
            entry += 1
            r = state.following[r]
    codes = np.empty((space.codes.shape[0], tuples), dtype=np.int32)
    for j in range(tuples):
        number[name[j]] = -1
        for c in range(codes.shape[0]):
            codes[c, j] = space.codes[c, name[j]]
    return Pool(name[:tuples], weight[:tuples], codes, head, following, row)


@numba.njit(cache=True)
def empty_trial(pool: Pool, least: int) -> Trial:
    # A tuple is shared between at most (its rows) classes, so there are never more shares than rows.
    rows = pool.row.size
    columns = pool.codes.shape[0]
    most = rows // least + 1
    return Trial(
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int64),
        np.empty((most, columns), dtype=np.int32),
        np.empty((most, columns), dtype=np.int32),
        np.empty(most, dtype=np.int64),
        np.empty(most),
    )


@numba.njit(cache=True)
def commit(
    space: Space, state: Classes, count: int, freed: Longs, pool: Pool, trial: Trial, new: int, shares: int
) -> int:
    """The freed classes give way to the trial's; returns the number of classes, numbered without holes."""
    names = np.empty(max(new, freed.size), dtype=np.int64)
    names[: freed.size] = np.sort(freed)
    for j in range(freed.size, new):
        names[j] = count
        count += 1
    for j in range(new):
        g = names[j]
        state.head[g] = -1
        state.size[g] = 0
        state.low[g] = 2147483647
        state.high[g] = -1
    for s in range(shares):
        j = trial.tuples[s]
        for _ in range(trial.rows[s]):
            entry = pool.head[j]
            pool.head[j] = pool.following[entry]
            _add(space, state, names[trial.classes[s]], pool.row[entry], pool.name[j])
    for j in range(new):
        g = names[j]
        state.price[g] = cover_cost(space, state.low, state.high, g)
    for j in range(freed.size - 1, new - 1, -1):  # the last class moves into each hole
        count -= 1
        g = names[j]
        if g == count:
            continue
        state.head[g] = state.head[count]
        state.size[g] = state.size[count]
        state.low[g] = state.low[count]
        state.high[g] = state.high[count]
        state.price[g] = state.price[count]
        r = state.head[g]
        while r >= 0:
            state.label[r] = g
            r = state.following[r]
    return count
