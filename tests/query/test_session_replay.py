"""The same question, however written and whoever asks, has one answer; threads never draw what was not paid."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import BudgetExceeded
from velado.query.budget import Budget
from velado.query.session import Session
from velado.query.store import memory_ledger, people_state
from velado.query.unit import Unit

SCHEMA = Schema(
    {
        "home": Column("home", "identifier", "text", group=True, max_rows=3),
        "sex": Column("sex", "quasi", "categorical", values=("F", "M")),
        "age": Column("age", "quasi", "numeric", bounds=(0.0, 100.0), step=1.0),
    }
)


def people(rows: int = 60) -> Table:
    frame = pl.DataFrame(
        {
            "home": [f"h{at // 2}" for at in range(rows)],
            "sex": ["F" if at % 3 else "M" for at in range(rows)],
            "age": [str(at % 90) for at in range(rows)],
        }
    )
    return Table.of(frame, SCHEMA, "people")


@pytest.mark.parametrize(
    "other",
    [
        "select count(*) from people where sex = 'F' and age > 30",
        "SELECT COUNT(*) AS women FROM people WHERE age > 30 AND sex = 'F'",
        "SELECT COUNT(*) FROM people WHERE ((30 < age) AND sex IN ('F')) -- the same",
        "SELECT COUNT(*) FROM people WHERE NOT (NOT (sex = 'F' AND age > 30.0))",
    ],
)
def test_another_way_to_ask_the_same_gets_the_same_numbers_for_nothing(other: str) -> None:
    session = Session(people(), budget=1)
    first = session.answer("SELECT COUNT(*) FROM people WHERE sex = 'F' AND age > 30", spend="1/100")
    spent = session.state().spent
    again = session.answer(other, spend="0.01", analyst="another")
    assert again.stored and not first.stored and again.question == first.question
    assert again.value == first.value and again.receipt == first.receipt
    assert again.cost.spent == 0 and session.state().spent == spent
    # The promise of the numbers is still what they cost when they were drawn.
    assert again.guarantee.epsilon == first.guarantee.epsilon


def test_aliases_and_confidence_are_applied_to_stored_numbers() -> None:
    session = Session(people(), budget=1)
    narrow = session.answer("SELECT COUNT(*) AS a FROM people", confidence=0.5)
    wide = session.answer("SELECT COUNT(*) AS b FROM people", confidence=0.999)
    assert wide.stored and wide.frame.columns[0] == "b" and wide.value == narrow.value
    assert (
        wide.frame["b_high"][0] - wide.frame["b_low"][0]
        > narrow.frame["a_high"][0] - narrow.frame["a_low"][0]
    )


def test_averaging_a_repeated_question_gains_nothing() -> None:
    session = Session(people(), budget=1)
    values = {session.answer("SELECT COUNT(*) FROM people", spend="0.01").value for _ in range(50)}
    assert len(values) == 1 and session.state().answers <= 2


def test_another_spend_unit_extremes_or_content_is_another_question() -> None:
    table, sql = people(), "SELECT COUNT(*) FROM people"
    ledger = memory_ledger("people", Budget.epsilon(5))
    columns = [replace(c, max_rows=2) if c.group else c for c in SCHEMA.columns.values()]
    sessions = [
        (Session(table, budget=ledger), "0.5"),
        (Session(table, budget=ledger), "0.25"),
        (Session(table, Unit("home", 2), ledger), "0.5"),
        (Session(table, budget=ledger, extremes="bound"), "0.5"),
        (Session(people(61), budget=ledger), "0.5"),
    ]
    answers = [session.answer(sql, spend=spend) for session, spend in sessions]
    assert not any(answer.stored for answer in answers)
    assert len({answer.entry for answer in answers}) == len(answers)
    # The unit of the schema and the same unit named by hand are one question.
    smaller = Session(table.with_schema(SCHEMA.with_columns(columns)), budget=ledger)
    assert smaller.unit == Unit("home", 2)


def test_a_declared_domain_is_part_of_the_question() -> None:
    ledger = memory_ledger("people", Budget.epsilon(5))
    sql = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
    first = Session(people(), budget=ledger).answer(sql)
    columns = [replace(c, values=("F", "M", "X")) if c.name == "sex" else c for c in SCHEMA.columns.values()]
    other = Session(people().with_schema(SCHEMA.with_columns(columns)), budget=ledger).answer(sql)
    assert not other.stored and other.question != first.question and other.frame.height == 4


def test_threads_that_ask_the_same_at_once_pay_once_and_see_one_answer() -> None:
    session = Session(people(), budget=1)
    questions = [f"SELECT COUNT(*) FROM people WHERE age > {age}" for age in range(10)] * 8
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda sql: session.answer(sql, spend="0.01"), questions))
    paid = Counter(answer.question for answer in answers if not answer.stored)
    assert set(paid.values()) == {1} and len(paid) == 10
    assert len({(answer.question, answer.value) for answer in answers}) == 10
    assert session.state().spent == sum(Fraction(answer.cost.spent) for answer in answers)
    assert session._locks == {}


def test_threads_never_spend_more_than_the_budget() -> None:
    session = Session(people(), budget="0.1")

    def ask(age: int) -> Fraction | None:
        try:
            return Fraction(
                session.answer(f"SELECT COUNT(*) FROM people WHERE age > {age}", spend="0.01").cost.spent
            )
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(16) as pool:
        costs = [cost for cost in pool.map(ask, range(60)) if cost is not None]
    assert len(costs) == 10 and sum(costs) == session.state().spent <= Fraction(1, 10)


def test_no_written_form_of_an_answer_tells_two_contents_of_the_table_apart_but_by_its_numbers() -> None:
    sql = "SELECT COUNT(*) FROM people"
    forms = []
    for rows in (60, 61):
        session = Session(people(rows), budget=1.0)
        answer = session.answer(sql)
        document = answer.to_dict()
        assert answer.entry and answer.entry not in answer.to_json() and answer.entry not in repr(answer)
        assert session._engine.version not in answer.to_json()
        forms.append({key: value for key, value in document.items() if key not in ("rows", "receipt")})
    assert forms[0] == forms[1]


def test_a_declared_version_stands_for_the_content_whatever_the_rows_are() -> None:
    ledger = memory_ledger("people", Budget.epsilon(5))
    sql = "SELECT COUNT(*) FROM people"
    first = Session(people(), budget=ledger, version="a").answer(sql)
    changed = Session(people(61), budget=ledger, version="a").answer(sql)
    later = Session(people(61), budget=ledger, version="b").answer(sql)
    assert changed.stored and changed.value == first.value and not later.stored


def test_the_ledger_writes_down_what_a_question_was_allowed_to_cost() -> None:
    ledger = memory_ledger("people", Budget.epsilon(5))
    Session(people(), budget=ledger).answer("SELECT COUNT(*) FROM people WHERE age > 3", spend="1/8")
    texts = [entry.fields()["text"] for entry in ledger.entries() if entry.kind == "reserve"]
    assert json.loads(texts[-1])["spend"] == "1/8" and json.loads(texts[-1])["table"] == "people"


def test_the_entry_about_the_unit_is_no_answer_and_nobodys() -> None:
    ledger = memory_ledger("people", Budget.epsilon(5))
    session = Session(people(), budget=ledger)
    assert people_state(ledger, ledger.state()) == ledger.state()
    session.answer("SELECT COUNT(*) FROM people", analyst="ana")
    told = people_state(ledger, ledger.state())
    assert told.answers == 1 and set(told.by_analyst) == {"ana"}
    assert told.spent == ledger.state().spent
