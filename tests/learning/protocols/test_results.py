"""Every protocol's result is that of exact arithmetic on the encoded rows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.errors import (
    InputError,
    OutOfBounds,
    ParameterError,
    ProtocolError,
    SingularDesignError,
    VeladoError,
)
from velado.learning.regression.design_matrix import moments_of, total
from velado.learning.regression.exact_solution import solve_exact
from velado.learning.regression.fit import solve
from velado.learning.regression.simulate import deliver, simulate
from velado.papers.regression.paper_arithmetic import (
    hidden_bits,
    own_shift,
    paper_moments,
    paper_solution,
    undo_shift,
)
from velado.randomness import Tape

from ...covering import pairs_in

SOUND = ("delegated", "masked")
number = st.floats(-8, 8, allow_nan=False)


@st.composite
def three_tables(draw, width):
    rows = draw(st.integers(4, 6))
    column = st.lists(number, min_size=rows, max_size=rows)
    names = [*(f"x{i}" for i in range(width)), "y"]
    return {f"c{k}": {name: draw(column) for name in names} for k in range(3)}


def check(job, tables, make_roles) -> None:
    roles = make_roles(job, tables)
    pooled = total([moments_of(columns, job) for columns in tables.values()])
    try:
        # Nobody in a masked run could see that a column is made of rounding.
        found = solve(pooled, job) if job.protocol.pooled is None else solve_exact(pooled, job)[0]
        expected = [float(value) for value in found]
    except (SingularDesignError, OutOfBounds) as error:
        transcript = deliver(roles)
        assert set(transcript.failures) == set(roles)
        said = "depend linearly" if job.protocol.pooled is None else error.what
        assert all(said in why for why in transcript.failures.values())
        return
    transcript = deliver(roles)
    assert not transcript.failures
    for name in ("eva", "c0", "c1", "c2"):
        fit = roles[name].outcome.fit
        assert list(fit.coefficients) == expected
        assert fit.promise.type == "guaranteed-if"
        assert fit.learned.parties
    assert roles["pro"].done


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_delegated_result_is_exact_least_squares_on_the_encoded_rows(data, make_job, make_roles) -> None:
    width = data.draw(st.integers(1, 3))
    ridge = Fraction(data.draw(st.sampled_from(["0", "1/3"])))
    job = make_job(
        "delegated",
        width,
        bits=data.draw(st.sampled_from([4, 7, 50])),
        ridge=ridge,
        intercept=data.draw(st.booleans()),
        moments=not ridge and data.draw(st.booleans()),
    )
    check(job, data.draw(three_tables(width)), make_roles)


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_the_masked_result_is_exact_least_squares_on_the_encoded_rows(data, make_job, make_roles) -> None:
    width = data.draw(st.integers(1, 2))
    job = make_job(
        "masked",
        width,
        bits=data.draw(st.sampled_from([4, 7, 50])),
        ridge=Fraction(data.draw(st.sampled_from(["0", "1/3"]))),
        intercept=data.draw(st.booleans()),
    )
    check(job, data.draw(three_tables(width)), make_roles)


def test_standard_errors_come_with_the_delegated_result_where_moments_are_asked_for(
    make_job, make_tables, make_roles
) -> None:
    job = make_job("delegated", 2, bits=40, moments=True)
    tables = make_tables(job)
    roles = make_roles(job, tables)
    deliver(roles)
    fit = roles["c1"].outcome.fit
    rows = {n: np.concatenate([t[n] for t in tables.values()]) for n in ("x0", "x1", "y")}
    design = np.column_stack([np.ones(36), rows["x0"], rows["x1"]])
    beta, *_ = np.linalg.lstsq(design, rows["y"], rcond=None)
    rest = rows["y"] - design @ beta
    errors = np.sqrt(rest @ rest / 33 * np.diag(np.linalg.inv(design.T @ design)))
    np.testing.assert_allclose(fit.coefficients, beta, rtol=1e-9)
    np.testing.assert_allclose(fit.standard_errors, errors, rtol=1e-8)
    assert fit.how["rows"] == 36


@pytest.mark.parametrize(
    ("low", "ridge"), pairs_in(2, [-8, 0], ["0", "1/2"], lambda *two: "-".join(map(str, two)))
)
def test_the_paper_s_roles_give_what_its_arithmetic_gives_and_say_that_they_are_unsafe(
    low, ridge, make_job, make_tables, make_roles
) -> None:
    job = make_job("paper-masked", 2, bits=20, low=low, ridge=Fraction(ridge))
    tables = make_tables(job)
    roles = make_roles(job, tables)
    assert not deliver(roles).failures
    shift = max(own_shift(columns, job) for columns in tables.values())
    assert (shift > 0) == (low < 0)
    pooled = total([paper_moments(columns, job, shift) for columns in tables.values()])
    matrix = [list(row) for row in pooled.matrix]
    for i in (1, 2):
        matrix[i][i] += round(job.ridge * (1 << 40))
    tape = Tape(Tape(bytes(range(32)), "eva").bytes(32), f"{job.digest()}:eva")
    direct = undo_shift(paper_solution(matrix, pooled.vector, 20, tape, hidden_bits(job)), shift, 20)
    assert roles["eva"].exact == direct
    plain = solve(total([moments_of(columns, job) for columns in tables.values()]), job)
    # Floors where the others round: a unit of 2^-20 in every value, and no more.
    np.testing.assert_allclose([float(v) for v in direct], [float(v) for v in plain], rtol=1e-4, atol=1e-5)
    for name in ("eva", "c0", "c2"):
        promise = roles[name].outcome.fit.promise
        assert (promise.type, promise.unsafe) == ("none", True)
        assert "not private" in promise.warning
    assert roles["pro"].outcome.fit is None


def test_the_paper_s_short_key_is_made_and_used(make_job, make_tables) -> None:
    job = make_job("paper-masked", 1, bits=20, key_bits=1024)
    fit, transcript = simulate(job, make_tables(job), bytes(32))
    assert not transcript.failures
    assert fit.promise.type == "none"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bits": 1}, "1 fractional bits"),
        ({"intercept": False}, "without an intercept"),
        ({"bits": 128, "key_bits": 1024, "high": 10**80}, "may need a key"),
    ],
)
def test_what_the_paper_s_method_cannot_do_is_refused(changes, said, make_job) -> None:
    job = make_job("paper-masked", 1, **{"bits": 20, **changes})
    with pytest.raises(ParameterError, match=said):
        simulate(job, {})


@pytest.mark.parametrize("protocol", [*SOUND, "paper-masked"])
def test_a_client_with_too_few_rows_or_a_value_out_of_bounds_sends_nothing(
    protocol, make_job, make_tables, make_roles
) -> None:
    job = make_job(protocol, 1, bits=10, minimum_rows=5)
    tables = make_tables(job)
    few = {**tables, "c1": {name: values[:4] for name, values in tables["c1"].items()}}
    with pytest.raises(InputError, match="4 rows"):
        make_roles(job, few)
    wild = {**tables, "c1": {**tables["c1"], "x0": tables["c1"]["x0"] + 100}}
    with pytest.raises(VeladoError, match="'x0'"):
        make_roles(job, wild)


def test_a_masked_run_that_would_overflow_is_refused_by_every_role(make_job, make_tables, make_roles) -> None:
    job = make_job("masked", 4, bits=128, key_bits=2048, high=10**9)
    with pytest.raises(ParameterError, match="may need a modulus"):
        make_roles(job, make_tables(job))


def test_a_simulation_without_a_result_is_an_error_that_says_why(make_job) -> None:
    job = make_job("delegated", 1)
    flat = {"x0": [1.0] * 4, "y": [1.0, 2.0, 3.0, 4.0]}
    with pytest.raises(ProtocolError, match=r"In all rows x0 has one value.*more bits\. No coefficients"):
        simulate(job, {f"c{i}": flat for i in range(3)}, bytes(32))
