"""What one unit can move, checked against every way to remove one from small tables."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import QueryRefused
from velado.query.needs import Grid, GridCells, GridSum, Rows
from velado.query.noise import score_sensitivity, sensitivity
from velado.query.unit import Unit

AGE = Grid("age", Fraction(1), -30, 90)
GROUP = Unit("home", 4)


def test_the_bounds_are_what_the_declared_reach_says() -> None:
    assert sensitivity(Rows(), Unit(), 7) == 1
    assert sensitivity(Rows("age"), GROUP, 1) == 4
    assert sensitivity(GridSum(AGE), GROUP, 3) == 360
    assert sensitivity(GridSum(AGE, AGE.centre), GROUP, 3) == 240
    assert sensitivity(GridCells(AGE, (-30, 0, 91)), GROUP, 3) == 4
    assert score_sensitivity(99, 100, GROUP, 1) == 396
    assert score_sensitivity(1, 2, Unit(), 5) == 1


def test_a_grid_of_one_point_still_counts_as_one_step() -> None:
    assert sensitivity(GridSum(Grid("zero", Fraction(1), 0, 0)), Unit(), 1) == 1


def test_a_reach_beyond_what_noise_can_hide_is_refused() -> None:
    with pytest.raises(QueryRefused, match=r"2\^53"):
        sensitivity(GridSum(Grid("wide", Fraction(1), 0, 1 << 40)), Unit("home", 1 << 14), 1)


def test_a_dependent_row_that_changes_counts_with_its_whole_swing() -> None:
    # One row leaves (or is replaced) and nine others move by a tenth of what they could.
    tenth = Unit("home", 10, Fraction(1, 10))
    assert sensitivity(Rows(), tenth, 1) == 2
    assert sensitivity(Rows(), tenth, 3) == 4
    assert sensitivity(GridSum(AGE), tenth, 1) == 228
    assert sensitivity(GridCells(AGE, (-30, 0, 91)), tenth, 1) == 4
    assert score_sensitivity(1, 4, tenth, 1) == 8


def arrays(rows, need, cells):
    """The exact array of a need over rows (cell, index), computed row by row."""
    if isinstance(need, GridCells):
        out = np.zeros((cells, len(need.edges) - 1), dtype=np.int64)
        for cell, index in rows:
            out[cell, np.searchsorted(need.edges, index, side="right") - 1] += 1
        return out
    out = np.zeros(cells, dtype=np.int64)
    for cell, index in rows:
        out[cell] += 1 if isinstance(need, Rows) else index - need.offset
    return out


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-30, 90)), max_size=25),
    st.integers(1, 4),
    st.sampled_from(
        [Rows(), GridSum(AGE), GridSum(AGE, AGE.centre), GridSum(AGE, 88), GridCells(AGE, (-30, 0, 40, 91))]
    ),
)
def test_removing_any_unit_never_moves_more_than_claimed(rows, most, need) -> None:
    kept, seen = [], dict.fromkeys(range(4), 0)
    for unit, cell, index in rows:
        seen[unit] += 1
        if seen[unit] <= most:
            kept.append((unit, cell, index))
    whole = arrays([row[1:] for row in kept], need, 3)
    for gone in range(4):
        rest = arrays([row[1:] for row in kept if row[0] != gone], need, 3)
        assert np.abs(whole - rest).sum() <= sensitivity(need, Unit("home", most), 3)
