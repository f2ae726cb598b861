"""How good a model's answers are: accuracy, precision, recall, F1, area under the curve, log loss, with intervals.

What cannot be said of these answers is None and has its reason; nothing is ever replaced by a zero in silence.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError
from velado.measures.models._model import Model, require
from velado.measures.models.encoder import FloatMatrix, Ranges
from velado.text import say

QUALITIES = ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "auc", "log_loss")
"""The measures of `Quality`, by name; all but log_loss are better when larger."""


@dataclass(frozen=True, kw_only=True)
class Quality:
    """The scores of one model on one test part, and its majority rate: what always saying the commonest class gives.

    With a *positive* class, precision, recall and F1 are that class's; else they are means over the classes that
    occur among true or given answers ("macro"), a class never answered counting precision 0. *auc* of several
    classes is the mean of one class against the rest, over classes that some but not all rows have.

    >>> answers = Predictions(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]]), True, 0.0)
    >>> quality(np.array([0, 1]), answers).accuracy
    1.0
    """

    rows: int
    majority: float
    accuracy: float
    balanced_accuracy: float
    precision: float
    recall: float
    f1: float
    auc: float | None
    log_loss: float | None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Interval:
    """A mean with the interval that holds the true one with the stated confidence; None where it cannot be said.

    *error* is the standard error that the interval was made from, *count* how many values.

    >>> Interval(0.8, 0.7, 0.9).ends, UNKNOWN.mean
    ((0.8, 0.7, 0.9), None)
    """

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    count: int = 0
    error: float | None = None

    @property
    def alone(self) -> Interval:
        """The mean without an interval, where there is nothing to be unsure of."""
        return Interval(self.mean, count=self.count)

    @property
    def ends(self) -> tuple[float | None, float | None, float | None]:
        """Mean, low and high."""
        return self.mean, self.low, self.high


UNKNOWN = Interval()
"""What nothing is known of."""


def quality(truth: IntVector, answers: Predictions, positive: int | None = None) -> Quality:
    """*answers* scored against *truth*, both class numbers. O(rows log rows) for each class's curve.

    >>> answers = Predictions(np.array([0, 0]), np.array([[0.9, 0.1], [0.6, 0.4]]), True, 0.0)
    >>> quality(np.array([0, 1]), answers).recall
    0.5
    """
    classes = answers.scores.shape[1]
    confusion = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(confusion, (truth, answers.labels), 1)
    hits, true, given = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    rows = int(true.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(given > 0, hits / given, 0.0)
        recall = np.where(true > 0, hits / true, 0.0)
        f1 = np.where(true + given > 0, 2 * hits / (true + given), 0.0)
    occurring = (true > 0) | (given > 0)
    pick = occurring if positive is None else np.arange(classes) == positive
    reasons: dict[str, str] = {}
    loss: float | None = None
    if answers.probabilities:
        loss = log_loss(truth, answers.scores)
    else:
        reasons["log_loss"] = say("The model gives scores, no probabilities.")
    area = curve_area(truth, answers.scores, positive)
    if area is None:
        reasons["auc"] = say("The test rows hold a single class.")
    return Quality(
        rows=rows,
        majority=float(true.max() / rows),
        accuracy=float(hits.sum() / rows),
        balanced_accuracy=float(recall[true > 0].mean()),
        precision=float(precision[pick].mean()),
        recall=float(recall[pick].mean()),
        f1=float(f1[pick].mean()),
        auc=area,
        log_loss=loss,
        reasons=reasons,
    )


def log_loss(truth: IntVector, scores: npt.NDArray[np.float64]) -> float:
    """Mean of -ln p(true class); a probability is at least 1e-15, so that one sure mistake does not hide the rest.

    >>> round(log_loss(np.array([0]), np.array([[0.5, 0.5]])), 4)
    0.6931
    """
    total = scores.sum(axis=1)
    chance = scores[np.arange(truth.size), truth] / np.where(total > 0, total, 1.0)
    return float(-np.log(np.clip(chance, 1e-15, 1.0)).mean())


def curve_area(
    truth: IntVector, scores: npt.NDArray[np.float64], positive: int | None = None
) -> float | None:
    """Chance that a row of the class scores above one of the rest, ties a half: area under the ROC curve.

    Two classes: that of *positive* (or the second). More: the mean over the classes. None where a test part has
    one class only.

    >>> curve_area(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]]))
    1.0
    """
    classes = scores.shape[1]
    if classes == 2 or positive is not None:
        asked = [classes - 1 if positive is None else positive]
    else:
        asked = list(range(classes))
    areas = [_area(truth == number, scores[:, number]) for number in asked]
    known = [area for area in areas if area is not None]
    return float(np.mean(known)) if known else None


def _area(yes: npt.NDArray[np.bool_], score: npt.NDArray[np.float64]) -> float | None:
    first, second = int(yes.sum()), int((~yes).sum())
    if not first or not second:
        return None
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    rank = (last - (counts - 1) / 2)[place]  # the mean rank among equal scores, from 1
    return float((rank[yes].sum() - first * (first + 1) / 2) / (first * second))


LEAST_VALUES = 3
"""Fewer repetitions show no interval: two have one that is thirteen standard errors wide on either side."""


def interval(
    values: Sequence[float], confidence: float = 0.95, overlap: float = 0.0, asked: int | None = None
) -> Interval:
    """Mean of *values* over seeds with the corrected resampled interval; fewer than three have none.

    mean +- t s sqrt(1/J + *overlap*) for J values, t with J - 1 degrees of freedom (Nadeau and Bengio 2003, *Machine
    Learning* 52, eq. 10). *overlap* is n_test / n_train: seeds split one table, so their test parts share rows, and values
    of J seeds say less than J values of J tables would. With 0 it is Student's, for values that share nothing but what
    they are about.

    *asked* says that the values are differences of two shares of so many test rows. Such a difference d is at least |d| times so many rows on which
    the two answer unlike, so that its deviation is at least sqrt(|d| / asked), and never less than that of one row: few seeds that happen to
    agree do not make it certain.

    >>> interval([0.5]), interval([])
    (Interval(mean=0.5, low=None, high=None, count=1, error=None), Interval(mean=None, low=None, high=None, count=0, error=None))
    >>> round(interval([0.1, 0.2, 0.3], overlap=1 / 3).error, 4)
    0.0816
    """
    from scipy.stats import t

    if not values:
        return UNKNOWN
    numbers = np.asarray(values, dtype=np.float64)
    mean = float(numbers.mean())
    if numbers.size < LEAST_VALUES:
        return Interval(mean, count=int(numbers.size))
    spread = float(numbers.std(ddof=1))
    if asked:
        spread = max(spread, math.sqrt(max(abs(mean), 1 / asked) / asked))
    error = spread * math.sqrt(1 / numbers.size + overlap)
    half = float(t.ppf((1 + confidence) / 2, numbers.size - 1)) * error
    return Interval(mean, mean - half, mean + half, int(numbers.size), error)


def bootstrap_interval(
    share: float, rows: int, random: np.random.Generator, confidence: float = 0.95, draws: int = 2000
) -> Interval:
    """The *share* of *rows* test rows that were answered rightly, with its percentile bootstrap interval. O(draws).

    For a single seed: it speaks of other test rows, not of other splits or random choices.

    >>> bootstrap_interval(1.0, 40, np.random.default_rng(0)).low
    1.0
    """
    # The mean of a resample of yes/no values is a binomial share, so that no row has to be drawn.
    shares = random.binomial(rows, share, size=draws) / rows
    low, high = np.quantile(shares, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(share, float(low), float(high), rows)


# One model fitted on encoded rows and asked about others; what goes wrong becomes a sentence, never a hole.

IntVector = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Predictions:
    """What a model answered: a class per row, and a score per row and class.

    *probabilities* says whether the scores are probabilities; the scores of a support vector machine are
    distances. Classes the training rows did not hold have score 0 (or the least score of the row).

    >>> Predictions(np.array([0, 1]), np.eye(2), True, 0.0)
    Predictions(rows=2, classes=2)
    """

    labels: IntVector
    scores: npt.NDArray[np.float64]
    probabilities: bool
    seconds: float

    def __repr__(self) -> str:
        return f"Predictions(rows={self.labels.size}, classes={self.scores.shape[1]})"


def fit_and_predict(
    model: Model,
    features: FloatMatrix,
    labels: IntVector,
    asked: FloatMatrix,
    classes: int,
    seed: int,
    ranges: Ranges | None = None,
) -> Predictions:
    """*model* taught with *features* and *labels*, and its answers for the rows of *asked*. One thread, repeatable.

    Class numbers run to *classes*, also those that no training row has. A training part with a single class
    teaches nothing and is refused. With *ranges* (the encoder's) features are brought to one size by what they can be;
    without, by how much they vary among the rows that teach.

    >>> from velado.measures.models.model_registry import DecisionTree
    >>> rows, labels = np.array([[0.0], [1.0]], dtype=np.float32), np.array([0, 1])
    >>> fit_and_predict(DecisionTree(leaf=1), rows, labels, rows, classes=2, seed=0).labels
    array([0, 1])
    """
    require(model)
    start = time.process_time()
    present, numbers = np.unique(labels, return_inverse=True)
    if present.size < 2 and model.name != "majority":
        raise ParameterError(
            say("The training rows hold {size} of {classes} classes.", size=present.size, classes=classes),
            "A model cannot learn to tell classes apart that it never saw.",
            "Use more rows, a larger training part, or another target.",
        )
    if ranges is not None and model.scaled:
        features, asked = ranges.unit(features), ranges.unit(asked)
    estimator = model.estimator(seed) if ranges is None else model.estimator(seed, ranges.columns)
    neighbours = getattr(model, "neighbours", None)
    if neighbours is not None and neighbours > labels.size:
        raise ParameterError(
            say(
                "'{model}' asks {neighbours} neighbours, but there are {size} training rows.",
                model=model.name,
                neighbours=neighbours,
                size=labels.size,
            ),
            "There are not that many to ask.",
            "Lower 'neighbours', or use more rows.",
        )
    with warnings.catch_warnings():
        # A model that stopped before it converged is still the model that was asked for; its score says how good it is.
        warnings.simplefilter("ignore")
        estimator.fit(features, numbers)
        probabilities = hasattr(estimator, "predict_proba")
        raw = estimator.predict_proba(asked) if probabilities else estimator.decision_function(asked)
    raw = np.asarray(raw, dtype=np.float64)
    if raw.ndim == 1:  # a machine that separates two classes gives one distance
        raw = np.stack([-raw, raw], axis=1)
    least = np.zeros((asked.shape[0], 1)) if probabilities else raw.min(axis=1, keepdims=True)
    scores = np.repeat(least, classes, axis=1)
    scores[:, present] = raw
    answers = present[np.argmax(raw, axis=1)]
    return Predictions(answers.astype(np.int64), scores, probabilities, time.process_time() - start)
