"""Bins of a category for a picture: days by month, year or decade, other values by a level of their taxonomy.

A picture with a bar for each of a thousand values shows nothing, and one with a bar for a day shows birthdays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.kinds import DATE_FORMATS, DATETIME_FORMATS
from velado.data.taxonomy import Taxonomy

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
class Bins:
    """Which bin each of *leaves* is in, the label of each bin, and what a bin joins (None: nothing)."""

    grouped: Grouped | None
    labels: Sequence[str]
    leaves: npt.NDArray[np.int64]
    of_leaf: npt.NDArray[np.int64]


def calendar_bins(tree: Taxonomy, leaves: npt.NDArray[np.int64]) -> Bins | None:
    """Months, years or decades when the values are days, by how long they span; None when they are none.

    Values are days if all have one common form, or if a level of their taxonomy consists of months, years or
    decades. Periods without any day are kept, so that the picture has an even scale.
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


def level_bins(tree: Taxonomy, leaves: npt.NDArray[np.int64], most: int) -> Bins | None:
    """The narrowest level of the taxonomy at which *leaves* have at most *most* labels; None without one.

    The root alone is no level: it would show one bar.
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


def _calendar_level(tree: Taxonomy, leaves: npt.NDArray[np.int64]) -> Bins | None:
    """The narrowest calendar level with few enough periods, else the widest one; None when there is none."""
    found: Bins | None = None
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
) -> Bins:
    order = np.argsort(tree.first[nodes], kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return Bins(grouped, [tree.labels[node] for node in nodes[order].tolist()], leaves, place[of_leaf])


def _periods(grouped: Grouped, leaves: npt.NDArray[np.int64], period: npt.NDArray[np.int64]) -> Bins:
    shown = np.arange(period.min(), period.max() + 1)
    if shown.size > _MOST_PERIODS:  # a mistyped year must not stretch the picture over centuries
        shown = np.unique(period)
    return Bins(
        grouped, [_period(grouped, at) for at in shown.tolist()], leaves, np.searchsorted(shown, period)
    )


def _period(grouped: Grouped, at: int) -> str:
    if grouped == "month":
        return f"{at // 12:04d}-{at % 12 + 1:02d}"
    return f"{at:04d}" if grouped == "year" else f"{at * 10:04d}s"
