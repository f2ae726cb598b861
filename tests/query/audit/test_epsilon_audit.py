"""An auditor who sees answers alone: how much more likely is an event with a group than without it?

For neighbouring tables D and D', epsilon-differential privacy says P[A(D) in E] <= e^epsilon P[A(D') in E]. From N answers
each, Clopper-Pearson bounds on both chances give a lower bound on the true epsilon. It must not exceed what the answers
claim; and where the loss is doubled on purpose it must, or the audit would prove nothing.
"""

import math
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from scipy.stats import beta

import velado.query.session as session_module
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.query.engines import engine_for_table
from velado.query.session import Session
from velado.query.unit import Unit

from ...covering import one_in

WARDS = 40
ASKS = 50
# Of all audits in this file together, fewer than one run in ten thousand raises a false alarm.
ERROR = 1e-6
MOST = 5
UNIT = Unit("home", MOST)
SCHEMA = Schema(
    {
        "home": Column("home", "identifier", "text", group=True, max_rows=MOST),
        "ward": Column("ward", "quasi", "categorical", values=tuple(f"w{at}" for at in range(WARDS))),
        "age": Column("age", "quasi", "numeric", bounds=(0.0, 100.0), step=1.0),
        "ill": Column("ill", "other", "numeric", bounds=(0.0, 1.0), step=1.0),
        # Of both signs, so that noise makes nothing impossible: one-sided numbers are made possible together, keeping the sum
        # of all wards, and a ward's answer would then tell of the other wards' families too.
        "gain": Column("gain", "other", "numeric", bounds=(-100.0, 100.0), step=1.0),
        "one": Column("one", "other", "numeric", bounds=(-1.0, 1.0), step=1.0),
    }
)


def table(group: int) -> Table:
    """In every ward thirty homes of one person, and one home of *group* people who are all at the upper bounds.

    What is said of one ward depends on its own rows and its own noise, so each ward is an audit of its own: with its
    family, or without.
    """
    single = [(f"h{at}", "0", "0" if at < 2 else "") for at in range(30)]
    family = [("family", "100", "1")] * group
    rows = [
        (f"{home}-{ward}", f"w{ward}", age, ill, age, "1")
        for ward in range(WARDS)
        for home, age, ill in single + family
    ]
    return Table.of(pl.DataFrame(rows, schema=list(SCHEMA.columns), orient="row"), SCHEMA, "people")


class Untruncated:
    """An engine that says it keeps at most g rows of a group, and keeps them all: the bug the audit must see."""

    def __init__(self, data: Table) -> None:
        self.engine = engine_for_table(data, Unit("home", 1000))
        self.unit = UNIT

    def __getattr__(self, name):
        return getattr(self.engine, name)


def answers(engine, sql: str, spend: Fraction, asks: int) -> list[float | None]:
    """Every ward's value (or the single one) in each of *asks* fresh sessions; None is one that is unknown at this spend."""
    out: list[float | None] = []
    for _ in range(asks):
        with Session(engine, UNIT, spend, schema=SCHEMA, name="people") as session:
            answer = session.answer(sql, spend=spend)
            assert Fraction(answer.guarantee.epsilon) <= spend
            values = answer.frame[answer.how.values[0]].to_list()
            out += values if len(values) == 1 else values[:WARDS]
    return out


EVENTS = 3
"""Each answer is one of: at least the threshold, below it, unknown. Their complements are events too."""


def least_epsilon(more: list[float | None], fewer: list[float | None], threshold: float) -> float:
    """A lower bound, with confidence 1 - ERROR, on the epsilon of what an answer can be: high, low or unknown, or not so."""
    found = [0.0]
    outcomes = [
        ["unknown" if value is None else "high" if value >= threshold else "low" for value in values]
        for values in (more, fewer)
    ]
    # Six events, two orders, two bounds each.
    risk = ERROR / (EVENTS * 2 * 2 * 2)
    for event in ("high", "low", "unknown"):
        for so in (True, False):
            hits = [sum((outcome == event) == so for outcome in one) for one in outcomes]
            for at, other in ((0, 1), (1, 0)):
                low = beta.ppf(risk, hits[at], len(more) - hits[at] + 1) if hits[at] else 0.0
                high = (
                    beta.ppf(1 - risk, hits[other] + 1, len(fewer) - hits[other])
                    if hits[other] < len(fewer)
                    else 1.0
                )
                if low > 0:
                    found.append(math.log(low / high))
    return max(found)


def audit(sql: str, threshold: float, group: int = MOST, engine=None, asks: int = ASKS) -> float:
    make = engine or (lambda data: engine_for_table(data, UNIT))
    with_group, without = make(table(group)), make(table(0))
    try:
        both = [answers(one, sql, Fraction(1), asks) for one in (with_group, without)]
        return least_epsilon(both[0], both[1], threshold)
    finally:
        with_group.close()
        without.close()


def with_less_noise(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    """From here on noise has a *part*-th of the scale the plan asks for, at the charge of the whole."""
    honest = session_module.carry_out

    def less(plan, tallies, deadline=None):
        return honest(
            replace(plan, draws=tuple(replace(d, scale=d.scale / part) for d in plan.draws)), tallies
        )

    monkeypatch.setattr(session_module, "carry_out", less)


COUNT = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward"
SUM = "SELECT ward, SUM(gain) AS s FROM people GROUP BY ward"
AVERAGE = "SELECT ward, AVG(age) AS a FROM people GROUP BY ward"
MEDIAN = "SELECT ward, MEDIAN(ill) AS m FROM people GROUP BY ward"
LARGEST = "SELECT ward, MAX(ill) AS m FROM people GROUP BY ward"
ONE_WARD = "SELECT COUNT(*) AS n FROM people WHERE ward = 'w0'"


@pytest.mark.parametrize(
    ("sql", "threshold"),
    [
        pytest.param(COUNT, 35, id="count"),
        pytest.param(SUM, 500, id="sum", marks=pytest.mark.slow),
        pytest.param(AVERAGE, 14, id="avg", marks=pytest.mark.slow),
        pytest.param(MEDIAN, 1, id="median"),
        pytest.param(LARGEST, 1, id="max", marks=pytest.mark.slow),
    ],
)
def test_one_group_is_hidden_as_well_as_the_answer_claims(sql: str, threshold: float) -> None:
    assert audit(sql, threshold) <= 1


@pytest.mark.slow
def test_a_group_larger_than_the_most_is_hidden_too() -> None:
    assert audit(COUNT, 35, group=3 * MOST) <= 1


@pytest.mark.slow
def test_the_audit_is_sharp_enough_to_see_most_of_an_honest_loss() -> None:
    assert 0.4 < audit(COUNT, 35) <= 1


@pytest.mark.parametrize(
    ("sql", "threshold"), one_in(2, [(COUNT, 35), (SUM, 500)], apart=True), ids=["count", "sum"]
)
def test_the_audit_sees_a_doubled_loss(monkeypatch: pytest.MonkeyPatch, sql: str, threshold: float) -> None:
    with_less_noise(monkeypatch, 2)
    assert audit(sql, threshold) > 1


@pytest.mark.slow
def test_the_audit_sees_a_quantile_chosen_with_too_little_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    # Between these two tables an honest median loses about half of what it may, so the loss must be four times too high.
    with_less_noise(monkeypatch, 4)
    assert audit(MEDIAN, 1) > 1


@pytest.mark.slow
def test_the_audit_sees_that_the_most_rows_were_ignored() -> None:
    assert audit(COUNT, 40, group=2 * MOST, engine=Untruncated) > 1


@pytest.mark.slow
def test_a_single_number_asked_again_and_again_with_fresh_ledgers_keeps_its_claim() -> None:
    assert 0.3 < audit(ONE_WARD, 35, asks=1500) <= 1


@pytest.mark.slow
def test_a_doubled_loss_shows_in_single_numbers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with_less_noise(monkeypatch, 2)
    assert audit(ONE_WARD, 35, asks=1500) > 1


@pytest.mark.slow
def test_the_family_of_ten_needs_its_group() -> None:
    """Ten who fall ill together: noise for one record tells them apart, noise for the declared house does not."""
    ill = "SELECT ward, SUM(one) AS n FROM people WHERE age >= 100 GROUP BY ward"

    def asked(family: int, unit: Unit) -> list[float | None]:
        engine = engine_for_table(table(family), unit)
        out: list[float | None] = []
        for _ in range(20):
            with Session(engine, unit, 1, schema=SCHEMA, name="people") as session:
                out += session.answer(ill, spend=1).frame["n"].to_list()[:WARDS]
        engine.close()
        return out

    house, record = Unit("home", 10), Unit()
    assert least_epsilon(asked(10, house), asked(0, house), 10) <= 1
    assert least_epsilon(asked(10, record), asked(0, record), 5) > 2.5
