"""Partition and GroupCounts: exact grouping, whatever the size of the key space."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from velado.data.partition import GroupCounts, Partition, ValueCounts, group_by_codes


@given(
    st.integers(1, 60).flatmap(
        lambda n: st.lists(hnp.arrays(np.int32, n, elements=st.integers(0, 5)), min_size=1, max_size=4)
    ),
    st.sampled_from([6, 2**20, 2**31 - 1]),
)
def test_rows_share_a_label_exactly_when_all_their_codes_agree(columns, size):
    labels, count = group_by_codes(columns, [size] * len(columns))
    seen: dict[tuple[int, ...], int] = {}
    for row, label in enumerate(labels.tolist()):
        key = tuple(int(column[row]) for column in columns)
        assert seen.setdefault(key, label) == label
    assert len(set(seen.values())) == len(seen) == count
    assert sorted(set(labels.tolist())) == list(range(count))


def test_keys_beyond_63_bits_are_ranked_again_and_stay_exact():
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 2**31 - 1, 500).astype(np.int32) for _ in range(6)]
    columns = [np.concatenate([column, column[:100]]) for column in columns]
    labels, count = group_by_codes(columns, [2**31 - 1] * 6)
    assert count == 500
    assert (labels[500:] == labels[:100]).all()


@given(hnp.arrays(np.int64, st.integers(1, 50), elements=st.integers(-1, 6)))
def test_a_partition_has_no_holes_and_keeps_suppressed_rows_apart(labels):
    partition = Partition.of(labels)
    assert (partition.labels == -1).tolist() == (labels < 0).tolist()
    assert partition.sizes.sum() == (labels >= 0).sum()
    assert (partition.sizes > 0).all()
    for group in range(partition.count):
        assert len(set(labels[partition.labels == group].tolist())) == 1


def test_cover_of_a_group_is_its_least_and_greatest_code():
    partition = Partition.of(np.array([1, 0, 1, -1, 0]))
    low, high = partition.least_and_greatest(np.array([7, 3, 5, 99, 4], dtype=np.int32))
    assert low.tolist() == [3, 5]
    assert high.tolist() == [4, 7]


def test_a_blank_sensitive_value_is_no_diversity():
    labels = np.array([0, 0, 0, 1, 1], dtype=np.int32)
    counts = ValueCounts.of(labels, 2, np.array([0, 1, 1, 0, 0]), 3)
    assert counts.distinct(2).tolist() == [1, 0]
    assert counts.distinct(2, blanks=True).tolist() == [2, 1]
    assert counts.totals.tolist() == [3, 2, 0]


def test_rows_without_a_person_are_one_person_not_many():
    partition = Partition.of(np.array([0, 0, 0, 0]))
    groups = GroupCounts.of(partition, people=np.array([0, 0, 0, 5]))
    assert groups.people.tolist() == [2]


def test_suppressing_groups_keeps_the_others():
    partition = Partition.of(np.array([0, 1, 2, 1]))
    rest = partition.suppress(np.array([False, True, False]))
    assert rest.labels.tolist() == [0, -1, 1, -1]


def test_labels_are_numbered_anew_and_suppressed_rows_stay_so():
    partition = Partition.of(np.array([7, -1, 2, 7, -3]), centres=np.arange(10, 18))
    assert (partition.labels.tolist(), partition.count) == ([1, -1, 0, 1, -1], 2)
    assert partition.centres is not None and partition.centres.tolist() == [12, 17]
    nobody = Partition.of(np.array([-1, -5]))
    assert (nobody.labels.tolist(), nobody.count, nobody.kept.any()) == ([-1, -1], 0, False)
