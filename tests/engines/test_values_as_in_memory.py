"""Moments of any unit and time zone, columns without values, and Arrow files are published by an engine as by memory."""

import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
from tests.engines.same_table import KEY, rows_of

import velado
from velado.data.schema import Schema
from velado.engines.duckdb_source import open_files
from velado.engines.remote_files import of_parquet
from velado.errors import TableError
from velado.study.engine_run import publish_files

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")
ROWS = 120


def stays() -> pl.DataFrame:
    """Moments of every unit, with and without a zone, some blank, shortly before midnight of UTC; and a column of blanks."""
    draw = np.random.default_rng(0)
    base = dt.datetime(2024, 2, 28, 23, 30)
    moment = [base + dt.timedelta(days=int(d), seconds=int(s)) for d, s in draw.integers(0, 9, (ROWS, 2))]
    seen = pl.Series(
        [None if at % 11 == 0 else one for at, one in enumerate(moment)], dtype=pl.Datetime("us")
    )
    return pl.DataFrame(
        {
            "age": draw.integers(20, 60, ROWS),
            "came": pl.Series(moment).cast(pl.Datetime("ms")).dt.replace_time_zone("UTC"),
            "left": pl.Series(moment).cast(pl.Datetime("ms")),
            "called": seen.cast(pl.Datetime("ns")),
            "seen": seen,
            "nothing": pl.Series([None] * ROWS, dtype=pl.Null),
            "ill": draw.choice(["flu", "cold"], ROWS),
        }
    ).with_columns(pl.col("came").dt.convert_time_zone("America/Sao_Paulo"))


def schema(**more: dict[str, object]) -> Schema:
    columns: dict[str, dict[str, object]] = {
        "age": {"role": "quasi", "kind": "numeric"},
        "came": {"role": "quasi", "kind": "date"},
        "left": {"role": "other", "kind": "date", "side_door": "accept"},
        "called": {"role": "other", "kind": "date", "side_door": "accept"},
        "seen": {"role": "other", "kind": "date", "side_door": "accept"},
        "nothing": {"role": "other", "kind": "text"},
        "ill": {"role": "sensitive"},
    }
    whole = {"table": {"constant": "allow"}, "columns": {n: c | more.get(n, {}) for n, c in columns.items()}}
    return Schema.from_dict(whole)


def published(place: Path, meaning: Schema, out: Path, k: int) -> pl.DataFrame:
    publish_files(place, meaning, "mondrian", k=k, out=out, key=KEY, reports=(), format="parquet")
    return velado.read_table(out / "release" / "table.parquet").frame


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("quasi", ["came", "left", "called"])
def test_moments_and_columns_of_blanks_are_those_of_memory(ending: str, quasi: str, tmp_path: Path) -> None:
    frame, swapped = stays(), {"role": "other", "side_door": "accept"}
    meaning = schema(**({"came": swapped} | {quasi: {"role": "quasi", "side_door": "refuse"}}))
    file = tmp_path / f"stays.{ending}"
    frame.write_parquet(file) if ending == "parquet" else frame.write_ipc(file)
    memory = velado.anonymize(file, meaning, "mondrian", k=3, key=KEY).frame
    engine = published(file, meaning, tmp_path / "out", 3)
    assert rows_of(engine) == rows_of(memory)
    assert engine.schema == memory.schema


@pytest.mark.parametrize("ending", ["arrow", "feather", "ipc"])
def test_a_folder_of_arrow_files_is_a_lake(ending: str, tmp_path: Path) -> None:
    frame = stays().drop("nothing", "called")
    lake = tmp_path / "lake"
    lake.mkdir()
    for at in range(3):
        pyarrow.feather.write_feather(frame[at::3].to_arrow(), str(lake / f"part-{at}.{ending}"))
    columns = {name: column for name, column in schema().columns.items() if name in frame.columns}
    meaning = schema().with_columns(columns.values())
    memory = velado.anonymize(frame, meaning, "mondrian", k=3, key=KEY).frame
    assert rows_of(published(lake, meaning, tmp_path / "out", 3)) == rows_of(memory)


def test_arrow_files_that_cannot_be_one_table_are_refused(tmp_path: Path) -> None:
    pl.DataFrame({"age": [31]}).write_ipc(tmp_path / "a.arrow")
    (tmp_path / "b.arrow").write_bytes(b"no Arrow")
    with pytest.raises(TableError, match=r"'b\.arrow' is not a readable Arrow file"):
        open_files(tmp_path, Schema({}), tmp_path)
    pl.DataFrame({"years": [31]}).write_ipc(tmp_path / "b.arrow")
    with pytest.raises(TableError, match="lacks the column 'age'"):
        open_files(tmp_path, Schema({}), tmp_path)
    (tmp_path / "b.arrow").unlink()
    pl.DataFrame({"age": [31]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(TableError, match="side by side"):
        open_files(tmp_path, Schema({}), tmp_path)


def test_unfinished_work_elsewhere_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    import duckdb

    for name, age in (("a", 1), ("_temporary/0/b", 2), ("year=1/.part", 3), ("year=1/c", 4), ("_SUCCESS", 5)):
        file = tmp_path / f"{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame({"age": [age]}).write_parquet(file)

    def ages(pattern: str) -> list[int]:
        rows = of_parquet(duckdb.connect(), f"{tmp_path}/{pattern}")
        rows.unchanged()
        return sorted(rows.domain("age")["value"].to_pylist())

    assert ages("**/*.parquet") == [1, 4]
    assert ages("*.parquet") == [1]
    assert ages("_temporary/*/*.parquet") == [2]
    assert ages("a.parquet") == [1]
    with pytest.raises(TableError, match="No file matches"):
        ages("_*.parque[a]")
    assert pa.schema([("age", pa.int64())]) == of_parquet(duckdb.connect(), f"{tmp_path}/a.parquet").types
