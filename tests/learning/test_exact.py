"""Exact solutions, the modulus they need, and how fractions come back from residues."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.errors import InputError, OutOfBounds, ParameterError, SchemaError, SingularDesignError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.delegated_regression import DELEGATED
from velado.learning.protocols.masked_regression import MASKED
from velado.learning.regression.design_matrix import flat_bounds, flatten, moments_of, total, unflatten
from velado.learning.regression.fit import (
    Moments,
    bounds_of,
    covariance_diagonal,
    reconstruct,
    refuse_overflow,
    ridge_entries,
    solve,
    solve_encoded,
    solve_modulo,
)
from velado.learning.regression.job import Job, Party

PARTIES = (
    Party("e", "evaluator"),
    Party("p", "provider"),
    *(Party(f"c{i}", "client") for i in range(3)),
)


def job_of(width: int, bits: int = 4, reach: int = 4, rows: int = 40, **more) -> Job:
    features = tuple(Bounded(f"x{i}", (Fraction(-reach), Fraction(reach))) for i in range(width))
    target = Bounded("y", (Fraction(-reach), Fraction(reach)))
    settings_ = {"protocol": MASKED, "minimum_rows": 1, **more}
    return Job("t", features=features, target=target, parties=PARTIES, bits=bits, most_rows=rows, **settings_)


def gauss(matrix: list[list[Fraction]], vector: list[Fraction]) -> list[Fraction] | None:
    """Plain elimination over fractions: slow, obvious, and nobody else's code."""
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    size = len(rows)
    for k in range(size):
        pivot = next((i for i in range(k, size) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(size):
            if i != k and rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] / row[k] for k, row in enumerate(rows)]


values = st.floats(-4, 4, allow_nan=False)


@st.composite
def tables(draw):
    width, rows = draw(st.integers(1, 3)), draw(st.integers(1, 12))
    column = st.lists(values, min_size=rows, max_size=rows)
    return {name: draw(column) for name in [*(f"x{i}" for i in range(width)), "y"]}


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(0, 12), st.booleans(), st.sampled_from(["0", "1/3", "2.5"]))
def test_sums_and_solution_are_those_of_fractions_worked_out_by_hand(columns, bits, intercept, ridge) -> None:
    job = job_of(len(columns) - 1, bits, intercept=intercept, ridge=Fraction(ridge))
    moments = moments_of(columns, job)
    # Bounds of -4 and 4: half the span is 2^2, four guard bits, and nothing to centre.
    unit = 1 << (bits + 4 - 2)
    encoded = [[Fraction(round(Fraction(v) * unit)) for v in columns[f.name]] for f in job.features]
    if intercept:
        encoded.insert(0, [Fraction(1 << bits)] * moments.rows)
    y = [Fraction(round(Fraction(v) * unit)) for v in columns["y"]]
    matrix = [[sum(a * b for a, b in zip(r, s, strict=True)) for s in encoded] for r in encoded]
    vector = [sum(a * b for a, b in zip(r, y, strict=True)) for r in encoded]
    assert [list(row) for row in moments.matrix] == matrix
    assert list(moments.vector) == vector
    for i, extra in enumerate(ridge_entries(job)):
        matrix[i][i] += extra
    expected = gauss(matrix, vector)
    if expected is None:
        with pytest.raises(SingularDesignError):
            solve(moments, job)
    else:
        assert list(solve_encoded(moments, job)) == expected
        if intercept:
            assert solve(moments, job) == (expected[0] / 4, *expected[1:])
        else:
            assert list(solve(moments, job)) == expected
        limits = bounds_of(job)
        for value in expected:
            assert abs(value.numerator) <= limits.numerator
            assert value.denominator <= limits.denominator
        assert max(abs(int(x)) for x in [*(x for row in matrix for x in row), *vector]) <= limits.entry
        n = (1 << limits.modulus_bits) + 1  # any number above the bound will do
        for value in expected:
            if math.gcd(value.denominator, n) == 1:
                residue = value.numerator * pow(value.denominator, -1, n)
                assert reconstruct(residue, n, limits.numerator, limits.denominator) == value


@given(st.integers(-300, 300), st.integers(1, 300), st.sampled_from([180_001, 1_000_003]))
def test_a_fraction_comes_back_from_its_residue_and_is_the_only_one(p, q, n) -> None:
    value = Fraction(p, q)
    residue = value.numerator * pow(value.denominator, -1, n) % n
    assert reconstruct(residue, n, 300, 300) == value


def test_a_residue_that_stands_for_no_small_fraction_is_none() -> None:
    n, limit = 10_007, 50
    known = {
        p * pow(q, -1, n) % n: Fraction(p, q) for q in range(1, limit + 1) for p in range(-limit, limit + 1)
    }
    for residue in range(n):
        assert reconstruct(residue, n, limit, limit) == known.get(residue)


@pytest.mark.parametrize(("width", "bits"), [(7, 60), (12, 50), (3, 128)])
def test_a_run_that_would_overflow_is_refused_with_bits_and_a_key_that_work(width, bits) -> None:
    job = job_of(width, bits, 1000, 20_000, key_bits=2048)
    with pytest.raises(ParameterError) as caught:
        refuse_overflow(job)
    said = str(caught.value)
    works = re.search(r"at most (\d+) fractional bits", said)
    assert works is not None
    refuse_overflow(replace(job, bits=int(works[1])))
    with pytest.raises(ParameterError):
        refuse_overflow(replace(job, bits=int(works[1]) + 1))
    key = re.search(r"a key of (\d+) bits", said)
    if key is not None:
        refuse_overflow(replace(job, key_bits=int(key[1])))


def test_collinear_columns_are_named_and_the_others_are_not() -> None:
    job = job_of(3)
    x = [1.0, -2.0, 3.0, 0.5, 2.0]
    columns = {"x0": x, "x1": [1.0, 1.5, -1.0, 2.0, 0.25], "x2": [-v / 2 for v in x], "y": x}
    with pytest.raises(SingularDesignError) as caught:
        solve(moments_of(columns, job), job)
    assert "x0, x2" in str(caught.value)
    assert "x1" not in str(caught.value)
    constant = {**columns, "x2": [2.0] * 5}
    with pytest.raises(SingularDesignError, match=r"\(intercept\), x2"):
        solve(moments_of(constant, job), job)
    ridge = replace(job, ridge=Fraction(1))
    assert len(solve(moments_of(constant, ridge), ridge)) == 4


def test_standard_errors_are_the_textbook_s() -> None:
    rng = np.random.default_rng(0)
    job = job_of(2, bits=40, protocol=DELEGATED, moments=True)
    columns = {name: rng.uniform(-3, 3, 30) for name in ("x0", "x1", "y")}
    moments = moments_of(columns, job)
    beta = solve(moments, job)
    design = np.column_stack([np.ones(30), columns["x0"], columns["x1"]])
    expected, *_ = np.linalg.lstsq(design, columns["y"], rcond=None)
    np.testing.assert_allclose([float(b) for b in beta], expected, rtol=1e-9)
    rest = columns["y"] - design @ expected
    variance = rest @ rest / (30 - 3) * np.diag(np.linalg.inv(design.T @ design))
    found = covariance_diagonal(moments, job)
    np.testing.assert_allclose([float(v) for v in found], variance, rtol=1e-9)
    assert covariance_diagonal(moments, replace(job, ridge=Fraction(1), moments=False)) is None
    assert covariance_diagonal(replace(moments, rows=3), job) is None


def test_flattened_sums_come_back_add_up_and_keep_their_bounds() -> None:
    job = job_of(2, protocol=DELEGATED, moments=True)
    rng = np.random.default_rng(1)
    parts = [moments_of({n: rng.uniform(-4, 4, 9) for n in ("x0", "x1", "y")}, job) for _ in range(3)]
    for part in parts:
        assert unflatten(flatten(part), job) == part
        assert all(abs(v) <= most for v, most in zip(flatten(part), flat_bounds(job), strict=True))
    summed = [sum(column) for column in zip(*map(flatten, parts), strict=True)]
    assert unflatten(summed, job) == total(parts)
    bare = [replace(part, square=None) for part in parts]
    assert total(bare).square is None


def test_a_solution_modulo_n_solves_and_a_matrix_without_inverse_has_none() -> None:
    n = 101 * 103
    matrix, vector = [[3, 5], [7, 11]], [1, 2]
    w = solve_modulo(matrix, vector, n)
    assert [sum(a * b for a, b in zip(row, w, strict=True)) % n for row in matrix] == vector
    assert solve_modulo([[1, 2], [2, 4]], vector, n) is None
    assert solve_modulo([[101, 0], [0, 1]], vector, n) is None


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"x0": [1.0, 2.0]}, SchemaError),
        ({"x0": [1.0, 2.0], "y": [1.0]}, InputError),
        ({"x0": [1.0], "y": [1.0]}, InputError),
        ({"x0": [1.0] * 41, "y": [1.0] * 41}, InputError),
        ({"x0": [1.0, float("nan")], "y": [1.0, 2.0]}, OutOfBounds),
        ({"x0": [1.0, 4.125], "y": [1.0, 2.0]}, OutOfBounds),
        ({"x0": ["1", "two"], "y": [1.0, 2.0]}, OutOfBounds),
    ],
)
def test_rows_that_cannot_be_used_are_refused_without_showing_them(columns, error) -> None:
    job = job_of(1, minimum_rows=2)
    with pytest.raises(error) as caught:
        moments_of(columns, job)
    assert "4.125" not in str(caught.value)
    assert "two" not in str(caught.value)


def test_moments_are_plain_values() -> None:
    moments = moments_of({"x0": [1.0, 2.0], "y": [1.0, 2.0]}, job_of(1))
    assert isinstance(moments, Moments)
    assert all(type(x) is int for row in moments.matrix for x in row)
