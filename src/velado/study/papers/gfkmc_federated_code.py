"""Federated training as the thesis's code does it, retold from what that code was found to do, not from its lines.

Each of ten clients publishes all its rows, numbers its own published words in the order of the alphabet (so that a number
means different words to different clients), takes the middle of an age's interval, and only then splits: seven tenths to
learn from, three to be asked about, both published. Logistic regression: one pass of SAGA a round over unscaled numbers,
coefficients averaged by rows, every client asked. XGBoost: two clients drawn at random grow a tree each on top of all trees
so far, and two clients drawn at random are asked, because a tenth of ten clients is raised to the least number, two.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.anonymize.recoded import PublishedColumn, Recoded
from velado.data.encode import EncodedColumn, EncodedTable
from velado.measure.models.registry import LogisticRegression, XGBoost, require
from velado.randomness import seeded

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
ASKED = 0.3
RATE, DEPTH, DRAWN = 0.1, 8, 2
"""XGBoost: learning rate, depth, and how many clients are drawn in a round."""


@dataclass(frozen=True, repr=False)
class Client:
    """The numbers a client made of its published rows, the part it learns from and the part it is asked about."""

    features: Floats
    labels: Integers
    asked_features: Floats
    asked_labels: Integers


@dataclass(frozen=True)
class Point:
    """The scores after a round: means over the clients asked, weighted by their rows."""

    accuracy: float
    auc: float
    loss: float


def client_of(data: EncodedTable, recoded: Recoded | None, labels: Integers, number: int) -> Client:
    """Client *number* with the rows of *data* as *recoded* publishes them; None: as they are."""
    if recoded is None:
        columns = [_raw(column) for column in data.columns]
    else:
        columns = [_numbered(*pair) for pair in zip(data.columns, recoded.columns, strict=True)]
    features = np.stack(columns, axis=1)
    order = seeded(0, "federated code", str(number)).permutation(labels.size)
    cut = int(np.ceil(ASKED * labels.size))
    asked, kept = order[:cut], order[cut:]
    return Client(features[kept], labels[kept], features[asked], labels[asked])


def logistic(clients: Sequence[Client], rounds: int) -> list[Point]:
    """Averaged logistic regression, the scores after every round. O(rounds x rows)."""
    require(LogisticRegression)
    width = clients[0].features.shape[1]
    weights, intercept = np.zeros((1, width)), np.zeros(1)
    sizes = np.array([one.labels.size for one in clients], dtype=np.float64)
    estimators = [_saga(number) for number in range(len(clients))]
    points = []
    for _ in range(rounds):
        found = [_pass(*pair, weights, intercept) for pair in zip(estimators, clients, strict=True)]
        weights = np.average([one for one, _ in found], axis=0, weights=sizes)
        intercept = np.average([one for _, one in found], axis=0, weights=sizes)
        margins = [one.asked_features @ weights[0] + intercept[0] for one in clients]
        points.append(_mean([_scored(*pair) for pair in zip(margins, clients, strict=True)], clients))
    return points


def boosted(clients: Sequence[Client], rounds: int) -> list[Point]:
    """Trees collected from two clients a round, the scores after every round on two clients. O(rounds x rows)."""
    require(XGBoost)
    xgboost = import_module("xgboost")
    random = seeded(0, "federated code", "drawn")
    matrices = [
        (xgboost.DMatrix(one.features, one.labels), xgboost.DMatrix(one.asked_features)) for one in clients
    ]
    # The first client's share of high incomes is where boosting starts, for all.
    drawn = random.choice(len(clients), DRAWN, replace=False)
    share = float(clients[drawn[0]].labels.mean())
    start = float(np.log(share / (1 - share)))
    learned = [np.full(one.labels.size, start) for one in clients]
    asked = [np.full(one.asked_labels.size, start) for one in clients]
    points = []
    for _ in range(rounds):
        trees = [_tree(xgboost, matrices[at][0], learned[at]) for at in drawn]
        for at, (known, unknown) in enumerate(matrices):
            for tree in trees:
                learned[at] = learned[at] + _grown(tree, known)
                asked[at] = asked[at] + _grown(tree, unknown)
        at_random = random.choice(len(clients), DRAWN, replace=False)
        chosen = [clients[at] for at in at_random]
        points.append(_mean([_scored(asked[at], clients[at]) for at in at_random], chosen))
        drawn = random.choice(len(clients), DRAWN, replace=False)
    return points


def _raw(column: EncodedColumn) -> Floats:
    if column.points is not None:
        return np.asarray(column.points[column.codes], dtype=np.float64)
    assert column.tree is not None
    return _by_alphabet([str(column.tree.labels[code]) for code in range(column.size)], column.codes)


def _numbered(column: EncodedColumn, part: PublishedColumn) -> Floats:
    if column.points is None:
        return _by_alphabet([str(value) for value in part.values], part.codes)
    if part.states_cover:
        middle = (column.points[part.low] + column.points[part.high]) / 2
        return np.asarray(middle[part.codes], dtype=np.float64)
    return np.asarray(np.array([float(str(value)) for value in part.values])[part.codes])


def _by_alphabet(texts: Sequence[str], codes: npt.NDArray[np.int32]) -> Floats:
    """Each row's word as its place among the words that this client has."""
    present = np.unique(codes)
    words = np.array(texts, dtype=object)[present].astype(str)
    _, places = np.unique(words, return_inverse=True)
    return np.asarray(places[np.searchsorted(present, codes)], dtype=np.float64)


def _saga(number: int) -> Any:
    made = import_module("sklearn.linear_model").LogisticRegression
    return made(solver="saga", max_iter=1, warm_start=True, random_state=number)


def _pass(estimator: Any, client: Client, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    estimator.coef_, estimator.intercept_ = weights.copy(), intercept.copy()
    estimator.classes_ = np.array([0, 1])
    with warnings.catch_warnings():
        # One pass is what is wanted, not convergence.
        warnings.simplefilter("ignore")
        estimator.fit(client.features, client.labels)
    return estimator.coef_.copy(), estimator.intercept_.copy()


def _tree(xgboost: Any, matrix: Any, margins: Floats) -> Any:
    matrix.set_base_margin(margins)
    settings = {
        "objective": "binary:logistic",
        "eta": RATE,
        "max_depth": DEPTH,
        "tree_method": "hist",
        "base_score": 0.5,  # the margins say where it starts
        "nthread": 1,
    }
    return xgboost.train(settings, matrix, num_boost_round=1)


def _grown(tree: Any, matrix: Any) -> Floats:
    """What one tree adds to every row's margin."""
    matrix.set_base_margin(np.zeros(matrix.num_row()))
    return np.asarray(tree.predict(matrix, output_margin=True), dtype=np.float64)


def _scored(margins: Floats, client: Client) -> Point:
    metrics = import_module("sklearn.metrics")
    truth = client.asked_labels
    chances = 1 / (1 + np.exp(-np.clip(margins, -500, 500)))
    return Point(
        float(((margins > 0) == (truth == 1)).mean()),
        float(metrics.roc_auc_score(truth, margins)),
        float(metrics.log_loss(truth, chances, labels=[0, 1])),
    )


def _mean(points: Sequence[Point], clients: Sequence[Client]) -> Point:
    rows = [one.asked_labels.size for one in clients]
    scores = np.array([[one.accuracy, one.auc, one.loss] for one in points])
    return Point(*(float(value) for value in np.average(scores, axis=0, weights=rows)))
