"""Objective `sse`: the least variance inside groups, for means, correlations and regressions on what is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.data.tallies import squares_met
from velado.release.methods.progressive.objectives._ingredients import MomentSums, RecordMoments
from velado.release.methods.progressive.objectives._shown_groups import PerCell, ShownGroups
from velado.text import say


@njit(cache=True)
def variance_after(moments: RecordMoments, kept: MomentSums, g: int, size: int, out: int, into: int) -> float:
    """Sum of squares inside g once record *out* has left it and *into* has joined it (-1: none), *size* rows then. O(d).

    Of numbers, sum |x|^2 - |sum x|^2 / m; of categories, m - sum over values of count^2 / m, times the column's weight.

    >>> from velado.testing.examples import encoded
    >>> moments = moments_of(encoded(age=[20, 30]), np.arange(2), 1)
    >>> kept = MomentSums(np.array([[-1.0]]), np.array([1.0]), np.zeros((1, 0), np.int32), np.zeros((1, 0)))
    >>> variance_after(moments, kept, 0, 2, -1, 1)
    2.0
    """
    if size < 1:
        return 0.0
    numbers, sums = moments.numbers, kept.sums
    total = kept.squares[g]
    within = 0.0
    if out >= 0 and into >= 0:
        total += moments.length[into] - moments.length[out]
        for j in range(numbers.shape[1]):
            s = sums[g, j] - numbers[out, j] + numbers[into, j]
            within += s * s
    elif into >= 0:
        total += moments.length[into]
        for j in range(numbers.shape[1]):
            s = sums[g, j] + numbers[into, j]
            within += s * s
    else:
        sign = 0.0
        if out >= 0:
            total -= moments.length[out]
            sign = 1.0
        for j in range(numbers.shape[1]):
            s = sums[g, j] - sign * numbers[max(out, 0), j]
            within += s * s
    total -= within / size
    values, counts, alike, begin, weight = (
        moments.values,
        kept.counts,
        kept.alike,
        moments.begin,
        moments.weight,
    )
    for j in range(values.shape[1]):
        same = alike[g, j]
        gone = values[out, j] if out >= 0 else -1
        come = values[into, j] if into >= 0 else -1
        if gone != come:
            if gone >= 0:
                same -= 2 * counts[g, begin[j] + gone] - 1
            if come >= 0:
                same += 2 * counts[g, begin[j] + come] + 1
        total += weight[j] * (size - same / size)
    return total if total > 0.0 else 0.0


@dataclass(frozen=True, repr=False)
class _Scaled:
    """Each column as numbers or as a category, scaled so that its sum of squares over the table is rows x weight.

    *numbers* has, for each dimension, the number of every code of column *number_of*; *categories* the weight of every column that
    is a category, and for each code its value. A number column with blanks is both: its number, the mean where it is
    blank, and whether it is blank. A constant column is neither.
    """

    numbers: tuple[tuple[int, FloatArray], ...]
    categories: tuple[tuple[int, Int32Array, float], ...]

    @classmethod
    def of(cls, data: EncodedTable) -> _Scaled:
        """The moments of *data*; O(n d)."""
        numbers: list[tuple[int, FloatArray]] = []
        categories: list[tuple[int, Int32Array, float]] = []
        for at, column in enumerate(data.columns):
            counts = np.bincount(column.codes, minlength=column.size).astype(np.float64)
            if column.is_numeric:
                _add_number(at, column, counts, numbers, categories)
                continue
            mixed = _gini(counts)
            if mixed > 0 and column.weight > 0:
                categories.append((at, np.arange(column.size, dtype=np.int32), column.weight / mixed))
        return cls(tuple(numbers), tuple(categories))


def _gini(counts: FloatArray) -> float:
    """1 - sum of squared shares: the mean square of a category's indicators about their means."""
    shares = counts / max(counts.sum(), 1.0)
    return float(1.0 - (shares**2).sum()) if (counts > 0).sum() > 1 else 0.0


def _add_number(
    at: int,
    column: EncodedColumn,
    counts: FloatArray,
    numbers: list[tuple[int, FloatArray]],
    categories: list[tuple[int, Int32Array, float]],
) -> None:
    assert column.points is not None
    blank = column.missing
    known = counts.copy()
    if blank >= 0:
        known[blank] = 0.0
    rows = counts.sum()
    there = known.sum()
    points = np.where(known > 0, column.points, 0.0)
    middle = float((points * known).sum() / max(there, 1.0))
    away = np.where(known > 0, points - middle, 0.0)
    spread = float((away**2 * known).sum())
    apart = _gini(np.array([there, rows - there]))
    part = (1.0 if spread > 0 else 0.0) * there / max(rows, 1.0)
    whole = part + apart
    if whole <= 0 or column.weight <= 0:
        return
    if spread > 0:
        numbers.append((at, away * np.sqrt(column.weight * rows * part / whole / spread)))
    if apart > 0:
        codes = (np.arange(column.size) == blank).astype(np.int32)
        categories.append((at, codes, column.weight / whole))


class LeastVariance(PerCell):
    """sum over groups of the squared distances to the group's mean, over the same about the table's mean (SSE / SST).

    Numbers are standardized to variance 1: on numeric tables this is the information loss of microaggregation, as sdcMicro
    gives it, over 100. A category counts as its indicators (one for each value, 1 where a row has it):
    a row is charged 1 - the share of its own value in its group, over the same in the whole table. Columns count by their weights.

    >>> from velado.testing.examples import encoded
    >>> LeastVariance.value(ShownGroups.of(encoded(age=[20, 22, 30, 32]), np.array([0, 0, 1, 1])))
    0.038461538461538464
    """

    name: ClassVar[str] = "sse"
    title: ClassVar[str] = say("variance inside groups (SSE)")
    heading: ClassVar[str] = say("variance inside (SSE)")
    slowness: ClassVar[float] = 4.0

    @staticmethod
    def value(groups: ShownGroups) -> float:
        """SSE / SST of the published classes, a suppressed row counted as lost with the table's mean square. O(n d)."""
        return groups.mean(sum(squares_within(groups).values()))


def squares_within(groups: ShownGroups) -> dict[str, float]:
    """For each column its sum of squares inside the classes, in units of rows x weight for the whole table.

    >>> from velado.testing.examples import encoded
    >>> squares_within(ShownGroups.of(encoded(sex=["f", "m", "f", "f"]), np.array([0, 0, 1, 1])))
    {'sex': 2.6666666666666665}
    """
    data, labels = groups.data, groups.classes.labels
    kept = labels >= 0
    group, sizes = labels[kept], np.maximum(groups.sizes, 1).astype(np.float64)
    out = {column.name: 0.0 for column in data.columns}
    moments = _Scaled.of(data)
    for at, number in moments.numbers:
        z = number[data.columns[at].codes[kept]]
        sums = np.bincount(group, z, minlength=groups.count)
        middle = sums / sizes
        out[data.columns[at].name] += float(((z - middle[group]) ** 2).sum())
    for at, values, weight in moments.categories:
        order, starts = groups.classes.members()
        every = np.append(starts, order.size)
        squares = squares_met(values[data.columns[at].codes], order, every, int(values.max()) + 1)
        out[data.columns[at].name] += weight * float(order.size - (squares / sizes).sum())
    return out


_ROOM = 1 << 27
"""Counters of categories in all groups together, at most."""


def moments_of(data: EncodedTable, example: Int64Array, groups: int) -> RecordMoments:
    """The moments of the rows *example*, for compiled code, with counters for so many groups.

    Where there would be too many counters, values share them: the search takes such values for alike, `value` does not.

    >>> from velado.testing.examples import encoded
    >>> moments_of(encoded(age=[20, 30], sex=["f", "m"]), np.arange(2), 1).numbers.ravel().tolist()
    [-1.0, 1.0]
    """
    scaled = _Scaled.of(data)
    numbers = np.zeros((example.size, len(scaled.numbers)))
    for j, (at, number) in enumerate(scaled.numbers):
        numbers[:, j] = number[data.columns[at].codes[example]]
    most = max(_ROOM // max(groups * max(len(scaled.categories), 1), 1), 2)
    values = np.zeros((example.size, len(scaled.categories)), dtype=np.int32)
    begin = np.zeros(len(scaled.categories) + 1, dtype=np.int64)
    for j, (at, of_code, _) in enumerate(scaled.categories):
        size = min(int(of_code.max()) + 1, most)
        values[:, j] = of_code[data.columns[at].codes[example]] % size
        begin[j + 1] = begin[j] + size
    return RecordMoments(
        numbers,
        (numbers**2).sum(axis=1),
        values,
        begin,
        np.array([weight for _, _, weight in scaled.categories], dtype=np.float64),
    )
