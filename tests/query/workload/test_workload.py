"""Several counts for one charge: exact without noise, no less exact than one by one, and as noisy as is said."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from math import prod
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import BudgetExceeded, QueryRefused
from velado.query.accuracy import Wish
from velado.query.answer import frame
from velado.query.budget import Budget
from velado.query.engines import engine_for_table
from velado.query.noise import add, calibrate, laplace_quantile, mixed_factor, standard_deviation
from velado.query.plan import carry_out, plan, plan_within
from velado.query.session import Session
from velado.query.sql import parse
from velado.query.unit import Unit
from velado.query.workload.questions import workload_texts
from velado.query.workload.workload import (
    counted,
    draw_workload,
    frames,
    plan_workload,
    plan_workload_within,
)
from velado.settings import Where

SCHEMA = Schema(
    {
        "age": Column("age", kind="numeric", bounds=(0, 120), step=1.0),
        "sex": Column("sex", values=("F", "M")),
        "ward": Column("ward", values=("a", "b", "c")),
        "home": Column("home"),
    }
)
HALF = Fraction(19, 20)
CONDITIONS = (
    "",
    "WHERE age > 60",
    "WHERE age < 30",
    "WHERE age BETWEEN 20 AND 40 AND sex = 'F'",
    "WHERE age > 60.5 OR ward = 'a'",
    "WHERE NOT (age = 30 OR sex <> 'M')",
    "WHERE sex IS NULL",
    "WHERE ward IN ('a', 'z') AND age IS NOT NULL",
    "WHERE home LIKE '1%'",
)
HEADS = (
    ("COUNT(*)", ""),
    ("COUNT(sex)", ""),
    ("sex, COUNT(*)", "GROUP BY sex"),
    ("ward, sex, COUNT(*)", "GROUP BY ward, sex"),
    ("HISTOGRAM(age, 12)", ""),
    ("sex, HISTOGRAM(age, 5)", "GROUP BY sex"),
)
QUESTIONS = tuple(f"SELECT {head} FROM t {where} {keys}" for head, keys in HEADS for where in CONDITIONS)
workloads = st.lists(st.sampled_from(QUESTIONS), min_size=2, max_size=7, unique=True)


def table(rows: int = 400, seed: int = 1) -> Table:
    random = np.random.default_rng(seed)
    return Table.of(
        pl.DataFrame(
            {
                "age": [None if one > 121 else f"{one / 2:g}" for one in random.integers(-4, 125, rows)],
                "sex": random.choice(np.array(["F", "M", "x", None], dtype=object), rows).tolist(),
                "ward": random.choice(np.array(["a", "b", "c", "z"], dtype=object), rows).tolist(),
                "home": [str(one) for one in random.integers(0, rows // 3, rows)],
            },
            schema=dict.fromkeys(("age", "sex", "ward", "home"), pl.String),
        ),
        SCHEMA,
        "t",
    )


def parsed(texts: list[str]):
    return [parse(text, SCHEMA, "t") for text in texts]


@settings(max_examples=25, deadline=None)
@given(workloads, st.sampled_from(["epsilon", "rho"]), st.integers(0, 5))
def test_without_noise_every_answer_is_the_exact_one(texts, measure, seed) -> None:
    queries = parsed(texts)
    with closing(engine_for_table(table(seed=seed), Unit())) as engine:
        made = plan_workload(queries, SCHEMA, Unit(), measure, Fraction(1))
        tables = _noiseless(made, engine)
        for one, found in zip(made.plans, frames(made, tables, HALF), strict=True):
            exact = engine.tally(one.query.where, one.keys, one.needs)
            for aggregate, (draw, tally) in enumerate(zip(one.draws, exact, strict=True)):
                assert draw.need in one.needs
                values = found[[c for c in found.columns if c.endswith("_low")][aggregate][:-4]]
                assert values.to_list() == tally.ravel().tolist()


def _noiseless(made, engine):
    """All that would be drawn, before any noise."""
    alone = [made.plans[at] for at in made.alone]
    exact = [tally for one in alone for tally in engine.tally(one.query.where, one.keys, one.needs)]
    return [*counted(made, engine), *exact]


@settings(max_examples=25, deadline=None)
@given(workloads, st.sampled_from(["epsilon", "rho"]))
def test_no_question_has_a_larger_error_than_one_by_one_for_the_same_spend(texts, measure) -> None:
    made = plan_workload(parsed(texts), SCHEMA, Unit("home", 3), measure, Fraction(2))
    assert made.charge <= 2
    mechanism = "laplace" if measure == "epsilon" else "gaussian"
    scale, _ = calibrate(mechanism, measure, 3, Fraction(2, len(texts)))
    alone = standard_deviation(mechanism, scale) ** 2
    for item in made.items:
        assert float((made.deviations(item) ** 2).mean()) <= alone
    for at in made.alone:
        assert made.plans[at].charge <= Fraction(2, len(texts))
        assert made.plans[at].draws[0].scale == pytest.approx(scale)


RANGES = [f"SELECT COUNT(*) FROM t WHERE age > {age}" for age in range(10, 100, 10)] + [
    "SELECT HISTOGRAM(age, 12) FROM t",
    "SELECT sex, COUNT(*) FROM t GROUP BY sex",
]


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_the_measured_error_is_the_computed_one_and_intervals_hold(measure) -> None:
    queries = parsed(RANGES)
    made = plan_workload(queries, SCHEMA, Unit(), measure, Fraction(1, 2))
    assert not made.alone
    with closing(engine_for_table(table(), Unit())) as engine:
        exact = [
            engine.tally(q.where, one.keys, one.needs)[0].ravel()
            for q, one in zip(queries, made.plans, strict=True)
        ]
        offs = {item.question: [] for item in made.items}
        held = []
        for _ in range(150):
            shown = frames(made, draw_workload(made, engine), HALF)
            for at, one in enumerate(shown):
                name = next(column[:-4] for column in one.columns if column.endswith("_low"))
                held.append(
                    (
                        (one[f"{name}_low"].to_numpy() <= exact[at])
                        & (exact[at] <= one[f"{name}_high"].to_numpy())
                    ).mean()
                )
                offs[at].append(one[name].to_numpy() - exact[at])
    assert np.mean(held) >= 0.945
    for item in made.items:
        found = np.array(offs[item.question])
        large = exact[item.question] > 4 * made.deviations(item).ravel()  # where no noise is cut at 0
        if large.any():
            ratio = found[:, large].std() / np.sqrt((made.deviations(item).ravel()[large] ** 2).mean())
            assert 0.75 < ratio < 1.25
    assert sum(float((made.deviations(item) ** 2).mean()) for item in made.items) > 0


@pytest.mark.parametrize("unit", [Unit(), Unit("home", 2)])
def test_one_unit_more_moves_the_drawn_tables_by_no_more_than_was_charged(unit) -> None:
    made = plan_workload(parsed([*RANGES, *QUESTIONS[:20:3]]), SCHEMA, unit, "epsilon", Fraction(1))
    assert made.draws
    whole = table(30)
    everybody = _exact_tables(made, whole, unit)
    for home in dict.fromkeys(whole.frame["home"].to_list()):
        rows = whole.frame.filter(pl.col("home") != home)
        fewer = _exact_tables(made, Table.of(rows, SCHEMA, "t"), unit)
        gone = (
            min(whole.frame.height - rows.height, unit.rows)
            if unit.column
            else whole.frame.height - rows.height
        )
        loss = sum(
            int(np.abs(a - b).sum()) / draw.scale
            for a, b, draw in zip(everybody, fewer, made.draws, strict=True)
        )
        assert all(
            np.abs(a - b).sum() <= gone * (draw.sensitivity // unit.rows)
            for a, b, draw in zip(everybody, fewer, made.draws, strict=True)
        )
        allowed = sum(float(draw.charge) for draw in made.draws) * (gone if unit.column is None else 1)
        assert loss <= allowed * (1 + 1e-9)


def _exact_tables(made, one: Table, unit: Unit):
    with closing(engine_for_table(one, unit)) as engine:
        return counted(made, engine)


def test_a_wish_is_kept_by_every_value_and_costs_no_more_than_one_by_one() -> None:
    queries = parsed(RANGES)
    made = plan_workload_within(queries, SCHEMA, Unit(), "epsilon", Wish(Fraction(20)))
    assert max(max(widths) for widths in made.widest()) <= 20
    assert made.charge < len(RANGES) * plan(queries[0], SCHEMA, Unit(), "epsilon", Fraction(1)).charge


@settings(max_examples=15, deadline=None)
@given(workloads, st.sampled_from(["epsilon", "rho"]), st.sampled_from(["7", "60", "2%", "30%"]))
def test_a_wish_is_never_dearer_than_one_by_one(texts, measure, within) -> None:
    wish = Wish.of(within, "within", Where("flag"))
    schema = replace(SCHEMA, dataset=replace(SCHEMA.dataset, rows=5000))
    queries = [parse(text, schema, "t") for text in texts]
    made = plan_workload_within(queries, schema, Unit(), measure, wish)
    single = [plan_within(one, schema, Unit(), measure, wish) for one in queries]
    assert made.charge <= sum(one.charge for one in single)
    for one, widths in zip(made.plans, made.widest(), strict=True):
        rows = Fraction(5000, max(1, prod(len(key.domain) for key in one.keys)))
        assert max(widths) <= float(wish.in_units(rows))


def test_a_least_spend_is_kept_by_a_wish_that_costs_less() -> None:
    wish = Wish(Fraction(10_000))
    made = plan_workload_within(parsed(RANGES), SCHEMA, Unit(), "epsilon", wish, least=Fraction(1, 10))
    assert 0.0999 < made.charge < 0.1001


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("scale", [0.4, 3.0, 40.0])
def test_no_weighted_sum_of_noises_is_beyond_its_half_width_more_often_than_said(measure, scale) -> None:
    mechanism = "laplace" if measure == "epsilon" else "gaussian"
    drawn = add(mechanism, measure, scale, np.zeros((12, 8000), dtype=np.int64)).astype(float)
    deviation = standard_deviation(mechanism, scale)
    for confidence in (Fraction(1, 2), Fraction(907, 1000), Fraction(19, 20), Fraction(99, 100)):
        for weights in ([1.0], [1.0, 1.0], [1.0, 0.3, 0.2], [0.31] * 12, [1, -0.5, 0.25, 0.125]):
            found = np.abs(np.array(weights) @ drawn[: len(weights)])
            factor = mixed_factor(mechanism, scale, len(weights), confidence)
            beyond = (found > factor * deviation * float(np.hypot.reduce(weights))).mean()
            outside = float(1 - confidence)
            assert beyond <= outside + 4.5 * (outside * (1 - outside) / 8000) ** 0.5


def test_the_bound_of_sums_is_above_laplace_normal_and_two_equal_noises() -> None:
    for outside in (0.3, 0.0931, 0.05, 0.01, 1e-6):
        found = laplace_quantile(outside)
        normal = -NormalDist().inv_cdf(outside / 2)
        assert found >= max(normal, -np.log(outside) / 2**0.5) * (1 - 1e-9)
        # Two equal ones of variance 1 in all have scale 1/2: the chance beyond t is e^(-2t) (1 + t).
        assert np.exp(-2 * found) * (1 + found) <= outside
        assert found <= 1.06 * max(normal, -np.log(outside) / 2**0.5)


def test_a_workload_is_paid_once_before_a_row_is_counted_and_is_the_same_again() -> None:
    with Session(table(), budget=Budget.epsilon(1)) as session:
        first = session.workload(RANGES, spend="0.5")
        again = session.workload(RANGES, spend="0.5")
        assert first.cost.spent <= Fraction(1, 2) and not first.stored
        assert again.stored and again.cost.spent == 0
        assert all(a.equals(b) for a, b in zip(first.frames, again.frames, strict=True))
        assert session.state().spent == first.cost.spent
        with pytest.raises(BudgetExceeded):
            session.workload(RANGES[:4], spend="0.6")
        assert session.state().spent == first.cost.spent


def test_more_than_counts_is_refused() -> None:
    with Session(table(), budget=1) as session, pytest.raises(QueryRefused):
        session.price_workload(["SELECT COUNT(*) FROM t", "SELECT AVG(age) FROM t"])
    with Session(table(), budget=1) as session, pytest.raises(QueryRefused):
        session.price_workload([])


def test_a_semicolon_in_a_text_does_not_end_a_question() -> None:
    assert workload_texts("SELECT 1 WHERE a = 'x;y';\n-- no; question\nSELECT 2") == [
        "SELECT 1 WHERE a = 'x;y'",
        "SELECT 2",
    ]


def test_a_question_alone_is_drawn_as_by_itself() -> None:
    made = plan_workload(
        parsed(["SELECT COUNT(*) FROM t WHERE home LIKE '1%'"]), SCHEMA, Unit(), "rho", Fraction(1)
    )
    assert made.alone == (0,) and made.plans[0].charge <= 1
    assert carry_out(made.plans[0], (np.array([5]),))[0].shape == (1,)


def test_equal_questions_are_drawn_and_paid_once_whatever_they_are_called() -> None:
    texts = [
        "SELECT COUNT(*) AS a FROM t WHERE age > 40",
        "SELECT sex, COUNT(*) FROM t GROUP BY sex",
        "SELECT COUNT(*) AS b FROM t WHERE 40 < age",
        "SELECT COUNT(*) FROM t WHERE home LIKE '1%'",
        "SELECT COUNT(*) AS c FROM t WHERE home LIKE '1%'",
    ]
    once = parsed([texts[0], texts[1], texts[3]])
    wish = Wish.of(20, "within", Where("python"))
    every = plan_workload_within(parsed(texts), SCHEMA, Unit(), "epsilon", wish)
    assert every.charge == plan_workload_within(once, SCHEMA, Unit(), "epsilon", wish).charge
    assert every.charge <= sum(plan_within(one, SCHEMA, Unit(), "epsilon", wish).charge for one in once)
    assert len(every.to_dict()["questions"]) == 5 and every.to_dict()["alone"][-2:] == [3, 4]
    assert sum(sentence.startswith("Question ") for sentence in map(str, every.sentences())) == 5
    with Session(table(), budget=10, name="t") as session:
        answers = session.workload(texts, spend=1)
        first, _, second, third, fourth = answers.frames
        assert first.columns[0] == "a" and second.columns == ["b", "b_low", "b_high"]
        assert first.rows() == second.rows() and third.rows() == fourth.rows()
        assert session.workload(texts, spend=1).stored and len(answers.to_dict()["answers"]) == 5


def test_a_wrong_question_is_named_and_one_text_holds_several() -> None:
    with Session(table(), budget=10, name="t") as session:
        with pytest.raises(QueryRefused, match="Question 2 of the workload: "):
            session.price_workload(["SELECT COUNT(*) FROM t", "SELECT COUNT(*) FROM u"], spend=1)
        one = session.price_workload(
            "SELECT COUNT(*) FROM t;\nSELECT COUNT(*) FROM t WHERE age > 1;", spend=1
        )
        assert len(one.questions) == 2


def test_next_to_no_noise_has_a_width_too() -> None:
    for scale in (1e-4, 1e-3, 0.002, 0.01, 0.1):
        assert math.isfinite(mixed_factor("laplace", scale, 3, Fraction(19, 20)))


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_many_empty_keys_are_not_less_exact_together(measure) -> None:
    """A GROUP BY keeps its drawn sum, as alone: cut at 0 one by one, its error was up to four times that of asking it alone."""
    wide = Schema(
        {"code": Column("code", values=tuple(f"k{at}" for at in range(200))), "sex": SCHEMA.columns["sex"]}
    )
    rows = [(f"k{at % 5}", "FM"[at % 2]) for at in range(400)]
    data = Table.of(pl.DataFrame(rows, schema=["code", "sex"], orient="row"), wide, "t")
    queries = [
        parse(text, wide, "t")
        for text in (
            "SELECT code, COUNT(*) FROM t GROUP BY code",
            "SELECT code, sex, COUNT(*) FROM t GROUP BY code, sex",
        )
    ]
    spend = Fraction(1, 5) if measure == "epsilon" else Fraction(1, 200)
    made = plan_workload(queries, wide, Unit(), measure, spend)
    assert not made.alone
    single = [plan(one, wide, Unit(), measure, spend / 2) for one in queries]
    together, alone = np.zeros(2), np.zeros(2)
    with closing(engine_for_table(data, Unit())) as engine:
        exact = [engine.tally(None, one.keys, one.needs)[0].ravel() for one in single]
        for _ in range(40):
            for at, found in enumerate(frames(made, draw_workload(made, engine), HALF)):
                assert (found["count"] >= 0).all() and (found["count_low"] <= found["count"]).all()
                together[at] += float(((found["count"].to_numpy() - exact[at]) ** 2).mean())
            for at, one in enumerate(single):
                found = frame(one, carry_out(one, engine.tally(None, one.keys, one.needs)), HALF)
                alone[at] += float(((found["count"].to_numpy() - exact[at]) ** 2).mean())
    # Forty draws tell the two apart to about a fifth.
    assert (together <= 1.25 * alone).all()
