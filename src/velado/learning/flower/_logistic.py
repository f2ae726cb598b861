"""FedAvg of a logistic regression: arrays in, arrays out.

Clients minimise, from the common weights w on, their own

    f_i(w) = (1/n_i) sum_j -ln p(y_j | x_j, w) + (penalty/2) |w|^2      (the intercept is not penalised)

by a few steps of L-BFGS, and the server averages, w <- sum_i (n_i/n) w_i over those that answered (McMahan et al. 2017,
algorithm 1, with L-BFGS in place of stochastic gradients: no step size to tune, and a step costs milliseconds here).
sum_i (n_i/n) f_i is the pooled objective, so that one client alone reaches scikit-learn's solution with
C = 1 / (penalty n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError
from velado.learning.flower.flower_records import FloatMatrix, Probabilities, softmax
from velado.measures.models.encoder import Encoder

IntVector = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class FeatureScaling:
    """Features brought to -1..1 (numbers, places) or left in 0..1 (leaves, blanks) by public bounds alone.

    Nothing is read off rows: a mean or spread of one client's rows would be another scale at each client.
    """

    shift: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    def __call__(self, features: FloatMatrix) -> npt.NDArray[np.float64]:
        """The features, scaled."""
        return np.asarray((features - self.shift) / self.scale, dtype=np.float64)


def scaling_of(encoder: Encoder) -> FeatureScaling:
    """The scaling that follows from the encoder's declared bounds and trees."""
    spans = {}
    for column in encoder.columns:
        if column.points is None:
            most = column.size - 1 - (column.missing >= 0)
            spans[column.name] = (most / 2, max(most / 2, 1.0))
        else:
            real = column.points[: column.missing] if column.missing >= 0 else column.points
            middle = float(real[0] + real[-1]) / 2
            spans[column.name] = (middle, column.span / 2 if column.span > 0 else 1.0)
    shift, scale = np.zeros(len(encoder.names)), np.ones(len(encoder.names))
    for at, name in enumerate(encoder.names):
        column_name, colon, part = name.rpartition(":")
        if colon and part in ("low", "high", "middle") and column_name in spans:
            shift[at], scale[at] = spans[column_name]
    return FeatureScaling(shift, scale)


@dataclass(frozen=True, repr=False)
class LogisticModel:
    """Weights, features + 1 x 1 for two classes (log odds of the second), else x classes; the last row is the intercept."""

    weights: Weights
    scaling: FeatureScaling

    def probabilities(self, features: FloatMatrix) -> Probabilities:
        """softmax(x w + b)."""
        return scaled_probabilities(self.weights, self.scaling(features))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Weights and scaling."""
        return {"weights": self.weights, "shift": self.scaling.shift, "scale": self.scaling.scale}


def scaled_probabilities(weights: Weights, scaled: npt.NDArray[np.float64]) -> Probabilities:
    """softmax(x w + b) of features that are scaled already."""
    return softmax(scaled @ weights[:-1] + weights[-1])


def first_weights(features: int, classes: int) -> Weights:
    """All zero: every class equally likely."""
    return np.zeros((features + 1, 1 if classes == 2 else classes))


def improved(
    weights: Weights, scaled: npt.NDArray[np.float64], labels: IntVector, epochs: int, penalty: float
) -> Weights:
    """*weights* after at most *epochs* steps of L-BFGS on f_i. O(epochs x rows x features)."""
    from scipy.optimize import minimize
    from scipy.special import expit

    if not np.isfinite(weights).all():
        raise ParameterError(
            "The weights that were sent are not finite.",
            "Nothing can be learned from them.",
            "Ask the server.",
        )
    shape, count = weights.shape, labels.size
    rows, truth = np.arange(count), np.eye(max(shape[1], 2))[labels]

    def objective(flat: Weights) -> tuple[float, Weights]:
        current = flat.reshape(shape)
        margins = scaled @ current[:-1] + current[-1]
        if shape[1] == 1:
            # Two classes by their log odds: ln(1 + e^m) - y m, and its slope.
            loss = (np.logaddexp(0.0, margins) - truth[:, 1:] * margins).mean()
            wrong = (expit(margins) - truth[:, 1:]) / count
        else:
            chances = softmax(margins)
            loss = -np.log(np.clip(chances[rows, labels], 1e-300, None)).mean()
            wrong = (chances - truth) / count
        gradient = np.concatenate([scaled.T @ wrong + penalty * current[:-1], wrong.sum(axis=0)[None]])
        return float(loss + penalty / 2 * (current[:-1] ** 2).sum()), gradient.ravel()

    found = minimize(
        objective, weights.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": epochs, "gtol": 1e-9}
    )
    return np.asarray(found.x, dtype=np.float64).reshape(shape)


def average(parts: Sequence[tuple[Weights, int]]) -> Weights:
    """sum_i (n_i/n) w_i of (weights, rows); weights of another shape or not finite are refused."""
    shapes = {weights.shape for weights, _ in parts}
    if len(shapes) != 1 or not all(np.isfinite(weights).all() and rows > 0 for weights, rows in parts):
        raise ParameterError(
            "A client sent weights of another shape, not finite, or for no rows.",
            "Their average would mean nothing.",
            "Check that every client runs the same version.",
        )
    total = sum(rows for _, rows in parts)
    return np.asarray(sum(weights * (rows / total) for weights, rows in parts), dtype=np.float64)
