"""Counted entries: the tuples of a table with the rows behind each say the same of every grouping as the rows do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from velado.data.counted import compressed, expanded
from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import Partition, ValueCounts, ValueEntries
from velado.errors import ParameterError
from velado.release.recoded import Recoded
from velado.release.recoders import Cover


def random_table(seed: int, rows: int = 200) -> EncodedTable:
    """Few codes, so that tuples repeat; a blank in one column; people with several rows; two sensitive columns."""
    draw = np.random.default_rng(seed)
    ages = np.minimum(draw.integers(0, 7, rows), 5).astype(np.int32)
    sizes = draw.integers(0, 4, rows).astype(np.int32)
    points = np.array([20.0, 21.5, 30.0, 44.0, 60.0, 100.0])
    columns = (
        EncodedColumn("age", ages, 6, missing=5, points=points, span=40.0),
        EncodedColumn("size", sizes, 4, points=np.arange(4.0), span=3.0, whole=True),
    )
    sensitive = {
        "ill": (draw.integers(0, 4, rows).astype(np.int32), 4),
        "pay": (draw.integers(0, 900, rows).astype(np.int32), 900),
    }
    return EncodedTable(columns, rows, draw.integers(0, rows // 2, rows).astype(np.int32), sensitive)


def same_counts(one: ValueCounts, other: ValueCounts) -> None:
    for name in ("groups", "values", "counts", "totals"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("seed", range(12))
def test_groups_of_entries_are_counted_like_the_groups_of_their_rows(seed: int) -> None:
    data = random_table(seed)
    tuples, entry_of_row = compressed(data)
    assert tuples.rows < data.rows and tuples.total == data.total == data.rows
    groups = np.random.default_rng(seed).integers(-1, 5, tuples.rows)
    groups[groups == 3] = 2  # a hole
    of_entries = tuples.weighed(Partition.of(groups))
    of_rows = Partition.of(groups[entry_of_row])
    np.testing.assert_array_equal(of_entries.sizes, of_rows.sizes)
    np.testing.assert_array_equal(of_entries.of_rows(entry_of_row).labels, of_rows.labels)
    assert of_entries.members()[0].size == (groups >= 0).sum()
    for mine, theirs in zip(tuples.columns, data.columns, strict=True):
        np.testing.assert_array_equal(
            of_entries.least_and_greatest(mine.codes), of_rows.least_and_greatest(theirs.codes)
        )
    found, expected = tuples.group_counts(Partition.of(groups)), data.group_counts(of_rows)
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.people, expected.people)
    for name in expected.sensitive:
        same_counts(found.sensitive[name], expected.sensitive[name])


def test_totals_and_a_part_of_the_entries_are_those_of_the_rows() -> None:
    data = random_table(3)
    tuples, entry_of_row = compressed(data)
    for name, totals in data.totals.items():
        np.testing.assert_array_equal(tuples.totals[name], totals)
    chosen = np.array([4, 0, 4, 2])
    part = tuples.subset(chosen)
    rows = np.concatenate([np.flatnonzero(entry_of_row == entry) for entry in chosen])
    label = np.repeat(np.arange(4), [(entry_of_row == entry).sum() for entry in chosen])
    found = part.group_counts(Partition.of(np.arange(4)))
    expected = data.subset(rows).group_counts(Partition.of(label))
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.people, expected.people)
    for name in expected.sensitive:
        same_counts(found.sensitive[name], expected.sensitive[name])


def test_entries_that_are_counted_already_and_equal_become_one() -> None:
    data = random_table(5)
    tuples, entry_of_row = compressed(data)
    coarser = tuple(
        replace(c, codes=c.codes // 2, size=3, points=np.array([1.0, 2.0, 3.0])) for c in tuples.columns
    )
    again, of_entry = compressed(replace(tuples, columns=coarser))
    once, of_row = compressed(
        replace(data, columns=tuple(replace(c, codes=c.codes // 2, size=3) for c in data.columns))
    )
    np.testing.assert_array_equal(again.counts, once.counts)
    np.testing.assert_array_equal(of_entry[entry_of_row], of_row)
    each = Partition(np.arange(once.rows, dtype=np.int32), once.rows)
    found, expected = again.group_counts(each), once.group_counts(each)
    np.testing.assert_array_equal(found.people, expected.people)
    for name in expected.sensitive:
        same_counts(found.sensitive[name], expected.sensitive[name])


def test_expanded_entries_are_the_rows_in_the_order_of_their_tuples() -> None:
    data = random_table(7)
    tuples, entry_of_row = compressed(data)
    rows, of_row = expanded(tuples)
    assert rows.counts is None and rows.rows == data.rows
    np.testing.assert_array_equal(rows.matrix, data.matrix[np.argsort(entry_of_row, kind="stable")])
    back, _ = compressed(rows)
    np.testing.assert_array_equal(back.counts, tuples.counts)
    for name in tuples.sensitive or {}:
        one, other = (back.sensitive or {})[name], (tuples.sensitive or {})[name]
        assert isinstance(one, ValueEntries) and isinstance(other, ValueEntries)
        np.testing.assert_array_equal(one.at, other.at)
        np.testing.assert_array_equal(one.counts, other.counts)
    with pytest.raises(ParameterError, match="needs every row by itself"):
        expanded(tuples, most=199)
    assert expanded(data)[0] is data and np.array_equal(of_row, np.sort(entry_of_row))


def test_what_is_published_for_entries_is_published_for_their_rows() -> None:
    data = random_table(9)
    tuples, entry_of_row = compressed(data)
    groups = Partition.of(np.random.default_rng(1).integers(-1, 4, tuples.rows), weights=tuples.counts)
    made = Recoded(Cover().publish(tuples, groups), groups.kept, groups).of_rows(entry_of_row)
    of_rows = groups.of_rows(entry_of_row)
    np.testing.assert_array_equal(made.kept, of_rows.kept)
    for mine, theirs in zip(made.columns, Cover().publish(data, of_rows), strict=True):
        assert mine.values == theirs.values
        np.testing.assert_array_equal(mine.codes, theirs.codes)


def test_a_counted_table_has_no_value_of_each_row() -> None:
    tuples, _ = compressed(random_table(2))
    with pytest.raises(ValueError, match="several rows"):
        _ = tuples.row_people
    with pytest.raises(ValueError, match="several rows"):
        _ = tuples.row_values
    with pytest.raises(ValueError, match="must rise"):
        ValueEntries(np.array([1, 0]), np.array([0, 0], np.int32), np.array([1, 1]), 1)
