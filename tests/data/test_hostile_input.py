"""Hostile or careless input: what is published stays true, and every refusal is three sentences without a cell."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import velado
from velado.data import taxonomy as builders
from velado.data.encode import encode
from velado.data.io import parse_csv, read_schema, read_table
from velado.data.partition import Partition
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.data.taxonomy import from_paths
from velado.errors import ParameterError, SchemaError, TableError, TaxonomyError, VeladoError
from velado.measures.recoded_columns import read_published
from velado.measures.utility.false_cells import false_cells
from velado.release.anonymize import anonymize
from velado.release.methods.mondrian import Mondrian
from velado.release.recoders.substitution import Mean


def one_column(cells, table=None, **entry):
    document = {"table": table or {}, "columns": {"x": {"role": "quasi", "kind": "numeric", **entry}}}
    return Table.of(pl.DataFrame({"x": pl.Series(cells, dtype=pl.String)}), Schema.from_dict(document))


def ends(label):
    low, high = label.strip("[]()").replace(",", ".").split("..")
    return Decimal(low), Decimal(high)


# Intervals


@pytest.mark.parametrize("width", [0.1, 0.3, 0.7, 1e-7, 2.5, 1e15])
def test_an_interval_always_holds_its_own_number(width):
    rng = np.random.default_rng(1)
    numbers = [*(k * width for k in range(-50, 50)), *rng.normal(0, 1000 * width, 200).tolist()]
    numbers = [*sorted(set(numbers)), 0.3, 1.4]
    texts = [repr(n) + " " * at for at, n in enumerate(numbers)]
    tree = builders.intervals(texts, numbers, [width, 10 * width])
    for text, number in zip(texts, numbers, strict=True):
        for node in tree.levels[tree.code_of[text], 1:-1]:
            label = tree.labels[node]
            low, high = ends(label)
            inside = low <= Decimal(repr(number)) < high or (label.endswith("]") and Decimal(number) == high)
            assert inside, (number, label)


def test_tenths_fall_into_the_tenth_they_begin():
    x = ["0.3", "0.3", "0.3", "0.25", "0.21", "1.4", "1.4", "1.4", "1.35", "1.35"]
    table = one_column(x, taxonomy={"builder": "intervals", "widths": [0.1]})
    tree = encode(table).columns[0].tree
    above = {tree.labels[leaf]: tree.labels[tree.parent[leaf]] for leaf in range(tree.leaves)}
    assert above == {
        "0.21": "[0.2..0.3)",
        "0.25": "[0.2..0.3)",
        "0.3": "[0.3..0.4)",
        "1.35": "[1.3..1.4)",
        "1.4": "[1.4..1.5)",
    }


def test_large_interval_ends_are_written_in_full():
    tree = builders.intervals(["1234567890123.5"], [1234567890123.5], [0.5])
    assert tree.labels[1] == "[1234567890123.5..1234567890124)"


def test_intervals_of_a_decimal_comma_column_are_written_with_a_comma():
    table = one_column(["0,3", "0,4"], {"decimal": ","}, taxonomy={"builder": "intervals", "widths": [0.5]})
    assert encode(table).columns[0].tree.labels[2] == "[0..0,5)"


@pytest.mark.parametrize(
    ("widths", "origin"),
    [
        (True, 0),
        ([float("nan")], 0),
        ([float("inf")], 0),
        ("5", 0),
        ([True], 0),
        ([5], "x"),
        ([5], float("nan")),
    ],
)
def test_odd_interval_options_are_refused(widths, origin):
    spec = {"builder": "intervals", "widths": widths, "origin": origin}
    with pytest.raises(SchemaError):
        encode(one_column(["1", "2"], taxonomy=spec))


@pytest.mark.parametrize("keep", ["ab", 2.5, {}, [2.5], [True]])
def test_odd_prefix_options_are_refused(keep):
    with pytest.raises(SchemaError):
        encode(one_column(["11", "22"], kind="categorical", taxonomy={"builder": "prefix", "keep": keep}))


# Bounds and clamping


def clamped():
    cells = [str(n) for n in (10, 11, 12, 13, 90, 95, 250, 260, 270, 280)]
    return one_column(cells, bounds=[0, 100], clamp=True)


def test_values_moved_onto_a_bound_are_false_cells_and_a_warning():
    table = clamped()
    release = anonymize(table, table.schema, Mondrian(), k=2)
    measured = false_cells(read_published(table, release.aligned, release.kept))
    assert measured.cells == 4
    assert (
        sum(
            c.false_cells(d, release.recoded.kept)
            for c, d in zip(release.recoded.columns, release.data.columns, strict=True)
        )
        == 4
    )
    said = [w for w in release.warnings if "'x'" in w]
    assert len(said) == 1 and "4" in said[0] and "bound" in said[0]


def test_a_suppressed_cell_of_a_moved_value_is_not_false():
    table = clamped()
    shown = pl.DataFrame({"x": ["10", "11", "12", "13", "90", "95", "100", "*", "*", "[0..100]"]})
    assert false_cells(read_published(table, shown)).cells == 2


def test_nothing_is_said_where_nothing_was_moved():
    table = one_column([str(n) for n in range(10)], bounds=[0, 100], clamp=True)
    release = anonymize(table, table.schema, Mondrian(), k=2)
    assert release.warnings == ()
    assert false_cells(read_published(table, release.aligned, release.kept)).cells == 0


def test_which_values_were_moved_follows_the_rows():
    data = encode(clamped())
    assert data.columns[0].moved.sum() == 4
    assert data.subset(np.array([0, 6, 1])).columns[0].moved.tolist() == [False, True, False]


def test_clamping_a_column_with_a_taxonomy_is_refused():
    with pytest.raises(SchemaError, match="clamp"):
        one_column(["1"], bounds=[0, 9], clamp=True, taxonomy={"builder": "intervals", "widths": [10]})
    with pytest.raises(SchemaError, match="clamp"):
        Column("x", "quasi", "numeric", bounds=(0, 9), clamp=True, taxonomy=TaxonomySpec("flat"))


@pytest.mark.parametrize("bounds", [[float("-inf"), float("inf")], [0, float("nan")], [0, float("inf")]])
def test_bounds_are_finite(bounds):
    with pytest.raises(SchemaError, match="bounds"):
        one_column(["1"], bounds=bounds)
    with pytest.raises(ParameterError, match="bounds"):
        Column("x", "quasi", "numeric", bounds=tuple(bounds))


# Taxonomy labels


@pytest.mark.parametrize(
    "paths",
    [
        [["c0", "c2"], ["c1", "c2"], ["c2", "B"], ["c3", "B"]],
        [["c0", "A", "c0"], ["c1", "A", "c0"]],
        [["a", "X", "P"], ["b", "Y", "X"]],
        [["a", "X", "Y", "X"]],
        [["*", "A"], ["b", "A"]],
        [["a", "*", "A"], ["b", "A"]],
    ],
)
def test_a_label_with_two_meanings_is_refused(paths):
    with pytest.raises(TaxonomyError):
        from_paths(paths)


def test_a_value_may_be_named_like_the_group_right_above_it():
    tree = from_paths([["a", "Other"], ["Other", "Other"], ["b", "B"]])
    other = tree.widest_node["Other"]
    assert tree.leaves == 3
    assert tree.first[other] <= tree.code_of["Other"] <= tree.last[other]
    assert tree.leaf_count[other] == 2
    assert [tree.labels[node] for node in tree.levels[tree.code_of["Other"]]] == ["Other", "Other", "*"]
    table = Table.of(
        pl.DataFrame({"x": ["a", "Other", "b", "b"] * 3}),
        Schema(
            {
                "x": Column(
                    "x",
                    "quasi",
                    "categorical",
                    taxonomy=TaxonomySpec("levels", paths=(("a", "Other"), ("Other", "Other"), ("b", "B"))),
                )
            }
        ),
    )
    release = anonymize(table, table.schema, Mondrian(), k=6)
    assert false_cells(read_published(table, release.aligned, release.kept)).cells == 0
    assert set(release.aligned["x"]) == {"Other", "b"}


def test_a_code_that_looks_like_a_prefix_is_still_a_value():
    tree = builders.prefix(["123", "12*", "456"], [2, 1])
    assert tree.leaves == 3 and tree.leaf_count[tree.widest_node["12*"]] == 2


def test_the_star_is_reserved_for_suppressed_cells():
    frame = pl.DataFrame({"city": ["Rio", "*", "Niterói"]})
    table = Table.of(frame, Schema({"city": Column("city", "quasi", "categorical")}))
    with pytest.raises(TableError, match="reserved for suppressed cells") as caught:
        encode(table)
    assert "taxonomy" not in str(caught.value) and "'city'" in str(caught.value)


# Decimal commas


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1.234", 1234),
        ("1.234,5", 1234.5),
        ("-1.234.567", -1234567),
        ("1234,5", 1234.5),
        ("12", 12),
        (" 7,0 ", 7),
    ],
)
def test_with_a_decimal_comma_a_point_marks_thousands(cell, number):
    column = encode(one_column([cell, "1"], {"decimal": ","})).columns[0]
    assert column.points[column.codes[0]] == number


@pytest.mark.parametrize("cell", ["1.5", "12.34", "1234.567", "1.23.456", "1,5.000", "1.234e2", ".5"])
def test_with_a_decimal_comma_any_other_point_is_refused(cell):
    with pytest.raises(TableError, match="point") as caught:
        encode(one_column([cell, "1"], {"decimal": ","}))
    assert cell not in str(caught.value)


def test_a_published_thousand_is_read_as_a_thousand():
    table = one_column(["1.234", "2.000,5", "7"], {"decimal": ","})
    read = read_published(table, table.frame)
    assert false_cells(read).cells == 0


def test_a_mean_is_written_with_the_comma_of_its_table():
    data = encode(one_column(["1,2", "2", "5", "6", ""], {"decimal": ","}))
    published = Mean().publish(data, Partition.of(np.array([0, 0, 1, 1, 2])))[0]
    assert published.values == ("1,6", "5,5", None)
    points = encode(one_column(["1.2", "2", "5", "6"]))
    assert Mean().publish(points, Partition.of(np.array([0, 0, 1, 1])))[0].values == (1.6, 5.5)


# Headers


@pytest.mark.parametrize(
    "first",
    [
        "Ana Silva,20,Campinas0,HIV0",
        "Ana,2001-03-04,b,c",
        "Ana,04/03/2001,b,c",
        "Ana,2001-03-04T10:00:00,b,c",
        "Ana,ana@example.org,b,c",
        "Ana,529.982.247-25,b,c",
        "Ana,898 0012 3456 7890,b,c",
        "Ana,+55 (19) 91234-5678,b,c",
        "Ana,-3.5,b,c",
    ],
)
def test_a_first_person_is_not_taken_for_the_header(first):
    with pytest.raises(TableError, match="header") as caught:
        parse_csv(f"{first}\nBia,x,y,z\n".encode(), "t.csv")
    assert "Ana" not in str(caught.value)


@pytest.mark.parametrize("header", ["age,1st_visit,65+,cid10", "nan,inf,e1,x-1", "Q1,Q2,v2.0,2020s"])
def test_ordinary_names_with_digits_are_names(header):
    frame, _ = parse_csv(f"{header}\na,b,c,d\n".encode(), "t.csv")
    assert frame.columns == header.split(",")


def test_a_number_is_a_name_where_the_schema_fits_the_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("city,2019,2020\nRio,1,2\n")
    fits = Schema({"city": Column("city"), "2019": Column("2019"), "2020": Column("2020")})
    assert read_table(path, fits).frame.columns == ["city", "2019", "2020"]
    assert read_table(path, Schema({"city": Column("city")}), "drop").frame.columns == ["city"]
    assert read_table(path, known=["2019", "2020", "illness"]).frame.columns == ["city", "2019", "2020"]
    with pytest.raises(TableError, match="header"):
        read_table(path)
    with pytest.raises(TableError, match="header"):
        read_table(path, Schema({"town": Column("town")}), "drop")


# Files that are no regular CSV


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"a,b\r1,2\r3,4\r", "carriage return"),
        (b'a,"b\n1,2\n3,4\n', "never closed"),
        (b'a,"b\n' + b"1,2\n" * 200_000, "never closed"),
        (b"a," + b"b" * 140_000 + b"\n1,2\n", "131,072"),
        (b"a,b\n\n1,2\n", "fewer fields"),
    ],
)
def test_an_irregular_file_is_one_clear_error(data, word):
    begin = time.process_time()
    with pytest.raises(TableError, match=word):
        parse_csv(data, "t.csv")
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("encoding", ["undefined", "utf-99", "hex", "idna", ""])
def test_an_encoding_that_cannot_be_used_is_named(encoding):
    with pytest.raises(TableError):
        parse_csv("a,b\né,2\n".encode("latin-1"), "t.csv", encoding)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("a,b,c,d\nZQNAMEx,33\n1,2,3,4\n", "1 row"),
        ("a,b\r\n1,2\r\n\r\n\r\n3,4\r\n", "2 row"),
        ('a,b\n"x,y\nz",2\n"p,q"\n', "1 row"),
        ('a,b\n"say ""hi, you""",2\n"p"\n3,4\n5', "2 row"),
    ],
)
def test_rows_with_fewer_fields_than_the_header_are_counted_and_refused(text, short):
    with pytest.raises(TableError, match="fewer fields") as caught:
        parse_csv(text.encode(), "t.csv")
    assert short in str(caught.value) and "ZQNAME" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("a,b\n1,2\n3\n4,5\n\n6\n", "fewer fields: lines 3, 6; blank: line 5"),
        ('a,b\n"x\ny",2\n3\n', "fewer fields: line 4"),
        ("a,b\r\n1,2\r\n\r\n3,4\r\n", "blank: line 3"),
        ("a,b\n" + "1\n" * 9, "fewer fields: lines 2, 3, 4 and 6 more"),
        ("a,b\n1,2\n1,2,ZQ\n", "1 row has more fields than the header (line 3)"),
        ("a\n1\n1,ZQ\n", "(line 3)"),
        ("a,b\n" + "1,2,ZQ\n" * 5, "(lines 2, 3, 4 and 2 more)"),
    ],
)
def test_a_ragged_line_is_named_by_its_number(text, places):
    with pytest.raises(TableError) as caught:
        parse_csv(text.encode(), "t.csv")
    assert places in str(caught.value) and "ZQ" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("age,sex,age", "'age' in columns 1, 3"),
        ("a,a,b,b,c,c,d,d", "'c' in columns 5, 6; and 1 more"),
        ("São Paulo,x,São Paulo", "header: in columns 1, 3"),
        ("Ana,Ana,31", "header: in columns 1, 2"),
        ("7,7,x", "header: in columns 1, 2"),
    ],
)
def test_a_name_that_stands_twice_is_named_where_it_is_surely_a_name(header, said):
    with pytest.raises(TableError, match="more than once") as caught:
        parse_csv(f"{header}\n{header}\n".encode(), "t.csv")
    assert said in str(caught.value)
    assert "Ana" not in str(caught.value) and "Paulo" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,2\n3,4", 2),
        ("a,b\n1,2\n3,4\n\n", 2),
        ("a,b\r\n1,2\r\n3,4\r\n\r\n", 2),
        ('a,"b\nc"\n1,"x\n\ny"\n,\n', 2),
        ("a\n1\n\n2\n", 3),
    ],
)
def test_whole_rows_are_read_whatever_their_line_ends(text, rows):
    assert parse_csv(text.encode(), "t.csv")[0].height == rows


def test_a_short_row_is_found_among_a_million():
    from velado.data.csv_reading import Ragged, ragged_rows

    rows = b'"Silva, A",33,Campinas,J11,13083-970\n' * 500_000
    head = b"name,age,city,illness,cep\n"
    assert ragged_rows(head + rows + rows, ",", 5) == Ragged()
    odd = b'"Silva, A",33\n\n"Silva, A",33,Campinas,J11,13083-970,x\n'
    found = ragged_rows(head + rows + odd + rows, ",", 5)
    assert (found.short, found.blank, found.long) == (1, 1, 1)
    assert (found.short_lines, found.blank_lines, found.long_lines) == ((500_002,), (500_003,), (500_004,))


@pytest.mark.parametrize("separator", ["||", "", "é", '"', "\n"])
def test_a_separator_is_one_plain_character(separator):
    with pytest.raises(ParameterError, match="separator"):
        Schema({"a": Column("a")}, separator=separator)
    with pytest.raises(SchemaError, match="separator"):
        parse_csv(b"a,b\n1,2\n", "t.csv", separator=separator)


@pytest.mark.parametrize(
    ("content", "entry"),
    [("Rio;RJ\n", "{builder='levels',file='t.csv',separator=';;'}"), ("R" * 200_000 + ";RJ\n", "'t.csv'")],
)
def test_an_odd_taxonomy_file_is_one_clear_error(tmp_path, content, entry):
    (tmp_path / "t.csv").write_text(content)
    (tmp_path / "schema.toml").write_text(f"[columns.city]\nrole='quasi'\ntaxonomy={entry}\n")
    with pytest.raises((SchemaError, TaxonomyError)):
        read_schema(tmp_path / "schema.toml")


# Frames


@pytest.mark.parametrize("name", ["*", "^x$", "^.*$", "^age$"])
def test_a_column_name_that_is_a_pattern_is_refused_in_words(name):
    frame = pl.DataFrame({name: ["1", "2", "3", "4"], "age": ["1", "2", "3", "4"]})
    with pytest.raises(TableError, match="pattern"):
        Table.of(frame, Schema({name: Column(name, "quasi"), "age": Column("age", "quasi")}))
    assert Table.of(frame, Schema({"age": Column("age")}), undeclared="drop").frame.columns == ["age"]


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([[1], [2]]),
        pl.Series([{"a": 1}, {"a": 2}]),
        pl.Series([b"1", b"2"]),
        pl.Series([object(), object()], dtype=pl.Object),
        pl.Series([dt.timedelta(1), dt.timedelta(2)]),
    ],
    ids=["list", "struct", "binary", "object", "duration"],
)
def test_a_column_that_holds_no_plain_values_is_refused_whatever_its_role(cells):
    frame = pl.DataFrame([pl.Series("a", ["1", "2"]), cells.alias("odd")])
    with pytest.raises(TableError, match="'odd'"):
        read_table(frame, Schema({"a": Column("a"), "odd": Column("odd", "identifier")}))
    assert read_table(frame, Schema({"a": Column("a")}), "drop").frame.columns == ["a"]


def test_a_pandas_column_of_mixed_types_is_refused_without_its_cells():
    with pytest.raises(TableError) as caught:
        read_table(pd.DataFrame({"a": [1, "secret"]}))
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_pandas_columns_of_one_name_are_refused():
    with pytest.raises(TableError, match="more than once"):
        read_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_a_header_with_a_line_break_is_published_or_refused_in_words():
    frame = pl.DataFrame({"a\nb": [str(n) for n in range(8)], "c": ["x", "y"] * 4})
    schema = Schema({"a\nb": Column("a\nb", "quasi", "numeric"), "c": Column("c", "sensitive")})
    release = anonymize(frame, schema, Mondrian(), k=2)
    assert release.aligned.columns == ["a\nb", "c"]


# Parameters


@pytest.mark.parametrize("k", ["5", 2.5, True, 1])
def test_k_is_a_whole_number(k):
    table = one_column([str(n) for n in range(10)])
    with pytest.raises(ParameterError, match=r"^k= cannot be "):
        anonymize(table, table.schema, Mondrian(), k=k)


@pytest.mark.parametrize("suppression", ["x", None, float("nan"), [0.1]])
def test_the_suppression_limit_is_a_share(suppression):
    table = one_column([str(n) for n in range(10)])
    with pytest.raises(VeladoError, match="suppression"):
        velado.anonymize(table, table.schema, Mondrian(), suppression=suppression, k=2)


# Typed frames in a table with decimal commas


def test_typed_numbers_keep_their_value_in_a_table_with_decimal_commas():
    frame = pl.DataFrame({"x": [1.5, 1.234, 2.0, 7.25]})
    for entry in ({}, {"taxonomy": {"builder": "intervals", "widths": [0.5]}}):
        schema = Schema.from_dict(
            {"table": {"decimal": ","}, "columns": {"x": {"role": "quasi", "kind": "numeric", **entry}}}
        )
        column = encode(Table.of(frame, schema)).columns[0]
        assert column.codes.tolist() == [1, 0, 2, 3]
    both = encode(Table.of(frame, schema), Table.of(frame, schema))
    assert both.population[:, 0].tolist() == [1, 0, 2, 3]
