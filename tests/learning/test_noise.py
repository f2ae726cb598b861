"""The noise on pooled sums has its distribution, its bound holds for every row, and it is the same again from the same tape."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from velado.errors import ParameterError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.regression.design_matrix import flatten, moments_of, one_row_bounds
from velado.learning.regression.fit import reaches
from velado.learning.regression.job import Job, Party
from velado.learning.regression.regression_noise import discrete_laplace, noisy
from velado.learning.regression.simulate import simulate
from velado.randomness import Tape, seeded

DRAWS = 20_000


def a_job(protocol: Any = "secure-sum", **more: Any) -> Job:
    parties = [Party("e", "evaluator"), *(Party(f"c{i}", "client") for i in range(3))]
    if protocol != "secure-sum":
        parties.append(Party("p", "provider"))
    features = (Bounded("a", (Fraction(-2), Fraction(3))), Bounded("b", (Fraction(0), Fraction(1, 2))))
    settings: dict[str, Any] = {"bits": 8, "key_bits": 2048, "most_rows": 100_000, "epsilon": Fraction(1)}
    return Job("n", PROTOCOLS[protocol], features, Bounded("y", (Fraction(-5), Fraction(5))), tuple(parties), **{**settings, **more})  # fmt: skip


def fits(draws: list[int], scale: float) -> float:
    """The p-value of a chi-square test against the discrete Laplace distribution, its tails in one cell each."""
    edge = int(4 * scale)
    ratio = np.exp(-1 / scale)
    inside = np.arange(-edge, edge + 1)
    mass = (1 - ratio) / (1 + ratio) * ratio ** np.abs(inside)
    tail = ratio ** (edge + 1) / (1 + ratio)
    expected = np.concatenate([[tail], mass, [tail]]) * len(draws)
    counts = np.bincount(np.clip(np.array(draws), -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    return float(chisquare(counts, expected).pvalue)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(17, 3)])
def test_the_noise_is_discrete_laplace_and_ten_percent_more_is_seen(scale: Fraction) -> None:
    tape = Tape(b"n" * 32, str(scale))
    draws = [discrete_laplace(scale, tape) for _ in range(DRAWS)]
    assert fits(draws, float(scale)) > 1e-3
    assert fits(draws, float(scale) * 1.1) < 1e-6
    assert fits(draws, float(scale) * 0.9) < 1e-6


values = st.tuples(st.floats(-2, 3), st.floats(0, 0.5), st.floats(-5, 5))


@given(st.lists(values, min_size=2, max_size=6))
def test_one_row_moves_no_sum_by_more_than_its_bound(rows: list[tuple[float, float, float]]) -> None:
    job = a_job(minimum_rows=1)
    table = np.array(rows)
    columns = dict(zip(("a", "b", "y"), table.T, strict=True))
    fewer = {name: column[1:] for name, column in columns.items()}
    change = np.array(flatten(moments_of(columns, job))) - np.array(flatten(moments_of(fewer, job)))
    assert all(abs(int(d)) <= bound for d, bound in zip(change, one_row_bounds(job), strict=True))


def test_the_bounds_are_reached_by_a_row_at_the_corner() -> None:
    job = a_job(minimum_rows=1)
    corner = {"a": [3.0], "b": [0.5], "y": [5.0]}
    assert flatten(moments_of(corner, job)) == one_row_bounds(job)
    # Half spans 2.5, 0.25 and 5 with 10, 14 and 9 bits: 8 + 4 less the exponents 2, -2 and 3.
    assert reaches(job) == (256, 2560, 4096, 2560)


@pytest.mark.slow
def test_each_sum_gets_its_own_share_of_epsilon() -> None:
    job = a_job(minimum_rows=1, epsilon=Fraction(8))
    moments = moments_of({"a": [0.0] * 50_000, "b": [0.0] * 50_000, "y": [0.0] * 50_000}, job)
    exact, bounds = flatten(moments), one_row_bounds(job)
    tape = Tape(b"e" * 32)
    noise = np.array([np.array(flatten(noisy(moments, job, tape))) - exact for _ in range(4000)], dtype=float)
    # The intercept's own entry is the noisy count; nine sums share epsilon = 8.
    assert (noise[:, 0] == noise[:, 9] * 2**16).all()
    for place in range(1, 10):
        ratio = np.exp(-8 / (9 * bounds[place]))
        assert np.mean(np.abs(noise[:, place])) == pytest.approx(2 * ratio / (1 - ratio**2), rel=0.09)


@pytest.mark.parametrize("protocol", ["secure-sum", "delegated"])
def test_a_run_with_epsilon_says_so_and_repeats_from_its_seed(protocol: str) -> None:
    job = a_job(protocol, epsilon=Fraction(1000), ridge=Fraction(1))
    draw = seeded(1, "noise")
    tables = {}
    for name in ("c0", "c1", "c2"):
        a, b = draw.uniform(-2, 3, 4000), draw.uniform(0, 0.5, 4000)
        tables[name] = {"a": a, "b": b, "y": np.clip(a - b, -5, 5)}
    fit, _ = simulate(job, tables, seed=b"1" * 32)
    again, _ = simulate(job, tables, seed=b"1" * 32)
    other, _ = simulate(job, tables, seed=b"2" * 32)
    plain, _ = simulate(replace(job, epsilon=None), tables, seed=b"1" * 32)
    assert fit.coefficients == again.coefficients != other.coefficients
    assert fit.coefficients != plain.coefficients
    assert fit.coefficients == pytest.approx(plain.coefficients, abs=0.1)
    assert fit.promise.differential_privacy.epsilon == "1000"
    assert plain.promise.differential_privacy is None


def test_noise_is_refused_where_nobody_could_add_it() -> None:
    with pytest.raises(ParameterError, match="cannot add noise"):
        a_job("masked")
    with pytest.raises(ParameterError, match="above 0, at most 1000"):
        a_job(epsilon=Fraction(0))
    with pytest.raises(ParameterError, match="Standard errors"):
        a_job(moments=True)


def test_a_job_file_says_its_epsilon_and_gives_it_back() -> None:
    job = a_job(epsilon=Fraction(1, 2))
    assert Job.from_dict(job.to_dict(), PROTOCOLS) == job
    assert replace(job, epsilon=None).digest() != job.digest()
