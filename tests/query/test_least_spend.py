"""A question spends at least a share of the budget, so that there are not any number of them."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import ParameterError, QueryRefused
from velado.query.session import Session

SCHEMA = Schema({"age": Column("age", kind="numeric", bounds=(0, 120))})
COUNT = "SELECT COUNT(*) FROM t"


@pytest.fixture
def table() -> Table:
    return Table.of(pl.DataFrame({"age": [31, 40, 50]}), SCHEMA, "t")


def test_less_than_a_ten_thousandth_of_the_budget_is_refused_before_it_is_paid(table: Table) -> None:
    with Session(table, budget=2) as session:
        assert session.least == Fraction(2, 10_000)
        for ask in (session.price, lambda sql, spend: session.answer(sql, spend=spend)):
            with pytest.raises(QueryRefused, match=r"at least epsilon 0\.0002"):
                ask(COUNT, "0.00019")
        assert session.state().spent == 0
        assert session.answer(COUNT, spend="0.0002").cost.spent <= session.least


def test_an_accuracy_that_costs_less_is_given_for_the_least(table: Table) -> None:
    sql = "SELECT COUNT(*), SUM(age) FROM t"
    with Session(table, budget=100) as session:
        price = session.price(sql, within=1_000_000)
        assert session.least * (1 - Fraction(1, 10**6)) < price.charge <= session.least
        for value in price.to_dict()["values"]:
            assert value["half_width"] <= 1_000_000
        answer = session.answer(sql, within=1_000_000)
        assert answer.cost.spent == price.charge
        # What costs more than the least is as it was.
        with Session(table, budget=1, least="1e-9") as other:
            assert session.price(COUNT, within=10).charge == other.price(COUNT, within=10).charge


def test_the_owner_sets_another_least(table: Table) -> None:
    with Session(table, budget=1, least="0.25") as session:
        assert session.each == Fraction(1, 4)
        with pytest.raises(QueryRefused, match=r"at least epsilon 0\.25"):
            session.price(COUNT, "0.2")
        assert session.price(COUNT, "0.25").charge > 0
        asked = sum(1 for number in range(9) if _paid(session, number))
    assert asked == 4
    with pytest.raises(ParameterError, match="least"):
        Session(table, budget=1, least=0)


def _paid(session: Session, number: int) -> bool:
    from velado.errors import BudgetExceeded

    try:
        session.answer(f"SELECT COUNT(*) FROM t WHERE age > {number}", spend="0.25")
    except BudgetExceeded:
        return False
    return True


def test_what_costs_nothing_has_no_least(table: Table) -> None:
    with Session(table, budget=1, extremes="bound") as session:
        assert session.answer("SELECT MIN(age) FROM t", spend="1e-9").cost.spent == 0
