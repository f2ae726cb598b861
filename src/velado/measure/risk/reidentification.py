"""Re-identification: the chance that an attacker picks the right row out of a class.

Three attackers, by what they know: the *prosecutor* knows that the person is in the table; the *journalist*
does not, and must find the person among the population; the *marketer* wants as many as possible, right or wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.partition import FloatArray, IntArray, Partition, ValueCounts
from velado.data.visible import visible_groups
from velado.errors import ParameterError

THRESHOLDS = (0.05, 0.1, 0.2, 0.5)
Unit = Literal["row", "person"]


@dataclass(frozen=True)
class Attack:
    """One attacker's chances: the highest, the mean, and the share of units above each threshold (strictly)."""

    highest: float
    mean: float
    share_above: Mapping[float, float]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        above = {f"{threshold:g}": share for threshold, share in self.share_above.items()}
        return {"highest": self.highest, "mean": self.mean, "share_above": above}


@dataclass(frozen=True)
class Reidentification:
    """All three attackers against one table; *unit* says whether rows or people are counted.

    *population* is True when the journalist was measured against population sizes; without them the table is
    all that is known of the population, and the journalist's chances are the prosecutor's.
    """

    unit: Unit
    units: int
    classes: int
    prosecutor: Attack
    journalist: Attack
    marketer: float
    population: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain values, with what the journalist was measured against."""
        basis = (
            "population class sizes" if self.population else "no population given: equal to the prosecutor"
        )
        return {
            "unit": self.unit,
            "units": self.units,
            "classes": self.classes,
            "prosecutor": self.prosecutor.to_dict(),
            "journalist": {**self.journalist.to_dict(), "basis": basis},
            "marketer": {"expected_share": self.marketer},
        }


def reidentification(
    partition: Partition, population: IntArray | None = None, thresholds: Sequence[float] = THRESHOLDS
) -> Reidentification:
    """The risk of every published row: 1 / rows in its class; with *population* sizes, 1 / people like it.

    Prosecutor: 1/f for class size f; so the highest is at most 1/k when every class has k rows. Journalist:
    1/F, F the class's size in the *population* (one entry per class). Marketer: the expected share of rows
    matched right, (1/n) sum f/F, which without a population is classes / rows. O(classes).
    """
    sizes = partition.sizes
    own = _attack(1.0 / sizes, sizes, thresholds)
    rows = int(sizes.sum())
    if population is None:
        marketer = partition.count / rows if rows else 0.0
        return Reidentification("row", rows, partition.count, own, own, marketer)
    found = np.asarray(population)
    if found.size != partition.count or bool((found < sizes).any()):
        raise ParameterError(
            f"The population sizes do not fit the {partition.count} published classes.",
            "Every class is part of the population, so it cannot be smaller there than in the table.",
            "Give one size per class, counted on a population recoded like the table and holding all its rows.",
        )
    theirs = _attack(1.0 / found, sizes, thresholds)
    marketer = float((sizes / found).sum() / rows) if rows else 0.0
    return Reidentification("row", rows, partition.count, own, theirs, marketer, True)


def reidentification_of_people(
    partition: Partition, people: IntArray, thresholds: Sequence[float] = THRESHOLDS
) -> Reidentification:
    """The risk of every person: 1 / people in the class; for a person with several rows, the worst of them.

    *people* are codes per row of *partition*. Rows without a person (code 0) count as one person in each
    class, never as many. Marketer: the mean over people of that worst chance. O(rows log rows).
    """
    size = int(people.max()) + 1 if people.size else 1
    counts = ValueCounts.of(partition.labels, partition.count, people, size)
    crowd = counts.distinct(partition.count, blanks=True)
    worst = np.zeros(size)
    np.maximum.at(worst, counts.values, 1.0 / crowd[counts.groups])
    worst = worst[worst > 0]
    own = _attack(worst, np.ones(worst.size, dtype=np.int64), thresholds)
    return Reidentification("person", int(worst.size), partition.count, own, own, own.mean)


def population_sizes(
    published: pl.DataFrame, population: pl.DataFrame, quasi: Sequence[str]
) -> npt.NDArray[np.int64]:
    """How many rows of *population*, recoded like *published*, show each published class's values."""
    names = list(quasi)
    both = pl.concat(
        [frame.select([pl.col(name).cast(pl.String) for name in names]) for frame in (published, population)]
    )
    joint = visible_groups(both, names)
    counted = np.bincount(joint.labels[published.height :], minlength=joint.count)
    classes = visible_groups(published, names)
    order, starts = classes.members()
    return np.asarray(counted[joint.labels[order[starts]]], dtype=np.int64)


def _attack(risk: FloatArray, weight: IntArray, thresholds: Sequence[float]) -> Attack:
    total = int(weight.sum())
    if not total:
        return Attack(0.0, 0.0, {threshold: 0.0 for threshold in thresholds})
    above = {threshold: float(weight[risk > threshold].sum() / total) for threshold in thresholds}
    return Attack(float(risk.max()), float((risk * weight).sum() / total), above)
