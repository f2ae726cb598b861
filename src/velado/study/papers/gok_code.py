"""GOK-Privacy and its two baselines as their published code behaves, and the folds it was judged by.

Retold from what that code was found to do, not from its lines. GOK: max(5, k) random centres whatever the number of
rows; the best of a random troop wins at once, because every gorilla jumps onto it in the first iteration; each record
goes to its nearest centre; **a cluster with fewer than k records is published raw**. Top-down never splits, so every
record is published as the whole domain. Mondrian cuts one column only. The output is ordered by cluster, and the two
folds of the cross-validation are not shuffled. None of it promises anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.anonymize.recoders import recoder_named
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.measure.models.registry import Model
from velado.measure.models.training import IntVector, fit_and_predict

_TROOP = 20
_FEWEST_CENTRES = 5


@dataclass(frozen=True, repr=False)
class Coded:
    """A release by the published code: each row's group, and which rows were published as they are."""

    partition: Partition
    raw: npt.NDArray[np.bool_]


def gok(data: EncodedTable, k: int, random: np.random.Generator) -> Coded:
    """The nearest of max(5, k) random centres; the troop's best by mean width; clusters below k raw. O(n k d)."""
    places = np.stack([column.positions[column.codes] for column in data.columns], axis=1)
    places = (places - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-12)
    best, least = np.zeros(data.rows, dtype=np.int64), np.inf
    for _ in range(_TROOP):
        centres = random.random((max(_FEWEST_CENTRES, k), places.shape[1]))
        labels = _nearest(places, centres)
        width = _mean_width(data, Partition.of(labels))
        if width < least:
            best, least = labels, width
    raw = np.bincount(best)[best] < k
    # A raw row is a class of its own: what is published of it is itself.
    alone = best.max() + 1 + np.arange(data.rows)
    return Coded(Partition.of(np.where(raw, alone, best)), raw)


def top_down(data: EncodedTable, k: int, random: np.random.Generator) -> Coded:
    """All rows in one class."""
    return Coded(Partition.of(np.zeros(data.rows, dtype=np.int64)), np.zeros(data.rows, dtype=np.bool_))


def mondrian(data: EncodedTable, k: int, random: np.random.Generator) -> Coded:
    """The column with most values cut at its median again and again, equal values kept together."""
    column = max(data.columns, key=lambda one: one.size)
    rows = np.bincount(column.codes, minlength=column.size)
    of_code = np.zeros(column.size, dtype=np.int64)
    waiting, group = [(0, column.size)], 0
    while waiting:
        low, high = waiting.pop()
        below = np.cumsum(rows[low:high])
        cut = low + 1 + int(np.searchsorted(below, below[-1] / 2))
        if cut >= high or below[cut - 1 - low] < k or below[-1] - below[cut - 1 - low] < k:
            of_code[low:high] = group
            group += 1
        else:
            waiting += [(low, cut), (cut, high)]
    return Coded(Partition.of(of_code[column.codes]), np.zeros(data.rows, dtype=np.bool_))


def asked_in_folds(
    data: EncodedTable,
    coded: Coded,
    labels: IntVector,
    classes: int,
    model: Model,
    shuffle: np.random.Generator | None = None,
) -> tuple[IntVector, IntVector]:
    """(truth, answers) of two folds that are not shuffled, over rows in the order of their clusters.

    With *shuffle* the rows are mixed first, which is all that is changed. Features are the published texts numbered in the order of the alphabet and scaled to [0, 1], all rows together,
    as there: an interval becomes the place of its text among the others.
    """
    order = np.argsort(coded.partition.labels, kind="stable")
    if shuffle is not None:
        order = shuffle.permutation(order)
    features = _texts_as_numbers(data, coded.partition)[order]
    truth = labels[order]
    second = np.zeros(truth.size, dtype=np.bool_)
    for one in range(classes):
        of_class = np.flatnonzero(truth == one)
        second[of_class[(of_class.size + 1) // 2 :]] = True
    answers = np.empty_like(truth)
    for test in (~second, second):
        if not np.ptp(features[~test], axis=0).any():
            # Nothing differs, so nothing can be learned but which class is the commonest.
            answers[test] = np.bincount(truth[~test]).argmax()
            continue
        found = fit_and_predict(model, features[~test], truth[~test], features[test], classes, seed=0)
        answers[test] = found.labels
    return truth, answers


def _texts_as_numbers(data: EncodedTable, partition: Partition) -> npt.NDArray[np.float32]:
    out = []
    for part in recoder_named("cover").publish(data, partition):
        _, place = np.unique([str(value) for value in part.values], return_inverse=True)
        out.append(place[part.codes] / max(int(place.max()), 1))
    return np.asarray(np.stack(out, axis=1), dtype=np.float32)


def _nearest(places: npt.NDArray[np.float64], centres: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(centres).query(places)[1], dtype=np.int64)


def _mean_width(data: EncodedTable, partition: Partition) -> float:
    total = 0.0
    for column in data.columns:
        low, high = partition.least_and_greatest(column.codes)
        total += float((column.loss(low, high) * partition.sizes).sum())
    return total
