"""The binary-tree counter (Chan, Shi, Song 2011; Dwork, Naor, Pitassi, Rothblum 2010): state in, state out, no noise and no world.

Of T releases, block b of level l holds the deliveries b 2^l + 1 .. (b + 1) 2^l; there are floor(log2 T) + 1 levels, and a delivery is in at
most one block of each. A block is told once, with noise, when its last delivery came. The total up to release t is made of the
largest whole blocks: as many as t has binary ones, and of the top level as many as fit. Each block's number is combined with those of its halves by inverse variances (Honaker 2015),
    v_l = 1 / (1 / s_l^2 + 1 / (2 v_{l-1})),   v_0 = s_0^2,
the least variance that blocks inside it allow; what was said before is never revised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from velado.query.needs import Counts

Floats = NDArray[np.float64]
MOST_RELEASES = 4096
LARGEST = 1 << 62


def levels_of(releases: int) -> int:
    """Levels of blocks: floor(log2 T) + 1.

    >>> [levels_of(releases) for releases in (1, 2, 3, 4, 52)]
    [1, 2, 2, 3, 6]
    """
    return releases.bit_length()


def closed_at(release: int) -> range:
    """The levels whose block ends with this release: as many as it has binary noughts at its end, and the lowest.

    >>> list(closed_at(1)), list(closed_at(12))
    ([0], [0, 1, 2])
    """
    return range((release & -release).bit_length())


@dataclass(frozen=True, eq=False)
class Exact:
    """Exact sums of the blocks that are not whole yet, a row a level, after *done* of *releases* deliveries. As private as the rows."""

    releases: int
    done: int
    sums: Counts

    @classmethod
    def empty(cls, releases: int, size: int, levels: int | None = None) -> Exact:
        """Before the first delivery; *size* numbers are counted at once. *levels*: so many are kept, by default all."""
        return cls(releases, 0, np.zeros((levels or levels_of(releases), size), dtype=np.int64))

    def after(self, delivery: Counts) -> tuple[Exact, dict[int, Counts]]:
        """One delivery more, and the exact sums of the blocks that end with it, by level; to them noise is added, once.

        Numbers beyond 2^62 / T count as that: it moves no difference of two apart, and no sum overflows.

        >>> state, told = Exact.empty(4, 1), []
        >>> for number in (5, 6, 7, 8):
        ...     state, whole = state.after(np.array([number]))
        ...     told.append({level: int(sums[0]) for level, sums in whole.items()})
        >>> told
        [{0: 5}, {0: 6, 1: 11}, {0: 7}, {0: 8, 1: 15, 2: 26}]
        """
        if self.done >= self.releases:
            raise ValueError("all declared releases were made")
        limit = LARGEST // self.releases
        sums, done = self.sums + np.clip(delivery, -limit, limit), self.done + 1
        whole = {level: sums[level].copy() for level in closed_at(done) if level < len(sums)}
        for level in whole:
            sums[level] = 0
        return Exact(self.releases, done, sums), whole


@dataclass(frozen=True, eq=False)
class Told:
    """The whole blocks that make the total, largest first, each as (level, estimate), those of the top level as one; from noisy numbers alone."""

    blocks: tuple[tuple[int, Floats], ...] = ()

    def after(self, noisy: Mapping[int, Counts], deviations: Sequence[float]) -> Told:
        """With the noisy numbers of the blocks that ended; *deviations* are the noise's, by level.

        >>> one = Told().after({0: np.array([5])}, (1.0, 1.0))
        >>> two = one.after({0: np.array([7]), 1: np.array([15])}, (1.0, 1.0))
        >>> two.blocks[0][0], two.total.tolist()
        (1, [14.0])
        """
        kept, variance = list(self.blocks), deviations[0] ** 2
        now = noisy[0].astype(np.float64)
        for level in range(1, len(noisy)):
            below, halves = 1 / (2 * variance), kept.pop()[1] + now
            own = deviations[level] ** -2
            now = (own * noisy[level] + below * halves) / (own + below)
            variance = 1 / (own + below)
        if kept and kept[-1][0] == len(noisy) - 1:
            # Two beside each other are of the top level: below it they would have made a larger one.
            now = kept.pop()[1] + now
        return Told((*kept, (len(noisy) - 1, now)))

    @property
    def total(self) -> Floats:
        """The total of all deliveries so far."""
        out: Floats = np.sum([estimate for _, estimate in self.blocks], axis=0)
        return out


def total_deviation(release: int, deviations: Sequence[float]) -> float:
    """The standard deviation of the total at a release: the root of the sum of v_l over its blocks.

    >>> round(total_deviation(3, (1.0, 1.0)) ** 2, 4)
    1.6667
    """
    least = np.array(_least_variances(deviations))
    return float(np.sqrt((_blocks(np.array([release]), len(deviations)) @ least)[0]))


def worst_deviation(releases: int, deviations: Sequence[float]) -> float:
    """The largest `total_deviation` of all releases.

    >>> worst_deviation(3, (1.0, 1.0)) == total_deviation(3, (1.0, 1.0))
    True
    """
    blocks = _blocks(np.arange(1, releases + 1), len(deviations))
    return float(np.sqrt((blocks @ np.array(_least_variances(deviations))).max()))


def _blocks(releases: Counts, levels: int) -> Counts:
    """How many blocks of each level make the total: the binary digits, and all that is left at the top."""
    out: Counts = releases[:, np.newaxis] >> np.arange(levels)
    out[:, :-1] &= 1
    return out


def _least_variances(deviations: Sequence[float]) -> list[float]:
    least = [deviations[0] ** 2]
    for own in deviations[1:]:
        least.append(1 / (own**-2 + 1 / (2 * least[-1])))
    return least
