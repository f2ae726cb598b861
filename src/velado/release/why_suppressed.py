"""Why a row was suppressed: told from the facts of the run, for the owner alone.

A reason speaks of a row that did not leave. It stays in the private part of a release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from velado.data.partition import BoolArray, GroupCounts, Int64Array, Partition
from velado.release.guarantees._guarantee import Guarantee
from velado.release.release import Release
from velado.text import Sentence, say, say_n

_MOST_CELLS = 2_000_000
"""Rows x groups that are compared at once."""
Reason = Literal["blank", "small group", "promise", "outlier"]


@dataclass(frozen=True)
class SuppressedRow:
    """One row of the input (*row*, from 0) that did not leave: the *reason* and the *sentence* that tells it.

    *group_rows* is the size of the group of rows that look alike as the method would publish them, 0 where it made none.
    *cost* is what keeping the row would have added to the mean loss of all rows at the least: its nearest group of
    published rows would have had to cover it too.

    >>> SuppressedRow(3, "blank", "A quasi-identifier is blank.", 0, None).reason
    'blank'
    """

    row: int
    reason: Reason
    sentence: str
    group_rows: int
    cost: float | None


def why_suppressed(release: Release, most: int = 1_000) -> tuple[SuppressedRow, ...]:
    """A reason for each suppressed row, or for the first *most* of them, in the order of the input.

    A row is *blank* if the schema suppresses blanks; in a *small group* if the rows that look like it are fewer than k;
    breaks a *promise* if its group is large enough but fails another one; else an *outlier*: the method left it out, because
    covering it would have cost more. Costs are O(rows suppressed x groups).

    >>> from velado.testing.examples import small_release
    >>> why_suppressed(small_release().release)
    ()
    """
    gone = np.flatnonzero(~release.kept)[:most]
    if not gone.size:
        return ()
    place = np.cumsum(release.prepared.present) - 1
    groups = _groups_as_made(release)
    sizes: Int64Array | None = None
    broken: list[tuple[Guarantee, BoolArray]] = []
    if groups is not None:
        sizes, broken = _judged(release, groups)
    costs = _costs(release, [int(place[row]) for row in gone if release.prepared.present[row]])
    out = []
    for row in gone.tolist():
        if not release.prepared.present[row]:
            why = say('It is blank in a quasi-identifier, and the schema says missing = "suppress".')
            out.append(SuppressedRow(row, "blank", why, 0, None))
            continue
        at = int(place[row])
        label = -1 if groups is None else int(groups.labels[at])
        cost = costs[at]
        if label < 0 or sizes is None:
            out.append(SuppressedRow(row, "outlier", _outlier(cost), 0, cost))
            continue
        failed = [one for one, bad in broken if bad[label]]
        size = int(sizes[label])
        if not failed:
            out.append(SuppressedRow(row, "outlier", _outlier(cost), size, cost))
        elif failed[0].reads == "crowd":
            out.append(SuppressedRow(row, "small group", _small(size, failed[0]), size, cost))
        else:
            why = say(
                "Its group of {rows:,} rows breaks the promise {promise}.", rows=size, promise=failed[0].title
            )
            out.append(SuppressedRow(row, "promise", why, size, cost))
    return tuple(out)


def _small(size: int, crowd: Guarantee) -> Sentence:
    return say_n(
        "Its group has {n:,} row; {needed:g} are promised.",
        "Its group has {n:,} rows; {needed:g} are promised.",
        size,
        needed=crowd.needed,
    )


def _outlier(cost: float | None) -> Sentence:
    if cost is None:
        return say("The method left it out: too few rows are like it.")
    return say(
        "The method left it out: too few rows are like it. In the nearest group it would have added {cost:.2%} to the loss "
        "of the table.",
        cost=cost,
    )


def _groups_as_made(release: Release) -> Partition | None:
    """All rows the method saw by what it would have published for them, those it left out itself with label -1."""
    recoded = release.recoded
    if not recoded.columns:
        return None
    own = recoded.partition
    if own is not None and own.labels.size == release.data.rows:
        return own
    every = np.ones(release.data.rows, dtype=bool)
    texts = [column.series(every).cast(pl.String) for column in recoded.columns]
    codes = [one.rank("dense").fill_null(0).to_numpy().astype(np.int64) for one in texts]
    return Partition.by_codes(codes, [int(one.max()) + 1 for one in codes])


def _judged(release: Release, groups: Partition) -> tuple[Int64Array, list[tuple[Guarantee, BoolArray]]]:
    counts: GroupCounts = release.data.group_counts(groups)
    broken = []
    for one in sorted(release.goal.guarantees, key=lambda one: one.reads != "crowd"):
        if one.reads != "population":
            broken.append((one, ~one.holds_in(counts)))
    return groups.sizes, broken


def _costs(release: Release, places: list[int]) -> dict[int, float | None]:
    """For each row, the least that a published group would lose more if it covered the row; None without groups."""
    data, kept = release.data, release.recoded.kept
    if not kept.any() or not places:
        return dict.fromkeys(places, None)
    checked = release.checked.partition
    ends = [checked.least_and_greatest(column.codes[kept]) for column in data.columns]
    before = [column.loss(*found) for column, found in zip(data.columns, ends, strict=True)]
    at_once = max(1, _MOST_CELLS // checked.count)
    least: list[float] = []
    for first in range(0, len(places), at_once):
        some = np.array(places[first : first + at_once])
        total = np.zeros((some.size, checked.count))
        for column, (low, high), lost in zip(data.columns, ends, before, strict=True):
            own = column.codes[some][:, None]
            after = column.loss(np.minimum(low, own), np.maximum(high, own))
            total += (after - lost) * checked.sizes + after
        least += (total.min(axis=1) / (len(data.columns) * release.kept.size)).tolist()
    return dict(zip(places, least, strict=True))
