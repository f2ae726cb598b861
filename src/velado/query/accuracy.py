"""How wide the noise is: exact tails of the discrete mechanisms, and from how many queries zCDP is the quieter one."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from velado.errors import ParameterError
from velado.query.budget import Budget, Measure
from velado.query.noise import Mechanism

# Up to this scale the discrete Gaussian's tail is summed; beyond it a continuous bound is less than one step off.
SUMMED = 4096.0


@lru_cache(maxsize=1024)
def half_width(mechanism: Mechanism, scale: float, confidence: Fraction) -> int:
    """The smallest whole t (Gaussian beyond scale 4,096: at most one more) with P(|noise| <= t) >= confidence.

    Discrete Laplace: P(|X| > t) = 2 p^(t+1) / (1 + p) with p = exp(-1/scale). Discrete Gaussian: the sum of
    exp(-x^2 / 2 scale^2), or P(X >= m) <= P(N(0, scale^2) >= m - 1) (Canonne, Kamath, Steinke 2020, prop. 25).
    """
    if not 0 < confidence < 1:
        raise ParameterError(
            "The confidence of an interval must lie strictly between 0 and 1.",
            "It is the chance that the interval holds the exact answer.",
            "Choose for example 0.95.",
        )
    outside = float(1 - confidence)
    if mechanism == "laplace":
        p = math.exp(-1 / scale)
        t = max(0, math.ceil(scale * math.log(2 / ((1 + p) * outside))) - 1)
        # The logarithm may be off by its last bit: the tail itself decides.
        while laplace_tail(scale, t) > outside:
            t += 1
        while t > 0 and laplace_tail(scale, t - 1) <= outside:
            t -= 1
        return t
    if mechanism == "gaussian":
        if scale > SUMMED:
            return math.ceil(-scale * NormalDist().inv_cdf(outside / 2))
        beyond = _gaussian_tails(scale)
        # The tails fall; the first one within `outside` is the answer.
        return int(np.searchsorted(-beyond, -outside))
    raise ValueError("a chosen candidate has a rank error, not a width")


def laplace_tail(scale: float, t: int) -> float:
    """P(|X| > t) of the discrete Laplace distribution."""
    p = math.exp(-1 / scale)
    return 2 * math.exp(-(t + 1) / scale) / (1 + p)


@lru_cache(maxsize=64)
def _gaussian_tails(scale: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """P(|X| > t) for t = 0, 1, ..., summed from the far end so that small tails keep their digits."""
    x = np.arange(0, math.ceil(40 * scale) + 2, dtype=np.float64)
    weights = np.exp(-0.5 * (x / scale) ** 2)
    above = np.cumsum(weights[::-1])[::-1]
    total = weights[0] + 2 * above[1]
    tails: np.ndarray[tuple[int], np.dtype[np.float64]] = np.append(2 * above[1:], 0.0) / total
    return tails


def standard_deviation(mechanism: Mechanism, scale: float) -> float:
    """Of the discrete Laplace sqrt(2p)/(1-p), p = exp(-1/scale); of the discrete Gaussian at most its scale."""
    if mechanism == "laplace":
        return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
    return scale


def better_measure(queries: int, epsilon: Fraction | float | str, delta: Fraction | float | str) -> Measure:
    """The measure under which each of so many equal counts gets the smaller standard deviation.

    Pure: sqrt(2) k / epsilon. Concentrated, at the same (epsilon, delta): sqrt(k / 2 rho). The second wins when
    k > epsilon^2 / (4 rho): from 15 queries on at epsilon 1 and delta 1e-6, from 22 at 1e-9. The two promises differ:
    the second may fail with chance delta.
    """
    return "rho" if queries >= wins_from(epsilon, delta) else "epsilon"


def wins_from(epsilon: Fraction | float | str, delta: Fraction | float | str) -> int:
    """The least number of equal counts from which zCDP adds less noise than pure epsilon does."""
    rho = Budget.approximate(epsilon, delta).total
    exact = Fraction(str(epsilon))
    return math.floor(exact**2 / (4 * rho)) + 1
