"""The order of the rows as a side door: a file sorted by the originals still shows their order."""

from __future__ import annotations

import numpy as np

from velado.anonymize.copies import folded
from velado.anonymize.side_doors.compatible import stated
from velado.anonymize.side_doors.door import SideDoor
from velado.data.encode import text_codes
from velado.data.table import Table

LEAST_ROWS = 20
DEVIATIONS = 6.0
"""Neighbours that are alike this many standard deviations more often than in shuffled rows are so by no chance."""
LEAST_GAIN = 0.02
LEAST_TREND = 0.1


def find_row_order(table: Table) -> list[SideDoor]:
    """Each quasi-identifier that the rows of a published table stand in order of, or in runs of. O(n log n).

    Runs: neighbouring rows that show the same text are counted against shuffled rows (share sum p^2, variance with
    the dependence of overlapping neighbours). Trend: the rank correlation of position and published interval.
    """
    found = []
    for quasi in table.schema.quasi:
        codes, size = text_codes(folded(table.text(quasi.name)))
        rows = codes.size
        if rows < LEAST_ROWS or size < 2:
            continue
        p = np.bincount(codes, minlength=size) / rows
        chance, cubes = float((p**2).sum()), float((p**3).sum())
        alike = float((codes[1:] == codes[:-1]).mean())
        spread = np.sqrt(max(chance - chance**2 + 2 * (cubes - chance**2), 1e-12) / (rows - 1))
        runs = alike - chance >= DEVIATIONS * spread and alike - chance >= LEAST_GAIN * (1 - chance)
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
    if values.size < LEAST_ROWS or values.std() == 0:
        return False
    line = np.sort(values)
    ranks = (np.searchsorted(line, values, "left") + np.searchsorted(line, values, "right")) / 2.0
    share = abs(float(np.corrcoef(ranks, at)[0, 1]))
    return share >= LEAST_TREND and share * np.sqrt(values.size - 1) >= DEVIATIONS
