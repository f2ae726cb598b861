"""Columns that follow from other columns: which ones, by how much, and in the same words for every family.

With V = X'X, or X'wvX of the last round (`newton`), and the intercept's row and column swept out of it, C = V_jk - V_0j V_0k / V_00, all
is read off the correlations R_jk = C_jk / sqrt(C_jj C_kk): the variance inflation of column j is (R^-1)_jj, the condition number
that of R. A column takes part in a dependence where its share of it, on columns of one spread, is not nearly none: so that a column
with a small coefficient beside others is named, and the intercept, which is in every dependence of columns that are not centred, is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from velado.errors import SingularDesignError
from velado.text import Sentence, say

LEAST_SHARE = 0.01
"""The share of a dependence, beside the largest, from which a column takes part in it."""
FLAT = 1e-11
"""Under this share of a column's own size what is left of it is rounding."""
Floats = NDArray[np.float64]


def correlations(curvature: Floats, intercept: bool) -> Floats:
    """R of the columns without the intercept; 0 at those that have one value in all rows.

    >>> correlations(np.array([[2.0, 4.0], [4.0, 10.0]]), True)
    array([[1.]])
    """
    first = int(intercept)
    swept = np.array(curvature, dtype=np.float64)[first:, first:]
    if first:
        swept = swept - np.outer(curvature[0, 1:], curvature[0, 1:]) / max(float(curvature[0, 0]), 1e-300)
    size, own = np.diag(curvature)[first:], np.diag(swept)
    scale = np.where(own > FLAT * size, 1 / np.sqrt(np.maximum(own, 1e-300)), 0.0)
    return np.asarray(swept * np.outer(scale, scale))


def inflation_and_condition(curvature: Floats, intercept: bool) -> tuple[tuple[float, ...], float]:
    """The variance inflation of every unknown, 1 for the intercept, and the condition number.

    >>> found, condition = inflation_and_condition(np.array([[2.0, 0, 0], [0, 2.0, 1.0], [0, 1.0, 2.0]]), True)
    >>> tuple(round(one, 2) for one in found), round(condition, 6)
    ((1.0, 1.33, 1.33), 3.0)
    """
    found = correlations(curvature, intercept)
    inflation = [max(1.0, float(value)) for value in np.diag(np.linalg.inv(found))]
    return (*((1.0,) if intercept else ()), *inflation), float(np.linalg.cond(found))


def taking_part(curvature: Floats, unknowns: Sequence[str], intercept: bool) -> tuple[list[str], list[str]]:
    """The unknowns that have one value in all rows, and those that take part in a dependence, as far as floats tell.

    >>> taking_part(np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), ("0", "f", "m"), True)
    ([], ['f', 'm'])
    """
    names = list(unknowns)[int(intercept) :]
    found = correlations(curvature, intercept)
    spread = np.diag(found) > 0
    constant = [name for name, kept in zip(names, spread, strict=True) if not kept]
    values, vectors = np.linalg.eigh(found[np.ix_(spread, spread)])
    flat = np.abs(vectors[:, values < FLAT * len(names)])
    involved = (flat > LEAST_SHARE * flat.max(axis=0, initial=0.0)).any(axis=1)
    kept = [name for name, one in zip(names, spread, strict=True) if one]
    return constant, [name for name, one in zip(kept, involved, strict=True) if one]


def shares_with(near: int, inverse: Sequence[Fraction], spreads: Sequence[Fraction]) -> list[bool]:
    """Which unknowns have a share in what column *near* follows from: its row of the exact inverse, and every column's spread.

    Regressed on the others, column *near* has the coefficients -(A^-1)_jk / (A^-1)_jj.

    >>> shares_with(1, [Fraction(1), Fraction(4), Fraction(-8)], [Fraction(9), Fraction(1), Fraction(1)])
    [True, True, True]
    """
    squares = [value * value * spread for value, spread in zip(inverse, spreads, strict=True)]
    most = max(squares)
    return [square > most * Fraction(LEAST_SHARE) ** 2 for square in squares]


def one_value(names: Sequence[str], fix: str) -> SingularDesignError:
    """The error of columns that are one value in all rows.

    >>> str(one_value(["x"], "Leave it out.")).split(",")[0]
    'In all rows x has one value'
    """
    return SingularDesignError(
        say(
            "In all rows {names} has one value, as far as its bounds let values be told apart.",
            names=", ".join(names),
        ),
        "It depends linearly on the intercept, and infinitely many coefficients fit equally well.",
        fix,
    )


def dependent(names: Sequence[str]) -> Sentence:
    """What is said of columns that follow from one another but for rounding.

    >>> dependent(["ten", "age", "weight"])
    'Of the columns ten, age, weight each follows from the others but for rounding.'
    """
    return say(
        "Of the columns {names} each follows from the others but for rounding.", names=", ".join(names)
    )
