"""Rows of one person: who is told apart by all published columns together, and which columns may join a person's rows.

The chance that follows from a group holds for one row at a time. Where a person has several rows, a column that hardly changes
within a person and differs between people lets them be put together again, and who is in several groups is in their overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import VisibleTexts
from velado.data.normal import value_codes
from velado.data.numbers import THOUSANDS
from velado.data.partition import IntArray, Partition
from velado.measures.risk.reidentification import uniqueness
from velado.release.release import Release
from velado.release.side_doors import SideDoor
from velado.text import listed, say

LEAST_REPEATS = 20
"""So many rows beyond the first of their person are needed to say anything."""
LEAST_WITHIN, MOST_BETWEEN = 0.9, 0.5
"""A column stays the same if two rows of a person agree so often, and differs if those of two people agree at most so often."""
MOST_NEAR = 5_000_000
"""So many rows are looked at to find those that are most like a person's."""
MOST_SPREAD = 0.1
"""A number hardly changes if the variance of its ranks within people is at most such a part of the whole."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ToldTogether:
    """How many of all *units*, people or rows, nobody else looks like, by all published columns together.

    >>> ToldTogether("people", 10, 4).share
    0.4
    """

    unit: Literal["people", "rows"]
    units: int
    alone: int

    @property
    def share(self) -> float:
        """The part of all that stands alone."""
        return self.alone / max(self.units, 1)


def told_together(
    frame: pl.DataFrame, people: IntArray | None = None, seen: VisibleTexts | None = None
) -> ToldTogether:
    """Who is told apart in a published *frame* by all of its columns; *people* are codes of whose each row is.

    *seen* are those of its columns that were coded already.

    >>> told_together(pl.DataFrame({"age": ["3*", "3*", "4*"]}))
    ToldTogether(unit='rows', units=3, alone=1)
    """
    if seen is None:
        groups = VisibleTexts.of(frame, frame.columns).groups
    else:
        rest = VisibleTexts.of(frame, [name for name in frame.columns if name not in seen.columns])
        known = seen.groups
        groups = Partition.by_codes([known.labels, *rest.codes], [known.count, *rest.sizes])
    found = uniqueness((), (), (), people, groups)
    if found.unique_people is None or found.people is None:
        return ToldTogether("rows", found.rows, found.unique_rows)
    return ToldTogether("people", found.people, found.unique_people)


def steady_columns(
    frame: pl.DataFrame, columns: Sequence[str], people: IntArray, decimal: str = "."
) -> tuple[str, ...]:
    """Those of *columns* that hardly change within a person and differ between people. O(rows log rows) a column.

    *people* are codes of whose each row of *frame* is; rows of code 0 are nobody's and are not looked at. Texts are read as
    numbers with that *decimal* mark.

    >>> frame = pl.DataFrame({"weight": [50 + 3 * (n // 2) + n % 2 for n in range(60)], "day": [n % 7 for n in range(60)]})
    >>> steady_columns(frame, ["weight", "day"], np.arange(60) // 2 + 1)
    ('weight',)
    """
    known = people > 0
    _, owners = np.unique(people[known], return_inverse=True)
    if owners.size - (int(owners.max()) + 1 if owners.size else 0) < LEAST_REPEATS:
        return ()
    rows = frame.filter(pl.Series(known))
    return tuple(name for name in columns if _steady(rows.get_column(name), owners, decimal))


@dataclass(frozen=True)
class JoinedPeople:
    """How many *people* have rows that a column puts together, of *several* people who have more than one.

    >>> JoinedPeople(3, 12).share
    0.25
    """

    people: int
    several: int

    @property
    def share(self) -> float:
        """The part of those with several rows."""
        return self.people / max(self.several, 1)


def joined_people(column: pl.Series, groups: IntArray, people: IntArray, decimal: str = ".") -> JoinedPeople:
    """How many people's rows can be joined by a published *column*, for who knows in which groups a person is.

    *groups* and *people* are codes of the column's rows. Of each row of a person the row with the nearest value is looked for among
    all rows of those groups: texts must be the same, of a number the nearest is taken. A row is joined if what is nearest is at
    least half the person's own, a person if at least half of the rows are. Above MOST_NEAR rows to look at, every so many people are
    looked at, and the figure is worked out from them.

    >>> weights = pl.Series([50.0, 50.2, 70.0, 70.1, 90.0, 90.3])
    >>> joined_people(weights, np.zeros(6, np.int64), np.array([1, 1, 2, 2, 3, 3]))
    JoinedPeople(people=3, several=3)
    """
    texts = column.cast(pl.String)
    numbers = _numbers(texts, decimal)
    filled = texts.is_not_null() & (texts != "")
    is_number = bool(numbers.is_not_null().sum() == filled.sum())
    values = numbers if is_number else texts.rank("dense").cast(pl.Float64)
    rows = pl.DataFrame({"person": people, "group": groups, "value": values}).filter(
        filled & pl.Series(people > 0)
    )
    several = rows.group_by("person").len().filter(pl.col("len") > 1).select("person").sort("person")
    if not several.height:
        return JoinedPeople(0, 0)
    places = rows.select("person", "group").unique().join(several, on="person", how="semi")
    work = places.join(rows.group_by("group").len(), on="group").get_column("len").sum()
    every = max(1, -(-int(work) // MOST_NEAR))
    looked = several.gather_every(every)
    near = (
        places.join(looked, on="person", how="semi")
        .join(rows.rename({"person": "owner"}), on="group")
        .group_by("person", "value")
        .agg(own=(pl.col("owner") == pl.col("person")).sum().cast(pl.Int64), rows=pl.len().cast(pl.Int64))
        .sort("person", "value")
        .with_columns(other=pl.col("rows") - pl.col("own"))
    )
    last, following = (pl.col("value").shift(step).over("person") for step in (1, -1))
    down, up = (pl.col("value") - last).fill_null(np.inf), (following - pl.col("value")).fill_null(np.inf)
    beside = {
        name: pl.when(down <= up)
        .then(pl.col(name).shift(1).over("person"))
        .otherwise(pl.col(name).shift(-1).over("person"))
        for name in ("own", "other")
    }
    alone = (
        (pl.col("rows") == 1) & (beside["own"] > 0) & (beside["own"] >= beside["other"]) & pl.lit(is_number)
    )
    same = (pl.col("own") > 1) & (pl.col("own") - 1 >= pl.col("other"))
    joined = (
        near.with_columns(joined=(alone.fill_null(False) | same) * pl.col("own"))
        .group_by("person")
        .agg(pl.col("joined").sum(), pl.col("own").sum())
        .filter(2 * pl.col("joined") >= pl.col("own"))
    )
    return JoinedPeople(round(joined.height * several.height / looked.height), several.height)


def owners_of(release: Release) -> IntArray | None:
    """Whose each published row is, in the order of the input, as codes; None where the schema says of nobody who one person is.

    >>> from velado.testing.examples import small_release
    >>> owners_of(small_release().facts.release)
    """
    person = release.original.schema.person
    return None if person is None else value_codes(release.original, person)[0][release.kept]


def joining_doors(release: Release) -> tuple[SideDoor, ...]:
    """The columns, published as they are, by which rows of some people can be joined: a door each.

    >>> from velado.testing.examples import small_release
    >>> joining_doors(small_release().facts.release)
    ()
    """
    people = owners_of(release)
    if people is None:
        return ()
    frame, columns = release.listed, release.original.schema.columns
    quasi = {column.name for column in release.data.columns}
    out, decimal = [], release.original.schema.decimal
    others = [name for name in frame.columns if name not in quasi]
    for name in steady_columns(frame, others, people, decimal):
        found = joined_people(frame.get_column(name), release.checked.partition.labels, people, decimal)
        if found.people:
            accepted = name in columns and columns[name].side_door == "accept"
            out.append(SideDoor(name, "", "joins", found.share, 0.0, found.people, accepted))
    return tuple(out)


def steady_warning(columns: Sequence[str]) -> str:
    """What the steward is told of them.

    >>> steady_warning(["weight"])[:31]
    'Rows of one person may be joine'
    """
    return say(
        "Rows of one person may be joined by {columns}: hardly any change within a person, and different between people. Whoever "
        "joins them is left with those who are in all of the person's groups, and a value certain in one group is certain. The "
        "chances told hold by the quasi-identifiers alone, for one row at a time. Hold such a column back, make it coarser, or "
        "call it a quasi-identifier.",
        columns=listed([f"'{name}'" for name in columns]),
    )


def _numbers(column: pl.Series, decimal: str) -> pl.Series:
    """The numbers that cells are; null where one is none."""
    texts = column.cast(pl.String).str.strip_chars()
    if decimal == "," and column.dtype == pl.String:
        # A point marks thousands there, or the cell is read as a text.
        whole = texts.str.contains(THOUSANDS) | ~texts.str.contains(".", literal=True)
        points = texts.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        texts = texts.zip_with(~whole.fill_null(False), points)
    return texts.cast(pl.Float64, strict=False)


def _steady(column: pl.Series, owners: IntArray, decimal: str) -> bool:
    numbers = _numbers(column, decimal)
    filled = column.is_not_null() & (column.cast(pl.String) != "")
    if numbers.is_not_null().sum() == filled.sum() and int(filled.sum()) >= LEAST_REPEATS:
        place = filled.to_numpy()
        ranks = numbers.filter(filled).rank("average").to_numpy().astype(np.float64)
        return _spread(ranks, owners[place]) <= MOST_SPREAD or _agrees(column, owners)
    return _agrees(column, owners)


def _spread(ranks: FloatArray, owners: IntArray) -> float:
    """The variance within people as a part of the whole; 1 where nobody has two values or all are the same."""
    counts = np.bincount(owners)
    people = int(np.count_nonzero(counts))
    whole = float(ranks.var(ddof=1)) if ranks.size > 1 else 0.0
    if ranks.size - people < LEAST_REPEATS or whole == 0:
        return 1.0
    means = np.bincount(owners, ranks) / np.maximum(counts, 1)
    return float(((ranks - means[owners]) ** 2).sum() / (ranks.size - people) / whole)


def _agrees(column: pl.Series, owners: IntArray) -> bool:
    """Whether two rows of one person mostly show the same, and those of two people mostly not."""
    values = column.cast(pl.String).fill_null("").rank("dense").to_numpy().astype(np.int64)

    def pairs(codes: IntArray) -> float:
        _, counts = np.unique(codes, return_counts=True)
        sizes = counts.astype(np.float64)
        return float((sizes * (sizes - 1)).sum())

    same_person = pairs(owners)
    both = pairs(owners.astype(np.int64) * (int(values.max()) + 1) + values)
    others = float(owners.size) * (owners.size - 1) - same_person
    if same_person == 0 or others == 0:
        return False
    return both / same_person >= LEAST_WITHIN and (pairs(values) - both) / others <= MOST_BETWEEN
