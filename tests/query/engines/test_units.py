"""Who belongs to one unit does not depend on how its cell is spelled or stored, in any engine."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import polars as pl
import psycopg
import pytest

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import EngineError, TableError
from velado.query.engines import _tally as fingerprint
from velado.query.engines import engine_for_file, engine_for_postgres, engine_for_table
from velado.query.needs import Engine, Rows
from velado.query.unit import Unit

from ...covering import one_in

ONE = Unit("home", 1)
SIX = ["1", "1.0", "01", " 1", "1e0", "+1"]


def schema(kind: str, **more) -> Schema:
    form = more.pop("format", "%Y-%m-%d")
    columns = {"home": Column("home", kind=kind, format=form), "x": Column("x")}
    return Schema(columns, missing_values=("", "NA", "99"), **more)


def units(engine: Engine) -> int:
    """With one row for each unit, the rows that count are the units there are."""
    try:
        return int(engine.tally(None, (), (Rows(),))[0][0])
    finally:
        engine.close()


def over_texts(cells: Sequence[str], said: Schema, folder: Path) -> list[int]:
    """The units in a CSV file, in a Parquet file and in a table of these texts."""
    frame = pl.DataFrame({"home": cells, "x": ["a"] * len(cells)})
    frame.write_csv(folder / "rows.csv", quote_style="always")
    frame.write_parquet(folder / "rows.parquet")
    return [
        units(engine_for_file(folder / "rows.csv", said, ONE)),
        units(engine_for_file(folder / "rows.parquet", said, ONE)),
        units(engine_for_table(Table.of(frame, said), ONE)),
    ]


@pytest.mark.parametrize(
    ("kind", "more", "cells", "expected"),
    one_in(
        3,
        [
            ("numeric", {}, SIX, 1),
            ("numeric", {}, [*SIX, "2", "2.00"], 2),
            ("numeric", {}, ["0", "-0", "0.0", "-0.0", "0e5"], 1),
            ("numeric", {}, ["NaN", "nan", " NaN ", "", "NA", " NA", "99"], 0),
            ("numeric", {}, ["99.0", " 99"], 0),
            ("numeric", {}, ["A7", " A7\t", "A8", "7"], 3),
            ("numeric", {"decimal": ","}, ["1,5", " 1,50", "1,5e0", "01,5"], 1),
            ("numeric", {"decimal": ","}, ["1.234,0", "1234", "1.234"], 1),
            ("date", {}, ["2020-01-05", "2020-1-5", " 2020-01-05", "2020-01-05 "], 1),
            ("date", {}, ["2020-01-05", "2020-01-06", "no day", " no day", "2020-02-31"], 4),
            ("date", {"format": "%d/%m/%Y"}, ["05/01/2020", "5/1/2020", "05/1/2020 "], 1),
            ("numeric", {}, ["7", "７", "7\u200b", "\u00a07", "A7", "a\u00ad7"], 2),
            ("date", {}, ["2020-01-05", "2020-01-05\u00a0", "２020-01-05"], 1),
            ("categorical", {}, SIX, 2),  # 1e0 is a word where no number was declared
            ("categorical", {"decimal": ","}, ["7", "7,0", "07", "7,00", "1.234", "1234"], 2),
            (
                "categorical",
                {},
                ["00012345678901234567890", "12345678901234567890", "12345678901234567891"],
                2,
            ),
            ("categorical", {}, ["h", " h", "h\t", "\r\nh ", "H", "h h", "H\u00a0 h", "ｈ"], 2),
            ("categorical", {}, ["José", "Jose\u0301", "JOSÉ", "Jose", "STRASSE", "straße"], 3),
            ("text", {}, ["", "  ", "NA", " NA ", "\t99", "na", "099", "\u200b"], 0),
        ],
        apart=True,
    ),
)
def test_spellings_of_one_value_are_one_unit(tmp_path: Path, kind, more, cells, expected) -> None:
    assert over_texts(cells, schema(kind, **more), tmp_path) == [expected] * 3


@pytest.mark.parametrize(
    ("kind", "cells", "expected"),
    [
        ("numeric", [0.0, -0.0, float("nan"), None, 1.0, 99.0], 2),
        ("categorical", [0.0, -0.0, float("nan"), None, 1.0, 99.0], 2),
        ("numeric", [1, 2, 2, 99, None], 2),
        ("categorical", [1, 2, 2, 99, None], 2),
        ("date", [date(2020, 1, 5), date(2020, 1, 5), date(2020, 1, 6), None], 2),
    ],
)
def test_typed_files_and_tables_have_the_same_units(tmp_path: Path, kind, cells, expected) -> None:
    frame = pl.DataFrame({"home": cells, "x": ["a"] * len(cells)})
    frame.write_parquet(tmp_path / "rows.parquet")
    said = schema(kind)
    assert units(engine_for_file(tmp_path / "rows.parquet", said, ONE)) == expected
    assert units(engine_for_table(Table.of(frame, said), ONE)) == expected


@pytest.mark.parametrize(
    ("kind", "stored", "cells", "expected"),
    [
        ("numeric", "numeric", ["1", "1.0", "01", "+1", "1e0", "2"], 2),
        ("numeric", "float8", ["0", "-0", "NaN", "99", "1", None], 2),
        ("numeric", "float4", ["0", "-0", "NaN", "99", "1", None], 2),
        ("numeric", "int8", ["1", "2", "99", None], 2),
        ("date", "timestamp", ["2020-01-05 10:00", "2020-01-05", "2020-01-06", None], 2),
        ("categorical", "text", ["h", " h", "h\t", "\r\nh ", "H", "h h", "NA", " NA", "  "], 2),
        (
            "categorical",
            "text",
            ["h\u200b", "h", "\u00a0h", "ｈ", "h\u00a0 h", "h h", "José", "Jose\u0301"],
            3,
        ),
        ("categorical", "text", ["099", "na", "\u200b", "7", "07", "7.0", ".50", "0.5"], 2),
        (
            "categorical",
            "text",
            ["00012345678901234567890", "12345678901234567890", "12345678901234567891"],
            2,
        ),
        ("categorical", "varchar", SIX, 2),
        ("categorical", "char(4)", ["h", " h", "H"], 1),
        ("categorical", "numeric", ["1.0", "1.00", "2"], 2),
        ("categorical", "int8", ["9007199254740993", "9007199254740992", "99"], 2),
    ],
)
def test_postgres_has_the_same_units(postgres_url: str, kind, stored, cells, expected) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"DROP TABLE IF EXISTS units; CREATE TABLE units (home {stored}, x text)")
        with server.cursor() as cursor:
            cursor.executemany("INSERT INTO units VALUES (%s, 'a')", [(cell,) for cell in cells])
        assert units(engine_for_postgres(postgres_url, "units", schema(kind), ONE)) == expected


def test_postgres_refuses_units_it_would_split(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        if server.execute("SELECT upper('\u00df')").fetchone() == ("SS",):
            pytest.skip("this server's locale knows full case")
        server.execute("DROP TABLE IF EXISTS split; CREATE TABLE split (home text, x text)")
        with server.cursor() as cursor:
            cells = ["stra\u00dfe", "STRASSE", "\u00dfx"]
            cursor.executemany("INSERT INTO split VALUES (%s, 'a')", [(cell,) for cell in cells])
        with pytest.raises(EngineError, match="mean one unit"):
            engine_for_postgres(postgres_url, "split", schema("text"), ONE)
        server.execute("DELETE FROM split WHERE home <> '\u00dfx'")
        assert units(engine_for_postgres(postgres_url, "split", schema("text"), ONE)) == 1


def test_postgres_keeps_units_together_that_its_own_collation_calls_equal(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        try:
            server.execute(
                "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        except psycopg.Error:
            pytest.skip("this PostgreSQL was built without ICU")
        server.execute("CREATE TABLE folded (home text COLLATE nocase, x text)")
        server.execute("INSERT INTO folded VALUES ('Ana', 'a'), (' ana', 'a'), ('bia', 'a')")
    assert units(engine_for_postgres(postgres_url, "folded", schema("categorical"), ONE)) == 2


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("home,x\n1,SECRET\n")
    honest = fingerprint.of_file

    def then_written(*given):
        out = honest(*given)
        path.write_text("home,x\n1,SECRET\n2,SECRET\n")
        return out

    assert units(engine_for_file(path, schema("numeric"), ONE)) == 1
    monkeypatch.setattr(fingerprint, "of_file", then_written)
    with pytest.raises(TableError, match="changed while it was read") as caught:
        engine_for_file(path, schema("numeric"), ONE)
    assert "SECRET" not in str(caught.value)
