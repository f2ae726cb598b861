"""How unusual each generalized record is (definitions 5-8), and which groups are set aside (algorithm 4.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from velado.anonymize.methods.gfkmc_view import Generalized
from velado.data.partition import BoolArray, FloatArray, IntArray


def weights(seen: Generalized, small: IntArray, paper: bool) -> FloatArray:
    """W = |T| - (rank of the numeric score + rank of the categorical score) / 2, for every group.

    Definition 5: the summed distance from each column's mean (in units of the column's range, so that no
    unit of measurement decides; raw in `paper`), ranked from the largest. Definition 6: the mean frequency
    of the categories, ranked from the smallest. Then definitions 7 and 8: the strangest record has the
    largest weight. By default T is the whole table, ranks are dense and ties share one, so W is the same
    for all rows of a group. In `paper` T is the list of groups below k, one record each, numbered one by
    one: with it the authors' figures come out (see the tests), and only those groups have a weight.
    """
    counted = seen.sizes.astype(np.float64)
    if paper:
        counted = np.zeros(seen.sizes.size)
        counted[small] = 1.0
    number = np.zeros(seen.sizes.size)
    category = np.zeros(seen.sizes.size)
    for at, numeric in enumerate(seen.numeric):
        place = seen.places[:, at]
        if numeric:
            away = np.abs(place - float(np.average(place, weights=counted)))
            number += away * (seen.ranges[at] if paper else 1.0)
        else:
            node = place.astype(np.int64)
            category += np.bincount(node, weights=counted)[node]
    if not paper:
        return np.asarray(counted.sum() - (_dense(-number) + _dense(category)) / 2, dtype=np.float64)
    ranks = np.zeros(seen.sizes.size)
    for score in (-number[small], category[small]):
        ranks[small[np.argsort(score, kind="stable")]] += np.arange(1, small.size + 1)
    return np.where(counted > 0, small.size - ranks / 2, 0.0)


def _dense(score: FloatArray) -> npt.NDArray[np.int64]:
    # Scores are sums of a few floats; rounding keeps equal ones equal whatever the order of the columns.
    return np.asarray(np.unique(np.round(score, 9), return_inverse=True)[1].ravel() + 1, dtype=np.int64)


def outliers(weight: FloatArray, sizes: IntArray, rows: int, beta: float, paper: bool) -> BoolArray:
    """True for the groups whose weight is at least the limit: that of the record at place *beta*, counted from 0.

    Algorithm 4.3 of the thesis: line 7 takes `outlier_value = sorted_scores[beta]` from the weights in falling
    order, and line 10 sets a group aside where `weight_scores[r] >= outlier_value`. So a weight equal to the
    limit is an outlier's, in both profiles, and ties can set more aside than beta counts. Section 4.3 says of line
    7 only that "o valor da pontuação de peso do beta-th registro" is the limit; the place is the listing's.

    beta is a share of all *rows* (in `paper`, of the groups below k); at 0 nobody is set aside (lines 3 and 4).
    Where the groups hold no more records than beta counts the text names no record; those stranger than the
    median record are set aside then, the one place with `>`, so that something is left to cluster.
    """
    if paper:
        count, ordered = int(beta * weight.size), np.sort(weight)[::-1]
    else:
        count, ordered = int(beta * rows), np.sort(np.repeat(weight, sizes))[::-1]
    if count == 0:
        return np.zeros(weight.size, dtype=bool)
    if count >= ordered.size:
        return np.asarray(weight > ordered[ordered.size // 2])
    return np.asarray(weight >= ordered[count])
