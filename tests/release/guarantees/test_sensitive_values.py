"""Guarantees about sensitive values: the papers' worked examples, exact transport, and how unions behave."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from velado.data.partition import GroupCounts, ValueCounts, ValueShape
from velado.data.taxonomy import from_paths
from velado.errors import ParameterError
from velado.release.guarantees.beta_likeness import BetaLikeness
from velado.release.guarantees.entropy_l_diversity import EntropyLDiversity
from velado.release.guarantees.recursive_l_diversity import RecursiveLDiversity
from velado.release.guarantees.t_closeness import TCloseness


def counts(groups, shape=None, totals=None) -> GroupCounts:
    """Groups given as lists of value codes; 0 is a blank."""
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    codes = np.array([code for group in groups for code in group], dtype=np.int64)
    size = int(max(codes.max(), 0 if totals is None else len(totals) - 1)) + 1
    whole = None if totals is None else np.array(totals, dtype=np.int64)
    counted = ValueCounts.of(labels, len(groups), codes, size, whole, shape)
    return GroupCounts(np.array([len(group) for group in groups]), None, {"value": counted})


def test_ordered_distance_is_that_of_the_t_closeness_paper():
    # Li, Li, Venkatasubramanian 2007, section 4.3: salaries 3k..11k; {3k,4k,5k} is 0.375 from the whole
    # table and {6k,8k,11k} 0.167.
    totals = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    groups = counts([[1, 2, 3], [4, 6, 9]], ValueShape(order=np.arange(10)), totals)
    assert TCloseness(1.0, "ordered").measure(groups) == pytest.approx([0.375, 1 / 6])
    assert TCloseness(0.17, "ordered").holds_in(groups).tolist() == [False, True]


def test_ranks_follow_the_order_of_the_values_and_not_their_codes():
    # Codes 1, 2, 3 stand for 30, 10, 20; nobody in the table has code 4, so it is no step on the way.
    shape = ValueShape(order=np.array([0, 3, 1, 2, 0]))
    groups = counts([[2, 2], [1, 3]], shape, totals=[0, 1, 2, 1, 0])
    assert TCloseness(1.0, "ordered").measure(groups) == pytest.approx([(1 / 2 + 1 / 4) / 2] * 2)


def test_equal_distance_is_half_the_sum_of_differences():
    groups = counts([[1, 1, 2], [1, 2, 2, 2, 3]])
    whole = np.array([3, 4, 1]) / 8
    first, second = np.array([2, 1, 0]) / 3, np.array([1, 3, 1]) / 5
    expected = [np.abs(first - whole).sum() / 2, np.abs(second - whole).sum() / 2]
    verdict = TCloseness(0.2).check(groups)
    assert TCloseness().measure(groups) == pytest.approx(expected)
    assert verdict.achieved == pytest.approx(max(expected)) and not verdict.holds
    assert verdict.failing_groups == sum(value > 0.2 for value in expected)


PATHS = [
    ("flu", "respiratory infection", "lung disease"),
    ("pneumonia", "respiratory infection", "lung disease"),
    ("edema", "vascular", "lung disease"),
    ("gastritis", "stomach disease", "digestive disease"),
    ("ulcer", "stomach disease", "digestive disease"),
    ("colitis", "colon disease", "digestive disease"),
    ("none", "none", "none"),
]


def disease_shape() -> ValueShape:
    tree = from_paths(PATHS)
    levels = np.full((tree.leaves + 1, tree.height + 1), -1)
    levels[1:] = tree.levels
    return ValueShape(levels=levels)


def transport(cost, p, q) -> float:
    """The earth mover's distance as the linear program that defines it."""
    n = len(p)
    rows = np.zeros((2 * n, n * n))
    for i in range(n):
        rows[i, i * n : (i + 1) * n] = 1
        rows[n + i, i::n] = 1
    return float(linprog(cost.ravel(), A_eq=rows, b_eq=np.concatenate([p, q]), bounds=(0, None)).fun)


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=8),
    st.lists(st.integers(1, 7), min_size=1, max_size=12),
)
def test_hierarchical_and_ordered_distances_are_the_cost_of_the_cheapest_transport(group, rest):
    tree = from_paths(PATHS)
    shape = ValueShape(np.array([0, 4, 2, 7, 1, 3, 6, 5]), disease_shape().levels)
    both = counts([group, rest], shape, np.bincount(group + rest, minlength=8))
    q = np.bincount(group, minlength=8)[1:] / len(group)
    p = np.bincount(group + rest, minlength=8)[1:] / len(group + rest)
    first, second = (side.ravel() for side in np.meshgrid(np.arange(7), np.arange(7), indexing="ij"))
    ancestor = tree.common_ancestor(np.minimum(first, second), np.maximum(first, second))
    # The height of a node is the first level at which both leaves share it.
    shared = (tree.levels[first] == tree.levels[second]).argmax(axis=1)
    assert (tree.levels[first, shared] == ancestor).all()
    cost = (shared / tree.height).reshape(7, 7)
    found = TCloseness(1.0, "hierarchical").measure(both)[0]
    assert found == pytest.approx(transport(cost, p, q), abs=1e-7)
    present = np.flatnonzero(p > 0)
    rank = np.argsort(np.argsort(shape.order[1:][present]))
    line = np.abs(rank[:, None] - rank[None, :]) / max(present.size - 1, 1)
    found = TCloseness(1.0, "ordered").measure(both)[0]
    assert found == pytest.approx(transport(line, p[present], q[present]), abs=1e-7)


def test_distances_do_not_depend_on_the_size_of_the_blocks(monkeypatch):
    random = np.random.default_rng(0)
    groups = counts([random.integers(0, 8, 6).tolist() for _ in range(40)], disease_shape(), None)
    whole = TCloseness(1.0, "hierarchical").measure(groups)
    monkeypatch.setattr("velado.release.guarantees._known_values._BLOCK_CELLS", 21)
    assert TCloseness(1.0, "hierarchical").measure(groups) == pytest.approx(whole)


def test_entropy_diversity_counts_effective_values():
    groups = counts([[1, 2, 3], [1, 1, 1, 2], [1, 2, 0, 0]])
    shares = np.array([0.75, 0.25])
    expected = [3.0, float(np.exp(-(shares * np.log(shares)).sum())), 2.0]
    assert EntropyLDiversity(2.0).measure(groups) == pytest.approx(expected)
    assert EntropyLDiversity(2.0).holds_in(groups).tolist() == [True, False, True]
    assert EntropyLDiversity(3.0).holds_in(groups).tolist() == [True, False, False]
    assert EntropyLDiversity(2.5).least_rows == 3
    verdict = EntropyLDiversity(2.0).check(groups)
    assert (verdict.holds, verdict.failing_groups, verdict.failing_rows) == (False, 1, 4)


def test_recursive_diversity_compares_the_commonest_with_the_rarer_values():
    # Counts 4, 2, 1, 1: with l = 2 the rarer are 2 + 1 + 1 = 4, with l = 3 they are 2.
    groups = counts([[1, 1, 1, 1, 2, 2, 3, 4], [1, 1]])
    assert RecursiveLDiversity(1.5, 2).holds_in(groups).tolist() == [True, False]
    assert RecursiveLDiversity(1.0, 2).holds_in(groups).tolist() == [False, False]  # 4 < 1 x 4 is false
    assert RecursiveLDiversity(2.5, 3).holds_in(groups).tolist() == [True, False]
    assert RecursiveLDiversity(2.0, 3).holds_in(groups).tolist() == [False, False]
    assert RecursiveLDiversity(9.0, 2).check(groups).achieved == np.inf


def test_a_value_that_the_table_does_not_hold_breaks_beta_likeness_and_one_that_all_have_does_not():
    alone, everyone = counts([[1, 1], [2, 2]], totals=[0, 2, 0]), counts([[1, 1], [1]])
    for form in ("basic", "enhanced"):
        assert BetaLikeness(100.0, form).measure(alone).tolist() == [0.0, np.inf]
        assert BetaLikeness(100.0, form).holds_in(everyone).tolist() == [True, True]


def test_beta_likeness_bounds_the_relative_gain():
    totals = [0, 80, 20]
    groups = counts([[1, 1, 2, 2], [1, 1, 1, 1]], None, totals)
    # Value 2: from 0.2 to 0.5 is a gain of 1.5; value 1: from 0.8 to 1 is a gain of 0.25.
    assert BetaLikeness(1.5, "basic").holds_in(groups).tolist() == [True, True]
    assert BetaLikeness(1.4, "basic").holds_in(groups).tolist() == [False, True]
    # Enhanced: value 1 may gain no more than -ln 0.8 = 0.223, so that it never becomes certain.
    assert BetaLikeness(1.5, "enhanced").holds_in(groups).tolist() == [True, False]
    assert BetaLikeness(1.5, "enhanced").check(groups).achieved == pytest.approx(0.25 / -np.log(0.8))


GUARANTEES = [
    EntropyLDiversity(1.5),
    RecursiveLDiversity(2.0, 2),
    TCloseness(0.3, "equal"),
    TCloseness(0.3, "ordered"),
    TCloseness(0.3, "hierarchical"),
    BetaLikeness(1.0, "basic"),
    BetaLikeness(1.0, "enhanced"),
]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
@given(
    one=st.lists(st.integers(0, 7), min_size=1, max_size=10),
    two=st.lists(st.integers(0, 7), min_size=1, max_size=10),
    rest=st.lists(st.integers(0, 7), max_size=20),
)
def test_what_holds_in_two_groups_holds_in_their_union(guarantee, one, two, rest):
    shape = ValueShape(np.arange(8), disease_shape().levels)
    totals = np.bincount(one + two + rest, minlength=8)
    if guarantee.holds_in(counts([one, two], shape, totals)).all():
        assert guarantee.holds_in(counts([one + two], shape, totals)).all()


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
def test_a_group_without_a_known_value_never_holds(guarantee):
    groups = counts(
        [[0, 0, 0], [1, 2, 3]], ValueShape(np.arange(8), disease_shape().levels), [3, 1, 1, 1, 0, 0, 0, 0]
    )
    assert guarantee.holds_in(groups).tolist() == [False, True]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
def test_no_sensitive_column_is_an_error(guarantee):
    with pytest.raises(ParameterError, match="sensitive"):
        guarantee.check(GroupCounts(np.array([5])))


@pytest.mark.parametrize("distance", ["ordered", "hierarchical"])
def test_a_distance_that_is_not_known_is_an_error(distance):
    with pytest.raises(ParameterError, match="value"):
        TCloseness(0.2, distance).holds_in(counts([[1, 2]]))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (EntropyLDiversity, {"l": 1}),
        (RecursiveLDiversity, {"c": 0}),
        (RecursiveLDiversity, {"l": 1}),
        (TCloseness, {"t": 1.1}),
        (BetaLikeness, {"beta": 0}),
    ],
)
def test_parameters_outside_their_limits_are_refused(kind, wrong):
    with pytest.raises(ParameterError):
        kind(**wrong)
