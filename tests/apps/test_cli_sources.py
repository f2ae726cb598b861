"""`velado verify`, `inspect` and `measure` on folders and patterns of files, by the flags that `anonymize` has."""

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


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    return json.loads(capsys.readouterr().out)


def test_a_lake_is_verified_where_it_lies_and_in_memory_alike(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verify = ["verify", "lake/*.parquet", "--schema", "schema.toml", "--json"]
    assert run([*verify, "-k", "2"]) == 0
    lies = told(capsys)
    assert lies["file"] == "2 files" and lies["rows"] == 400 and "judged on all rows" in str(lies["notes"])
    assert run([*verify, "-k", "2", "--engine", "memory"]) == 0
    assert told(capsys)["verdicts"] == lies["verdicts"]
    assert run([*verify, "-k", "9"]) == 4
    broken = told(capsys)
    assert broken["holds"] is False and broken["verdicts"][0]["achieved"] < 9


def test_a_single_file_gives_the_same_verdict_and_digest_with_and_without_an_engine(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verify = ["verify", "lake/0.parquet", "--schema", "schema.toml", "-k", "2", "--json"]
    assert run(verify) == 4
    alone = told(capsys)
    assert "judged" not in alone
    assert run([*verify, "--engine", "duckdb", "--memory", "200MB"]) == 4
    counted = told(capsys)
    assert {k: counted[k] for k in alone if k != "notes"} == {k: alone[k] for k in alone if k != "notes"}


def test_a_text_in_another_encoding_is_verified_by_what_the_schema_says(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("latin.toml").write_text('[table]\nencoding = "latin-1"\n[columns.town]\nrole = "quasi"\n')
    Path("k.csv").write_text("town\n" + "Belém\n" * 5, encoding="latin-1")
    verify = ["verify", "k.csv", "--schema", "latin.toml", "-k", "5", "--engine", "duckdb"]
    assert run(verify) == 0
    assert "holds in this file" in capsys.readouterr().out
    assert run([*verify[:-2], "--engine", "duckdb", "--encoding", "utf-8"]) == 3


def test_a_lake_is_inspected_and_the_proposal_written(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["inspect", "lake", "--write", "proposed.toml"]) == 0
    assert "All rows were looked at." in capsys.readouterr().out
    assert "# Proposed by velado from 400 rows." in Path("proposed.toml").read_text()
    assert run(["inspect", "lake", "--json"]) == 0
    lies = told(capsys)
    assert run(["inspect", "lake", "--engine", "memory", "--json"]) == 0
    whole = told(capsys)
    assert {**lies, "source": "", "judged": ""} == {**whole, "source": "", "judged": ""}
    assert "judged" not in whole


def test_a_release_of_a_lake_is_measured_from_counts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ["anonymize", "lake/*.parquet", "--schema", "schema.toml", "-k", "5", "--method", "mondrian"]
    assert run([*made, "-o", "out", "--quiet"]) == 0
    measure = ["measure", "lake/*.parquet", "--schema", "schema.toml", "--json"]
    assert run([*measure[:2], "out", *measure[2:]]) == 0
    counted = told(capsys)
    assert run([*measure[:2], "out", *measure[2:], "--engine", "memory"]) == 0
    whole = told(capsys)
    assert counted["utility"]["ncp"]["overall"] == pytest.approx(whole["utility"]["ncp"]["overall"])
    assert counted["risk"]["after"] == whole["risk"]["after"]
    assert run([*measure[:2], "out/release/*.parquet", *measure[2:]]) == 0
    assert told(capsys)["rows"] == counted["rows"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "verify lake --schema schema.toml --population p.csv",
            "--population cannot be used with an engine yet.",
        ),
        ("verify lake --schema schema.toml --table t", "--table was given, but the source is neither"),
        ("verify postgresql:// --schema schema.toml", "A postgresql:// source needs --table."),
        (
            "verify postgresql:// --table t --engine memory --schema schema.toml",
            "--engine memory cannot read",
        ),
        ("inspect lake --sheet one", "--sheet cannot be used with an engine yet."),
        ("inspect nowhere/*.parquet", "No file matches 'nowhere/*.parquet'."),
        ("measure lake lake --schema schema.toml --linkage", "--linkage cannot be used with an engine yet."),
        (
            "measure lake lake --schema schema.toml --row-risk r.csv",
            "--row-risk cannot be used with an engine yet.",
        ),
    ],
)
def test_what_a_source_cannot_do_is_one_sentence(
    place: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    assert run(line.split()) != 0
    assert said in capsys.readouterr().err
