"""A release comes back in the kind of frame the table came as, and its index and types tell nothing more than it does."""

from __future__ import annotations

import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import velado
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.errors import ParameterError, PersonUndecided

KEY = Key(bytes(range(40)))
ROWS = 12


def schema(**more):
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "note": {"role": "other"}, **more}
    return Schema.from_dict({"columns": columns})


def cells():
    return {"age": [20 + n for n in range(ROWS)], "note": [*"aabbcc" * 2]}


def anonymized(frame, meaning=None, **settings):
    return velado.anonymize(frame, meaning or schema(), "mondrian", k=2, key=KEY, **settings)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (pl.DataFrame, pl.DataFrame),
        (lambda c: pl.DataFrame(c).lazy(), pl.DataFrame),
        (pd.DataFrame, pd.DataFrame),
        (pa.table, pa.Table),
    ],
)
def test_a_release_comes_back_in_the_kind_it_came_as(made, kind):
    release = anonymized(made(cells()))
    assert isinstance(release.to_native(), kind)
    assert isinstance(release.to_pandas(), pd.DataFrame)
    assert isinstance(release.to_polars(), pl.DataFrame)
    assert isinstance(release.to_arrow(), pa.Table)
    as_published = release.frame.rows()
    for frame in (release.to_native(), release.to_pandas(), release.to_arrow()):
        assert pl.DataFrame(_plain(frame)).rows() == as_published


def _plain(frame):
    if isinstance(frame, pd.DataFrame):
        return frame.to_dict("list")
    return frame.to_pydict() if isinstance(frame, pa.Table) else frame.to_dict(as_series=False)


def test_a_file_comes_back_as_polars(tmp_path):
    pl.DataFrame(cells()).write_csv(tmp_path / "t.csv")
    assert isinstance(anonymized(tmp_path / "t.csv").to_native(), pl.DataFrame)


PANDAS_TYPES = {
    "whole": pd.array([1, None, 3, 2**60 + 1] * 3, dtype="Int64"),
    "small": pd.array([1, 2, 3, 4] * 3, dtype="int8"),
    "text": pd.array(["a", None, "c", "d"] * 3, dtype="string"),
    "plain": ["a", None, "c", "d"] * 3,
    "truth": pd.array([True, None, False, True] * 3, dtype="boolean"),
    "bare": [True, False] * 6,
    "when": pd.Series(pd.to_datetime(["2020-01-01", "2020-02-01"] * 6)).dt.tz_localize("UTC"),
    "day": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)] * 6,
    "grade": pd.Categorical(["low", "high"] * 6, categories=["low", "middle", "high"], ordered=True),
    "arrow": pd.array([1, 2, None, 4] * 3, dtype="int32[pyarrow]"),
    "share": [0.5, None] * 6,
}


@pytest.mark.parametrize("name", PANDAS_TYPES)
def test_a_pandas_column_that_is_not_recoded_keeps_its_type_and_cells(name):
    values = pd.Series(PANDAS_TYPES[name])
    frame = pd.DataFrame({"age": [20 + n for n in range(ROWS)], name: values})
    meaning = Schema.from_dict(
        {"columns": {"age": {"role": "quasi", "kind": "numeric"}, name: {"role": "sensitive"}}}
    )
    release = anonymized(frame, meaning)
    came = release.to_native()[name]
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.cat.remove_unused_categories()
    assert came.dtype == values.dtype
    expected = values.iloc[release.rows].reset_index(drop=True)
    pd.testing.assert_series_equal(came, expected, check_names=False)


def test_listed_categories_are_those_of_published_rows_and_in_no_telling_order():
    # The last row leaves: it is blank in a quasi-identifier, and the only one with its ward.
    wards = pd.Categorical([*"zayzay" * 2, "rare"], categories=["z", "a", "y", "rare", "never"])
    frame = pd.DataFrame({"age": [*range(20, 32), None], "ward": wards})
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "ward": {"role": "sensitive"}}
    meaning = Schema.from_dict({"table": {"missing": "suppress"}, "columns": columns})
    made = anonymized(frame, meaning, suppression=0.1)
    assert made.suppressed == 1
    assert made.to_native()["ward"].cat.categories.to_list() == ["a", "y", "z"]
    arrow = anonymized(
        pa.Table.from_pandas(frame, preserve_index=False), meaning, suppression=0.1
    ).to_native()
    assert pa.types.is_dictionary(arrow.schema.field("ward").type)
    assert arrow["ward"].combine_chunks().dictionary.to_pylist() == ["a", "y", "z"]
    listed = pl.from_pandas(frame).cast({"ward": pl.Enum(["z", "a", "y", "rare", "never"])})
    assert anonymized(listed, meaning, suppression=0.1).to_native().schema["ward"] == pl.Enum(["z", "a", "y"])


def test_arrow_types_come_back_where_the_cells_do():
    table = pa.table(
        {"age": pa.array(range(ROWS), pa.int16()), "note": pa.array([*"aabbcc" * 2], pa.string())}
    )
    back = anonymized(table).to_native()
    assert back.schema.field("note").type == pa.string()
    assert back.schema.field("age").type == pa.large_string()


def test_an_undeclared_index_is_left_out_and_said_and_the_new_one_tells_no_order():
    names = pd.Index([f"person {n}" for n in range(ROWS)], name="who")
    release = anonymized(pd.DataFrame(cells(), index=names))
    back = release.to_native()
    assert isinstance(back.index, pd.RangeIndex) and back.index.name is None
    assert not any("person" in str(cell) for cell in back.reset_index().to_numpy().ravel())
    assert any("'who'" in warning and "index" in warning for warning in release.warnings)
    assert not any("who" in warning for warning in release.public_warnings)
    assert release.rows.tolist() != list(range(ROWS))


@pytest.mark.parametrize("index", [None, pd.Index(range(40, 40 + ROWS)), pd.Index([1, 1, 2, 2, 3, 3] * 2)])
def test_a_count_of_rows_is_no_index_and_nothing_is_said(index):
    release = anonymized(pd.DataFrame(cells(), index=index))
    assert isinstance(release.to_native().index, pd.RangeIndex)
    assert release.warnings == ()


def test_a_declared_index_is_a_column_like_any_other_and_comes_back_as_the_index():
    years = pd.Index([1990 + n for n in range(ROWS)], name="year")
    meaning = schema(year={"role": "quasi", "kind": "numeric"})
    release = anonymized(pd.DataFrame(cells(), index=years), meaning)
    assert "year" in release.frame.columns
    back = release.to_native()
    assert back.index.name == "year" and back.columns.to_list() == ["age", "note"]
    assert back.index.to_list() == release.frame["year"].to_list()
    assert all(".." in text for text in back.index)


def test_a_declared_index_that_identifies_is_not_published():
    who = pd.Index([f"p{n}" for n in range(ROWS)], name="who")
    meaning = schema(who={"role": "identifier", "person": True})
    release = anonymized(pd.DataFrame(cells(), index=who), meaning)
    assert "who" not in release.frame.columns
    assert isinstance(release.to_native().index, pd.RangeIndex)


def test_an_index_that_repeats_people_still_tells_who_is_a_person():
    who = pd.Index([f"p{n // 2}" for n in range(40)], name="patient_id")
    frame = pd.DataFrame({"age": [20 + n // 2 for n in range(40)], "note": [*"ab"] * 20}, index=who)
    with pytest.raises(PersonUndecided, match="patient_id"):
        anonymized(frame)


def test_names_of_columns_that_are_no_texts_come_back():
    frame = pd.DataFrame({0: range(20, 32), 1: [*"aabbcc" * 2]})
    meaning = Schema.from_dict(
        {"columns": {"0": {"role": "quasi", "kind": "numeric"}, "1": {"role": "other"}}}
    )
    assert anonymized(frame, meaning).to_native().columns.to_list() == [0, 1]


def test_intervals_become_middles_or_ends_and_stars_are_missing():
    release = anonymized(pd.DataFrame(cells()))
    middle, ends = release.to_pandas(intervals="middle"), release.to_pandas(intervals="ends")
    assert middle["age"].dtype == "float64"
    assert ends.columns.to_list() == ["age_low", "age_high", "note"]
    assert ((ends["age_low"] + ends["age_high"]) / 2 == middle["age"]).all()
    true = pd.Series(cells()["age"]).iloc[release.rows].to_numpy()
    assert (ends["age_low"].to_numpy() <= true).all() and (true <= ends["age_high"].to_numpy()).all()
    assert set(release.to_pandas(intervals="text")["age"]) == set(release.frame["age"])


def test_labels_stay_blanks_are_missing_and_other_numbers_of_a_file_are_numbers(tmp_path):
    rows = {
        "age": ["20", "21", "", ""],
        "pay": ["1,5", "2", "", "4"],
        "place": ["a", "b", "a", "b"],
    }
    columns = {
        "age": {"role": "quasi", "kind": "numeric"},
        "pay": {"role": "other", "kind": "numeric"},
        "place": {"role": "quasi", "kind": "categorical"},
    }
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv", separator=";")
    meaning = Schema.from_dict({"table": {"decimal": ","}, "columns": columns})
    release = anonymized(tmp_path / "t.csv", meaning)
    back = release.to_polars("middle")
    by_row = dict(zip(release.rows.tolist(), back.rows(named=True), strict=True))
    assert by_row[2]["age"] is None and by_row[3]["age"] is None
    assert by_row[0]["age"] == by_row[1]["age"] == 20.5
    assert [by_row[n]["pay"] for n in range(4)] == [1.5, 2.0, None, 4.0]
    assert set(back["place"]) == {"*"}


def test_a_name_that_an_end_would_take_is_refused():
    frame = pl.DataFrame({**cells(), "age_low": [*"ababab" * 2]})
    release = anonymized(frame, schema(age_low={"role": "other"}))
    assert release.to_polars("middle").columns == ["age", "note", "age_low"]
    with pytest.raises(ParameterError, match="'age_low'"):
        release.to_polars("ends")


def test_a_word_that_is_no_way_to_read_intervals_is_refused():
    with pytest.raises(ParameterError, match="intervals"):
        anonymized(pl.DataFrame(cells())).to_native("mean")
