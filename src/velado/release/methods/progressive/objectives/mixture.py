"""ObjectiveMixture: which objectives a search lowers, and how much each of them counts. The registry of objectives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.partition import FloatArray, IntArray
from velado.release.methods.progressive.objectives._ingredients import GroupTallies, Ingredients
from velado.release.methods.progressive.objectives._shown_groups import ShownGroups
from velado.release.methods.progressive.objectives.faithful_margins import FaithfulMargins, margins_after
from velado.release.methods.progressive.objectives.least_penalty import LeastPenalty, penalty_after
from velado.release.methods.progressive.objectives.least_variance import LeastVariance, variance_after
from velado.release.methods.progressive.objectives.smallest_groups import SmallestGroups, square_after
from velado.text import join


class Objective(Protocol):
    """What a search may lower: a value between 0 and 1 of published groups, and the share that each group has in it.

    *name* is that of the measure `velado measure` shows it under. The compiled half, the cost of a group after a change,
    is a line of `cost_after`, *slowness* how many times as long as the loss alone it takes. *heading* stands above its column in
    comparisons of releases, among methods too where it is *in_brief*.

    >>> [one.name for one in OBJECTIVES]
    ['ncp', 'sse', 'discernibility', 'marginals']
    """

    name: ClassVar[str]
    title: ClassVar[str]
    heading: ClassVar[str]
    in_brief: ClassVar[bool]
    slowness: ClassVar[float]

    @staticmethod
    def unit(rows: int, weight: float) -> float:
        """What one unit of the groups' cost adds to rows x value, for a table of so many rows and column weights."""
        ...

    @staticmethod
    def dropped(rows: int, weight: float) -> float:
        """What a suppressed row costs in that unit."""
        ...

    @staticmethod
    def shown(value: float, rows: int) -> str:
        """The value as a person reads it."""
        ...

    @staticmethod
    def value(groups: ShownGroups) -> float:
        """Its value for published groups: the smaller the better."""
        ...


OBJECTIVES: tuple[type[Objective], ...] = (LeastPenalty, LeastVariance, SmallestGroups, FaithfulMargins)
NCP, SSE, DISCERNIBILITY, MARGINALS = range(4)
"""Places in the mixture."""


@njit(cache=True, inline="always")
def cost_after(world: Ingredients, groups: GroupTallies, g: int, out: int, into: int) -> float:
    """What the mixture charges for g once record *out* has left it and *into* has joined it; -1: none does.

    In the order of `OBJECTIVES`; a test holds the two together.

    >>> from velado.release.methods._row_covers import RowCovers
    >>> from velado.release.methods.progressive._objective_kernel import fill_groups
    >>> from velado.release.methods.progressive.objective_search import ingredients
    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 21, 30])
    >>> world = ingredients(data, RowCovers.of(data), ObjectiveMixture.of("ncp"), 1, 0)
    >>> cost_after(world, fill_groups(world, np.array([0, 0, 1], np.int32), 2, 2), 0, -1, 2)
    3.0
    """
    # 64 bits wide whatever they were, so that each objective is compiled once.
    g, out, into = g + 0, out + 0, into + 0
    size = groups.size[g] - (1 if out >= 0 else 0) + (1 if into >= 0 else 0)
    total = 0.0
    if world.mix[0] > 0.0 or world.mix[2] > 0.0:
        penalty = penalty_after(world.measure, world.points, groups.ends, g, size, out, into)
        total += world.mix[0] * penalty
        total += world.mix[2] * square_after(size, penalty, world.tie)
    if world.mix[1] > 0.0:
        total += world.mix[1] * variance_after(world.moments, groups.moments, g, size, out, into)
    if world.mix[3] > 0.0:
        total += world.mix[3] * margins_after(world.margins, groups.margins, g, size, out, into)
    return total


@dataclass(frozen=True)
class ObjectiveMixture:
    """How much each objective counts, by its name; the others do not.

    >>> ObjectiveMixture.of("ncp=1, sse=0.5").weights, ObjectiveMixture.of("sse").weights, ObjectiveMixture.of("ncp").is_usual
    ({'ncp': 1.0, 'sse': 0.5}, {'sse': 1.0}, True)
    """

    weights: Mapping[str, float]

    @classmethod
    def of(cls, text: str) -> ObjectiveMixture:
        """From its text, which `readable` accepts."""
        weights: dict[str, float] = {}
        for part in text.split(","):
            name, equals, weight = (piece.strip() for piece in part.partition("="))
            weights[name] = float(weight) if equals else 1.0
        return cls({one.name: weights[one.name] for one in OBJECTIVES if weights.get(one.name, 0.0) > 0})

    @property
    def is_usual(self) -> bool:
        """Whether the loss alone counts, as it does where nobody asked for anything else."""
        return list(self.weights) == [LeastPenalty.name]

    @property
    def title(self) -> str:
        """What a person calls it."""
        return join([one.title for one in OBJECTIVES if one.name in self.weights], " + ")

    @property
    def pace(self) -> float:
        """How many rounds fit in the time of one that looks at covers alone."""
        return 1.0 / sum(one.slowness for one in OBJECTIVES if one.name in self.weights)

    def value(self, data: EncodedTable, labels: IntArray) -> float:
        """sum of weight x value over the objectives, of the groups as their covers publish them.

        >>> from velado.testing.examples import encoded
        >>> ObjectiveMixture.of("ncp").value(encoded(age=[20, 21, 30, 30]), np.array([0, 0, 1, 1]))
        0.05
        """
        shown = ShownGroups.of(data, labels)
        asked = [one for one in OBJECTIVES if one.name in self.weights]
        return float(sum(self.weights[one.name] * one.value(shown) for one in asked))

    def mix(self, rows: int, weight: float) -> FloatArray:
        """What one unit of each objective's cost of a group weighs, so that the sum over groups is rows x value.

        With discernibility everything is taken rows^2 times: one unit of it must outweigh any loss, and stay exact.

        >>> ObjectiveMixture.of("sse").mix(rows=100, weight=4.0)
        array([0.  , 0.25, 0.  , 0.  ])
        """
        scale = float(rows) ** 2 if SmallestGroups.name in self.weights else 1.0
        return np.array(
            [scale * self.weights.get(one.name, 0.0) * one.unit(rows, weight) for one in OBJECTIVES]
        )

    def dropped(self, rows: int, mix: FloatArray, weight: float) -> float:
        """What a suppressed row costs the mixture."""
        return float(mix @ np.array([one.dropped(rows, weight) for one in OBJECTIVES]))


def readable(text: str) -> bool:
    """Whether *text* names an objective, or several with their weights.

    >>> readable("sse"), readable("ncp=1, sse=0.5"), readable("sse, sse"), readable("mse"), readable("ncp=0")
    (True, True, False, False, False)
    """
    known = {one.name for one in OBJECTIVES}
    seen: list[str] = []
    total = 0.0
    for part in text.split(","):
        name, equals, weight = (piece.strip() for piece in part.partition("="))
        try:
            each = float(weight) if equals else 1.0
        except ValueError:
            return False
        if name not in known or name in seen or not 0 <= each < 1e6:
            return False
        seen.append(name)
        total += each
    return total > 0
