"""Reading, encoding and writing tables: cells exactly kept, surprises named, nothing half-written."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from velado.data import csv_reading, table_bytes
from velado.data.encode import encode, visible_groups, wildcard_sizes
from velado.data.formulas import count_formulas
from velado.data.frames import to_frame
from velado.data.io import parse_csv, read_schema, read_table
from velado.data.listed_csv import ListedCells
from velado.data.schema import Schema
from velado.data.staging import write_file, write_folder
from velado.data.table import Table
from velado.data.table_bytes import csv_bytes
from velado.errors import OutputError, SchemaError, TableError, TaxonomyError
from velado.settings import parse_toml


def schema(**columns):
    return Schema.from_dict(
        {"columns": {name: {"role": "quasi", **entry} for name, entry in columns.items()}}
    )


def numeric_table(cells, **entry):
    table_keys = entry.pop("table", {})
    document = {"table": table_keys, "columns": {"x": {"role": "quasi", "kind": "numeric", **entry}}}
    return Table.of(pl.DataFrame({"x": pl.Series(cells, dtype=pl.String)}), Schema.from_dict(document))


def test_csv_cells_come_back_byte_for_byte():
    text = 'id,"name, full",note\n007,"Zoë ""Z""",2174.0\n008,,"line\nbreak"\n'
    frame, separator = parse_csv(text.encode(), "t.csv")
    assert separator == ","
    assert frame.row(0) == ("007", 'Zoë "Z"', "2174.0")
    assert csv_bytes(frame).decode() == text


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found(separator):
    frame, found = parse_csv(f"a{separator}b\n1{separator}2\n".encode(), "t.csv")
    assert found == separator and frame.columns == ["a", "b"]


def test_a_byte_order_mark_is_no_part_of_the_first_name():
    frame, _ = parse_csv(b"\xef\xbb\xbfidade,b\n1,2\n", "t.csv")
    assert frame.columns[0] == "idade"


def test_latin_1_is_read_when_named_and_refused_when_not():
    data = "município\nViçosa\n".encode("latin-1")
    with pytest.raises(TableError, match="UTF-8"):
        parse_csv(data, "t.csv")
    frame, _ = parse_csv(data, "t.csv", "latin-1")
    assert frame.item() == "Viçosa"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"a,b\n", "no rows"),
        (b"a,a\n1,2\n", "more than once"),
        (b"1,2\n3,4\n", "header"),
        (b"a,\n1,2\n", "header"),
        (b"a,b\n1,2,3\n", "regular CSV"),
        (b"a\x00b\n1\n", "binary"),
    ],
)
def test_a_broken_file_is_one_clear_error(tmp_path, data, word):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(TableError, match=word):
        read_table(path)


def test_any_data_frame_fits_in_and_pandas_blanks_are_missing():
    native = pd.DataFrame({"x": [1.5, None, 3.0], "y": ["a", "b", None]})
    for frame in (
        native,
        pl.from_pandas(native),
        pa.Table.from_pandas(native),
        pl.from_pandas(native).lazy(),
    ):
        table = read_table(frame)
        assert table.rows == 3
        assert table.is_missing("x").to_list() == [False, True, False]
    assert isinstance(to_frame(pl.DataFrame({"a": [1]}), "pandas"), pd.DataFrame)
    assert isinstance(to_frame(pl.DataFrame({"a": [1]}), "arrow"), pa.Table)


def test_parquet_and_arrow_files_keep_their_types(tmp_path):
    frame = pl.DataFrame({"n": [1, 2], "d": [1.5, 2.5], "s": ["a", "b"]})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ipc(tmp_path / "t.arrow")
    for name in ("t.parquet", "t.arrow"):
        assert read_table(tmp_path / name).frame.schema == frame.schema
    (tmp_path / "bad.parquet").write_bytes(b"not parquet")
    with pytest.raises(TableError, match="not a readable"):
        read_table(tmp_path / "bad.parquet")


def test_a_column_the_schema_does_not_name_must_be_dealt_with():
    frame = pl.DataFrame({"a": ["1"], "b": ["2"]})
    one = schema(a={})
    with pytest.raises(SchemaError, match="'b'"):
        Table.of(frame, one)
    assert Table.of(frame, one, undeclared="drop").frame.columns == ["a"]
    assert Table.of(frame, one, undeclared="keep").schema.columns["b"].role == "other"
    with pytest.raises(SchemaError, match="'c'"):
        Table.of(frame, schema(a={}, b={}, c={}))


def test_numbers_are_coded_by_rank_and_blanks_come_last():
    table = numeric_table(["30", "", "10", "30", "20.5"])
    column = encode(table).columns[0]
    assert column.codes.tolist() == [2, 3, 0, 2, 1]
    assert column.missing == 3
    assert column.label(np.array([0, 0, 3, 2]), np.array([2, 3, 3, 2])) == ["[10..30]", "*", None, "30"]
    assert column.loss(np.array([0, 0, 3, 1]), np.array([1, 3, 3, 2])).tolist() == [0.525, 1.0, 0.0, 0.475]


def test_declared_bounds_are_the_domain():
    column = encode(numeric_table(["10", "20"], bounds=[0, 100])).columns[0]
    assert column.loss(np.array([0]), np.array([1])).tolist() == [0.1]
    with pytest.raises(TableError, match="bounds"):
        encode(numeric_table(["10", "200"], bounds=[0, 100]))
    assert encode(numeric_table(["10", "200"], bounds=[0, 100], clamp=True)).columns[0].points.tolist() == [
        10,
        100,
    ]


@pytest.mark.parametrize(
    ("cells", "word"),
    [
        (["1", "abc"], "no numbers"),
        (["1,5", "2"], "decimal comma"),
        (["1", "NaN"], "NaN"),
        (["1", "inf"], "infinity"),
        (["1", "-1e999"], "infinity"),
        (["1", "12345678901234567890"], "2\\^53"),
        (["", ""], "no value"),
    ],
)
def test_odd_numbers_are_named_not_guessed(cells, word):
    with pytest.raises(TableError, match=word) as caught:
        encode(numeric_table(cells))
    assert "abc" not in str(caught.value)


def test_declared_decimals_and_missing_words_are_understood():
    table = numeric_table(["1,5", "NA", "2"], table={"decimal": ",", "missing_values": ["", "NA"]})
    column = encode(table).columns[0]
    assert column.points[:2].tolist() == [1.5, 2.0]
    assert column.label(np.array([0]), np.array([1])) == ["[1,5..2]"]


def test_blanks_may_be_refused():
    with pytest.raises(TableError, match="blank in 1"):
        encode(numeric_table(["1", "", "2"], missing="refuse"))


def test_an_uncovered_value_is_counted_not_shown():
    table = Table.of(
        pl.DataFrame({"city": ["Rio", "Secretville"]}),
        schema(city={"kind": "categorical", "taxonomy": {"builder": "tree", "nodes": {"RJ": ["Rio"]}}}),
    )
    with pytest.raises(TaxonomyError, match="does not cover 1 of") as caught:
        encode(table)
    assert "Secret" not in str(caught.value)


def test_a_blank_category_is_a_leaf_that_only_the_root_covers():
    table = Table.of(
        pl.DataFrame({"city": ["Rio", None, "Niterói"]}),
        schema(
            city={"kind": "categorical", "taxonomy": {"builder": "tree", "nodes": {"RJ": ["Rio", "Niterói"]}}}
        ),
    )
    column = encode(table).columns[0]
    assert column.codes.tolist() == [0, 2, 1]
    assert column.label(np.array([0, 0, 2]), np.array([1, 2, 2])) == ["RJ", "*", None]


def test_both_readings_of_blanks():
    frame = pl.DataFrame({"a": ["x", "x", None, "y"], "b": ["1", "1", "1", "*"]})
    assert sorted(visible_groups(frame, ["a", "b"]).sizes.tolist()) == [1, 1, 2]
    # Row 3 (blank, 1) matches rows 1 and 2 and, through row 4's star, row 4; row 4 matches row 3 and itself.
    assert wildcard_sizes(frame, ["a", "b"]).tolist() == [3, 3, 4, 2]


def test_wildcard_counts_equal_a_pairwise_count():
    rng = np.random.default_rng(3)
    cells = rng.choice(["a", "b", None], size=(60, 4), p=[0.4, 0.4, 0.2])
    frame = pl.DataFrame({f"c{at}": pl.Series(cells[:, at].tolist(), dtype=pl.String) for at in range(4)})
    names = frame.columns
    expected = [
        sum(all(x is None or y is None or x == y for x, y in zip(one, other, strict=True)) for other in cells)
        for one in cells
    ]
    assert wildcard_sizes(frame, names).tolist() == expected


def test_formula_like_cells_are_counted_and_escaped_on_request():
    frame = pl.DataFrame({"a": ["=1+1", "-5", "@x", "plain", None], "n": [1, 2, 3, 4, 5]})
    assert count_formulas(frame) == 2
    assert csv_bytes(frame).decode().splitlines()[1] == "=1+1,1"
    assert csv_bytes(frame, formulas="escape").decode().splitlines()[1:4] == ["'=1+1,1", "-5,2", "'@x,3"]
    with pytest.raises(OutputError):
        csv_bytes(frame, formulas="refuse")


def test_a_folder_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "release"
    write_folder(target, {"manifest.json": b'{"manifest_version": 1}', "table.csv": b"a\n"})
    with pytest.raises(OutputError, match="exists"):
        write_folder(target, {"manifest.json": b"{}"})
    write_folder(target, {"manifest.json": b"[]"}, force=True)
    assert (target / "manifest.json").read_bytes() == b"[]" and not (target / "table.csv").exists()
    with pytest.raises(OutputError):
        write_folder(tmp_path / "release" / "manifest.json" / "x", {"a": b""})
    with pytest.raises(OutputError):
        write_folder(tmp_path / "other", {"no/such/place": b""})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["release"]


def test_force_never_deletes_a_folder_that_is_no_release(tmp_path):
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter.tex").write_text("years of work")
    with pytest.raises(OutputError, match="other files"):
        write_folder(precious, {"manifest.json": b"{}"}, force=True)
    assert (precious / "chapter.tex").exists()


def test_one_file_is_written_whole(tmp_path):
    write_file(tmp_path / "a.toml", b"x")
    with pytest.raises(OutputError):
        write_file(tmp_path / "a.toml", b"y")
    assert (tmp_path / "a.toml").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[columns.a]\nrole='quasi'\nkid='numeric'", "kind"),
        ("[columns.a]\nrole='quassi'", "role"),
        ("[columns.a]\nkind='numeric'", "no role"),
        ("[tabel]\n[columns.a]\nrole='other'", "table"),
        ("[columns.a]\nrole='quasi'\nbounds=[3,1]", "rising"),
        ("[columns.a]\nrole='quasi'\nperson='yes'", "true or false"),
        ("[columns.a]\nrole='other'\nperson=true\n[columns.b]\nrole='other'\nperson=true", "person"),
        ("columns = 3", "no columns"),
        ("[columns.a]\nrole='quasi'\ntaxonomy={builder='magic'}", "builder"),
        ("[columns.a]\nrole='quasi'\ntaxonomy={builder='prefix'}", "keep"),
        ("[columns.a", "TOML"),
    ],
)
def test_a_mistake_in_the_schema_is_named(tmp_path, text, word):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(SchemaError, match=word):
        read_schema(path)


def test_taxonomy_files_are_found_beside_the_schema(tmp_path):
    (tmp_path / "tax").mkdir()
    (tmp_path / "tax" / "city.csv").write_text("Rio;RJ;*\nNiterói;RJ;*\n", encoding="utf-8")
    (tmp_path / "schema.toml").write_text("[columns.city]\nrole='quasi'\ntaxonomy='tax/city.csv'\n")
    table = read_table(pl.DataFrame({"city": ["Rio", "Niterói"]}), read_schema(tmp_path / "schema.toml"))
    assert encode(table).columns[0].tree.leaves == 2
    (tmp_path / "schema.toml").write_text("[columns.city]\nrole='quasi'\ntaxonomy='tax/none.csv'\n")
    with pytest.raises(TaxonomyError, match="not there"):
        read_schema(tmp_path / "schema.toml")


def test_a_schema_survives_writing_and_reading():
    document = {
        "table": {"decimal": ",", "missing_values": ["", "?"]},
        "columns": {
            "a b.c": {"role": "quasi", "kind": "numeric", "bounds": [0.0, 9.0]},
            "p": {"role": "identifier", "kind": "text", "person": True},
            "z": {"role": "other", "kind": "text", "publish": False},
        },
    }
    assert Schema.from_dict(document).to_dict() == document


def test_the_repr_of_a_table_shows_no_cell():
    table = Table.of(pl.DataFrame({"a": ["secret"]}), schema(a={}))
    assert (
        "secret" not in repr(table)
        and "secret" not in repr(encode(table))
        and "secret" not in repr(encode(table).columns[0])
    )


def test_a_byte_order_mark_before_a_toml_file_is_passed_over(tmp_path):
    file = tmp_path / "study.toml"
    file.write_bytes(b"\xef\xbb\xbf[data]\ntarget = 'x'\n")
    assert parse_toml(file) == {"data": {"target": "x"}}


def test_columns_left_out_are_forgotten_with_the_rows_they_belonged_to() -> None:
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    table = read_table(pl.DataFrame({"age": [20, 30], "note": ["a", "b"]}), schema, "drop")
    assert table.dropped is not None
    assert table.with_frame(table.frame.head(1)).dropped is None
    assert table.with_frame(table.frame.reverse()).dropped is not None


def writer(separator):
    return partial(pl.DataFrame.write_csv, include_header=False, separator=separator)


NASTY = [
    "",
    " ",
    "a",
    'q"q',
    '"',
    "a,b",
    "a;b",
    "line\nbreak",
    "car\rriage",
    "Zoë 名 \U0001f600",
    "#x",
    "=1+1",
    "\t",
    "null",
]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_rows_put_together_from_lists_are_the_bytes_of_the_one_writer(monkeypatch, separator):
    draw = np.random.default_rng(3)
    lists = [NASTY, [*NASTY[::-1], *(f"more {n}" for n in range(300))], ["F", "M"]]
    frame = pl.DataFrame(
        {
            name: pl.Series(
                [texts[at] if at < len(texts) else None for at in draw.integers(0, len(texts) + 1, 5000)]
            ).cast(pl.Enum(texts))
            for name, texts in zip(("a", 'na"me,', "c"), lists, strict=True)
        }
    )
    for order in (None, draw.permutation(frame.height)):
        plain = csv_bytes(frame, separator, order=order)
        assert ListedCells.of(frame, separator, writer(separator)) is not None
        monkeypatch.setattr(table_bytes, "_WORTH_A_KERNEL", 1)
        monkeypatch.setattr(table_bytes, "_PIECE", 777)
        assert csv_bytes(frame, separator, order=order) == plain
        monkeypatch.undo()


def test_only_lists_of_texts_are_put_together():
    listed = pl.Series("a", ["x"], dtype=pl.Enum(["x"]))
    assert (
        ListedCells.of(pl.DataFrame([listed]), ",", writer(",")) is None
    )  # a blank alone in its row is written otherwise
    assert ListedCells.of(pl.DataFrame([listed, pl.Series("b", [1.5])]), ",", writer(",")) is None
    assert ListedCells.of(pl.DataFrame([listed, pl.Series("b", ["y"])]), ",", writer(",")) is None


def test_a_large_table_is_encoded_by_its_distinct_texts_as_by_its_rows(monkeypatch):
    draw = np.random.default_rng(5)
    cells = {
        "age": draw.choice(["31", " 31", "7", "40.50", "", "NA", None], 2000),
        "town": draw.choice(["Ub\u00e1", "ub\u00e1 ", "Vi\u00e7osa", "", None], 2000),
    }
    frame = pl.DataFrame({name: pl.Series(texts.tolist(), dtype=pl.String) for name, texts in cells.items()})
    document = {
        "table": {"missing_values": ["", "NA"]},
        "columns": {
            "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 40], "clamp": True},
            "town": {"role": "quasi"},
        },
    }

    def coded():
        return encode(Table.of(frame, Schema.from_dict(document))).columns

    few = coded()
    asked = []
    monkeypatch.setattr(Table, "few_cells", lambda self, name: asked.append(name))
    many = coded()
    assert set(asked) == {"age", "town"}
    for one, other in zip(few, many, strict=True):
        assert np.array_equal(one.codes, other.codes) and (one.size, one.missing) == (
            other.size,
            other.missing,
        )
        assert one.tree is not None or np.array_equal(one.points, other.points)
        assert one.tree is None or one.tree.labels == other.tree.labels
        assert np.array_equal(one.moved, other.moved) and (one.span, one.whole) == (other.span, other.whole)


def test_what_is_wrong_in_a_large_table_is_counted_in_rows():
    with pytest.raises(TableError, match="64 of its 128 values"):
        encode(numeric_table(["31", "old"] * 64, kind="numeric"))


def test_ragged_rows_are_found_wherever_a_block_ends(monkeypatch):
    draw = np.random.default_rng(11)
    cells = ["1", "", '"a,b"', '"line\nbreak"', '"q""q"', "x\r"]
    rows = [",".join(draw.choice(cells, int(draw.choice([2, 3, 3, 3, 3, 4])))) for _ in range(300)]
    rows[17] = rows[200] = ""
    data = "\n".join(["a,b,c", *rows, ""]).encode()
    whole = csv_reading.ragged_rows(data, ",", 3)
    assert whole.short and whole.long and whole.blank
    for size in (1, 2, 7, 64, 1000):
        monkeypatch.setattr(csv_reading, "_BLOCK", size)
        assert csv_reading.ragged_rows(data, ",", 3) == whole
