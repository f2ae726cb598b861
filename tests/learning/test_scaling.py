"""Columns scaled and centred by public bounds: the map is exact, and coefficients are those of raw rows to about 2^-q."""

import os
from fractions import Fraction
from pathlib import Path

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.learning.crypto.fixed_point import Bounded, FixedPoint
from velado.learning.crypto.modular import exact_gram
from velado.learning.regression.design_matrix import moments_of
from velado.learning.regression.fit import (
    GUARD,
    ColumnScale,
    covariance_diagonal,
    reaches,
    ridge_entries,
    scaling_of,
    solve,
)
from velado.learning.regression.job import Job, Party
from velado.learning.regression.simulate import simulate
from velado.papers.regression.paper_masked import WITH_PAPER
from velado.papers.regression.regression_tables import DATA_SETS, job_for, relative_error

from ..covering import pairs_in

DATA = os.environ.get("VELADO_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="VELADO_DATA names no folder with the source's tables")

# Far from 0, narrow, negative, wide, across 0.
BOUNDS = ((100, 130), ("0.98", "1.04"), (-12, -3), (0, 10**7), (-1, 5))


def job_of(bounds, protocol="secure-sum", **more) -> Job:
    *features, target = [Bounded(f"x{i}", (Fraction(a), Fraction(b))) for i, (a, b) in enumerate(bounds)]
    target = Bounded("y", (target.low, target.high))
    parties = [Party("e", "evaluator"), *(Party(f"c{i}", "client") for i in range(3))]
    if protocol != "secure-sum":
        parties.append(Party("p", "provider"))
    settings_ = {"minimum_rows": 1, "most_rows": 300, "bits": 20, "key_bits": 2048, **more}
    return Job("s", WITH_PAPER[protocol], tuple(features), target, tuple(parties), **settings_)


def rows_within(job: Job, count: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {c.name: rng.uniform(float(c.low), float(c.high), count) for c in (*job.features, job.target)}


fractions = st.fractions(-(10**6), 10**6, max_denominator=10**6)
shares = st.fractions(0, 1, max_denominator=10**9)


@settings(max_examples=300)
@given(fractions, fractions, shares, st.integers(0, 80), st.booleans())
def test_an_encoded_value_is_within_half_a_step_and_within_its_reach(
    one, other, share, bits, centred
) -> None:
    low, high = min(one, other), max(one, other)
    if low == high:
        high += 1
    column = Bounded("x", (low, high))
    scale = ColumnScale.of(column, bits, centred)
    value = low + share * (high - low)
    encoding = FixedPoint((column,), bits, (scale.bits,))
    encoded = int(encoding.encode("x", np.array([value], dtype=object))[0]) - scale.centre
    assert abs(scale.value(encoded) - value) <= Fraction(1, 1 << (scale.bits + 1))
    assert abs(encoded) <= scale.reach(column)
    assert scale.bits + scale.exponent == bits
    assert centred or scale.centre == 0
    if scale.bits > 0:  # else whole numbers, and wider
        assert (1 << (bits + GUARD - 1)) - 2 <= scale.reach(column) <= (1 << (bits + GUARD)) + 1
    else:
        assert scale.value(scale.reach(column)).denominator == 1


@settings(max_examples=100)
@given(st.data(), st.integers(0, 40), st.booleans())
def test_the_map_of_coefficients_goes_both_ways_and_predicts_the_same(data, bits, intercept) -> None:
    job = job_of(BOUNDS, bits=bits, intercept=intercept)
    scaling = scaling_of(job)
    encoded = data.draw(st.lists(fractions, min_size=job.width, max_size=job.width))
    real = scaling.to_real(encoded)
    assert scaling.to_encoded(real) == tuple(encoded)
    row = data.draw(st.lists(st.integers(-(2**30), 2**30), min_size=4, max_size=4))
    unit = 1 << bits
    ones = [Fraction(1)] if intercept else []
    score = sum(b * x for b, x in zip(encoded, [*ones, *(Fraction(x, unit) for x in row)], strict=True))
    values = [scale.value(x) for scale, x in zip(scaling.features, row, strict=True)]
    plain = sum(b * x for b, x in zip(real, [*ones, *values], strict=True))
    # The score of encoded columns is the encoded score, times 2^-q.
    assert plain == (score * unit + scaling.target.centre) / (1 << scaling.target.bits)


def test_known_scales() -> None:
    # Half of 0.98..1.04 is 0.03 <= 2^-5: 10 + 4 + 5 bits. Half of 0..10^7 is above 2^22: no bits are left.
    assert ColumnScale.of(Bounded("x", (Fraction("0.98"), Fraction("1.04"))), 10, True) == ColumnScale(
        19, -9, round(1.01 * 2**19)
    )
    assert ColumnScale.of(Bounded("x", (Fraction(0), Fraction(10**7))), 10, True) == ColumnScale(
        0, 10, 5 * 10**6
    )
    assert ColumnScale.of(Bounded("x", (Fraction(-8), Fraction(8))), 10, True) == ColumnScale(11, -1, 0)
    assert ColumnScale.of(Bounded("x", (Fraction(4), Fraction(8))), 10, False) == ColumnScale(11, -1, 0)
    assert ColumnScale.of(Bounded("x", (Fraction(0), Fraction(1, 2**600))), 10, True).bits == 512
    paper = job_of(BOUNDS, "paper-masked")
    assert {(s.bits, s.exponent, s.centre) for s in scaling_of(paper).features} == {(20, 0, 0)}


def real_solution(columns, job: Job) -> list[Fraction]:
    """Ridge regression on the values that encoded ones stand for, in their own units: neither scaled nor centred."""
    scaling = scaling_of(job)
    scales = (*scaling.features, scaling.target)
    grid = [
        [Fraction(round(Fraction(float(v)) * (1 << s.bits)), 1 << s.bits) for v in columns[c.name]]
        for c, s in zip((*job.features, job.target), scales, strict=True)
    ]
    *design, y = grid
    penalties = [job.ridge] * len(design)
    if job.intercept:
        design.insert(0, [Fraction(1)] * len(y))
        penalties.insert(0, Fraction(0))
    matrix = [[sum(a * b for a, b in zip(r, s, strict=True)) for s in design] for r in design]
    for i, penalty in enumerate(penalties):
        matrix[i][i] += penalty
    vector = [sum(a * b for a, b in zip(r, y, strict=True)) for r in design]

    def exact(rows):
        return flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in row] for row in rows])

    found = exact(matrix).solve(exact([[v] for v in vector]))
    return [Fraction(int(x.p), int(x.q)) for x in found.entries()]


@pytest.mark.parametrize("bits", [0, 6, 20, 50, 70])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ridge", ["0", "3"])
def test_the_solution_is_ridge_regression_on_the_encoded_values_in_their_own_units(
    bits, intercept, ridge
) -> None:
    job = job_of(BOUNDS, bits=bits, intercept=intercept, ridge=Fraction(ridge))
    columns = rows_within(job, 40, bits)
    assert list(solve(moments_of(columns, job), job)) == real_solution(columns, job)


def test_lambda_is_rounded_half_to_even_in_each_column_s_units() -> None:
    job = job_of(((0, 10**7), (-8, 8), (0, 1)), bits=10, ridge=Fraction(5, 2))
    assert ridge_entries(job) == (0, 2, 5 * 2**21)


def test_the_most_an_encoded_value_can_be_is_reached_at_a_bound() -> None:
    job = job_of(BOUNDS, bits=9)
    ends = {c.name: np.array([float(c.low), float(c.high)]) for c in (*job.features, job.target)}
    moments = moments_of(ends, job)
    for i, most in enumerate(reaches(job)[:-1]):
        assert most * most <= moments.matrix[i][i] <= 2 * most * most


@pytest.mark.parametrize("intercept", [True, False])
def test_standard_errors_are_the_textbook_s_in_the_columns_own_units(intercept) -> None:
    job = job_of(((100, 130), (-3, -2), ("0.98", "1.04"), (900, 1100)), bits=40, moments=True, intercept=intercept)  # fmt: skip
    columns = rows_within(job, 60, 3)
    design = np.column_stack(
        [*([np.ones(60)] if intercept else []), *(columns[f.name] for f in job.features)]
    )
    beta, *_ = np.linalg.lstsq(design, columns["y"], rcond=None)
    rest = columns["y"] - design @ beta
    variance = rest @ rest / (60 - job.width) * np.diag(np.linalg.inv(design.T @ design))
    found = covariance_diagonal(moments_of(columns, job), job)
    np.testing.assert_allclose([float(v) for v in found], variance, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "intercept"),
    pairs_in(2, ["secure-sum", "delegated", "masked"], [True, False], lambda *two: "-".join(map(str, two))),
)
def test_every_sound_protocol_tells_coefficients_in_the_columns_own_units(protocol, intercept) -> None:
    job = job_of(BOUNDS[1:], protocol, intercept=intercept, ridge=Fraction(1), bits=12)
    tables = {f"c{i}": rows_within(job, 20, i) for i in range(3)}
    pooled = {name: np.concatenate([t[name] for t in tables.values()]) for name in tables["c0"]}
    expected = [float(b) for b in real_solution(pooled, job)]
    fit, transcript = simulate(job, tables, bytes(32))
    assert list(fit.coefficients) == expected
    for name in ("c0", "c1", "c2"):
        assert list(transcript.roles[name].outcome.fit.coefficients) == expected


def on_the_doubles(columns, job: Job) -> list[Fraction]:
    """Least squares on the raw rows, exactly: every double of these tables is a whole multiple of 2^-100."""
    encoding = FixedPoint((*job.features, job.target), 100)
    encoded = [encoding.encode(name, values) for name, values in columns.items()]
    gram = exact_gram([np.full(len(encoded[0]), 1 << 100, dtype=object), *encoded])
    width = job.width
    matrix = flint.fmpz_mat([row[:width] for row in gram[:width]])
    right = flint.fmpz_mat([[row[width]] for row in gram[:width]])
    found = flint.fmpq_mat(matrix).solve(flint.fmpq_mat(right))
    return [Fraction(int(x.p), int(x.q)) for x in found.entries()]


@needs_data
@pytest.mark.parametrize("moved", [False, True], ids=["as it is", "with negatives"])
@pytest.mark.parametrize("data_set", DATA_SETS, ids=lambda one: one.name)
def test_coefficients_are_those_of_the_raw_rows_to_within_2_to_the_minus_q(data_set, moved) -> None:
    columns = data_set.read(Path(DATA))
    if moved:
        columns = {name: values - np.round(values.mean(), 1) for name, values in columns.items()}
    job = job_for(data_set, columns, WITH_PAPER["delegated"], 20, 3072)
    assert moved == any(column.low < 0 for column in (job.target, *job.features[:1]))
    true = on_the_doubles(columns, job)
    design = np.column_stack([np.ones(len(columns[data_set.target])), *list(columns.values())[:-1]])
    floats = np.linalg.lstsq(design, columns[data_set.target], rcond=None)[0]
    for bits in (10, 20, 30, 50):
        job = job_for(data_set, columns, WITH_PAPER["delegated"], bits, 3072)
        found = solve(moments_of(columns, job), job)
        error = float(relative_error(found, true))
        each = max(float(abs(a - b) / abs(b)) for a, b in zip(found, true, strict=True))
        print(
            f"{data_set.name} q={bits}: {error:.2e} = {error * 2**bits:.2f} 2^-q, each {each * 2**bits:.2f} 2^-q"
        )
        # About the mean all coefficients of Forest Fires are small beside the target's span, and the intercept is near 0.
        within = (4 if moved else 1) * 2.0**-bits
        assert error <= within
        assert moved or each <= 8 * 2.0**-bits
        # NumPy's own rounding is some 1e-13 here.
        assert relative_error(found, [Fraction(float(b)) for b in floats]) <= within + 1e-12
