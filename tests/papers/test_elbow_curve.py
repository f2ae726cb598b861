"""The elbow of a column: the least cost there is, by dynamic programming, against every way to cut a few values."""

from itertools import combinations

import numpy as np
import pytest

from velado.papers.das.elbow_curve import least_costs


def brute(values: np.ndarray, k: int) -> float:
    """The least cost over all ways to cut the sorted distinct values into k runs."""
    distinct = np.unique(values)
    cuts = combinations(range(1, distinct.size), k - 1)
    parts = (np.split(distinct, list(cut)) for cut in cuts)
    return min(sum(float(((part - part.mean()) ** 2).sum()) for part in made) for made in parts)


@pytest.mark.parametrize("seed", range(5))
def test_the_cost_is_the_least_of_all_cuts(seed) -> None:
    values = np.random.default_rng(seed).normal(size=9).round(2)
    costs, seconds = least_costs(values)
    distinct = np.unique(values).size
    assert costs == pytest.approx([brute(values, k) for k in range(1, distinct + 1)], abs=1e-9)
    assert seconds.size == distinct and (seconds >= 0).all()


def test_equal_values_count_once() -> None:
    assert least_costs(np.array([1.0, 1.0, 3.0]))[0].tolist() == [2.0, 0.0]
