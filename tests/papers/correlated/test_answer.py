"""Queries answered as in the source: what comes back, what it says of itself, and what is refused."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import ParameterError, QueryRefused, TableError
from velado.papers.correlated.approaches import Baseline, Memberships
from velado.papers.correlated.correlated_answer import matching_rows, paper_answer
from velado.query.values import Aggregate, And, Compare, In, IsNull, Like, Not, Or, Query
from velado.randomness import seeded

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "name": {"role": "identifier", "kind": "text"},
            "cars": {"role": "other", "kind": "numeric"},
            "town": {"role": "other", "kind": "categorical"},
            "born": {"role": "other", "kind": "date"},
        }
    }
)


def people(**columns) -> Table:
    cells = {
        "name": ["Artur", "Bernardo", "Celso", "Dener"],
        "cars": ["3", "1", "2", "6"],
        "town": ["Natal", "Recife", "Natal", "Belo%"],
        "born": ["1990-01-01", "1985-05-05", "1970-12-31", "2001-02-03"],
    }
    return Table.of(pl.DataFrame({**cells, **columns}), SCHEMA)


def ask(kind="sum", column="cars", where=None, keys=()) -> Query:
    return Query("people", (Aggregate(kind, column, alias="x"),), where, keys)


def answer(table, query, epsilon=1.0, seed=0, **options):
    options.setdefault("has_ledger", False)
    return paper_answer(table, query, Baseline(), epsilon, seeded(seed), **options)


def test_the_answer_says_that_it_promises_nothing() -> None:
    found = answer(people(), ask()).to_dict()
    assert found["guarantee"]["type"] == "none"
    assert found["guarantee"]["as_in"] == "paper"
    assert found["guarantee"]["approach"] == "baseline"
    assert "budget" not in str(found).lower()
    assert found["how"]["scale_parameter"] == 1.0


def test_independent_records_get_noise_of_the_sensitivity_of_the_cars() -> None:
    alone = Memberships.of(np.eye(4))
    found = answer(people(), ask(), epsilon=0.5, fitted=alone)
    assert found.scales == {"x": 12.0}
    draws = [answer(people(), ask(), fitted=alone, seed=seed).values["x"] - 12 for seed in range(2000)]
    assert np.mean(np.abs(draws)) == pytest.approx(6.0, rel=0.1)
    assert len(set(draws)) == 2000


def test_correlated_records_get_more_noise_than_independent_ones() -> None:
    assert answer(people(), ask()).scales["x"] > 6.0


def test_the_answer_is_about_the_rows_of_the_predicate() -> None:
    alone = Memberships.of(np.eye(4))
    where = Compare("town", "=", "Natal")
    draws = [answer(people(), ask(where=where), fitted=alone, seed=s).values["x"] for s in range(500)]
    assert np.median(draws) == pytest.approx(5.0, abs=0.5)
    assert answer(people(), ask(where=where), fitted=alone).scales == {"x": 3.0}


def test_a_table_with_a_ledger_is_refused() -> None:
    with pytest.raises(QueryRefused, match="ledger"):
        answer(people(), ask(), has_ledger=True)


def test_an_empty_answer_is_refused() -> None:
    with pytest.raises(QueryRefused):
        answer(people(), ask("count", None, Compare("cars", ">", Fraction(6))))


def test_a_minimum_without_noise_is_refused_unless_it_is_asked_for() -> None:
    table = people(cars=["1", "1", "2", "6"])
    with pytest.raises(QueryRefused, match="without any noise"):
        answer(table, ask("min"))
    shown = answer(table, ask("min"), show_unprotected=True)
    assert shown.values == {"x": 1.0}
    assert shown.guarantee["without_noise"] == ["x"]
    assert answer(table, ask("max")).scales["x"] > 0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_parameter_that_is_no_positive_number_is_refused(epsilon) -> None:
    with pytest.raises(ParameterError):
        answer(people(), ask(), epsilon)


def test_what_the_source_cannot_answer_is_refused() -> None:
    for query in (
        ask(keys=("town",)),
        ask("quantile"),
        ask("sum", None),
        ask("sum", "town"),
        ask("sum", "nowhere"),
        ask(where=Compare("nowhere", "=", "x")),
        ask(where=Compare("cars", "=", "three")),
        ask(where=Compare("town", "<", Fraction(3))),
        Query("people", ()),
    ):
        with pytest.raises(QueryRefused):
            answer(people(), query)


def test_records_with_missing_cells_are_refused_as_the_source_removes_them() -> None:
    with pytest.raises(TableError):
        answer(people(cars=["3", "", "2", "6"]), ask())


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        (None, [0, 1, 2, 3]),
        (Compare("cars", ">=", Fraction(2)), [0, 2, 3]),
        (Compare("cars", "<>", Fraction(2)), [0, 3]),
        (In("town", ("Natal", "Recife")), [0, 1]),
        (Not(In("town", ("Natal",))), [1, 3]),
        (Like("town", "%al"), [0]),
        (Like("town", "Belo_"), [3]),
        (Like("town", "B.*"), []),
        (IsNull("town"), [2]),
        (Not(IsNull("cars")), [0, 2, 3]),
        (And((Compare("cars", ">", Fraction(1)), Compare("town", "=", "Natal"))), [0]),
        (Or((Compare("cars", ">", Fraction(5)), IsNull("cars"))), [1, 3]),
        (Not(Compare("cars", ">", Fraction(5))), [0, 2]),
    ],
)
def test_rows_match_as_in_sql_with_missing_cells_unknown(where, rows) -> None:
    table = people(cars=["3", "", "2", "6"], town=["Natal", "Recife", "", "Belo%"])
    assert np.flatnonzero(matching_rows(table, where)).tolist() == rows


def test_days_are_compared_as_days() -> None:
    from datetime import date

    assert np.flatnonzero(matching_rows(people(), Compare("born", "<", date(1986, 1, 1)))).tolist() == [1, 2]
