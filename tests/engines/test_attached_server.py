"""A server's table that DuckDB's own extension copies is published into files as the server itself would publish it."""

from pathlib import Path

import duckdb
import polars as pl
import pytest
from tests.engines.same_table import KEY, rows_of
from tests.query.conftest import postgres_url as postgres_url

import velado
from velado.apps.cli import run
from velado.data.schema import Schema
from velado.engines.attached_server import open_server
from velado.engines.postgres_connection import connected
from velado.engines.postgres_source import open_table
from velado.errors import EngineError, MissingExtra, ParameterError, TableError
from velado.study.engine_run import publish_files

SCHEMA = """
[columns.age]
role = "quasi"
kind = "numeric"
[columns.sex]
role = "quasi"
[columns.cost]
role = "other"
side_door = "accept"
[columns.seen]
role = "other"
side_door = "accept"
"""


@pytest.fixture
def extension() -> None:
    """Skips where the DuckDB of this environment has no extension for PostgreSQL: it is never fetched."""
    asked = "SELECT installed FROM duckdb_extensions() WHERE extension_name = 'postgres_scanner'"
    if not duckdb.connect().execute(asked).fetchone()[0]:
        pytest.skip("DuckDB's extension postgres is not installed here")


@pytest.fixture
def stays(postgres_url: str) -> str:
    with connected(postgres_url) as connection:
        connection.execute("DROP TABLE IF EXISTS attached_stays")
        connection.execute("DROP TYPE IF EXISTS attached_mood")
        connection.execute("CREATE TYPE attached_mood AS ENUM ('low', 'high')")
        connection.execute(
            "CREATE TABLE attached_stays AS SELECT 18 + n % 70 AS age, (ARRAY['F','M'])[1 + n % 2]::bpchar(3) AS sex, "
            "(n / 7.0)::numeric AS cost, 'low'::attached_mood AS mood, '2024-05-01 10:00+02'::timestamptz + n * '1 h'::interval AS seen, "
            'CASE WHEN n % 9 > 0 THEN n END AS "a\'b ""c" FROM generate_series(1, 900) AS n'
        )
        connection.commit()
    return postgres_url


def test_a_copied_table_is_the_table_of_the_server(extension: None, stays: str, tmp_path: Path) -> None:
    copied, there = open_server(stays, "attached_stays", tmp_path), open_table(stays, "attached_stays")
    try:
        assert copied.types == there.types and copied.rows == there.rows == 900
        assert rows_of(copied.frame()) == rows_of(pl.DataFrame(pl.from_arrow(there.sample(900))))
        assert copied.fingerprint() == open_server(stays, "attached_stays", tmp_path).fingerprint()
    finally:
        there.close()
        copied.close()
    with pytest.raises(TableError, match="no table 'nowhere'"):
        open_server(stays, "nowhere", tmp_path)
    with pytest.raises(EngineError, match="could not be reached") as away:
        open_server("postgresql://ana:geheim@127.0.0.1:1/x", "stays", tmp_path)
    assert "geheim" not in str(away.value)


def test_a_server_s_table_is_published_into_a_file(
    extension: None, stays: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA)
    given = [
        stays,
        "--table",
        "attached_stays",
        "--schema",
        str(tmp_path / "s.toml"),
        "-k",
        "5",
        "--undeclared",
        "drop",
    ]
    flags = ["--method", "mondrian", "--engine", "duckdb", "-o", str(tmp_path / "out")]
    assert run(["anonymize", *given, *flags]) == 0
    assert "Engine: DuckDB" in capsys.readouterr().out
    rows = pl.read_parquet(tmp_path / "out/release/table.parquet")
    source = open_table(stays, "attached_stays")
    whole = pl.DataFrame(pl.from_arrow(source.sample(900))).select("age", "sex", "cost", "seen")
    source.close()
    schema = velado.read_schema(tmp_path / "s.toml")
    assert rows_of(rows) == rows_of(velado.anonymize(whole, schema, "mondrian", k=5, key=KEY).frame)
    left = [path for path in tmp_path.rglob("*") if path.suffix in (".duckdb", ".wal")]
    assert not left, "the copy is gone with the run"


def test_without_the_extension_one_sentence_names_the_server_s_own_road(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where no extension is installed
    address = "postgresql://ana:geheim@127.0.0.1:1/x"
    with pytest.raises(MissingExtra, match="the server itself counts") as told:
        publish_files(address, Schema({}), table="stays", k=5, out=tmp_path / "out", key=KEY)
    assert "geheim" not in str(told.value) and not (tmp_path / "out").exists()
    (tmp_path / "s.toml").write_text(SCHEMA)
    asked = [
        "anonymize",
        address,
        "--engine",
        "duckdb",
        "--schema",
        str(tmp_path / "s.toml"),
        "-o",
        str(tmp_path / "o"),
    ]
    for more, said in (
        ([], "needs --table"),
        (["--table", "a", "--to-table", "b"], "publishes them into files"),
        (["--table", "a"], "is not installed here"),
    ):
        assert run([*asked, *more]) != 0
        err = capsys.readouterr().err
        assert said in " ".join(err.split()) and "geheim" not in err


@pytest.mark.parametrize("address", ["postgresql://ana:geheim@db", "postgres://ana:geheim@db/x"])
def test_where_a_file_is_read_an_address_is_refused_and_not_repeated(address: str, tmp_path: Path) -> None:
    for door in (
        lambda: velado.read_table(address),
        lambda: velado.anonymize(address, Schema({})),
        lambda: velado.verify(address, Schema({}), ["k-anonymity"]),
    ):
        with pytest.raises(ParameterError, match="address of a server") as told:
            door()
        assert "geheim" not in str(told.value)
