"""What is spent: every charge again by textbook formulas, every bound again by neighbours, and the noise as a distribution."""

import math
from fractions import Fraction
from itertools import product
from typing import get_args

import numpy as np
import pytest

from velado.data.schema import Column, Schema
from velado.errors import QueryRefused
from velado.query.synthetic.axes import axes_of
from velado.query.synthetic.measuring import Step, Till, measure, score, wins_adaptive
from velado.query.synthetic.microaggregate import group_sums, microaggregate, shown
from velado.query.synthetic.synthesize import Method, RowCounts
from velado.query.unit import Unit
from velado.randomness import seeded

SIZES = (3, 4, 2, 5)


def some_rows(rows: int = 400) -> RowCounts:
    random = seeded(3, "measuring")
    codes = [random.integers(0, size, rows).astype(np.int32) for size in SIZES]
    codes[1] = codes[0] + (random.random(rows) < 0.1).astype(np.int32)
    return RowCounts(SIZES, codes)


def textbook(step: Step, measure: str) -> float:
    """What a step costs by the papers: Dwork et al. 2006, Bun and Steinke 2016, Cesar and Rogers 2021."""
    ratio = step.sensitivity / step.scale
    if step.mechanism == "noisy-max":
        return 2 * ratio if measure == "epsilon" else (2 * ratio) ** 2 / 8
    return ratio if step.mechanism == "laplace" else ratio**2 / 2


# Every way there is: one that is added and then runs another under its name fails here.
@pytest.mark.parametrize("way", [one for one in get_args(Method) if one != "auto"])
@pytest.mark.parametrize("kind", ["epsilon", "rho"])
@pytest.mark.parametrize("unit", [Unit(), Unit("home", 3)])
def test_all_steps_together_cost_the_total_by_the_textbook(way, kind, unit):
    till = Till(kind, Fraction(3, 10), unit)
    rows = some_rows()
    if way == "microaggregate":
        schema = Schema(
            {
                f"c{at}": Column(f"c{at}", values=tuple("abcde"[:size]), missing="refuse")
                for at, size in enumerate(SIZES)
            }
        )
        microaggregate(axes_of(schema, unit), rows.codes, till, 20)
    else:
        model = measure(SIZES, rows, till, way)
        assert model.way == way
    again = sum(textbook(step, kind) for step in till.steps)
    assert math.isclose(again, float(till.spent), rel_tol=1e-9)
    assert Fraction(3, 10) * Fraction(999, 1000) < till.spent <= Fraction(3, 10)
    counts = [step for step in till.steps if step.what == "counts"]
    assert all(step.sensitivity == unit.rows for step in counts)


def test_a_draw_beyond_the_total_is_refused():
    till = Till("epsilon", Fraction(1), Unit())
    till.counts((0,), np.zeros(2, dtype=np.int64), Fraction(1))
    with pytest.raises(QueryRefused):
        till.counts((0,), np.zeros(2, dtype=np.int64), Fraction(1, 100))
    assert len(till.steps) == 1


def test_one_row_more_moves_counts_and_scores_by_at_most_one():
    """Every table of up to three rows over 2 x 2 cells, and every row that may come."""
    till = Till("epsilon", Fraction(1), Unit())
    near = np.array([[1, 0], [0, 2]])
    rows = list(product(range(2), range(2)))
    for size in range(4):
        for table in product(rows, repeat=size):
            before = np.zeros((2, 2), dtype=np.int64)
            for a, b in table:
                before[a, b] += 1
            for a, b in rows:
                after = before.copy()
                after[a, b] += 1
                assert np.abs(after - before).sum() <= till.reach()
                assert abs(score(after, near, 0.7) - score(before, near, 0.7)) <= till.reach()


NUMBERS = Schema(
    {
        "age": Column("age", kind="numeric", bounds=(0, 9), step=1.0),
        "ward": Column("ward", values=("a", "b", "c")),
        "cost": Column("cost", kind="numeric", bounds=(0, 7), step=1.0, missing="refuse"),
    }
)


def test_a_unit_moves_the_sums_of_groups_by_no_more_than_is_hidden():
    """Random tables, units that come anywhere; the bounds hold, and are not far from what happens."""
    random = seeded(4, "groups")
    tightest = [0.0, 0.0]
    for _ in range(400):
        unit_rows, size, groups = (
            int(random.integers(1, 4)),
            int(random.integers(1, 6)),
            int(random.integers(1, 5)),
        )
        axes = axes_of(NUMBERS, Unit(), bins=20)
        rows = int(random.integers(0, groups * size + 4))
        table = [random.integers(0, axis.size, rows).astype(np.int32) for axis in axes]
        come = [random.integers(0, axis.size, unit_rows).astype(np.int32) for axis in axes]
        more = [np.concatenate([old, new]) for old, new in zip(table, come, strict=True)]
        before = group_sums(axes, table, groups, size, unit_rows)
        after = group_sums(axes, more, groups, size, unit_rows)
        for one, other in zip(before, after, strict=True):
            moved = (one.exact - other.exact).astype(float)
            assert np.abs(moved).sum() <= one.l1
            assert math.sqrt((moved**2).sum()) <= one.l2
            tightest = [
                max(tightest[0], np.abs(moved).sum() / one.l1),
                max(tightest[1], np.linalg.norm(moved) / one.l2),
            ]
    assert min(tightest) > 0.7


def test_averages_without_noise_are_those_of_the_groups():
    axes = axes_of(NUMBERS, Unit(), bins=20)
    codes = [
        np.array([0, 0, 9, 9], dtype=np.int32),
        np.array([0, 0, 2, 2], dtype=np.int32),
        np.array([1, 3, 7, 7], dtype=np.int32),
    ]
    made = microaggregate(axes, codes, Till("epsilon", Fraction(1000), Unit()), 2)
    assert (made.rows, made.groups) == (4, 2)
    age, ward, cost = shown(axes, made, seeded(0, "shown"))
    assert age.tolist() == [0, 0, 9, 9]
    assert ward.tolist() == [0, 0, 2, 2]
    assert cost.tolist() == [2, 2, 7, 7]


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_the_noise_of_counts_has_its_scale_to_a_tenth(kind):
    cells = 40_000
    till = Till(kind, Fraction(1, 50), Unit("home", 2))
    told = till.counts((0,), np.full(cells, 1000, dtype=np.int64), Fraction(1, 50))
    left = (told.counts - 1000).astype(float)
    # The variance of a Laplace sample's variance is 5 / n of it squared, of a normal one 2 / n: six deviations are below 7%.
    assert abs(left.var() / told.deviation**2 - 1) < 0.07
    assert abs(left.mean()) < 6 * told.deviation / math.sqrt(cells)
    expected = {"epsilon": math.sqrt(2) * 2 * 50, "rho": 2 / math.sqrt(2 / 50)}[kind]
    assert math.isclose(told.deviation, expected, rel_tol=0.01)


def test_whether_there_are_rounds_depends_on_figures_that_are_paid_for_or_public():
    assert wins_adaptive(30_000, 10, [5] * 9)
    assert not wins_adaptive(300, 10, [5] * 9)
    few, many = some_rows(30), some_rows(3000)
    assert measure(SIZES, few, Till("epsilon", Fraction(1, 10), Unit()), "auto").way == "tree"
    assert measure(SIZES, many, Till("epsilon", Fraction(10), Unit()), "auto").way == "adaptive"
