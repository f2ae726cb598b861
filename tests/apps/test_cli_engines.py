"""`velado anonymize` on folders and patterns of files: the engine is chosen, shown, and refuses what it cannot do."""

import json
from pathlib import Path

import polars as pl
import pytest

from velado.apps.cli import run

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

SCHEMA = '[columns.age]\nrole = "quasi"\nkind = "numeric"\n[columns.sex]\nrole = "quasi"\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA)
    Path("lake").mkdir()
    for part in range(2):
        rows = range(part, 200 + part)
        frame = pl.DataFrame({"age": [20 + n % 40 for n in rows], "sex": ["FM"[n % 3 % 2] for n in rows]})
        frame.write_parquet(f"lake/{part}.parquet")
    return tmp_path


def anonymize(*more: str, source: str = "lake/*.parquet") -> int:
    return run(["anonymize", source, "--schema", "schema.toml", "-k", "5", "--method", "mondrian", *more])


def test_a_pattern_goes_to_duckdb_and_memory_gives_the_same_table(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert anonymize("-o", "out", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["how"]["engine"] == "DuckDB" and told["files"]["release"][-1] == "table.parquet"
    assert anonymize("-o", "all", "--engine", "memory", "--format", "parquet") == 0
    one, two = (pl.read_parquet(f"{name}/release/table.parquet") for name in ("out", "all"))
    assert one.sort(one.columns).equals(two.sort(two.columns))


def test_groups_made_with_sensitive_values_in_view_are_warned_of_as_in_memory(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("schema.toml").write_text(SCHEMA + "[columns.ill]\nrole = 'sensitive'\n")
    for part in range(2):
        frame = pl.read_parquet(f"lake/{part}.parquet")
        frame.with_columns(ill=pl.Series(["flu", "cold"] * 100)).write_parquet(f"lake/{part}.parquet")
    for at, (flags, warned) in enumerate(((["--l-diversity", "2"], True), ([], False))):
        for engine in ("memory", "duckdb"):
            assert anonymize(*flags, "--engine", engine, "-o", f"{engine}{at}") == 0
            assert ("(minimality)" in capsys.readouterr().err) == warned


def test_a_file_stays_in_memory_unless_duckdb_is_asked_for(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert anonymize("-o", "a", source="lake/0.parquet") == 0
    assert "Engine:" not in capsys.readouterr().out
    assert anonymize("-o", "b", "--engine", "duckdb", "--memory", "200MB", source="lake/0.parquet") == 0
    assert "Engine: DuckDB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--keep-order"], "--keep-order cannot be used with an engine yet."),
        (["--bound", "tight"], "--bound tight cannot be used"),
        (["--table", "stays"], "--table was given, but the source is neither"),
        (["--memory", "3XB"], "--memory is not a size: '3XB'."),
    ],
)
def test_what_an_engine_cannot_do_is_told(
    place: Path, capsys: pytest.CaptureFixture[str], flags: list[str], told: str
) -> None:
    assert anonymize("-o", "out", *flags) != 0
    assert told in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_lake_without_a_schema_and_one_that_is_not_there(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["anonymize", "lake", "-o", "out"]) != 0
    assert "No schema was given" in capsys.readouterr().err
    assert anonymize("-o", "out", source="nowhere/*.parquet") != 0
    assert "No file matches 'nowhere/*.parquet'." in capsys.readouterr().err


def test_a_plan_is_taken_shown_and_refused_where_it_cannot_be(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert anonymize("-o", "cut", "--plan", "cut") == 0
    assert "plan: cut first" in capsys.readouterr().out
    assert anonymize("-o", "all", "--plan", "compress") == 0
    one, two = (pl.read_parquet(f"{name}/release/table.parquet") for name in ("cut", "all"))
    assert one.sort(one.columns).equals(two.sort(two.columns))
    for flags, told in (
        (["--plan", "cut", "--engine", "memory"], "--plan was given, but the rows are worked on in memory."),
        (
            ["--plan", "cut", "--recoder", "mean"],
            "Only strict cuts whose groups are published by their cover",
        ),
        (["--plan", "cutt"], "Did you mean 'cut'?"),
    ):
        assert anonymize("-o", "none", *flags) != 0
        assert told in capsys.readouterr().err and not Path("none").exists()
