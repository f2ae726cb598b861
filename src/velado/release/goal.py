"""Goal: what a method must reach, and how far it may go. Progress: how it says where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedTable, VisibleTexts
from velado.data.partition import (
    BoolArray,
    CodedValues,
    GroupCounts,
    IntArray,
    Partition,
    ValueEntries,
    ValueShape,
)
from velado.release.guarantees._guarantee import Guarantee, Verdict
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.run_settings import run_settings

Promise = Literal["guaranteed", "measured", "as in the paper"]
"""guaranteed: follows from what was checked. measured: an attack was run. as in the paper: for science."""


class Progress(Protocol):
    """Called now and then with the share done (0..1) and what is being done. Must be cheap.

    >>> within(lambda share, doing="": print(f"{share:.0%}", doing), 0.0, 1.0)(0.5, "cutting")
    50% cutting
    """

    def __call__(self, share: float, doing: str = "") -> None: ...


def silent(share: float, doing: str = "") -> None:
    """A Progress that says nothing.

    >>> silent(1.0) is None
    True
    """


def within(progress: Progress, begin: float, end: float) -> Progress:
    """The same progress bar, seen from one stage of a run.

    >>> within(lambda share, doing="": print(share), 0.5, 1.0)(0.5)
    0.75
    """

    def report(share: float, doing: str = "") -> None:
        progress(begin + (end - begin) * min(max(share, 0.0), 1.0), doing)

    return report


DEFAULT_K = 5
"""The crowd that is promised where nobody asked for another one."""


def default_k(promise: Promise, guarantees: Sequence[Guarantee]) -> int | None:
    """The k where none is given: 5, but none for a method that is only measured, or beside another crowd.

    k-map and delta-presence hide people in a population; asked for without k they are promised alone.

    >>> default_k("guaranteed", ()), default_k("measured", ()), default_k("guaranteed", [KAnonymity(3)])
    (5, None, None)
    """
    crowded = any(guarantee.is_crowd for guarantee in guarantees)
    return None if promise == "measured" or crowded else DEFAULT_K


@dataclass(frozen=True)
class Goal:
    """The guarantees every published group must hold, and the share of rows that may be dropped for it.

    >>> goal = Goal((KAnonymity(5),), suppression=0.1)
    >>> goal.k, goal.least_rows, goal.suppressible(100), goal.at(2).k
    (5, 5, 10, 2)
    """

    guarantees: tuple[Guarantee, ...]
    suppression: float = 0.0

    def __post_init__(self) -> None:
        run_settings(suppression=self.suppression)

    @property
    def least_rows(self) -> int:
        """No group with fewer rows can hold all guarantees."""
        return max((g.least_rows for g in self.guarantees), default=1)

    @property
    def k(self) -> int | None:
        """The k of k-anonymity that is promised, the largest of several; None where none is."""
        return max((g.k for g in self.guarantees if isinstance(g, KAnonymity)), default=None)

    def at(self, k: int) -> Goal:
        """The same goal with another k."""
        others = tuple(replace(g, k=k) if isinstance(g, KAnonymity) else g for g in self.guarantees)
        return replace(self, guarantees=others)

    @property
    def rows_only(self) -> bool:
        """True when group sizes in rows decide everything, so that fast paths need not count more."""
        return all(guarantee.rows_decide for guarantee in self.guarantees)

    @property
    def reads_sensitive(self) -> bool:
        """True when a guarantee speaks of sensitive values, so that groups are chosen with them in view."""
        return any(guarantee.reads == "values" for guarantee in self.guarantees)

    def suppressible(self, rows: int) -> int:
        """How many of *rows* rows may be dropped."""
        return int(np.floor(self.suppression * rows + 1e-9))

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """For each group, whether every guarantee holds there."""
        good = np.ones(groups.count, dtype=bool)
        for guarantee in self.guarantees:
            good &= guarantee.holds_in(groups)
        return good

    def holds_in_parts(self, data: EncodedTable, partition: Partition) -> BoolArray:
        """For each group of *partition*, whether every guarantee holds there."""
        if self.rows_only:
            return np.asarray(data.weighed(partition).sizes >= self.least_rows)
        return self.holds_in(data.group_counts(partition))


# Checking a published table: regroup its visible values, count, and let the guarantees read the counts.
#
# The one path by which velado says that a promise holds; `release` and `verify` both go through here.

Matching = Callable[[Partition], tuple[npt.NDArray[np.int64], int]]
"""For each visible group, how many people of a population it could be; and how many match no group."""


@dataclass(frozen=True)
class Reading:
    """The smallest and the mean group under one reading of blanks.

    >>> Reading("a blank is a value of its own", smallest=3, mean=4.5).smallest
    3
    """

    name: str
    smallest: int
    mean: float


@dataclass(frozen=True, repr=False)
class Checked:
    """What was found on the published values: groups, counts, one verdict per guarantee, both readings, the texts seen.

    >>> check_published(pl.DataFrame({"age": ["20", "20", "*"]}), ["age"], [KAnonymity(2)]).holds
    False
    """

    partition: Partition
    counts: GroupCounts
    verdicts: tuple[Verdict, ...]
    readings: tuple[Reading, ...]
    seen: VisibleTexts

    @property
    def holds(self) -> bool:
        """Whether every guarantee holds."""
        return all(verdict.holds for verdict in self.verdicts)


def check_published(
    frame: pl.DataFrame,
    quasi: Sequence[str],
    guarantees: Sequence[Guarantee],
    people: IntArray | ValueEntries | None = None,
    sensitive: Mapping[str, CodedValues | ValueEntries] | None = None,
    totals: dict[str, npt.NDArray[np.int64]] | None = None,
    shapes: Mapping[str, ValueShape] | None = None,
    matching: Matching | None = None,
    wildcards: bool = True,
    weights: npt.NDArray[np.int64] | None = None,
) -> Checked:
    """Regroup *frame* by the visible values of *quasi* and check every guarantee on the counts.

    Nothing a method said is trusted. *people* and *sensitive* are codes per row of *frame*; *totals* the
    counts of the sensitive values in the whole table; *shapes* how those values lie to one another; *matching*
    counts the people of a population that each visible group could be. With *weights* each row of *frame* stands for so
    many, and people and sensitive values are listed for each (`ValueEntries`).

    >>> found = check_published(pl.DataFrame({"age": ["20", "20", "*"]}), ["age"], [KAnonymity(2)])
    >>> found.counts.rows.tolist(), found.verdicts[0].achieved, [one.smallest for one in found.readings]
    ([1, 2], 1, [1, 3])
    """
    seen = VisibleTexts.of(frame, quasi, weights)
    partition = seen.groups
    population, unmatched = (None, 0) if matching is None else matching(partition)
    counts = GroupCounts.of(partition, people, sensitive, totals, shapes, population, unmatched)
    verdicts = tuple(guarantee.check(counts) for guarantee in guarantees)
    readings: tuple[Reading, ...] = ()
    if wildcards and partition.count:
        own = partition.sizes
        wild = seen.wildcard_sizes() if quasi else own
        of_rows = None if weights is None or not quasi else weights
        readings = (
            Reading("a blank is a value of its own", int(own.min()), float(own.sum() / partition.count)),
            Reading("a blank matches anything", int(wild.min()), float(np.average(wild, weights=of_rows))),
        )
    return Checked(partition, counts, verdicts, readings, seen)
