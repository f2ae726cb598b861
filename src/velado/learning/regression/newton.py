"""Logistic and Poisson regression, and weighted rows, by Newton's method over sums: the pooled optimum, however rows are spread.

At a point beta every client sums over its rows, with w_i the row's weight (1 without), eta_i = x_i beta and mu_i the mean there:

    n, deviance, X'w(y - mu), X'(w v)X,    v = mu (1 - mu) logistic, mu poisson, 1 linear (`families` says it of each).

The sums over all clients are those of the pooled rows, so Newton's steps are the pooled ones (iteratively reweighted least squares)
and end at the pooled maximum of the likelihood, whatever each client's share of it is; a step that makes the deviance larger is halved.
Columns are scaled and centred to [-1, 1] by their public bounds, a linear target too; figures travel as whole multiples of 2^-40.

Who adds the sums sees them at every point: gradient and curvature of the pooled rows, of no single client, which together say more
than the coefficients do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from velado.errors import SingularDesignError
from velado.learning.crypto.fixed_point import Bounded, Columns, FixedPoint
from velado.learning.regression.collinearity import inflation_and_condition, one_value, taking_part
from velado.learning.regression.design_matrix import design_columns, encoded_columns, symmetric
from velado.learning.regression.fit import Solved, scaling_of, singular
from velado.learning.regression.job import Job
from velado.text import say

MOST_POINTS = 18
"""Points at which sums are asked for; from five to eight are usual."""
CLOSE = 1e-7
_ONE = 1 << 40
_MOST_FIGURE = 1 << 42
Floats = NDArray[np.float64]


class NewtonRows:
    """A client's rows, ready to be summed at any point.

    >>> from fractions import Fraction
    >>> from velado.learning.regression.simulate import small_job
    >>> job = small_job(family="poisson", target=Bounded("y", (Fraction(0), Fraction(8))))
    >>> NewtonRows({"x": [0.0] * 10, "y": [1] * 10}, job).at((0.0, 0.0))[0] == 10 << 40
    True
    """

    def __init__(self, columns: Columns, job: Job) -> None:
        fine = replace(job, bits=40)
        encoded, scaling = encoded_columns(columns, fine), scaling_of(fine)
        scales = (*scaling.features, scaling.target)
        units = [
            _unit(column, job, (values.astype(np.float64) + scale.centre) / 2.0**scale.bits)
            for column, scale, values in zip((*job.features, job.target), scales, encoded, strict=True)
        ]
        rows = len(units[-1])
        self._job = job
        self._x = np.column_stack([*([np.ones(rows)] if job.intercept else []), *units[:-1]])
        target = job.target
        middle, half = _frame(target, job)
        self._y = units[-1] if job.model.sums else np.round(units[-1] * half + middle, 9)
        self._w = np.ones(rows)
        if job.weight is not None:
            given = FixedPoint((job.weight,), 20).encode(
                job.weight.name, design_columns(columns, job)[job.weight.name]
            )
            self._w = given.astype(np.float64) / (1 << 20)

    @property
    def weights(self) -> Floats:
        """How much every row counts; 1 where the job has no weight."""
        return self._w

    def at(self, beta: Sequence[float]) -> list[int]:
        """n, deviance, gradient and the upper triangle of the curvature at a point, as whole numbers."""
        x, y, w = self._x, self._y, self._w
        eta = x @ np.asarray(beta)
        found = self._job.model.at(y, eta)
        gradient = x.T @ (w * found.pull)
        curvature = (x * (w * found.spread)[:, None]).T @ x
        upper = curvature[np.triu_indices(len(gradient))]
        most = float(figure_bound(self._job)) / _ONE
        figures = np.clip([len(y), w @ found.deviance, *gradient, *upper], -most, most)
        return [round(value * _ONE) for value in figures.tolist()]


def _unit(column: Bounded, job: Job, values: Floats) -> Floats:
    middle, half = _frame(column, job)
    return (values - middle) / half


def _frame(column: Bounded, job: Job) -> tuple[float, float]:
    """The middle and half the span of a column; 0 and its reach where no intercept could take up a shift."""
    if not job.intercept:
        return 0.0, float(max(abs(column.low), abs(column.high)))
    return float(column.low + column.high) / 2, float(column.high - column.low) / 2


def figure_bound(job: Job) -> int:
    """The most one of a client's figures is in size.

    >>> from velado.learning.regression.simulate import small_job
    >>> figure_bound(small_job()) > 0
    True
    """
    heaviest = 1 if job.weight is None else math.ceil(job.weight.high)
    return job.most_rows * max(1, heaviest) * _MOST_FIGURE * _ONE


def figures_in(job: Job) -> int:
    """How many figures a point gives.

    >>> from velado.learning.regression.simulate import small_job
    >>> figures_in(small_job())
    7
    """
    return 2 + job.width + job.width * (job.width + 1) // 2


def point_bytes(beta: Sequence[float]) -> bytes:
    """A point as it travels, exactly.

    >>> point_bytes([0.5])
    b'["0x1.0000000000000p-1"]'
    """
    return json.dumps([float(value).hex() for value in beta], separators=(",", ":")).encode()


def point_in(data: bytes, job: Job) -> tuple[float, ...] | None:
    """The point that was sent, or None where it is none of this job.

    >>> from velado.learning.regression.simulate import small_job
    >>> point_in(point_bytes([0.5, 1.0]), small_job())
    (0.5, 1.0)
    """
    try:
        found = tuple(float.fromhex(text) for text in json.loads(data))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return found if len(found) == job.width and all(map(math.isfinite, found)) else None


class Newton:
    """Newton's method, fed with pooled sums point by point; *solved* once it stands still.

    >>> from velado.learning.regression.simulate import small_job
    >>> Newton(small_job()).point
    (0.0, 0.0)
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._beta = np.zeros(job.width)
        self._before: tuple[Floats, float] | None = None
        self._asked = 0
        self.solved: Solved | None = None

    @property
    def point(self) -> tuple[float, ...]:
        """Where sums are wanted next."""
        return tuple(self._beta.tolist())

    def take(self, figures: Sequence[int]) -> None:
        """The pooled sums at `point`: the next point, or the solution; InputError where there is none."""
        width = self._job.width
        rows, deviance, *rest = (value / _ONE for value in figures)
        gradient = np.array(rest[:width])
        curvature: Floats = np.array(symmetric(iter(rest[width:]), width))
        penalty = self._penalty()
        objective = deviance + float(penalty @ self._beta**2)
        self._asked += 1
        if self._before is not None and objective > self._before[1] + 1e-9 * (1 + abs(self._before[1])):
            self._beta = (self._beta + self._before[0]) / 2
            self._check_rounds(np.abs(self._beta - self._before[0]))
            return
        inner = curvature + np.diag(penalty)
        scale = 1 / np.sqrt(np.maximum(np.diag(inner), 1e-300))
        even: Floats = inner * np.outer(scale, scale)
        least = float(np.linalg.eigvalsh(even)[0])
        if least < 1e-11:
            raise self._flat(inner)
        step = scale * np.linalg.solve(even, scale * (gradient - penalty * self._beta))
        self._before = (self._beta, objective)
        self._beta = self._beta + step
        if float(np.abs(step).max()) <= CLOSE * (1 + float(np.abs(self._beta).max())):
            inverse = np.outer(scale, scale) * np.linalg.inv(even)
            self.solved = self._solution(inverse, rows, deviance, inner)
            return
        self._check_rounds(np.abs(step))

    def _penalty(self) -> Floats:
        """Lambda in the units of the scaled columns: beta of own units is beta' (h_y) / h_j."""
        own = float(self._job.ridge)
        half = [_frame(column, self._job)[1] for column in self._job.features]
        return np.array([*([0.0] if self._job.intercept else []), *(own / one**2 for one in half)])

    def _check_rounds(self, step: Floats) -> None:
        if self._asked < MOST_POINTS:
            return
        name = self._job.unknowns[int(np.argmax(step))]
        raise self._job.model.without_end(name, MOST_POINTS)

    def _flat(self, curvature: Floats) -> SingularDesignError:
        job = self._job
        constant, involved = taking_part(curvature, job.unknowns, job.intercept)
        if constant and job.ridge == 0 and job.intercept:
            fix = say("Leave it out; where its values differ, agree on narrower bounds.")
            return one_value(constant, fix)
        return singular(job, involved)

    def _solution(self, inverse: Floats, rows: float, deviance: float, curvature: Floats) -> Solved:
        job = self._job
        middles, half = zip(*(_frame(column, job) for column in job.features), strict=True)
        outer, centre = 1.0, 0.0
        inflation, condition = inflation_and_condition(curvature, job.intercept)
        facts = {"deviance": deviance, "rounds": float(self._asked), "condition": condition}
        if job.model.sums:
            centre, outer = _frame(job.target, job)
            facts["deviance"] = deviance * outer**2
        if job.model.dispersed:
            inverse = inverse * deviance / max(rows - job.width, 1.0)
        first = int(job.intercept)
        way = np.diag([*([outer] if first else []), *(outer / one for one in half)])
        if first:
            way[0, 1:] = [-outer * middle / one for middle, one in zip(middles, half, strict=True)]
        real = way @ self._beta
        if first:
            real[0] += centre
        errors = np.sqrt(np.maximum(np.diag(way @ inverse @ way.T), 0.0))
        return Solved(
            coefficients=tuple(real.tolist()),
            errors=None if job.ridge else tuple(errors.tolist()),
            rows=round(rows),
            inflation=None if job.ridge else inflation,
            facts=facts,
        )
