"""The clients' noise has its distribution, hides every row whoever is missing, costs what it says, and leaves a usable fit."""

from dataclasses import replace
from fractions import Fraction
from math import fsum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from velado.errors import InputError, ParameterError, ProtocolError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.regression import private_sums
from velado.learning.regression.job import Job, Party
from velado.learning.regression.private_sums import (
    NoisePlan,
    clipped_rows,
    discrete_gaussian,
    noise_plan,
    noisy_sums,
    solve_noisy,
)
from velado.learning.regression.simulate import simulate
from velado.query.budget import epsilon_of
from velado.query.noise import add
from velado.randomness import Tape, seeded

DRAWS = 20_000


def a_job(protocol: Any = "secure-sum", clients: int = 3, **more: Any) -> Job:
    parties = [Party("e", "evaluator"), *(Party(f"c{i}", "client") for i in range(clients))]
    if PROTOCOLS[protocol].provider is not None:
        parties.append(Party("p", "provider"))
    features = (Bounded("a", (Fraction(-2), Fraction(3))), Bounded("b", (Fraction(0), Fraction(1, 2))))
    settings: dict[str, Any] = {"bits": 8, "key_bits": 2048, "most_rows": 100_000, "epsilon": Fraction(1)}
    settings["key_holder"] = "c0" if PROTOCOLS[protocol].client_holds_key else None
    return Job("n", PROTOCOLS[protocol], features, Bounded("y", (Fraction(-5), Fraction(5))), tuple(parties), **{**settings, **more})  # fmt: skip


def tables_of(job: Job, rows: int = 4000, seed: int = 1) -> dict[str, dict[str, Any]]:
    draw = seeded(seed, "noise")
    tables = {}
    for party in job.of("client"):
        a, b = draw.uniform(-2, 3, rows), draw.uniform(0, 0.5, rows)
        y = np.clip(a - 2 * b + draw.normal(0, 1, rows), -5, 5)
        tables[party.name] = {"a": a, "b": b, "y": y}
    return tables


def mass(variance: float, edge: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-edge, edge + 1) ** 2) / (2 * variance))
    return weights / weights.sum()


def fits(draws: list[int], variance: float) -> float:
    """The p-value of a chi-square test against the discrete Gaussian, its tails in one cell each."""
    edge = int(3 * variance**0.5) + 1
    far = 60 * edge
    every = mass(variance, far)
    inside = every[far - edge : far + edge + 1]
    tail = every[: far - edge].sum()
    expected = np.concatenate([[tail], inside, [tail]]) * len(draws)
    counts = np.bincount(np.clip(np.array(draws), -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    return float(chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)


@pytest.mark.parametrize("variance", [1, 6, 40])
def test_the_noise_is_discrete_gaussian_and_ten_percent_more_is_seen(variance: int) -> None:
    tape = Tape(b"n" * 32, str(variance))
    draws = [discrete_gaussian(variance, tape) for _ in range(DRAWS)]
    assert fits(draws, variance) > 1e-3
    assert fits(draws, variance * 1.2) < 1e-6
    assert fits(draws, variance / 1.2) < 1e-6


def test_opendps_sampler_passes_the_same_test() -> None:
    """Ours cannot be OpenDP's, which has no seed; both are held against one distribution."""
    draws = add("gaussian", "rho", 6**0.5, np.zeros(DRAWS, dtype=np.int64)).tolist()
    assert fits(draws, 6) > 1e-6


values = st.tuples(st.floats(-9, 9), st.floats(-1, 1), st.floats(-9, 9))


@given(st.lists(values, min_size=1, max_size=6))
def test_one_row_moves_the_sums_by_no_more_than_the_sensitivity(
    rows: list[tuple[float, float, float]],
) -> None:
    """In the norm the noise is measured in: what stands off the diagonal counts twice."""
    job = a_job(minimum_rows=1)
    z = clipped_rows(dict(zip(("a", "b", "y"), np.array(rows).T, strict=True)), job)
    moved = [np.outer(row.astype(object), row.astype(object)) for row in z]
    assert all(sum(int(v) ** 2 for v in one.ravel()) <= noise_plan(job).sensitivity ** 2 for one in moved)


def divergence(p: np.ndarray, q: np.ndarray, alpha: float) -> float:
    return float(np.log(np.sum(np.exp(alpha * np.log(p) + (1 - alpha) * np.log(q)))) / (alpha - 1))


@pytest.mark.parametrize("variance", [2, 6])
@pytest.mark.parametrize("summands", [2, 3])
def test_the_account_is_at_least_the_divergence_computed_directly(variance: int, summands: int) -> None:
    """The sum's distribution by convolution, moved by one, at many orders: no formula of ours in it."""
    edge = 60
    one = mass(variance / 2, edge)  # the smaller noise, off the diagonal
    total = one
    for _ in range(summands - 1):
        total = np.convolve(total, one)
    # An entry off the diagonal that moves by 1 moves by sqrt(2) in the norm the sensitivity is measured in.
    bound = NoisePlan(variance=variance, figures=1, summands=summands, sensitivity=2).rho / 2
    p, q = total[:-1], total[1:]
    kept = (p > 1e-250) & (q > 1e-250)
    worst = max(divergence(p[kept], q[kept], alpha) / alpha for alpha in (1.1, 2.0, 4.0, 16.0))
    assert 0.9 * bound < worst <= bound + 1e-12


@pytest.mark.parametrize(("clients", "tolerated"), [(3, 1), (10, 1), (10, 3)])
def test_what_a_job_costs_is_recomputed_from_its_noise(clients: int, tolerated: int) -> None:
    job = a_job(clients=clients, tolerated=tolerated, epsilon=Fraction(1), delta=Fraction(1, 10**6))
    plan = noise_plan(job)
    # By hand: |z|^2 <= 1 + 0.65^2 x 2 + 1 in units of 2^-28, and n = clients - tolerated summands.
    delta = (2 + 0.65**2 * 2) * 2**28
    rho = delta**2 / (2 * (clients - tolerated) * plan.variance)
    assert rho == pytest.approx(float(plan.rho), rel=1e-6)
    assert epsilon_of(Fraction(rho), Fraction(1, 10**6)) <= 1.000001
    assert epsilon_of(Fraction(rho), Fraction(1, 10**6)) > 0.999


def test_each_client_adds_its_part_and_the_diagonal_twice_the_variance() -> None:
    job = a_job(minimum_rows=1, epsilon=Fraction(8))
    rows = {"a": [0.5], "b": [0.25], "y": [0.0]}
    plan, tape = noise_plan(job), Tape(b"e" * 32)
    drawn = np.array([noisy_sums(rows, job, tape) for _ in range(1500)], dtype=float)
    variances = drawn.var(axis=0) / plan.variance
    diagonal = [0, 4, 7, 9]
    assert variances[diagonal] == pytest.approx(1, rel=0.16)
    assert np.delete(variances, diagonal) == pytest.approx(0.5, rel=0.16)


@pytest.mark.parametrize("protocol", ["secure-sum", "delegated", "delegated-to-client"])
def test_a_run_with_noise_says_so_and_repeats_from_its_seed(protocol: str) -> None:
    job = a_job(protocol, epsilon=Fraction(20))
    tables = tables_of(job)
    fit, _ = simulate(job, tables, seed=b"1" * 32)
    again, _ = simulate(job, tables, seed=b"1" * 32)
    other, _ = simulate(job, tables, seed=b"2" * 32)
    plain, _ = simulate(replace(job, epsilon=None, bits=16), tables, seed=b"1" * 32)
    assert fit.coefficients == again.coefficients != other.coefficients
    assert fit.coefficients == pytest.approx(plain.coefficients, abs=0.3)
    assert fit.promise.differential_privacy.epsilon == "20"
    assert fit.promise.differential_privacy.tolerated == 1
    assert plain.promise.differential_privacy is None
    assert 8_000 < fit.how["rows"] < 12_000  # shortened rows count in part


@pytest.mark.slow
def test_intervals_hold_the_true_coefficients_as_often_as_they_say() -> None:
    """60 tables with a known law: at least 90 % and not all of the 95 % intervals hold the slope (they are an approximation)."""
    job = a_job(epsilon=Fraction(3))
    held = []
    for seed in range(60):
        draw = seeded(seed, "coverage")
        a, b = draw.uniform(-2, 3, 3000), draw.uniform(0, 0.5, 3000)
        y = 0.5 * a - 2 * b + draw.normal(0, 0.7, 3000)
        parts = [
            noisy_sums({"a": a[k::3], "b": b[k::3], "y": y[k::3]}, job, Tape(bytes([seed] * 32), str(k)))
            for k in range(3)
        ]
        solved = solve_noisy([sum(column) for column in zip(*parts, strict=True)], job, 3)
        held += [
            abs(solved.coefficients[place] - true) <= 1.96 * solved.errors[place]
            for place, true in ((1, 0.5), (2, -2.0))
        ]
    assert 0.9 <= np.mean(held) <= 0.995


def test_noise_as_large_as_the_signal_is_refused_in_words() -> None:
    job = a_job(epsilon=Fraction(1, 100))
    with pytest.raises(ProtocolError, match="noise is as large as what it would hide"):
        simulate(job, tables_of(job, rows=30), seed=b"1" * 32)


def test_more_missing_clients_than_tolerated_are_not_unmasked() -> None:
    job = a_job(clients=5, tolerated=1)
    tables = tables_of(job, rows=50)
    from velado.learning.protocols.role import make_role
    from velado.learning.regression.simulate import deliver

    roles = {
        p.name: make_role(job, p.name, Tape(b"s" * 32, p.name).bytes(32), tables.get(p.name))
        for p in job.parties
    }
    gone = ("c3", "c4")
    deliver(roles, lambda m: [] if m.sender in gone and m.kind == "masked" else [m])
    asked = [m for m in roles["e"].without(gone) if m.kind == "unmask"]
    assert asked
    for message in asked:
        with pytest.raises(ProtocolError, match="less noise"):
            roles[message.receiver].receive(message)


def test_values_beyond_their_bounds_count_as_the_bounds() -> None:
    job = a_job(minimum_rows=1)
    far = clipped_rows({"a": [99.0], "b": [-4.0], "y": [50.0]}, job)
    assert (far == clipped_rows({"a": [3.0], "b": [0.0], "y": [5.0]}, job)).all()
    with pytest.raises(InputError, match="missing or no number"):
        clipped_rows({"a": [float("nan")], "b": [0.0], "y": [5.0]}, job)


def test_noise_is_refused_where_it_cannot_be_kept() -> None:
    with pytest.raises(ParameterError, match="cannot add noise"):
        a_job("masked")
    with pytest.raises(ParameterError, match="above 0, at most 1000"):
        a_job(epsilon=Fraction(0))
    with pytest.raises(ParameterError, match="Standard errors"):
        a_job(moments=True)
    with pytest.raises(ParameterError, match="do not go together"):
        a_job(rho=Fraction(1))
    with pytest.raises(ParameterError, match="ordinary fit alone"):
        a_job(intercept=False)
    with pytest.raises(ParameterError, match="cannot be tolerated"):
        a_job(tolerated=2)


def test_a_job_file_says_its_noise_and_gives_it_back() -> None:
    job = a_job(epsilon=Fraction(1, 2))
    assert Job.from_dict(job.to_dict(), PROTOCOLS) == job
    assert replace(job, epsilon=None).digest() != job.digest()
    other = replace(job, epsilon=None, rho=Fraction(1, 50))
    assert Job.from_dict(other.to_dict(), PROTOCOLS).noise.total == Fraction(1, 50)
    assert fsum([float(private_sums.CLIP)]) == 0.65
