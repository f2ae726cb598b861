"""The grid index in DuckDB and PostgreSQL is the one rationals give, above all on and beside ties."""

import math
from fractions import Fraction

import duckdb
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.schema import Column
from velado.query.engines._compile import exact_sql, index_of, index_sql, indices_of
from velado.query.needs import Grid

COLUMNS = [
    Column("x", kind="numeric", bounds=bounds, step=step)
    for bounds, step in [
        ((-3, 3), 0.1),
        ((0, 1), 0.1),
        ((0, 1e9), 0.01),
        ((-1e6, 1e6), 1e-6),
        ((0, 120), 1),
        ((-7, 7), 0.3),
        ((-50, 1e12), 10.0 / 3),
        ((0, 1e-9), 1e-13),
        ((1e200, 7e200), 1e199),
        ((5, 6), 0.007),
        ((-10, -2), 0.1),
        ((0, 1e12), 1),
        ((0.5, 1.5), 1),
        ((-100, 100), None),
        ((0, 0.1), None),
    ]
]
GRIDS = [Grid.of(column) for column in COLUMNS]
STRANGE = [
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    5e-324,
    -5e-324,
    1.7976931348623157e308,
    0.49999999999999994,
    1e-300,
]


def floor_plus_half(x: float, grid: Grid) -> int:
    """The definition, written again from the sentence in grid.py."""
    if math.isinf(x):
        return grid.high if x > 0 else grid.low
    nearest = (2 * Fraction(x) / grid.step + 1) // 2
    return int(max(grid.low, min(grid.high, nearest)))


def beside_ties(grid: Grid) -> list[float]:
    """Doubles on, just under and just above ties all over the grid, and the grid's own values."""
    spread = {grid.low, grid.low + 1, grid.high - 1, grid.high, grid.centre, 0, 1, 2, 3, -1, -2, 7, 12345}
    spread |= {grid.low + (grid.high - grid.low) * part // 97 for part in range(98)}
    out = list(STRANGE)
    for index in spread:
        for half in (Fraction(0), Fraction(1, 2), Fraction(-1, 2)):
            x = float((index + half) * grid.step)
            for _ in range(2):
                out += [x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf)]
                x = math.nextafter(x, math.inf)
    return out


def in_duckdb(values: list[float], grid: Grid) -> list[int]:
    """What DuckDB says, its open ties settled as the engine settles them."""
    sql = f"SELECT {index_sql('x', grid, 'NULL::INT8')} FROM (SELECT unnest($1::FLOAT8[]) AS x)"
    said = [row[0] for row in duckdb.connect().execute(sql, [values]).fetchall()]
    return [
        indices_of([x], grid)[0] if found is None else found for x, found in zip(values, said, strict=True)
    ]


def in_postgres(connection: psycopg.Connection, values: list[float], grid: Grid) -> list[int]:
    """What PostgreSQL says, all by itself."""
    sql = f"SELECT {index_sql('x', grid, exact_sql('x', grid))} FROM unnest($1::FLOAT8[]) WITH ORDINALITY AS t(x, i) ORDER BY i"
    return [row[0] for row in psycopg.RawCursor(connection).execute(sql, [values]).fetchall()]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid.low}..{grid.high}")
def test_numbers_on_and_beside_ties_have_the_index_rationals_give(grid: Grid, postgres_url: str) -> None:
    values = beside_ties(grid)
    expected = [floor_plus_half(x, grid) for x in values]
    assert [index_of(x, grid) for x in values] == expected
    assert in_duckdb(values, grid) == expected
    with psycopg.connect(postgres_url) as connection:
        assert in_postgres(connection, values, grid) == expected


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=50), st.sampled_from(GRIDS))
def test_any_double_has_the_index_rationals_give_in_duckdb(values: list[float], grid: Grid) -> None:
    assert in_duckdb(values, grid) == [floor_plus_half(x, grid) for x in values]


def test_few_numbers_are_left_to_the_exact_comparison() -> None:
    grid = GRIDS[0]
    sql = f"SELECT count(*) FROM (SELECT unnest(range(100000)) / 50000.0::FLOAT8 AS x) WHERE ({index_sql('x', grid, 'NULL::INT8')}) IS NULL"
    found = duckdb.connect().execute(sql).fetchone()
    assert found is not None and 0 < found[0] <= 21


def test_a_missing_number_has_no_index() -> None:
    sql = f"SELECT {index_sql('x', GRIDS[0], 'NULL::INT8')} FROM (SELECT NULL::FLOAT8 AS x)"
    assert duckdb.connect().execute(sql).fetchone() == (None,)


def test_a_bound_that_is_a_whole_number_of_steps_lies_on_the_grid() -> None:
    grid = Grid.of(Column("x", kind="numeric", bounds=(0.1, 0.3), step=0.1))
    assert (grid.low, grid.high) == (1, 3)
