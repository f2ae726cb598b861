"""Figures 3 to 12 of GOK-Privacy: accuracy and F1 of five models by k, on the tables at hand.

The paper's own data, traffic of an intensive care unit (Hussain et al. 2021), is not ours to hand on: put
`icu/icu.csv` below the data folder, made of the archive's Attack, environmentMonitoring and patientMonitoring files one
below the other. The paper prints no numbers; what its text says, of that data, stands in the column *published*. Models
have the parameters of the published code where velado's models have them (not the perceptron's second layer).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable, encode
from velado.data.partition import Partition
from velado.data.schema import Column, Schema
from velado.measures.models._model import Model, require
from velado.measures.models.encoder import fit_encoder
from velado.measures.models.model_registry import KNN, MLP, DecisionTree, GaussianNB, RandomForest
from velado.measures.models.quality import IntVector, fit_and_predict
from velado.papers.model_trials import Asked, ModelTrial
from velado.papers.paper_registry import (
    ADULT_FILES,
    AS_IN_PAPER,
    HONEST,
    PAPER,
    PUBLISHED,
    Cell,
    Reproduced,
    Reproduction,
    adult_schema,
    numeric_schema,
    short,
)
from velado.randomness import seeded
from velado.release.goal import Progress
from velado.release.methods import GOK, Method, Mondrian, TopDownGreedy
from velado.release.recoders import recoder_named

# GOK-Privacy and its two baselines as their published code behaves, and the folds it was judged by.
#
# Retold from what that code was found to do, not from its lines. GOK: max(5, k) random centres whatever the number of
# rows; the best of a random troop wins at once, because every gorilla jumps onto it in the first iteration; each record
# goes to its nearest centre; **a cluster with fewer than k records is published raw**. Top-down never splits, so every
# record is published as the whole domain. Mondrian cuts one column only. The output is ordered by cluster, and the two
# folds of the cross-validation are not shuffled. None of it promises anything.

_TROOP = 20
_FEWEST_CENTRES = 5


@dataclass(frozen=True, repr=False)
class Coded:
    """A release by the published code: each row's group, and which rows were published as they are.

    >>> Coded(Partition.of(np.array([0, 0, 1])), np.array([False, False, True])).raw.sum()
    np.int64(1)
    """

    partition: Partition
    raw: npt.NDArray[np.bool_]


def gok(data: EncodedTable, k: int, random: np.random.Generator) -> Coded:
    """The nearest of max(5, k) random centres; the troop's best by mean width; clusters below k raw. O(n k d).

    >>> from velado.testing.factory import small_table
    >>> data = encode(small_table(age=("quasi", "numeric", "20 21 30 31")))
    >>> gok(data, 3, seeded(0)).raw.size
    4
    """
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
    """All rows in one class.

    >>> from velado.testing.factory import small_table
    >>> data = encode(small_table(age=("quasi", "numeric", "20 21 30 31")))
    >>> top_down(data, 2, seeded(0)).partition.count
    1
    """
    return Coded(Partition.of(np.zeros(data.rows, dtype=np.int64)), np.zeros(data.rows, dtype=np.bool_))


def mondrian(data: EncodedTable, k: int, random: np.random.Generator) -> Coded:
    """The column with most values cut at its median again and again, equal values kept together.

    >>> from velado.testing.factory import small_table
    >>> data = encode(small_table(age=("quasi", "numeric", "20 21 30 31")))
    >>> mondrian(data, 2, seeded(0)).partition.labels.tolist()
    [1, 1, 0, 0]
    """
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

    >>> from velado.testing.factory import small_table
    >>> data = encode(small_table(age=("quasi", "numeric", "20 21 30 31")))
    >>> from velado.measures.models.model_registry import Majority
    >>> truth, answers = asked_in_folds(data, top_down(data, 2, seeded(0)), np.array([0, 1, 0, 1]), 2, Majority())
    >>> truth.size, answers.size
    (4, 4)
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


SOURCE = "Pimenta et al. 2025, Anonimização de dados para inteligência artificial usando o algoritmo da tropa dos gorilas"
KS = (5, 10, 25, 50)
QUICK_KS = (10, 50)

Code = Callable[[EncodedTable, int, np.random.Generator], Coded]
METHODS: dict[str, tuple[Code, Method]] = {
    "GOK-Privacy": (gok, GOK()),
    "Top-Down": (top_down, TopDownGreedy()),
    "Mondrian": (mondrian, Mondrian()),
}
"""Each method as the published code behaves, and velado's own of that name."""


@dataclass(frozen=True)
class GokData:
    """A table, its quasi-identifiers and its target; *large* ones are thinned in a quick run.

    >>> [one.name for one in DATA_SETS]
    ['adult', 'cmc', 'mgm', 'cahousing', 'icu']
    """

    name: str
    title: str
    needs: tuple[str, ...]
    quasi: Schema
    target: str
    large: bool = False

    def trial(self, data: Path, quick: bool) -> ModelTrial:
        """The table and its split."""
        columns = {**self.quasi.columns, self.target: Column(self.target, "sensitive", "categorical")}
        return ModelTrial.of(data, self.needs[0], Schema(columns), self.target, quick and self.large)


_TOPICS = ("ip.src", "ip.dst", "mqtt.topic")
_COUNTS = ("tcp.srcport", "tcp.dstport", "frame.time_relative", "frame.len", "mqtt.topic_len")
DATA_SETS = (
    GokData("adult", "Adult", ADULT_FILES, adult_schema(), "income", large=True),
    GokData(
        "cmc",
        "contraceptive method choice",
        ("uci/cmc.csv",),
        numeric_schema("age", "Weducation", "children"),
        "method",
    ),
    GokData(
        "mgm",
        "mammographic masses",
        ("uci/mgm.csv",),
        numeric_schema("bi_rads_assessment", "age", "shape", "margin", "density"),
        "severity",
    ),
    GokData(
        "cahousing",
        "California housing",
        ("uci/cahousing.csv",),
        numeric_schema("longitude", "latitude", "housing_median_age", "median_income", "median_house_value"),
        "ocean_proximity",
        large=True,
    ),
    GokData(
        "icu",
        "traffic of an intensive care unit",
        ("icu/icu.csv",),
        Schema(
            {name: Column(name, "quasi", "categorical") for name in _TOPICS}
            | {name: Column(name, "quasi", "numeric") for name in _COUNTS}
        ),
        "label",
        large=True,
    ),
)


def accuracy(truth: IntVector, answers: IntVector) -> float:
    """The share of right answers.

    >>> accuracy(np.array([1, 0, 1]), np.array([1, 1, 1]))
    0.6666666666666666
    """
    return float((truth == answers).mean())


def weighted_f1(truth: IntVector, answers: IntVector) -> float:
    """The F1 of every class, weighted by how many rows have it.

    >>> weighted_f1(np.array([1, 0, 1]), np.array([1, 1, 1]))
    0.5333333333333333
    """
    total = 0.0
    for one in np.unique(truth):
        said, true = answers == one, truth == one
        right = int((said & true).sum())
        total += float(true.sum()) * 2 * right / max(int(said.sum() + true.sum()), 1)
    return total / truth.size


Score = Callable[[IntVector, IntVector], float]
_TREE, _BAYES, _FOREST = DecisionTree(leaf=1), GaussianNB(smoothing=0.01), RandomForest(leaf=1)
_NEAREST, _NETWORK = KNN(neighbours=5), MLP(hidden=100)
FIGURES: dict[int, tuple[Model, str, Score]] = {
    3: (_TREE, "F1", weighted_f1),
    4: (_TREE, "accuracy", accuracy),
    5: (_BAYES, "F1", weighted_f1),
    6: (_BAYES, "accuracy", accuracy),
    7: (_FOREST, "F1", weighted_f1),
    8: (_FOREST, "accuracy", accuracy),
    9: (_NEAREST, "accuracy", accuracy),
    10: (_NEAREST, "F1", weighted_f1),
    11: (_NETWORK, "F1", weighted_f1),
    12: (_NETWORK, "accuracy", accuracy),
}
RAW = "records published raw, paper profile"
COLUMNS = ("k", "method", PUBLISHED, PAPER, f"{PAPER}, folds shuffled", HONEST, RAW)


@dataclass(frozen=True)
class Cells:
    """One method at one k: the score in the paper's folds, in shuffled ones, on true rows; records published raw.

    >>> Cells(5, "Mondrian", paper=0.7, shuffled=0.6, honest=0.5, raw=0).honest
    0.5
    """

    k: int
    method: str
    paper: float
    shuffled: float
    honest: float
    raw: int


def figures(
    data: Path, progress: Progress, data_set: GokData, quick: bool, wanted: Sequence[int]
) -> dict[int, Reproduced]:
    """The *wanted* figures on one table; each release is made once, and each model taught once, for all of them.

    >>> from velado.release.goal import silent
    >>> some = DATA_SETS[0]
    >>> figures(Path("no such folder"), silent, some, quick=True, wanted=())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.TaxonomyError: ...
    """
    models = {FIGURES[figure][0].name: FIGURES[figure][0] for figure in wanted}
    for model in models.values():
        require(model)
    trial = data_set.trial(data, quick)
    table = encode(trial.table)
    encoder = fit_encoder(trial.table, trial.target)
    labels, classes = encoder.labels(trial.table.frame), len(encoder.classes)
    original = {name: trial.on_true_rows(None, model) for name, model in models.items()}
    found: dict[int, list[Cells]] = {figure: [] for figure in wanted}
    ks = QUICK_KS if quick else KS
    for at, k in enumerate(ks):
        for number, (name, (code, method)) in enumerate(METHODS.items()):
            progress((at + number / len(METHODS)) / len(ks), f"{name}, k = {k}")
            coded = code(table, k, seeded(0, name, str(k)))
            taught = trial.taught(method, k)
            for model in models.values():
                paper = asked_in_folds(table, coded, labels, classes, model)
                shuffled = asked_in_folds(table, coded, labels, classes, model, seeded(0, "folds"))
                honest = trial.on_true_rows(taught, model)
                for figure in wanted:
                    if FIGURES[figure][0] == model:
                        score = FIGURES[figure][2]
                        scores = (score(*paper), score(*shuffled), score(honest.truth, honest.answers.labels))
                        found[figure].append(Cells(k, name, *scores, int(coded.raw.sum())))
    return {
        figure: _table(figure, found[figure], original[FIGURES[figure][0].name], trial, data_set, quick)
        for figure in wanted
    }


def _why(found: Sequence[Cells], records: int, column: str) -> str:
    """Why the columns differ, in the numbers of this very table, at its largest k."""
    last = max(one.k for one in found)
    gok, top, mondrian = (
        next(one for one in found if one.k == last and one.method == name) for name in METHODS
    )
    return (
        f"Why they differ: at k = {last} GOK-Privacy as coded publishes {gok.raw:,} of {records:,} records raw and scores "
        f"{gok.paper:.3f} in folds that follow its clusters, {gok.shuffled:.3f} when the same folds are shuffled; velado's, "
        f"which keeps k and is asked about true rows, scores {gok.honest:.3f}. Top-Down as coded makes one class of all "
        f"records, so that only the commonest answer can be learned ({top.paper:.3f}; velado's {top.honest:.3f}), and "
        f"Mondrian as coded cuts '{column}' alone ({mondrian.paper:.3f}, shuffled {mondrian.shuffled:.3f}; velado's "
        f"{mondrian.honest:.3f})."
    )


def said_of(method: str, model: Model) -> str:
    """What the text says of a method's scores with a model.

    >>> said_of("Mondrian", KNN())
    '0.55 to 0.75'
    """
    if method == "GOK-Privacy":
        return "0.90 to 0.95"
    if method == "Mondrian":
        return "0.55 to 0.75"
    if model.name == "decision-tree":
        return "about 0.65"
    return "between the two" if model.name == "random-forest" else "close to GOK-Privacy"


def _table(
    figure: int, found: Sequence[Cells], original: Asked, trial: ModelTrial, data_set: GokData, quick: bool
) -> Reproduced:
    model, _, score = FIGURES[figure]
    majority = np.full_like(original.truth, np.bincount(original.truth).argmax())
    alone = score(original.truth, original.answers.labels)
    rows: list[tuple[Cell, ...]] = [
        ("-", "majority class", None, None, None, score(original.truth, majority), None),
        ("-", "original data", None, None, None, alone, None),
    ]
    of_icu = "" if data_set.name == "icu" else " (ICU)"
    for one in found:
        published = f"{said_of(one.method, model)}{of_icu}"
        rows.append((str(one.k), one.method, published, one.paper, one.shuffled, one.honest, one.raw))
    column = max(encode(trial.table).columns, key=lambda part: part.size).name
    note = (
        f"{_why(found, trial.table.rows, column)} The published words are about the ICU data. {trial.table.rows:,} records, "
        f"one split with {trial.test.size:,} test rows."
    )
    return Reproduced(COLUMNS, tuple(rows), note + short(quick and data_set.large), AS_IN_PAPER)


def _one(data: Path, progress: Progress, data_set: GokData, figure: int, quick: bool) -> Reproduced:
    return figures(data, progress, data_set, quick, (figure,))[figure]


def _all(data: Path, progress: Progress, quick: bool, data_set: GokData) -> Mapping[str, Reproduced]:
    made = figures(data, progress, data_set, quick, tuple(FIGURES))
    return {f"gok-figure-{figure}-{data_set.name}": one for figure, one in made.items()}


def _reproductions(data_set: GokData) -> list[Reproduction]:
    return [
        Reproduction(
            f"gok-figure-{figure}-{data_set.name}",
            SOURCE,
            f"Figure {figure}: {model.title}, {measure} by k ({data_set.title})",
            data_set.needs,
            partial(_one, data_set=data_set, figure=figure, quick=False),
            partial(_one, data_set=data_set, figure=figure, quick=True),
            partial(_all, data_set=data_set),
        )
        for figure, (model, measure, _) in FIGURES.items()
    ]


REPRODUCTIONS = tuple(one for data_set in DATA_SETS for one in _reproductions(data_set))
