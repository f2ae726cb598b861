"""Re-identification: the chance that an attacker picks the right row out of a class.

Three attackers, by what they know: the *prosecutor* knows that the person is in the table; the *journalist*
does not, and must find the person among the population; the *marketer* wants as many as possible, right or wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedTable, visible_groups
from velado.data.partition import FloatArray, IntArray, Partition, ValueCounts, ValueEntries, group_sizes
from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.text import say

# Class sizes: how large the crowds are in which people hide.


@dataclass(frozen=True)
class ClassSizes:
    """Smallest, median, mean and largest class, and a histogram: *edges* are the first size of each bin.

    Bin i holds sizes from ``edges[i]`` to ``edges[i+1] - 1``; the last one has no upper end.

    >>> class_sizes(np.array([2, 3, 12])).labels
    ('1', '2', '3-4', '5-9', '10+')
    """

    classes: int
    smallest: int
    median: float
    mean: float
    largest: int
    edges: tuple[int, ...]
    classes_in_bin: tuple[int, ...]
    rows_in_bin: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The sizes of each bin as text: `1`, `3-4`, `100+`."""
        pairs = zip(self.edges, self.edges[1:], strict=False)
        closed = [str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in pairs]
        return (*closed, *(f"{edge}+" for edge in self.edges[-1:]))

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {
            "classes": self.classes,
            "smallest": self.smallest,
            "median": self.median,
            "mean": self.mean,
            "largest": self.largest,
            "histogram": {
                "sizes": list(self.labels),
                "classes": list(self.classes_in_bin),
                "rows": list(self.rows_in_bin),
            },
        }


def class_sizes(sizes: IntArray, times: IntArray | None = None) -> ClassSizes:
    """A histogram of class *sizes* with bins 1, 2, 3-4, 5-9, 10-19, 20-49, ... up to the largest. O(classes).

    Bins below the smallest class are kept: that nobody stands alone is what the picture is to show. With *times* each size is
    that of so many classes.

    >>> class_sizes(np.array([2, 3, 12])).median
    3.0
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    times = np.ones(sizes.size, dtype=np.int64) if times is None else np.asarray(times, dtype=np.int64)
    if not sizes.size:
        return ClassSizes(
            classes=0,
            smallest=0,
            median=0.0,
            mean=0.0,
            largest=0,
            edges=(1,),
            classes_in_bin=(0,),
            rows_in_bin=(0,),
        )
    largest = int(sizes.max())
    edges = [1, 2, 3]
    scale = 5
    while edges[-1] < largest:
        edges += [scale, 2 * scale, 4 * scale]
        scale *= 10
    while len(edges) > 1 and edges[-1] > largest:
        edges.pop()
    which = np.searchsorted(np.array(edges), sizes, side="right") - 1
    classes, rows = int(times.sum()), sizes * times
    order = np.argsort(sizes, kind="stable")
    reached = np.cumsum(times[order])
    middle = sizes[order][np.searchsorted(reached, [(classes - 1) // 2, classes // 2], side="right")]
    return ClassSizes(
        classes=classes,
        smallest=int(sizes.min()),
        median=float(middle.mean()),
        mean=float(rows.sum() / classes),
        largest=largest,
        edges=tuple(edges),
        classes_in_bin=tuple(np.bincount(which, times, minlength=len(edges)).astype(int).tolist()),
        rows_in_bin=tuple(np.bincount(which, rows, minlength=len(edges)).astype(int).tolist()),
    )


# Uniqueness: who stands alone with the combination of quasi-identifiers, and with each one.


@dataclass(frozen=True)
class UniqueShares:
    """Rows, and people where a person column is declared, that no other shares a combination with.

    >>> from velado.testing.examples import four_encoded
    >>> uniqueness_of(four_encoded()).unique_rows_by_column
    {'age': 2}
    """

    rows: int
    unique_rows: int
    unique_rows_by_column: Mapping[str, int]
    people: int | None = None
    unique_people: int | None = None
    unique_people_by_column: Mapping[str, int] | None = None

    def to_dict(self) -> dict[str, object]:
        """As plain values; the entries about people are None without a person column."""
        share = self.unique_rows / self.rows if self.rows else 0.0
        by_column = self.unique_people_by_column
        return {
            "rows": self.rows,
            "unique_rows": self.unique_rows,
            "unique_rows_share": share,
            "unique_rows_by_column": dict(self.unique_rows_by_column),
            "people": self.people,
            "unique_people": self.unique_people,
            "unique_people_by_column": None if by_column is None else dict(by_column),
        }


def uniqueness_of(data: EncodedTable) -> UniqueShares:
    """Who is unique in the original table, on its encoded values.

    >>> from velado.testing.examples import four_encoded
    >>> uniqueness_of(four_encoded()).unique_rows
    2
    """
    names = [column.name for column in data.columns]
    codes = [column.codes for column in data.columns]
    return uniqueness(names, codes, [column.size for column in data.columns], data.people, data.classes)


def uniqueness(
    names: Sequence[str],
    codes: Sequence[IntArray],
    sizes: Sequence[int],
    people: IntArray | ValueEntries | None = None,
    whole: Partition | None = None,
) -> UniqueShares:
    """Counts rows in classes of one row, and people in some class with nobody else, on all columns and on each.

    *codes* are per column and row, 0..size-1. A person with several rows is unique when any of the rows
    shows a combination that only that person has. Rows without a person count as one person. *whole* are the classes of
    all columns, where the caller has them; if it has weights, each row stands for so many, and people are listed for each.
    O(rows log rows) in the number of columns.

    >>> uniqueness(["age"], [np.array([0, 1, 1])], [2]).unique_rows
    1
    """
    whole = Partition.by_codes(codes, sizes) if whole is None else whole
    columns = list(zip(names, codes, sizes, strict=True))
    weights = whole.weights
    rows = whole.rows if weights is None else int(weights.sum())
    by_column = {name: int((group_sizes([one], [size], weights) == 1).sum()) for name, one, size in columns}
    if people is None:
        return UniqueShares(rows, _unique_rows(whole), by_column)
    people_by_column = {
        name: _unique_people(Partition.by_codes([one], [size]), people) for name, one, size in columns
    }
    persons = people.codes if isinstance(people, ValueEntries) else people
    return UniqueShares(
        rows,
        _unique_rows(whole),
        by_column,
        int(np.count_nonzero(np.bincount(persons))) if persons.size else 0,
        _unique_people(whole, people),
        people_by_column,
    )


def _unique_rows(partition: Partition) -> int:
    return int((partition.sizes == 1).sum())


def _unique_people(partition: Partition, people: IntArray | ValueEntries) -> int:
    labels, people, size = _whose(partition, people)
    counts = ValueCounts.of(labels, partition.count, people, size)
    alone = counts.distinct(partition.count, blanks=True) == 1
    found = np.zeros(size, dtype=bool)
    found[counts.values[alone[counts.groups]]] = True
    return int(found.sum())


THRESHOLDS = (0.05, 0.1, 0.2, 0.5)
Unit = Literal["row", "person"]


@dataclass(frozen=True)
class Attack:
    """One attacker's chances: the highest, the mean, and the share of units above each threshold (strictly).

    >>> reidentification(Partition.of(np.array([0, 0, 1, 1, 1]))).prosecutor.highest
    0.5
    """

    highest: float
    mean: float
    share_above: Mapping[float, float]

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        above = {f"{threshold:g}": share for threshold, share in self.share_above.items()}
        return {"highest": self.highest, "mean": self.mean, "share_above": above}


@dataclass(frozen=True)
class Reidentification:
    """All three attackers against one table; *unit* says whether rows or people are counted.

    *population* is True when the journalist was measured against population sizes; without them the table is
    all that is known of the population, and the journalist's chances are the prosecutor's.

    >>> reidentification(Partition.of(np.array([0, 0, 1, 1]))).marketer
    0.5
    """

    unit: Unit
    units: int
    classes: int
    prosecutor: Attack
    journalist: Attack
    marketer: float
    population: bool = False

    def to_dict(self) -> dict[str, object]:
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

    >>> reidentification(Partition.of(np.array([0, 0, 1, 1])), np.array([4, 8])).journalist.highest
    0.25
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
            say("The population sizes do not fit the {count} published classes.", count=partition.count),
            "Every class is part of the population, so it cannot be smaller there than in the table.",
            "Give one size per class, counted on a population recoded like the table and holding all its rows.",
        )
    theirs = _attack(1.0 / found, sizes, thresholds)
    marketer = float((sizes / found).sum() / rows) if rows else 0.0
    return Reidentification("row", rows, partition.count, own, theirs, marketer, True)


def reidentification_of_people(
    partition: Partition, people: IntArray | ValueEntries, thresholds: Sequence[float] = THRESHOLDS
) -> Reidentification:
    """The risk of every person: 1 / people in the class; for a person with several rows, the worst of them.

    *people* are codes per row of *partition*, or listed for each entry. Rows without a person (code 0) count as one person in each
    class, never as many. Marketer: the mean over people of that worst chance. O(rows log rows).

    >>> reidentification_of_people(Partition.of(np.array([0, 0, 0])), np.array([0, 0, 1])).prosecutor.highest
    0.5
    """
    _, worst = _among_people(partition, *_whose(partition, people))
    worst = worst[worst > 0]
    own = _attack(worst, np.ones(worst.size, dtype=np.int64), thresholds)
    return Reidentification("person", int(worst.size), partition.count, own, own, own.mean)


def risk_among_people(partition: Partition, people: IntArray) -> FloatArray:
    """For each row the highest chance of its person: 1 / people in the class, at the worst of the person's rows.

    A row without a person (code 0) has the chance of its own class.

    >>> risk_among_people(Partition.of(np.array([0, 0, 0, 1])), np.array([1, 1, 2, 2])).tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    own, worst = _among_people(partition, *_whose(partition, people))
    return np.asarray(np.where(people == 0, own, worst[people]), dtype=np.float64)


def _whose(partition: Partition, people: IntArray | ValueEntries) -> tuple[IntArray, IntArray, int]:
    """The class and the person of each row, or of each pair of entry and person, and how many codes people have."""
    if isinstance(people, ValueEntries):
        return partition.labels[people.at], people.codes, people.size
    return partition.labels, people, int(people.max()) + 1 if people.size else 1


def _among_people(
    partition: Partition, labels: IntArray, people: IntArray, size: int
) -> tuple[FloatArray, FloatArray]:
    """1 / people in its class for each of *labels*, and the worst of that for each person's code."""
    counts = ValueCounts.of(labels, partition.count, people, size)
    own = 1.0 / counts.distinct(partition.count, blanks=True)[labels]
    worst = np.zeros(size)
    np.maximum.at(worst, people, own)
    return own, worst


def population_sizes(
    published: pl.DataFrame, population: pl.DataFrame, quasi: Sequence[str]
) -> npt.NDArray[np.int64]:
    """How many rows of *population*, recoded like *published*, show each published class's values.

    >>> population_sizes(pl.DataFrame({"age": ["3*", "4*"]}), pl.DataFrame({"age": ["3*", "3*", "4*"]}), ["age"])
    array([2, 1])
    """
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


REIDENTIFICATION = Measure(
    name="reidentification",
    title=say("mean re-identification"),
    of=lambda published, scores: (scores.after.people or scores.after.rows).marketer,
    detailed=True,
)
HIGHEST_RISK = Measure(
    name="highest_risk",
    title=say("highest re-identification"),
    of=lambda published, scores: (scores.after.people or scores.after.rows).prosecutor.highest,
    detailed=True,
)
