"""Guarantees that compare groups with a wider population."""

import numpy as np
import pytest

from velado.data.partition import GroupCounts
from velado.errors import ParameterError
from velado.release.guarantees.delta_presence import DeltaPresence
from velado.release.guarantees.k_map import KMap


def groups(rows, population, unmatched=0) -> GroupCounts:
    return GroupCounts(np.array(rows), None, {}, np.array(population), unmatched)


def test_delta_presence_is_that_of_the_arx_example():
    # Source: ARX, TestAnonymization.java, nine people of whom five are in the research table; at
    # (47*, *, America) and (48*, *, Europe) three of six and two of three are present.
    counted = groups([3, 2], [6, 3])
    assert DeltaPresence(0.5, 2 / 3).check(counted).holds
    assert DeltaPresence(0.5, 0.6).holds_in(counted).tolist() == [True, False]
    assert DeltaPresence(0.55, 0.7).holds_in(counted).tolist() == [False, True]


def test_the_verdict_names_the_bound_that_is_broken():
    low = DeltaPresence(0.55, 0.7).check(groups([3, 2], [6, 3]))
    assert (low.holds, low.needed, low.achieved) == (False, 0.55, 0.5)
    high = DeltaPresence(0.0, 0.6).check(groups([3, 2], [6, 3]))
    assert (high.needed, high.achieved, high.failing_groups, high.failing_rows) == (0.6, 2 / 3, 1, 2)


def test_people_who_match_no_group_are_known_to_be_absent():
    counted = groups([3, 2], [6, 3], unmatched=1)
    assert DeltaPresence(0.0, 0.7).check(counted).holds
    broken = DeltaPresence(0.1, 0.7).check(counted)
    assert (broken.holds, broken.achieved, broken.failing_groups) == (False, 0.0, 2)
    assert DeltaPresence(0.1, 0.7, unmatched="ignored").check(counted).holds


def test_k_map_counts_the_population_and_not_the_table():
    counted = groups([1, 4], [7, 4])
    assert KMap(5).holds_in(counted).tolist() == [True, False]
    verdict = KMap(5).check(counted)
    assert (verdict.holds, verdict.achieved, verdict.failing_rows) == (False, 4, 4)
    assert KMap(4).check(counted).holds


@pytest.mark.parametrize("guarantee", [KMap(5), DeltaPresence(0.0, 0.5)], ids=repr)
def test_no_population_is_an_error(guarantee):
    with pytest.raises(ParameterError, match="population"):
        guarantee.check(GroupCounts(np.array([5])))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (KMap, {"k": 1}),
        (DeltaPresence, {"least": 0.5, "most": 0.4}),
        (DeltaPresence, {"most": 1.01}),
        (DeltaPresence, {"most": -0.01, "least": -0.02}),
        (DeltaPresence, {"least": -0.01}),
        (DeltaPresence, {"least": 1.01, "most": 1.01}),
    ],
)
def test_parameters_outside_their_limits_are_refused(kind, wrong):
    with pytest.raises(ParameterError):
        kind(**wrong)


def test_parameters_on_their_limits_are_taken():
    assert KMap(2).needed == 2
    assert DeltaPresence(0.0, 0.0).holds_in(groups([1], [9])).tolist() == [False]
    assert DeltaPresence(1.0, 1.0).holds_in(groups([9, 8], [9, 9])).tolist() == [True, False]
    assert DeltaPresence(0.5, 0.5).check(groups([1, 3], [2, 6])).holds


def test_a_group_that_is_nobody_of_the_population_breaks_delta_presence():
    verdict = DeltaPresence(0.0, 1.0).check(groups([2, 2], [2, 0]))
    assert (verdict.holds, verdict.achieved, verdict.failing_groups) == (False, np.inf, 1)
