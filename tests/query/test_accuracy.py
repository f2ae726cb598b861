"""Widths of the noise against sums of the exact distributions, and where zCDP begins to win."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import ParameterError
from velado.query.budget import Budget
from velado.query.noise import half_width, standard_deviation, wins_from

CONFIDENCES = st.sampled_from(
    [Fraction(1, 2), Fraction(9, 10), Fraction(19, 20), Fraction(999_999, 1_000_000)]
)


def outside(mechanism: str, scale: float, t: int) -> float:
    x = np.arange(-int(60 * scale + 60), int(60 * scale + 60) + 1, dtype=np.float64)
    weights = np.exp(-np.abs(x) / scale) if mechanism == "laplace" else np.exp(-((x / scale) ** 2) / 2)
    return float(weights[np.abs(x) > t].sum() / weights.sum())


@given(st.sampled_from(["laplace", "gaussian"]), st.floats(0.05, 300), CONFIDENCES)
def test_a_width_is_the_smallest_that_holds(mechanism, scale, confidence) -> None:
    t = half_width(mechanism, scale, confidence)
    allowed = float(1 - confidence)
    assert outside(mechanism, scale, t) <= allowed * (1 + 1e-9)
    assert t == 0 or outside(mechanism, scale, t - 1) > allowed * (1 - 1e-9)


@pytest.mark.parametrize("scale", [4096.5, 5000.0])
def test_the_bound_for_wide_gaussians_holds_and_is_at_most_two_steps_off(scale) -> None:
    t = half_width("gaussian", scale, Fraction(19, 20))
    assert outside("gaussian", scale, t) <= 0.05 < outside("gaussian", scale, t - 2)


def test_huge_scales_are_answered_at_once() -> None:
    assert half_width("laplace", 2.0**49, Fraction(19, 20)) == pytest.approx(2.0**49 * math.log(20), rel=1e-9)
    assert half_width("gaussian", 2.0**49, Fraction(19, 20)) == pytest.approx(2.0**49 * 1.959964, rel=1e-6)


@pytest.mark.parametrize("confidence", [Fraction(0), Fraction(1), Fraction(2)])
def test_a_confidence_outside_its_limits_is_refused(confidence) -> None:
    with pytest.raises(ParameterError, match="confidence"):
        half_width("laplace", 1.0, confidence)


@pytest.mark.parametrize("scale", [0.3, 1.0, 17.5])
def test_the_standard_deviation_is_that_of_the_distribution(scale) -> None:
    x = np.arange(-2000, 2001)
    weights = np.exp(-np.abs(x) / scale)
    assert standard_deviation("laplace", scale) == pytest.approx(
        math.sqrt((weights * x**2).sum() / weights.sum())
    )


@pytest.mark.parametrize(("delta", "first"), [("1e-6", 15), ("1e-9", 22), ("1e-12", 29)])
def test_zcdp_wins_from_about_fifteen_queries(delta, first) -> None:
    assert wins_from(1, delta) == first
    rho = float(Budget.approximate(1, delta).total)
    for queries in (first - 1, first):
        pure, concentrated = math.sqrt(2) * queries, math.sqrt(queries / (2 * rho))
        assert (concentrated < pure) == (queries == first)
