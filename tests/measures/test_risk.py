"""Re-identification, uniqueness and class sizes on cases worked out by hand."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.encode import encode
from velado.data.partition import Partition
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import ParameterError
from velado.measures.risk.reidentification import (
    class_sizes,
    population_sizes,
    reidentification,
    reidentification_of_people,
    uniqueness_of,
)

UNEVEN = Partition.of(np.array([0, 1, 1, 2, 2, 2, 2]))


def test_the_prosecutor_has_one_chance_in_the_class() -> None:
    found = reidentification(UNEVEN)
    assert found.prosecutor.highest == 1.0
    assert found.prosecutor.mean == pytest.approx(3 / 7)
    assert found.prosecutor.share_above == {0.05: 1.0, 0.1: 1.0, 0.2: 1.0, 0.5: pytest.approx(1 / 7)}
    assert found.marketer == pytest.approx(3 / 7)


@given(st.lists(st.integers(2, 60), min_size=1, max_size=30))
def test_the_prosecutors_best_chance_is_one_in_the_smallest_class(sizes) -> None:
    partition = Partition.of(np.repeat(np.arange(len(sizes)), sizes))
    found = reidentification(partition)
    assert found.prosecutor.highest == 1 / min(sizes)
    assert found.marketer == pytest.approx(found.prosecutor.mean)
    for threshold, share in found.prosecutor.share_above.items():
        assert share == pytest.approx(sum(s for s in sizes if s * threshold < 1 - 1e-12) / sum(sizes))


def test_without_a_population_the_journalist_is_the_prosecutor_and_that_is_said() -> None:
    found = reidentification(UNEVEN)
    assert found.journalist == found.prosecutor
    assert "equal to the prosecutor" in found.to_dict()["journalist"]["basis"]


def test_a_population_lowers_the_journalists_and_the_marketers_chances() -> None:
    found = reidentification(UNEVEN, np.array([10, 4, 4]))
    assert found.journalist.highest == 0.25
    assert found.journalist.mean == pytest.approx((0.1 + 2 * 0.25 + 4 * 0.25) / 7)
    assert found.marketer == pytest.approx((1 / 10 + 2 / 4 + 4 / 4) / 7)
    assert found.prosecutor.highest == 1.0
    assert found.to_dict()["journalist"]["basis"] == "population class sizes"


def test_a_population_smaller_than_the_table_is_refused() -> None:
    for wrong in ([10, 4, 3], [10, 4]):
        with pytest.raises(ParameterError, match="do not fit the 3 published classes"):
            reidentification(UNEVEN, np.array(wrong))


def test_population_classes_are_counted_by_their_visible_values() -> None:
    published = pl.DataFrame({"a": ["x", "y", "x"], "b": ["1", None, "1"]})
    population = pl.DataFrame({"a": ["x", "y", "x", "x", "y"], "b": ["1", None, "1", "1", "2"]})
    sizes = population_sizes(published, population, ["a", "b"])
    assert sorted(sizes.tolist()) == [1, 3]
    assert reidentification(Partition.of(np.array([0, 1, 0])), np.array([3, 1])).journalist.highest == 1.0


def test_many_rows_of_one_person_are_no_crowd() -> None:
    partition = Partition.of(np.array([0, 0, 0, 1, 1, 1]))
    people = np.array([1, 1, 1, 1, 2, 3])
    found = reidentification_of_people(partition, people)
    # Person 1 is alone in the first class, so that is the risk although the second class has three people.
    assert found.units == 3 and found.prosecutor.highest == 1.0
    assert found.prosecutor.mean == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    assert reidentification(partition).prosecutor.highest == pytest.approx(1 / 3)


def people_table() -> Table:
    frame = pl.DataFrame(
        {
            "who": ["p", "p", "q", "r", "r", "s"],
            "age": ["30", "30", "30", "40", "40", "50"],
            "city": ["a", "a", "a", "b", "b", "a"],
        }
    )
    columns = (
        Column("who", "identifier", "text", person=True),
        Column("age", "quasi", "numeric"),
        Column("city", "quasi", "categorical"),
    )
    return Table.of(frame, Schema({column.name: column for column in columns}))


def test_unique_rows_and_people_are_counted_on_all_columns_and_on_each() -> None:
    found = uniqueness_of(encode(people_table()))
    assert (found.rows, found.unique_rows, found.people, found.unique_people) == (6, 1, 4, 2)
    assert found.unique_rows_by_column == {"age": 1, "city": 0}
    assert found.unique_people_by_column == {"age": 2, "city": 1}


def test_class_sizes_fall_into_readable_bins_that_lose_no_row() -> None:
    sizes = np.array([1, 1, 2, 4, 5, 9, 10, 19, 20, 49, 50, 250])
    found = class_sizes(sizes)
    assert found.labels == ("1", "2", "3-4", "5-9", "10-19", "20-49", "50-99", "100-199", "200+")
    assert found.classes_in_bin == (2, 1, 1, 2, 2, 2, 1, 0, 1)
    assert found.rows_in_bin == (2, 2, 4, 14, 29, 69, 50, 0, 250)
    assert (found.smallest, found.largest, found.median) == (1, 250, 9.5)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=50))
def test_every_class_is_in_exactly_one_bin(sizes) -> None:
    found = class_sizes(np.array(sizes))
    assert sum(found.classes_in_bin) == len(sizes) and sum(found.rows_in_bin) == sum(sizes)
    assert found.classes_in_bin[-1] > 0


def test_no_classes_at_all_give_zeros() -> None:
    assert class_sizes(np.array([], dtype=np.int64)).to_dict()["classes"] == 0
    nobody = Partition(np.full(3, -1, dtype=np.int32), 0)
    assert reidentification(nobody).prosecutor.highest == 0.0
