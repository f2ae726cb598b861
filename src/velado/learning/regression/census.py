"""The thresholds of an exact regression: what must be true of the pooled rows before anybody sees their sums.

Which columns are counted, what they are called, and which products a job sums; what a count may not be stands in `learning.census`, for federations too.
All products of two columns are summed. Two columns of 0 and 1 are let off where their sum is a number of people and nothing else, in
linear regression without weights. In a weighted job rows with less than a hundredth of the largest weight
count nowhere else: the sums hardly hold them; and few rows whose weight is not that of all others would be shown by a job without it.

In a secure sum these counts are summed in a round of their own, before any other sum: the evaluator learns them and nothing else
where they are too small. A key holder (delegated) sees counts and sums together, and gives nothing out. Where nobody sees pooled
figures (masked), every client keeps the thresholds in its own rows (`refuse_small_own_cells`), which is stricter. Where a client sees them
(delegated-to-client), the same for the others, since it can take its own away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from velado.errors import InputError
from velado.learning.census import CensusPlan, counts_of, overlapping, points_between, refuse_small
from velado.learning.crypto.fixed_point import Bounded, Columns
from velado.learning.regression.design_matrix import encoded_columns
from velado.learning.regression.fit import scaling_of
from velado.learning.regression.job import Job
from velado.text import say

LIGHTEST = 100
"""How many times lighter than the largest weight a row may be and still be counted as one."""


def points_of(column: Bounded) -> tuple[Fraction, ...]:
    """The public values at which many rows of a column may lie: its bounds, and 0 and 1 between them.

    >>> [float(point) for point in points_of(Bounded("age", (Fraction(0), Fraction(120))))]
    [0.0, 1.0, 120.0]
    """
    return points_between(column.low, column.high)


def plan_of(job: Job) -> CensusPlan:
    """What is counted for a job.

    >>> from velado.learning.regression.simulate import small_job
    >>> plan_of(small_job()).size
    38
    """
    every = (*job.features, job.target)
    return CensusPlan(
        names=tuple(column.name for column in every),
        points=tuple(map(points_of, every)),
        unknowns=job.width,
        least_cell=job.least_cell,
        twins=overlapping([column.bounds for column in every]),
        categories=_categories(job),
        references=tuple(_reference(job, places) for places in _categories(job)),
        weighted=job.iterated,
        target_weighted=job.weight is not None,
    )


def census_of(columns: Columns, job: Job) -> list[int]:
    """The rows of a client, and how many of them lie away from every point, and from every two.

    >>> from velado.learning.regression.simulate import small_job
    >>> census_of({"x": [0] * 9 + [1], "y": [2] * 10}, small_job())[:5]  # -8, and with it -8 once more, 0, 1, 8
    [10, 10, 1, 9, 10]
    """
    return census_in(encoded_columns(columns, job), job)


def census_in(encoded: Sequence[NDArray[Any]], job: Job) -> list[int]:
    """The same of rows that are encoded already, all of a client's or a part of them. O(rows x points^2)."""
    scaling, plan = scaling_of(job), plan_of(job)
    scales = (*scaling.features, scaling.target)
    away = [
        encoded[place] != round(point * (1 << scales[place].bits)) - scales[place].centre
        for place, point in plan.marked
    ]

    def differing() -> Iterator[NDArray[np.bool_]]:
        for one, other in plan.twins:
            most = max(scales[one].bits, scales[other].bits)
            first, second = (
                (encoded[place] + scales[place].centre).astype(object) * (1 << (most - scales[place].bits))
                if scales[place].bits != most
                else encoded[place] + scales[place].centre
                for place in (one, other)
            )
            yield np.asarray(first != second)

    held = (sum(encoded[place] + scales[place].centre for place in places) for places in plan.categories)
    return counts_of(len(encoded[-1]), away, differing(), (np.asarray(one == 0) for one in held))


def weights_census(weights: NDArray[Any] | None, job: Job) -> list[int]:
    """Of how many rows the weight lies away from each of its points; nothing without a weight. All rows count, light ones too.

    >>> from velado.learning.regression.simulate import small_job
    >>> weights_census(np.array([1.0, 0.0]), small_job(weight=Bounded("w", (Fraction(0), Fraction(1)))))
    [1, 1]
    """
    if weights is None or job.weight is None:
        return []
    return [int(np.count_nonzero(weights != float(point))) for point in points_of(job.weight)]


def _categories(job: Job) -> tuple[tuple[int, ...], ...]:
    """The columns that were made from one column of three categories or more."""
    made: dict[str, list[int]] = {}
    for place, one in enumerate(job.features):
        if one.value:
            made.setdefault(one.column, []).append(place)
    return tuple(tuple(places) for places in made.values() if len(places) > 1)


def _reference(job: Job, places: Sequence[int]) -> str:
    """The value of a category that no column stands for, as its columns are called: sex=f."""
    first = job.features[places[0]]
    named = {job.features[place].value for place in places}
    return ", ".join(f"{first.column}={value}" for value in first.among if value not in named)


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


def refuse_small_cells(counts: Sequence[int], job: Job) -> None:
    """Nothing, where the counts of `census_of`, summed over clients, keep the thresholds; else InputError names the columns.

    >>> from velado.learning.regression.simulate import small_job
    >>> refuse_small_cells([30, *[30] * 37], small_job())
    """
    refuse_small(counts, plan_of(job))


def refuse_small_weights(counts: Sequence[int], job: Job) -> None:
    """Nothing, where the counts of `weights_census`, summed over clients, keep the thresholds; else InputError.

    >>> from velado.learning.regression.simulate import small_job
    >>> refuse_small_weights([], small_job())
    """
    if job.weight is not None and any(0 < count < job.least_cell for count in counts):
        raise InputError(
            say(
                "In {columns} fewer than {least} rows differ from all the others.",
                columns=job.weight.name,
                least=job.least_cell,
            ),
            "The difference to sums without this weight would show what these few people have.",
            "Leave the weight out, leave these rows out, or agree on noise (epsilon).",
        )


def refuse_small_own_cells(columns: Columns, job: Job, taken_away: int = 0) -> None:
    """Nothing, where one client's own rows keep the thresholds so that the pooled ones do if all clients' do; else InputError.

    Its even share of each threshold, which all clients must have. Rows away from two points of one column, which a column of two values never has, may
    be none at all: there the pooled rows may be as few as one client's share.
    So do, where *taken_away* is said, the rows of all clients but so many.

    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> refuse_small_own_cells(small_rows(), small_job())
    """
    refuse_small(census_of(columns, job), plan_of(job), len(job.of("client")) - taken_away)
