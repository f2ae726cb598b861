"""Objective `ncp`: the least normalized certainty penalty, velado's usual loss."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from velado.compiled import njit
from velado.data.partition import FloatArray
from velado.release.methods._row_covers import CoverMeasure, column_cost
from velado.release.methods.progressive.objectives._ingredients import Ends
from velado.release.methods.progressive.objectives._shown_groups import PerCell, ShownGroups
from velado.text import say


@njit(cache=True)
def penalty_after(
    measure: CoverMeasure, points: FloatArray, ends: Ends, g: int, size: int, out: int, into: int
) -> float:
    """Rows x price of g once record *out* has left it and *into* has joined it (-1: none), *size* rows then. O(d).

    >>> from velado.release.methods._row_covers import RowCovers
    >>> from velado.testing.examples import encoded
    >>> covers = RowCovers.of(encoded(age=[20, 21, 30]))
    >>> ends = Ends(*(np.array([[place]]) for place in (0.0, 0.1, 0.0, 0.1)))
    >>> penalty_after(covers.measure, covers.points, ends, 0, 3, -1, 2)
    3.0
    """
    total = 0.0
    lows, lows2, highs2, highs = ends.low, ends.low2, ends.high2, ends.high
    for c in range(points.shape[1]):
        low, high = lows[g, c], highs[g, c]
        if out >= 0:
            x = points[out, c]
            low = lows2[g, c] if x == low else low
            high = highs2[g, c] if x == high else high
        if into >= 0:
            x = points[into, c]
            low = x if x < low else low
            high = x if x > high else high
        if low <= high:
            total += column_cost(measure, c, low, high)
    return size * total


class LeastPenalty(PerCell):
    """sum over groups of |G| x sum over columns of NCP(cover) x weight, over all cells: what `ncp` measures.

    >>> LeastPenalty.name, LeastPenalty.unit(rows=10, weight=2.0)
    ('ncp', 0.5)
    """

    name: ClassVar[str] = "ncp"
    title: ClassVar[str] = say("information loss (NCP)")
    heading: ClassVar[str] = say("loss (NCP)")
    slowness: ClassVar[float] = 4.0

    @staticmethod
    def value(groups: ShownGroups) -> float:
        """The penalty of the published groups, suppressed rows 1 each; columns by their weights. O(groups x columns)."""
        price = np.zeros(groups.count)
        for at, column in enumerate(groups.data.columns):
            price += column.loss(groups.low[:, at], groups.high[:, at])
        return groups.mean(float((price * groups.sizes).sum()))
