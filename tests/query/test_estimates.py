"""Values and intervals: the layout of the frame, the arithmetic, and coverage of at least what is stated."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.query.answer import frame
from velado.query.noise import half_width
from velado.query.plan import carry_out, plan
from velado.query.unit import Unit
from velado.query.values import Aggregate, Query

CELLS = 1_000
SCHEMA = Schema(
    {
        "sex": Column("sex", values=("F", "M")),
        "place": Column("place", values=("a", "b", "c")),
        "cell": Column("cell", values=tuple(f"c{i}" for i in range(CELLS - 1))),
        "age": Column("age", kind="numeric", bounds=(0, 120), step=1),
        "dose": Column("dose", kind="numeric", bounds=(-1, 2), step=0.1),
    }
)
SURE = Fraction(19, 20)


def planned(*aggregates, keys=(), measure="epsilon", spend=Fraction(1), extremes="quantile"):
    return plan(Query("people", aggregates, keys=keys), SCHEMA, Unit(), measure, spend, extremes)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_counts_and_their_intervals_are_possible_and_large_ones_stay() -> None:
    made = planned(Aggregate("count", alias="n"), keys=("sex",))
    t = half_width("laplace", made.draws[0].scale, SURE)
    out = frame(made, (numbers(100, 1, 0),), SURE)
    assert out.schema == {"sex": pl.String, "n": pl.Int64, "n_low": pl.Int64, "n_high": pl.Int64}
    assert out["sex"].to_list() == ["F", "M", None]
    assert out["n"].to_list() == [100, 1, 0]
    assert out["n_low"].to_list() == [100 - t, 0, 0]
    assert out["n_high"].to_list() == [100 + t, 1 + t, t]
    # What was lifted to 0 is taken from small others, at most t from each; an interval that is wholly impossible is that of a drawn 0.
    out = frame(made, (numbers(100, 2 * t - 1, -2 * t - 1),), SURE)
    assert out["n"].to_list() == [100, t - 1, 0] and out["n_low"].to_list() == [100 - t, t - 1, 0]
    assert out["n_high"].to_list() == [100 + t, 3 * t - 1, t]
    out = frame(made, (numbers(100, 2 * t - 1, -2),), SURE)
    assert out["n"].to_list() == [100, 2 * t - 3, 0] and 2 * t < 100
    # At a confidence of less the numbers are the same, and an interval that one left is widened to hold it.
    half = frame(made, (numbers(100, 2 * t - 1, -2 * t - 1),), Fraction(1, 2))
    assert half["n"].to_list() == [100, t - 1, 0] and (half["n_low"] <= half["n"]).all()


def test_a_single_count_or_sum_is_never_on_the_wrong_side_of_zero() -> None:
    made = planned(Aggregate("count", alias="n"), Aggregate("sum", "age", alias="s"))
    n, s = (half_width("laplace", draw.scale, SURE) for draw in made.draws)
    assert frame(made, (numbers(-254), numbers(-90_000)), SURE).row(0) == (0, 0, n, 0.0, 0.0, float(s))
    # A column of both signs has sums of both.
    free = planned(Aggregate("sum", "dose", alias="s"))
    assert frame(free, (numbers(-30),), SURE)["s"][0] == -3.0
    below = Schema({"debt": Column("debt", kind="numeric", bounds=(-50, 0), step=1)})
    made = plan(Query("t", (Aggregate("sum", "debt", alias="s"),)), below, Unit(), "epsilon", Fraction(1))
    t = float(half_width("laplace", made.draws[0].scale, SURE))
    assert frame(made, (numbers(400),), SURE).row(0) == (0.0, -t, 0.0)
    assert frame(made, (numbers(-1000),), SURE).row(0) == (-1000.0, -1000.0 - t, min(0.0, -1000.0 + t))


def test_keys_stand_row_major_with_the_last_one_fastest() -> None:
    made = planned(Aggregate("count", alias="n"), keys=("sex", "place"))
    out = frame(made, (np.arange(12, dtype=np.int64),), SURE)
    assert out["sex"].to_list() == ["F"] * 4 + ["M"] * 4 + [None] * 4
    assert out["place"].to_list() == ["a", "b", "c", None] * 3
    assert out["n"].to_list() == list(range(12))


def test_a_sum_is_a_whole_number_of_steps_rounded_once() -> None:
    made = planned(Aggregate("sum", "dose", alias="s"))
    t = half_width("laplace", made.draws[0].scale, SURE)
    out = frame(made, (numbers(3),), SURE).row(0)
    assert out == (0.3, float(Fraction(3 - t, 10)), float(Fraction(3 + t, 10)))


def test_sums_and_averages_depend_on_the_drawn_integers_alone_and_lie_on_the_grid() -> None:
    made = planned(Aggregate("sum", "dose", alias="s"), Aggregate("avg", "dose", alias="a"), keys=("cell",))
    zero = tuple(np.zeros(CELLS, dtype=np.int64) for _ in made.needs)
    drawn = carry_out(made, zero)
    out = frame(made, drawn, SURE)
    allowed = {float(Fraction(index, 10)) for index in range(-2_000, 2_001)}
    assert set(out["s"].to_list()) <= allowed
    assert frame(made, tuple(array.copy() for array in drawn), SURE).equals(out)
    # Two exact sums whose noisy integers meet give one and the same float, whatever the rows were.
    shifted = frame(made, carry_out(made, tuple(array + 1 for array in zero)), SURE)
    assert set(shifted["s"].to_list()) <= allowed


def test_an_average_is_centre_plus_quotient_and_never_leaves_the_bounds() -> None:
    made = planned(Aggregate("avg", "age", alias="a"))
    assert frame(made, (numbers(-2_000), numbers(100)), SURE)["a"][0] == 40.0
    # A quotient beyond the bounds is the bound, with the interval of one that lies there: not surer than it.
    assert frame(made, (numbers(-200_000), numbers(100)), SURE).equals(
        frame(made, (numbers(-6_000), numbers(100)), SURE)
    )
    value, low, high = frame(made, (numbers(-200_000), numbers(100)), SURE).row(0)
    assert value == low == 0.0 and high > 3
    # Where the count may be nothing, anything is possible and the average is unknown, never a bare number.
    assert frame(made, (numbers(30), numbers(-5)), SURE).row(0) == (None, 0.0, 120.0)
    # So it is where the quotient is none that can be while most of the scale is possible; at the bound itself it was drawn.
    value, low, high = frame(made, (numbers(-3_000), numbers(5)), SURE).row(0)
    assert value is None and low == 0.0 and 60 < high < 120
    assert frame(made, (numbers(-60 * 5), numbers(5)), SURE).row(0) == (0.0, low, high)
    # A fifth of the scale is still no reason for a bare 0; a twentieth is.
    value, low, high = frame(made, (numbers(-6_000), numbers(25)), SURE).row(0)
    assert value is None and low == 0.0 and 12 < high < 40
    value, low, high = frame(made, (numbers(-60_000), numbers(250)), SURE).row(0)
    assert value == low == 0.0 and high < 6


def test_a_histogram_has_one_line_per_key_and_bin() -> None:
    made = planned(Aggregate("histogram", "dose", bins=3, alias="h"), keys=("sex",))
    out = frame(made, (np.arange(9, dtype=np.int64).reshape(3, 3),), SURE)
    assert out.columns == ["sex", "h_bin", "h", "h_low", "h_high"]
    assert out["h_bin"].to_list() == ["[-1, 0)", "[0, 1)", "[1, 2]"] * 3
    assert out["sex"].to_list() == ["F"] * 3 + ["M"] * 3 + [None] * 3
    assert out["h"].to_list() == list(range(9))


def test_a_quantile_of_perhaps_nobody_is_unknown_where_a_count_stands_beside_it() -> None:
    made = planned(
        Aggregate("quantile", "age", Fraction(1, 2), alias="m"), Aggregate("count", alias="n"), keys=("sex",)
    )
    at = next(place for place, draw in enumerate(made.draws) if draw.at is None)
    t = half_width("laplace", made.draws[at].scale, SURE)
    drawn = [numbers(30, 30, 30), numbers(30, 30, 30)]
    drawn[at] = numbers(t + 1, t, -4)
    out = frame(made, tuple(drawn), SURE)
    assert out["m"].to_list() == [30.0, None, None]
    # The same at every confidence, for the numbers are the same.
    assert frame(made, tuple(drawn), Fraction(1, 2))["m"].equals(out["m"])
    # A count of another column's values says nothing of it, and without a count nothing is known.
    for others in ((Aggregate("count", "dose", alias="n"),), ()):
        other = planned(Aggregate("quantile", "age", Fraction(1, 2), alias="m"), *others, keys=("sex",))
        shown = frame(other, tuple(numbers(0, 0, 0) for _ in other.draws), SURE)
        assert shown["m"].null_count() == 0


def test_a_quantile_is_its_candidate_and_claims_no_interval() -> None:
    made = planned(Aggregate("quantile", "dose", Fraction(1, 2), alias="q"), keys=("sex",))
    out = frame(made, (numbers(0, 13, 30),), SURE)
    assert out["q"].to_list() == [-1.0, 0.3, 2.0]
    assert out["q_low"].null_count() == out["q_high"].null_count() == 3


def test_a_declared_bound_is_answered_without_a_draw() -> None:
    made = planned(
        Aggregate("min", "dose", alias="least"), Aggregate("max", "dose", alias="most"), extremes="bound"
    )
    assert carry_out(made, ()) == ()
    assert frame(made, (), SURE).row(0) == (-1.0, None, None, 2.0, None, None)


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("confidence", [Fraction(4, 5), Fraction(19, 20)])
def test_intervals_hold_the_exact_answer_at_least_as_often_as_stated(measure, confidence) -> None:
    made = planned(
        Aggregate("count", alias="n"),
        Aggregate("sum", "age", alias="s"),
        Aggregate("avg", "age", alias="a"),
        keys=("cell",),
        measure=measure,
        # Little enough that one step of a count is a small part of its interval.
        spend=Fraction(1, 2) if measure == "epsilon" else Fraction(1, 50),
    )
    rng = np.random.default_rng(11)
    counts = rng.integers(1, 60, CELLS)
    sums = np.array([rng.integers(0, 121, n).sum() for n in counts])
    exact = {"n": counts, "s": sums, "a": sums / counts}
    by_need = (counts, sums, sums - 60 * counts, counts)
    rounds = 8
    kept = dict.fromkeys(exact, 0)
    for _ in range(rounds):
        out = frame(made, carry_out(made, by_need), confidence)
        for name, truth in exact.items():
            low, high = out[f"{name}_low"].to_numpy(), out[f"{name}_high"].to_numpy()
            kept[name] += int(((low <= truth + 1e-9) & (truth - 1e-9 <= high)).sum())
    trials = rounds * CELLS
    # Five and a half standard deviations below nominal: a true coverage of it fails once in fifty million runs.
    least = trials * float(confidence) - 5.5 * (trials * float(confidence * (1 - confidence))) ** 0.5
    assert min(kept.values()) >= least, kept
    # An interval twice too wide would pass the line above: counts and sums must not be far too sure either.
    for name in ("n", "s"):
        assert kept[name] <= trials * (float(confidence) + 0.06), kept
