"""Possible numbers: not negative, large ones as drawn, small ones with their sum as far as each may be lowered."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from velado.query.consistency import consistent, consistent_floats, consistent_with

NUMBERS = st.lists(st.integers(-60, 60), min_size=1, max_size=7)
WIDTHS = st.integers(0, 40)
WIDE = 1 << 40


@given(NUMBERS, WIDTHS)
def test_small_numbers_keep_their_sum_as_far_as_each_may_be_lowered(drawn: list[int], width: int) -> None:
    numbers = np.array(drawn)
    out = consistent(numbers, width)
    small = numbers < 2 * width
    assert (out.min() >= 0 and np.array_equal(out[~small], numbers[~small])) or min(drawn) >= 0
    total = max(0, int(numbers[small].sum()))
    assert out[small].sum() >= total
    if out[small].sum() > total:
        # Every one that still could be lowered was lowered by all that it may be.
        assert np.array_equal(out[small], np.maximum(numbers[small] - width, 0))
    # Order is kept: who had more does not end with less.
    order = np.argsort(-numbers, kind="stable")
    assert (np.diff(out[order]) <= 0).all()


@given(NUMBERS, WIDTHS, st.randoms(use_true_random=False))
def test_a_number_is_off_by_no_more_than_is_said(noise: list[int], width: int, random) -> None:
    """Whenever its noise is within the width: by twice the width at most, and by the width where it is 0 or three widths."""
    exact = np.array([random.choice((0, 1, width, 2 * width, 3 * width, 3 * width + 7, 500)) for _ in noise])
    drawn = exact + np.array(noise)
    shown = [
        consistent(drawn, width),
        consistent_floats(drawn.astype(float), np.full(len(drawn), float(width))),
    ]
    held = np.abs(drawn - exact) <= width
    for values in shown:
        off = np.abs(values - exact)
        assert (off[held] <= 2 * width + 1e-9).all()
        plain = held & ((exact == 0) | (exact >= 3 * width))
        assert (off[plain] <= width + 1e-9).all()
        # No number leaves the interval of the drawn one.
        assert (values >= np.maximum(drawn - width, 0) - 1e-9).all()
        assert (values <= np.maximum(drawn, 0) + 1e-9).all()


@given(NUMBERS, WIDTHS)
def test_what_is_possible_already_stays(drawn: list[int], width: int) -> None:
    possible = np.abs(np.array(drawn))
    assert np.array_equal(consistent(possible, width), possible)


@given(st.lists(st.integers(-12, 12), min_size=3, max_size=3))
def test_no_possible_numbers_with_that_sum_are_nearer(drawn: list[int]) -> None:
    out = consistent(np.array(drawn), WIDE)
    total = int(out.sum())
    assert total == max(0, sum(drawn))
    best = min(
        (a - drawn[0]) ** 2 + (b - drawn[1]) ** 2 + (total - a - b - drawn[2]) ** 2
        for a in range(total + 1)
        for b in range(total - a + 1)
    )
    assert int(((out - np.array(drawn)) ** 2).sum()) == best


@given(NUMBERS, WIDTHS)
def test_children_of_a_node_add_up_whatever_was_drawn(drawn: list[int], width: int) -> None:
    values, total = np.array(drawn, dtype=float), abs(sum(drawn[:3]))
    out = consistent_with(values, np.full(len(values), float(width)), total)
    assert out.min() >= 0 and abs(out.sum() - total) < 1e-6
    if total == sum(drawn) and (out[values >= 2 * width] != values[values >= 2 * width]).any():
        # A large one is lowered only where no small one has anything left.
        assert not out[values < 2 * width].any()


def test_sums_beyond_64_bits_are_kept_exactly() -> None:
    huge = 1 << 61
    out = consistent(np.array([huge, huge, huge, huge, huge, -huge]), huge - 1)
    assert sum(out.tolist()) == 4 * huge and out.min() >= 0


def test_the_whole_error_falls_where_most_cells_are_empty_and_full_ones_stay() -> None:
    """What it is for: 20 full cells among 400, the noise of a small spend, and the same draws before and after."""
    rng = np.random.default_rng(5)
    exact = np.zeros(400, dtype=np.int64)
    exact[:20] = 300
    before = after = shift = left = 0.0
    for _ in range(40):
        drawn = exact + np.rint(rng.laplace(0, 20, 400)).astype(np.int64)
        made = consistent(drawn, 60)
        before += float(np.abs(drawn - exact).sum())
        after += float(np.abs(made - exact).sum())
        shift += float(np.maximum(drawn, 0).sum() - exact.sum())
        left += float(made.sum() - exact.sum())
        assert np.array_equal(made[drawn >= 120], drawn[drawn >= 120])
    # Setting negative ones to 0 alone would add thousands that nobody is.
    assert after < 0.3 * before and shift / 40 > 3_000 and abs(left) / 40 < 500
