"""Drawn numbers made possible: none below 0 where none can be, and their sum as it was drawn. Free, for it sees noise alone.

Noise knows nothing of counts, so a drawn count may be negative. Setting each negative one to 0 alone would make the sum of
many too large, always in the same direction. So the numbers nearest to the drawn ones (in squares) are taken that are
not negative and have the drawn sum: what was lifted to 0 is taken from the others alike. Whatever is done here is done to
numbers that were drawn and paid already, and so costs and tells nothing more.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from velado.query.needs import Counts


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
