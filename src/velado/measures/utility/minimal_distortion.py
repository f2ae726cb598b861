"""Minimal distortion: how many cells no longer say exactly what they said."""

from __future__ import annotations

import numpy as np

from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.measures.recoded_columns import PublishedTable
from velado.text import say


def minimal_distortion(published: PublishedTable) -> float:
    """The share of quasi-identifier cells that were generalized, replaced or suppressed (GFKMC thesis, section 2.4).

    The thesis charges one unit whenever a cell is generalized or suppressed, column by column; here the units are divided by
    rows x columns. 0: every cell is as it was; 1: none is. How wide a value became makes no difference, which is why the
    information loss stands beside it. Needs to know which row is which; O(rows x columns).

    >>> from velado.testing.examples import four_published
    >>> minimal_distortion(four_published())
    0.0
    """
    rows = published.true_rows
    if rows is None:
        raise ParameterError(*published.unpaired)
    changed = 0
    for column, read in zip(published.data.columns, published.columns, strict=True):
        low, high = read.low[read.codes], read.high[read.codes]
        other = (low != high) | (low != column.codes[rows])
        if read.lower.size:  # an interval that happens to hold a single known number is an interval
            other |= (read.lower < read.upper)[read.codes]
        changed += int(np.count_nonzero(other))
    columns = len(published.columns)
    cells = published.data.total * columns
    return (changed + published.suppressed * columns) / cells if cells else 0.0


MINIMAL_DISTORTION = Measure(
    name="minimal_distortion",
    title=say("cells changed (minimal distortion)"),
    of=lambda published, scores: minimal_distortion(published),
)
