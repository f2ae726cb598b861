"""How rows are dealt out: every row to exactly one client, people whole, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import TableError
from velado.learning.flower import Federation
from velado.learning.flower._local_rows import hold_out, split_rows
from velado.randomness import seeded


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray | None, int]:
    clients = draw(st.integers(1, 6))
    rows = draw(st.integers(clients, 80))
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)), dtype=np.int64)
    people = None
    if draw(st.booleans()):
        extra = draw(st.lists(st.integers(0, rows - 1), min_size=rows, max_size=rows))
        people = np.array(extra, dtype=np.int64)
        people[:clients] = np.arange(clients)  # at least a person for each client
    return labels, people, clients


@given(
    table=tables(),
    split=st.sampled_from(["iid", "dirichlet"]),
    alpha=st.floats(0.01, 100),
    seed=st.integers(0, 2**31),
)
def test_every_row_goes_to_exactly_one_client_and_people_stay_whole(table, split, alpha, seed) -> None:
    labels, people, clients = table
    federation = Federation(clients=clients, split=split, alpha=alpha)
    parts = split_rows(labels, federation, seed, people)
    assert len(parts) == clients
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(labels.size))
    if people is not None:
        owners = [set(people[rows].tolist()) for rows in parts]
        assert sum(map(len, owners)) == len(set(people.tolist()))
    again = split_rows(labels, federation, seed, people)
    assert all(np.array_equal(one, other) for one, other in zip(parts, again, strict=True))


def test_iid_parts_have_equal_size_and_another_seed_gives_another_split() -> None:
    labels = np.zeros(103, dtype=np.int64)
    parts = split_rows(labels, Federation(clients=10), 0)
    assert {rows.size for rows in parts} == {10, 11}
    assert not np.array_equal(parts[0], split_rows(labels, Federation(clients=10), 1)[0])


def _unlikeness(alpha: float) -> float:
    labels = np.repeat([0, 1], 5000)
    parts = split_rows(labels, Federation(clients=10, split="dirichlet", alpha=alpha), 5)
    shares = [labels[rows].mean() for rows in parts if rows.size]
    return float(np.std(shares))


def test_a_small_alpha_makes_clients_unlike_and_a_large_one_alike() -> None:
    assert _unlikeness(0.1) > 0.3 > 0.1 > _unlikeness(100.0)


def test_more_clients_than_people_is_an_error() -> None:
    with pytest.raises(TableError, match="cannot be dealt out to 5 clients"):
        split_rows(np.zeros(4, dtype=np.int64), Federation(clients=5), 0)


@given(table=tables(), share=st.floats(0.05, 0.9), seed=st.integers(0, 2**31))
def test_held_out_rows_and_training_rows_are_all_rows_and_never_share_a_person(table, share, seed) -> None:
    labels, people, _ = table
    train, test = hold_out(labels, share, seeded(seed, "test"), people)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(labels.size))
    assert train.size > 0
    assert set(labels[test].tolist()) <= set(labels[train].tolist())
    if people is not None:
        assert not set(people[train].tolist()) & set(people[test].tolist())


def test_each_class_is_held_out_alike_and_a_class_of_one_stays_in_training() -> None:
    labels = np.array([0] * 50 + [1] * 10 + [2])
    train, test = hold_out(labels, 0.2, seeded(0, "test"))
    assert np.bincount(labels[test], minlength=3).tolist() == [10, 2, 0]
    assert 2 in labels[train]


def test_whoever_has_a_class_that_nobody_else_has_stays_in_training() -> None:
    people = np.repeat(np.arange(40), 2)
    labels = np.repeat(np.arange(40) % 2, 2)
    labels[15] = 2  # the second row of person 7
    for seed in range(40):
        train, test = hold_out(labels, 0.5, seeded(seed, "test"), people)
        assert 7 in people[train] and 2 not in labels[test]
