"""Logistic regression by a quasi-Newton method over sums: the pooled optimum, however unlike the clients' rows are.

At common weights w every client sums over its rows

    n,  sum_j -ln p(y_j | x_j, w),  the slope of that sum,  its curvature within each column and between it and the intercept,

and the server, who sees the sums over all clients alone, descends on f(w) = (1/n) sum_j -ln p + (penalty/2) |w|^2
(the intercept is not penalised) to the optimum of scikit-learn on the pooled rows with C = 1 / (penalty n); averaging models (FedAvg) ends elsewhere
where clients differ.

No sum is made over two columns at once: in most tables some value of the one and of the other meet in a single person, whose part the curvature
between them would be (`learning.census`). The server takes for it what independent columns would have, H_a0 H_00^+ H_0b from their sums with the
intercept, which leaves the whole positive: H_a0 H_00^+ H_0b and, on the diagonal, the Schur complements of the intercept. Where columns depend on one
another, the slopes of earlier rounds correct it (L-BFGS, Nocedal 1980). From eight to twenty rounds are usual, 13 on Adult, where Newton's method with
all of the curvature took 8; a step that makes f larger is halved.

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
WAVES = 24
"""Cosines of a score that are summed for each class, for an AUC that needs no client's own scores and no count of few rows; it is off by less than 0.005."""
CLOSE = 1e-9
"""Of the decrease that the step still promises, for one row; smaller ones end the run."""
REMEMBERED = 20
"""Earlier steps that correct the curvature."""


def figure_count(agreed: Agreed) -> int:
    """How many figures a client sums in a round: rows, loss, slope, and the curvature within columns."""
    return 2 + _size(agreed) + len(summed_pairs(agreed)[0])


def summed_pairs(agreed: Agreed) -> tuple[IntVector, IntVector]:
    """Which entries of the curvature are summed, by row and column of its upper half: two weights of one column's features, or of the intercept and any."""
    margins = 1 if agreed.classes == 2 else agreed.classes
    blocks = agreed.layout.blocks or [np.arange(agreed.features)]
    summed = np.zeros((agreed.features + 1, agreed.features + 1), dtype=bool)
    for block in blocks:
        summed[np.ix_(block, block)] = True
    summed[:, -1] = True
    rows, places = np.nonzero(np.triu(np.kron(summed, np.ones((margins, margins), dtype=bool))))
    return rows, places


def score_count(agreed: Agreed) -> int:
    """Held-out rows, right answers, their loss, the rows of each class, and for two classes the cosines of their scores."""
    return 3 + agreed.classes + (2 * WAVES if agreed.classes == 2 else 0)


def figures_at(weights: Weights, scaled: Floats, labels: IntVector, agreed: Agreed) -> Figures:
    """A client's figures at *weights*. O(rows x features^2) for two classes, of which only the summed entries leave."""
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
    within = curvature[summed_pairs(agreed)]
    return _whole(np.concatenate([[labels.size, loss.sum()], slope, within]), agreed)


def scores_of(chances: Probabilities, truth: IntVector, agreed: Agreed) -> Figures:
    """A client's counts and loss over its own held-out rows."""
    counts = np.bincount(truth, minlength=agreed.classes)
    right, loss = 0, 0.0
    if truth.size:
        right = int((np.argmax(chances, axis=1) == truth).sum())
        loss = min(log_loss(truth, chances), MOST_LOSS) * truth.size
    parts = [np.array([truth.size, right, loss]), counts]
    if agreed.classes == 2:
        waves = _waves(chances[:, 1])
        parts += [waves[truth == one].sum(axis=0) for one in (0, 1)]
    return _whole(np.concatenate(parts), agreed)


def _waves(likely: Floats) -> Floats:
    """sqrt(2) cos(pi k u) of every row, u the score brought to 0..1 so that small chances stay apart."""
    odds = np.log(np.clip(likely, 1e-12, 1 - 1e-12) / np.clip(1 - likely, 1e-12, 1 - 1e-12))
    spread = 1 / (1 + np.exp(-odds / 4))
    return np.asarray(np.sqrt(2) * np.cos(np.pi * np.outer(spread, np.arange(1, WAVES + 1))))


def summed_area(rows: Floats, waves: Floats) -> float | None:
    """The area under the ROC curve from the classes' rows and their summed cosines: both densities by their first terms.

    With f_c(u) = 1 + sum_k a_ck sqrt(2) cos(pi k u), a_ck the mean cosine, it is the integral of F_0 f_1, worked out term by term. Unlike a
    histogram it counts nowhere the rows of one class with one score.
    """
    if rows.min() < 0.5:
        return None
    no, yes = waves[:WAVES] / rows[0], waves[WAVES:] / rows[1]
    k = np.arange(1, WAVES + 1)
    odd = (1 - (-1.0) ** k) * np.sqrt(2) / (np.pi * k) ** 2
    one, other = np.meshgrid(k, k, indexing="ij")
    gap = np.where(one == other, 1, one**2 - other**2)
    both = np.where(one == other, 0.0, 2 * (1 - (-1.0) ** (one + other)) / (np.pi**2 * gap))
    return float(np.clip(0.5 + no @ odd - yes @ odd + no @ both @ yes, 0.0, 1.0))


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
        summed, upper = summed_pairs(agreed), np.zeros((size, size))
        upper[summed] = values[2 + size :]
        known = upper + upper.T - np.diag(np.diag(upper))
        margins = size // (agreed.features + 1)
        # Between columns: as if they were independent of one another.
        last = known[:, -margins:]
        curvature = last @ np.linalg.pinv(known[-margins:, -margins:], rcond=1e-8, hermitian=True) @ last.T
        curvature[summed] = upper[summed]
        curvature.T[summed] = upper[summed]
        return cls(float(values[0]), float(values[1]), values[2 : 2 + size], curvature)

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
        self._best: tuple[float, Weights, Floats] | None = None
        self._steps: list[tuple[Floats, Floats]] = []

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
        slope = pooled.slope / rows + weight * flat
        if self._best is not None:
            moved, turned = flat - self._best[1].ravel(), slope - self._best[2]
            if float(moved @ turned) > 1e-14:
                self._steps = [*self._steps, (moved, turned)][-REMEMBERED:]
        self._best = (height, self.weights, slope)
        # The tiny ridge settles what no row does: a class that nobody has, and a constant added to all classes.
        step = self._corrected(slope, pooled.curvature / rows + np.diag(weight + 1e-9))
        self.weights = (flat - step).reshape(self.weights.shape)
        self.finished = float(slope @ step) / 2 < CLOSE

    def _corrected(self, slope: Floats, curvature: Floats) -> Floats:
        """The step that *curvature* gives, corrected by what the slopes of earlier steps say of it (L-BFGS, two loops)."""
        turn, parts = slope.copy(), []
        for moved, turned in reversed(self._steps):
            parts.append(float(moved @ turn) / float(turned @ moved))
            turn -= parts[-1] * turned
        step = np.linalg.solve(curvature, turn)
        for (moved, turned), part in zip(self._steps, reversed(parts), strict=True):
            step += moved * (part - float(turned @ step) / float(turned @ moved))
        return np.asarray(step, dtype=np.float64)
