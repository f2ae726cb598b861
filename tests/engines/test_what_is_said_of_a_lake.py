"""Lakes that several tools wrote, and what is said of a part, a setting or a command that does not fit."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.same_table import KEY, rows_of
from tests.engines.test_lake import nothing_published, release, schema, stays

from velado.apps.cli import run
from velado.data.schema import Schema
from velado.engines.duckdb_source import DuckDBSource
from velado.engines.row_source import FileSink, Recoding
from velado.errors import EngineError, ParameterError, TableError
from velado.release.anonymize import anonymize
from velado.study.engine_run import publish_files

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))


def written(frame: pl.DataFrame, place: Path, type_: pa.DataType) -> None:
    """The frame as a library writes it whose texts are of that Arrow type."""
    place.parent.mkdir(parents=True, exist_ok=True)
    table = frame.to_arrow()
    fields = [f.with_type(type_) if f.name in ("sex", "ill") else f for f in table.schema]
    cells = [
        c.cast(pa.string()).cast(f.type) if f.type == type_ else c for c, f in zip(table, fields, strict=True)
    ]
    pq.write_table(pa.table(cells, pa.schema(fields)), place)


def test_a_lake_that_several_libraries_wrote_is_one_table(tmp_path: Path) -> None:
    parts = [stays(150, at) for at in range(len(TEXTS))]
    for at, (part, type_) in enumerate(zip(parts, TEXTS, strict=True)):
        written(part, tmp_path / f"lake/part-{at}.parquet", type_)
    out = release(tmp_path / "lake", tmp_path)
    memory = anonymize(pl.concat(parts), schema(), "mondrian", k=5, key=KEY).frame
    assert rows_of(pl.read_parquet(out / "release" / "table.parquet")) == rows_of(memory)


def test_a_part_that_does_not_fit_is_told_by_its_number_and_both_types(tmp_path: Path) -> None:
    for month, type_ in enumerate((pl.Int64, pl.Int64, pl.Int32)):
        (tmp_path / f"lake/month={month}").mkdir(parents=True)
        stays(50).with_columns(pl.col("age").cast(type_)).write_parquet(
            tmp_path / f"lake/month={month}/p.parquet"
        )
    with pytest.raises(TableError) as told:
        release(tmp_path / "lake", tmp_path)
    assert (
        "int32 in 'month=…/p.parquet (file 3 of 3)' and int64 in 'month=…/p.parquet (file 1 of 3)'"
        in told.value.what
    )
    assert not re.search("month=[0-9]", str(told.value)), "a folder may be called after a cell"


def test_a_ragged_part_is_named(tmp_path: Path) -> None:
    for at in range(3):
        (tmp_path / "lake").mkdir(exist_ok=True)
        stays(50, at).write_csv(tmp_path / f"lake/part-{at}.csv")
    with (tmp_path / "lake/part-1.csv").open("a") as file:
        file.write("31\n")
    with pytest.raises(TableError, match=r"Line 52 of .part-1\.csv. cannot be read"):
        release(tmp_path / "lake", tmp_path)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_utf8_declared_as_something_else_is_refused_as_in_memory(encoding: str, tmp_path: Path) -> None:
    frame = stays(60).with_columns(ill=pl.lit("Belém"))
    (tmp_path / "lake").mkdir()
    frame.write_csv(tmp_path / "lake/a.csv")
    (tmp_path / "lake/b.csv").write_bytes(frame.write_csv().encode(encoding))
    wrong = Schema.from_dict({**schema().to_dict(), "table": {"encoding": encoding}})
    with pytest.raises(TableError, match=r"'a\.csv' is declared as .* but is written in UTF-8"):
        release(tmp_path / "lake", tmp_path, wrong)
    with pytest.raises(TableError, match=r"'a\.csv' is declared as .* but is written in UTF-8"):
        anonymize(tmp_path / "lake/a.csv", wrong, "mondrian", k=5)
    assert nothing_published(tmp_path)


def test_the_names_and_the_order_of_files_change_nothing(tmp_path: Path) -> None:
    made = []
    for folder, numbers in (("one", (0, 1, 2)), ("two", (2, 1, 0))):
        (tmp_path / folder).mkdir()
        for name, number in enumerate(numbers):
            stays(100, number).write_parquet(tmp_path / folder / f"{name}.parquet")
        out = release(tmp_path / folder, tmp_path, force=True)
        made.append((out / "release" / "table.parquet").read_bytes())
    assert made[0] == made[1]


def test_an_engine_that_there_is_not_is_refused(tmp_path: Path) -> None:
    stays(50).write_parquet(tmp_path / "a.parquet")
    for wrong in ("sparc", "memory", "polars"):
        with pytest.raises(ParameterError, match=f"engine= cannot be '{wrong}'"):
            publish_files(tmp_path / "a.parquet", schema(), k=5, out=tmp_path / "out", key=KEY, engine=wrong)
    with pytest.raises(ParameterError, match="--memory is not a size"):
        release(tmp_path / "a.parquet", tmp_path, memory="3XB")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="folder 'empty' holds no table"):
        release(tmp_path / "empty", tmp_path)
    assert nothing_published(tmp_path)


SCHEMA = """
[columns.age]
role = "quasi"
kind = "numeric"
[columns.sex]
role = "quasi"
[columns.ill]
role = "sensitive"
"""


def test_what_the_commands_say_of_a_lake_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    Path("lake").mkdir()
    for at in range(2):
        stays(200, at).with_columns(ill=pl.lit("=1+1")).write_parquet(f"lake/part-{at}.parquet")
    Path("s.toml").write_text('[table]\nconstant = "allow"\n' + SCHEMA)
    asked = ["anonymize", "lake", "--schema", "s.toml", "-k", "5", "--method", "mondrian"]
    assert run([*asked, "-o", "out"]) == 0
    said = capsys.readouterr()
    assert "--formulas refuse" in said.out + said.err and "--formulas escape" not in said.out + said.err
    assert "NCP, leaves-1" in said.out
    assert json.loads(Path("out/release/manifest.json").read_text())["cells_like_formulas"] == 400
    assert run([*asked, "--formulas", "refuse", "-o", "no"]) != 0
    capsys.readouterr()
    assert run([*asked, "--engine", "memory", "-o", "memory"]) == 0
    assert re.search(r"Table: 2 files, 400 rows", capsys.readouterr().out)
    recipe = "out/private/recipe.toml"
    assert "whatever `velado anonymize` takes" in Path(recipe).read_text()


def test_a_type_that_duckdb_does_not_read_is_one_sentence(tmp_path: Path) -> None:
    half = pa.table({"age": pa.array(np.arange(9, dtype=np.float16)), "sex": ["F"] * 9})
    with pa.OSFile(str(tmp_path / "half.arrow"), "wb") as file, pa.ipc.new_file(file, half.schema) as writer:
        writer.write_table(half)
    with pytest.raises(TableError, match="a type that DuckDB does not read"):
        release(tmp_path / "half.arrow", tmp_path)
    assert nothing_published(tmp_path)


@pytest.mark.parametrize("wrong", ["more", "fewer", "blank", "cells"])
def test_an_engine_that_writes_something_else_publishes_nothing(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that was to stay, one that is missing, a row that the schema leaves out: the written table is looked at."""
    meaning = schema()
    frame = stays(300).with_columns(note=pl.lit("x"))
    if wrong == "blank":
        frame = frame.with_columns(sex=pl.when(pl.int_range(300) % 10 > 0).then("sex"))
        sex = replace(meaning.columns["sex"], missing="suppress")
        meaning = replace(meaning, columns={**meaning.columns, "sex": sex})
        monkeypatch.setattr(DuckDBSource, "filled", lambda self, columns, blanks: self)
    else:
        write = DuckDBSource.write

        def other(self: DuckDBSource, recoding: Recoding, sink: FileSink) -> int:
            if wrong == "cells":  # all rows of one illness
                cell = f"f{self.types.get_field_index('ill')}"
                ill = f"(SELECT * REPLACE ('flu' AS {cell}) FROM {self.relation}) AS file"
                return write(replace(self, relation=ill), recoding, sink)
            columns = (*recoding.columns, "note") if wrong == "more" else recoding.columns[:-1]
            return write(self, replace(recoding, columns=columns), sink)

        monkeypatch.setattr(DuckDBSource, "write", other)
    frame.write_parquet(tmp_path / "stays.parquet")
    with pytest.raises(EngineError, match=r"other columns than were planned|not the one that was planned"):
        release(tmp_path / "stays.parquet", tmp_path, meaning, undeclared="drop", suppression=0.2)
    assert nothing_published(tmp_path)
