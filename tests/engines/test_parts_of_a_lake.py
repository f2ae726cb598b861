"""What is said of one file among many: which encoding it is in, which types it has, and which one is damaged, and where."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.test_lake import nothing_published, release, schema, stays

from velado.apps.cli import run
from velado.data.schema import Schema
from velado.errors import TableError
from velado.release.anonymize import anonymize

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

TOWN = {"role": "quasi", "kind": "categorical"}


def towns(encoding: str) -> Schema:
    return Schema.from_dict(
        {
            "columns": {"age": {"role": "quasi", "kind": "numeric"}, "town": TOWN},
            "table": {"encoding": encoding},
        }
    )


def write(path: Path, encoding: str, rows: int = 40) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{30 + at % 3},{'Belém' if at % 2 else 'Goiânia'}" for at in range(rows)]
    path.write_bytes("\n".join(["age,town", *lines, ""]).encode(encoding))


def said_in_memory(path: Path, meaning: Schema) -> str:
    with pytest.raises(TableError) as refused:
        anonymize(path, meaning, "mondrian", k=5)
    return str(refused.value)


@pytest.mark.parametrize(
    ("written", "declared"),
    [
        ("utf-8", "latin-1"),  # which decodes every byte there is
        ("utf-8", "cp1252"),
        ("utf-16", "latin-1"),
        ("latin-1", "ascii"),
        ("latin-1", "utf-16"),
    ],
)
def test_a_file_that_memory_does_not_believe_in_its_encoding_is_refused_alike(
    written: str, declared: str, tmp_path: Path
) -> None:
    place = tmp_path / "a.csv"
    write(place, written)
    told = said_in_memory(place, towns(declared))
    with pytest.raises(TableError) as refused:
        release(place, tmp_path, towns(declared))
    assert str(refused.value) == told and nothing_published(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "utf-16", "utf-8-sig", "shift_jis"])
def test_a_file_in_its_declared_encoding_is_the_same_table(encoding: str, tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    names = ("東京", "大阪") if encoding == "shift_jis" else ("Belém", "Goiânia")
    rows = [f"{30 + at % 3},{names[at % 2]}" for at in range(40)]
    place.write_bytes("\n".join(["age,town", *rows, ""]).encode(encoding))
    out = release(place, tmp_path, towns(encoding))
    found = pl.read_csv(out / "release" / "table.csv", infer_schema=False)
    shown = anonymize(place, towns(encoding), "mondrian", k=5).frame
    assert sorted(found.rows()) == sorted(shown.cast(pl.String).rows())


def test_the_parts_of_a_lake_must_be_in_one_encoding(tmp_path: Path) -> None:
    """The advice that a lake was given led to accents published twice over."""
    write(tmp_path / "lake" / "one" / "p.csv", "utf-8")
    write(tmp_path / "lake" / "two" / "p.csv", "latin-1")
    one_of_all = "All files of one table are read in one encoding"
    with pytest.raises(
        TableError, match=r"'two/p\.csv' is not utf-8 text \(first bad byte on line 2\)"
    ) as first:
        release(tmp_path / "lake", tmp_path, towns("utf-8"))
    assert one_of_all in str(first.value)
    with pytest.raises(
        TableError, match=r"'one/p\.csv' is declared as latin-1 but is written in UTF-8"
    ) as second:
        release(tmp_path / "lake", tmp_path, towns("latin-1"))
    assert one_of_all in str(second.value) and nothing_published(tmp_path)


def test_a_bad_byte_far_into_a_file_is_named_by_its_line(tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    lines = ["age,town", *(f"{30 + at % 3},{'x' * 90}" for at in range(60_000))]
    lines[50_001] = "31,Bel\xe9m"
    place.write_bytes("\n".join([*lines, ""]).encode("latin-1"))
    with pytest.raises(TableError, match=r"first bad byte on line 50002"):
        release(place, tmp_path, towns("utf-8"))


TEXTS = {
    "large": pa.large_string(),
    "view": pa.string_view(),
    "category": pa.dictionary(pa.int32(), pa.string()),
    "large category": pa.dictionary(pa.int8(), pa.large_string()),
}


def parts(lake: Path, kind: pa.DataType, column: str) -> pl.DataFrame:
    """Two folders whose files have one name; the second has another Arrow type in one column."""
    whole = stays(400)
    for month in (1, 2):
        folder = lake / f"month={month}"
        folder.mkdir(parents=True)
        cells = (
            whole.slice(200 * (month - 1), 200)
            .to_arrow()
            .cast(pa.schema([("age", pa.int64()), ("sex", pa.string()), ("ill", pa.string())]))
        )
        if month == 2:
            at = cells.schema.get_field_index(column)
            cells = cells.set_column(at, column, cells[column].cast(kind))
        pq.write_table(cells, folder / "p.parquet")
    return whole


@pytest.mark.parametrize("kind", TEXTS.values(), ids=TEXTS)
def test_types_that_are_one_in_parquet_are_one_table(kind: pa.DataType, tmp_path: Path) -> None:
    whole = parts(tmp_path / "lake", kind, "sex")
    out = release(tmp_path / "lake", tmp_path, schema(month={"role": "other"}))
    found = pl.read_parquet(out / "release" / "table.parquet").drop("month")
    shown = anonymize(whole, schema(), "mondrian", k=5).frame
    assert sorted(found.rows()) == sorted(shown.cast(found.schema).rows())


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64()])
def test_types_that_differ_are_told_with_both_files(kind: pa.DataType, tmp_path: Path) -> None:
    parts(tmp_path / "lake", kind, "age")
    said = rf"Column 'age' is {'double' if kind == pa.float64() else kind} in 'month=…/p\.parquet \(file 2 of 2\)' and int64 in 'month=…/p\.parquet \(file 1 of 2\)'\."
    with pytest.raises(TableError, match=said):
        release(tmp_path / "lake", tmp_path, schema(month={"role": "other"}))
    (tmp_path / "lake" / "month=2" / "p.parquet").unlink()
    stays(9).drop("ill").write_parquet(tmp_path / "lake" / "month=2" / "p.parquet")
    with pytest.raises(TableError, match=r"'month=…/p\.parquet \(file 2 of 2\)' lacks the column 'ill'"):
        release(tmp_path / "lake", tmp_path, schema(month={"role": "other"}))


@pytest.mark.parametrize("row", ["31,F", "31,F,flu,x", '31,F,"flu'])
def test_a_ragged_row_is_told_with_its_file_and_line(
    row: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "abc":
        (tmp_path / "lake" / name).mkdir(parents=True)
        stays(300).write_csv(tmp_path / "lake" / name / "p.csv")
    with (tmp_path / "lake" / "b" / "p.csv").open("a") as file:
        file.write(f"{row}\n")
    with pytest.raises(TableError, match=r"Line 302 of 'b/p\.csv' cannot be read"):
        release(tmp_path / "lake", tmp_path)
    assert run(["inspect", str(tmp_path / "lake")]) != 0
    assert "Line 302 of 'b/p.csv' cannot be read" in capsys.readouterr().err and nothing_published(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_file_that_was_recoded_keeps_its_name_in_an_error(encoding: str, tmp_path: Path) -> None:
    write(tmp_path / "lake" / "a.csv", encoding)
    write(tmp_path / "lake" / "b[1].csv", encoding)
    with (tmp_path / "lake" / "b[1].csv").open("a") as file:
        file.write("31\n")
    with pytest.raises(TableError, match=r"Line 42 of 'b\[1\]\.csv' cannot be read"):
        release(tmp_path / "lake", tmp_path, towns(encoding))


def test_a_damaged_page_is_told_with_its_file_and_rows(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    for at in range(3):
        stays(4_000, at).write_parquet(tmp_path / "lake" / f"{at}.parquet", row_group_size=1_000)
    whole = tmp_path / "lake" / "1.parquet"
    ages = pq.ParquetFile(whole).metadata.row_group(2).column(0)
    start = min(filter(None, (ages.dictionary_page_offset, ages.data_page_offset)))
    torn = bytearray(whole.read_bytes())
    torn[start : start + ages.total_compressed_size] = b"\xff" * ages.total_compressed_size
    whole.write_bytes(bytes(torn))
    with pytest.raises(TableError, match=r"Rows 2,001 to 3,000 of '1\.parquet' cannot be read"):
        release(tmp_path / "lake", tmp_path)
    assert nothing_published(tmp_path)
