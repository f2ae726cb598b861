"""Checking a published table: regroup its visible values, count, and let the guarantees read the counts.

The one path by which velado says that a promise holds; `release` and `verify` both go through here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.anonymize.guarantees.base import Guarantee, Verdict
from velado.data.partition import GroupCounts, IntArray, Partition, ValueShape
from velado.data.visible import visible_groups, wildcard_sizes

Matching = Callable[[Partition], tuple[npt.NDArray[np.int64], int]]
"""For each visible group, how many people of a population it could be; and how many match no group."""


@dataclass(frozen=True)
class Reading:
    """The smallest and the mean class under one reading of blanks."""

    name: str
    smallest: int
    mean: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"name": self.name, "smallest": self.smallest, "mean": self.mean}


@dataclass(frozen=True, repr=False)
class Checked:
    """What was found on the published values: groups, counts, one verdict per guarantee, both readings."""

    partition: Partition
    counts: GroupCounts
    verdicts: tuple[Verdict, ...]
    readings: tuple[Reading, ...]

    @property
    def holds(self) -> bool:
        """Whether every guarantee holds."""
        return all(verdict.holds for verdict in self.verdicts)


def check_published(
    frame: pl.DataFrame,
    quasi: Sequence[str],
    guarantees: Sequence[Guarantee],
    people: IntArray | None = None,
    sensitive: dict[str, tuple[npt.NDArray[np.int32], int]] | None = None,
    totals: dict[str, npt.NDArray[np.int64]] | None = None,
    shapes: Mapping[str, ValueShape] | None = None,
    matching: Matching | None = None,
    wildcards: bool = True,
) -> Checked:
    """Regroup *frame* by the visible values of *quasi* and check every guarantee on the counts.

    Nothing a method said is trusted. *people* and *sensitive* are codes per row of *frame*; *totals* the
    counts of the sensitive values in the whole table; *shapes* how those values lie to one another; *matching*
    counts the people of a population that each visible group could be.
    """
    partition = visible_groups(frame, quasi)
    population, unmatched = (None, 0) if matching is None else matching(partition)
    counts = GroupCounts.of(partition, people, sensitive, totals, shapes, population, unmatched)
    verdicts = tuple(guarantee.check(counts) for guarantee in guarantees)
    readings: tuple[Reading, ...] = ()
    if wildcards and partition.count:
        own = partition.sizes
        wild = wildcard_sizes(frame, quasi) if quasi else own
        readings = (
            Reading("a blank is a value of its own", int(own.min()), float(frame.height / partition.count)),
            Reading("a blank matches anything", int(wild.min()), float(wild.mean())),
        )
    return Checked(partition, counts, verdicts, readings)
