"""How sure a difference over seeds is: its chance under no difference, Holm's rule over many, and what would decide it.

A page that compares a hundred pairs finds five that differ "with 95 %" where none does. Holm's rule keeps the chance that
*any* of its statements is wrong at the stated level, whatever the statements have to do with one another.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from velado.measures.models.quality import LEAST_VALUES, Interval

Key = TypeVar("Key", bound=Hashable)

NOTHING_BELOW = 1e-12
"""A spread or a difference of this size comes from how numbers are stored, not from the data."""

MOST_SEEDS = 200
"""More repetitions than this are no advice."""


def chance(found: Interval, against: float = 0.0) -> float:
    """How often a mean as far from *against* would be seen if it were the true one: two-sided, Student's t. 1 if unknown.

    >>> chance(Interval(0.3, 0.1, 0.5, 10, 0.1)) < 0.02, chance(Interval(0.3))
    (True, 1.0)
    """
    from scipy.stats import t

    if found.mean is None or found.error is None or found.count < LEAST_VALUES:
        return 1.0
    apart = abs(found.mean - against)
    if apart <= NOTHING_BELOW:
        return 1.0
    if found.error <= NOTHING_BELOW:
        return 0.0
    return float(2 * t.sf(apart / found.error, found.count - 1))


def holm(chances: Mapping[Key, float], level: float = 0.05) -> frozenset[Key]:
    """Those that may be called different so that all of it is right but with chance *level* (Holm 1979). O(m log m).

    The smallest chance is held against level / m, the next against level / (m - 1), until one fails.

    >>> sorted(holm({"a": 0.001, "b": 0.02, "c": 0.2}))
    ['a', 'b']
    >>> sorted(holm({"a": 0.001, "b": 0.03, "c": 0.2}))
    ['a']
    """
    sure: list[Key] = []
    left = len(chances)
    for key, found in sorted(chances.items(), key=lambda one: one[1]):
        if found > level / left:
            break
        sure.append(key)
        left -= 1
    return frozenset(sure)


@dataclass(frozen=True)
class Needed:
    """What would decide on which side of a limit a mean lies: so many *values* in all, else *times* as many rows.

    Repetitions share the table: their interval does not shrink below what its rows leave open. Both are None where the mean
    lies so near the limit that no advice would be honest.

    >>> Needed(values=14).times is None
    True
    """

    values: int | None = None
    times: float | None = None


MOST_TIMES = 100.0


def needed(found: Interval, limit: float, confidence: float = 0.95, overlap: float = 0.0) -> Needed:
    """What would make the interval of *found* leave out *limit*, if mean and spread stay as they are. O(MOST_SEEDS).

    >>> needed(Interval(0.005, -0.006, 0.016, 5, 0.004), 0.01, overlap=0.05).values
    25
    >>> round(needed(Interval(0.005, -0.006, 0.016, 5, 0.004), 0.01, overlap=1.0).times, 1)
    4.9
    """
    from scipy.stats import t

    if found.mean is None or found.error is None or found.count < LEAST_VALUES:
        return Needed()
    margin = abs(limit - found.mean)
    if margin <= NOTHING_BELOW:
        return Needed()
    spread = found.error / math.sqrt(1 / found.count + overlap)

    def half(values: int) -> float:
        return float(t.ppf((1 + confidence) / 2, values - 1)) * spread * math.sqrt(1 / values + overlap)

    for values in range(found.count + 1, MOST_SEEDS + 1):
        if half(values) <= margin:
            return Needed(values=values)
    times = (
        half(found.count) / margin
    ) ** 2  # the spread over test rows shrinks with the root of their number
    return Needed(times=times) if times <= MOST_TIMES else Needed()
