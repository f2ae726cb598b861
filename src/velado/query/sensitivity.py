"""How far one unit can move what an engine tallies: from the declared unit and grid alone, never from a row.

Without a dependence bound, neighbours differ by one whole unit, added or removed, and the engine lets at most *rows* of
its rows count. Every row adds a vector of L1 length at most *reach* to the array, so the array moves by at most
reach x rows in L1. The L2 move is never longer than the L1 move, and is as long when all rows fall in one cell: one
bound serves both.

With a dependence bound d the promise is about one row: it goes (or another of its group takes its place), and each of
the others *changes* by at most the fraction d of what it could. A row that changes may leave one cell and enter
another, so it moves the array by its *swing*, not by its reach: the bound is swing x (1 + (rows - 1) d), rounded up.
"""

from __future__ import annotations

from velado.errors import QueryRefused
from velado.query.needs import GridCells, GridSum, Need, Rows
from velado.query.unit import Unit

# OpenDP reads distances as 64-bit whole numbers; below this they are also exact as floats.
MOST_SENSITIVITY = 1 << 53


def sensitivity(need: Need, unit: Unit, cells: int) -> int:
    """The most one unit moves the array of *need* over *cells* keys, in L1 and in L2; at least 1.

    Rows: a row adds 1 to one cell. GridCells: a row adds 1 to one bin of one cell, whatever the number of bins.
    GridSum: a row adds (index - offset) to one cell, and low <= index <= high because the grid clamps.

    >>> from fractions import Fraction
    >>> from velado.query.needs import Grid
    >>> sensitivity(GridSum(Grid("age", Fraction(1), 0, 120)), Unit("household", rows=4), cells=1)
    480
    """
    match need:
        case Rows():
            return _moved(unit, 1, 1 if cells == 1 else 2)
        case GridCells():
            return _moved(unit, 1, 2)
        case GridSum(grid, offset):
            low, high = grid.low - offset, grid.high - offset
            reach = max(abs(low), abs(high))
            return _moved(unit, reach, max(high, 0) - min(low, 0) if cells == 1 else 2 * reach)


def score_sensitivity(numerator: int, denominator: int, unit: Unit, cells: int) -> int:
    """The most one unit moves any quantile score of level numerator/denominator, added up over the keys.

    A row changes both terms of `scores_of` by at most max(a, b - a), and a maximum moves no more than its terms.
    A unit with g_k rows in key k moves that key's scores by g_k max(a, b - a) in the largest norm, and sum g_k <= g.

    >>> score_sensitivity(9, 10, Unit(), cells=1)
    9
    """
    reach = max(numerator, denominator - numerator)
    return _moved(unit, reach, denominator if cells == 1 else 2 * reach)


def _moved(unit: Unit, reach: int, swing: int) -> int:
    """Rows times reach, or with a declared dependence the swing of one row and its share of the others'."""
    most = max(1, unit.times(reach if unit.dependence is None else swing))
    if most > MOST_SENSITIVITY:
        raise QueryRefused(
            "One unit could move this answer by more than 2^53 steps of the column's grid.",
            "Noise that hides so much cannot be drawn exactly.",
            "Declare a coarser step, narrower bounds, or fewer rows for each group.",
        )
    return most
