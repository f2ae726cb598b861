"""A lake of files published by DuckDB: whole folders or nothing, bad input refused in one sentence, killed runs cleaned up."""

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.engines.same_table import KEY

from velado.data.schema import Schema
from velado.engines.duckdb_source import DuckDBSource, open_files
from velado.engines.lake_files import lake_files
from velado.engines.row_source import FileSink
from velado.errors import (
    EngineError,
    IdentifierOpen,
    OutputError,
    ParameterError,
    PersonUndecided,
    SchemaError,
    SideDoorOpen,
    TableError,
)
from velado.release.guarantees import KAnonymity
from velado.release.sources import source_check
from velado.release.sources.source_check import check_source, published_groups
from velado.release.verify import verify
from velado.study.engine_run import publish_files

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

SCHEMA = {
    "age": {"role": "quasi", "kind": "numeric"},
    "sex": {"role": "quasi", "kind": "categorical"},
    "ill": {"role": "sensitive", "kind": "categorical"},
}


def schema(**more: dict[str, object]) -> Schema:
    return Schema.from_dict({"columns": {**SCHEMA, **more}})


def stays(rows: int, seed: int = 0) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "sex": draw.choice(["F", "M"], rows),
            "ill": draw.choice(["flu", "cold", "asthma"], rows),
        }
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    for at in range(3):
        stays(200, at).write_parquet(folder / f"part-{at}.parquet")
    return folder


def release(place: Path | str, tmp_path: Path, meaning: Schema | None = None, **how: object) -> Path:
    out = tmp_path / "out"
    publish_files(str(place), meaning or schema(), "mondrian", k=5, out=out, key=KEY, **how)
    return out


def nothing_published(tmp_path: Path) -> bool:
    return not any(
        entry.name == "out" or entry.name.startswith(".out.velado-") for entry in tmp_path.iterdir()
    )


def test_a_lake_becomes_a_release_that_a_stranger_can_verify(lake: Path, tmp_path: Path) -> None:
    out = release(lake, tmp_path)
    assert sorted(p.name for p in (out / "release").iterdir()) == [
        "about.html",
        "manifest.json",
        "table.parquet",
    ]
    assert sorted(p.name for p in (out / "private").iterdir()) == [
        "measured.json",
        "owner.key",
        "recipe.toml",
        "report.html",
    ]
    found = verify(out / "release" / "table.parquet", schema(), [KAnonymity(5)])
    assert found.holds and found.table.rows == 600
    assert not [door for door in found.side_doors if door.kind == "row-order"]
    manifest = json.loads((out / "release" / "manifest.json").read_text())
    assert manifest["how"]["engine"] == "DuckDB" and manifest["how"]["plan"] == "compress"
    assert manifest["output"]["row_order"] == "drawn" and manifest["output"]["rows"] == 600
    assert {"polars", "duckdb", "pyarrow"} < set(manifest["libraries"]), "who wrote the file must stand there"
    assert "judged on all rows" in manifest["judged"]


def test_a_second_run_gives_the_same_bytes_and_another_key_another_order(lake: Path, tmp_path: Path) -> None:
    first = (release(lake, tmp_path) / "release" / "table.parquet").read_bytes()
    again = (release(lake, tmp_path, force=True) / "release" / "table.parquet").read_bytes()
    assert first == again
    other = tmp_path / "other"
    from velado.data.keys import Key

    publish_files(str(lake), schema(), "mondrian", k=5, out=other, key=Key(bytes(range(1, 41))))
    one, two = (pl.read_parquet(p / "release" / "table.parquet") for p in (tmp_path / "out", other))
    assert not one.equals(two) and one.sort(one.columns).equals(two.sort(two.columns))


def test_hidden_files_of_a_lake_are_left_alone_and_folders_tell_a_column(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for year in ("2023", "2024"):
        (lake / f"year={year}").mkdir(parents=True)
        stays(100, int(year)).write_parquet(lake / f"year={year}" / "part.parquet")
    (lake / "_temporary").mkdir()
    (lake / "_temporary" / "half.parquet").write_bytes(b"PAR1")
    (lake / "_SUCCESS").touch()
    assert len(lake_files(lake)) == 2
    out = release(lake, tmp_path, schema(year={"role": "other", "kind": "categorical"}))
    assert pl.read_parquet(out / "release" / "table.parquet")["year"].value_counts()["count"].to_list() == [
        100,
        100,
    ]


def test_what_stands_in_only_some_files_is_refused_by_name(lake: Path, tmp_path: Path) -> None:
    pl.read_parquet(lake / "part-1.parquet").drop("ill").write_parquet(lake / "part-1.parquet")
    with pytest.raises(TableError, match=r"'part-1.parquet' lacks the column 'ill'\."):
        release(lake, tmp_path)
    stays(9).with_columns(more=pl.lit(1)).write_parquet(lake / "part-1.parquet")
    with pytest.raises(TableError, match="has the column 'more'"):
        release(lake, tmp_path)
    stays(9).cast({"age": pl.Int32}).write_parquet(lake / "part-1.parquet")
    with pytest.raises(
        TableError, match=r"Column 'age' is int32 in 'part-1\.parquet' and int64 in 'part-0\.parquet'"
    ):
        release(lake, tmp_path)
    assert nothing_published(tmp_path)


def test_columns_in_another_order_and_empty_parts_are_one_table(lake: Path, tmp_path: Path) -> None:
    pl.read_parquet(lake / "part-1.parquet").select("ill", "sex", "age").write_parquet(
        lake / "part-1.parquet"
    )
    stays(0).cast({"age": pl.Int64, "sex": pl.String, "ill": pl.String}).write_parquet(
        lake / "part-3.parquet"
    )
    out = release(lake, tmp_path)
    assert pl.read_parquet(out / "release" / "table.parquet").height == 600


def test_a_damaged_part_and_a_file_of_another_kind_are_refused(lake: Path, tmp_path: Path) -> None:
    whole = (lake / "part-2.parquet").read_bytes()
    (lake / "part-2.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match=r"'part-2\.parquet' is not a readable Parquet file"):
        release(lake, tmp_path)
    torn = bytearray(whole)
    torn[8 : len(whole) // 2] = bytes(len(whole) // 2 - 8)  # the footer is whole, the pages are not
    (lake / "part-2.parquet").write_bytes(bytes(torn))
    with pytest.raises(TableError, match=r"Rows 1 to 200 of 'part-2\.parquet' cannot be read"):
        release(lake, tmp_path)
    (lake / "part-2.parquet").unlink()
    stays(9).write_csv(lake / "part-2.csv")
    with pytest.raises(TableError, match=r"side by side, as 'part-2\.csv' and 'part-0\.parquet'"):
        release(lake, tmp_path)
    assert nothing_published(tmp_path)


def test_a_file_that_changes_during_the_run_is_noticed(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = DuckDBSource.write

    def late(self: DuckDBSource, recoding: object, sink: FileSink) -> int:
        stays(200, 9).write_parquet(lake / "part-1.parquet")
        return honest(self, recoding, sink)  # type: ignore[arg-type]

    monkeypatch.setattr(DuckDBSource, "write", late)
    with pytest.raises(TableError, match=r"'part-1.parquet' changed while it was read\."):
        release(lake, tmp_path)
    assert nothing_published(tmp_path)


def test_written_rows_that_are_not_the_planned_ones_are_never_published(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = DuckDBSource.write

    def dishonest(self: DuckDBSource, recoding: object, sink: FileSink) -> int:
        rows = honest(self, recoding, sink)  # type: ignore[arg-type]
        pl.read_parquet(sink.path)[1:].write_parquet(sink.path)  # an engine that loses a row
        return rows

    monkeypatch.setattr(DuckDBSource, "write", dishonest)
    with pytest.raises(EngineError, match="not the one that was planned"):
        release(lake, tmp_path)
    assert nothing_published(tmp_path)


def test_the_verdict_is_read_off_the_written_bytes(lake: Path, tmp_path: Path) -> None:
    out = release(lake, tmp_path)
    path = out / "release" / "table.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("17")).otherwise(pl.col("age")).alias("age")
    ).write_parquet(path)
    written = open_files(path, schema(), tmp_path)
    found = check_source(published_groups(written, ["age", "sex"]), schema(), [KAnonymity(5)])
    assert not found.holds and found.verdicts[0].achieved == 1


def test_identifiers_people_and_side_doors_are_refused_as_in_memory(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    frame = stays(400)
    frame.with_columns(mail=pl.Series([f"a{n}@x.br" for n in range(400)])).write_parquet(lake / "p.parquet")
    with pytest.raises(IdentifierOpen, match="mail"):
        release(lake, tmp_path, schema(mail={"role": "other", "kind": "text"}))
    frame.with_columns(patient_id=pl.Series([f"{n // 4:05d}" for n in range(400)])).write_parquet(
        lake / "p.parquet"
    )
    with pytest.raises(PersonUndecided, match="patient_id"):
        release(lake, tmp_path, schema(patient_id={"role": "identifier", "kind": "text"}))
    frame.with_columns(years=pl.col("age").cast(pl.String) + " years").write_parquet(lake / "p.parquet")
    with pytest.raises(SideDoorOpen, match="years"):
        release(lake, tmp_path, schema(years={"role": "other", "kind": "categorical"}))
    assert nothing_published(tmp_path)


def test_beyond_the_sample_repeated_people_are_counted_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_check, "SAMPLE_ROWS", 2_000)
    lake = tmp_path / "lake"
    lake.mkdir()
    rows = 40_000
    frame = stays(rows).with_columns(
        patient_id=pl.Series([f"{7 * n % 20_000:05d}" for n in range(rows)])  # each twice, far apart
    )
    frame.write_parquet(lake / "p.parquet")
    with pytest.raises(PersonUndecided, match="Judged on a sample of"):
        release(lake, tmp_path, schema(patient_id={"role": "identifier", "kind": "text"}))
    person = schema(patient_id={"role": "identifier", "kind": "text", "person": True})
    out = release(lake, tmp_path, person, force=True)
    manifest = json.loads((out / "release" / "manifest.json").read_text())
    assert "sample of" in manifest["judged"]
    assert manifest["promise"]["verdicts"][0]["unit"] == "people"


def test_what_an_engine_cannot_do_yet_is_one_sentence(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="cannot escape cells"):
        release(lake, tmp_path, formulas="escape")
    assert nothing_published(tmp_path)


def test_a_disk_without_room_leaves_nothing(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "ro").mkdir(mode=0o500)
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    with pytest.raises(OutputError):
        publish_files(str(lake), schema(), "mondrian", k=5, out=tmp_path / "ro" / "out", key=KEY)


def test_the_memory_of_duckdb_is_a_size(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="--memory is not a size"):
        release(lake, tmp_path, memory="much")
    assert nothing_published(tmp_path)


def test_cells_like_formulas_are_counted_or_refused(lake: Path, tmp_path: Path) -> None:
    frame = stays(200, 1).with_columns(
        ill=pl.when(pl.int_range(200) < 7).then(pl.lit("=1+1")).otherwise("ill")
    )
    frame.write_parquet(lake / "part-1.parquet")
    out = release(lake, tmp_path)
    assert json.loads((out / "release" / "manifest.json").read_text())["cells_like_formulas"] == 7
    with pytest.raises(OutputError, match="7 cells"):
        release(lake, tmp_path, formulas="refuse", force=True)


def test_text_files_are_read_as_text_with_their_decimal_commas(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for at in range(2):
        lines = [f"{20 + n % 30};{60 + n % 5},5;ã" for n in range(100)]
        (lake / f"p{at}.csv").write_text("age;weight;ill\n" + "\n".join(lines) + "\n", encoding="latin-1")
    meaning = Schema.from_dict(
        {
            "table": {"decimal": ",", "separator": ";", "encoding": "latin-1"},
            "columns": {
                "age": {"role": "quasi", "kind": "numeric"},
                "weight": {"role": "quasi", "kind": "numeric"},
                "ill": {"role": "sensitive", "kind": "categorical"},
            },
        }
    )
    out = release(lake, tmp_path, meaning)
    head = (out / "release" / "table.csv").read_text(encoding="utf-8").splitlines()
    assert head[0] == "age;weight;ill" and len(head) == 201 and head[1].endswith(";ã")


def test_a_missing_column_is_the_schema_s_matter(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="'town'"):
        release(lake, tmp_path, schema(town={"role": "quasi"}))
