"""The thresholds of exact secure sums of a federation: the census of a regression (`learning.census`), over the features that clients train on.

Counted are the columns that clients train on as they are: all of them where rows are original, else those that a release publishes whole (`other`,
`sensitive`). What a release hides in groups of k needs no count: sums over it are a function of releases in which every such value is that of k rows,
checked at each client, and say no more than these.

The sums of a round (`_pooled_newton`) hold products of two features of one column and of a feature with a class, and no others; so these are
the cells that must not be small. All the same every two columns are counted together: columns that nearly agree show people by their difference.
The held-out rows that are scored together must be as many as a cell, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from velado.errors import InputError
from velado.learning.census import (
    CensusPlan,
    counts_of,
    moved_columns,
    overlapping,
    points_between,
    refuse_few_rows,
    refuse_small,
)
from velado.learning.flower._masking import Figures
from velado.learning.flower._terms import Agreed
from velado.learning.flower.flower_records import FloatMatrix
from velado.text import say

IntVector = npt.NDArray[np.int64]


def counted_features(agreed: Agreed) -> list[int]:
    """The features of columns that clients train on as they are."""
    layout = agreed.layout
    return [at for at, column in enumerate(layout.source) if layout.raw[column]]


def census_plan(agreed: Agreed) -> CensusPlan:
    """What is counted in a run: the features, and a column of 0 and 1 for each class, or for the second of two."""
    layout, chosen = agreed.layout, counted_features(agreed)
    targets = 1 if agreed.classes == 2 else agreed.classes
    places = range(len(chosen))
    bounds = [(layout.low[at], layout.high[at]) for at in chosen]
    numbers = [place for place in places if not layout.flag[chosen[place]]]
    own = (
        (one, other)
        for one, other in combinations(places, 2)
        if layout.source[chosen[one]] == layout.source[chosen[other]]
    )
    taught = ((one, len(chosen) + other) for one in places for other in range(targets))
    return CensusPlan(
        names=(*(layout.columns[layout.source[at]] for at in chosen), *([layout.target] * targets)),
        points=(*(points_between(*bound) for bound in bounds), *([(0.0, 1.0)] * targets)),
        unknowns=1,
        least_cell=agreed.federation.least_cell,
        targets=targets,
        twins=tuple(
            (numbers[one], numbers[other]) for one, other in overlapping([bounds[at] for at in numbers])
        ),
        crossed=frozenset([*own, *taught]),
        weighted=True,
    )


def census_size(agreed: Agreed) -> int:
    """How many numbers a client counts: the census, and its held-out rows."""
    return census_plan(agreed).size + 1


def census_figures(features: FloatMatrix, labels: IntVector, held_out: int, agreed: Agreed) -> Figures:
    """A client's counts. O(rows x features^2)."""
    plan, chosen = census_plan(agreed), counted_features(agreed)
    classes = [1] if agreed.classes == 2 else range(agreed.classes)
    values = [features[:, at] for at in chosen] + [(labels == one).astype(np.float32) for one in classes]
    away = [values[place] != np.float32(point) for place, point in plan.marked]
    differing = (values[one] != values[other] for one, other in plan.twins)
    return np.array([*counts_of(labels.size, away, differing, ()), held_out], dtype=np.int64)


def refuse_small_figures(figures: Sequence[int], agreed: Agreed) -> None:
    """Nothing, where the counts of all clients together keep the thresholds; else InputError names the columns."""
    plan, counts = census_plan(agreed), list(figures[:-1])
    moved = [
        agreed.layout.source[counted_features(agreed)[place]]
        for place in moved_columns(counts, plan)
        if place < len(plan.names) - plan.targets
    ]
    # Of the values of a category each follows from the others.
    whole = {
        column for column, flag in zip(agreed.layout.source, agreed.layout.flag, strict=True) if not flag
    }
    unknowns = 1 + len(moved) - len(set(moved) - whole)
    refuse_few_rows(counts[0], unknowns)
    refuse_small(counts, replace(plan, unknowns=unknowns))
    if 0 < figures[-1] < plan.least_cell:
        raise InputError(
            say("Fewer than {least} rows are held out.", least=plan.least_cell),
            "Exact scores over so few rows would show what these few people have.",
            "Raise 'test_share', or bring more rows.",
        )
