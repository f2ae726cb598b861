"""The order of rows as a side door: whether it tells a quasi-identifier.

A release draws the order of its rows, for a file sorted by age gives ages away however broad the published intervals are, and two releases of one file that keep
its order are joined by position.
"""

from __future__ import annotations

import numpy as np

from velado.data.encode import text_codes
from velado.data.encoded import EncodedColumn, EncodedTable
from velado.data.table import Table
from velado.release._copies import folded
from velado.release.side_doors.compatible import stated
from velado.release.side_doors.door import SideDoor

_UNLIKELY = 6.0
"""Standard deviations from chance beyond which an order is called sorted: one table in 10^8 is by accident."""


def sorted_by(data: EncodedTable) -> str | None:
    """The quasi-identifier that the order of the rows tells something about, or None where it looks like chance.

    Two statistics, each compared with its value under a random order: the rank correlation of value and position
    (variance 1 / (n - 1)), and how often neighbours are equal (a file sorted by something else first, such as by
    town and then by age, comes in runs). O(n) for each column.

    >>> from velado.testing.examples import encoded
    >>> sorted_by(encoded(age=range(100))), sorted_by(encoded(age=[3, 1, 4, 15, 9, 2, 6, 5, 35, 8]))
    ('age', None)
    """
    for column in data.columns:
        if _is_sorted(column):
            return column.name
    return None


def _is_sorted(column: EncodedColumn) -> bool:
    codes = column.codes.astype(np.float64)
    n = codes.size
    spread = codes.std()
    if n < 8 or spread == 0:
        return False
    counts = np.bincount(column.codes)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[column.codes]
    position = np.arange(n, dtype=np.float64)
    correlation = float(np.corrcoef(ranks, position)[0, 1])
    if abs(correlation) * np.sqrt(n - 1) > _UNLIKELY:
        return True
    # Neighbours that are equal: with every order equally likely each pair is with chance p, and the number of equal
    # pairs is near enough to normal to tell runs from none.
    p = float((counts * (counts - 1.0)).sum()) / (n * (n - 1.0))
    equal = float((column.codes[1:] == column.codes[:-1]).sum())
    deviation = np.sqrt(max((n - 1) * p * (1 - p), 1.0))
    if equal - (n - 1) * p > _UNLIKELY * deviation:
        return True
    # A table sorted within blocks (by town, then by age) climbs more often than it falls.
    steps = np.sign(np.diff(codes))
    rises, falls = float((steps > 0).sum()), float((steps < 0).sum())
    return bool(abs(rises - falls) > _UNLIKELY * np.sqrt(max((n + 1) / 3.0, 1.0)))


# The order of the rows as a side door: a file sorted by the originals still shows their order.

_LEAST_ROWS = 20
_DEVIATIONS = 6.0
"""Neighbours that are alike this many standard deviations more often than in shuffled rows are so by no chance."""
_LEAST_GAIN = 0.02
_LEAST_TREND = 0.1


def find_row_order(table: Table) -> list[SideDoor]:
    """Each quasi-identifier that the rows of a published table stand in order of, or in runs of. O(n log n).

    Runs: neighbouring rows that show the same text are counted against shuffled rows (share sum p^2, variance with
    the dependence of overlapping neighbours). Trend: the rank correlation of position and published interval.

    >>> from velado.testing.examples import table
    >>> [door.reveals for door in find_row_order(table(age=[at // 10 for at in range(100)]))]
    ['age']
    """
    found = []
    for quasi in table.schema.quasi:
        codes, size = text_codes(folded(table.text(quasi.name)))
        rows = codes.size
        if rows < _LEAST_ROWS or size < 2:
            continue
        p = np.bincount(codes, minlength=size) / rows
        chance, cubes = float((p**2).sum()), float((p**3).sum())
        alike = float((codes[1:] == codes[:-1]).mean())
        spread = np.sqrt(max(chance - chance**2 + 2 * (cubes - chance**2), 1e-12) / (rows - 1))
        runs = alike - chance >= _DEVIATIONS * spread and alike - chance >= _LEAST_GAIN * (1 - chance)
        if chance < 1.0 and (runs or _trend(table, quasi.name)):
            found.append(SideDoor("", quasi.name, "row-order", alike, chance, rows))
    return found


def _trend(table: Table, name: str) -> bool:
    ends = stated(table, table.schema.columns[name])
    if ends is None:
        return False
    middle = (ends[0] + ends[1]) / 2
    at = np.flatnonzero(~np.isnan(middle))
    values = middle[at]
    if values.size < _LEAST_ROWS or values.std() == 0:
        return False
    line = np.sort(values)
    ranks = (np.searchsorted(line, values, "left") + np.searchsorted(line, values, "right")) / 2.0
    share = abs(float(np.corrcoef(ranks, at)[0, 1]))
    return share >= _LEAST_TREND and share * np.sqrt(values.size - 1) >= _DEVIATIONS
