"""Is the noise that distribution? Chi-squared of draws through a plan against the exact discrete pmf.

Every test that must pass has a false alarm below one in ten million. The same draws against a pmf whose scale is 10 %
off, either way, must be rejected: so noise that is too small by as much turns this file red. In the slow suite 2 % are seen,
by the mean size of a draw, which needs a third of the draws that chi-squared needs for it.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import chi2, norm

from velado.data.schema import Column, Schema
from velado.query.plan import carry_out, plan
from velado.query.unit import Unit
from velado.query.values import Aggregate, Query

from ...covering import one_in

CELLS = 5_000
FALSE_ALARM = 1e-7
SCHEMA = Schema(
    {
        "cell": Column("cell", values=tuple(f"c{i}" for i in range(CELLS - 1))),
        "dose": Column("dose", kind="numeric", bounds=(-1, 2), step=0.5),
    }
)
CASES = [(kind, measure) for kind in ("count", "sum") for measure in ("epsilon", "rho")]
# What the mathematics asks for, written apart from the code under test: groups of 3 rows and a reach of 4 half steps.
SENSITIVITY = {"count": 3, "sum": 12}
SPEND = {"epsilon": Fraction(3, 10), "rho": Fraction(1, 50)}


def scale_due(kind: str, measure: str) -> float:
    s, spend = SENSITIVITY[kind], float(SPEND[measure])
    return s / spend if measure == "epsilon" else s / (2 * spend) ** 0.5


@lru_cache(maxsize=4)
def draws(kind: str, measure: str, number: int) -> np.ndarray:
    column = None if kind == "count" else "dose"
    query = Query("people", (Aggregate(kind, column),), keys=("cell",))
    made = plan(query, SCHEMA, Unit("home", 3), measure, SPEND[measure])
    exact = np.arange(CELLS, dtype=np.int64)
    return np.concatenate([carry_out(made, (exact,))[0] - exact for _ in range(number // CELLS)])


def exact_pmf(measure: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(-int(40 * scale), int(40 * scale) + 1)
    weights = np.exp(-np.abs(x) / scale) if measure == "epsilon" else np.exp(-((x / scale) ** 2) / 2)
    return x, weights / weights.sum()


def size_p_value(sample: np.ndarray, measure: str, scale: float) -> float:
    """Two-sided, of the mean of |x| (of x^2 under rho), in which all that a sample says of the scale lies."""
    x, pmf = exact_pmf(measure, scale)
    power = 1 if measure == "epsilon" else 2
    sizes = np.abs(x).astype(np.float64) ** power
    mean = float(pmf @ sizes)
    deviation = float(pmf @ (sizes - mean) ** 2 / sample.size) ** 0.5
    found = float(np.mean(np.abs(sample).astype(np.float64) ** power))
    return float(2 * norm.sf(abs(found - mean) / deviation))


def p_value(sample: np.ndarray, measure: str, scale: float) -> float:
    """Chi-squared over cells that each expect at least 50 draws; the two tails are one cell each."""
    x, pmf = exact_pmf(measure, scale)
    inside = np.flatnonzero(pmf * sample.size >= 50)
    low, high = x[inside[0]], x[inside[-1]]
    expected = np.concatenate(([pmf[x < low].sum()], pmf[inside[0] : inside[-1] + 1], [pmf[x > high].sum()]))
    observed = np.bincount(np.clip(sample, low - 1, high + 1) - (low - 1), minlength=expected.size)
    expected = expected * sample.size
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), expected.size - 1))


@pytest.mark.parametrize(("kind", "measure"), one_in(2, CASES, apart=True))
def test_noise_is_the_exact_discrete_distribution_and_ten_percent_off_is_seen(kind, measure) -> None:
    sample, due = draws(kind, measure, 100_000), scale_due(kind, measure)
    assert p_value(sample, measure, due) > FALSE_ALARM
    assert p_value(sample, measure, due * 1.1) < FALSE_ALARM
    assert p_value(sample, measure, due * 0.9) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "measure"), CASES)
def test_two_percent_off_is_seen_with_more_draws(kind, measure) -> None:
    # Two percent are 11 standard deviations of the mean size (under rho 15), of which 5.4 are a false alarm.
    sample, due = draws(kind, measure, 300_000), scale_due(kind, measure)
    assert p_value(sample, measure, due) > FALSE_ALARM
    assert size_p_value(sample, measure, due) > FALSE_ALARM
    assert size_p_value(sample, measure, due * 1.02) < FALSE_ALARM
    assert size_p_value(sample, measure, due * 0.98) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "measure"), CASES)
def test_draws_of_different_cells_have_nothing_to_do_with_each_other(kind, measure) -> None:
    sample = draws(kind, measure, 100_000).astype(np.float64)
    for lag in (1, 2, CELLS):
        correlation = np.corrcoef(sample[:-lag], sample[lag:])[0, 1]
        # Six standard deviations of a correlation of 95,000 independent pairs.
        assert abs(correlation) < 0.0195


@pytest.mark.slow
@pytest.mark.parametrize("measure", one_in(2, ["epsilon", "rho"]))
def test_a_quantile_is_chosen_with_the_chances_its_scores_give(measure) -> None:
    query = Query("people", (Aggregate("quantile", "dose", Fraction(1, 2)),), keys=("cell",))
    made = plan(query, SCHEMA, Unit("home", 3), measure, Fraction(3, 2))
    (draw,) = made.draws
    one = np.array([[4, 0, 1, 2, 5, 1, 3]], dtype=np.int64)
    scores = draw.scores(one)[0]
    chosen = np.concatenate([carry_out(made, (np.repeat(one, CELLS, axis=0),))[0] for _ in range(2)])
    expected = chances(scores / draw.scale, measure) * chosen.size
    observed = np.bincount(chosen, minlength=scores.size)
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), scores.size - 1) > FALSE_ALARM
    for factor in (0.8, 1.25):
        wrong = chances(factor * scores / draw.scale, measure) * chosen.size
        assert chi2.sf(((observed - wrong) ** 2 / wrong).sum(), scores.size - 1) < FALSE_ALARM
    # The scale itself: 2 s g / epsilon, and s g / sqrt(2 rho) for the concentrated measure, with s = 1 and g = 3.
    due = 6 / 1.5 if measure == "epsilon" else 3 / 3**0.5
    assert draw.scale == pytest.approx(due, rel=1e-9)


def chances(distance: np.ndarray, measure: str) -> np.ndarray:
    """Exponential mechanism (Gumbel noise) under rho; the largest of -score + exponential noise under epsilon."""
    if measure == "rho":
        weights = np.exp(-distance)
        return weights / weights.sum()
    # -d_i + E_i is the largest: i stands at z with density exp(-(z + d_i)), and every other one lies below z.
    z = np.linspace(-distance.max(), 60, 600_001)
    middle = (z[:-1] + z[1:]) / 2
    noise = [middle + d for d in distance]
    density = [np.where(e > 0, np.exp(-np.maximum(e, 0)), 0.0) for e in noise]
    below = [np.where(e > 0, -np.expm1(-np.maximum(e, 0)), 0.0) for e in noise]
    wins = [d * np.prod(below[:i] + below[i + 1 :], axis=0) for i, d in enumerate(density)]
    return np.array([float(win.sum() * (z[1] - z[0])) for win in wins])
