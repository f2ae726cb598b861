"""Weighted information loss: what groups lost, strange records counting for more."""

from __future__ import annotations

import numpy as np

from velado.data.encode import EncodedTable
from velado.data.partition import FloatArray
from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.measures.recoded_columns import PublishedTable
from velado.text import say


def weight_scores(data: EncodedTable) -> FloatArray:
    """W(r) = |T| - (rank of the numeric score + rank of the categorical score) / 2: the strangest record has most.

    GFKMC thesis, definitions 5 to 8: the summed distance of the numbers from their means, ranked from the largest (each in units
    of its range, so that no unit of measurement decides), and the mean frequency of the categories, ranked from the smallest.
    Ties share a rank. O(n log n) for each.

    >>> from velado.testing.examples import encoded
    >>> weight_scores(encoded(age=[20, 20, 20, 90])).tolist()
    [2.5, 2.5, 2.5, 3.0]
    """
    number, category = np.zeros(data.rows), np.zeros(data.rows)
    for column in data.columns:
        if column.tree is None:
            place = column.positions[column.codes]
            number += np.abs(place - place.mean())
        else:
            category += np.bincount(column.codes, minlength=column.size)[column.codes]
    return np.asarray(data.rows - (_rank(-number) + _rank_of_counts(category)) / 2, dtype=np.float64)


def _rank_of_counts(score: FloatArray) -> FloatArray:
    # Whole numbers up to rows x columns: looked up, not sorted.
    place = score.astype(np.int64)
    seen = np.bincount(place) > 0
    return np.cumsum(seen, dtype=np.int64)[place].astype(np.float64)


def _rank(score: FloatArray) -> FloatArray:
    # Sums of a few floats: rounding keeps equal ones equal whatever the order of the columns.
    return np.asarray(np.unique(np.round(score, 9), return_inverse=True)[1].ravel() + 1.0, dtype=np.float64)


def weighted_loss(published: PublishedTable) -> float:
    """WIL = sum over classes |W(e)|_2 IL(e) (GFKMC thesis, eq. 2.10), over what it would be if every value were lost.

    IL(e) = |e| (sum of (max - min) / range over numbers + sum of height of the common ancestor / height of the tree over
    categories) (eq. 2.4), on the true values of the class. The sum of the thesis grows with the table; divided by that of the
    same classes with IL(e) = |e| x columns it lies between 0 and 1. A suppressed row is a class of its own that lost all.
    Needs to know which row is which; O(n d).

    >>> from velado.testing.examples import four_published
    >>> weighted_loss(four_published())
    0.0
    """
    classes = published.original_classes
    if classes is None or published.data.counts is not None:
        raise ParameterError(*published.unpaired)
    data = published.data
    weight = weight_scores(data)
    gone = classes.labels < 0
    squares = np.bincount(classes.labels[~gone], weights=weight[~gone] ** 2, minlength=classes.count)
    heavy = np.sqrt(squares) * classes.sizes
    lost = np.zeros(classes.count)
    for column in data.columns:
        low, high = classes.least_and_greatest(column.codes)
        if column.tree is None:
            lost += np.clip(column.positions[high] - column.positions[low], 0.0, 1.0)
        else:
            node = column.tree.common_ancestor(low, high)
            lost += column.tree.node_height[node] / max(column.tree.height, 1)
    alone = float(weight[gone].sum())
    whole = (float(heavy.sum()) + alone) * len(data.columns)
    return (float(heavy @ lost) + alone * len(data.columns)) / whole if whole > 0 else 0.0


WEIGHTED_LOSS = Measure(
    name="weighted_loss",
    title=say("weighted information loss"),
    of=lambda published, scores: weighted_loss(published),
)
