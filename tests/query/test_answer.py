"""What an answer says of itself to a person: nothing that is not so, and no number that nobody can read."""

import json
from fractions import Fraction

import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.query.answer import Answer
from velado.query.budget import Budget, epsilon_of, short
from velado.query.session import Session
from velado.query.store import memory_ledger
from velado.query.unit import Unit

SCHEMA = Schema(
    {
        "home": Column("home", "identifier", "text", group=True, max_rows=3),
        "age": Column("age", "quasi", "numeric", bounds=(0.0, 100.0), step=1.0),
    }
)


def people() -> Table:
    homes, ages = [f"h{at // 2}" for at in range(60)], [str(at % 90) for at in range(60)]
    return Table.of(pl.DataFrame({"home": homes, "age": ages}), SCHEMA, "people")


def said(sql: str, **settings: object) -> str:
    return "\n".join(Session(people(), budget=1, **settings).answer(sql).sentences())


def test_an_interval_is_promised_for_the_rows_that_count_alone() -> None:
    text = said("SELECT COUNT(*) FROM people")
    assert "over the rows that count (at most 3 per unit)" in text and "declared bounds" in text
    assert "with a chance of at least 95%" in text and "quantile" not in text
    assert "over every row" in said("SELECT COUNT(*) FROM people", unit=Unit())


def test_quantiles_tell_their_rank_error_and_no_interval() -> None:
    text = said("SELECT MIN(age), MAX(age), MEDIAN(age) FROM people")
    assert "min_age: MIN is answered as the 1% quantile" in text
    assert "max_age: MAX is answered as the 99% quantile" in text
    assert "median_age: the 50% quantile" in text and text.count("may miss the asked rank by") == 3
    assert "interval" not in text


def test_a_declared_bound_says_that_no_rows_were_looked_at() -> None:
    text = said("SELECT MAX(age) FROM people", extremes="bound")
    assert "max_age is the declared bound of 'age'; no rows were looked at" in text
    assert "interval" not in text and "quantile" not in text


def test_the_epsilon_that_rho_implies_is_told_at_the_declared_delta() -> None:
    session = Session(people(), budget=memory_ledger("people", Budget.rho("0.5", "1e-9")))
    answer = session.answer("SELECT COUNT(*) FROM people", spend="0.1")
    implied = answer.guarantee.implies
    assert implied["epsilon"] == epsilon_of(Fraction(answer.guarantee.rho), Fraction("1e-9"))
    assert "At delta 1e-09 this answer alone implies an epsilon of about 2.97" in "\n".join(
        answer.sentences()
    )
    pure = Session(people(), budget=1).answer("SELECT COUNT(*) FROM people")
    assert pure.guarantee.implies is None


def test_readings_survive_writing() -> None:
    answer = Session(people(), budget=1).answer("SELECT MIN(age), COUNT(*) FROM people")
    again = Answer.from_dict(json.loads(answer.to_json()))
    assert again.sentences() == answer.sentences()


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0"),
        ("1/2", "0.5"),
        ("1/3", "about 0.333333"),
        ("5854679515581645/4503599627370496", "about 1.3"),
        (Fraction(832667, 10**23), "less than 0.000001"),
        ("3/200000", "0.000015"),
        ("1000", "1000"),
    ],
)
def test_amounts_are_decimals_without_exponents(amount: str, text: str) -> None:
    assert short(amount) == text
