"""Deliveries from files, folders, databases and servers: the same rows are the same delivery, and belong to one ledger."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from velado.apps.cli import run

SCHEMA = """
[columns.patient]
kind = "text"
role = "identifier"
person = true
max_rows = 2

[columns.ward]
role = "quasi"
values = ["north", "south"]
"""
SQL = "SELECT ward, COUNT(*) FROM deliveries GROUP BY ward"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA, "utf-8")
    return tmp_path


def week(first: int) -> pl.DataFrame:
    """A hundred and fifty people with two rows each, in a ward each, and a column that the schema does not name."""
    people = [str(first + at // 2) for at in range(300)]
    return pl.DataFrame(
        {"patient": people, "ward": [("north", "south")[at // 2 % 2] for at in range(300)], "more": 1}
    )


def told(capsys: pytest.CaptureFixture[str], source: str, *more: str) -> dict[str, Any]:
    words = ["running", source, SQL, "--schema", "schema.toml", "--releases", "4", "--deliveries", "2"]
    assert run([*words, "--epsilon", "80", "--ledger", "visits.ledger", "--json", *more]) == 0
    return dict(json.loads(capsys.readouterr().out))


def near(release: dict[str, Any], number: int, rows: int) -> None:
    assert release["release"] == number
    assert all(abs(row[1] - rows) < 20 for row in release["answer"]["rows"][:2])


@pytest.mark.slow
def test_files_folders_and_databases_are_deliveries_of_one_total(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    duckdb = pytest.importorskip("duckdb")
    week(0).write_csv("one.csv")
    near(told(capsys, "one.csv"), 1, 150)
    frame = week(1000)
    with duckdb.connect("weeks.duckdb") as base:
        base.register("frame", frame.to_arrow())
        base.execute("CREATE TABLE second AS SELECT * FROM frame")
    near(told(capsys, "weeks.duckdb", "--table", "second"), 2, 300)
    Path("lake").mkdir()
    for at in range(2):
        week(2000 + 1000 * at).write_parquet(f"lake/part-{at}.parquet")
    near(told(capsys, "lake/*.parquet"), 3, 600)
    # The same rows in a file are the delivery that was counted, in whatever order.
    frame.reverse().write_csv("again.csv")
    again = told(capsys, "again.csv")
    near(again, 2, 300)
    assert again["stored"]


def test_a_relation_of_a_server_is_a_delivery_and_belongs_to_the_ledger(
    place: Path, capsys: pytest.CaptureFixture[str], postgres_url: str
) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as base:
        base.execute("CREATE TABLE arrived (patient int, ward text, more int)")
        with base.cursor() as cursor:
            cursor.executemany("INSERT INTO arrived VALUES (%s, %s, %s)", week(0).rows())
    near(told(capsys, postgres_url, "--table", "arrived"), 1, 150)
    week(0).write_csv("the-same.csv")
    assert told(capsys, "the-same.csv")["stored"]
    # What the server then holds under the name is the next delivery.
    with psycopg.connect(postgres_url, autocommit=True) as base:
        base.execute("UPDATE arrived SET patient = patient + 1000")
    near(told(capsys, postgres_url, "--table", "public.arrived"), 2, 300)
    asked = ["query", "SELECT COUNT(*) FROM arrived", "--schema", "schema.toml", "--engine", postgres_url]
    assert run([*asked, "--relation", "public.arrived", "--ledger", "new.ledger", "--epsilon", "1"]) == 8
    assert "accounted for in another ledger" in capsys.readouterr().err
    # A relation named with its schema has its own name in SQL.
    with psycopg.connect(postgres_url, autocommit=True) as base:
        base.execute("CREATE TABLE others AS SELECT 'o' || patient AS patient, ward FROM arrived")
    asked[1] = "SELECT COUNT(*) FROM others"
    assert run([*asked, "--relation", "public.others", "--ledger", "others.ledger", "--epsilon", "1"]) == 0
