"""The thresholds of exact sums over columns: what must be true of the pooled rows before anybody sees these sums. One place for regressions and federations.

A column that is the same in all rows but one shows, in a sum of its products, that one row's other values: with a column that marks one patient the
sum over the column *is* the patient's value. So of every column, features and targets, at least `least_cell` rows must lie away
from each public point at which many rows may lie (its bounds, 0 and 1), or none at all. For a column of 0 and 1 these are its members and its
non-members. And there must be at least three rows for every unknown.

A sum over two columns is a sum over the rows that lie away from a point in both: sum x_i z_i, and with it sum (x_i - s)(z_i - t). Where these
are few, it shows a value they have (one drinker among those who take a drug: the glasses), a weight, or, as a curvature, a chance at every point.
So every two points of two columns are counted too. Two columns of 0 and 1 are let off where their sum is a number of people and nothing else.

Differences show people as single columns do: of two columns of two values each, a - b and a + b - 1 are 0 for everybody but a few where the columns
nearly agree or nearly exclude one another, two columns of numbers may be the same in all rows but a few, and 1 less all columns of one category is 1
for the reference alone. So the rows that move each of these are counted too.

What is counted, and what a count may not be, stands here; which columns there are and which products are summed is the caller's (`regression.census`,
`flower._census`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from velado.errors import InputError
from velado.text import say

ROWS_FOR_UNKNOWN = 3


@dataclass(frozen=True, kw_only=True)
class CensusPlan:
    """What is counted over columns, the targets last, and which of their products are summed.

    *points* are each column's; *twins* every two columns that may be the same in many rows and elsewhere differ; *categories* the columns made from
    one column each, *references* the value of each that has no column of its own, as a reader knows it. *crossed* are the pairs of columns whose product is summed, all where it is None. Such a sum holds more than a number of rows where
    the columns do, or where rows are *weighted*; in one with a target, where *target_weighted*.

    >>> plan = CensusPlan(names=("sex", "died"), points=((0, 1), (0, 1)), unknowns=2, least_cell=10, twins=((0, 1),))
    >>> plan.size, plan.marked
    (12, [(0, 0), (0, 1), (1, 0), (1, 1)])
    """

    names: tuple[str, ...]
    points: tuple[tuple[Fraction | float, ...], ...]
    unknowns: int
    least_cell: int
    targets: int = 1
    twins: tuple[tuple[int, int], ...] = ()
    categories: tuple[tuple[int, ...], ...] = ()
    references: tuple[str, ...] = ()
    crossed: frozenset[tuple[int, int]] | None = None
    weighted: bool = False
    target_weighted: bool = False

    @property
    def marked(self) -> list[tuple[int, Fraction | float]]:
        """Every point of every column, by the column's place."""
        return [(place, point) for place, points in enumerate(self.points) for point in points]

    @property
    def size(self) -> int:
        """How many numbers a census has."""
        points = sum(map(len, self.points))
        return 1 + points * (points + 1) // 2 + len(self.twins) + len(self.categories)

    def tells(self, one: int, other: int, two_valued: bool) -> bool:
        """Whether the sum over two columns is made, and holds more than a number of rows: a value, a weight, or a chance (curvature)."""
        if self.crossed is not None and (one, other) not in self.crossed:
            return False
        to_target = other >= len(self.names) - self.targets
        return (self.target_weighted if to_target else self.weighted) or not two_valued


def points_between(low: Fraction | float, high: Fraction | float) -> tuple[Any, ...]:
    """The public values at which many rows of a column may lie: its bounds, and 0 and 1 between them.

    >>> points_between(0.0, 120.0)
    (0.0, 1, 120.0)
    """
    inside = (point for point in (type(low)(0), 1) if low <= point <= high)
    return tuple(sorted({low, high, *inside}))


def overlapping(bounds: Sequence[tuple[Any, Any]]) -> tuple[tuple[int, int], ...]:
    """Every two columns with these bounds that can have the same value in many rows.

    >>> overlapping([(0, 1), (0, 120), (1, 2)])
    ((0, 1), (1, 2))
    """
    return tuple(
        (one, other)
        for one, other in combinations(range(len(bounds)), 2)
        if max(bounds[one][0], bounds[other][0]) < min(bounds[one][1], bounds[other][1])
    )


def counts_of(
    rows: int,
    away: Sequence[NDArray[np.bool_]],
    differing: Iterable[NDArray[np.bool_]],
    without: Iterable[NDArray[np.bool_]],
) -> list[int]:
    """A census of some rows: which lie *away* from each marked point, differ between twins, and have none of a category's columns.

    O(rows x points^2).

    >>> counts_of(3, [np.array([True, True, False]), np.array([False, True, True])], [], [])
    [3, 2, 1, 2]
    """
    counts = [rows, *_together(np.array(away, dtype=bool).reshape(len(away), rows)).tolist()]
    counts += [int(np.count_nonzero(one)) for one in differing]
    return counts + [int(np.count_nonzero(one)) for one in without]


_BLOCK = 1 << 16


def _together(away: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many rows every two of the lists mark, each with itself too: the upper triangle by rows."""
    counts = np.zeros((len(away), len(away)), dtype=np.int64)
    for start in range(0, away.shape[1], _BLOCK):
        part = away[:, start : start + _BLOCK].astype(np.float32)  # sums below 2^24 are exact
        counts += (part @ part.T).astype(np.int64)
    return np.asarray(counts[np.triu_indices(len(away))])


def refuse_small(counts: Sequence[int], plan: CensusPlan, clients: int = 1) -> None:
    """Nothing, where the counts of `counts_of`, summed over clients, keep the thresholds; else InputError names the columns.

    With *clients* the counts are one client's own, and it keeps its even share of each.

    >>> plan = CensusPlan(names=("sex",), points=((0, 1),), unknowns=1, least_cell=10)
    >>> refuse_small([40, 20, 0, 20], plan)
    >>> refuse_small([40, 1, 0, 39], plan)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.InputError: In sex fewer than 10 rows differ from all the others...
    """
    refuse_few_rows(counts[0] * clients, plan.unknowns)
    found = _Cells(counts, plan, clients)
    if rare := found.small_references():
        raise InputError(
            say(
                "Fewer than {least} rows have {values}: the reference, which has no column of its own.",
                least=plan.least_cell,
                values=", ".join(rare),
            ),
            "The exact sums would show what these few people have.",
            "Join it with another value of its column, leave the column out, or agree on noise (epsilon).",
        )
    small = dict.fromkeys(plan.names[place] for place in found.small_columns())
    if small:
        raise InputError(
            say(
                "In {columns} fewer than {least} rows differ from all the others.",
                columns=", ".join(small),
                least=plan.least_cell,
            ),
            "The exact sums would show what these few people have.",
            "Leave the column out, join categories, or agree on noise (epsilon).",
        )
    crossed = dict.fromkeys(
        f"{plan.names[one]} x {plan.names[other]}" for one, other in found.small_crossings()
    )
    if crossed:
        raise InputError(
            say(
                "Fewer than {least} rows make up the sum over {pairs}.",
                least=plan.least_cell,
                pairs=", ".join(list(crossed)[:5]),
            ),
            "The exact sums would show what these few people have.",
            "Leave one of the columns out, join categories, or agree on noise (epsilon).",
        )


def refuse_few_rows(rows: int, unknowns: int) -> None:
    """Nothing, where there are three rows for every unknown; else InputError.

    >>> refuse_few_rows(6, 2)
    """
    needed = ROWS_FOR_UNKNOWN * unknowns
    if rows < needed:
        raise InputError(
            say(
                "There are fewer than {needed} rows for {unknowns} unknowns.",
                needed=needed,
                unknowns=unknowns,
            ),
            "With so few rows the sums nearly are the rows.",
            "Fit fewer columns, or bring more rows.",
        )


def moved_columns(counts: Sequence[int], plan: CensusPlan) -> list[int]:
    """The columns that are not the same in all rows.

    >>> plan = CensusPlan(names=("sex",), points=((0, 1),), unknowns=1, least_cell=10)
    >>> moved_columns([40, 20, 0, 20], plan), moved_columns([40, 0, 0, 40], plan)
    ([0], [])
    """
    cells = _Cells(counts, plan)
    still = {place for place, count in cells.alone if count == 0}
    return [place for place in range(len(plan.names)) if place not in still]


class _Cells:
    """A pooled census, read: how many rows lie away from two points at once."""

    def __init__(self, counts: Sequence[int], plan: CensusPlan, clients: int = 1) -> None:
        self._plan, self._least, self._clients = plan, plan.least_cell, clients
        self._rows, rest = counts[0], iter(counts[1:])
        marked = plan.marked
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

    @property
    def alone(self) -> list[tuple[int, int]]:
        """How many rows lie away from each point by itself, by the column's place."""
        return [(place, self._away[at][at]) for at, place in enumerate(self._places)]

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
        # A column that is the same in all rows differs from another in that one's rows, which are counted already.
        moved = [
            pair for pair in sorted(self._two_valued.items()) if 0 < self._away[pair[1]][pair[1]] < self._rows
        ]
        for (first, one), (second, other) in combinations(moved, 2):
            both = self._away[one][other]
            differ = self._away[one][one] + self._away[other][other] - 2 * both
            if self._too_few(differ) or self._too_few(self._rows - differ):
                out += [first, second]
        for pair, count in zip(self._plan.twins, self._rest, strict=False):
            if self._too_few(count):
                out += pair
        return sorted(out)

    def small_references(self) -> list[str]:
        """The references that few rows have."""
        counts = self._rest[len(self._plan.twins) :]
        return [
            name for name, count in zip(self._plan.references, counts, strict=True) if self._too_few(count)
        ]

    def small_crossings(self) -> list[tuple[int, int]]:
        """Every two columns of whose product few rows have a part, where a sum over the product holds a value of theirs."""
        size = range(len(self._places))
        pairs = [pair for pair in combinations(size, 2) if self._too_few(self._away[pair[0]][pair[1]])]
        places = [(self._places[one], self._places[other]) for one, other in pairs]
        return list(dict.fromkeys(pair for pair in places if pair[0] != pair[1] and self._tells(*pair)))

    def _tells(self, one: int, other: int) -> bool:
        return self._plan.tells(one, other, one in self._two_valued and other in self._two_valued)
