"""Drawn numbers made possible: none below 0 where none can be, and their sum as it was drawn. Free, for it sees noise alone.

Noise knows nothing of counts, so a drawn count may be negative. Setting each negative one to 0 alone would make the sum of
many too large, always in the same direction. So the numbers nearest to the drawn ones (in squares) are taken that are
not negative and have the drawn sum: what was lifted to 0 is taken from the others alike. Whatever is done here is done to
numbers that were drawn and paid already, and so costs and tells nothing more.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from velado.query.needs import Counts

Floats = NDArray[np.float64]


def consistent(drawn: Counts) -> Counts:
    """Whole numbers of at least 0, with the drawn sum (0 where that is negative), nearest to the drawn ones. O(n log n).

    The projection onto the simplex (Held, Wolfe, Crowder 1974): max(drawn - theta, 0) for the one theta that keeps the sum. All
    that stay above 0 lose the same theta, so they share one fraction; the larger ones are rounded up until the sum is met.
    Python's own whole numbers, because sums of 64-bit ones may not fit 64 bits.

    >>> consistent(np.array([100, 1, -50]))
    array([51,  0,  0])
    >>> consistent(np.array([5, 7])), consistent(np.array([-3]))
    (array([5, 7]), array([0]))
    """
    if drawn.size == 0 or int(drawn.min()) >= 0:
        return drawn
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


def projected(values: Floats, total: int) -> Floats:
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
