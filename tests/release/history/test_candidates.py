"""Candidates and certain values are those of the definitions, on every small history."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.release.history.candidates import (
    Histogram,
    candidates_exactly,
    candidates_in,
    certain_values,
    crowd_of,
)

HISTORIES = st.integers(1, 4).flatmap(
    lambda t: st.integers(1, 8).flatmap(
        lambda n: st.lists(st.lists(st.integers(-1, 2), min_size=n, max_size=n), min_size=t, max_size=t)
    )
)


@given(HISTORIES)
def test_candidates_are_counted_as_defined(rows: list[list[int]]) -> None:
    h = np.array(rows, np.int32)
    shown = (h >= 0).any(axis=0)
    for v in range(h.shape[1]):
        there = h[:, v] >= 0
        inside = int((h[there] == h[there, v][:, None]).all(axis=0).sum()) if shown[v] else 0
        exact = int((h == h[:, v][:, None]).all(axis=0).sum()) if shown[v] else 0
        assert candidates_in(h)[v] == inside
        assert candidates_exactly(h)[v] == exact


def shown_of(h: npt.NDArray[np.int32], values: npt.NDArray[np.int64]) -> list[Histogram]:
    out = []
    for column in h:
        pairs, counts = np.unique(
            np.stack([column[column >= 0], values[column >= 0]]), axis=1, return_counts=True
        )
        out.append(Histogram(pairs[0].astype(np.int32), pairs[1].astype(np.int32), counts.astype(np.int32)))
    return out


@given(HISTORIES, st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_what_is_called_certain_is_so_in_every_world(rows: list[list[int]], drawn: list[int]) -> None:
    h = np.array([row[:6] for row in rows], np.int32)
    values = np.array(drawn[: h.shape[1]])
    shown = shown_of(h, values)
    found = certain_values(h, shown, 3)
    assert found is not None
    telling = [tuple(sorted((g, v) for g, v in zip(c, values, strict=True) if g >= 0)) for c in h.tolist()]
    worlds = [
        world
        for world in set(permutations(values.tolist()))
        if [tuple(sorted((g, v) for g, v in zip(c, world, strict=True) if g >= 0)) for c in h.tolist()]
        == telling
    ]
    for p in np.flatnonzero(found >= 0):
        assert {world[p] for world in worlds} == {found[p]}


def test_values_follow_from_two_releases_together() -> None:
    h = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], np.int32)
    values = np.array([0, 1, 1, 1])
    assert (certain_values(h[:1], shown_of(h[:1], values), 2) == [-1, -1, 1, 1]).all()
    assert (certain_values(h, shown_of(h, values), 2) == values).all()


@pytest.mark.parametrize("first", [0, 1])
def test_the_value_of_who_left_is_what_the_smaller_group_lacks(first: int) -> None:
    """Under classes for life a class only shrinks: the counts of the one less those of the other are of who is missing."""
    h = np.array([[0, 0, 0, 0], [0, 0, 0, -1]], np.int32)[[first, 1 - first]]
    values = np.array([0, 1, 2, 1])
    assert (certain_values(h, shown_of(h, values), 3) == [-1, -1, -1, 1]).all()


def test_groups_within_a_group_are_taken_off_it_together() -> None:
    h = np.array([[0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 2, 2]], np.int32)
    values = np.array([0, 1, 0, 1, 2, 1])
    assert (certain_values(h, shown_of(h, values), 3) == [-1, -1, -1, -1, 2, 1]).all()


def test_a_value_that_changed_says_nothing_of_its_owner() -> None:
    h = np.zeros((2, 1), np.int32)
    shown = [Histogram(*(np.array([n], np.int32) for n in (0, v, 1))) for v in (0, 1)]
    found = certain_values(h, shown, 2)
    assert found is not None
    assert crowd_of(candidates_in(h), 2).below == 1
    assert found[0] in (-1, 0)
