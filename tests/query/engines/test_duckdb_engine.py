"""DuckDB: locked after loading, safe among threads, stopped in time, silent about the rows."""

import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from velado.data.io import read_table
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import EngineError, QueryRefused, SchemaError, TableError
from velado.query.engines import engine_for_file, engine_for_table
from velado.query.engines._tally import MOST, saturated
from velado.query.needs import Grid, GridCells, GridSum, GroupKey, Rows
from velado.query.unit import Unit
from velado.query.values import Compare, Like

SCHEMA = Schema(
    {
        "sex": Column("sex"),
        "age": Column("age", kind="numeric", bounds=(0, 120), step=1),
        "day": Column("day", kind="date", format="%d/%m/%Y"),
    }
)
AGE = Grid.of(SCHEMA.columns["age"])


def table(**cells: list) -> Table:
    frame = pl.DataFrame({"sex": ["F", "M"], "age": ["30", "x"], "day": ["01/02/2000", "31/02/2000"]} | cells)
    return Table.of(frame, SCHEMA)


@pytest.fixture
def engine():
    made = engine_for_table(table(), Unit())
    yield made
    made.close()


def test_a_cell_that_is_not_of_its_kind_is_missing(engine) -> None:
    found = engine.tally(None, (), (Rows(), Rows("age"), Rows("day"), GridSum(AGE)))
    assert [int(array[0]) for array in found] == [2, 1, 1, 30]


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        (" 7 ", ".", 7.0),
        ("1_000", ".", None),
        ("1,5", ".", None),
        ("1,5", ",", 1.5),
        ("1.234,5", ",", 1234.5),
        ("1.5", ",", None),
        ("1e2", ".", 100.0),
        ("NaN", ".", None),
        ("-inf", ".", -np.inf),
        ("0x1F", ".", None),
    ],
)
def test_numbers_are_read_as_the_schema_writes_them(text: str, decimal: str, value: float | None) -> None:
    schema = Schema({"x": Column("x", kind="numeric")}, decimal=decimal)
    engine = engine_for_table(Table.of(pl.DataFrame({"x": [text]}), schema), Unit())
    row = engine._connection.execute("SELECT c0 FROM kept").fetchone()
    assert row == (value,)
    engine.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('a.csv')",
        "COPY kept TO 'stolen.csv'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH 'other.db'",
        "SET enable_external_access = true",
        "SET threads = 1",
    ],
)
def test_the_engine_can_reach_nothing_after_loading(engine, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        engine._connection.cursor().execute(sql)


def test_many_threads_get_the_same_answer(engine) -> None:
    wrong = []

    def ask() -> None:
        for _ in range(10):
            found = engine.tally(Compare("sex", "=", "F"), (GroupKey("sex", ("F", "M")),), (Rows(),), 30.0)
            if found[0].tolist() != [1, 0, 0]:
                wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_query_that_takes_too_long_is_stopped_with_a_text_about_the_limit_alone() -> None:
    many = pl.DataFrame({"sex": ["abc" * 20] * 400_000, "age": ["30"] * 400_000, "day": [""] * 400_000})
    engine = engine_for_table(Table.of(many, SCHEMA), Unit(), threads=1)
    slow = Like("sex", "%_a_%b_%c_%a_%b_%c_%a_%b%x")
    with pytest.raises(EngineError) as error:
        engine.tally(slow, (), (Rows(), GridCells(AGE, (0, 1, 121))), 0.01)
    assert error.value.what == "The query took longer than the 0.01 seconds allowed."
    assert int(engine.tally(None, (), (Rows(),))[0][0]) == 400_000
    engine.close()


def test_a_closed_engine_says_so(engine) -> None:
    engine.close()
    with pytest.raises(EngineError):
        engine.tally(None, (), (Rows(),))


@pytest.mark.parametrize(
    "where",
    [
        Compare("sex", "=", Fraction(1)),
        Compare("age", "=", "x"),
        Like("age", "%"),
        Compare("other", "=", "x"),
        Compare("sex", "=", "a\0b"),
        Compare("sex", "=", "\ud800"),
        Compare("sex", "= 'F' OR 1", "x"),  # type: ignore[arg-type]
    ],
)
def test_what_has_no_meaning_is_refused_before_a_row_is_touched(engine, where) -> None:
    with pytest.raises(QueryRefused):
        engine.tally(where, (), (Rows(),))


def test_a_grid_the_schema_does_not_declare_is_refused(engine) -> None:
    with pytest.raises(QueryRefused):
        engine.tally(None, (), (GridSum(Grid("age", Fraction(1), 0, 5)),))


def test_bins_that_do_not_rise_and_cells_beyond_number_are_refused(engine) -> None:
    with pytest.raises(QueryRefused):
        engine.tally(None, (), (GridCells(AGE, (3, 3)),))
    wide = GroupKey("sex", tuple(map(str, range(10_000))))
    with pytest.raises(QueryRefused):
        engine.tally(None, (wide, wide), (Rows(),))


def test_sums_saturate() -> None:
    assert [saturated(v) for v in (MOST + 1, -MOST - 5, 7)] == [MOST, -MOST, 7]


def test_the_version_tells_content_schema_and_unit_apart() -> None:
    def version(some: Table, unit: Unit) -> str:
        engine = engine_for_table(some, unit)
        engine.close()
        return engine.version

    plain = version(table(), Unit())
    chunked = table().with_frame(pl.concat([table().frame[:1], table().frame[1:]], rechunk=False))
    assert version(table(), Unit()) == version(chunked, Unit()) == plain
    others = [
        version(table(sex=["M", "F"]), Unit()),
        version(table(sex=["", "FM"]), Unit()),
        version(table(sex=[None, "M"]), Unit()),
        version(table(), Unit("sex", 1)),
        version(table(), Unit("sex", 2)),
        version(
            table().with_schema(SCHEMA.with_columns([*list(SCHEMA.columns.values())[:2], Column("day")])),
            Unit(),
        ),
    ]
    assert len({plain, *others}) == 7


def test_a_file_and_the_table_read_from_it_give_the_same_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a b's.csv"
    path.write_text('extra;sex;age;day\n1;Fé;30;01/02/2000\n2;"M\n;";40;\n', "latin-1")
    schema = Schema(SCHEMA.columns, encoding="latin-1", separator=";")
    file = engine_for_file(path, schema, Unit())
    frame = engine_for_table(read_table(path, schema, undeclared="drop"), Unit())
    keys = (GroupKey("sex", ("Fé", "M\n;")),)
    for found, again in zip(
        file.tally(None, keys, (Rows(), Rows("day"), GridSum(AGE))),
        frame.tally(None, keys, (Rows(), Rows("day"), GridSum(AGE))),
        strict=True,
    ):
        assert found.tolist() == again.tolist()
    assert file.tally(None, keys, (Rows(),))[0].tolist() == [1, 1, 0]
    folder = Path(file._folder.name)
    assert folder.exists()
    file.close()
    frame.close()
    assert not folder.exists()


def test_a_file_that_cannot_be_read_says_so_without_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for text, error in [
        ("sex,age,day\nSECRET,1\n", TableError),
        ("sex,age,day\nSECRET,1,2,3\n", TableError),
        ("sex,age\nSECRET,1\n", SchemaError),
        ("", TableError),
    ]:
        path.write_text(text)
        with pytest.raises(error) as caught:
            engine_for_file(path, SCHEMA, Unit())
        assert "SECRET" not in str(caught.value)
    with pytest.raises(TableError):
        engine_for_file(tmp_path / "none.csv", SCHEMA, Unit())


def test_a_format_that_is_none_and_a_unit_that_is_not_declared_are_refused() -> None:
    odd = Schema({"day": Column("day", kind="date", format="%Q")})
    with pytest.raises(TableError):
        engine_for_table(Table.of(pl.DataFrame({"day": ["x"]}), odd), Unit())
    with pytest.raises(SchemaError):
        engine_for_table(table(), Unit("home", 2))


def test_nan_in_a_parquet_file_is_missing_whatever_the_files_statistics_say(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    schema = Schema({"age": SCHEMA.columns["age"]})
    pl.DataFrame({"age": [0.0, float("nan")]}).write_parquet(path)
    engine = engine_for_file(path, schema, Unit())
    assert [int(array[0]) for array in engine.tally(None, (), (Rows("age"), GridSum(AGE)))] == [1, 0]
    engine.close()


@pytest.mark.parametrize(
    "text", ["who,sex\r\nA,F\nB,M\r\n", "who,sex\nA,F\n\nB,M\n", "who,sex\nA,F\r\nB,M\n\n"]
)
def test_a_file_of_two_kinds_of_line_ends_is_read_as_every_other_reader_reads_it(
    tmp_path: Path, text: str
) -> None:
    """Appending a line on another system makes such a file; DuckDB alone refuses it."""
    schema = Schema({"who": Column("who", "identifier", "text"), "sex": Column("sex", values=("F", "M"))})
    path, plain = tmp_path / "mixed.csv", tmp_path / "plain.csv"
    path.write_bytes(text.encode())
    plain.write_text("who,sex\nA,F\nB,M\n", "utf-8")
    key = (GroupKey("sex", ("F", "M")),)
    with closing(engine_for_file(path, schema, Unit("who", 1))) as engine:
        assert engine.tally(None, key, (Rows(),))[0].tolist() == [1, 1, 0]
        rows = [mark for mark in engine.identity.marks if mark.startswith("rows:")]
    with closing(engine_for_file(plain, schema, Unit("who", 1))) as engine:
        assert rows == [mark for mark in engine.identity.marks if mark.startswith("rows:")]


def test_what_no_reader_reads_is_refused_as_before(tmp_path: Path) -> None:
    path = tmp_path / "ragged.csv"
    path.write_text("who,sex\nA,F,3\nB,M\n", "utf-8")
    with pytest.raises(TableError, match="cannot be read as the schema says"):
        engine_for_file(path, Schema({"who": Column("who"), "sex": Column("sex")}), Unit())
