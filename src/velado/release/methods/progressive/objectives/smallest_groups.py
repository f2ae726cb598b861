"""Objective `discernibility`: groups as near to k as the table allows, the loss decides between equals."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numba import njit

from velado.release.methods.progressive.objectives._ingredients import Heaps
from velado.release.methods.progressive.objectives._shown_groups import ShownGroups
from velado.text import say


@njit(cache=True)
def square_after(heaps: Heaps, size: int, penalty: float, record: int) -> float:
    """Squared rows of a group of *size*, and far below one such unit in the whole table its *penalty*, rows x price.

    Groups of one record are published alike, as one class, however many they are: each of their rows is charged all
    rows of the *record*.
    """
    met = size
    if penalty <= 0.0 and size > 0 and heaps.rows[record] > size:
        met = heaps.rows[record]
    return size * met + heaps.tie * penalty


class SmallestGroups:
    """sum over published classes of |G|^2, + rows for each suppressed row, over rows^2 (Bayardo, Agrawal 2005).

    >>> SmallestGroups.name, SmallestGroups.unit(rows=10, weight=2.0)
    ('discernibility', 0.1)
    """

    name: ClassVar[str] = "discernibility"
    title: ClassVar[str] = say("discernibility")
    slowness: ClassVar[float] = 5.0

    @staticmethod
    def unit(rows: int, weight: float) -> float:
        """What one unit of the groups' cost adds to rows x value."""
        return 1.0 / max(rows, 1)

    @staticmethod
    def value(groups: ShownGroups) -> float:
        """Discernibility of the published classes over its worst case. O(groups)."""
        squares = float((groups.sizes.astype(np.float64) ** 2).sum())
        return (squares + groups.suppressed * groups.rows) / max(groups.rows, 1) ** 2
