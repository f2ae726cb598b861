"""What means no value belongs to a column, and is blank wherever the table is read and in what is published."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest

import velado
from velado.data.io import read_table
from velado.data.schema import Schema
from velado.errors import SchemaError, SideDoorOpen

CSV = "age,sex,dose,note\n" + "".join(
    f"{age},{sex},{dose},{note}\n"
    for age, sex, dose, note in [
        ("9", "9", "-999", "ND"),
        ("10", "F", "1.5", "calm"),
        ("9", "M", "ND", "9"),
        ("12", "F", "2", "-999"),
    ]
    * 3
)
COLUMNS = {
    "age": {"role": "quasi", "kind": "numeric"},
    "sex": {"role": "quasi", "missing_values": ["", "9"]},
    "dose": {
        "role": "other",
        "kind": "numeric",
        "missing_values": ["", "-999", "ND"],
        "side_door": "accept",
        "reason": "small table",
    },
    "note": {"role": "other", "missing_values": ["", "ND"], "side_door": "accept", "reason": "small table"},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "stays.csv").write_text(CSV)
    return tmp_path / "stays.csv"


def test_a_code_is_blank_in_its_own_column_alone(file: Path) -> None:
    table = read_table(file, Schema.from_dict({"columns": COLUMNS}))
    first, _, third, fourth = table.frame.rows()[:4]
    assert first == ("9", None, None, None)
    assert third == ("9", "M", None, "9") and fourth == ("12", "F", "2", "-999")


def test_a_list_of_the_whole_table_holds_where_a_column_has_none(file: Path) -> None:
    columns = {**COLUMNS, "note": {"role": "other"}, "age": {"role": "quasi", "missing_values": []}}
    schema = Schema.from_dict({"table": {"missing_values": ["", "9", "ND"]}, "columns": columns})
    table = read_table(file, schema)
    assert table.frame["age"].null_count() == 0
    assert table.frame["note"].to_list()[:4] == [None, "calm", None, "-999"]


def test_a_column_that_is_published_as_it_is_shows_no_code(file: Path) -> None:
    made = velado.anonymize(file, Schema.from_dict({"columns": COLUMNS}), k=2)
    assert set(made.frame["note"].to_list()) == {None, "calm", "9", "-999"}
    assert set(made.frame["dose"].to_list()) == {None, "1.5", "2"}


def test_codes_are_the_numbers_and_days_that_typed_columns_hold() -> None:
    frame = pl.DataFrame(
        {
            "whole": [1, -999, 2**62],
            "real": [0.5, -999.0, float("nan")],
            "day": [date(2024, 1, 1), date(9999, 12, 31), None],
            "flag": [True, False, None],
        }
    )
    schema = Schema.from_dict(
        {
            "table": {"missing_values": ["", "-999", "9999-12-31", "NaN"]},
            "columns": {name: {"role": "quasi"} for name in frame.columns},
        }
    )
    read = read_table(frame, schema).frame
    assert read.rows() == [
        (1, 0.5, date(2024, 1, 1), True),
        (None, None, None, False),
        (2**62, None, None, None),
    ]
    assert read.dtypes == frame.dtypes


def test_the_list_of_a_column_survives_the_file_and_a_wrong_one_is_refused() -> None:
    schema = Schema.from_dict({"columns": COLUMNS})
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.missing_texts("age") == ("",) and schema.missing_texts("nobody") == ("",)
    with pytest.raises(SchemaError, match="missing_values"):
        Schema.from_dict({"columns": {"age": {"role": "quasi", "missing_values": [9]}}})


def test_a_table_under_another_list_finds_other_cells_blank() -> None:
    table = read_table(
        pl.DataFrame({"age": ["9", "10"]}), Schema.from_dict({"columns": {"age": {"role": "quasi"}}})
    )
    assert table.is_missing("age").to_list() == [False, False]
    own = Schema.from_dict({"columns": {"age": {"role": "quasi", "missing_values": ["9"]}}})
    assert table.with_schema(own).is_missing("age").to_list() == [True, False]


def test_a_whole_number_beyond_64_bits_with_a_sign_is_a_value() -> None:
    """A hash of 64 bits was published as it is and judged as a blank: as a side door, a person, a sensitive value."""
    large = [2**63 + 7 * age for age in (20, 20, 31, 31, 42, 42)]
    frame = pl.DataFrame({"age": [20, 20, 31, 31, 42, 42], "h": pl.Series(large, dtype=pl.UInt64)})
    columns = {"age": {"role": "quasi", "kind": "numeric"}, "h": {"role": "other"}}
    table = read_table(frame, Schema.from_dict({"columns": columns}))
    assert not table.is_missing("h").any()
    doubled = pl.concat([frame] * 10)
    with pytest.raises(SideDoorOpen, match="'h' repeats quasi-identifier 'age'"):
        velado.anonymize(doubled, Schema.from_dict({"columns": columns}), k=5, per="row", method="mondrian")


def test_what_means_no_value_is_met_in_categories_and_small_floats() -> None:
    frame = pl.DataFrame(
        {
            "ward": pl.Series(["ND", "A"], dtype=pl.Categorical),
            "unit": pl.Series(["ND", "A"], dtype=pl.Enum(["A", "ND"])),
            "dose": pl.Series([99.9, 1.5], dtype=pl.Float32),
        }
    )
    columns = {name: {"role": "other", "missing_values": ["", "ND", "99.9"]} for name in frame.columns}
    table = read_table(frame, Schema.from_dict({"columns": columns}))
    assert [table.is_missing(name).to_list() for name in frame.columns] == [[True, False]] * 3


def test_an_empty_category_is_a_blank() -> None:
    frame = pl.DataFrame(
        {
            "age": [20, 30] * 20,
            "t": pl.Series(["", "a"] * 20, dtype=pl.Categorical),
            "dx": ["x", "y", "y", "x"] * 10,
        }
    )
    columns = {
        "age": {"role": "quasi"},
        "t": {"role": "quasi", "side_door": "accept", "reason": "made up"},
        "dx": {"role": "sensitive"},
    }
    as_texts = frame.with_columns(pl.col("t").cast(pl.String))
    found = [
        velado.anonymize(
            one, Schema.from_dict({"columns": columns}), k=5, per="row", method="mondrian"
        ).losses
        for one in (frame, as_texts)
    ]
    assert found[0] == found[1]
