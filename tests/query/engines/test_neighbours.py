"""Taking a whole unit away moves no answer by more than the unit claims, and touches no other unit's rows."""

import numpy as np
import polars as pl
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.query.engines import engine_for_postgres, engine_for_table
from velado.query.needs import Counts, Grid, GridCells, GridSum, GroupKey, Rows
from velado.query.unit import Unit
from velado.query.values import Compare

SCHEMA = Schema(
    {
        "home": Column("home"),
        "kind": Column("kind"),
        "x": Column("x", kind="numeric", bounds=(-3, 5), step=0.5),
    }
)
GRID = Grid.of(SCHEMA.columns["x"])
NEEDS = (
    Rows(),
    Rows("x"),
    GridSum(GRID),
    GridSum(GRID, GRID.centre),
    GridCells(GRID, tuple(range(-6, 12, 3))),
)
REACH = (1, 1, GRID.reach, GRID.centred_reach, 1)
KEYS = (GroupKey("kind", ("a", "b")),)
rows = st.lists(
    st.tuples(
        st.sampled_from(["h1", "h2", "h3", "", None]),
        st.sampled_from(["a", "b", "c", None]),
        st.one_of(st.none(), st.floats(-4, 6)),
    ),
    min_size=2,
    max_size=20,
)


def without(drawn: list[tuple], home: str | None) -> list[tuple]:
    return [row for row in drawn if (row[0] or None) != home]


def moved(before: tuple[Counts, ...], after: tuple[Counts, ...]) -> list[int]:
    return [int(np.abs(b - a).sum()) for b, a in zip(before, after, strict=True)]


def check_neighbours(tally, drawn: list[tuple], most: int) -> None:
    unit = Unit("home", most)
    whole = tally(drawn, unit)
    for home in {row[0] or None for row in drawn}:
        rest = without(drawn, home)
        if rest:
            change = moved(whole, tally(rest, unit))
            assert all(c <= unit.times(reach) for c, reach in zip(change, REACH, strict=True))


def in_duckdb(drawn: list[tuple], unit: Unit) -> tuple[Counts, ...]:
    frame = pl.DataFrame(drawn, schema={"home": pl.String, "kind": pl.String, "x": pl.Float64}, orient="row")
    engine = engine_for_table(Table.of(frame, SCHEMA), unit)
    try:
        return engine.tally(None, KEYS, NEEDS)
    finally:
        engine.close()


@settings(max_examples=8)
@given(rows, st.integers(1, 3))
def test_a_removed_unit_moves_duckdbs_answers_by_no_more_than_claimed(drawn, most) -> None:
    check_neighbours(in_duckdb, drawn, most)


@pytest.fixture(scope="module")
def server(postgres_url: str):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE neighbours (home text, kind text, x float8)")
        yield connection


def postgres_with(server: psycopg.Connection, url: str, drawn: list[tuple], unit: Unit):
    server.execute("TRUNCATE neighbours")
    with server.cursor() as cursor:
        cursor.executemany("INSERT INTO neighbours VALUES (%s, %s, %s)", drawn)
    return engine_for_postgres(url, "neighbours", SCHEMA, unit, version="v")


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, st.integers(1, 3))
def test_a_removed_unit_moves_postgres_answers_by_no_more_than_claimed(
    server, postgres_url, drawn, most
) -> None:
    def tally(some: list[tuple], unit: Unit) -> tuple[Counts, ...]:
        engine = postgres_with(server, postgres_url, some, unit)
        try:
            return engine.tally(None, KEYS, NEEDS)
        finally:
            engine.close()

    check_neighbours(tally, drawn, most)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, st.integers(1, 3), st.sampled_from(["duckdb", "postgres"]))
def test_the_rows_a_unit_keeps_do_not_depend_on_other_units(server, postgres_url, drawn, most, where) -> None:
    unit = Unit("home", most)

    def kept(some: list[tuple], home: str) -> list[list]:
        if where == "duckdb":
            frame = pl.DataFrame(
                some, schema={"home": pl.String, "kind": pl.String, "x": pl.Float64}, orient="row"
            )
            engine = engine_for_table(Table.of(frame, SCHEMA), unit)
        else:
            engine = postgres_with(server, postgres_url, some, unit)
        try:
            found = engine.tally(Compare("home", "=", home), KEYS, NEEDS)
        finally:
            engine.close()
        return [array.tolist() for array in found]

    for home in {row[0] for row in drawn if row[0]}:
        alone = [row for row in drawn if row[0] == home]
        found = kept(drawn, home)
        assert found == kept(alone, home)
        assert sum(found[0]) == min(most, len(alone))


def test_rows_without_a_unit_do_not_count(server, postgres_url) -> None:
    drawn = [("", "a", 1.0), (None, "a", 1.0), ("", "b", 1.0), ("h", "b", 1.0)]
    assert int(in_duckdb(drawn, Unit("home", 2))[0].sum()) == 1
    engine = postgres_with(server, postgres_url, drawn, Unit("home", 2))
    assert int(engine.tally(None, KEYS, NEEDS)[0].sum()) == 1
    engine.close()


def test_the_order_in_which_postgres_stores_rows_changes_no_answer(server, postgres_url) -> None:
    drawn = [("h", kind, float(x)) for kind in "abc" for x in range(5)]
    answers = []
    for some in (drawn, drawn[::-1]):
        engine = postgres_with(server, postgres_url, some, Unit("home", 4))
        answers.append([array.tolist() for array in engine.tally(None, KEYS, NEEDS)])
        engine.close()
    assert answers[0] == answers[1]
