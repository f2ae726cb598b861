"""Columns of a lake keep their names: those that folders tell, those alike but for capitals, those behind odd paths."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.engines.same_table import KEY

from velado.data.io import read_table
from velado.data.schema import Schema
from velado.engines.duckdb_source import DuckDBSource, of_arrow, open_files
from velado.engines.lake_files import lake_files
from velado.engines.remote_files import of_parquet
from velado.errors import TableError
from velado.study.engine_run import publish_files

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

TWO_FOLDERS = {
    "age": {"role": "quasi", "kind": "numeric"},
    "village": {"role": "identifier"},
    "ill": {"role": "sensitive", "kind": "categorical"},
}


def rows(count: int, seed: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"age": np.random.default_rng(seed).integers(18, 90, count)})


def opened(place: Path | str, tmp_path: Path) -> DuckDBSource:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return open_files(place, Schema({}), scratch)


def put(frame: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)


def cells(source: DuckDBSource) -> list[dict[str, object]]:
    frame = source.frame()
    return frame.sort(frame.columns).to_dicts()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_each_of_several_folders_tells_its_own_column(ending: str, tmp_path: Path) -> None:
    # In the paths village comes first, in the alphabet ill.
    for village in ("a", "b"):
        for ill in ("flu", "cold"):
            put(
                rows(3).with_columns(zone=pl.lit("z")),
                tmp_path / f"lake/village={village}/ill={ill}/p.{ending}",
            )
    source = opened(tmp_path / "lake", tmp_path)
    assert source.types.names == ["age", "zone", "village", "ill"]
    frame = source.frame()
    assert sorted(frame["village"].unique()) == ["a", "b"]
    assert sorted(frame["ill"].unique()) == ["cold", "flu"]
    assert frame.height == 12 and frame["zone"].unique().to_list() == ["z"]
    sample = source.sample(6)
    assert set(sample["ill"].to_pylist()) <= {"cold", "flu"}


def test_an_identifier_told_by_a_folder_is_never_published(tmp_path: Path) -> None:
    for village in range(20):
        for ill in ("flu", "cold"):
            put(rows(10, village), tmp_path / f"lake/village=v{village}/ill={ill}/p.parquet")
    schema = Schema.from_dict({"columns": TWO_FOLDERS})
    publish_files(tmp_path / "lake", schema, "mondrian", k=5, out=tmp_path / "out", key=KEY)
    table = pl.read_parquet(tmp_path / "out" / "release" / "table.parquet")
    assert table.columns == ["age", "ill"]
    assert sorted(table["ill"].unique()) == ["cold", "flu"]


def test_what_a_folder_s_name_spells_is_read_as_its_writer_meant(tmp_path: Path) -> None:
    for name in ("S%C3%A3o Jo%C3%A3o", "__HIVE_DEFAULT_PARTITION__", "O'Hara", "NULL", "a=b"):
        put(pl.DataFrame({"age": [31]}), tmp_path / f"lake/town={name}/p.parquet")
    found = [row["town"] for row in cells(opened(tmp_path / "lake", tmp_path))]
    assert sorted(found, key=str) == ["NULL", None, "O'Hara", "São João", "a=b"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_alike_but_for_capitals_are_refused_by_name(ending: str, tmp_path: Path) -> None:
    both = pl.DataFrame({"age": [31, 35], "code": ["I10", "E11"], "CODE": ["w1", "w2"]})
    put(both, tmp_path / f"lake/a.{ending}")
    with pytest.raises(TableError, match=r"'code' and 'CODE' have the same name but for capital letters\."):
        opened(tmp_path / f"lake/a.{ending}", tmp_path)
    put(both.drop("CODE"), tmp_path / f"lake/a.{ending}")
    put(both.drop("code"), tmp_path / f"lake/b.{ending}")
    with pytest.raises(TableError, match=r"'code' and 'CODE' have the same name but for capital letters\."):
        opened(tmp_path / "lake", tmp_path)
    put(both.drop("CODE"), tmp_path / f"other/Age=3/a.{ending}")
    with pytest.raises(TableError, match=r"'age' and 'Age' have the same name"):
        opened(tmp_path / "other", tmp_path)


def test_columns_alike_but_for_capitals_are_refused_elsewhere_too(tmp_path: Path) -> None:
    both = pl.DataFrame({"age": [31, 35], "code": ["I10", "E11"], "CODE": ["w1", "w2"]})
    put(both, tmp_path / "a.parquet")
    put(both.select("age", "CODE", "code"), tmp_path / "b.parquet")
    with pytest.raises(TableError, match=r"'code' and 'CODE'"):
        of_parquet(duckdb.connect(), f"{tmp_path}/*.parquet")
    with pytest.raises(TableError, match=r"'code' and 'CODE'"):
        of_arrow(both.to_arrow())


def test_files_elsewhere_are_read_by_name_whatever_lies_within_a_column(tmp_path: Path) -> None:
    nested = {"one": [[1, 2]], "age": [31], "two": [[{"a": 3, "b": 4}]], "sex": ["F"]}
    put(pl.DataFrame(nested), tmp_path / "a.parquet")
    put(pl.DataFrame(nested).select("sex", "two", "age", "one"), tmp_path / "b.parquet")
    source = of_parquet(duckdb.connect(), f"{tmp_path}/*.parquet")
    assert source.types.names == ["one", "age", "two", "sex"]
    assert source.domain("sex").to_pydict() == {"value": ["F"], "rows": [2]}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_of_the_files_is_never_replaced_by_a_folder(ending: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"age": [31, 35], "year": [2018, 2019]})
    put(frame, tmp_path / f"year=2020/lake/zone=a/p.{ending}")
    source = opened(tmp_path / "year=2020" / "lake", tmp_path)
    assert source.types.names == ["age", "year", "zone"]
    assert [int(str(row["year"])) for row in cells(source)] == [2018, 2019]
    with pytest.raises(TableError, match="'year' is told by a folder's name and once more"):
        opened(tmp_path / "year=2020" / ".." / "year=2020" / "..", tmp_path)
    alone = opened(tmp_path / f"year=2020/lake/zone=a/p.{ending}", tmp_path)
    assert alone.types.names == ["age", "year"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("above", ["run=3", "br[1]", "a{b}", "x*y"])
def test_any_character_may_stand_in_a_path(
    above: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / above
    for year in (2020, 2021):
        put(rows(50, year), base / f"lake/year={year}/p.{ending}")
    schema = Schema.from_dict({"columns": {"age": TWO_FOLDERS["age"], "year": {"role": "quasi"}}})
    for place in ("lake", f"lake/**/*.{ending}", f"lake/year=*/p.{ending}"):
        for root in (base, Path(above)):
            monkeypatch.chdir(tmp_path)
            source = opened(root / place, tmp_path)
            assert source.types.names == ["age", "year"] and source.rows == 100
            assert source.domain("year").sort_by("value").to_pydict() == {
                "value": ["2020", "2021"],
                "rows": [50, 50],
            }
    publish_files(base / "lake", schema, "mondrian", k=5, out=base / "out", key=KEY)
    one = opened(base / f"lake/year=2020/p.{ending}", tmp_path)
    assert one.types.names == ["age"] and one.rows == 50


def test_a_file_that_two_links_lead_to_counts_for_each_folder(tmp_path: Path) -> None:
    put(rows(5), tmp_path / "rows.parquet")
    for year in (2020, 2021):
        (tmp_path / f"lake/year={year}").mkdir(parents=True)
        (tmp_path / f"lake/year={year}/p.parquet").symlink_to(tmp_path / "rows.parquet")
    found = opened(tmp_path / "lake", tmp_path).domain("year").sort_by("value").to_pydict()
    assert found == {"value": ["2020", "2021"], "rows": [5, 5]}


def test_columns_called_like_a_file_s_place_are_columns(tmp_path: Path) -> None:
    frame = pl.DataFrame({"filename": ["x"], "file_row_number": [7], "Filename_": ["y"], "place": ["p"]})
    put(frame, tmp_path / "lake/year=2020/p.parquet")
    (found,) = cells(opened(tmp_path / "lake", tmp_path))
    assert found == {**frame.to_dicts()[0], "year": "2020"}


def test_a_column_without_a_name_is_refused(tmp_path: Path) -> None:
    put(pl.DataFrame({"age": [31], "": [1]}), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="A column has no name"):
        opened(tmp_path / "a.parquet", tmp_path)


def test_a_pattern_leaves_out_what_a_folder_leaves_out(tmp_path: Path) -> None:
    lake = tmp_path / "_own" / "lake"
    for name in ("a", "n/b", "_temporary/c", "n/_half", ".d", "n/.e/f"):
        put(rows(2), lake / f"{name}.parquet")
    kept = [lake / "a.parquet", lake / "n/b.parquet"]
    assert lake_files(lake) == lake_files(f"{lake}/**/*.parquet") == kept
    assert lake_files(f"{lake}/_temp*/*.parquet") == [lake / "_temporary/c.parquet"]
    assert lake_files(f"{lake}/_temporary/*.parquet") == [lake / "_temporary/c.parquet"]
    for none in (f"{lake}/*/*half.parquet", f"{lake}/no/such.csv", ""):
        with pytest.raises(TableError, match="No file matches"):
            lake_files(none)


def test_lengths_of_time_are_refused_as_in_memory(tmp_path: Path) -> None:
    spans = pl.Series("stay", [1, 2]).cast(pl.Duration("ms"))
    put(rows(2).with_columns(spans), tmp_path / "a.parquet")
    schema = Schema.from_dict({"columns": {"age": TWO_FOLDERS["age"], "stay": {"role": "quasi"}}})
    with pytest.raises(TableError) as in_memory:
        read_table(tmp_path / "a.parquet", schema)
    with pytest.raises(TableError) as engine:
        publish_files(tmp_path / "a.parquet", schema, "mondrian", k=2, out=tmp_path / "out", key=KEY)
    assert "'stay' holds values of type duration" in str(engine.value)
    assert str(engine.value) == str(in_memory.value)


@pytest.mark.parametrize("kind", [pl.Float32, pl.Float64])
def test_there_is_one_zero(kind: type[pl.DataType], tmp_path: Path) -> None:
    weights = pl.Series("weight", [-0.0, 0.0, 1.5, None, float("nan")] * 20).cast(kind)
    put(rows(100).with_columns(weights), tmp_path / "a.parquet")
    source = opened(tmp_path / "a.parquet", tmp_path)
    assert source.types.field("weight").type == ("float" if kind is pl.Float32 else "double")
    found = {
        str(cell): count for cell, count in zip(*source.domain("weight").to_pydict().values(), strict=True)
    }
    assert found == {"0.0": 40, "1.5": 20, "None": 20, "nan": 20}
    schema = Schema.from_dict(
        {"columns": {"age": TWO_FOLDERS["age"], "weight": {"role": "quasi", "kind": "categorical"}}}
    )
    done = publish_files(tmp_path / "a.parquet", schema, "mondrian", k=2, out=tmp_path / "out", key=KEY)
    assert done.release.plan.rows == 100


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_of_several_folders_come_in_the_order_of_their_files(ending: str, tmp_path: Path) -> None:
    rows, files = 40_000, 6
    for at in range(files):
        part = pl.DataFrame({"n": range(at * rows, (at + 1) * rows), "sex": ["F", "M"] * (rows // 2)})
        (tmp_path / f"year={at}").mkdir()
        place = tmp_path / f"year={at}" / f"part.{ending}"
        part.write_csv(place) if ending == "csv" else part.write_parquet(place)
    lake = opened(f"{tmp_path}/year=*/*.{ending}", tmp_path)
    assert lake.order == "numbered"
    alone = opened(f"{tmp_path}/year=0/*.{ending}", tmp_path)
    assert alone.order == "scan" and alone.frame().get_column("n").cast(pl.Int64).is_sorted()
    whole = list(range(rows * files))
    for _ in range(4):
        assert pl.Series(lake.frame().get_column("n")).cast(pl.Int64).to_list() == whole
        some = pl.Series(lake.sample(20_000).column("n").to_pylist()).cast(pl.Int64)
        assert some.is_sorted() and 18_000 < some.len() < 22_000


@pytest.mark.parametrize(
    "name", ["b.csv.gz", "n/b.xlsx", "b.zip", "part-00001", "b.dat", "n/b.jsonl", "b.csv.zst", "b.orc"]
)
def test_a_folder_leaves_out_no_table_without_a_word(name: str, tmp_path: Path) -> None:
    put(rows(2), tmp_path / "lake/a.parquet")
    (tmp_path / "lake/README.md").write_text("what lies here")
    (tmp_path / "lake/LICENSE").write_text("whose it is")
    (tmp_path / "lake/_SUCCESS").write_text("")
    assert lake_files(tmp_path / "lake") == [tmp_path / "lake/a.parquet"]
    (tmp_path / "lake" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "lake" / name).write_bytes(b"x")
    with pytest.raises(TableError, match="is not read as a part of a folder"):
        lake_files(tmp_path / "lake")
    assert lake_files(f"{tmp_path}/lake/*.parquet") == [tmp_path / "lake/a.parquet"]
