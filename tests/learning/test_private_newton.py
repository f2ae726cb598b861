"""Logistic and Poisson regression with noise in every round: its cost, its distribution, what it hides and what it still tells."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import InputError, ParameterError, ProtocolError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.protocols.role import make_role
from velado.learning.protocols.secure_sum import SECURE_SUM
from velado.learning.regression.coefficient_table import facts_of
from velado.learning.regression.fit import Fit, Solved
from velado.learning.regression.job import Job, Party
from velado.learning.regression.private_newton import STEPS, PrivateRows, round_plan, round_shares
from velado.learning.regression.rounds import ClientRounds, PooledRounds, most_rounds
from velado.learning.regression.simulate import deliver, simulate
from velado.query.budget import epsilon_of
from velado.randomness import Tape, seeded

FINE_G, FINE_H = 2.0**24, 2.0**16
TOPS = {"logistic": 1, "poisson": 12}


def a_job(family: str = "logistic", clients: int = 5, **more: Any) -> Job:
    parties = (Party("e", "evaluator"), *(Party(f"c{i}", "client") for i in range(clients)))
    features = (Bounded("a", (Fraction(-2), Fraction(3))), Bounded("b", (Fraction(0), Fraction(1))))
    given: dict[str, Any] = {"epsilon": Fraction(1), "most_rows": 100_000, "family": family, **more}
    return Job("p", SECURE_SUM, features, Bounded("y", (Fraction(0), Fraction(TOPS[family]))), parties, **given)  # fmt: skip


def rows_of(family: str, rows: int, seed: int = 1) -> dict[str, np.ndarray]:
    draw = seeded(seed, f"private {family}")
    a, b = draw.uniform(-2, 3, rows), (draw.uniform(size=rows) < 0.4).astype(float)
    eta = -0.5 + 0.6 * a - 0.8 * b
    if family == "logistic":
        return {"a": a, "b": b, "y": (draw.uniform(size=rows) < 1 / (1 + np.exp(-eta))).astype(float)}
    return {"a": a, "b": b, "y": np.minimum(draw.poisson(np.exp(0.5 + 0.25 * a - 0.5 * b)), 12).astype(float)}


def dealt(table: dict[str, np.ndarray], job: Job) -> dict[str, dict[str, np.ndarray]]:
    names = [party.name for party in job.of("client")]
    return {
        name: {key: values[k :: len(names)] for key, values in table.items()} for k, name in enumerate(names)
    }


def fitted(job: Job, table: dict[str, np.ndarray], seed: int) -> Solved:
    """The fit without masks and messages: the same figures, added in the clear."""
    parts = dealt(table, job)
    clients = [ClientRounds(one, job, Tape(bytes([seed] * 32), name)) for name, one in parts.items()]
    pooled, point = PooledRounds(job), b""
    for number in range(most_rounds(job)):
        figures = [client.figures(number, point) or [] for client in clients]
        point = pooled.take(number, [sum(one) for one in zip(*figures, strict=True)], len(clients)) or b""
    assert pooled.solved is not None
    return pooled.solved


@pytest.mark.parametrize("family", ["logistic", "poisson"])
@pytest.mark.parametrize(("clients", "tolerated"), [(3, 1), (10, 3)])
def test_what_all_rounds_cost_is_recomputed_by_hand(family: str, clients: int, tolerated: int) -> None:
    """Gaussian zCDP of each round from its variances, maximised over what one row can do on a grid: no formula of ours."""
    job = a_job(family, clients, tolerated=tolerated)
    n, square = clients - tolerated, 1 + 0.65**2 * 2
    total = FINE_G**2 * 2 / (2 * n * round_plan(job, 0).first)  # weight and weighted target, each 1 at most
    mean = np.linspace(0, 1, 2001)
    for number in range(1, 1 + STEPS):
        plan = round_plan(job, number)
        worst = 0.0
        for y in (0.0, 1.0):
            gradient = (y - mean) ** 2 * square * FINE_G**2
            spread = mean * (1 - mean) if family == "logistic" else mean
            curvature = (spread * square * FINE_H**2) ** 2
            worst = max(worst, float((gradient / plan.first + curvature / plan.second).max()) / (2 * n))
        assert worst == pytest.approx(plan.rho, rel=1e-4)
        assert worst <= plan.rho
        total += worst
    assert epsilon_of(Fraction(total), Fraction(1, 10**6)) <= 1
    assert epsilon_of(Fraction(total), Fraction(1, 10**6)) > 0.999


@pytest.mark.parametrize("family", ["logistic", "poisson"])
@given(
    row=st.tuples(st.floats(-9, 9), st.floats(-1, 2), st.floats(0, 12)),
    point=st.tuples(*[st.floats(-30, 30)] * 3),
)
def test_no_row_moves_a_round_by_more_than_is_paid_for(
    family: str, row: tuple[float, ...], point: tuple[float, ...]
) -> None:
    """At any point an evaluator may name: two tables that differ by a row, under the same noise, in the norm it is measured in."""
    job = a_job(family, minimum_rows=1)
    a, b, y = row
    with_row = {"a": [0.5, a], "b": [0.0, b], "y": [1.0, float(y > 6) if family == "logistic" else y]}
    without = {name: cells[:1] for name, cells in with_row.items()}
    both = [PrivateRows(table, job) for table in (with_row, without)]
    counts, figures = (
        [one - other for one, other in zip(*pair, strict=True)]
        for pair in (
            [rows.counts(Tape(bytes(32))) for rows in both],
            [rows.at(point, 2, Tape(bytes(32))) for rows in both],
        )
    )
    n, plan = len(job.of("client")) - job.tolerated, round_plan(job, 2)
    inner = figures[3:]
    diagonal = [inner[0], inner[3], inner[5]]
    others = [inner[1], inner[2], inner[4]]
    cost = sum(Fraction(v * v, plan.first) for v in figures[:3])
    cost += sum(Fraction(v * v, plan.second) for v in diagonal)
    cost += sum(Fraction(2 * v * v, plan.second) for v in others)
    assert float(cost / (2 * n)) <= plan.rho
    assert sum(v * v for v in counts) / (2 * n * round_plan(job, 0).first) <= round_plan(job, 0).rho


def test_each_figure_has_the_noise_its_round_says() -> None:
    job = a_job(minimum_rows=1)
    rows, plan, tape = PrivateRows({"a": [0.5], "b": [0], "y": [1]}, job), round_plan(job, 3), Tape(b"v" * 32)
    drawn = np.array([rows.at((0.0, 0.0, 0.0), 3, tape) for _ in range(1200)], dtype=float)
    variances = drawn.var(axis=0)
    assert variances[:3] / plan.first == pytest.approx(1, rel=0.17)
    assert variances[[3, 6, 8]] / plan.second == pytest.approx(1, rel=0.17)
    assert variances[[4, 5, 7]] / plan.second == pytest.approx(0.5, rel=0.17)
    counts = np.array([rows.counts(tape) for _ in range(1200)], dtype=float)
    assert counts.var(axis=0) / round_plan(job, 0).first == pytest.approx(1, rel=0.17)


def test_the_shares_of_the_rounds_are_the_budget() -> None:
    assert sum(round_shares()) == 1
    assert len(round_shares()) == most_rounds(a_job()) == 1 + STEPS


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_with_much_budget_the_fit_is_the_exact_one(family: str) -> None:
    """Rows are not longer than the clip here, so that nothing but noise, which is small, tells the two apart."""
    job = a_job(family, epsilon=Fraction(900))
    table = rows_of(family, 4000)
    table["a"] = table["a"] * 0.4 + 0.3
    if family == "logistic":
        table["y"] = rows_of(family, 4000)["y"]
    noisy, _ = simulate(job, dealt(table, job), seed=b"1" * 32)
    exact, _ = simulate(replace(job, epsilon=None), dealt(table, job), seed=b"1" * 32)
    assert noisy.coefficients == pytest.approx(exact.coefficients, abs=0.1)
    assert noisy.facts["held_back"] == 0


def test_a_run_says_its_noise_repeats_from_its_seed_and_is_never_exact() -> None:
    job = a_job()
    tables = dealt(rows_of("logistic", 6000), job)
    fit, transcript = simulate(job, tables, seed=b"1" * 32)
    again, _ = simulate(job, tables, seed=b"1" * 32)
    other, _ = simulate(job, tables, seed=b"2" * 32)
    assert fit.coefficients == again.coefficients != other.coefficients
    assert fit.promise.differential_privacy is not None
    assert fit.promise.differential_privacy.epsilon == "1"
    assert Fit.from_dict(fit.to_dict()) == fit
    assert any("in each of 6 rounds" in str(line) for line in facts_of(fit))
    assert all(role.outcome.fit.coefficients == fit.coefficients for role in transcript.roles.values())
    # Slopes are found, roughly: 0.6 and -0.8.
    assert fit.coefficients[1:] == pytest.approx((0.6, -0.8), abs=0.35)


def test_two_points_never_share_their_noise() -> None:
    job = a_job(minimum_rows=1)
    client = ClientRounds({"a": [0.5], "b": [0], "y": [1]}, job, Tape(b"n" * 32))
    points = [b'["0x0p0","0x0p0","0x0p0"]', b'["0x0.0p0","0x0p0","0x0p0"]']  # one place, written twice
    first, second = (client.figures(1, point) for point in points)
    assert first != second
    assert client.figures(1, points[0]) == first
    assert client.figures(1, b"[]") is None


def left_early(job: Job, gone: str, kind: str, at: int) -> dict[str, Any]:
    """A run in which one client's messages of a kind are lost from the given one on."""
    tables = dealt(rows_of("logistic", 6000), job)
    roles = {
        p.name: make_role(job, p.name, Tape(b"l" * 32, p.name).bytes(32), tables.get(p.name))
        for p in job.parties
    }
    seen = 0

    def lost(message: Any) -> list[Any]:
        nonlocal seen
        if message.sender == gone and message.kind == kind:
            seen += 1
            return [message] if seen < at else []
        return [message]

    deliver(roles, lost)
    waiting = list(roles["e"].without((gone,)))
    while waiting:
        message = waiting.pop(0)
        if message.receiver != gone:
            waiting.extend(roles[message.receiver].receive(message))
    return roles


@pytest.mark.parametrize("kind", ["masked", "opened"])
def test_with_noise_a_client_may_leave_between_rounds(kind: str) -> None:
    roles = left_early(a_job(tolerated=1, epsilon=Fraction(5)), "c3", kind, 3)
    assert roles["e"].failure is None
    fit = roles["e"].outcome.fit
    assert fit.coefficients[1:] == pytest.approx((0.6, -0.8), abs=0.4)
    assert roles["c0"].outcome.fit.coefficients == fit.coefficients


def test_exact_rounds_still_end_when_a_client_leaves() -> None:
    roles = left_early(a_job(epsilon=None), "c3", "masked", 3)
    assert "left after all were counted" in roles["e"].failure


def test_noise_as_large_as_the_signal_is_refused_in_words() -> None:
    job = a_job(epsilon=Fraction(1, 100))
    with pytest.raises(ProtocolError, match="noise is as large as what it would hide"):
        simulate(job, dealt(rows_of("logistic", 200), job), seed=b"1" * 32)


def test_columns_that_repeat_one_another_do_not_break_the_steps() -> None:
    """A curvature with a direction of 0, negative with noise: coefficients stay finite, and what is uncertain is said."""
    job = a_job()
    table = rows_of("logistic", 6000)
    table["b"] = (table["a"] + 2) / 5
    fit, _ = simulate(job, dealt(table, job), seed=b"1" * 32)
    assert np.isfinite(fit.coefficients).all()
    assert np.abs(fit.coefficients).max() < 50
    assert fit.facts["held_back"] >= 1
    assert any("directions the noise is larger" in str(line) for line in facts_of(fit))


def test_what_cannot_be_kept_is_refused() -> None:
    with pytest.raises(ParameterError, match="ordinary fit alone"):
        a_job(ridge=Fraction(1))
    with pytest.raises(ParameterError, match="ordinary fit alone"):
        a_job(intercept=False)
    job = a_job()
    with pytest.raises(ParameterError, match="fits a linear model without weights only"):
        replace(job, protocol=PROTOCOLS["delegated"], parties=(*job.parties, Party("v", "provider")))
    with pytest.raises(InputError, match="values other than 0 and 1"):
        PrivateRows({"a": [0.0] * 10, "b": [0] * 10, "y": [0.5] * 10}, job)
    with pytest.raises(InputError, match="missing or no number"):
        PrivateRows({"a": [np.nan] * 10, "b": [0] * 10, "y": [1] * 10}, job)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "truth"), [("logistic", (0.6, -0.8)), ("poisson", (0.25, -0.5))])
def test_intervals_hold_the_true_slopes_as_often_as_they_say(family: str, truth: tuple[float, float]) -> None:
    """80 tables with a known law: of the 95 % intervals from 90 to 99.5 % hold the slope (they are an approximation)."""
    job = a_job(family, epsilon=Fraction(2))
    held = []
    for seed in range(80):
        solved = fitted(job, rows_of(family, 4000, seed), seed)
        assert solved.errors is not None
        held += [
            abs(solved.coefficients[1 + place] - true) <= 1.96 * solved.errors[1 + place]
            for place, true in enumerate(truth)
        ]
    assert 0.9 <= np.mean(held) <= 0.995
