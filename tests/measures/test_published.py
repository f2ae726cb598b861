"""Published texts are read as a stranger would read them, against the original table's values."""

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.errors import TableError
from velado.measures.recoded_columns import read_published


def numbers(values: list[str | None], decimal: str = ".", bounds=None) -> Table:
    schema = Schema({"x": Column("x", "quasi", "numeric", bounds=bounds)}, decimal=decimal)
    return Table.of(pl.DataFrame({"x": pl.Series(values, dtype=pl.String)}), schema)


def read_x(table: Table, texts: list[str | None]):
    column = read_published(table, pl.DataFrame({"x": pl.Series(texts, dtype=pl.String)})).columns[0]
    rows = column.codes
    return (
        column.low[rows].tolist(),
        column.high[rows].tolist(),
        column.middle[rows].tolist(),
        column.stated[rows].tolist(),
    )


def test_intervals_numbers_and_stars_become_codes_of_the_original_column() -> None:
    table = numbers(["-5", "10", "20", "30", "40"])
    low, high, value, states = read_x(table, ["[10..30]", "[10..30)", "20", "*", "[-5..-1]"])
    assert low == [1, 1, 2, 0, 0]
    assert high == [3, 2, 2, 4, 0]
    assert value == [20.0, 20.0, 20.0, 17.5, -3.0]
    assert states == [True] * 5


def test_an_interval_whose_ends_are_no_values_covers_the_values_between() -> None:
    low, high, _, _ = read_x(numbers(["10", "20", "30"]), ["[11..29]", "[0..99]", "[30..31)"])
    assert (low, high) == ([1, 0, 2], [1, 2, 2])


def test_a_number_or_interval_that_holds_no_original_value_has_a_value_but_no_cover() -> None:
    low, high, value, states = read_x(numbers(["10", "20", "30"]), ["15", "[11..19]", "10"])
    assert low == high == [-1, -1, 0]
    assert value == [15.0, 15.0, 10.0]
    assert states == [False, False, True]


def test_decimal_commas_and_a_float_column_are_read_alike() -> None:
    table = numbers(["1,5", "2,5"], decimal=",")
    low, high, _, _ = read_x(table, ["[1,5..2,5]", "2,5"])
    assert (low, high) == ([0, 1], [1, 1])
    floats = read_published(table, pl.DataFrame({"x": [1.5, 2.0]})).columns[0]
    assert floats.low[floats.codes].tolist() == [0, -1]


def test_a_blank_is_a_missing_value_where_the_original_has_some_and_anything_where_it_has_none() -> None:
    low, high, _, _ = read_x(numbers(["1", "2", None]), ["[1..2]", None, "*"])
    assert (low, high) == ([0, 2, 0], [1, 2, 2])
    low, high, _, _ = read_x(numbers(["1", "2", "3"]), ["1", None, ""])
    assert (low, high) == ([0, 0, 0], [0, 2, 2])


def test_a_label_that_two_nodes_share_is_read_the_wider_way() -> None:
    paths = (("Other", "Other"), ("a", "Other"), ("b", "Things"), ("c", "Things"))
    spec = TaxonomySpec("levels", paths=paths)
    schema = Schema({"x": Column("x", "quasi", "categorical", taxonomy=spec)})
    table = Table.of(pl.DataFrame({"x": ["Other", "a", "b", "c"]}), schema)
    read = read_published(table, pl.DataFrame({"x": ["Other", "a", "Things", "*"]})).columns[0]
    width = (read.high - read.low + 1)[read.codes]
    assert width.tolist() == [2, 1, 2, 4]


def test_a_text_that_is_nothing_known_is_refused_without_repeating_it() -> None:
    with pytest.raises(TableError) as caught:
        read_x(numbers(["10", "20"]), ["10#20", "zwanzig"])
    assert "2 distinct texts" in str(caught.value)
    assert "zwanzig" not in str(caught.value) and "10#20" not in str(caught.value)


def test_a_missing_quasi_identifier_and_surplus_rows_are_refused() -> None:
    table = numbers(["10", "20"])
    with pytest.raises(TableError, match="lacks quasi-identifiers: x"):
        read_published(table, pl.DataFrame({"y": ["1", "2"]}))
    with pytest.raises(TableError, match="3 rows, the original only 2"):
        read_published(table, pl.DataFrame({"x": ["10", "10", "20"]}))
    with pytest.raises(TableError, match="The mask keeps 1 of 2"):
        read_published(table, pl.DataFrame({"x": ["10", "20"]}), np.array([True, False]))


def test_rows_are_paired_by_count_or_by_mask_and_not_otherwise() -> None:
    table = numbers(["10", "20", "30"])
    two = pl.DataFrame({"x": ["10", "30"]})
    assert read_published(table, two).true_rows is None
    paired = read_published(table, two, np.array([True, False, True]))
    assert paired.true_rows is not None and paired.true_rows.tolist() == [0, 2]
    assert paired.suppressed == 1


def test_a_changed_order_shows_in_the_columns_that_are_not_recoded(thesis_table, thesis_release) -> None:
    assert read_published(thesis_table, thesis_release).agreeing == 1.0
    assert read_published(thesis_table, thesis_release.reverse()).agreeing == 0.0


def test_a_substitution_is_charged_for_the_true_values_it_stands_for() -> None:
    schema = Schema({"x": Column("x", "quasi", "numeric"), "y": Column("y", "quasi", "numeric")})
    original = pl.DataFrame({"x": ["0", "2", "4", "10"], "y": ["1", "1", "2", "2"]})
    table = Table.of(original, schema)
    published = read_published(table, pl.DataFrame({"x": ["3", "3", "3", "10"], "y": ["1", "1", "2", "2"]}))
    by_value, by_class = published.covers("value"), published.covers("class")
    assert by_value is not None and by_class is not None
    assert by_value[0].low.tolist() == [0, 0, 0, 3] and by_value[0].high.tolist() == [2, 2, 2, 3]
    # Rows 1-2 show (3, 1): their values 0 and 2, and the 3 itself, span 3; row 3 shows (3, 2) alone: 3 to 4.
    assert by_class[0].width is not None and by_class[0].width.tolist() == [3.0, 3.0, 1.0, 0.0]
    assert by_value[0].width is not None and by_value[0].width.tolist() == [4.0, 4.0, 4.0, 0.0]


def test_whether_a_substitution_stands_for_a_bin_or_a_class_is_read_from_the_rows() -> None:
    schema = Schema({"x": Column("x", "quasi", "numeric"), "y": Column("y", "quasi", "numeric")})
    table = Table.of(pl.DataFrame({"x": ["0", "0", "4", "4"], "y": ["1", "2", "1", "2"]}), schema)
    for texts, expected in ((["2", "2", "2", "2"], "value"), (["1", "2", "2", "3"], "class")):
        published = read_published(table, pl.DataFrame({"x": texts, "y": ["1", "1", "2", "2"]}))
        chosen, same = published.covers(), published.covers(expected)
        assert chosen is not None and same is not None
        assert chosen[0].width is not None and same[0].width is not None
        assert chosen[0].width.tolist() == same[0].width.tolist()
    by_value = published.covers("value")
    assert by_value is not None and by_value[0].width is not None
    assert by_value[0].width.tolist() != chosen[0].width.tolist()


def test_an_original_value_shown_for_other_people_is_charged_for_theirs_too() -> None:
    published = read_published(numbers(["0", "2", "4", "10"]), pl.DataFrame({"x": ["2", "2", "2", "10"]}))
    (cover,) = published.covers() or ()
    assert cover.low.tolist() == [0, 0, 0, 3] and cover.high.tolist() == [2, 2, 2, 3]
    assert cover.width is not None and cover.width.tolist() == [4.0, 4.0, 4.0, 0.0]
