"""Covers in compiled code: what a class costs, what a tuple adds to it, and where leftovers cost least."""

from __future__ import annotations

import numba
import numpy as np

from velado.anonymize.methods.progressive_kernel import Floats, Ints, Longs
from velado.anonymize.methods.progressive_lattice import Space


@numba.njit(cache=True)
def climb(space: Space, column: int, low: int, high: int) -> float:
    """What publishing the cover of *low*..*high* costs in a column without a table of pairs."""
    if space.line_at[column] >= 0:
        # A missing value lies one domain beyond the largest, so whatever joins it costs all.
        line = space.line_at[column]
        return float(min(space.line[line + high] - space.line[line + low], 1.0))
    for level in range(1, space.tree_levels[column]):
        here = space.tree_base[column, level]
        if space.node[here + low] == space.node[here + high]:
            return float(space.cost[here + low])
    return 1.0


@numba.njit(cache=True)
def cover_cost(space: Space, low: Ints, high: Ints, g: int) -> float:
    """The cost of cover *g*, summed over its columns."""
    pair, pair_at, size = space.pair, space.pair_at, space.size
    total = 0.0
    for c in range(low.shape[1]):
        if low[g, c] == high[g, c]:
            continue
        if pair_at[c] >= 0:
            total += pair[pair_at[c] + low[g, c] * size[c] + high[g, c]]
        else:
            total += climb(space, c, low[g, c], high[g, c])
    return total


@numba.njit(cache=True)
def cheapest(
    space: Space,
    low: Ints,
    high: Ints,
    rows: Longs,
    price: Floats,
    classes: int,
    codes: Ints,
    at: int,
    weight: int,
) -> tuple[int, float]:
    """The class that *weight* rows of tuple *at* widen least, and by how much rows x cost rises."""
    # Plain local arrays: reading a field of a named tuple inside the loop counts references each time.
    pair, pair_at, size = space.pair, space.pair_at, space.size
    columns = low.shape[1]
    least = np.inf
    target = 0
    for g in range(classes):
        bound = (least + price[g] * rows[g]) / (rows[g] + weight)
        joint = 0.0
        for c in range(columns):
            code = codes[c, at]
            a = min(low[g, c], code)
            b = max(high[g, c], code)
            if a != b:
                if pair_at[c] >= 0:
                    joint += pair[pair_at[c] + a * size[c] + b]
                else:
                    joint += climb(space, c, a, b)
                if joint >= bound:
                    break
        if joint < bound:
            least = joint * (rows[g] + weight) - price[g] * rows[g]
            target = g
    return target, least


@numba.njit(cache=True)
def covers(space: Space, label: Ints, classes: int) -> tuple[Ints, Ints, Longs, Floats]:
    """Lowest and highest codes, rows and cost of each class of tuples (label -1: in none)."""
    columns, tuples = space.codes.shape
    low = np.full((classes, columns), 2147483647, dtype=np.int32)
    high = np.full((classes, columns), -1, dtype=np.int32)
    rows = np.zeros(classes, dtype=np.int64)
    for t in range(tuples):
        g = label[t]
        if g < 0:
            continue
        rows[g] += space.weight[t]
        for c in range(columns):
            low[g, c] = min(low[g, c], space.codes[c, t])
            high[g, c] = max(high[g, c], space.codes[c, t])
    price = np.empty(classes)
    for g in range(classes):
        price[g] = cover_cost(space, low, high, g)
    return low, high, rows, price


@numba.njit(cache=True)
def join_leftovers(space: Space, label: Ints, classes: int, droppable: int, most_each: float) -> int:
    """Every tuple without a class joins the one it widens least; returns how many rows were dropped instead.

    The price of joining is the rise of rows x cost over the class and the tuple. Where it is above
    *most_each* per row, and no more than *droppable* rows are dropped in all, the tuple gets label -2.
    O(leftovers x classes).
    """
    low, high, rows, price = covers(space, label, classes)
    dropped = 0
    for t in range(label.size):
        if label[t] != -1:
            continue
        weight = space.weight[t]
        target, rise = cheapest(space, low, high, rows, price, classes, space.codes, t, weight)
        if rise > most_each * weight and dropped + weight <= droppable:
            label[t] = -2
            dropped += weight
            continue
        label[t] = target
        rows[target] += weight
        for c in range(low.shape[1]):
            low[target, c] = min(low[target, c], space.codes[c, t])
            high[target, c] = max(high[target, c], space.codes[c, t])
        price[target] = cover_cost(space, low, high, target)
    return dropped
