"""Marginals: how far the one- and two-way tables that a reader makes of the release are from the true ones."""

from __future__ import annotations

import numpy as np

from velado.data.partition import Partition
from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.measures.recoded_columns import PublishedTable
from velado.measures.utility.distribution import placed
from velado.release.methods.progressive.objectives._shown_groups import ShownGroups
from velado.release.methods.progressive.objectives.faithful_margins import (
    FaithfulMargins,
    TableErrors,
    table_errors,
)


def shown_groups(published: PublishedTable) -> ShownGroups:
    """The classes of a published table and the codes that their texts state; over original rows where these are known.

    >>> from velado.testing.examples import four_published
    >>> shown_groups(four_published()).count
    3
    """
    classes: Partition = published.original_classes or published.classes
    order, starts = published.classes.members()
    first = order[starts]
    ends = [
        (low[read.codes[first]], high[read.codes[first]])
        for read, (low, high) in (
            (read, placed(column, read))
            for column, read in zip(published.data.columns, published.columns, strict=True)
        )
    ]
    low, high = (
        np.stack([end[side] for end in ends], axis=1).astype(np.int32)
        if ends
        else np.zeros((first.size, 0), dtype=np.int32)
        for side in (0, 1)
    )
    return ShownGroups(published.data, classes, low, high, published.data.rows)


def marginal_errors(published: PublishedTable) -> TableErrors:
    """Mean total variation of one-way and of two-way tables, each published cover spread evenly over its values.

    Numbers are cut into ten classes of about as many rows, categories show up to fifty values. Which row is which need
    not be known; a suppressed row counts as moved.

    >>> from velado.testing.examples import four_published
    >>> marginal_errors(four_published()).one_way
    0.0
    """
    if published.data.counts is not None:
        raise ParameterError(
            "Tables of two columns are not made of counted rows yet.",
            "Each would have to be counted where the rows lie.",
            "Use --engine memory.",
        )
    return table_errors(shown_groups(published))


MARGINALS = Measure(
    name="marginals",
    title=FaithfulMargins.title,
    of=lambda published, scores: marginal_errors(published).overall,
)
