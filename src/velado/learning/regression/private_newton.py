"""Logistic and Poisson regression with noise that the clients add themselves, in every round, inside the sum.

Rows are scaled by the public bounds as in `private_sums`, z = (1, x), and count with the weight s^2, s = min(1, C / |x|): a weight that
follows from x alone, with s |z| <= sqrt(1 + C^2) =: B. A Poisson mean is never taken for more than the target's upper bound, u; u = 1 for
logistic regression. At a point beta every client sums

    G = sum s^2 r z,  r = (y - mu) / u,        H = sum s^2 v z z',  v = mu (1 - mu) logistic, mu / u poisson

in whole numbers (each row's part cut off towards 0, so that no row's is longer than the bounds below), and adds discrete Gaussian noise to
both: of variance S_G^2 / n to G, and to H of S_H^2 / n on the diagonal and half of it off it, n = r - t as in `private_sums`. The evaluator
takes Newton's step.

Accounting of a round: one row moves (G, H) by at most |r| B and v B^2, so that rho = 1/2 max (r^2 B^2 / S_G^2 + v^2 B^4 / S_H^2) by the
theorem in `private_sums`. In logistic regression v = |r| (1 - |r|): where the gradient of a row is long its curvature is 0. With
S_G^2 = B^2 / (2 rho) and S_H^2 = m B^4 / (2 rho) the sum is rho (r^2 + r^2 (1 - |r|)^2 / m), which for m >= max r^2 (1 - r) / (1 + r) = 0.09017 is never
above rho: the curvature costs nothing beside the gradient. In Poisson regression both can be long, and rho is shared out, GRADIENT to G.
Before these rounds stands one with the number of rows and the target's mean, from which Newton's method begins. All rounds'
rho add up to the budget, whatever points the evaluator asks about (zCDP composes adaptively), and all of it is debited beforehand.

Objective perturbation was not taken: its single draw of noise makes the optimum private, while the rounds on the way to it would show the evaluator exact
differences of gradients and exact curvatures.

A noisy curvature may have eigenvalues near or below 0. Eigenvalues under w = sigma_H sqrt(D / 2) are taken for w: there a step is shorter
than Newton's, never longer and never in the wrong direction, and several rounds make up for a part of it. What they do
not make up for is estimated and counted in the standard errors, with sampling and the noise of both sums.

CLIP, the number of rounds, their growing shares and w were settled by some 25 trials on Adult, Credit Card Clients, Mammographic Mass and
Contraceptive Method (`benchmarks/private_logistic.py`); between neighbouring settings the area under the curve differs by less than 0.01.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from velado.errors import ParameterError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.regression.design_matrix import symmetric
from velado.learning.regression.families._family import NoisySteps
from velado.learning.regression.fit import Solved
from velado.learning.regression.job import Job
from velado.learning.regression.private_sums import (
    CLIP,
    Floats,
    discrete_gaussian,
    excess,
    hidden_by_noise,
    shortened_rows,
)
from velado.randomness import Tape

STEPS = 5
"""Newton's steps, after the round that counts."""
FIRST = Fraction(1, 20)
"""The share of the budget for the round that counts."""
GROWTH = Fraction(3, 2)
"""How much more budget a step has than the one before: what the last one finds is the result."""
LONGEST_STEP = 4.0
"""The most by which a step may change any row's linear predictor."""
_FINE_GRADIENT = 1 << 24
_FINE_CURVATURE = 1 << 16
# Floating point errs by some 2^-50 of a row's length before it is cut off; so much more is accounted for.
_SLACK = 1 + Fraction(1, 1 << 40)


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """What each client adds in one round, and what the round costs a row: variances and the squared lengths of one row's part.

    >>> RoundPlan(first=8, second=8, lengths=(Fraction(4), Fraction(4)), figures=2, summands=2, shares=(1.0, 0.0)).rho > 0
    True
    """

    first: int
    """The variance of the noise on the gradient; in round 0, on both counts."""
    second: int
    """The variance of the noise on the curvature's diagonal; half of it off the diagonal."""
    lengths: tuple[Fraction, Fraction]
    figures: int
    summands: int
    shares: tuple[float, float]
    """The largest parts of both that one row can have together, each of its own squared length."""

    @property
    def rho(self) -> float:
        """The zCDP of the round's sum, rounded up."""
        n = self.summands
        parts = zip(self.lengths, (self.first, self.second), self.shares, strict=True)
        square = sum(float(length / (n * variance)) * share for length, variance, share in parts)
        least = min(self.first, self.second // 2)
        reach = math.sqrt(square) + excess(n, least) * math.sqrt(self.figures)
        return reach * reach / 2 * (1 + 2**-45)


def round_shares() -> tuple[Fraction, ...]:
    """Which part of the budget each round has, the counting one first; together 1.

    >>> sum(round_shares())
    Fraction(1, 1)
    """
    grown = [GROWTH**k for k in range(STEPS)]
    return (FIRST, *((1 - FIRST) * part / sum(grown) for part in grown))


def round_plan(job: Job, number: int) -> RoundPlan:
    """The least noise, to one part in 2^30, that keeps the round to its share of the job's budget.

    >>> from velado.learning.regression.simulate import small_job
    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> job = small_job(family="logistic", target=Bounded("y", (Fraction(0), Fraction(1))), rho=Fraction(1, 10))
    >>> plans = [round_plan(job, number) for number in range(1 + STEPS)]
    >>> 0.0999 < sum(plan.rho for plan in plans) <= 0.1
    True
    """
    budget = job.noise
    if budget is None:
        raise ParameterError("The job has no noise.", "Nothing is to be added.", "Give epsilon or rho.")
    n = len(job.of("client")) - job.tolerated
    rho = budget.total * round_shares()[number] * (1 - Fraction(1, 1 << 30))
    if number == 0:
        length = 2 * Fraction(_FINE_GRADIENT) ** 2 * _SLACK
        variance = _even(length / (2 * rho * n))
        return RoundPlan(
            first=variance,
            second=2 * variance,
            lengths=(length, length),
            figures=2,
            summands=n,
            shares=(1.0, 0.0),
        )
    square = 1 + CLIP * CLIP * len(job.features)
    lengths = (
        square * _FINE_GRADIENT**2 * _SLACK,
        square**2 * _FINE_CURVATURE**4 * _SLACK,
    )
    steps = steps_of(job)
    first, second = (
        _even(length * wider / (2 * rho * n)) for length, wider in zip(lengths, steps.wider, strict=True)
    )
    return RoundPlan(
        first=first,
        second=second,
        lengths=lengths,
        figures=job.width + job.width * (job.width + 1) // 2,
        summands=n,
        shares=steps.shares,
    )


def steps_of(job: Job) -> NoisySteps:
    """What the job's family says of noisy steps; a job of a family without is refused.

    >>> from velado.learning.regression.simulate import small_job
    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> steps_of(small_job(family="logistic", target=Bounded("y", (Fraction(0), Fraction(1))))).shares
    (1.0, 0.0)
    """
    steps = job.model.noisy
    assert steps is not None  # `Job` refuses noise without
    return steps


def _even(variance: Fraction) -> int:
    return math.ceil(variance / 2) * 2


class PrivateRows:
    """A client's rows, scaled and weighted, ready to be summed with noise at any point.

    >>> from velado.learning.regression.simulate import small_job
    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> job = small_job(family="logistic", target=Bounded("y", (Fraction(0), Fraction(1))), rho=Fraction(10))
    >>> rows = PrivateRows({"x": [-1.0, 1.0] * 5, "y": [0, 1] * 5}, job)
    >>> len(rows.counts(Tape(bytes(32)))), len(rows.at((0.0, 0.0), 1, Tape(bytes(32))))
    (2, 5)
    """

    def __init__(self, columns: Columns, job: Job) -> None:
        x, y, shorter = shortened_rows(columns, job)
        self._job = job
        self._z = np.column_stack([np.ones(len(y)), x])
        self._s = shorter
        # The target lies within -1 and 1 of its bounds; here within 0 and 1 of the upper one.
        low, top = float(job.target.low), float(job.target.high)
        self._y = np.round((low + (y + 1) / 2 * (top - low)) / top, 12)

    def counts(self, tape: Tape) -> list[int]:
        """The rows' weights, and the sum of the weighted target between -1 and 1, with noise."""
        weight = self._s**2
        parts = np.column_stack([weight, weight * (2 * self._y - 1)])
        plan = round_plan(self._job, 0)
        return _with_noise(_whole(parts, _FINE_GRADIENT).sum(axis=0), [plan.first] * 2, tape)

    def at(self, beta: Sequence[float], number: int, tape: Tape) -> list[int]:
        """The gradient and the upper triangle of the curvature at a point, with noise."""
        z, s = self._z, self._s
        top = float(self._job.target.high)
        mean, spread = steps_of(self._job).mean_and_spread(z @ np.asarray(beta), top)
        gradient = _whole((s**2 * (self._y - mean))[:, None] * z, _FINE_GRADIENT).sum(axis=0)
        roots = _whole((s * np.sqrt(spread))[:, None] * z, _FINE_CURVATURE)
        curvature = roots.T @ roots
        plan, width = round_plan(self._job, number), z.shape[1]
        rows, places = np.triu_indices(width)
        inner = [plan.second if one else plan.second // 2 for one in (rows == places).tolist()]
        figures = np.concatenate([gradient, curvature[rows, places]])
        return _with_noise(figures, [plan.first] * width + inner, tape)


def _whole(parts: Floats, fine: int) -> NDArray[np.int64]:
    cut: NDArray[np.int64] = np.trunc(parts * fine).astype(np.int64)
    return cut


def _with_noise(figures: NDArray[np.int64], variances: Sequence[int], tape: Tape) -> list[int]:
    pairs = zip(figures.tolist(), variances, strict=True)
    return [int(figure) + discrete_gaussian(variance, tape) for figure, variance in pairs]


def private_bounds(job: Job, number: int) -> list[int]:
    """The most each figure of a client is in size: its rows' part, and more noise than is ever drawn (40 deviations).

    >>> from velado.learning.regression.simulate import small_job
    >>> from velado.learning.crypto.fixed_point import Bounded
    >>> job = small_job(family="logistic", target=Bounded("y", (Fraction(0), Fraction(1))), rho=Fraction(10))
    >>> len(private_bounds(job, 0)), len(private_bounds(job, 3))
    (2, 5)
    """
    plan = round_plan(job, number)
    longest = max(math.isqrt(math.ceil(length)) + 1 for length in plan.lengths)
    most = job.most_rows * longest + 40 * math.isqrt(max(plan.first, plan.second))
    return [most] * plan.figures


@dataclass(frozen=True, kw_only=True)
class _LastSums:
    """The last round: the curvature's eigenvalues, as they came and held up, the noise's deviations, and the step."""

    eigen: Floats
    basis: Floats
    held: Floats
    gradient: float
    curvature: float
    step: Floats


class PrivateNewton:
    """Newton's method over noisy pooled sums, a fixed number of rounds; *solved* after the last.

    >>> from velado.learning.regression.simulate import small_job
    >>> PrivateNewton(small_job()).point
    (0.0, 0.0)
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._beta = np.zeros(job.width)
        self._began = self._beta
        self._left: Floats = np.eye(job.width)
        self._rows = 0.0
        self.solved: Solved | None = None

    @property
    def point(self) -> tuple[float, ...]:
        """Where sums are wanted next."""
        return tuple(self._beta.tolist())

    def take(self, number: int, figures: Sequence[int], clients: int) -> None:
        """The pooled noisy figures of a round: the next point, or the solution; InputError where noise hides all."""
        if number == 0:
            self._begin(figures, clients)
        else:
            self._step(number, figures, clients)

    def _begin(self, figures: Sequence[int], clients: int) -> None:
        rows, level = (value / _FINE_GRADIENT for value in figures)
        deviation = math.sqrt(round_plan(self._job, 0).first * clients) / _FINE_GRADIENT
        if rows < 4 * deviation:
            raise hidden_by_noise()
        self._rows = rows
        edge = min(max(deviation / rows, 1e-6), 0.5)
        share = min(max((level / rows + 1) / 2, edge), 1 - edge)
        self._beta[0] = steps_of(self._job).start(share, float(self._job.target.high))
        self._began = self._beta.copy()

    def _step(self, number: int, figures: Sequence[int], clients: int) -> None:
        job, width = self._job, self._job.width
        plan = round_plan(job, number)
        gradient = np.array([value / _FINE_GRADIENT for value in figures[:width]])
        curvature: Floats = np.array(
            symmetric(iter([float(Fraction(value, _FINE_CURVATURE**2)) for value in figures[width:]]), width)
        )
        off = math.sqrt(plan.second * clients / 2) / _FINE_CURVATURE**2
        least = off * math.sqrt(width)
        eigen, basis = np.linalg.eigh(curvature)
        if curvature[0, 0] < 2 * least or float(np.linalg.eigvalsh(curvature[1:, 1:])[-1]) < 2 * least:
            raise hidden_by_noise()
        held = np.maximum(eigen, least)
        step = basis @ ((basis.T @ gradient) / held)
        longest = float(np.abs(step).sum())
        short = min(1.0, LONGEST_STEP / longest) if longest > 0 else 1.0
        self._beta = self._beta + short * step
        # Of an eigenvalue that the noise hides no more is known than that it is small: an eighth of w is counted on.
        taken = short * np.minimum(np.maximum(eigen, least / 8) / held, 1.0)
        self._left = self._left - (basis * taken) @ basis.T @ self._left
        if number == STEPS:
            noise = math.sqrt(plan.first * clients) / _FINE_GRADIENT
            self.solved = self._solution(
                _LastSums(
                    eigen=eigen, basis=basis, held=held, gradient=noise, curvature=off, step=short * step
                )
            )

    def _solution(self, sums: _LastSums) -> Solved:
        """The last point in the columns' own units, with errors that count sampling, noise and what is left of the way.

        With e the way from the first point to the optimum, the steps leave L e of it, L the product of (I - H M^-1), M the curvature
        with its eigenvalues held: what was gone is (I - L) e, so L (I - L)^-1 times that is missing.
        """
        job = self._job
        unit = steps_of(job).unit(float(job.target.high))
        missing = self._left @ np.linalg.solve(np.eye(job.width) - self._left, self._beta - self._began)
        inverse = (sums.basis / sums.held) @ sums.basis.T
        sampled = (sums.basis * np.maximum(sums.eigen, 0.0)) @ sums.basis.T / unit
        steps = float(sums.step @ sums.step) * np.eye(job.width) + np.outer(sums.step, sums.step)
        noise = sums.gradient**2 * np.eye(job.width) + sums.curvature**2 * steps
        spread = inverse @ (sampled + noise) @ inverse + np.outer(missing, missing)
        half = [float(column.high - column.low) / 2 for column in job.features]
        middles = [float(column.low + column.high) / 2 for column in job.features]
        way = np.diag([1.0, *(1 / one for one in half)])
        way[0, 1:] = [-middle / one for middle, one in zip(middles, half, strict=True)]
        errors = np.sqrt(np.maximum(np.diag(way @ spread @ way.T), 0.0))
        return Solved(
            coefficients=tuple((way @ self._beta).tolist()),
            errors=tuple(errors.tolist()),
            rows=min(max(round(self._rows), 1), job.most_rows),
            facts={
                "rounds": float(1 + STEPS),
                "noise": sums.gradient,
                "held_back": float((sums.eigen < sums.held).sum()),
            },
        )
