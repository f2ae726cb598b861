"""GOK-Privacy and its two baselines as their published code behaves, and the folds it was judged by.

Retold from what that code was found to do, not from its lines. **GOK**: 40 sets of max(5, k) centres, whatever the number
of rows; in iteration t of T = 75 every set moves, better or worse, to

    x + e (b - x) + (1 - e) 2 exp(-|b - x|) (u - 1/2),    e = 1 - t/T,    b the best so far,  u uniform in [0, 1]

so that all jump onto the best at first and noise grows from there; each record goes to its nearest centre; **a cluster
with fewer than k records is published raw**. (The code's loss divides a range by itself; here the width of the clusters is
what the search lowers.) **Top-Down** never splits, and **a quasi-identifier whose first and last row agree is published
raw**, whatever lies between them. **Mondrian** cuts one column only. Of the three outputs **only Mondrian's is sorted**, by
the column it cuts; the two folds are stratified and not shuffled, so that a model learns from one half of that column and is
asked about the other. Models see every column but the target, quasi-identifier or not; but GOK's script leaves out the last
of them, Mondrian's the last two. None of it promises anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.data.table import Table
from velado.measures.models._model import Model
from velado.measures.models.quality import IntVector, fit_and_predict
from velado.release.recoders import recoder_named

SETS = 40
ITERATIONS = 75
_FEWEST_CENTRES = 5

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Coded:
    """A release by the published code: each row's group, rows and columns left as they are, its order, what it leaves out.

    >>> coded = Coded(Partition.of(np.array([0, 0, 1])), raw=np.array([False, False, True]))
    >>> int(coded.raw.sum()), coded.features_dropped
    (1, 0)
    """

    partition: Partition
    raw: npt.NDArray[np.bool_]
    raw_columns: tuple[str, ...] = ()
    order: npt.NDArray[np.int64] | None = None
    features_dropped: int = 0


def gok(data: EncodedTable, k: int, random: np.random.Generator) -> Coded:
    """The nearest of max(5, k) centres, the best of all sets that were visited; clusters below k raw. O(S T n k d).

    >>> from velado.data.encode import encode
    >>> from velado.testing.examples import small_table
    >>> from velado.randomness import seeded
    >>> table = small_table(x=("quasi", "numeric", "1 2 3 4 5 6 7 8 900"))
    >>> int(gok(encode(table), 2, seeded(0)).raw.sum())
    1
    """
    places = np.stack([column.positions[column.codes] for column in data.columns], axis=1)
    places = (places - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-12)
    sets = random.random((SETS, max(_FEWEST_CENTRES, k), places.shape[1]))
    best, least = sets[0].copy(), np.inf
    for iteration in range(ITERATIONS + 1):
        widths = [_width_of(places, one)[1] for one in sets]
        winner = int(np.argmin(widths))
        if widths[winner] < least:
            best, least = sets[winner].copy(), widths[winner]
        if iteration < ITERATIONS:
            towards = 1 - iteration / ITERATIONS
            apart = best - sets
            noise = 2 * np.exp(-np.abs(apart)) * (random.random(sets.shape) - 0.5)
            sets = sets + towards * apart + (1 - towards) * noise
    nearest = _width_of(places, best)[0]
    raw = np.bincount(nearest)[nearest] < k
    # A raw row is a group of its own: what is published of it is itself.
    alone = nearest.max() + 1 + np.arange(data.rows)
    return Coded(Partition.of(np.where(raw, alone, nearest)), raw, features_dropped=1)


def top_down(data: EncodedTable, k: int, random: np.random.Generator) -> Coded:
    """All rows in one group; a quasi-identifier whose first and last row agree is taken to be one value, and stays raw.

    >>> from velado.data.encode import encode
    >>> from velado.testing.examples import small_table
    >>> table = small_table(x=("quasi", "numeric", "1 2 3"), y=("quasi", "numeric", "4 5 4"))
    >>> top_down(encode(table), 2, np.random.default_rng(0)).raw_columns
    ('y',)
    """
    whole = Partition.of(np.zeros(data.rows, dtype=np.int64))
    raw_columns = tuple(column.name for column in data.columns if column.codes[0] == column.codes[-1])
    return Coded(whole, np.zeros(data.rows, dtype=np.bool_), raw_columns)


def mondrian(data: EncodedTable, k: int, random: np.random.Generator) -> Coded:
    """The column with most values cut at its median again and again, equal values kept together; sorted by it.

    >>> from velado.data.encode import encode
    >>> from velado.testing.examples import small_table
    >>> table = small_table(x=("quasi", "numeric", "4 3 2 1"))
    >>> mondrian(encode(table), 2, np.random.default_rng(0)).order.tolist()
    [2, 3, 0, 1]
    """
    column = max(data.columns, key=lambda one: one.size)
    rows = np.bincount(column.codes, minlength=column.size)
    of_code = np.zeros(column.size, dtype=np.int64)
    waiting = [(0, column.size)]
    while waiting:
        low, high = waiting.pop()
        below = np.cumsum(rows[low:high])
        cut = low + 1 + int(np.searchsorted(below, below[-1] / 2))
        if cut >= high or below[cut - 1 - low] < k or below[-1] - below[cut - 1 - low] < k:
            of_code[low:high] = low
        else:
            waiting += [(low, cut), (cut, high)]
    group = of_code[column.codes]
    order = np.argsort(group, kind="stable")
    return Coded(Partition.of(group), np.zeros(data.rows, dtype=np.bool_), order=order, features_dropped=2)


@dataclass(frozen=True)
class Evaluation:
    """Which faults of the evaluation are kept: unshuffled folds over the output's own order, and unequal columns.

    >>> Evaluation().in_order
    True
    """

    in_order: bool = True
    columns_as_coded: bool = True


def asked_in_folds(
    features: npt.NDArray[np.float32],
    coded: Coded,
    labels: IntVector,
    model: Model,
    evaluation: Evaluation,
    random: np.random.Generator,
) -> tuple[IntVector, IntVector]:
    """(truth, answers) of two stratified folds over the release as it lies, or over shuffled rows.

    >>> from velado.measures.models.model_registry import GaussianNB
    >>> from velado.randomness import seeded
    >>> coded = Coded(Partition.of(np.zeros(8, dtype=int)), raw=np.zeros(8, dtype=bool))
    >>> x = np.array([[0], [0], [1], [1]] * 2, dtype=np.float32)
    >>> truth, answers = asked_in_folds(x, coded, x[:, 0].astype(int), GaussianNB(), Evaluation(), seeded(0))
    >>> bool((truth == answers).all())
    True
    """
    order = np.arange(labels.size) if coded.order is None else coded.order
    if not evaluation.in_order:
        order = random.permutation(order)
    if evaluation.columns_as_coded and coded.features_dropped:
        features = features[:, : -coded.features_dropped]
    features, truth = features[order], labels[order]
    second = np.zeros(truth.size, dtype=np.bool_)
    classes = int(labels.max()) + 1
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


def features_of(table: Table, target: str, data: EncodedTable, coded: Coded) -> npt.NDArray[np.float32]:
    """Every column but the target as the code gives it to a model: texts numbered by the alphabet, scaled to [0, 1].

    All rows together, as there: an interval becomes the place of its text among the others.

    >>> from velado.data.encode import encode
    >>> from velado.testing.examples import small_table
    >>> table = small_table(x=("quasi", "numeric", "1 2 8 9"), z=("other", "numeric", "0 1 2 4"))
    >>> coded = Coded(Partition.of(np.array([0, 0, 1, 1])), raw=np.zeros(4, dtype=bool))
    >>> features_of(table, "y", encode(table), coded).tolist()
    [[0.0, 0.0], [0.0, 0.25], [1.0, 0.5], [1.0, 1.0]]
    """
    published = {
        part.name: (part.codes, [str(value) for value in part.values])
        for part in recoder_named("cover").publish(data, coded.partition)
        if part.name not in coded.raw_columns
    }
    out = []
    for column in table.frame.iter_columns():
        if column.name == target:
            continue
        if column.name in published:
            codes, texts = published[column.name]
            _, place = np.unique(texts, return_inverse=True)
            values = place[codes].astype(np.float64)
        elif table.schema.columns[column.name].kind == "numeric":
            values = column.cast(pl.Float64).to_numpy()
        else:
            values = column.cast(pl.String).rank("dense").to_numpy().astype(np.float64)
        out.append((values - values.min()) / max(float(np.ptp(values)), 1e-12))
    return np.asarray(np.stack(out, axis=1), dtype=np.float32)


@njit(cache=True)
def _width_of(places: FloatArray, centres: FloatArray) -> tuple[npt.NDArray[np.int64], float]:
    """(each row's nearest centre, the summed width of the clusters' boxes, each weighted by its rows)."""
    rows, width = places.shape
    count = centres.shape[0]
    labels = np.empty(rows, dtype=np.int64)
    sizes = np.zeros(count, dtype=np.int64)
    low = np.full((count, width), np.inf)
    high = np.full((count, width), -np.inf)
    for row in range(rows):
        nearest, least = 0, np.inf
        for at in range(count):
            distance = 0.0
            for axis in range(width):
                apart = places[row, axis] - centres[at, axis]
                distance += apart * apart
                if distance >= least:  # already farther than the nearest so far
                    break
            if distance < least:
                nearest, least = at, distance
        labels[row] = nearest
        sizes[nearest] += 1
        for axis in range(width):
            low[nearest, axis] = min(low[nearest, axis], places[row, axis])
            high[nearest, axis] = max(high[nearest, axis], places[row, axis])
    total = 0.0
    for at in range(count):
        if sizes[at]:
            for axis in range(width):
                total += sizes[at] * (high[at, axis] - low[at, axis])
    return labels, total
