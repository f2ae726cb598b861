"""Splits: shuffled and stratified by default, a person on one side only; the sources' folds as they were."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import TableError
from velado.study.evaluate.protocols import stratified_split, unshuffled_folds


@given(st.lists(st.integers(0, 3), min_size=8, max_size=200), st.integers(0, 5), st.floats(0.1, 0.6))
def test_each_row_is_on_one_side_and_each_class_keeps_its_share(labels, seed, share) -> None:
    labels = np.array(labels)
    counts = np.bincount(labels)
    if (counts < 2).all() or counts.max() < 2:
        return
    split = stratified_split(labels, share, seed)
    assert sorted([*split.train, *split.test]) == list(range(labels.size))
    for number in np.flatnonzero(counts):
        tested = int((labels[split.test] == number).sum())
        assert tested == 0 if counts[number] < 2 else abs(tested - share * counts[number]) <= 1
        assert (labels[split.train] == number).any()
    assert split.alone == int((counts == 1).sum())


def test_the_seed_decides_the_split() -> None:
    labels = np.arange(100) % 2
    same = [stratified_split(labels, 0.25, seed).test.tolist() for seed in (3, 3, 4)]
    assert same[0] == same[1] != same[2]
    assert np.ptp(np.array(same[0])) > 50  # shuffled: not the first quarter of the file


def test_rows_of_one_person_stay_together() -> None:
    people = np.repeat(np.arange(50), 3).astype(np.int32)
    labels = np.random.default_rng(0).integers(0, 2, 150)
    split = stratified_split(labels, 0.3, 0, people)
    assert set(people[split.train]) & set(people[split.test]) == set()
    assert split.test.size == pytest.approx(45, abs=4)


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5)), min_size=4, max_size=60),
    st.integers(0, 5),
    st.floats(0.1, 0.9),
)
def test_whoever_has_several_classes_no_class_is_asked_about_that_was_not_taught(rows, seed, share) -> None:
    people, labels = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    try:
        split = stratified_split(labels, share, seed, people)
    except TableError:
        return
    assert set(labels[split.test]) <= set(labels[split.train])
    assert not set(people[split.train]) & set(people[split.test])
    holders = {one: set(people[labels == one]) for one in set(labels)}
    single = {one for one, who in holders.items() if len(who) < 2}
    assert not single & set(labels[split.test])
    assert split.alone == len(set(labels) - set(labels[split.test])) >= len(single)


def test_a_class_that_stands_in_second_rows_only_is_taught_and_asked_or_counted() -> None:
    # Forty people with two rows each. Class 2 is the second row of person 7 alone, class 3 that of persons 8 and 9.
    people = np.repeat(np.arange(40), 2)
    labels = np.repeat(np.arange(40) % 2, 2)
    labels[15], labels[17], labels[19] = 2, 3, 3
    for seed in range(40):
        split = stratified_split(labels, 0.5, seed, people)
        assert 7 in people[split.train] and split.alone == 1
        assert 3 in labels[split.train] and 3 in labels[split.test]


def test_classes_of_one_member_alone_cannot_be_split() -> None:
    with pytest.raises(TableError, match="No class has two members"):
        stratified_split(np.arange(5), 0.5, 0)


def test_unshuffled_folds_are_consecutive_parts() -> None:
    folds = unshuffled_folds(np.array([4, 2, 0, 1, 3]), 2)
    assert [fold.test.tolist() for fold in folds] == [[4, 2, 0], [1, 3]]
    assert [fold.train.tolist() for fold in folds] == [[1, 3], [4, 2, 0]]
    with pytest.raises(TableError, match="3 folds"):
        unshuffled_folds(np.arange(2), 3)
