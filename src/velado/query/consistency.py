"""Drawn numbers made possible: none below 0 where none can be, without making their sum too large. Free, for it sees noise alone.

Noise knows nothing of counts, so a drawn count may be negative. Setting each negative one to 0 alone would make the sum of
many too large, always in the same direction. To take what was lifted from all others alike would keep the sum, at the cost of the large ones: beside
a hundred empty keys, the one that holds all rows would be off by several times its noise. So it is taken from numbers that may be noise themselves:
those below twice the *width* that noise is within in 95 of 100 draws, from each no more than that width. Then, whenever a number's noise is within the width,

- what is shown is off by no more than twice the width, and lies in the interval of the drawn one;
- it is off by no more than the width where the exact number is 0, or at least three widths: its drawn one is at least two, and stays.

Whatever is done here is done to numbers that were drawn and paid already, and so costs and tells nothing more.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from velado.query.needs import Counts

Floats = NDArray[np.float64]


def consistent(drawn: Counts, width: int) -> Counts:
    """Whole numbers of at least 0; those of at least twice the *width* as drawn, the others lowered alike, by at most it, to keep their sum. O(n log n).

    >>> consistent(np.array([100, 9, 1, -5]), 10)
    array([100,   5,   0,   0])
    >>> consistent(np.array([100, 9, 1, -50]), 5), consistent(np.array([5, 7]), 1), consistent(np.array([-3]), 1)
    (array([100,   4,   0,   0]), array([5, 7]), array([0]))
    """
    if drawn.size == 0 or int(drawn.min()) >= 0:
        return drawn
    small = drawn < 2 * width
    out = drawn.copy()
    out[small] = np.maximum(_with_sum(drawn[small]), drawn[small] - width)
    return out


def consistent_floats(values: Floats, widths: Floats) -> Floats:
    """The same of numbers that are not whole, each with a width of its own.

    >>> consistent_floats(np.array([100.0, 9.0, 1.0, -5.0]), np.full(4, 10.0)).tolist()
    [100.0, 5.0, 0.0, 0.0]
    """
    if values.size == 0 or float(values.min()) >= 0:
        return values
    small = values < 2 * widths
    lowered = projected(values[small], max(0.0, float(values[small].sum())))
    out = values.copy()
    out[small] = np.maximum(lowered, values[small] - widths[small])
    return np.maximum(out, 0.0)


def consistent_with(values: Floats, widths: Floats, total: int) -> Floats:
    """Numbers of at least 0 with that sum, which is at least 0: small ones (below twice their width) are lowered first, alike, then the others.

    >>> consistent_with(np.array([100.0, 9.0, 1.0, -5.0]), np.full(4, 10.0), 105).tolist()
    [100.0, 5.0, 0.0, 0.0]
    >>> consistent_with(np.array([100.0, 9.0, -25.0]), np.full(3, 10.0), 84).tolist()
    [84.0, 0.0, 0.0]
    """
    large = values >= 2 * widths
    left = total - float(values[large].sum())
    if left > float(np.maximum(values[~large], 0).sum()):  # more than all have: each is raised
        return projected(values, total)
    out = np.zeros_like(values)
    if left < 0:
        out[large] = projected(values[large], total)
        return out
    out[large] = values[large]
    if not large.all():
        out[~large] = projected(values[~large], left)
    return out


def _with_sum(drawn: Counts) -> Counts:
    """Whole numbers of at least 0, with the drawn sum (0 where that is negative), nearest to the drawn ones. O(n log n).

    The projection onto the simplex (Held, Wolfe, Crowder 1974): max(drawn - theta, 0) for the one theta that keeps the sum. All
    that stay above 0 lose the same theta, so they share one fraction; the larger ones are rounded up until the sum is met.
    Python's own whole numbers, because sums of 64-bit ones may not fit 64 bits.
    """
    order = np.argsort(-drawn, kind="stable")
    falling: list[int] = drawn[order].tolist()
    total = max(0, sum(falling))
    out = np.zeros_like(drawn)
    if total == 0:
        return out
    # The last place at which the number is still above its theta; the condition holds for a first stretch of them.
    sums = list(accumulate(falling))
    kept = sum(
        number * place > above - total
        for place, (number, above) in enumerate(zip(falling, sums, strict=True), 1)
    )
    theta = -((total - sums[kept - 1]) // kept)  # rounded up
    lowered = [number - theta for number in falling[:kept]]
    short = total - sum(lowered)
    out[order[:kept]] = np.array(
        [number + (place < short) for place, number in enumerate(lowered)], dtype=drawn.dtype
    )
    return out


def projected(values: Floats, total: float) -> Floats:
    """The numbers of at least 0 with that sum, which is at least 0, nearest to the *values*: the same projection. O(n log n).

    >>> projected(np.array([100.0, 1.0, -50.0]), 51).tolist()
    [51.0, 0.0, 0.0]
    """
    falling = -np.sort(-values)
    sums = np.cumsum(falling)
    places = np.arange(1, len(values) + 1)
    # Where the total is 0 rounding may leave none; then all are 0.
    kept = max(1, int((falling * places > sums - total).sum()))
    out: Floats = np.maximum(values - (sums[kept - 1] - total) / kept, 0.0)
    return out


def rounded(values: Floats, parent: Counts, totals: Counts) -> Counts:
    """Whole numbers within 1 of the *values*, which are at least 0, whose sums by *parent* are *totals*: largest fractions go up.

    >>> rounded(np.array([1.5, 2.5, 0.25]), np.array([0, 0, 1]), np.array([4, 0])).tolist()
    [2, 2, 0]
    """
    whole: Counts = np.floor(values + 1e-9).astype(np.int64)
    order = np.lexsort((whole - values, parent))
    number = np.bincount(parent, minlength=len(totals))
    rank = np.arange(len(values)) - np.concatenate([[0], np.cumsum(number)])[:-1][parent[order]]
    have = np.zeros(len(totals), dtype=np.int64)
    np.add.at(have, parent, whole)
    whole[order] += rank < (totals - have)[parent[order]]
    # Beyond 2^53 a double has no room for a fraction: what is missing then goes to the largest.
    np.add.at(have := np.zeros(len(totals), dtype=np.int64), parent, whole)
    for at in np.flatnonzero(have != totals).tolist():
        those = np.flatnonzero(parent == at)
        whole[those[np.argmax(whole[those])]] += totals[at] - have[at]
    return whole


def ends(values: Floats, widths: Floats) -> tuple[Counts, Counts]:
    """Whole ends of the intervals of counts, cut at 0; a value below 0 has the interval of a 0. A hair more, for what floats lose.

    >>> [end.tolist() for end in ends(np.array([5.0, -3.0]), np.array([7.0, 7.0]))]
    [[0, 0], [12, 7]]
    """
    hair = 1e-6 * (1 + np.abs(values))
    low = np.maximum(np.ceil(values - widths - hair), 0).astype(np.int64)
    high = np.floor(np.maximum(values, 0) + widths + hair).astype(np.int64)
    return low, high
