"""Copies in part: a column that holds a quasi-identifier's own value in some rows, and anything in the others.

Two columns that go together (the ages of a couple, the bills of two months) are equal more often than by chance, but
then they differ by one about as often as not at all. A copy stands out: far more rows agree than lie one or two values
apart. Columns of few values agree too often by chance and say too little, and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from velado.anonymize.side_doors.narrowing import Scale

LEAST_VALUES = 20
"""Columns of no more distinct values agree for many reasons."""
LEAST_ROWS = 10
LEAST_SHARE = 0.02
LEAST_DEVIATIONS = 6.0
TIMES = 2.0
"""Rows that agree are more than so many times those expected."""
STEPS = (-2, -1, 1, 2)


@dataclass(frozen=True)
class InPart:
    """In how many rows, and in which share of those without the commonest value, two columns agree; and by chance."""

    rows: int
    share: float
    chance: float


def copied_in_part(own: Scale, quasi: Scale) -> InPart | None:
    """How far *own* is *quasi* itself in some rows, beyond chance and beyond what neighbouring values show; or None.

    The commonest value of either column counts for nothing: zeros meet zeros.
    """
    if not (own.ordered and quasi.ordered):
        return None
    both = ~(np.isnan(own.values) | np.isnan(quasi.values))
    x, q = own.values[both], quasi.values[both]
    least = max(LEAST_ROWS, LEAST_SHARE * x.size)
    if int((x == q).sum()) < least:
        return None
    line, codes = np.unique(np.r_[x, q], return_inverse=True)
    codes = codes.reshape(-1)
    a, b = codes[: x.size], codes[x.size :]
    of_a, of_b = (np.bincount(part, minlength=line.size).astype(np.float64) for part in (a, b))
    if min(int((of_a > 0).sum()), int((of_b > 0).sum())) <= LEAST_VALUES:
        return None
    counted = np.ones(line.size, dtype=bool)
    # Where a quasi-identifier's commonest value is an age like others, leaving it out costs little.
    counted[[of_a.argmax(), of_b.argmax()]] = False
    hits = int(((a == b) & counted[a]).sum())
    chance = float((of_a * of_b)[counted].sum()) / x.size
    beside = max(float(((b - a == step) & counted[a]).sum()) for step in STEPS)
    expected = max(chance, beside)
    if hits < least or hits < TIMES * expected:
        return None
    if hits - expected < LEAST_DEVIATIONS * np.sqrt(max(expected, 1.0)):
        return None
    left = x.size - float(of_a.max())
    return InPart(hits, hits / left, chance / left)
