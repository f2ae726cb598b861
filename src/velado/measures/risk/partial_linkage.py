"""Partial knowledge: what an attacker achieves who knows only some of the quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from math import comb, prod
from typing import Unpack

import numpy as np

from velado.data.partition import Int32Array, Int64Array, IntArray, Partition, group_sizes
from velado.data.tallies import MOST_KEYS, by_label, crowds_met
from velado.errors import ParameterError
from velado.measures.recoded_columns import PublishedTable
from velado.measures.risk.record_linkage import LinkageResult, LinkageRules, ReleasedColumn, record_linkage
from velado.text import say

KEY_SETS = 20_000
"""Above this many sets of columns a search is refused: every one of them regroups the table."""
LARGEST_SUBSET = 3


@dataclass(frozen=True)
class Crowd:
    """How people hide in one table when some columns are known.

    *mean_risk* is classes / rows, the mean over rows of 1 / class size.

    >>> Crowd(1, 0.25, 1, 0.75).smallest_class
    1
    """

    unique_rows: int
    unique_share: float
    smallest_class: int
    mean_risk: float

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class KnownSubset:
    """One set of quasi-identifiers an attacker may know, in the original and in the published table.

    >>> crowd = Crowd(0, 0.0, 2, 0.5)
    >>> KnownSubset(("age",), crowd, crowd).columns
    ('age',)
    """

    columns: tuple[str, ...]
    before: Crowd
    after: Crowd

    def to_dict(self) -> dict[str, object]:
        """As plain values; only column names."""
        return {"columns": list(self.columns), "before": self.before.to_dict(), "after": self.after.to_dict()}


@dataclass(frozen=True)
class PartialKnowledge:
    """Every subset up to *largest* columns, worst first (see `partial_knowledge` for the order).

    >>> from velado.testing.examples import four_published
    >>> partial_knowledge(four_published()).worst(1)[0].columns
    ('age',)
    """

    largest: int
    subsets: tuple[KnownSubset, ...]

    def worst(self, number: int = 10) -> tuple[KnownSubset, ...]:
        """The subsets that expose people most in the published table."""
        return self.subsets[:number]

    def of(self, columns: Sequence[str]) -> KnownSubset:
        """The subset of exactly these columns."""
        for part in self.subsets:
            if set(part.columns) == set(columns):
                return part
        raise ParameterError(
            say(
                "The columns asked for are no subset of up to {largest} quasi-identifiers.",
                largest=self.largest,
            ),
            "Only those subsets were measured.",
            "Name quasi-identifiers of the table, or measure larger subsets.",
        )

    def to_dict(self, number: int = 10) -> dict[str, object]:
        """How many subsets there are and how many single somebody out, and the worst of them."""
        return {
            "largest_subset": self.largest,
            "subsets": len(self.subsets),
            "subsets_with_unique_rows_before": sum(part.before.unique_rows > 0 for part in self.subsets),
            "subsets_with_unique_rows_after": sum(part.after.unique_rows > 0 for part in self.subsets),
            "worst": [part.to_dict() for part in self.worst(number)],
        }


def key_sets(columns: int, largest: int) -> int:
    """How many sets of 1 to *largest* of so many *columns* there are, unless that is impossible or too many to try.

    >>> key_sets(columns=5, largest=2)
    15
    """
    if not 1 <= largest <= columns:
        raise ParameterError(
            say(
                "Sets of up to {largest} columns were asked for; there are {columns} quasi-identifiers.",
                largest=largest,
                columns=columns,
            ),
            "An attacker knows at least one of them and at most all.",
            say("Choose a number from 1 to {columns}.", columns=max(columns, 1)),
        )
    number = sum(comb(columns, size) for size in range(1, largest + 1))
    if number > KEY_SETS:
        raise ParameterError(
            say(
                "{columns} columns have {number} key sets of up to {largest}; the limit is {limit}.",
                columns=columns,
                number=number,
                largest=largest,
                limit=KEY_SETS,
            ),
            "Every set regroups the whole table.",
            "Choose fewer columns or smaller sets.",
        )
    return number


def partial_knowledge(published: PublishedTable, largest: int | None = None) -> PartialKnowledge:
    """Uniqueness and class sizes, before and after, for every set of up to *largest* quasi-identifiers (default 3).

    Ranked by the published table: most unique rows, then smallest class, then most classes per row; ties by
    the same of the original. Published classes are rows that show the same texts in the known columns; where
    ranges of different classes overlap, a person fits several and the risk is lower than shown, which
    `linkage_with` takes into account. sum_{s<=m} C(d, s) groupings of the distinct rows of either table.

    >>> from velado.testing.examples import four_published
    >>> partial_knowledge(four_published()).subsets[0].after.unique_rows
    2
    """
    data = published.data
    columns = len(data.columns)
    largest = min(columns, LARGEST_SUBSET) if largest is None else largest
    key_sets(columns, largest)
    names = [column.name for column in data.columns]
    before = _Distinct.of(data.classes, [c.codes for c in data.columns], [c.size for c in data.columns])
    shown = [c.codes for c in published.columns], [c.low.size for c in published.columns]
    # The classes are of the texts; where a blank is written in several ways, these are one here.
    known = [] if published.seen is None else published.seen.codes
    same = len(known) == columns and all(a is b for a, b in zip(known, shown[0], strict=True))
    after = _Distinct.of(published.classes if same else Partition.by_codes(*shown), *shown)
    subsets = [chosen for size in range(1, largest + 1) for chosen in combinations(range(columns), size)]
    crowds = zip(subsets, before.crowds(subsets), after.crowds(subsets), strict=True)
    found = [KnownSubset(tuple(names[at] for at in chosen), one, other) for chosen, one, other in crowds]
    return PartialKnowledge(largest, tuple(sorted(found, key=_exposure)))


def linkage_with(
    published: PublishedTable, columns: Sequence[str], **rules: Unpack[LinkageRules]
) -> LinkageResult:
    """How many records an attacker who knows only *columns* links to the right person, by distance.

    The attack of `record_linkage`, by its *rules*, on those columns alone; ties, of which there are more the less is
    known, are by default worth 1 / ties. An interval stands at its middle, a number at itself.

    >>> from velado.testing.examples import four_published
    >>> linkage_with(four_published(), ["age"]).share
    0.75
    """
    names = [column.name for column in published.data.columns]
    chosen = [at for at, name in enumerate(names) if name in columns]
    if not chosen or len(set(columns)) != len(chosen):
        raise ParameterError(
            "The columns named as known are none, or not all of them quasi-identifiers.",
            "Linkage compares quasi-identifiers only.",
            "Name one or more quasi-identifiers of the table.",
        )
    if published.true_rows is None:
        raise ParameterError(*published.unpaired)
    data = replace(published.data, columns=tuple(published.data.columns[at] for at in chosen))
    released = [
        # A number without a cover has code -1; its value is what counts.
        ReleasedColumn(
            np.maximum(part.low, 0)[part.codes], np.maximum(part.high, 0)[part.codes], part.middle[part.codes]
        )
        for part in (published.columns[at] for at in chosen)
    ]
    return record_linkage(data, released, published.true_rows, **rules)


@dataclass(frozen=True)
class _Distinct:
    """The distinct rows of a table and how many rows show each: regrouping them costs less than the rows."""

    codes: Sequence[Int32Array]
    sizes: Int64Array
    held: Int64Array | None
    rows: int

    @classmethod
    def of(cls, classes: Partition, codes: Sequence[IntArray], sizes: Sequence[int]) -> _Distinct:
        many = np.maximum(sizes, 1).astype(np.int64)
        if (
            2 * classes.count > classes.rows
        ):  # nearly every row is its own: the rows are as good, and count one each
            return cls([column.astype(np.int32, copy=False) for column in codes], many, None, classes.rows)
        example = np.empty(classes.count, dtype=np.int64)
        example[classes.labels] = np.arange(classes.rows)
        kept = [column[example].astype(np.int32, copy=False) for column in codes]
        return cls(kept, many, classes.sizes, classes.rows)

    def crowds(self, subsets: Sequence[Sequence[int]]) -> list[Crowd]:
        """The crowd of each of the *subsets* of columns.

        The entries are laid in order by each column once, and the subsets in which it has most codes are counted in its blocks.
        """
        if not self.rows:
            return [Crowd(0, 0.0, 0, 0.0)] * len(subsets)
        falling = np.argsort(-self.sizes, kind="stable").tolist()
        place = {column: at for at, column in enumerate(falling)}
        found: dict[int, Crowd] = {}
        laid = np.empty((len(falling) - 1, self.codes[0].size), dtype=np.int32)
        for at, lead in enumerate(falling):
            led = [i for i, chosen in enumerate(subsets) if min(chosen, key=place.__getitem__) == lead]
            entries = np.bincount(self.codes[lead], minlength=int(self.sizes[lead]))
            blocks = np.concatenate(([0], np.cumsum(entries))).astype(np.int64)
            order = by_label(self.codes[lead], blocks)
            inside = laid[: len(falling) - at - 1]
            for row, column in enumerate(falling[at + 1 :]):
                np.take(self.codes[column], order, out=inside[row])
            held = np.empty(0, dtype=np.int64) if self.held is None else self.held[order]
            for number in led:
                others = sorted(place[column] - at - 1 for column in subsets[number] if column != lead)
                chosen = np.array(others, dtype=np.int64)
                found[number] = self._crowd(subsets[number], blocks, inside, chosen, held)
        return [found[number] for number in range(len(subsets))]

    def _crowd(
        self,
        subset: Sequence[int],
        blocks: Int64Array,
        inside: Int32Array,
        chosen: Int64Array,
        held: Int64Array,
    ) -> Crowd:
        own = -np.sort(-self.sizes[list(subset)], kind="stable")
        if prod(own[1:].tolist()) <= MOST_KEYS:
            groups, unique, least = crowds_met(blocks, inside, chosen, own[1:], held)
            return Crowd(unique, unique / self.rows, least, groups / self.rows)
        sizes = group_sizes([self.codes[one] for one in subset], self.sizes[list(subset)].tolist(), self.held)
        unique = int((sizes == 1).sum())
        return Crowd(unique, unique / self.rows, int(sizes.min()), int(sizes.size) / self.rows)


def _exposure(part: KnownSubset) -> tuple[float, ...]:
    one, other = part.after, part.before
    return (
        -one.unique_rows,
        one.smallest_class,
        -one.mean_risk,
        -other.unique_rows,
        other.smallest_class,
        -other.mean_risk,
        len(part.columns),
    )
