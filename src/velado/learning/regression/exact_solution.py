"""Least squares from exact pooled moments, with what a reader of coefficients asks for, and refused where rounding decides.

With A = X'X, b = X'y of encoded columns (`fit`): R^2 = 1 - (y'y - b'A^-1 b) / (y'y - b_0^2 / a_00); the variance inflation of column j
is (A^-1)_jj (a_jj - a_0j^2 / a_00); the condition number is that of the correlation matrix.

Two ways a fit can be made of rounding are refused: a column whose spread is a few steps of its encoding (its bounds are far wider
than its values), and a column that differs from a combination of the others by little more than the steps (collinear but for
its last decimals). A step is 1, and rounding to it has variance 1/12.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from velado.errors import OutOfBounds, SingularDesignError
from velado.learning.regression.collinearity import dependent, one_value, shares_with
from velado.learning.regression.fit import Moments, Solved, covariance_diagonal, scaling_of, solve
from velado.learning.regression.job import Job
from velado.learning.regression.penalty_path import Spread, penalty_path
from velado.text import say

LEAST_SPREAD = 8
"""Steps of a column's standard deviation under which its coefficient may be off by more than a thousandth."""
LEAST_APART = 25
"""How many times the rounding's variance a column's own part must have, for each unknown."""


def solve_exact(moments: Moments, job: Job) -> tuple[tuple[Fraction, ...], Solved]:
    """The exact coefficients, and all that is told of them.

    >>> from velado.learning.regression.simulate import small_job
    >>> job = small_job(bits=8, moments=True)
    >>> moments = Moments(((655360, 0), (0, 4 << 20)), (0, 2 << 20), 4 << 20, 10)
    >>> exact, told = solve_exact(moments, job)
    >>> told.coefficients, round(told.facts["r_squared"], 6), told.inflation
    ((0.0, 0.5), 0.25, (1.0, 1.0))
    """
    import flint

    spreads = _spreads(moments, job)
    _refuse_constant(spreads, job)
    beta = solve(moments, job)
    facts: dict[str, float] = {}
    inflation = None
    _refuse_coarse(spreads, moments, job)
    if job.ridge == 0:
        matrix = flint.fmpz_mat([list(row) for row in moments.matrix])
        inverse = flint.fmpq_mat(matrix).inv()
        full = [[Fraction(int(x.p), int(x.q)) for x in row] for row in inverse.table()]
        own = [full[j][j] for j in range(job.width)]
        _refuse_rounding(full, spreads, moments, job)
        first = int(job.intercept)
        found = [float(own[j] * spread) for j, spread in enumerate(spreads)][first:]
        inflation = (*((1.0,) if first else ()), *(max(1.0, value) for value in found))
        facts["condition"] = _condition(moments, job)
        if moments.square is not None:
            right = flint.fmpq_mat(flint.fmpz_mat([[value] for value in moments.vector]))
            told = (right.transpose() * inverse * right)[0, 0]
            left = moments.square - Fraction(int(told.p), int(told.q))
            mean = Fraction(moments.vector[0] ** 2, moments.matrix[0][0]) if first else Fraction(0)
            if moments.square > mean:
                facts["r_squared"] = float(1 - left / (moments.square - mean))
    squares = covariance_diagonal(moments, job) if job.moments else None
    return beta, Solved(
        coefficients=tuple(map(float, beta)),
        errors=None if squares is None else tuple(max(0.0, float(value)) ** 0.5 for value in squares),
        rows=moments.rows,
        inflation=inflation,
        facts=facts,
        path=None if job.path == "none" else penalty_path(spread_of(moments, job), job.path),
    )


def spread_of(moments: Moments, job: Job) -> Spread:
    """What a path needs of moments: taken about the means in exact arithmetic, and back in the columns' own units."""
    scaling, first, rows = scaling_of(job), int(job.intercept), moments.rows
    scales = (*scaling.features, scaling.target)
    places = range(first, job.width)
    full = [[*(moments.matrix[i][j] for j in places), moments.vector[i]] for i in places]
    full.append([*(moments.vector[j] for j in places), moments.square or 0])
    sums = [*(moments.matrix[0][j] for j in places), moments.vector[0]] if first else [0] * len(full)
    unit = 1 << job.bits if first else 1

    def covariance(i: int, j: int) -> float:
        centred = Fraction(full[i][j]) - Fraction(sums[i] * sums[j], rows * unit * unit)
        return float(centred / rows / (1 << (scales[i].bits + scales[j].bits)))

    size = len(full)
    about = np.array([[covariance(i, j) for j in range(size)] for i in range(size)])
    means = [
        float((Fraction(total, rows * unit) + scale.centre) / (1 << scale.bits)) if first else 0.0
        for total, scale in zip(sums, scales, strict=True)
    ]
    return Spread(
        features=about[:-1, :-1],
        cross=about[:-1, -1],
        target=float(about[-1, -1]),
        means=np.array(means[:-1]),
        target_mean=means[-1],
        rows=float(rows),
        intercept=job.intercept,
    )


def _spreads(moments: Moments, job: Job) -> list[Fraction]:
    """The sum of squares of every unknown's column about its mean."""
    matrix = moments.matrix
    if not job.intercept:
        return [Fraction(matrix[j][j]) for j in range(job.width)]
    return [
        matrix[j][j] - Fraction(matrix[0][j] ** 2, matrix[0][0]) if j else Fraction(matrix[0][0])
        for j in range(job.width)
    ]


def _refuse_constant(spreads: list[Fraction], job: Job) -> None:
    """SingularDesignError where a column is one value once it is encoded: of all singular designs the one with a reason of its own."""
    same = [name for name, spread in zip(job.unknowns, spreads, strict=True) if spread == 0]
    if same and job.ridge == 0 and job.intercept:
        fix = say("Leave it out; where its values differ, agree on narrower bounds or on more bits.")
        raise one_value(same, fix)


def _refuse_coarse(spreads: list[Fraction], moments: Moments, job: Job) -> None:
    coarse = [
        name
        for name, spread in zip(job.unknowns, spreads, strict=True)
        if 0 < spread < moments.rows * LEAST_SPREAD**2
    ]
    if coarse:
        raise OutOfBounds(
            say("The bounds of {names} are far wider than the values.", names=", ".join(coarse)),
            "The values are told apart in a few steps only, and the coefficient would be wrong by per cents.",
            "Agree on narrower bounds, or on more bits.",
        )


def _refuse_rounding(
    inverse: list[list[Fraction]], spreads: list[Fraction], moments: Moments, job: Job
) -> None:
    """SingularDesignError where what a column adds to the others is no more than rounding; it names all that have a share in it."""
    least = Fraction(moments.rows * LEAST_APART * job.width, 12)
    near = [j for j in range(job.width) if inverse[j][j] > 0 and 1 / inverse[j][j] < least]
    first = int(job.intercept)
    shares = [shares_with(j - first, inverse[j][first:], spreads[first:]) for j in near if j >= first]
    involved = [any(one) for one in zip(*shares, strict=True)]
    if any(involved):
        raise SingularDesignError(
            dependent([name for name, one in zip(job.unknowns[first:], involved, strict=True) if one]),
            "Their coefficients would be made of the last decimals, however large.",
            "Leave one of them out, or set lambda above 0.",
        )


def _condition(moments: Moments, job: Job) -> float:
    """The condition number of the columns' correlations (or, without an intercept, of their cosines)."""
    matrix, first = moments.matrix, int(job.intercept)
    centred = [
        [
            float(matrix[i][j] - (Fraction(matrix[0][i] * matrix[0][j], matrix[0][0]) if first else 0))
            for j in range(first, job.width)
        ]
        for i in range(first, job.width)
    ]
    found = np.array(centred)
    scale = 1 / np.sqrt(np.diag(found))
    return float(np.linalg.cond(found * np.outer(scale, scale)))
