"""Exact coefficients tell the pooled sums: what the evaluator of masked regression can compute, and what clients cannot, mostly."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.masked_regression import MASKED
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.protocols.secure_sum import SECURE_SUM
from velado.learning.regression.design_matrix import moments_of
from velado.learning.regression.fit import scaling_of, solve
from velado.learning.regression.job import Job, Party
from velado.learning.regression.simulate import deliver, simulate
from velado.papers.regression.mask_attacks import (
    moments_from_exact_coefficients,
    moments_from_rounded_coefficients,
)

PARTIES = (
    Party("eva", "evaluator"),
    Party("pro", "provider"),
    *(Party(f"c{i}", "client") for i in range(3)),
)
BOUNDS = {"age": (0, 120), "sex": (0, 1), "marker": (-10, 10), "stay": (0, 60), "days": (0, 60)}


def job_of(*names: str, **more) -> Job:
    *features, target = (Bounded(name, BOUNDS[name]) for name in names)
    return Job("t", MASKED, tuple(features), target, PARTIES, **{"bits": 16, "most_rows": 1000, **more})


def job_in(protocol: str, **more) -> Job:
    """Age and sex explain days, all whole numbers, in that protocol and with the roles it has."""
    one = PROTOCOLS[protocol]
    parties = tuple(party for party in PARTIES if party.role != "provider" or one.provider is not None)
    holder = "c0" if one.client_holds_key else None
    return replace(
        job_of("age", "sex", "days"), protocol=one, parties=parties, key_holder=holder, key_bits=2048, **more
    )


@pytest.fixture(scope="module")
def rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    age, sex = rng.integers(20, 90, 121), rng.integers(0, 2, 121)
    marker = rng.uniform(-9, 9, 121).round(1)
    stay = (2 + age / 8 - marker / 2 + rng.uniform(0, 1, 121)).round(3)
    return {"age": age, "sex": sex, "marker": marker, "stay": stay, "days": stay.round().astype(int)}


def true_sums(table, job: Job) -> tuple[list, list]:
    """X'X and X'y of the rows, each value rounded to its column's bits, by plain sums of fractions."""
    scaling = scaling_of(job)
    columns = []
    for scale, column in zip((*scaling.features, scaling.target), (*job.features, job.target), strict=True):
        one = 1 << scale.bits
        columns.append([Fraction(round(Fraction(float(x)) * one), one) for x in table[column.name]])
    if job.intercept:
        columns.insert(0, [Fraction(1)] * len(columns[0]))
    *features, target = columns

    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    return [[dot(a, b) for b in features] for a in features], [dot(a, target) for a in features]


def same(found, truth) -> bool:
    return found is not None and ([list(r) for r in found.matrix], list(found.vector)) == truth


@pytest.mark.slow
def test_the_evaluator_of_one_masked_run_computes_all_pooled_sums(make_job, make_tables, make_roles) -> None:
    job = make_job("masked", 3, bits=16)
    tables = make_tables(job, rows=21)
    roles = make_roles(job, tables)
    assert not deliver(roles).failures
    together = {name: np.concatenate([t[name] for t in tables.values()]) for name in tables["c0"]}
    truth = true_sums(together, job)
    found = moments_from_exact_coefficients(roles["eva"].exact, job)
    assert same(found, truth)
    assert found.matrix[0][0] == 63  # the number of rows, which nobody told it
    # The clients' floats of the same run do not tell them.
    told = list(roles["c0"].outcome.fit.coefficients)
    assert told == [float(b) for b in roles["eva"].exact]
    assert not same(moments_from_rounded_coefficients(told, job), truth)


@pytest.mark.parametrize(
    ("names", "whole", "more"),
    [
        (("age", "marker", "stay"), ("age",), {}),
        (("age", "marker", "stay"), ("age",), {"ridge": Fraction(1, 2)}),
        (("age", "marker", "stay"), (), {"ridge": Fraction(1, 10)}),
        (("age", "sex", "days"), ("age", "sex", "days"), {}),
        (("marker", "stay"), (), {"bits": 30}),
    ],
)
def test_whole_columns_penalties_and_other_precisions_do_not_hinder_it(rows, names, whole, more) -> None:
    job = job_of(*names, **more)
    found = moments_from_exact_coefficients(solve(moments_of(rows, job), job), job, whole)
    assert same(found, true_sums(rows, job))


def test_without_an_intercept_the_sums_are_found_up_to_a_common_factor(rows) -> None:
    job = job_of("age", "marker", "stay", intercept=False)
    found = moments_from_exact_coefficients(solve(moments_of(rows, job), job), job)
    matrix, _ = true_sums(rows, job)
    assert found is not None
    assert (
        len({a / b for r, s in zip(found.matrix, matrix, strict=True) for a, b in zip(r, s, strict=True)})
        == 1
    )


def test_rounded_coefficients_tell_the_sums_of_few_whole_columns_and_not_of_others(rows) -> None:
    few = job_of("age", "sex", "days")
    told = [float(b) for b in solve(moments_of(rows, few), few)]
    whole = ("age", "sex", "days")
    assert same(moments_from_rounded_coefficients(told, few, whole), true_sums(rows, few))
    job = job_of("age", "marker", "stay")
    told = [float(b) for b in solve(moments_of(rows, job), job)]
    assert not same(moments_from_rounded_coefficients(told, job, ("age",)), true_sums(rows, job))


def test_from_noisy_coefficients_the_lattice_finds_no_true_sums(rows) -> None:
    """Whoever reduces the coefficients of a run with noise gets nothing, or sums that are not the rows' own."""
    parties = tuple(party for party in PARTIES if party.role != "provider")
    job = replace(job_of("age", "sex", "days"), protocol=SECURE_SUM, parties=parties, rho=Fraction(2))
    tables = {f"c{k}": {name: values[k::3] for name, values in rows.items()} for k in range(3)}
    fit, transcript = simulate(job, tables, bytes(32))
    assert not transcript.failures
    exact = replace(job, rho=None)
    whole = ("age", "sex", "days")
    told = list(fit.coefficients)
    assert not same(moments_from_rounded_coefficients(told, exact, whole), true_sums(rows, exact))
    # The same coefficients without noise do tell them.
    plain = [float(b) for b in solve(moments_of(rows, exact), exact)]
    assert same(moments_from_rounded_coefficients(plain, exact, whole), true_sums(rows, exact))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_in_every_exact_protocol_a_client_of_few_whole_columns_finds_the_pooled_sums(
    rows, protocol, make_roles
) -> None:
    """Which the promise says: what clients are told is the same in all of them, and 53 bits are enough for so few columns."""
    job = job_in(protocol, least_cell=1)
    tables = {f"c{k}": {name: values[k::3] for name, values in rows.items()} for k in range(3)}
    roles = make_roles(job, tables)
    assert not deliver(roles).failures
    fit, whole = roles["c0"].outcome.fit, ("age", "sex", "days")
    found = moments_from_rounded_coefficients(list(fit.coefficients), job, whole)
    assert same(found, true_sums(rows, job))
    assert "pooled sums too" in str(fit.promise.reveals) or fit.promise.unsafe


@pytest.mark.parametrize("protocol", [name for name, one in PROTOCOLS.items() if one.pooled])
def test_with_noise_the_lattice_finds_no_true_sums_in_any_protocol(rows, protocol, make_roles) -> None:
    job = job_in(protocol, rho=Fraction(2))
    tables = {f"c{k}": {name: values[k::3] for name, values in rows.items()} for k in range(3)}
    roles = make_roles(job, tables)
    assert not deliver(roles).failures
    exact, whole = replace(job, rho=None), ("age", "sex", "days")
    for name in ("c0", "eva"):
        told = list(roles[name].outcome.fit.coefficients)
        assert not same(moments_from_rounded_coefficients(told, exact, whole), true_sums(rows, exact))
