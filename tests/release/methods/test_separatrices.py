"""The elbow is the published one, bins are never empty, and hierarchies nest."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.release.methods.das import bin_of, cut, elbow, nested

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "das.json").read_text())
FILES = {"wef": "wef/wef.csv", "adult": "adult/adult_clean.csv"}

numbers = st.lists(st.integers(-50, 50).map(lambda n: n / 4), min_size=1, max_size=60)


@pytest.mark.parametrize("table", FILES)
def test_the_elbow_is_the_published_one_in_every_column(table, data_folder):
    frame = pl.read_csv(data_folder / FILES[table])
    found = {name: elbow(frame[name].to_numpy()) for name in VECTORS["elbow"][table]}
    assert found == VECTORS["elbow"][table]


def least_cost(points, k):
    """The least cost of k clusters, by trying every way to cut the sorted points."""
    best = np.inf
    for cuts in itertools.combinations(range(1, len(points)), k - 1):
        parts = np.split(points, cuts)
        best = min(best, sum(float(((part - part.mean()) ** 2).sum()) for part in parts))
    return best


@given(st.sets(st.integers(0, 400), min_size=5, max_size=10))
def test_the_elbow_is_kneedle_on_the_least_cost_of_every_k(values):
    kneed = pytest.importorskip("kneed", reason="the peer that the knee is checked against is not installed")
    points = np.sort(np.array(list(values), dtype=float))
    ks = list(range(2, points.size))
    costs = [least_cost(points, k) for k in ks]
    knee = kneed.KneeLocator(ks, costs, S=1.0, curve="convex", direction="decreasing").knee
    if knee is not None:
        assert elbow(points) == knee


@pytest.mark.parametrize("shape", ["uniform", "normal", "lognormal"])
def test_the_elbow_found_early_is_that_of_the_whole_curve(shape):
    kneed = pytest.importorskip("kneed", reason="the peer that the knee is checked against is not installed")
    points = np.sort(getattr(np.random.default_rng(7), shape)(size=300))
    one = np.concatenate(([0.0], np.cumsum(points)))
    two = np.concatenate(([0.0], np.cumsum(points**2)))
    start, end = np.arange(300)[:, None], np.arange(300)[None, :]
    total = one[end + 1] - one[start]
    inside = two[end + 1] - two[start] - total**2 / np.maximum(end + 1 - start, 1)
    inside[start > end] = np.inf
    row, costs = inside[0], []
    for _ in range(2, 300):
        row = np.min(np.concatenate(([0.0], row[:-1]))[:, None] + inside, axis=0)
        costs.append(row[-1])
    knee = kneed.KneeLocator(list(range(2, 300)), costs, S=1.0, curve="convex", direction="decreasing").knee
    assert elbow(points) == knee


def test_few_distinct_values_have_an_elbow_too():
    assert elbow([7.0] * 5) == 1
    assert elbow([1, 2, 2]) == 2
    assert elbow([1, 2, 3]) == 2


def test_the_elbow_does_not_depend_on_repetitions_order_place_or_unit():
    values = np.random.default_rng(3).normal(size=200)
    known = elbow(values)
    assert elbow(np.repeat(values, 3)[::-1]) == known
    assert elbow(values * 1000 + 1e6) == known


def test_a_hundred_thousand_distinct_numbers_take_seconds_at_most():
    values = np.random.default_rng(0).random(100_000)
    elbow(values[:100])
    before = time.process_time()
    found = elbow(values)
    assert time.process_time() - before < 5
    assert 60 < found < 140  # the knee of a uniform column grows like 2 U^(1/3): 93


@given(numbers, st.integers(1, 12))
def test_every_value_is_in_one_bin_and_no_bin_is_empty(values, k):
    ends = cut(values, k)
    distinct = np.unique(values)
    assert 1 <= ends.size <= k
    assert ends[-1] == distinct.size - 1
    assert (np.diff(ends) > 0).all() and ends[0] >= 0
    assert np.array_equal(np.unique(bin_of(ends, distinct.size)), np.arange(ends.size))


@given(st.lists(st.integers(0, 500), min_size=1, max_size=60), st.sampled_from([2, 3, 4, 5, 7, 8, 10]))
def test_bins_end_at_numpys_closest_observation(values, k):
    ordered = np.sort(np.array(values, dtype=float))
    part = np.arange(1, k + 1)
    exact = (2 * ordered.size * part - k) % (2 * k) == 0
    wanted = np.percentile(ordered, 100 * part / k, method="closest_observation")
    ends = np.unique(ordered)[cut(values, k)]
    # Where the position falls exactly between two observations numpy's versions differ; elsewhere they agree.
    assert set(wanted[~exact]) <= set(ends)
    if not exact.any():
        assert set(ends) == set(wanted)


def test_ties_of_the_maximum_that_start_early_leave_no_empty_bin():
    assert cut([1, 9, 9, 9, 9, 9, 9, 9], 4).tolist() == [1]
    assert cut([5, 5, 5], 3).tolist() == [0]
    assert cut([1, 2, 9, 9, 9, 9, 9, 9], 4).tolist() == [1, 2]


@given(numbers, st.integers(1, 12))
def test_nested_bins_are_unions_of_the_bins_below(values, k):
    levels = nested(values, k)
    assert np.array_equal(levels[0], cut(values, k))
    assert levels[-1].tolist() == [np.unique(values).size - 1]
    for fine, coarse in itertools.pairwise(levels):
        assert set(coarse) < set(fine)
