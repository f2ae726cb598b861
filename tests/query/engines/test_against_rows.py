"""Both engines give what a plain reading of the rows gives: three-valued logic, rationals, one row after another."""

import itertools
import math
import re
from collections.abc import Iterator
from datetime import date
from fractions import Fraction

import numpy as np
import polars as pl
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.query.engines import engine_for_file, engine_for_postgres, engine_for_table
from velado.query.needs import Grid, GridCells, GridSum, GroupKey, Need, Rows, cells_of
from velado.query.unit import Unit
from velado.query.values import And, Compare, In, IsNull, Like, Not, Or, Predicate

WORD, NUMBER, OTHER, DAY, HOME = "we\"ird na'me; --", "SELECT", "from", "día de nascimento", "$1"
SCHEMA = Schema(
    {
        WORD: Column(WORD),
        NUMBER: Column(NUMBER, kind="numeric", bounds=(-2, 2), step=0.1),
        OTHER: Column(OTHER, kind="numeric", bounds=(-1000, 1000)),
        DAY: Column(DAY, kind="date"),
        HOME: Column(HOME),
    },
    missing_values=("", "NA"),
)
FRAME = {WORD: pl.String, NUMBER: pl.Float64, OTHER: pl.Float64, DAY: pl.Date, HOME: pl.String}
GRIDS = [Grid.of(SCHEMA.columns[name]) for name in (NUMBER, OTHER)]
WORDS = [
    "a",
    "A",
    "b",
    "é",
    "e\u0301",
    "o'b",
    'q"q',
    "%",
    "_",
    "a%b",
    "日本",
    "👍",
    "\\",
    "a\\%",
    " a",
    "NULL",
    ";--",
    "$1",
]
DAYS = [date(1, 1, 1), date(1999, 12, 31), date(2000, 2, 29), date(2024, 5, 6), date(9999, 12, 31)]
SOME = [0.0, -0.0, 0.05, 0.15, -0.15, 0.25, 0.1, 0.30000000000000004, 1.95, 2.0, -2.0, 3.0, 1e300, 5e-324]

words = st.sampled_from(WORDS)
numbers = st.one_of(st.sampled_from([*SOME, math.inf, -math.inf, math.nan]), st.floats(-3, 3))
rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from(["", "NA"]), words),
        st.one_of(st.none(), numbers),
        st.one_of(st.none(), numbers, st.floats()),
        st.one_of(st.none(), st.sampled_from(DAYS)),
        st.one_of(st.none(), st.sampled_from(["", "h1", "h2", "h3"])),
    ),
    min_size=1,
    max_size=25,
)
literals = {
    WORD: words,
    HOME: st.sampled_from(["h1", "h2", ""]),
    NUMBER: st.one_of(st.sampled_from(SOME).map(Fraction), st.fractions(-3, 3), st.just(Fraction(1, 10))),
    OTHER: st.one_of(
        st.sampled_from(SOME).map(Fraction), st.sampled_from([Fraction(10) ** 400, -(Fraction(10) ** 400)])
    ),
    DAY: st.sampled_from(DAYS),
}
comparison = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
leaf = st.one_of(
    *[st.builds(Compare, st.just(name), comparison, value) for name, value in literals.items()],
    *[
        st.builds(In, st.just(name), st.lists(value, min_size=1, max_size=4).map(tuple))
        for name, value in literals.items()
    ],
    st.builds(Like, st.just(WORD), st.text(st.sampled_from("%_aAéb日\\'👍"), max_size=4)),
    st.builds(IsNull, st.sampled_from(list(literals))),
)
predicates: st.SearchStrategy[Predicate] = st.recursive(
    leaf,
    lambda part: st.one_of(
        st.builds(Not, part),
        st.builds(And, st.lists(part, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(part, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
KEYS = [
    GroupKey(WORD, ("a", "A", "é", "o'b", "日本")),
    GroupKey(NUMBER, ("0", "0.1", "0.10", "2", "no number")),
    GroupKey(DAY, ("2000-02-29", "no day", "0001-01-01")),
    GroupKey(HOME, tuple(f"h{n}" for n in range(40))),
    GroupKey(WORD, ()),
]
keys = st.lists(st.sampled_from(KEYS), max_size=2, unique=True).map(tuple)


@st.composite
def needs(draw: st.DrawFn) -> tuple[Need, ...]:
    grid = draw(st.sampled_from(GRIDS))
    inside = st.integers(grid.low - 2, grid.high + 2)
    edges = tuple(sorted(draw(st.lists(inside, min_size=2, max_size=6, unique=True))))
    column = draw(st.sampled_from([None, *SCHEMA.columns]))
    offset = draw(st.sampled_from([0, grid.centre, grid.low, -(2**60)]))
    some = [Rows(), Rows(column), GridSum(grid), GridSum(grid, offset), GridCells(grid, edges)]
    return tuple(draw(st.permutations(some)))


def cell(name: str, value: object) -> object:
    """A cell as it counts: missing texts and NaN are None."""
    return None if value in ("", "NA") or (isinstance(value, float) and math.isnan(value)) else value


def double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def truth(part: Predicate, row: dict[str, object]) -> bool | None:
    """SQL's three-valued logic, None being unknown."""
    match part:
        case Compare(column, operator, value):
            left, right = row[column], double(value) if isinstance(value, Fraction) else value
            if left is None:
                return None
            return {
                "=": left == right,
                "<>": left != right,
                "<": left < right,  # type: ignore[operator]
                "<=": left <= right,  # type: ignore[operator]
                ">": left > right,  # type: ignore[operator]
                ">=": left >= right,  # type: ignore[operator]
            }[operator]
        case In(column, values):
            if row[column] is None:
                return None
            return row[column] in [double(v) if isinstance(v, Fraction) else v for v in values]
        case Like(column, pattern):
            if row[column] is None:
                return None
            form = "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)
            return re.fullmatch(form, str(row[column]), re.DOTALL) is not None
        case IsNull(column):
            return row[column] is None
        case Not(inner):
            said = truth(inner, row)
            return None if said is None else not said
        case And(parts):
            all_ = [truth(inner, row) for inner in parts]
            return False if False in all_ else None if None in all_ else True
        case Or(parts):
            any_ = [truth(inner, row) for inner in parts]
            return True if True in any_ else None if None in any_ else False


def code(key: GroupKey, row: dict[str, object]) -> int:
    value = row[key.column]
    for number, text in enumerate(key.domain):
        if key.column == NUMBER:
            same = text != "no number" and value == float(text)
        else:
            same = value == (date.fromisoformat(text) if key.column == DAY and text != "no day" else text)
        if same:
            return number
    return len(key.domain)


def index(grid: Grid, value: float) -> int:
    if math.isinf(value):
        return grid.high if value > 0 else grid.low
    return max(grid.low, min(grid.high, math.floor(Fraction(value) / grid.step + Fraction(1, 2))))


def expected(
    table: list[dict[str, object]], where: Predicate | None, by: tuple[GroupKey, ...], need: Need
) -> list[int] | list[list[int]]:
    """One need, one row after another."""
    size = cells_of(by)
    bins = len(need.edges) - 1 if isinstance(need, GridCells) else 1
    out = [[0] * bins for _ in range(size)]
    for row in table:
        if where is not None and truth(where, row) is not True:
            continue
        at = 0
        for key in by:
            at = at * (len(key.domain) + 1) + code(key, row)
        if isinstance(need, Rows):
            out[at][0] += need.column is None or row[need.column] is not None
        elif row[need.grid.column] is not None:
            found = index(need.grid, row[need.grid.column])  # type: ignore[arg-type]
            if isinstance(need, GridSum):
                out[at][0] += found - need.offset
            else:
                for b, (low, high) in enumerate(itertools.pairwise(need.edges)):
                    out[at][b] += low <= found < high
    if isinstance(need, GridCells):
        return out
    return [max(-(2**62), min(2**62, line[0])) for line in out]


def as_rows(drawn: list[tuple[object, ...]]) -> list[dict[str, object]]:
    return [
        {name: cell(name, value) for name, value in zip(SCHEMA.columns, row, strict=True)} for row in drawn
    ]


def as_table(drawn: list[tuple[object, ...]]) -> Table:
    return Table.of(pl.DataFrame(drawn, schema=FRAME, orient="row"), SCHEMA)


def first_rows(table: list[dict[str, object]], most: int) -> list[dict[str, object]]:
    seen: dict[object, int] = {}
    out = []
    for row in table:
        seen[row[HOME]] = seen.get(row[HOME], 0) + 1
        if row[HOME] is not None and seen[row[HOME]] <= most:
            out.append(row)
    return out


def check(answer: tuple[np.ndarray, ...], table: list[dict[str, object]], where, by, asked) -> None:
    for found, need in zip(answer, asked, strict=True):
        assert found.dtype == np.int64
        assert found.tolist() == expected(table, where, by, need)


@settings(max_examples=50)
@given(rows, st.one_of(st.none(), predicates), keys, needs(), st.sampled_from([None, 1, 2, 3]))
def test_duckdb_over_a_table_gives_what_the_rows_give(drawn, where, by, asked, most) -> None:
    unit = Unit() if most is None else Unit(HOME, most)
    engine = engine_for_table(as_table(drawn), unit)
    table = as_rows(drawn)
    check(
        engine.tally(where, by, asked), table if most is None else first_rows(table, most), where, by, asked
    )
    engine.close()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, st.one_of(st.none(), predicates), keys, needs(), st.sampled_from([None, 2]))
def test_duckdb_over_a_file_gives_what_the_rows_give(ending, tmp_path, drawn, where, by, asked, most) -> None:
    path = tmp_path / f"rows [1]*.{ending}"
    frame = as_table(drawn).frame
    if ending == "csv":
        frame.write_csv(path, float_scientific=None)
    else:
        frame.write_parquet(path)
    unit = Unit() if most is None else Unit(HOME, most)
    engine = engine_for_file(path, SCHEMA, unit)
    table = as_rows(drawn)
    check(
        engine.tally(where, by, asked), table if most is None else first_rows(table, most), where, by, asked
    )
    engine.close()


@pytest.fixture(scope="module")
def hard_table(postgres_url: str) -> Iterator[psycopg.Connection]:
    """A table with the hard names, in a schema and under a name that need quotes, filled anew for each example."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        names = ", ".join(
            '"' + name.replace('"', '""') + '" ' + kind
            for name, kind in zip(
                SCHEMA.columns, ("varchar", "float8", "float8", "date", "text"), strict=True
            )
        )
        connection.execute(
            'CREATE SCHEMA "My Rows"; CREATE TABLE "My Rows"."the ""hard"" one" (' + names + ")"
        )
        yield connection


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, st.one_of(st.none(), predicates), keys, needs())
def test_postgres_gives_what_the_rows_give(hard_table, postgres_url, drawn, where, by, asked) -> None:
    hard_table.execute('TRUNCATE "My Rows"."the ""hard"" one"')
    with hard_table.cursor() as cursor:
        cursor.executemany('INSERT INTO "My Rows"."the ""hard"" one" VALUES (%s, %s, %s, %s, %s)', drawn)
    # Without rows to cut, the windowed statement must say the same as the plain one of the rows that have a unit.
    for unit in (Unit(), Unit(HOME, len(drawn))):
        counted = as_rows(drawn) if unit.column is None else first_rows(as_rows(drawn), len(drawn))
        engine = engine_for_postgres(postgres_url, 'My Rows.the "hard" one', SCHEMA, unit)
        check(engine.tally(where, by, asked), counted, where, by, asked)
        engine.close()
