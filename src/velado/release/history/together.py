"""What is held together over all releases of a history: people in classes for life, or values in groups for life.

*people*: who is shown together once is shown together until the history ends, or not at all (`classes`). *values*: newcomers are put
once into groups, by quasi-identifiers alone, and a row carries the counts of its group in the place of the value. Both are functions of
quasi-identifiers and presence; values are read for their counts alone, after the groups stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedTable
from velado.data.partition import group_by_codes
from velado.errors import ParameterError
from velado.randomness import seeded
from velado.release.goal import Goal, Promise, silent
from velado.release.guarantees._guarantee import Verdict
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.history.classes import NOBODY, Leavers
from velado.release.history.record import HeldState
from velado.release.methods._method import Method
from velado.release.rows_in_order import by_quasi
from velado.settings import Setting, settings
from velado.text import say

Ints = npt.NDArray[np.int64]


@settings(section="together", kw_only=True)
class Together:
    """[together]: what is promised of all releases of a history at once.

    >>> Together(what="people").beginning(5), Together(what="values", most="1/3").share
    (10, Fraction(1, 3))
    """

    what: Annotated[
        Literal["people", "values"] | None, Setting("what is held together over all releases of a history")
    ] = None
    readers: Annotated[
        Literal["in", "exactly"],
        Setting("people: from whom; exactly: who also knows who was in which release"),
    ] = "in"
    leavers: Annotated[
        Leavers | None,
        Setting("people: rows of who left are dropped or kept; without it as the readers need it"),
    ] = None
    start: Annotated[int | None, Setting("people: how many a class begins with; without it 2k", ge=2)] = None
    most: Annotated[str, Setting("values: the largest share of one value in a group, e.g. 1/2", items=1)] = (
        "1/2"
    )
    group: Annotated[int, Setting("values: people in a group for life", ge=2)] = 20
    merge: Annotated[
        bool, Setting("values: groups that break the bound merge until it holds; measured, not promised")
    ] = False

    def __post_init__(self) -> None:
        _ = self.share
        if self.readers == "exactly" and self.leavers == "drop":
            raise ParameterError(
                "Who knows exactly who was in which release was named, and rows of people who left are to be dropped.",
                "For that reader a crowd that shrinks tells who is left of it: there is nothing to promise.",
                "Use --leavers keep, or --readers in.",
            )

    @property
    def leaving(self) -> Leavers:
        """What becomes of the rows of people who left."""
        return self.leavers or ("keep" if self.readers == "exactly" else "drop")

    @property
    def kind(self) -> tuple[str | None, str]:
        """What all releases of a history must have in common."""
        if self.what == "people":
            return self.what, self.leaving
        return self.what, "merge" if self.what == "values" and self.merge else ""

    def beginning(self, k: int) -> int:
        """With how many people a class begins."""
        return 2 * k if self.start is None else self.start

    @property
    def share(self) -> Fraction:
        """The largest share of a value, as it was meant."""
        text = self.most.strip()
        try:
            # A number with an exponent can be one of millions of digits.
            found = Fraction(text) if len(text) <= 24 and "e" not in text.lower() else Fraction(0)
        except (ValueError, ZeroDivisionError):
            found = Fraction(0)
        if not 0 < found < 1:
            raise ParameterError(
                "The largest share of a value is no fraction between 0 and 1.",
                "A group in which one value may have all is no protection.",
                "Write it as --most 1/2 or --most 0.5.",
            )
        return found


@dataclass(frozen=True, repr=False)
class OverTime:
    """What is promised of all releases of a history, for whom, and what was found on the written bytes.

    >>> OverTime("guaranteed", "people", "in", Verdict("people over time", True, 5, 5, "people"), "Held.").to_dict()["type"]
    'guaranteed'
    """

    promise: Promise
    what: Literal["people", "values"]
    reader: str
    verdict: Verdict
    sentence: str
    why_measured: str = ""
    further: Mapping[str, object] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """As a manifest has it."""
        found = self.verdict
        return {
            "type": self.promise,
            "together": self.what,
            "reader": self.reader,
            "holds": found.holds,
            "needed": found.needed,
            "achieved": found.achieved,
            "unit": found.unit,
            **({"why_measured": self.why_measured} if self.why_measured else {}),
            **self.further,
        }


@dataclass(frozen=True, repr=False)
class Held:
    """What a run holds together: names of *newcomers* who are known from now on, and the state of all.

    *state* has those known before first, as the record has them, then *newcomers* in their order. *column* shows groups of values;
    *gone* rows are of people who left. *lots* have for each row a number drawn for its person, by which equal rows are taken.
    """

    asked: Together
    newcomers: tuple[str, ...]
    state: HeldState
    column: str = ""
    gone: int = 0
    lots: npt.NDArray[np.uint64] | None = None


def only_measured(trouble: str) -> str:
    """What is said where nothing is promised over time.

    >>> str(only_measured(""))
    'Nothing is promised over all releases: this one is itself measured only.'
    """
    if not trouble:
        return say("Nothing is promised over all releases: this one is itself measured only.")
    return say(
        "Nothing is promised over all releases, they were measured only: the history may not be the newest one ({trouble}).",
        trouble=trouble,
    )


def cells_of(
    data: EncodedTable,
    rows: Ints,
    size: int,
    method: Method,
    seed: int,
    lots: npt.NDArray[np.integer[Any]] | None = None,
) -> Ints:
    """Groups of at least *size* among *rows* of a table, by *method*, from quasi-identifiers alone; NOBODY: left out.

    What the method gets has neither people nor sensitive values: it cannot look at them. Nor at the order of the file, which may
    be that of values: it gets the rows by their quasi-identifiers, equal ones in the order of *lots* (without: of *rows*).

    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.examples import encoded
    >>> cells_of(encoded(age=[20, 30, 21, 31]), np.arange(4), 2, Mondrian(), 0).tolist()
    [0, 1, 0, 1]
    """
    order = by_quasi(data.subset(rows), np.arange(rows.size) if lots is None else lots)
    part = data.subset(rows[order])
    bare = EncodedTable(part.columns, part.rows)
    made = method.anonymize(bare, Goal((KAnonymity(size),)), seeded(seed, method.name), silent)
    cells = np.empty(rows.size, np.int64)
    if made.partition is not None:
        cells[order] = np.where(made.kept, made.partition.labels, NOBODY)
        return cells
    labels, _ = group_by_codes([one.codes for one in made.columns], [len(one.values) for one in made.columns])
    found = np.unique(np.where(made.kept, labels, NOBODY), return_inverse=True)[1].astype(np.int64)
    cells[order] = found - int((~made.kept).any())
    return cells


def withheld_cells(cells: Ints, values: Ints, most: Fraction) -> npt.NDArray[np.bool_]:
    """For each cell whether one value has more than the share *most* of it: count > most x size, in whole numbers.

    >>> withheld_cells(np.array([0, 0, 1, 1]), np.array([5, 6, 7, 7]), Fraction(1, 2))
    array([False,  True])
    """
    count = int(cells.max(initial=-1)) + 1
    inside = cells >= 0
    sizes = np.bincount(cells[inside], minlength=count)
    codes = np.unique(values, return_inverse=True)[1]
    span = int(codes.max(initial=0)) + 1
    pairs, found = np.unique(cells[inside] * span + codes[inside], return_counts=True)
    largest = np.zeros(count, np.int64)
    np.maximum.at(largest, pairs // span, found)
    return largest * most.denominator > sizes * most.numerator


def merged_cells(data: EncodedTable, rows: Ints, cells: Ints, values: Ints, most: Fraction) -> Ints:
    """The cells, those in which a value has more than the share *most* merged with the nearest until none is left that could be.

    Where a value has more than that of all rows, merging ends in one cell that breaks the bound: then they stay as they are.
    Near are centres of codes, each column's from 0 to 1. Who knows this sees by what was merged which values broke the bound: for
    `Together.merge`, and never a promise. O(merges x cells).

    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 20, 30, 30, 60, 60])
    >>> values = np.array([1, 2, 1, 2, 0, 0])
    >>> merged_cells(data, np.arange(6), np.array([0, 0, 1, 1, 2, 2]), values, Fraction(1, 2)).tolist()
    [0, 0, 1, 1, 1, 1]
    """
    inside = cells >= 0
    count, codes = int(cells.max(initial=-1)) + 1, np.unique(values, return_inverse=True)[1]
    if not count:
        return cells
    table = np.zeros((count, int(codes.max()) + 1), np.int64)
    np.add.at(table, (cells[inside], codes[inside]), 1)
    if table.sum(axis=0).max() * most.denominator > table.sum() * most.numerator:
        return cells
    places = np.stack([one.codes[rows[inside]] / max(one.size - 1, 1) for one in data.columns], axis=1)
    sums = np.zeros((count, places.shape[1]))
    np.add.at(sums, cells[inside], places)
    home, alive = np.arange(count), np.ones(count, bool)
    while alive.sum() > 1:
        sizes = table.sum(axis=1)
        broken = np.flatnonzero(alive & (table.max(axis=1) * most.denominator > sizes * most.numerator))
        if not broken.size:
            break
        one = int(broken[0])
        centres = sums / np.maximum(sizes, 1)[:, None]
        far = np.where(alive, ((centres - centres[one]) ** 2).sum(axis=1), np.inf)
        far[one] = np.inf
        near = int(far.argmin())
        table[near] += table[one]
        sums[near] += sums[one]
        table[one], alive[one] = 0, False
        home[home == one] = near
    number = np.cumsum(alive) - 1
    return np.where(inside, number[home[np.maximum(cells, 0)]], NOBODY)


def histogram_of(cells: Ints, texts: pl.Series, first: int) -> pl.DataFrame:
    """`values.csv`: group, value, count, for each cell that got values; groups are counted from *first*.

    >>> histogram_of(np.array([0, 0, -1]), pl.Series(["flu", "hiv", "flu"]), 7).rows()
    [(7, 'flu', 1), (7, 'hiv', 1)]
    """
    rows = pl.DataFrame({"group": cells + first, "value": texts.cast(pl.String).fill_null("")})
    kept = rows.filter(pl.Series(cells >= 0))
    counted = kept.group_by("group", "value").agg(pl.len().cast(pl.Int64).alias("count"))
    return counted.sort("group", "value")
