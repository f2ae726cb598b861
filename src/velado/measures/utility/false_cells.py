"""False cells: published values that are not true of the person they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.measures.recoded_columns import PublishedTable
from velado.text import say


@dataclass(frozen=True)
class FalseCells:
    """The share of published quasi-identifier cells that do not cover the true value.

    >>> from velado.testing.examples import four_published
    >>> false_cells(four_published()).share
    0.0
    """

    share: float
    cells: int
    rows: int
    by_column: Mapping[str, float]

    def to_dict(self) -> dict[str, object]:
        """As plain values; the divisor is published rows x quasi-identifiers."""
        return {
            "share": self.share,
            "cells": self.cells,
            "published_rows": self.rows,
            "by_column": dict(self.by_column),
        }


def false_cells(published: PublishedTable) -> FalseCells:
    """A cell is false when what its text says does not include the row's own value.

    Read from the text alone: an interval must hold the number, a label must stand above the leaf, a single
    value must be the value, and a number that was moved onto a bound is outside whatever is said. A mean, a centroid or a most common value is false wherever it differs. Needs
    to know which original row each published row is; O(rows x columns).

    >>> from velado.testing.examples import four_published
    >>> false_cells(four_published()).by_column
    {'age': 0.0}
    """
    rows = published.true_rows
    if rows is None:
        raise ParameterError(*published.unpaired)
    wrong = {}
    for column, read in zip(published.data.columns, published.columns, strict=True):
        truth = column.codes[rows]
        false = (truth < read.low[read.codes]) | (truth > read.high[read.codes])
        if column.moved is not None:
            false |= column.moved[rows] & ~read.says_nothing(column)[read.codes]
        wrong[column.name] = int(false.sum())
    count = max(int(np.size(rows)), 1)
    total = sum(wrong.values())
    return FalseCells(
        total / (count * max(len(wrong), 1)),
        total,
        int(np.size(rows)),
        {name: cells / count for name, cells in wrong.items()},
    )


FALSE_CELLS = Measure(
    name="false_cells",
    title=say("false cells"),
    of=lambda published, scores: None if scores.false_cells is None else scores.false_cells.share,
    detailed=True,
)
SUPPRESSED = Measure(
    name="suppressed",
    title=say("Rows left out"),
    of=lambda published, scores: (
        (scores.original_rows - scores.published_rows) / max(scores.original_rows, 1)
    ),
    detailed=True,
)
