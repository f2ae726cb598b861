"""Objective `discernibility`: groups as near to k as the table allows, the loss decides between equals."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from velado.compiled import njit
from velado.release.methods.progressive.objectives._shown_groups import ShownGroups
from velado.text import number, say


@njit(cache=True)
def square_after(size: int, penalty: float, tie: float) -> float:
    """Squared rows of a group of *size*, and *tie* x its *penalty*, rows x price: in all groups less than one squared row.

    >>> square_after(5, 1.0, 0.25)
    25.25
    """
    return size * size + tie * penalty


class SmallestGroups:
    """sum over published classes of |G|^2, + rows for each suppressed row, over rows^2 (Bayardo, Agrawal 2005).

    The search counts groups. Groups that are published alike, heaps of equal rows above all, are one class however they are cut:
    there it gains nothing, and of start and result the one with smaller classes is kept.

    >>> SmallestGroups.name, SmallestGroups.unit(rows=10, weight=2.0)
    ('discernibility', 0.1)
    """

    name: ClassVar[str] = "discernibility"
    title: ClassVar[str] = say("discernibility")
    heading: ClassVar[str] = say("discernibility a row")
    in_brief: ClassVar[bool] = False
    slowness: ClassVar[float] = 10.0

    @staticmethod
    def unit(rows: int, weight: float) -> float:
        """What one unit of the groups' cost adds to rows x value."""
        return 1.0 / max(rows, 1)

    @staticmethod
    def dropped(rows: int, weight: float) -> float:
        """What a suppressed row costs in that unit: as many rows as the table has."""
        return float(rows)

    @staticmethod
    def shown(value: float, rows: int) -> str:
        """Squares for each row: over rows^2 nothing could be told apart."""
        return number(value * rows, 1)

    @staticmethod
    def value(groups: ShownGroups) -> float:
        """Discernibility of the published classes over its worst case. O(groups)."""
        squares = float((groups.sizes.astype(np.float64) ** 2).sum())
        return (squares + groups.suppressed * groups.rows) / max(groups.rows, 1) ** 2
