"""Logistic regression with noise that the clients add inside the sums: differential privacy for each single row.

A row is z = (features, 1), shortened where it is longer than C = sqrt(columns + 1) (a column is one place, one leaf or one blank,
so that a row of exact values never is) and cut off towards 0 to multiples of 2^-14. The clients sum, each time with noise:

    step 0           A = sum_j z_j z_j'                  one row moves it by |z|^2 <= C^2 (Frobenius; half the variance off the diagonal)
    step 1 ... T     g_t = sum_j z_j (p_j(w_t) - y_j)    one row moves it by |z| |p - y| <= C (two classes), sqrt(2) C (more)

and the server walks w_{t+1} = w_t - M^-1 (g_t + penalty n w_t) with M = A/4 + (penalty n + w/4) I (A/2 for more than two classes):
A/4 lies above the curvature at every point (Boehning and Lindsay 1988), so that no noisy step overshoots, and the curvature has to be paid
for once instead of in every step. w is the length of A's own noise, as in AdaSSP. The model is the mean of the last points.

Account: every one of r clients draws discrete Gaussian noise of variance v / (r - t); t of them may work together with the
coordinator and take theirs away again. rho of a step follows from `NoisePlan` (Kairouz, Liu and Steinke 2021, theorem 1), step 0 has GRAM
of the whole, the steps share the rest alike, and rho adds up. A row is either trained on or held out, by a draw of its own
that no other row moves; the one noisy count of right answers at the end concerns held-out rows alone, and is made with the whole rho.

What protects whom: one row more or less at one client, against the coordinator, the other clients and whoever gets the model.
Two rows of one person are two rows. Nothing else of a client is told: no number of rows, no scores of its own.

T = 8, GRAM = 0.15 and the length w were settled on Adult (`benchmarks/federated_privacy.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError
from velado.learning.flower._logistic import Weights
from velado.learning.flower._masking import Figures
from velado.learning.flower._terms import Agreed
from velado.learning.flower.flower_records import FederationStopped, Probabilities, softmax
from velado.learning.regression.private_sums import NoisePlan, discrete_gaussian
from velado.query.budget import Budget
from velado.randomness import Tape

FINE = 14
_ONE = 1 << FINE
STEPS = 8
KEPT = 2
GRAM = Fraction(15, 100)
Floats = npt.NDArray[np.float64]
IntVector = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PrivatePlan:
    """How many steps there are, and what every client adds in each of them.

    >>> plan = PrivatePlan.of(Budget.rho(1), columns=3, features=5, classes=2, steps=4, summands=2)
    >>> 0.999 < plan.rho <= 1
    True
    """

    steps: int
    gram: NoisePlan
    slope: NoisePlan
    score: NoisePlan

    @classmethod
    def of(
        cls, budget: Budget, *, columns: int, features: int, classes: int, steps: int, summands: int
    ) -> PrivatePlan:
        """The least noise that keeps to *budget*, *summands* clients' parts of it being there."""
        square = (columns + 1) * _ONE * _ONE
        margins = 1 if classes == 2 else classes
        reach = math.isqrt(square * (1 if classes == 2 else 2)) + margins
        width, total = features + 1, budget.total
        each = total * (1 - GRAM) / steps
        return cls(
            steps,
            _least(total * GRAM, width * (width + 1) // 2, summands, square),
            _least(each, width * margins, summands, reach),
            _least(total, 1 + classes, summands, 2),
        )

    @property
    def rho(self) -> float:
        """What a training row pays in all, as rho of zCDP; a held-out row pays what the score costs."""
        return max(self.gram.rho + self.steps * self.slope.rho, self.score.rho)


def _least(rho: Fraction, figures: int, summands: int, sensitivity: int) -> NoisePlan:
    """The least even variance, to one part in 2^40, that costs at most *rho*."""
    variance = math.ceil(Fraction(sensitivity) ** 2 / (2 * rho * summands) / 2) * 2
    while NoisePlan(variance, figures, summands, sensitivity).rho > rho:
        variance += max(2, (variance >> 40) * 2)
    return NoisePlan(variance, figures, summands, sensitivity)


def plan_for(agreed: Agreed, members: int) -> PrivatePlan:
    """The plan of a run with so many members."""
    federation = agreed.federation
    budget = federation.noise
    assert budget is not None
    plan = PrivatePlan.of(
        budget,
        columns=agreed.columns,
        features=agreed.features,
        classes=agreed.classes,
        steps=min(STEPS, federation.rounds - 1),
        summands=members - federation.tolerated,
    )
    # Rows, and more noise than is ever drawn.
    each = federation.most_rows * plan.gram.sensitivity + 40 * math.isqrt(plan.gram.variance)
    if federation.clients * each >= 1 << 62:
        raise ParameterError(
            "The sums of so many rows do not fit into 64 bits.",
            "A sum that runs over would mean nothing.",
            "Lower 'most_rows' to what clients really have.",
        )
    return plan


def clipped_rows(scaled: Floats, columns: int) -> npt.NDArray[np.int64]:
    """z of every row as whole numbers, none longer than the public constant."""
    rows = np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1)
    length = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    rows *= np.minimum(1.0, math.sqrt(columns + 1) / length)[:, None]
    whole = np.asarray(np.trunc(rows * _ONE), dtype=np.int64)
    limit = (columns + 1) * _ONE * _ONE
    while (long := (whole * whole).sum(axis=1) > limit).any():  # a last bit of the floats
        whole[long] -= np.sign(whole[long])
    return whole


def step_figures(step: int, weights: Weights, scaled: Floats, labels: IntVector, agreed: Agreed) -> Figures:
    """A client's exact figures of a step; `noisy` must be put on them before they leave."""
    whole = clipped_rows(scaled, agreed.columns)
    if step == 0:
        gram = whole.T @ whole
        return np.asarray(gram[np.triu_indices(len(gram))], dtype=np.int64)
    chances = softmax((whole / _ONE) @ weights)
    wrong = chances - np.eye(agreed.classes)[labels]
    wrong = wrong[:, 1:] if agreed.classes == 2 else wrong
    # Each row is cut off towards 0 by itself, so that no rounding makes it longer than it may be.
    parts = [np.trunc(whole * wrong[:, [at]]).sum(axis=0) for at in range(wrong.shape[1])]
    return np.asarray(np.stack(parts, axis=1).ravel(), dtype=np.int64)


def score_figures(chances: Probabilities, truth: IntVector, agreed: Agreed) -> Figures:
    """Right answers and the rows of each class, over a client's held-out rows: one row moves two of them by 1."""
    counts = np.bincount(truth, minlength=agreed.classes)
    right = int((np.argmax(chances, axis=1) == truth).sum()) if truth.size else 0
    return np.asarray(np.concatenate([[right], counts]), dtype=np.int64)


def noisy(figures: Figures, plan: NoisePlan, tape: Tape, width: int | None = None) -> Figures:
    """The figures with this client's part of the noise; *width* says that they are the upper half of a square."""
    whole, half = plan.variance, plan.variance // 2
    square = (
        [] if width is None else [one == other for one, other in zip(*np.triu_indices(width), strict=True)]
    )
    diagonal = square or [True] * figures.size
    drawn = [discrete_gaussian(whole if one else half, tape) for one in diagonal]
    return figures + np.array(drawn, dtype=np.int64)


class PrivateWalk:
    """The server's side: the noisy square first, then one step after the other."""

    def __init__(self, agreed: Agreed, weights: Weights) -> None:
        self._agreed = agreed
        self._point = weights
        self._points: list[Weights] = []
        self._descent: Floats | None = None
        self._shrink = 0.0
        self.step = 0
        self.finished = False

    @property
    def point(self) -> Weights:
        """Where the next slope is asked for."""
        return self._point

    @property
    def weights(self) -> Weights:
        """The model: the mean of the last points."""
        return np.mean(self._points[-KEPT:], axis=0) if self._points else self._point

    def take(self, figures: Figures, members: int) -> None:
        """The noisy sums of a step, and the next point."""
        plan, width = plan_for(self._agreed, members), self._agreed.features + 1
        if self.step == 0:
            self._begin(figures, plan, members, width)
        else:
            assert self._descent is not None
            slope = (figures / _ONE).reshape(self._point.shape)
            self._point = self._point - self._descent @ (slope + self._shrink * self._point)
            self._points.append(self._point)
        self.step += 1
        self.finished = self.step > plan.steps

    def _begin(self, figures: Figures, plan: PrivatePlan, members: int, width: int) -> None:
        upper = np.zeros((width, width))
        upper[np.triu_indices(width)] = figures / (_ONE * _ONE)
        square = upper + upper.T - np.diag(np.diag(upper))
        deviation = math.sqrt(plan.gram.variance * members) / (_ONE * _ONE)
        length = 2 * deviation / math.sqrt(2) * math.sqrt(width)
        rows = float(square[-1, -1])
        if rows < 2 * length:
            raise FederationStopped(
                "The noise is as large as what it would hide: no model can be told.",
                "There are too few rows for so small an epsilon, or too many features.",
                "Raise epsilon, bring more rows, or learn from fewer columns.",
            )
        eigen, basis = np.linalg.eigh(square)
        share = 4 if self._agreed.classes == 2 else 2
        self._shrink = self._agreed.federation.penalty * rows
        scale = (np.maximum(eigen, 0.0) + length) / share + self._shrink
        self._descent = (basis / scale) @ basis.T
