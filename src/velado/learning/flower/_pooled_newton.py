"""Logistic regression by Newton's method over sums: the pooled optimum, however unlike the clients' rows are.

At common weights w every client sums over its rows

    n,  sum_j -ln p(y_j | x_j, w),  the slope of that sum,  its curvature,

and the server, who sees the sums over all clients alone, takes Newton's step on f(w) = (1/n) sum_j -ln p + (penalty/2) |w|^2
(the intercept is not penalised). The sums are those of the pooled rows, so the steps and their end are those of scikit-learn on
the pooled rows with C = 1 / (penalty n); averaging models (FedAvg) ends elsewhere where clients differ. Five to ten rounds are
usual; a step that makes f larger is halved.

Figures travel as whole multiples of 2^-b, b as large as 64 bits allow for all clients together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.learning.flower._logistic import Weights
from velado.learning.flower._masking import Figures
from velado.learning.flower._terms import Agreed
from velado.learning.flower.flower_records import Probabilities, softmax
from velado.measures.models.quality import log_loss
from velado.text import say

Floats = npt.NDArray[np.float64]
IntVector = npt.NDArray[np.int64]
MOST_LOSS = 64.0
"""A row's loss counts with at most so much; a probability of e^-64 is none that a model should give."""
BINS = 200
"""Bins of a probability, for an AUC that needs no client's own scores; it is off by less than 0.005."""
CLOSE = 1e-9
"""Of the decrease that Newton's step still promises, for one row; smaller ones end the run."""


def figure_count(agreed: Agreed) -> int:
    """How many figures a client sums in a round: rows, loss, slope, and the upper half of the curvature."""
    size = _size(agreed)
    return 2 + size + size * (size + 1) // 2


def score_count(agreed: Agreed) -> int:
    """Held-out rows, right answers, their loss, the rows of each class, and for two classes where their chances lie."""
    return 3 + agreed.classes + (2 * BINS if agreed.classes == 2 else 0)


def figures_at(weights: Weights, scaled: Floats, labels: IntVector, agreed: Agreed) -> Figures:
    """A client's figures at *weights*. O(rows x features^2) for two classes."""
    rows = np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1)
    chances = softmax(rows @ weights)
    loss = np.minimum(-np.log(np.clip(chances[np.arange(labels.size), labels], 1e-300, None)), MOST_LOSS)
    if agreed.classes == 2:
        likely = chances[:, 1]
        slope = rows.T @ (likely - labels)
        curvature = (rows * (likely * (1 - likely))[:, None]).T @ rows
    else:
        slope = (rows.T @ (chances - np.eye(agreed.classes)[labels])).ravel()
        curvature = _softmax_curvature(rows, chances)
    upper = curvature[np.triu_indices(len(slope))]
    return _whole(np.concatenate([[labels.size, loss.sum()], slope, upper]), agreed)


def scores_of(chances: Probabilities, truth: IntVector, agreed: Agreed) -> Figures:
    """A client's counts and loss over its own held-out rows."""
    counts = np.bincount(truth, minlength=agreed.classes)
    right, loss = 0, 0.0
    if truth.size:
        right = int((np.argmax(chances, axis=1) == truth).sum())
        loss = min(log_loss(truth, chances), MOST_LOSS) * truth.size
    parts = [np.array([truth.size, right, loss]), counts]
    if agreed.classes == 2:
        place = np.minimum((chances[:, 1] * BINS).astype(np.int64), BINS - 1)
        parts += [np.bincount(place[truth == one], minlength=BINS) for one in (0, 1)]
    return _whole(np.concatenate(parts), agreed)


def binned_area(counts: Floats) -> float | None:
    """The area under the ROC curve from how many rows of either class fall into each bin; ties of a bin count half."""
    no, yes = counts[:BINS], counts[BINS:]
    if no.sum() < 0.5 or yes.sum() < 0.5:
        return None
    below = np.cumsum(no) - no
    return float((yes @ (below + no / 2)) / (yes.sum() * no.sum()))


def real(figures: Figures, agreed: Agreed) -> Floats:
    """Whole figures in their own units again."""
    return np.asarray(figures / 2.0 ** _bits(agreed), dtype=np.float64)


def _softmax_curvature(rows: Floats, chances: Probabilities) -> Floats:
    """sum_j (diag(p_j) - p_j p_j') x (x_j x_j'), ordered as the ravelled weights are: feature by feature, class by class."""
    width, classes = rows.shape[1], chances.shape[1]
    out = np.zeros((width, classes, width, classes))
    for one in range(classes):
        for other in range(one, classes):
            weight = chances[:, one] * ((one == other) - chances[:, other])
            out[:, one, :, other] = out[:, other, :, one] = (rows * weight[:, None]).T @ rows
    return out.reshape(width * classes, width * classes)


def _size(agreed: Agreed) -> int:
    return (agreed.features + 1) * (1 if agreed.classes == 2 else agreed.classes)


def _bits(agreed: Agreed) -> int:
    most = agreed.federation.clients * agreed.federation.most_rows * MOST_LOSS
    return max(0, 61 - math.ceil(math.log2(most)))


def _whole(values: Floats, agreed: Agreed) -> Figures:
    most = agreed.federation.most_rows * MOST_LOSS
    return np.asarray(np.rint(np.clip(values, -most, most) * 2.0 ** _bits(agreed)), dtype=np.int64)


@dataclass(frozen=True)
class PooledFigures:
    """The sums over all clients at one point."""

    rows: float
    loss: float
    slope: Floats
    curvature: Floats

    @classmethod
    def of(cls, figures: Figures, agreed: Agreed) -> PooledFigures:
        """From the summed figures."""
        values, size = real(figures, agreed), _size(agreed)
        upper = np.zeros((size, size))
        upper[np.triu_indices(size)] = values[2 + size :]
        return cls(
            float(values[0]),
            float(values[1]),
            values[2 : 2 + size],
            upper + upper.T - np.diag(np.diag(upper)),
        )

    def fault(self, announced: int, features: float) -> str:
        """Why rows of features from -1 to 1 cannot have given these sums, or nothing.

        This is all that can be checked of what is masked: the sum itself. A client that keeps within what rows could give,
        by flipping its labels for instance, is not seen.
        """
        slack = 1e-6 * (1 + self.rows)
        if abs(self.rows - announced) > 0.5:
            return say("the sums are over other rows than the clients announced")
        if not -slack <= self.loss <= MOST_LOSS * self.rows + slack:
            return say("no rows could have the summed loss")
        if np.abs(self.slope).max() > features * self.rows + slack:
            return say("no rows could have the summed slope")
        most = np.diag(self.curvature)
        least = float(np.linalg.eigvalsh(self.curvature)[0])
        if least < -slack or most.max() > features * features * self.rows / 4 + slack:
            return say("no rows could have the summed curvature")
        return ""


class PooledNewton:
    """The server's point, and the next one after each sum."""

    def __init__(self, agreed: Agreed, weights: Weights) -> None:
        self._penalty = agreed.federation.penalty
        self.weights = weights
        self.finished = False
        self._best: tuple[float, Weights] | None = None

    def take(self, pooled: PooledFigures) -> None:
        """The weights are the next point; *finished* says that it is the optimum to all digits that matter."""
        flat, rows = self.weights.ravel(), max(pooled.rows, 1.0)
        penalised = np.full(self.weights.shape, self._penalty)
        penalised[-1] = 0.0
        weight = penalised.ravel()
        height = pooled.loss / rows + float(weight @ flat**2) / 2
        if self._best is not None and height > self._best[0] + 1e-9:
            self.weights = (self.weights + self._best[1]) / 2
            return
        self._best = (height, self.weights)
        slope = pooled.slope / rows + weight * flat
        # The tiny ridge settles what no row does: a class that nobody has, and a constant added to all classes.
        curvature = pooled.curvature / rows + np.diag(weight + 1e-9)
        step = np.linalg.solve(curvature, slope)
        self.weights = (flat - step).reshape(self.weights.shape)
        self.finished = float(slope @ step) / 2 < CLOSE
