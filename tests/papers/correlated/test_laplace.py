"""The source's worked numbers about noise."""

import math

import numpy as np
import pytest

from velado.papers.correlated.correlated_answer import density, draw, expected_relative_error


@pytest.mark.parametrize(
    ("noise", "percent"), [(-2.65, 5.36), (3.98, 4.29), (7.28, 2.48), (-1.61, 6.37), (-2.73, 5.28)]
)
def test_table_7_of_the_source(noise, percent) -> None:
    assert 100 * density(noise, 6.0) == pytest.approx(percent, abs=0.011)  # the source cuts some digits


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_a_family_of_ten_is_given_away_by_the_factor_the_source_names(epsilon) -> None:
    # The answer 12 when ten are ill, against the answer 12 when nobody is, with noise for one person only.
    ratio = density(12 - 10, 1 / epsilon) / density(12 - 0, 1 / epsilon)
    assert ratio == pytest.approx(math.exp(10 * epsilon))
    # With noise for ten the factor is what was promised.
    assert density(12 - 10, 10 / epsilon) / density(12, 10 / epsilon) == pytest.approx(math.exp(epsilon))


def test_the_mean_error_of_draws_is_the_scale() -> None:
    rng = np.random.default_rng(0)
    errors = [abs(draw(6.0, rng)) for _ in range(20_000)]
    assert np.mean(errors) == pytest.approx(6.0, rel=0.03)
    assert expected_relative_error(6.0, -12.0) == 0.5


def test_no_scale_no_noise() -> None:
    assert draw(0.0, np.random.default_rng(0)) == 0.0
