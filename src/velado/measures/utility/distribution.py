"""Distributions: each quasi-identifier before and after, as a reader of the published table would see it.

The labels of the bins are values of the original table: they are for the data's steward, and stay out of
every file that travels with a release.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import EncodedColumn
from velado.data.kinds import DATE_FORMATS, DATETIME_FORMATS
from velado.data.numbers import number_text
from velado.data.partition import IntArray
from velado.data.published_column import PublishedColumn
from velado.data.taxonomy import Taxonomy
from velado.measures.recoded_columns import PublishedTable

# Bins of a category for a picture: days by month, year or decade, other values by a level of their taxonomy.
#
# A picture with a bar for each of a thousand values shows nothing, and one with a bar for a day shows birthdays.

Grouped = Literal["month", "year", "decade", "level"]

SHORT_SPAN = 2 * 365
LONG_SPAN = 30 * 366
"""Days: below the first a picture has months, above the second decades, between them years."""
_MOST_PERIODS = 40
_CALENDAR: tuple[tuple[Grouped, str], ...] = (
    ("month", r"\d{4}-\d{2}"),
    ("year", r"\d{4}"),
    ("decade", r"\d{4}s"),
)


@dataclass(frozen=True, repr=False)
class HistogramBins:
    """Which bin each of *leaves* is in, the label of each bin, and what a bin joins (None: nothing).

    >>> HistogramBins(None, ["a", "b"], np.array([0, 1]), np.array([0, 1])).labels
    ['a', 'b']
    """

    grouped: Grouped | None
    labels: Sequence[str]
    leaves: npt.NDArray[np.int64]
    of_leaf: npt.NDArray[np.int64]


def _calendar_bins(tree: Taxonomy, leaves: npt.NDArray[np.int64]) -> HistogramBins | None:
    """Months, years or decades when the values are days, by how long they span; None when they are none.

    Values are days if all have one common form, or if a level of their taxonomy consists of months, years or
    decades. Periods without any day are kept, so that the picture has an even scale.

    >>> from velado.testing.examples import small_table
    >>> from velado.data.encode import encode
    >>> days = encode(small_table(day=("quasi", "categorical", "2024-01-02 2024-03-05"))).columns[0]
    >>> _calendar_bins(days.tree, np.array([0, 1])).labels
    ['2024-01', '2024-02', '2024-03']
    """
    if not leaves.size:
        return None
    days = None
    # The leaves may be days in a form of their own, with the plain day as their first level.
    for level in range(min(tree.height, 2)):
        days = _days([tree.labels[node] for node in tree.levels[leaves, level].tolist()])
        if days is not None:
            break
    if days is None:
        return _calendar_level(tree, leaves)
    year = days.dt.year().to_numpy().astype(np.int64)
    month = days.dt.month().to_numpy().astype(np.int64) - 1
    number = days.to_physical().to_numpy()
    span = int(number.max() - number.min())
    if span < SHORT_SPAN:
        return _periods("month", leaves, year * 12 + month)
    return _periods("year", leaves, year) if span <= LONG_SPAN else _periods("decade", leaves, year // 10)


def _level_bins(tree: Taxonomy, leaves: npt.NDArray[np.int64], most: int) -> HistogramBins | None:
    """The narrowest level of the taxonomy at which *leaves* have at most *most* labels; None without one.

    The root alone is no level: it would show one bar.

    >>> from velado.testing.examples import small_table
    >>> from velado.data.encode import encode
    >>> days = encode(small_table(day=("quasi", "categorical", "2024-01-02 2024-03-05"))).columns[0]
    >>> _level_bins(days.tree, np.array([0, 1]), most=5) is None
    True
    """
    for level in range(1, tree.height + 1):
        nodes, of_leaf = np.unique(tree.levels[leaves, level], return_inverse=True)
        if 2 <= nodes.size <= most:
            return _in_tree_order("level", tree, leaves, nodes, of_leaf)
    return None


def _days(texts: list[str]) -> pl.Series | None:
    """The texts as days when one form fits all of them; a year has four digits."""
    values = pl.Series(texts, dtype=pl.String)
    if not bool(values.str.contains(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}").all()):
        return None
    for form in (*DATE_FORMATS, *DATETIME_FORMATS):
        kind = pl.Date if form in DATE_FORMATS else pl.Datetime
        days = values.str.strptime(kind, form, strict=False).cast(pl.Date)
        if not days.null_count() and bool((days.dt.year() >= 1000).all()):
            return days
    return None


def _calendar_level(tree: Taxonomy, leaves: npt.NDArray[np.int64]) -> HistogramBins | None:
    """The narrowest calendar level with few enough periods, else the widest one; None when there is none."""
    found: HistogramBins | None = None
    for level in range(1, tree.height):
        nodes, of_leaf = np.unique(tree.levels[leaves, level], return_inverse=True)
        labels = [tree.labels[node] for node in nodes.tolist()]
        for grouped, pattern in _CALENDAR:
            # A month or year that stands at the leaf itself would be a code such as 1984, not a day.
            inner = bool((nodes >= tree.leaves).all())
            if inner and all(re.fullmatch(pattern, label) for label in labels):
                found = _in_tree_order(grouped, tree, leaves, nodes, of_leaf)
        if found is not None and len(found.labels) <= _MOST_PERIODS:
            return found
    return found


def _in_tree_order(
    grouped: Grouped,
    tree: Taxonomy,
    leaves: npt.NDArray[np.int64],
    nodes: npt.NDArray[np.int32],
    of_leaf: npt.NDArray[np.int64],
) -> HistogramBins:
    order = np.argsort(tree.first[nodes], kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return HistogramBins(
        grouped, [tree.labels[node] for node in nodes[order].tolist()], leaves, place[of_leaf]
    )


def _periods(grouped: Grouped, leaves: npt.NDArray[np.int64], period: npt.NDArray[np.int64]) -> HistogramBins:
    shown = np.arange(period.min(), period.max() + 1)
    if shown.size > _MOST_PERIODS:  # a mistyped year must not stretch the picture over centuries
        shown = np.unique(period)
    return HistogramBins(
        grouped, [_period(grouped, at) for at in shown.tolist()], leaves, np.searchsorted(shown, period)
    )


def _period(grouped: Grouped, at: int) -> str:
    if grouped == "month":
        return f"{at // 12:04d}-{at % 12 + 1:02d}"
    return f"{at:04d}" if grouped == "year" else f"{at * 10:04d}s"


MOST_BINS = 30
MOST_CATEGORIES = 20


@dataclass(frozen=True, repr=False)
class Distribution:
    """One column before and after, as shares of rows per bin, and how far apart the two are.

    *total_variation* is half the sum of absolute differences (over bins of a number, over values of a
    category). *earth_mover* is, for a number, how far mass has to move as a share of the domain; for a category,
    whose values have no distance, it equals the total variation. *blank* and *other* say which bin holds
    missing values and which the categories beyond the most frequent; None when there is none. *grouped* says
    what a bin of a category joins: days of a month, year or decade, or the values below one level of its
    taxonomy; None when every bin is one value. The distances are those of the values themselves.

    >>> from velado.testing.examples import four_published
    >>> distributions(four_published())[0].name
    'age'
    """

    name: str
    kind: Literal["numeric", "categorical"]
    labels: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    total_variation: float
    earth_mover: float
    blank: int | None = None
    other: int | None = None
    grouped: Grouped | None = None

    def __repr__(self) -> str:
        return f"Distribution({self.name!r}, {self.kind}, bins={len(self.before)})"

    def to_dict(self) -> dict[str, object]:
        """As plain values, *with* the labels: not for publication."""
        return {"labels": list(self.labels), **self.shares(), **self.distances()}

    def shares(self) -> dict[str, object]:
        """The bins without their labels."""
        return {
            "kind": self.kind,
            "before": list(self.before),
            "after": list(self.after),
            "blank": self.blank,
            "other": self.other,
            "grouped": self.grouped,
        }

    def distances(self) -> dict[str, object]:
        """The two distances, and what the second one is measured in."""
        ground = "share of the domain" if self.kind == "numeric" else "equal distance between values"
        return {
            "total_variation": self.total_variation,
            "earth_mover": self.earth_mover,
            "earth_mover_ground": ground,
        }


def distributions(published: PublishedTable) -> tuple[Distribution, ...]:
    """One distribution per quasi-identifier; the pairing of rows is not needed. O(rows x columns).

    >>> from velado.testing.examples import four_published
    >>> distributions(four_published())[0].distances()
    {'total_variation': 0.0, 'earth_mover': 0.0, 'earth_mover_ground': 'share of the domain'}
    """
    pairs = zip(published.data.columns, published.columns, strict=True)
    behind = published.data.counts, published.classes.weights
    return tuple(distribution(column, read, behind) for column, read in pairs)


def distribution(
    column: EncodedColumn,
    read: PublishedColumn,
    behind: tuple[IntArray | None, IntArray | None] = (None, None),
) -> Distribution:
    """The original values beside the published ones, each published cover spread evenly over its codes.

    A number that is no original value counts at the nearest one. Suppressed rows are absent from *after*. *behind* says how
    many original and how many published rows each entry stands for; None: one.

    >>> from velado.testing.examples import four_published
    >>> published = four_published()
    >>> distribution(published.data.columns[0], published.columns[0]).name
    'age'
    """
    before = _share(np.bincount(column.codes, behind[0], minlength=column.size).astype(np.float64))
    texts = np.bincount(read.codes, behind[1], minlength=read.low.size).astype(np.float64)
    low, high = placed(column, read)
    after = _share(spread(low, high, texts, column.size))
    if column.points is not None:
        return _numeric(column, before, after)
    return _categorical(column, before, after)


def spread(
    low: IntArray, high: IntArray, weight: npt.NDArray[np.float64], size: int
) -> npt.NDArray[np.float64]:
    """The *weight* of each cover spread evenly over its codes *low*..*high*, summed. O(covers + size).

    >>> spread(np.array([0]), np.array([1]), np.array([3.0]), 3)
    array([1.5, 1.5, 0. ])
    """
    each = weight / (high - low + 1)
    steps = np.bincount(low, each, minlength=size + 1) - np.bincount(high + 1, each, minlength=size + 1)
    # Rounding in the running sum may leave a speck below zero.
    return np.asarray(np.maximum(np.cumsum(steps[:size]), 0.0), dtype=np.float64)


def placed(column: EncodedColumn, read: PublishedColumn) -> tuple[IntArray, IntArray]:
    """The codes low..high that each published text counts for: those it states, or the value nearest to a number nobody has.

    >>> from velado.testing.examples import four_published
    >>> published = four_published()
    >>> low, high = placed(published.data.columns[0], published.columns[0])
    >>> low[published.columns[0].codes].tolist()
    [0, 1, 0, 2]
    """
    low, high = read.low.copy(), read.high.copy()
    if column.points is not None and bool((~read.stated).any()):
        real = column.numbers
        lost = np.flatnonzero(~read.stated)
        right = np.clip(np.searchsorted(real, read.middle[lost]), 0, real.size - 1)
        left = np.maximum(right - 1, 0)
        nearer = np.abs(real[left] - read.middle[lost]) <= np.abs(real[right] - read.middle[lost])
        low[lost] = high[lost] = np.where(nearer, left, right)
    return low, high


def _share(weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    total = weight.sum()
    return weight / total if total > 0 else weight


def _numeric(
    column: EncodedColumn, before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]
) -> Distribution:
    assert column.points is not None
    real = column.numbers
    edges, labels = _bins(column, real)
    which = np.clip(np.searchsorted(edges, real, side="right") - 1, 0, len(labels) - 1)
    blank = None
    if column.missing >= 0:
        blank = len(labels)
        labels = [*labels, ""]
        which = np.append(which, blank)
    binned = [np.bincount(which, weights=part, minlength=len(labels)) for part in (before, after)]
    gaps = np.diff(column.positions)
    moved = float(np.sum(np.abs(np.cumsum(before - after)[:-1]) * gaps))
    variation = float(np.abs(binned[0] - binned[1]).sum() / 2)
    shares = [tuple(part.tolist()) for part in binned]
    return Distribution(
        column.name, "numeric", tuple(labels), shares[0], shares[1], variation, moved, blank=blank
    )


def _bins(column: EncodedColumn, real: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], list[str]]:
    """Equal-width bins: their lower ends, and a label each."""
    low, high = float(real[0]), float(real[-1])
    if column.whole:
        width = max(int(np.ceil((high - low + 1) / MOST_BINS)), 1)
        count = int((high - low) // width) + 1
        edges = low + width * np.arange(count)
        ends = edges + width - 1
        return edges, [
            str(int(a)) if width == 1 else f"{int(a)}..{int(b)}" for a, b in zip(edges, ends, strict=True)
        ]
    if high <= low:
        return np.array([low]), [number_text(low, False, column.decimal)]
    count = min(MOST_BINS, max(int(real.size), 2))
    ends = np.linspace(low, high, count + 1)
    texts = [f"{end:.4g}".replace(".", column.decimal) for end in ends]
    return ends[:-1], [f"{a}..{b}" for a, b in pairwise(texts)]


def _categorical(
    column: EncodedColumn, before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]
) -> Distribution:
    assert column.tree is not None
    variation = float(np.abs(before - after).sum() / 2)
    seen = np.flatnonzero((before > 0) | (after > 0))
    seen = seen[seen != column.missing]
    bins = _calendar_bins(column.tree, seen)
    if bins is None and seen.size > MOST_CATEGORIES:
        bins = _level_bins(column.tree, seen, MOST_CATEGORIES)
    other = None
    if bins is None:
        # One bin per value, the most frequent first; what does not fit is gathered.
        order = seen[np.argsort(-before[seen], kind="stable")]
        shown = order if order.size <= MOST_CATEGORIES else order[: MOST_CATEGORIES - 1]
        labels = [column.value_texts[code] or "" for code in shown.tolist()]
        if shown.size < order.size:
            other = len(labels)
            labels.append("other")
        bins = HistogramBins(None, labels, order, np.minimum(np.arange(order.size), len(labels) - 1))
    labels = list(bins.labels)
    shares = [
        np.bincount(bins.of_leaf, weights=part[bins.leaves], minlength=len(labels)).tolist()
        for part in (before, after)
    ]
    blank = None
    if column.missing >= 0:
        blank = len(labels)
        labels.append("")
        for share, part in zip(shares, (before, after), strict=True):
            share.append(float(part[column.missing]))
    return Distribution(
        column.name,
        "categorical",
        tuple(labels),
        tuple(shares[0]),
        tuple(shares[1]),
        variation,
        variation,
        blank=blank,
        other=other,
        grouped=bins.grouped,
    )
