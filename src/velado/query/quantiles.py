"""Private quantiles: one candidate chosen by noisy scores that come from exact counts per bin.

A level alpha = a/b asks for the number whose rank is alpha n. The candidate c covers the ranks from #(index < c) to
#(index <= c); its score is b times the distance of alpha n from that range, a whole number:

    score(c) = max(0, b #lt - a n, a n - b #le),   n = all rows with a value

Zero means c is a quantile. The usual |(1 - alpha) #lt - alpha #gt| prefers a value that nobody has over one that many
share; this one does not. Adding a row moves n by 1 and #lt, #le by 0 or 1, so each term moves by at most max(a, b - a).

Several keys: each key chooses for itself at one scale. A unit with g_k rows in key k costs that key the map of
g_k max(a, b - a). Under epsilon the map is linear and sum g_k <= g; under rho it is quadratic and sum g_k^2 <= g^2; in
both cases the keys together cost no more than the map of g max(a, b - a), which is what is charged.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from velado.errors import QueryRefused
from velado.query.needs import Counts, Grid, GridCells
from velado.text import say

MOST_CANDIDATES = 2_000
LEAST_CANDIDATES = 100
# Scores drawn in one answer, over all keys and quantiles: about ten microseconds each.
MOST_SCORES = 300_000
MOST_DENOMINATOR = 10_000
# Scores stay below this, whatever an engine counts, so that they cannot overflow.
_LARGEST = 1 << 61


def level(at: Fraction) -> Fraction:
    """The level as a fraction with a denominator of at most 10,000, strictly between 0 and 1.

    Scores are whole multiples of 1/b, so a finer level would only be rounded elsewhere.

    >>> level(Fraction("0.123456789"))
    Fraction(10, 81)
    """
    nearest = at.limit_denominator(MOST_DENOMINATOR)
    finest = Fraction(1, MOST_DENOMINATOR)
    return min(max(nearest, finest), 1 - finest)


@lru_cache(maxsize=256)
def candidates(grid: Grid, cells: int) -> tuple[int, ...]:
    """The indices to choose from: all of the grid when it has at most 2,000, else as many, evenly spread.

    With many keys there are fewer, so that no quantile draws more than 300,000 scores.

    >>> candidates(Grid("age", Fraction(1), 0, 3), 1)
    (0, 1, 2, 3)
    """
    most = min(MOST_CANDIDATES, MOST_SCORES // cells)
    points = grid.high - grid.low + 1
    if points <= most:
        return tuple(range(grid.low, grid.high + 1))
    if most < LEAST_CANDIDATES:
        raise QueryRefused(
            "The keys of this query make too many cells for a quantile.",
            say(
                "Each cell chooses among at least {least_candidates} candidates, and one answer draws at "
                "most {most_scores:,} scores.",
                least_candidates=LEAST_CANDIDATES,
                most_scores=MOST_SCORES,
            ),
            "Group by fewer keys, or ask for averages.",
        )
    return tuple(grid.low + (grid.high - grid.low) * i // (most - 1) for i in range(most))


def cells_between(grid: Grid, chosen: tuple[int, ...]) -> GridCells:
    """The bins whose counts give #lt and #le of every candidate exactly: one for it alone, one up to the next.

    >>> cells_between(Grid("age", Fraction(1), 0, 9), (2, 5)).edges
    (0, 2, 3, 5, 6, 10)
    """
    edges = {grid.low, grid.high + 1} | set(chosen) | {c + 1 for c in chosen}
    return GridCells(grid, tuple(sorted(edges)))


@lru_cache(maxsize=256)
def places(need: GridCells, chosen: tuple[int, ...]) -> tuple[int, ...]:
    """The bin of each candidate.

    >>> places(cells_between(Grid("age", Fraction(1), 0, 9), (2, 5)), (2, 5))
    (1, 3)
    """
    return tuple(np.searchsorted(np.array(need.edges, dtype=np.int64), np.array(chosen)).tolist())


def scores_of(tally: Counts, bins: tuple[int, ...], at: Fraction) -> Counts:
    """The score of every candidate, shape (cells, candidates), from the exact counts per bin. O(cells x bins).

    Counts are clipped far above any table's size: clipping moves nothing further, and nothing overflows.

    >>> scores_of(np.array([[3, 4, 1]]), (0, 1, 2), Fraction(1, 2))
    array([[2, 0, 6]])
    """
    a, b = at.numerator, at.denominator
    kept = np.clip(tally, 0, _LARGEST // (b * tally.shape[1]))
    most = np.cumsum(kept, axis=1)
    where = np.array(bins, dtype=np.int64)
    at_or_below = most[:, where]
    below = at_or_below - kept[:, where]
    target = a * most[:, -1:]
    distance: Counts = np.maximum(np.maximum(b * below - target, target - b * at_or_below), 0)
    return distance


def rank_error(scale: float, count: int, at: Fraction, confidence: Fraction) -> float:
    """Rows by which the chosen rank misses the best candidate's, at most, with that confidence.

    Both noises OpenDP draws choose a score worse than the best by t with chance at most count x exp(-t / scale)
    (McSherry and Talwar 2007; permute-and-flip is never worse, McKenna and Sheldon 2020). Scores are b times ranks.

    >>> round(rank_error(2.0, 100, Fraction(1, 2), Fraction(19, 20)), 1)
    7.6
    """
    return scale * math.log(count / float(1 - confidence)) / at.denominator
