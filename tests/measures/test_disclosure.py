"""What the scores gather beyond re-identification."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Column
from velado.measures.measured import MeasureSettings, measure_files
from velado.measures.recoded_columns import read_published
from velado.measures.risk import disclosure as room
from velado.measures.risk.disclosure import disclosure

from .conftest import make_table


@pytest.fixture
def table():
    frame = pl.DataFrame(
        {
            "age": [str(20 + i) for i in range(12)],
            "town": ["norte", "sul"] * 6,
            "ill": ["gripe"] * 5 + ["asma"] * 6 + [""],
        }
    )
    columns = (
        Column("age", "quasi", "numeric"),
        Column("town", "quasi", "categorical"),
        Column("ill", "sensitive", "categorical"),
    )
    return make_table(frame, *columns)


def halves(table) -> pl.DataFrame:
    return table.frame.with_columns(
        pl.Series("age", ["[20..25]"] * 6 + ["[26..31]"] * 6), pl.lit("*").alias("town")
    )


def test_the_scores_hold_the_cheap_measures_unasked_and_the_others_on_request(table) -> None:
    plain = measure_files(table, halves(table)).to_dict()["risk"]
    told = plain["attribute_disclosure"]["ill"]
    # Five of six in the first half have one illness, all five known ones in the second the other.
    assert told["rows"] == 11 and told["with_own_row"] == pytest.approx(10 / 11)
    assert told["homogeneous"]["1"] == pytest.approx(5 / 11)
    assert plain["partial_knowledge"]["subsets"] == 3
    assert plain["partial_knowledge"]["subsets_with_unique_rows_before"] == 2
    assert plain["partial_knowledge"]["subsets_with_unique_rows_after"] == 0
    assert plain["special_uniques"] is None and plain["population_uniqueness"] is None
    asked = MeasureSettings(special_uniques=True, sampling_fraction=0.5)
    more = measure_files(table, halves(table), settings=asked).to_dict()["risk"]
    assert more["special_uniques"]["before"]["keys_by_size"] == {"1": 12, "2": 0}
    assert more["special_uniques"]["after"]["special_rows"] == 0
    assert more["population_uniqueness"]["before"]["sample_uniques"] == 12
    assert more["population_uniqueness"]["after"]["estimates"]["counted"]["population_uniques"] == 0
    text = json.dumps(more, allow_nan=False)
    assert "gripe" not in text and "norte" not in text


def test_a_release_with_suppressed_rows_holds_less_of_the_population(table) -> None:
    kept = np.arange(12) < 6
    published = read_published(table, table.frame.head(6), kept)
    found = disclosure(published, table.frame.head(6), fraction=0.5)
    assert found.population is not None
    assert found.population[0].fraction == 0.5 and found.population[1].fraction == 0.25


def test_texts_that_mean_missing_are_no_value_to_guess(table) -> None:
    frame = halves(table).with_columns(pl.Series("ill", ["?"] * 6 + ["asma"] * 6))
    said = table.with_schema(replace(table.schema, missing_values=("", "?")))
    published = read_published(said, frame)
    assert disclosure(published, frame).attributes[0].rows == 6
    assert disclosure(read_published(table, frame), frame).attributes[0].rows == 12


def test_what_is_left_out_has_its_reason(table, monkeypatch) -> None:
    frame = halves(table)
    off = measure_files(table, frame.drop("ill"), settings=MeasureSettings(partial_knowledge=False))
    assert off.not_measured["partial knowledge"] == "It was switched off."
    assert "not in the published table" in off.not_measured["attribute disclosure"]
    assert off.to_dict()["risk"]["attribute_disclosure"] == {}
    monkeypatch.setattr(room, "PARTIAL_WORK", 10)
    published = read_published(table, frame)
    assert "3 subsets of 12 rows" in disclosure(published, frame).skipped["partial knowledge"]
    assert disclosure(published, frame, partial=True).partial is not None


def test_a_table_of_very_many_columns_is_measured_without_partial_knowledge() -> None:
    frame = pl.DataFrame({f"c{i}": ["x", "y"] for i in range(60)})
    wide = make_table(frame, *(Column(name, "quasi", "categorical") for name in frame.columns))
    found = disclosure(read_published(wide, frame), frame)
    assert found.partial is None and "36050 subsets" in found.skipped["partial knowledge"]


def test_a_release_without_rows_gives_nothing_away(table) -> None:
    frame = table.frame.head(0)
    published = read_published(table, frame, np.zeros(12, dtype=bool))
    found = disclosure(published, frame, special=True, fraction=0.1)
    assert found.attributes[0].rows == 0
    assert found.partial is not None and found.partial.of(["age"]).after.unique_rows == 0
    assert found.special is not None and found.special[1].special_rows == 0
    json.dumps(found.to_dict(), allow_nan=False)
