"""Scores of quantile candidates: from counts per bin as row by row, and no unit moves them further than charged."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import QueryRefused
from velado.query import noise, quantiles
from velado.query.needs import Grid
from velado.query.noise import score_sensitivity
from velado.query.unit import Unit

SMALL = Grid("x", Fraction(1), -5, 14)
WIDE = Grid("x", Fraction(1, 10), -40_000, 60_000)
LEVELS = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)


def tally(values, need):
    edges = np.array(need.edges)
    assert all(edges[0] <= value < edges[-1] for value in values)
    counts = np.bincount(np.searchsorted(edges, values, side="right") - 1, minlength=len(edges) - 1)
    return counts[None, :].astype(np.int64)


def scored(values, grid, at, chosen=None):
    chosen = chosen or quantiles.candidates(grid, 1)
    need = quantiles.cells_between(grid, chosen)
    return quantiles.scores_of(tally(values, need), quantiles.places(need, chosen), at)[0]


def direct(values, chosen, at):
    n, out = len(values), []
    for c in chosen:
        first, last = sum(v < c for v in values), sum(v <= c for v in values)
        rank = at * n
        out.append(at.denominator * (first - rank if rank < first else rank - last if rank > last else 0))
    return out


@given(st.lists(st.integers(-5, 14), max_size=30), LEVELS)
def test_scores_from_bins_equal_scores_row_by_row(values, at) -> None:
    assert scored(values, SMALL, at).tolist() == direct(values, quantiles.candidates(SMALL, 1), at)


@given(st.lists(st.integers(-40_000, 60_000), max_size=30), LEVELS)
def test_scores_of_spread_candidates_equal_scores_row_by_row(values, at) -> None:
    chosen = (-40_000, -39_999, -100, 7, 8, 50_000, 60_000)
    assert scored(values, WIDE, at, chosen).tolist() == direct(values, chosen, at)


@given(st.lists(st.integers(-5, 14), min_size=1, max_size=30), LEVELS, st.data())
def test_removing_a_unit_moves_no_score_further_than_charged(values, at, data) -> None:
    gone = data.draw(st.integers(1, len(values)))
    moved = np.abs(scored(values, SMALL, at) - scored(values[gone:], SMALL, at)).max()
    assert moved <= score_sensitivity(at.numerator, at.denominator, Unit("home", gone), 1)


@given(st.lists(st.integers(-5, 14), min_size=1, max_size=40), LEVELS)
def test_with_hardly_any_noise_the_choice_is_a_quantile(values, at) -> None:
    chosen = quantiles.candidates(SMALL, 1)
    place = noise.choose_smallest("epsilon", 1e-3, [scored(values, SMALL, at).tolist()])[0]
    # Where alpha n is whole every number between two neighbours is a quantile: numpy's lower and higher ones bound it.
    ordered, rank = sorted(values), at * len(values)
    below = ordered[math.ceil(rank) - 1]
    above = ordered[min(math.floor(rank), len(values) - 1)]
    assert below <= chosen[place] <= above
    if rank.denominator != 1:
        assert chosen[place] == below == np.quantile(values, float(at), method="inverted_cdf")


def test_a_value_many_share_beats_one_that_nobody_has() -> None:
    values = [0] * 30 + [5] * 31
    best = quantiles.candidates(SMALL, 1)[int(np.argmin(scored(values, SMALL, Fraction(1, 2))))]
    assert best == 5 == np.median(values)


def test_levels_keep_a_small_denominator_and_stay_inside() -> None:
    assert quantiles.level(Fraction(99, 100)) == Fraction(99, 100)
    assert quantiles.level(Fraction(1, 10**9)) == Fraction(1, 10_000)
    assert quantiles.level(1 - Fraction(1, 10**9)) == Fraction(9_999, 10_000)
    assert quantiles.level(Fraction("0.123456789")).denominator <= 10_000


def test_candidates_cover_the_grid_and_become_fewer_with_many_keys() -> None:
    assert quantiles.candidates(SMALL, 1) == tuple(range(-5, 15))
    spread = quantiles.candidates(WIDE, 1)
    assert len(set(spread)) == 2_000 and (spread[0], spread[-1]) == (WIDE.low, WIDE.high)
    assert len(quantiles.candidates(WIDE, 1_500)) == 200
    with pytest.raises(QueryRefused, match="too many cells"):
        quantiles.candidates(WIDE, 3_001)


def test_counts_beyond_any_table_do_not_overflow_a_score() -> None:
    chosen = quantiles.candidates(SMALL, 1)
    need = quantiles.cells_between(SMALL, chosen)
    full = np.full((1, len(need.edges) - 1), 1 << 62, dtype=np.int64)
    out = quantiles.scores_of(full, quantiles.places(need, chosen), Fraction(9_999, 10_000))
    assert out.min() >= 0 and out.max() < 1 << 62


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_the_rank_error_is_kept_at_least_as_often_as_stated(measure) -> None:
    at, confidence = Fraction(1, 4), Fraction(9, 10)
    rng = np.random.default_rng(5)
    values = rng.integers(-5, 15, 400).tolist()
    row = scored(values, SMALL, at).tolist()
    bound = quantiles.rank_error(40.0, len(row), at, confidence) * at.denominator
    places = noise.choose_smallest(measure, 40.0, [row] * 2_000)
    # 2,000 choices at 0.9: fewer than 1,720 kept has a chance below 1e-8.
    assert sum(row[place] <= bound for place in places.tolist()) >= 1_720
    assert len(set(places.tolist())) > 1
