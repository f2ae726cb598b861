"""The order of published rows: drawn under the owner's key, so that it says nothing of where rows stood before.

A file sorted by age gives ages away however broad the published intervals are, and two releases of one file that keep
its order are joined by position.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encoded import EncodedColumn, EncodedTable
from velado.data.keys import Key, content_of

UNLIKELY = 6.0
"""Standard deviations from chance beyond which an order is called sorted: one table in 10^8 is by accident."""


def drawn_order(frame: pl.DataFrame, key: Key) -> npt.NDArray[np.int64]:
    """Where each published row stood in *frame*: every order is equally likely for who does not have the key.

    The content is part of what is drawn from, so that two releases share no order. O(n log n).
    """
    return key.draws("row order", content_of(frame)).permutation(frame.height)


def sorted_by(data: EncodedTable) -> str | None:
    """The quasi-identifier that the order of the rows tells something about, or None where it looks like chance.

    Two statistics, each compared with its value under a random order: the rank correlation of value and position
    (variance 1 / (n - 1)), and how often neighbours are equal (a file sorted by something else first, such as by
    town and then by age, comes in runs). O(n) for each column.
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
    if abs(correlation) * np.sqrt(n - 1) > UNLIKELY:
        return True
    # Neighbours that are equal: with every order equally likely each pair is with chance p, and the number of equal
    # pairs is near enough to normal to tell runs from none.
    p = float((counts * (counts - 1.0)).sum()) / (n * (n - 1.0))
    equal = float((column.codes[1:] == column.codes[:-1]).sum())
    deviation = np.sqrt(max((n - 1) * p * (1 - p), 1.0))
    if equal - (n - 1) * p > UNLIKELY * deviation:
        return True
    # A table sorted within blocks (by town, then by age) climbs more often than it falls.
    steps = np.sign(np.diff(codes))
    rises, falls = float((steps > 0).sum()), float((steps < 0).sum())
    return bool(abs(rises - falls) > UNLIKELY * np.sqrt(max((n + 1) / 3.0, 1.0)))
