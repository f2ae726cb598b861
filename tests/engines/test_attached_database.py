"""Tables of DuckDB and SQLite files, and addresses elsewhere: the same table as from Parquet, or one sentence."""

import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.engines.same_table import KEY, Case, in_memory, on_engine, random_case

from velado.apps.cli import run
from velado.data.schema import Schema
from velado.engines.attached_database import open_database
from velado.engines.duckdb_source import DuckDBSource, open_files
from velado.engines.open_source import is_database
from velado.engines.remote_files import of_parquet
from velado.engines.row_source import FileSink, Recoding, as_read
from velado.errors import MissingExtra, ParameterError, TableError
from velado.study.engine_run import publish_files

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

SQLITE = {pl.Int64: "integer", pl.Float64: "real", pl.String: "text"}


def duckdb_file(frame: pl.DataFrame, path: Path, table: str = "stays") -> Path:
    with duckdb.connect(str(path)) as database:
        database.register("frame", frame.to_arrow())
        database.execute(f'CREATE TABLE "{table}" AS SELECT * FROM frame')
    return path


def sqlite_file(frame: pl.DataFrame, path: Path, table: str = "stays") -> Path:
    names = [name.replace('"', '""') for name in frame.columns]
    columns = ", ".join(f'"{n}" {SQLITE[t]}' for n, t in zip(names, frame.dtypes, strict=True))
    with sqlite3.connect(path) as database:
        database.execute(f'CREATE TABLE "{table}" ({columns})')
        marks = ", ".join("?" * frame.width)
        database.executemany(f'INSERT INTO "{table}" VALUES ({marks})', frame.rows())
    database.close()
    return path


MADE = {"duckdb": duckdb_file, "sqlite": sqlite_file}


def published(case: Case, source: DuckDBSource, folder: Path) -> tuple[object, ...]:
    source = as_read(source, case.schema)

    def write(recoding: Recoding) -> DuckDBSource:
        sink = FileSink(folder / "out.parquet", "parquet")
        source.write(recoding, sink)
        return open_files(sink.path, case.schema, folder)

    return on_engine(case, source, write)


@pytest.mark.parametrize("kind", MADE)
def test_a_database_in_a_file_is_published_as_memory_publishes_its_rows(kind: str, tmp_path: Path) -> None:
    held = 0
    for seed in range(8):
        case = random_case(seed)
        if kind == "sqlite":  # which has no days of its own
            texts = case.frame.with_columns(pl.selectors.temporal().cast(pl.String))
            case = Case(**{**vars(case), "frame": texts})
        folder = tmp_path / str(seed)
        folder.mkdir()
        source = open_database(MADE[kind](case.frame, folder / f"h.{kind}"), "stays", folder)
        expected = in_memory(case)
        assert published(case, source, folder) == expected, f"seed {seed}"
        held += expected[0] == "held"
        source.close()
    assert held >= 4


def stays(rows: int = 400) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame({"age": draw.integers(18, 90, rows), "sex": draw.choice(["F", "M"], rows)})


SCHEMA = Schema.from_dict(
    {"columns": {"age": {"role": "quasi", "kind": "numeric"}, "sex": {"role": "quasi"}}}
)


@pytest.mark.parametrize("kind", MADE)
def test_which_table_is_meant_must_be_said_and_be_there(kind: str, tmp_path: Path) -> None:
    path = MADE[kind](stays(), tmp_path / f"hospital.{kind}")
    with pytest.raises(ParameterError, match="It has: stays"):
        open_database(path, None, tmp_path)
    with pytest.raises(TableError, match=f"There is no table 'nowhere' in 'hospital.{kind}'"):
        open_database(path, "nowhere", tmp_path)
    with pytest.raises(TableError, match="There is no table"):
        open_database(path, 'stays" UNION SELECT 1 --', tmp_path)


def test_names_with_points_quotes_and_braces_are_names_and_views_are_tables(tmp_path: Path) -> None:
    odd = stays().rename({"age": 'a.g"e', "sex": "{sex}"})
    for kind, make in MADE.items():
        source = open_database(make(odd, tmp_path / f"odd.{kind}"), "stays", tmp_path)
        assert source.types.names == ['a.g"e', "{sex}"] and source.distinct("{sex}") == (400, 2)
        source.close()
    path = duckdb_file(stays(), tmp_path / "v.duckdb")
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE SCHEMA ward")
        database.execute("CREATE VIEW ward.old AS SELECT * FROM main.stays WHERE age > 50")
    source = open_database(path, "ward.old", tmp_path)
    assert source.order == "numbered"  # a view may bring its rows in any order
    assert 0 < source.rows < 400 and source.sample(50).num_rows < 200
    source.close()


def test_cells_of_several_kinds_in_one_column_of_sqlite_are_texts(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "m.sqlite") as database:
        database.execute("CREATE TABLE t (a integer, b real, c, d)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(1, 2, None, 1), ("x", 2.5, 7, 2.5)])
    database.close()
    source = open_database(tmp_path / "m.sqlite", "t", tmp_path)
    assert source.sample(9).to_pydict() == {"a": ["1", "x"], "b": [2.0, 2.5], "c": [None, 7], "d": [1.0, 2.5]}
    source.close()


def test_types_that_cannot_be_published_are_named(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE TABLE t AS SELECT 1.50::DECIMAL(6, 2) AS price, [1, 2] AS codes")
        database.execute("CREATE TABLE u AS SELECT 1.50::DECIMAL(6, 2) AS price, uuid() AS id, now() AS seen")
    with pytest.raises(TableError, match="Column 'codes' has a type"):
        open_database(tmp_path / "t.duckdb", "t", tmp_path)
    source = open_database(tmp_path / "t.duckdb", "u", tmp_path)
    assert source.domain("price").to_pydict()["value"] == ["1.50"]
    source.close()
    with sqlite3.connect(tmp_path / "b.sqlite") as database:
        database.execute("CREATE TABLE t AS SELECT x'00' AS photo")
    database.close()
    with pytest.raises(TableError, match="Column 'photo' has a type"):
        open_database(tmp_path / "b.sqlite", "t", tmp_path)


@pytest.mark.parametrize("kind", MADE)
def test_a_damaged_database_is_one_sentence(kind: str, tmp_path: Path) -> None:
    path = MADE[kind](stays(5_000), tmp_path / f"h.{kind}")
    whole = path.read_bytes()
    path.write_bytes(whole[:16] + bytes(len(whole) - 16))
    with pytest.raises(TableError, match="cannot be opened as a database"):
        open_database(path, "stays", tmp_path)
    path.write_bytes(b"no database at all")
    assert not is_database(str(path))


@pytest.mark.parametrize("kind", MADE)
def test_a_database_that_changes_during_the_run_is_noticed(kind: str, tmp_path: Path) -> None:
    path = MADE[kind](stays(), tmp_path / f"h.{kind}")
    source = open_database(path, "stays", tmp_path)
    source.unchanged()
    path.touch()
    with pytest.raises(TableError, match="changed while it was read"):
        source.unchanged()
    source.close()


@pytest.mark.parametrize("kind", MADE)
def test_every_door_opens_a_database(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = MADE[kind](stays(), Path(f"hospital.{kind}")).name
    assert run(["inspect", path, "--table", "stays", "--write", "schema.toml"]) == 0
    flags = ["--schema", "schema.toml", "-k", "5"]
    assert run(["anonymize", path, "--table", "stays", *flags, "--method", "mondrian", "-o", "out"]) == 0
    assert run(["verify", "out/release/table.parquet", *flags]) == 0
    assert run(["measure", path, "out", "--table", "stays", *flags]) == 0
    assert "NCP" in capsys.readouterr().out
    assert run(["verify", path, "--table", "stays", *flags]) == 4
    assert run(["verify", path, "--table", "stays", "--engine", "memory", *flags]) == 2
    assert run(["verify", path, *flags]) == 2
    assert "Add --table NAME." in capsys.readouterr().err


def test_what_lies_elsewhere_is_read_as_one_table_with_the_same_columns(tmp_path: Path) -> None:
    for part in range(3):
        stays(200 + part).write_parquet(tmp_path / f"{part}.parquet")
    place = f"{tmp_path}/*.parquet"
    source, files = of_parquet(duckdb.connect(), place), open_files(place, Schema({}), tmp_path)
    assert source.rows == 603 and source.types == files.types
    assert source.domain("age").sort_by("value").equals(files.domain("age").sort_by("value"))
    assert source.fingerprint() == of_parquet(duckdb.connect(), place).fingerprint()
    source.unchanged()
    stays(7).write_parquet(tmp_path / "1.parquet")
    with pytest.raises(TableError, match=r"changed while it was read"):
        source.unchanged()
    stays(7).drop("sex").write_parquet(tmp_path / "1.parquet")
    with pytest.raises(TableError, match="have different columns"):
        of_parquet(duckdb.connect(), place)


def test_an_address_that_cannot_be_read_is_one_sentence_without_its_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where no extension is installed
    address = "s3://bucket/stays/*.parquet?s3_secret_access_key=geheim"
    with pytest.raises(MissingExtra, match="httpfs is not installed here") as told:
        publish_files(address, SCHEMA, "mondrian", k=5, out=tmp_path / "out", key=KEY)
    assert "geheim" not in str(told.value) and not (tmp_path / "out").exists()
    assert of_parquet_name(tmp_path) == "stays.parquet"


def of_parquet_name(folder: Path) -> str:
    """What a source is called whose address has a secret behind its path: nothing but the path's last word."""
    stays(9).write_parquet(folder / "stays.parquet")
    (folder / "stays.parquet?key=geheim").symlink_to(folder / "stays.parquet")
    return of_parquet(duckdb.connect(), str(folder / "stays.parquet?key=geheim")).name
