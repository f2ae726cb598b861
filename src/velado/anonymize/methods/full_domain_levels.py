"""Levels: for each column and level of generalization, which group of values each code falls into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from velado.anonymize.methods.separatrices import cut_counted, elbow
from velado.data.encode import EncodedColumn
from velado.data.partition import FloatArray, IntArray

NumericBins = Literal["halves", "separatrices"]

_FINEST_HALVES = 64
"""No more quantile bins than this: below, a level would hardly differ from the values themselves."""


@dataclass(frozen=True)
class ColumnLevels:
    """One column's levels, finest first. Entry ``[level][code]`` of *group* is the value group of a code.

    *low* and *high* are the least and greatest code of each group (its cover), *loss* its certainty penalty.
    """

    group: tuple[npt.NDArray[np.int32], ...]
    low: tuple[npt.NDArray[np.int32], ...]
    high: tuple[npt.NDArray[np.int32], ...]
    loss: tuple[FloatArray, ...]

    @property
    def height(self) -> int:
        """The number of the coarsest level."""
        return len(self.group) - 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many value groups each level has."""
        return tuple(int(low.size) for low in self.low)


def column_levels(column: EncodedColumn, bins: NumericBins) -> ColumnLevels:
    """The levels of *column*: those of its taxonomy, or nested quantile bins of its numbers.

    The coarsest level is always one group. A missing number stays by itself on every level below that.
    """
    if column.tree is not None:
        tree = column.tree
        nodes = [tree.levels[:, level] for level in range(tree.height + 1)]
        covers = [(tree.first[node], tree.last[node]) for node in nodes]
    else:
        covers = [_cover_of_bins(ends, column.size) for ends in _numeric_ends(column, bins)]
    return _from_covers(column, covers)


def _from_covers(column: EncodedColumn, covers: Sequence[tuple[IntArray, IntArray]]) -> ColumnLevels:
    group, lows, highs, losses = [], [], [], []
    for low_of, high_of in covers:
        starts = np.flatnonzero(low_of == np.arange(column.size))
        low, high = low_of[starts].astype(np.int32), high_of[starts].astype(np.int32)
        group.append((np.searchsorted(starts, np.arange(column.size), side="right") - 1).astype(np.int32))
        lows.append(low)
        highs.append(high)
        losses.append(column.loss(low, high))
    return ColumnLevels(tuple(group), tuple(lows), tuple(highs), tuple(losses))


def _cover_of_bins(ends: IntArray, size: int) -> tuple[IntArray, IntArray]:
    inside = np.searchsorted(ends, np.arange(size), side="left")
    starts = np.concatenate(([0], ends[:-1] + 1))
    return starts[inside], ends[inside]


def _numeric_ends(column: EncodedColumn, bins: NumericBins) -> list[IntArray]:
    """The last code of each bin, level by level: every value, then bins, unions of two neighbours, all.

    "halves" starts from the largest power of two of quantile bins up to half the distinct values (at
    most 64); "separatrices" from as many as the elbow of the column asks for (Coelho et al. 2024).
    """
    values = column.size - (column.missing >= 0)
    every = np.arange(values)
    levels: list[IntArray] = [every]
    if values > 2:
        counts = np.bincount(column.codes[column.codes < values], minlength=values)
        if bins == "halves":
            wanted = min(1 << (int(values // 2).bit_length() - 1), _FINEST_HALVES)
        else:
            assert column.points is not None
            wanted = elbow(column.points[:values])
        ends: IntArray = cut_counted(counts, wanted)
        if ends.size < values:
            levels.append(ends)
        while levels[-1].size > 2:
            ends = levels[-1]
            levels.append(np.unique(np.append(ends[1::2], ends[-1])))
    if column.missing >= 0:
        levels = [np.append(ends, column.missing) for ends in levels]
    if levels[-1].size > 1:
        levels.append(np.array([column.size - 1]))
    return levels
