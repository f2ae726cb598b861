"""Classes for life leave at least k candidates to who has all releases: any histories of presence, both rules."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import ParameterError
from velado.release.history.classes import Classes, Shown, shown_together, taken_out

PEOPLE = 12


def pairs(size: int):  # type: ignore[no-untyped-def]
    """Newcomers as they come, in groups of *size*, the last one larger."""
    return lambda at: np.minimum(np.arange(at.size) // size, at.size // size - 1)


def run(
    presence: list[list[bool]], k: int, start: int, leavers: str
) -> tuple[npt.NDArray[np.int64], list[Shown]]:
    state, rows, steps = Classes.none(), [], []
    for there in presence:
        here = np.flatnonzero(there).astype(np.int64)
        step = shown_together(state, here, k=k, start=start, grouping=pairs(start), leavers=leavers)  # type: ignore[arg-type]
        row = np.full(PEOPLE, -1)
        row[here] = step.classes
        row[step.stale] = step.stale_classes
        rows.append(row)
        steps.append(step)
        state = step.after
    return np.array(rows).T, steps


def candidates_in(history: npt.NDArray[np.int64], v: int) -> int:
    seen = history[v] >= 0
    return int((history[:, seen] == history[v, seen]).all(axis=1).sum())


PRESENCE = st.lists(st.lists(st.booleans(), min_size=PEOPLE, max_size=PEOPLE), min_size=1, max_size=7)


@given(PRESENCE, st.integers(1, 3), st.integers(0, 3))
def test_who_reads_the_releases_of_a_person_is_left_with_k(
    presence: list[list[bool]], k: int, more: int
) -> None:
    history, _ = run(presence, k, k + more, "drop")
    for v in range(PEOPLE):
        if (history[v] >= 0).any():
            assert candidates_in(history, v) >= k


@given(PRESENCE, st.integers(1, 3), st.integers(0, 3))
def test_who_knows_everybodys_presence_is_left_with_k_where_rows_are_kept(
    presence: list[list[bool]], k: int, more: int
) -> None:
    history, _ = run(presence, k, k + more, "keep")
    for v in range(PEOPLE):
        if (history[v] >= 0).any():
            assert int((history == history[v]).all(axis=1).sum()) >= k


@given(PRESENCE, st.sampled_from(["drop", "keep"]))
def test_everybody_here_is_shown_waits_or_was_given_up(presence: list[list[bool]], leavers: str) -> None:
    _, steps = run(presence, 2, 3, leavers)
    for step in steps:
        assert np.all((step.classes >= 0).astype(int) + step.waiting + step.given_up == 1)


def test_a_member_who_was_away_is_shown_again_while_k_never_left() -> None:
    there = [[True] * 6 + [False] * 6, [True] * 5 + [False] * 7, [True] * 6 + [False] * 6]
    history, steps = run(there, 4, 6, "drop")
    assert history[5].tolist() == [0, -1, 0]
    assert not steps[-1].given_up.any()


def test_a_class_that_fell_below_k_is_not_shown_again_in_the_epoch() -> None:
    there = [[True] * 4 + [False] * 8, [True] * 1 + [False] * 11, [True] * 4 + [False] * 8]
    history, steps = run(there, 2, 4, "drop")
    assert (history[:, 1:] == -1).all()
    assert steps[2].given_up.all()


def test_a_release_without_anybody_of_a_class_ends_nothing() -> None:
    there = [[True] * 4 + [False] * 8, [False] * 12, [True] * 4 + [False] * 8]
    history, _ = run(there, 4, 4, "drop")
    assert history[0].tolist() == [0, -1, 0]


def test_an_erasure_takes_the_whole_class_out() -> None:
    first = shown_together(Classes.none(), np.arange(8), k=2, start=4, grouping=pairs(4))
    state = taken_out(first.after, 1)
    then = shown_together(state, np.array([0, 2, 3, 4, 5, 6, 7]), k=2, start=4, grouping=pairs(4))
    assert then.classes.tolist() == [-1, -1, -1, 1, 1, 1, 1]


def test_a_grouping_with_a_small_group_is_refused() -> None:
    with pytest.raises(ParameterError, match="fewer than 4"):
        shown_together(Classes.none(), np.arange(8), k=2, start=4, grouping=lambda at: np.minimum(at // 6, 1))


def test_a_person_named_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match="twice"):
        shown_together(Classes.none(), np.array([1, 1]), k=1, start=1, grouping=pairs(1))
