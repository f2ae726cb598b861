"""Linear regression with noise that the clients add themselves, inside the sum: nobody ever sees an exact figure.

Rows are scaled by the public bounds to x in [-1, 1]^d and y in [-1, 1] (a value beyond its bounds counts as the bound). Where x is longer
than C = CLIP sqrt(d), the whole row z = (1, x, y) is shortened until x is not: a weight that follows from x alone, so that the
coefficients stay those of the linear law, while shortening x alone would bias them. z is cut off towards 0 to multiples of 2^-FINE. One row
moves Z'Z by z z', whose Frobenius length is |z|^2 <= 1 + C^2 + 1 =: Delta. Every one of r clients adds to its part of Z'Z
discrete Gaussian noise of variance s^2 / (r - t) on the diagonal and half of it off it; t clients may be missing, or work together
with whoever sees the sum and take their own noise away again. Off the diagonal half is enough, because each such entry stands
twice in the Frobenius norm: sum_i z_i^4 / s^2 + sum_{i<j} (z_i z_j)^2 / (s^2 / 2) = |z|^4 / s^2.

Accounting (Kairouz, Liu and Steinke 2021, theorem 1, for n = r - t summands of variance v each, d figures):

    rho = 1/2 (Delta / sqrt(n v) + tau sqrt(d))^2,    tau = 10 sum_{k=1}^{n-1} exp(-2 pi^2 v k / (k + 1)),

with v the smallest variance in tau; by Minkowski's inequality the same holds for different variances with Delta measured in them. v is
so large here that tau is 0 to all digits. The intercept's entry is the number of rows with noise, shortened ones counted in part; nothing else is told of it.

Not from OpenDP's samplers, which cannot be seeded: a client that comes back after a crash must say the same again, or two draws of
noise over the same rows would be out. The sampler is the exact one of Canonne, Kamath and Steinke (2020, algorithms 1 to 3),
whole numbers only, on the role's tape; a test holds it against OpenDP's.

The solution is AdaSSP's (Wang 2018) with one difference: where X'X carries noise for everybody, its least eigenvalue less the noise's
own length is a lower bound that costs nothing, so no budget is spent on it:

    lambda = max(0, w - max(0, lambda_min(A~) - w)),    w = 2 sigma sqrt(D / 2),    beta = (A~ + lambda I)^-1 b~.

CLIP = 0.65 and w were settled, among some 80 settings, on Auto MPG, Wine Quality and Bike Sharing (`benchmarks/private_regression.py`, which also tries others).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from velado.errors import InputError, ParameterError
from velado.learning.crypto.fixed_point import Bounded, Columns
from velado.learning.regression.design_matrix import check_rows, design_columns, symmetric
from velado.learning.regression.fit import Solved
from velado.learning.regression.job import Job
from velado.learning.regression.penalty_path import PenaltyPath, Spread, penalty_path
from velado.randomness import Tape
from velado.text import say

CLIP = Fraction(65, 100)
FINE = 14
_ONE = 1 << FINE
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NoisePlan:
    """What each client adds: discrete Gaussian noise of these variances, and what it costs a row when n = r - t clients' is there.

    >>> NoisePlan(variance=8, figures=6, summands=2, sensitivity=2).rho > 0
    True
    """

    variance: int
    figures: int
    summands: int
    sensitivity: int

    @property
    def rho(self) -> float:
        """The zCDP of the sum, by the theorem in the module's docstring, rounded up."""
        n = self.summands
        tau = excess(n, self.variance / 2)
        reach = self.sensitivity / math.sqrt(n * self.variance) + tau * math.sqrt(self.figures)
        return reach * reach / 2 * (1 + 2**-45)


def excess(summands: int, variance: float) -> float:
    """tau of the module's docstring: how far a sum of so many discrete Gaussians is from being one.

    >>> excess(9, 100.0) < 1e-300, excess(2, 0.5) > 0.07
    (True, True)
    """
    return 10 * sum(math.exp(-2 * math.pi**2 * variance * k / (k + 1)) for k in range(1, summands))


def noise_plan(job: Job) -> NoisePlan:
    """The least even variance, to one part in 2^40, that keeps to the job's budget.

    >>> from velado.learning.regression.simulate import small_job
    >>> plan = noise_plan(small_job(rho=Fraction(1, 10)))
    >>> float(plan.rho) <= 0.1 < 1.0001 * plan.rho
    True
    """
    budget = job.noise
    if budget is None:
        raise ParameterError("The job has no noise.", "Nothing is to be added.", "Give epsilon or rho.")
    size = job.width + 1
    n = len(job.of("client")) - job.tolerated
    reach = 2 * _ONE * _ONE + _most_square(job)
    variance = math.ceil(Fraction(reach) ** 2 / (2 * budget.total * n) / 2) * 2

    def made(variance: int) -> NoisePlan:
        return NoisePlan(variance, size * (size + 1) // 2, n, reach)

    while made(variance).rho > budget.total:
        variance += max(2, (variance >> 40) * 2)
    return made(variance)


def _most_square(job: Job) -> int:
    """C^2 in the units of z'z."""
    return math.floor(CLIP * CLIP * len(job.features) * _ONE * _ONE)


def noisy_sums(columns: Columns, job: Job, tape: Tape) -> list[int]:
    """The upper triangle of a client's Z'Z with its part of the noise.

    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> len(noisy_sums(small_rows(), small_job(rho=Fraction(1)), Tape(bytes(32))))
    6
    """
    z = clipped_rows(columns, job)
    gram = z.T @ z
    plan = noise_plan(job)
    out = []
    for i in range(len(gram)):
        for j in range(i, len(gram)):
            variance = plan.variance if i == j else plan.variance // 2
            out.append(int(gram[i, j]) + discrete_gaussian(variance, tape))
    return out


def clipped_rows(columns: Columns, job: Job) -> NDArray[np.int64]:
    """z of every row as whole numbers, none longer than the public constant.

    >>> from velado.learning.regression.simulate import small_job
    >>> clipped_rows({"x": [8, -99, 0], "y": [0, 4, 8]}, small_job(rho=Fraction(1), minimum_rows=1)).tolist()
    [[10649, 10649, 0], [10649, -10649, 5324], [16384, 0, 16384]]
    """
    x, y, shorter = shortened_rows(columns, job)
    x = x * shorter[:, None]
    whole = np.trunc(x * _ONE).astype(np.int64)
    limit = _most_square(job)
    while (long := (whole * whole).sum(axis=1) > limit).any():  # a last bit of the floats
        whole[long] -= np.sign(whole[long])
    target = np.trunc(y * shorter * _ONE).astype(np.int64)
    return np.column_stack([np.trunc(shorter * _ONE).astype(np.int64), whole, target])


def shortened_rows(columns: Columns, job: Job) -> tuple[Floats, Floats, Floats]:
    """The features and the target between -1 and 1 by their bounds, and by how much each row is to be shortened.

    >>> from velado.learning.regression.simulate import small_job
    >>> x, y, shorter = shortened_rows({"x": [8, -99, 0], "y": [0, 4, 8]}, small_job(minimum_rows=1))
    >>> x.tolist(), y.tolist(), shorter.tolist()
    ([[1.0], [-1.0], [0.0]], [0.0, 0.5, 1.0], [0.65, 0.65, 1.0])
    """
    found = design_columns(columns, job)
    scaled = [_scaled(found[column.name], column) for column in (*job.features, job.target)]
    if len({len(values) for values in scaled}) != 1:
        raise InputError(
            "The columns have different numbers of rows.", "A row needs one value of each.", "Give a table."
        )
    check_rows(len(scaled[-1]), job)
    x = np.column_stack(scaled[:-1])
    length = np.linalg.norm(x, axis=1)
    most = float(CLIP) * math.sqrt(x.shape[1])
    # The whole row is shortened, target and constant too: a weight that follows from x alone, which biases nothing.
    return x, scaled[-1], np.minimum(1.0, most / np.maximum(length, 1e-300))


def _scaled(values: object, column: Bounded) -> Floats:
    try:
        numbers = np.asarray(values).astype(np.float64)
    except ValueError:
        numbers = np.array([math.nan])
    if not np.isfinite(numbers).all():
        raise InputError(
            say("Column '{name}' has a cell that is missing or no number.", name=column.name),
            "A row with a missing value has no place in the sums.",
            "Fill it in or leave the row out.",
        )
    middle, half = float(column.low + column.high) / 2, float(column.high - column.low) / 2
    return np.clip((numbers - middle) / half, -1.0, 1.0)


def noisy_bounds(job: Job) -> list[int]:
    """The most each figure of a client is in size: its rows' part, and more noise than is ever drawn (40 deviations).

    >>> from velado.learning.regression.simulate import small_job
    >>> len(noisy_bounds(small_job(rho=Fraction(1))))
    6
    """
    plan = noise_plan(job)
    return [job.most_rows * plan.sensitivity + 40 * math.isqrt(plan.variance)] * plan.figures


def solve_noisy(values: Sequence[int], job: Job, clients: int) -> Solved:
    """Coefficients in the columns' own units from the noisy pooled Z'Z of so many clients, with errors that know of the noise.

    The covariance of beta is M^-1 (s^2 A~ + N) M^-1, M = A~ + lambda I: s^2 the residual variance, N the variance of
    (noise of b) - (noise of A) beta; the penalty's bias, lambda M^-1 A~^-1 b with small eigenvalues of A~ held up, is added in squares. InputError where the noise is as
    large as what the columns hold.

    >>> from velado.learning.regression.simulate import small_job
    >>> one = 1 << 28
    >>> sums = [3000 * one, 0, 0, 1000 * one, 500 * one, 300 * one]
    >>> solve_noisy(sums, small_job(rho=Fraction(1)), 3).rows
    3000
    """
    plan, size = noise_plan(job), job.width + 1
    gram: Floats = np.array(symmetric(iter([float(Fraction(value, _ONE * _ONE)) for value in values]), size))
    deviation = math.sqrt(plan.variance * clients) / (_ONE * _ONE)
    off = deviation / math.sqrt(2)
    a, b, square = gram[:-1, :-1], gram[:-1, -1], gram[-1, -1]
    width = 2 * off * math.sqrt(job.width)
    eigen, basis = np.linalg.eigh(a)
    largest = float(np.linalg.eigvalsh(a[1:, 1:])[-1])
    if a[0, 0] < 2 * width or largest < 2 * width:
        raise hidden_by_noise()
    ridge = max(0.0, width - max(0.0, float(eigen[0]) - width))
    inverse = np.linalg.inv(a + ridge * np.eye(job.width))
    beta = inverse @ b
    rows = max(float(a[0, 0]), 1.0)
    residual = min(max(float(square - 2 * beta @ b + beta @ a @ beta) / rows, 1e-6), 1.0)
    sampled = (basis * np.maximum(eigen, 0.0)) @ basis.T * residual
    noise = off**2 * (np.eye(job.width) * (1 + float(beta @ beta)) + np.outer(beta, beta))
    # What the penalty takes away, of the coefficients without it: where noise hides a direction, half its own length is counted on.
    bias = basis @ (ridge / (eigen + ridge) * (basis.T @ b) / np.maximum(eigen, width / 2))
    spread = inverse @ (sampled + noise) @ inverse + np.outer(bias, bias)
    way = _to_real(job)
    middle = float(job.target.low + job.target.high) / 2
    real = way @ beta
    real[0] += middle
    errors = np.sqrt(np.maximum(np.diag(way @ spread @ way.T), 0.0))
    return Solved(
        coefficients=tuple(real.tolist()),
        errors=tuple(errors.tolist()),
        rows=min(max(round(rows), 1), job.most_rows),
        facts={"ridge": ridge, "noise": width},
        path=None if job.path == "none" else _noisy_path(gram, ridge, job),
    )


def _noisy_path(gram: Floats, ridge: float, job: Job) -> PenaltyPath:
    """The path of penalties from the noisy sums: a function of what is out already, so it costs nothing.

    Sums with noise may be no rows' at all: the AdaSSP penalty stays in, and eigenvalues below 0 about the means count as 0.
    """
    rows = max(float(gram[0, 0]), 1.0)
    held = gram + np.diag([*[0.0], *[ridge] * len(job.features), 0.0])
    about = (held[1:, 1:] - np.outer(held[0, 1:], held[0, 1:]) / rows) / rows
    eigen, basis = np.linalg.eigh(about)
    about = (basis * np.maximum(eigen, 1e-9)) @ basis.T
    spread = Spread(
        features=about[:-1, :-1],
        cross=about[:-1, -1],
        target=float(about[-1, -1]),
        means=held[0, 1:-1] / rows,
        target_mean=float(held[0, -1]) / rows,
        rows=rows,
    )
    path, way = penalty_path(spread, job.path), _to_real(job)
    middle = float(job.target.low + job.target.high) / 2
    real = [way @ np.array(one) + middle * np.eye(job.width)[0] for one in path.coefficients]
    return replace(path, coefficients=tuple(tuple(one.tolist()) for one in real))


def hidden_by_noise() -> InputError:
    """The refusal where nothing can be told beside the noise.

    >>> str(hidden_by_noise()).split(":")[0]
    'The noise is as large as what it would hide'
    """
    return InputError(
        "The noise is as large as what it would hide: no coefficients can be told.",
        "There are too few rows for so small a budget, or the bounds are far too wide.",
        "Raise epsilon or rho, bring more rows, narrow the bounds, or fit fewer columns.",
    )


def _to_real(job: Job) -> Floats:
    """The linear map from coefficients of scaled columns to those of the columns' own units, the target's middle apart."""
    half = [float(column.high - column.low) / 2 for column in (*job.features, job.target)]
    middles = [float(column.low + column.high) / 2 for column in job.features]
    way = np.diag([half[-1], *(half[-1] / one for one in half[:-1])])
    way[0, 1:] = [-half[-1] * middle / one for middle, one in zip(middles, half[:-1], strict=True)]
    return way


def discrete_gaussian(variance: int, tape: Tape) -> int:
    """A whole number z with probability proportional to exp(-z^2 / (2 variance)), exactly (algorithm 3).

    >>> abs(discrete_gaussian(4, Tape(bytes(32)))) < 60
    True
    """
    t = math.isqrt(variance) + 1
    while True:
        y = discrete_laplace(Fraction(t), tape)
        # (|y| - variance / t)^2 / (2 variance)
        gamma = Fraction((abs(y) * t - variance) ** 2, 2 * variance * t * t)
        if _happens(gamma, tape):
            return y


def discrete_laplace(scale: Fraction, tape: Tape) -> int:
    """A whole number z with probability proportional to exp(-|z| / scale), exactly (algorithm 2).

    >>> discrete_laplace(Fraction(1, 1000), Tape(bytes(32)))
    0
    """
    t, s = scale.numerator, scale.denominator
    while True:
        u = tape.below(t)
        if not _happens(Fraction(u, t), tape):
            continue
        v = 0
        while _happens(Fraction(1), tape):
            v += 1
        size = (u + t * v) // s
        negative = tape.below(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def _happens(gamma: Fraction, tape: Tape) -> bool:
    """True with probability exp(-gamma) (algorithm 1)."""
    while gamma > 1:
        if not _happens(Fraction(1), tape):
            return False
        gamma -= 1
    k = 1
    while tape.below(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1
