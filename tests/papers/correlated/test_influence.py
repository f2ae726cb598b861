"""How far one row moves an answer, against removing it."""

import numpy as np
import pytest

from velado.errors import QueryRefused
from velado.papers.correlated.rank_correlation import AGGREGATIONS, influence

from . import explicit

CARS = np.array([3.0, 1.0, 2.0, 6.0])  # table 5 of the source
ALL = np.ones(4, dtype=bool)


def test_the_cars_of_the_source_have_sensitivity_six() -> None:
    found = influence("sum", ALL, CARS)
    assert found.answer == 12
    assert found.of_row.tolist() == [3, 1, 2, 6]  # table 6: 9, 11, 10 and 6 cars are left
    assert found.of_row.max() == 6


@pytest.mark.parametrize("kind", AGGREGATIONS)
@pytest.mark.parametrize("seed", range(5))
def test_influence_is_what_removing_the_row_does(kind, seed) -> None:
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=60) * 5, 1)
    inside = rng.random(60) < 0.6
    found = influence(kind, inside, values)
    assert np.allclose(found.of_row, explicit.influence(kind, inside, values), rtol=0, atol=1e-12)
    assert not found.of_row[~inside].any()


def test_a_shared_extreme_moves_nothing() -> None:
    assert not influence("max", ALL, np.array([6.0, 1.0, 2.0, 6.0])).of_row.any()
    assert influence("min", ALL, np.array([6.0, 1.0, 2.0, 6.0])).of_row.tolist() == [0, 1, 0, 0]


def test_a_missing_value_is_not_in_the_answer() -> None:
    found = influence("avg", ALL, np.array([3.0, np.nan, 2.0, 7.0]))
    assert found.answer == 4
    assert found.inside.tolist() == [True, False, True, True]
    assert found.of_row[1] == 0


@pytest.mark.parametrize("kind", AGGREGATIONS)
def test_an_empty_answer_is_refused(kind) -> None:
    with pytest.raises(QueryRefused):
        influence(kind, np.zeros(4, dtype=bool), CARS)


def test_the_mean_of_one_row_is_refused_and_its_sum_is_not() -> None:
    one = np.array([False, True, False, False])
    with pytest.raises(QueryRefused):
        influence("avg", one, CARS)
    assert influence("sum", one, CARS).of_row.tolist() == [0, 1, 0, 0]
