"""Possible numbers: not negative, the drawn sum kept, and none nearer to what was drawn."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from velado.query.consistency import consistent

NUMBERS = st.lists(st.integers(-60, 60), min_size=1, max_size=7)


@given(NUMBERS)
def test_numbers_are_not_negative_and_keep_their_sum(drawn: list[int]) -> None:
    out = consistent(np.array(drawn))
    assert out.min() >= 0 and out.sum() == max(0, sum(drawn))
    # Order is kept: who had more does not end with less.
    order = np.argsort(-np.array(drawn), kind="stable")
    assert (np.diff(out[order]) <= 0).all()


@given(NUMBERS)
def test_what_is_possible_already_stays(drawn: list[int]) -> None:
    possible = np.abs(np.array(drawn))
    assert np.array_equal(consistent(possible), possible)


@given(st.lists(st.integers(-12, 12), min_size=3, max_size=3))
def test_no_possible_numbers_with_that_sum_are_nearer(drawn: list[int]) -> None:
    out = consistent(np.array(drawn))
    total = int(out.sum())
    best = min(
        (a - drawn[0]) ** 2 + (b - drawn[1]) ** 2 + (total - a - b - drawn[2]) ** 2
        for a in range(total + 1)
        for b in range(total - a + 1)
    )
    assert int(((out - np.array(drawn)) ** 2).sum()) == best


def test_sums_beyond_64_bits_are_kept_exactly() -> None:
    huge = 1 << 62
    out = consistent(np.array([huge, huge, huge, -huge]))
    assert sum(out.tolist()) == 2 * huge and out.min() >= 0


def test_the_whole_error_falls_where_most_cells_are_empty() -> None:
    """What it is for: 20 full cells among 400, the noise of a small spend, and the same draws before and after."""
    rng = np.random.default_rng(5)
    exact = np.zeros(400, dtype=np.int64)
    exact[:20] = 300
    before = after = shift = 0.0
    for _ in range(40):
        drawn = exact + np.rint(rng.laplace(0, 20, 400)).astype(np.int64)
        made = consistent(drawn)
        before += float(np.abs(drawn - exact).sum())
        after += float(np.abs(made - exact).sum())
        shift += float(np.maximum(drawn, 0).sum() - exact.sum())
        assert made.sum() == drawn.sum()
    # Setting negative ones to 0 alone would add thousands that nobody is.
    assert after < 0.5 * before and shift / 40 > 3_000
