"""Groups of whole tuples, searched: never dearer than they began, never too few rows, no tuple parted."""

from __future__ import annotations

import numpy as np
import pytest

from velado.data.counted import compressed
from velado.data.encoded import EncodedTable
from velado.data.partition import Partition
from velado.randomness import seeded
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity
from velado.release.methods import Progressive
from velado.release.methods._row_covers import RowCovers
from velado.release.methods.progressive._tuple_moves import searched_tuples
from velado.testing.examples import encoded


def drawn(rows: int, seed: int) -> EncodedTable:
    """Some counted tuples of two numbers and a category, correlated and skewed."""
    rng = np.random.default_rng(seed)
    age = rng.gamma(5, 6, rows).astype(int)
    visits = (age // 7 + rng.poisson(2, rows)).astype(int)
    town = [f"t{at}" for at in rng.zipf(1.7, rows) % 9]
    table, _ = compressed(encoded(age=age.tolist(), visits=visits.tolist(), town=town))
    return table


def runs(counts: np.ndarray, wanted: int) -> np.ndarray:
    """Groups as they come: neighbours in the order of the tuples, until they have so many rows."""
    labels, group, held = np.zeros(counts.size, dtype=np.int32), 0, 0
    for at, rows in enumerate(counts.tolist()):
        labels[at] = group
        held += rows
        if held >= wanted:
            group, held = group + 1, 0
    return np.minimum(labels, max(group - 1, 0))


def cost(data: EncodedTable, labels: np.ndarray) -> float:
    """Rows x loss of the groups' covers, from the columns alone."""
    groups = Partition.of(labels, weights=data.counts)
    total = 0.0
    for column in data.columns:
        low, high = groups.least_and_greatest(column.codes)
        total += float((column.loss(low, high) * groups.sizes).sum())
    return total


@pytest.mark.parametrize(("seed", "least"), [(0, 2), (1, 5), (2, 5), (3, 20)])
def test_a_search_in_whole_tuples_keeps_every_group_large_enough_and_costs_no_more(
    seed: int, least: int
) -> None:
    data = drawn(1500, seed)
    assert data.counts is not None
    labels = runs(data.counts, 3 * least)
    found = searched_tuples(RowCovers.of(data), data.counts, labels, least, 1.0, seed=seed, progress=silent)
    assert Partition.of(found, weights=data.counts).sizes.min() >= least
    assert bool((found >= 0).all())
    assert cost(data, found) < 0.8 * cost(data, labels)


def test_a_group_with_rows_for_two_is_cut() -> None:
    data, _ = compressed(encoded(age=[20, 20, 21, 21, 60, 60, 61, 61]))
    assert data.counts is not None
    found = searched_tuples(
        RowCovers.of(data), data.counts, np.zeros(4, dtype=np.int32), 4, 1.0, seed=0, progress=silent
    )
    assert found[0] == found[1] != found[2] == found[3]


def test_tuples_left_out_stay_out() -> None:
    data, _ = compressed(encoded(age=[20, 20, 21, 21, 60, 60, 61, 61]))
    assert data.counts is not None
    given = np.array([0, 1, 0, -1], dtype=np.int32)
    found = searched_tuples(RowCovers.of(data), data.counts, given, 2, 1.0, seed=0, progress=silent)
    assert found[3] == -1
    assert bool((found[:3] >= 0).all())


def test_progressive_on_counted_rows_comes_near_its_search_on_rows() -> None:
    rng = np.random.default_rng(7)
    age = rng.gamma(5, 6, 3000).astype(int)
    rows = encoded(age=age.tolist(), visits=(age // 7 + rng.poisson(2, 3000)).tolist())
    tuples, _ = compressed(rows)
    goal, method = Goal((KAnonymity(5),)), Progressive()
    counted = method.anonymize(tuples, goal, seeded(0, method.name), silent)
    assert counted.partition is not None
    reached = cost(tuples, counted.partition.labels) / (tuples.total * len(tuples.columns))
    whole = method.anonymize(rows, goal, seeded(0, method.name), silent)
    assert reached < float(str(counted.notes["start_loss"]))
    # Rows of one tuple cannot be parted here, which the search on rows does.
    assert reached <= 1.35 * float(str(whole.notes["searched_loss"]))


def test_the_same_seed_gives_the_same_groups_and_fast_does_not_search() -> None:
    data, goal = drawn(1500, 4), Goal((KAnonymity(5),))
    twice = [Progressive().anonymize(data, goal, seeded(3, "progressive"), silent) for _ in range(2)]
    assert twice[0].partition is not None
    assert twice[1].partition is not None
    assert np.array_equal(twice[0].partition.labels, twice[1].partition.labels)
    fast = Progressive(effort="fast").anonymize(data, goal, seeded(3, "progressive"), silent)
    assert "left out" in str(fast.notes["search"])
    assert "whole tuples" in str(twice[0].notes["search"])
