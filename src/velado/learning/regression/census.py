"""The thresholds of an exact release: what must be true of the pooled rows before anybody sees their sums.

A column that is the same in all rows but one shows, in X'y, that one row's target: with a column that marks one patient the sum
over the column *is* the patient's value. So of every column, features and target, at least `least_cell` rows must lie away
from each public point at which many rows may lie (its bounds, 0 and 1), or none at all. For a column of 0 and 1 these are its members and its
non-members. And there must be at least three rows for every unknown.

A sum over two columns is a sum over the rows that lie away from a point in both: sum x_i z_i, and with it sum (x_i - s)(z_i - t). Where these
are few, it shows a value they have (one drinker among those who take a drug: the glasses), a weight, or, as a curvature, a chance at every point.
So every two points of two columns are counted too. Two columns of 0 and 1 are let off where their sum is a number of people and nothing else, in
linear regression without weights.

Differences show people as single columns do: of two columns of two values each, a - b and a + b - 1 are 0 for everybody but a few where the columns
nearly agree or nearly exclude one another, two columns of numbers may be the same in all rows but a few, and 1 less all columns of one category is 1
for the reference alone. So the rows that move each of these are counted too. In a weighted job rows with less than a hundredth of the largest weight
count nowhere else: the sums hardly hold them; and few rows whose weight is not that of all others would be shown by a job without it.

In a secure sum these counts are summed in a round of their own, before any other sum: the evaluator learns them and nothing else
where they are too small. A key holder (delegated) sees counts and sums together, and gives nothing out. Where nobody sees pooled
figures (masked), every client keeps the thresholds in its own rows (`refuse_small_own_cells`), which is stricter. Where a client sees them
(delegated-to-client), the same for the others, since it can take its own away.
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
    """The rows of a client, and how many of them lie away from every point, and from every two.

    >>> from velado.learning.regression.simulate import small_job
    >>> census_of({"x": [0] * 9 + [1], "y": [2] * 10}, small_job())[:5]  # -8, and with it -8 once more, 0, 1, 8
    [10, 10, 1, 9, 10]
    """
    return census_in(encoded_columns(columns, job), job)


def census_in(encoded: Sequence[NDArray[Any]], job: Job) -> list[int]:
    """The same of rows that are encoded already, all of a client's or a part of them. O(rows x points^2)."""
    scaling = scaling_of(job)
    scales = (*scaling.features, scaling.target)
    away = [
        encoded[place] != round(point * (1 << scales[place].bits)) - scales[place].centre
        for place, point in _marked(job)
    ]
    counts = [len(encoded[-1]), *_together(np.array(away, dtype=bool)).tolist()]
    for one, other in _twins(job):
        most = max(scales[one].bits, scales[other].bits)
        first, second = (
            (encoded[place] + scales[place].centre).astype(object) * (1 << (most - scales[place].bits))
            if scales[place].bits != most
            else encoded[place] + scales[place].centre
            for place in (one, other)
        )
        counts.append(int(np.count_nonzero(first != second)))
    for places in _categories(job):
        held = sum(encoded[place] + scales[place].centre for place in places)
        counts.append(int(np.count_nonzero(held == 0)))
    return counts


def weights_census(weights: NDArray[Any] | None, job: Job) -> list[int]:
    """Of how many rows the weight lies away from each of its points; nothing without a weight. All rows count, light ones too.

    >>> from velado.learning.regression.simulate import small_job
    >>> weights_census(np.array([1.0, 0.0]), small_job(weight=Bounded("w", (Fraction(0), Fraction(1)))))
    [1, 1]
    """
    if weights is None or job.weight is None:
        return []
    return [int(np.count_nonzero(weights != float(point))) for point in points_of(job.weight)]


def _marked(job: Job) -> list[tuple[int, Fraction]]:
    """Every point of every column, the target's last, by the column's place."""
    every = (*job.features, job.target)
    return [(place, point) for place, column in enumerate(every) for point in points_of(column)]


_BLOCK = 1 << 16


def _together(away: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many rows every two of the lists mark, each with itself too: the upper triangle by rows."""
    counts = np.zeros((len(away), len(away)), dtype=np.int64)
    for start in range(0, away.shape[1], _BLOCK):
        part = away[:, start : start + _BLOCK].astype(np.float32)  # sums below 2^24 are exact
        counts += (part @ part.T).astype(np.int64)
    return np.asarray(counts[np.triu_indices(len(away))])


def _twins(job: Job) -> list[tuple[int, int]]:
    """Every two columns, the target too, that can have the same value in many rows and elsewhere another."""
    every = (*job.features, job.target)
    return [
        (one, other)
        for one, other in combinations(range(len(every)), 2)
        if max(every[one].low, every[other].low) < min(every[one].high, every[other].high)
    ]


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
    38
    """
    points = len(_marked(job))
    return 1 + points * (points + 1) // 2 + len(_twins(job)) + len(_categories(job))


def refuse_small_cells(counts: Sequence[int], job: Job) -> None:
    """Nothing, where the counts of `census_of`, summed over clients, keep the thresholds; else InputError names the columns.

    >>> from velado.learning.regression.simulate import small_job
    >>> refuse_small_cells([30, *[30] * 37], small_job())
    """
    _refuse_few_rows(counts[0], job)
    _refuse(_Cells(counts, job), job)


def _refuse_few_rows(rows: int, job: Job) -> None:
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


def _refuse(found: _Cells, job: Job) -> None:
    names = [column.name for column in (*job.features, job.target)]
    if rare := found.small_references():
        raise InputError(
            say(
                "Fewer than {least} rows have {values}: the reference, which has no column of its own.",
                least=job.least_cell,
                values=", ".join(_references(job, places) for places in rare),
            ),
            "The exact sums would show what these few people have.",
            "Join it with another value of its column, leave the column out, or agree on noise (epsilon).",
        )
    small = dict.fromkeys(names[place] for place in found.small_columns())
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
    crossed = [f"{names[one]} x {names[other]}" for one, other in found.small_crossings()]
    if crossed:
        raise InputError(
            say(
                "Fewer than {least} rows make up the sum over {pairs}.",
                least=job.least_cell,
                pairs=", ".join(crossed[:5]),
            ),
            "The exact sums would show what these few people have.",
            "Leave one of the columns out, join categories, or agree on noise (epsilon).",
        )


def _references(job: Job, places: Sequence[int]) -> str:
    """The values of a category that no column stands for, as its columns are called: sex=f."""
    first = job.features[places[0]]
    named = {job.features[place].value for place in places}
    return ", ".join(f"{first.column}={value}" for value in first.among if value not in named)


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


class _Cells:
    """A pooled census, read: how many rows lie away from two points at once."""

    def __init__(self, counts: Sequence[int], job: Job, clients: int = 1) -> None:
        self._job, self._least, self._clients = job, job.least_cell, clients
        self._rows, rest = counts[0], iter(counts[1:])
        marked = _marked(job)
        self._places = [place for place, _ in marked]
        size = len(marked)
        self._away = [[0] * size for _ in range(size)]
        for one in range(size):
            for other in range(one, size):
                self._away[one][other] = self._away[other][one] = next(rest)
        self._rest = list(rest)
        # Of a column that holds two of its points and nothing else: where one of them, and so the other, is marked.
        self._two_valued = {
            self._places[one]: one
            for one, other in combinations(range(size), 2)
            if self._places[one] == self._places[other] and self._away[one][other] == 0
        }

    def _few(self, count: int) -> bool:
        """Whether a number is small and not 0: of the pooled rows, or of its share where one client counts its own."""
        return 0 < count * self._clients < self._least

    def _too_few(self, count: int) -> bool:
        """The same where 0 of one client's own is too few, since others may have some."""
        return self._few(count) or (not count and self._clients > 1 and self._least > 1)

    def small_columns(self) -> list[int]:
        """Columns in which few rows lie away from a point or from two, or differ from another column."""
        out = [
            self._places[one]
            for one in range(len(self._places))
            for other in range(one, len(self._places))
            if self._places[one] == self._places[other]
            and (self._too_few if one == other else self._few)(self._away[one][other])
        ]
        for (first, one), (second, other) in combinations(sorted(self._two_valued.items()), 2):
            both = self._away[one][other]
            differ = self._away[one][one] + self._away[other][other] - 2 * both
            if self._too_few(differ) or self._too_few(self._rows - differ):
                out += [first, second]
        for pair, count in zip(_twins(self._job), self._rest, strict=False):
            if self._too_few(count):
                out += pair
        return sorted(out)

    def small_references(self) -> list[list[int]]:
        """The columns of every category of whose reference there are few rows."""
        made = _categories(self._job)
        counts = self._rest[len(self._rest) - len(made) :]
        return [places for places, count in zip(made, counts, strict=True) if self._too_few(count)]

    def small_crossings(self) -> list[tuple[int, int]]:
        """Every two columns of whose product few rows have a part, where a sum over the product holds a value of theirs."""
        size = range(len(self._places))
        pairs = [pair for pair in combinations(size, 2) if self._too_few(self._away[pair[0]][pair[1]])]
        places = [(self._places[one], self._places[other]) for one, other in pairs]
        return list(dict.fromkeys(pair for pair in places if pair[0] != pair[1] and self._tells(*pair)))

    def _tells(self, one: int, other: int) -> bool:
        """Whether the sum over two columns holds more than a number of rows: a value, a weight, or a chance (curvature)."""
        job = self._job
        counted = one in self._two_valued and other in self._two_valued
        weighted = job.weight is not None or (job.family != "linear" and other != len(job.features))
        return weighted or not counted


def refuse_small_own_cells(columns: Columns, job: Job, taken_away: int = 0) -> None:
    """Nothing, where one client's own rows keep the thresholds so that the pooled ones do if all clients' do; else InputError.

    Its even share of each threshold, which all clients must have. Rows away from two points of one column, which a column of two values never has, may
    be none at all: there the pooled rows may be as few as one client's share.
    So do, where *taken_away* is said, the rows of all clients but so many.

    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> refuse_small_own_cells(small_rows(), small_job())
    """
    counts = census_of(columns, job)
    clients = len(job.of("client")) - taken_away
    _refuse_few_rows(counts[0] * clients, job)
    _refuse(_Cells(counts, job, clients), job)
