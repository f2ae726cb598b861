"""The thresholds of an exact release: what must be true of the pooled rows before anybody sees their sums.

A column that is the same in all rows but one shows, in X'y, that one row's target: with a column that marks one patient the sum
over the column *is* the patient's value. So of every column, features and target, at least `least_cell` rows must lie away
from each public point at which many rows may lie (its bounds, 0 and 1), or none at all. For a column of 0 and 1 these are its members and its
non-members. And there must be at least three rows for every unknown.

Differences show people as single columns do: of two columns of 0 and 1, a - b and a + b - 1 are 0 for everybody but a few where the columns
nearly agree or nearly exclude one another, and 1 less all columns of one category is 1 for the reference alone. So the rows that move each of these
are counted too. In a weighted job rows with less than a hundredth of the largest weight count nowhere: the sums hardly hold them.

In a secure sum these counts are summed in a round of their own, before any other sum: the evaluator learns them and nothing else
where they are too small. A key holder (delegated) sees counts and sums together, and gives nothing out. Where nobody sees pooled
figures (masked), every client keeps its even share of the thresholds
in its own rows, which is stricter. Where a client sees them (delegated-to-client), the shares are those of the others, since it can take its own away.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from velado.errors import InputError
from velado.learning.crypto.fixed_point import Bounded, Columns
from velado.learning.regression.design_matrix import encoded_columns
from velado.learning.regression.fit import scaling_of
from velado.learning.regression.job import Job
from velado.text import say

ROWS_FOR_UNKNOWN = 3
LIGHTEST = 100
"""How many times lighter than the largest weight a row may be and still be counted as one."""


def points_of(column: Bounded) -> tuple[Fraction, ...]:
    """The public values at which many rows of a column may lie: its bounds, and 0 and 1 between them.

    >>> [float(point) for point in points_of(Bounded("age", (Fraction(0), Fraction(120))))]
    [0.0, 1.0, 120.0]
    """
    inside = (point for point in (Fraction(0), Fraction(1)) if column.low <= point <= column.high)
    return tuple(sorted({column.low, column.high, *inside}))


def census_of(columns: Columns, job: Job) -> list[int]:
    """The rows of a client, and for every column and point how many of them lie elsewhere.

    >>> from velado.learning.regression.simulate import small_job
    >>> census_of({"x": [0] * 9 + [1], "y": [2] * 10}, small_job())
    [10, 10, 1, 9, 10, 10, 10, 10, 10]
    """
    return census_in(encoded_columns(columns, job), job)


def census_in(encoded: Sequence[NDArray[Any]], job: Job) -> list[int]:
    """The same of rows that are encoded already, all of a client's or a part of them."""
    scaling = scaling_of(job)
    scales = (*scaling.features, scaling.target)
    counts = [len(encoded[-1])]
    for column, scale, values in zip((*job.features, job.target), scales, encoded, strict=True):
        for point in points_of(column):
            at = round(point * (1 << scale.bits)) - scale.centre
            counts.append(int(np.count_nonzero(values != at)))
    for one, other in _pairs(job):
        size = 1 << scales[one].bits
        both = encoded[one] + encoded[other] + 2 * scales[one].centre
        counts += [int(np.count_nonzero(encoded[one] != encoded[other])), int(np.count_nonzero(both != size))]
    for places in _categories(job):
        held = sum(encoded[place] + scales[place].centre for place in places)
        counts.append(int(np.count_nonzero(held == 0)))
    return counts


def _pairs(job: Job) -> list[tuple[int, int]]:
    """Every two columns, the target too, that lie between 0 and 1."""
    unit = (Fraction(0), Fraction(1))
    places = [place for place, one in enumerate((*job.features, job.target)) if one.bounds == unit]
    return list(combinations(places, 2))


def _categories(job: Job) -> list[list[int]]:
    """The columns that were made from one column of three categories or more."""
    made: dict[str, list[int]] = {}
    for place, one in enumerate(job.features):
        if one.value:
            made.setdefault(one.column, []).append(place)
    return [places for places in made.values() if len(places) > 1]


def weighty(encoded: Sequence[NDArray[Any]], weights: NDArray[Any] | None, job: Job) -> list[NDArray[Any]]:
    """The rows that the sums of a weighted job hold, for its census; all where there is no weight.

    >>> from velado.learning.regression.simulate import small_job
    >>> len(weighty([np.zeros(3), np.zeros(3)], None, small_job())[0])
    3
    """
    if weights is None or job.weight is None:
        return list(encoded)
    held = weights * LIGHTEST >= float(job.weight.high)
    return [values[held] for values in encoded]


def census_size(job: Job) -> int:
    """How many numbers a census has.

    >>> from velado.learning.regression.simulate import small_job
    >>> census_size(small_job())
    9
    """
    single = sum(len(points_of(column)) for column in (*job.features, job.target))
    return 1 + single + 2 * len(_pairs(job)) + len(_categories(job))


def refuse_small_cells(counts: Sequence[int], job: Job) -> None:
    """Nothing, where the counts of `census_of`, summed over clients, keep the thresholds; else InputError names the columns.

    >>> from velado.learning.regression.simulate import small_job
    >>> refuse_small_cells([30, *[30] * 8], small_job())
    """
    rows, *away = counts
    needed = ROWS_FOR_UNKNOWN * job.width
    if rows < needed:
        raise InputError(
            say(
                "There are fewer than {needed} rows for {unknowns} unknowns.",
                needed=needed,
                unknowns=job.width,
            ),
            "With so few rows the sums nearly are the rows.",
            "Fit fewer columns, or bring more rows.",
        )
    rest, every = iter(away), (*job.features, job.target)

    def few(counts: int) -> bool:
        return any([0 < next(rest) < job.least_cell for _ in range(counts)])

    places = [place for place, column in enumerate(every) if few(len(points_of(column)))]
    places += [place for pair in _pairs(job) if few(2) for place in pair]
    places += [place for made in _categories(job) if few(1) for place in made]
    small = dict.fromkeys(every[place].name for place in places)
    if small:
        raise InputError(
            say(
                "In {columns} fewer than {least} rows differ from all the others.",
                columns=", ".join(small),
                least=job.least_cell,
            ),
            "The exact sums would show what these few people have.",
            "Leave the column out, join categories, or agree on noise (epsilon).",
        )


def refuse_small_own_cells(columns: Columns, job: Job, taken_away: int = 0) -> None:
    """Nothing, where one client's own rows keep its even share of the thresholds: if all do, the pooled rows keep them.

    So do, where *taken_away* is said, the rows of all clients but so many.

    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> refuse_small_own_cells(small_rows(), small_job())
    """
    rows, *away = census_of(columns, job)
    clients = len(job.of("client")) - taken_away
    refuse_small_cells([rows * clients, *(max(1, count * clients) for count in away)], job)
