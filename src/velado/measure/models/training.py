"""One model fitted on encoded rows and asked about others; what goes wrong becomes a sentence, never a hole."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError
from velado.measure.models.encoder import FloatMatrix, Ranges
from velado.measure.models.registry import Model, require

IntVector = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Predictions:
    """What a model answered: a class per row, and a score per row and class.

    *probabilities* says whether the scores are probabilities; the scores of a support vector machine are
    distances. Classes the training rows did not hold have score 0 (or the least score of the row).
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
    """
    require(model)
    start = time.process_time()
    present, numbers = np.unique(labels, return_inverse=True)
    if present.size < 2 and model.name != "majority":
        raise ParameterError(
            f"The training rows hold {present.size} of {classes} classes.",
            "A model cannot learn to tell classes apart that it never saw.",
            "Use more rows, a larger training part, or another target.",
        )
    if ranges is not None and model.scaled:
        features, asked = ranges.unit(features), ranges.unit(asked)
    estimator = model.estimator(seed) if ranges is None else model.estimator(seed, ranges.columns)
    neighbours = getattr(model, "neighbours", None)
    if neighbours is not None and neighbours > labels.size:
        raise ParameterError(
            f"'{model.name}' asks {neighbours} neighbours, but there are {labels.size} training rows.",
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
