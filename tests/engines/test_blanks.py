"""What means no value in a column is blank in what an engine publishes, as in memory, also where nothing is generalized."""

import uuid
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engines.same_table import KEY, rows_of

import velado
from velado.data.schema import Schema
from velado.engines.postgres_connection import connected
from velado.study.engine_run import publish_files, publish_table

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")
ROWS = 200
DAYS = [date(2024, 1, 5), date(9999, 12, 31)]
CODES = ["", "ND", "it's \\ none", "-999", "9999-12-31"]


def stays(typed: bool) -> pl.DataFrame:
    """Codes among texts, numbers and days; 9 is an age, and no sex."""
    draw = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "age": draw.integers(7, 12, ROWS),
            "sex": draw.choice(["F", "M", "9"], ROWS),
            "dose": draw.choice([1, 2, -999], ROWS),
            "level": draw.choice([0.5, 1.5, -999.0], ROWS),
            "day": pl.Series([DAYS[at] for at in draw.integers(0, 2, ROWS)]),
            "note": draw.choice(["calm", "ND", "it's \\ none", "9"], ROWS),
        }
    )
    return frame if typed else frame.cast(pl.String)


def meaning() -> Schema:
    signed = {"role": "other", "side_door": "accept", "reason": "drawn at random"}
    columns: dict[str, dict[str, Any]] = {
        "age": {"role": "quasi", "kind": "numeric", "missing_values": []},
        "sex": {"role": "quasi", "missing_values": ["", "9"]},
        **{name: dict(signed) for name in ("dose", "level", "day", "note")},
    }
    return Schema.from_dict({"table": {"missing_values": CODES}, "columns": columns})


def in_memory(source: Any) -> list[tuple[str, ...]]:
    made = velado.anonymize(source, meaning(), "mondrian", k=3, key=KEY).frame
    assert made["note"].null_count() > 50 and made["dose"].null_count() > 40 and made["day"].null_count() > 50
    assert "9" in made["note"].to_list() and "9" not in made["sex"].to_list()
    return rows_of(made)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_published_as_by_memory(ending: str, tmp_path: Path) -> None:
    frame, file = stays(typed=ending == "parquet"), tmp_path / f"stays.{ending}"
    frame.write_csv(file) if ending == "csv" else frame.write_parquet(file)
    publish_files(file, meaning(), "mondrian", k=3, out=tmp_path / "out", key=KEY, reports=())
    table = next((tmp_path / "out/release").glob("table.*"))
    assert rows_of(velado.read_table(table).frame) == in_memory(file)


@pytest.mark.slow
def test_a_servers_table_is_published_as_by_memory(postgres_url: str, tmp_path: Path) -> None:
    frame, name = stays(typed=True), f"stays_{uuid.uuid4().hex[:8]}"
    with connected(postgres_url) as connection:
        connection.execute(
            f"CREATE TABLE {name} (age int, sex text, dose int8, level float8, day date, note text)"
        )
        with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in frame.rows():
                copy.write_row(row)
    try:
        made = publish_table(
            postgres_url,
            name,
            meaning(),
            "mondrian",
            k=3,
            to_table=f"{name}_k",
            out=tmp_path / "out",
            key=KEY,
        )
        assert made.folder.exists()
        with connected(postgres_url) as connection:
            found = connection.execute(f"SELECT age, sex, dose, level, day, note FROM {name}_k").fetchall()
        shown = sorted(tuple("" if cell is None else str(cell) for cell in row) for row in found)
        assert shown == in_memory(frame)
    finally:
        with connected(postgres_url) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}, {name}_k")


@pytest.mark.slow
def test_a_frame_of_spark_is_published_as_by_memory(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed: velado[spark]")
    session = request.getfixturevalue("session")
    from tests.engines.spark_tables import as_spark

    frame = stays(typed=True)
    made = velado.anonymize(as_spark(session, frame, 3), meaning(), "mondrian", k=3, key=KEY)
    assert rows_of(pl.DataFrame(pl.from_arrow(made.frame.toArrow()))) == in_memory(frame)
