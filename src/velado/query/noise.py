"""How far one unit can move an answer, the noise that hides it, and how wide that is.

The only place that draws noise, and the only one that imports OpenDP (features: `contrib` alone).

Every mechanism is discrete and adds to, or chooses among, whole numbers. What it costs is what OpenDP's own map of the
measurement says for the stated sensitivity; no formula of ours is charged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Annotated, Any, Literal

import numpy as np

from velado.errors import EngineError, MissingExtra, QueryRefused
from velado.query.budget import Amount, Budget, Measure, exact
from velado.query.needs import Counts, GridCells, GridSum, Need, Rows
from velado.query.unit import Unit
from velado.settings import Setting, checked_argument
from velado.text import say

# Sensitivity: how far one unit can move what an engine tallies, from the declared unit and grid alone, never from a row.
#
# Without a dependence bound, neighbours differ by one whole unit, added or removed, and the engine lets at most *rows* of
# its rows count. Every row adds a vector of L1 length at most *reach* to the array, so the array moves by at most
# reach x rows in L1. The L2 move is never longer than the L1 move, and is as long when all rows fall in one cell: one
# bound serves both.
#
# With a dependence bound d the promise is about one row: it goes (or another of its group takes its place), and each of
# the others *changes* by at most the fraction d of what it could. A row that changes may leave one cell and enter
# another, so it moves the array by its *swing*, not by its reach: the bound is swing x (1 + (rows - 1) d), rounded up.

# OpenDP reads distances as 64-bit whole numbers; below this they are also exact as floats.
MOST_SENSITIVITY = 1 << 53


def sensitivity(need: Need, unit: Unit, cells: int) -> int:
    """The most one unit moves the array of *need* over *cells* keys, in L1 and in L2; at least 1.

    Rows: a row adds 1 to one cell. GridCells: a row adds 1 to one bin of one cell, whatever the number of bins.
    GridSum: a row adds (index - offset) to one cell, and low <= index <= high because the grid clamps.

    >>> from fractions import Fraction
    >>> from velado.query.needs import Grid
    >>> sensitivity(GridSum(Grid("age", Fraction(1), 0, 120)), Unit("household", rows=4), cells=1)
    480
    """
    match need:
        case Rows():
            return _moved(unit, 1, 1 if cells == 1 else 2)
        case GridCells():
            return _moved(unit, 1, 2)
        case GridSum(grid, offset):
            low, high = grid.low - offset, grid.high - offset
            reach = max(abs(low), abs(high))
            return _moved(unit, reach, max(high, 0) - min(low, 0) if cells == 1 else 2 * reach)


def score_sensitivity(numerator: int, denominator: int, unit: Unit, cells: int) -> int:
    """The most one unit moves any quantile score of level numerator/denominator, added up over the keys.

    A row changes both terms of `scores_of` by at most max(a, b - a), and a maximum moves no more than its terms.
    A unit with g_k rows in key k moves that key's scores by g_k max(a, b - a) in the largest norm, and sum g_k <= g.

    >>> score_sensitivity(9, 10, Unit(), cells=1)
    9
    """
    reach = max(numerator, denominator - numerator)
    return _moved(unit, reach, denominator if cells == 1 else 2 * reach)


def _moved(unit: Unit, reach: int, swing: int) -> int:
    """Rows times reach, or with a declared dependence the swing of one row and its share of the others'."""
    most = max(1, unit.times(reach if unit.dependence is None else swing))
    if most > MOST_SENSITIVITY:
        raise QueryRefused(
            "One unit could move this answer by more than 2^53 steps of the column's grid.",
            "Noise that hides so much cannot be drawn exactly.",
            "Declare a coarser step, narrower bounds, or fewer rows for each group.",
        )
    return most


try:
    import opendp.prelude as dp
except ImportError:  # pragma: no cover - exercised where the extra is not installed
    raise MissingExtra(
        "OpenDP is not installed.", "It draws the noise of every private answer.", "Install velado[query]."
    ) from None

dp.enable_features("contrib")

Mechanism = Literal["laplace", "gaussian", "noisy-max"]

# Beyond this scale noise would crowd the 64-bit range, and no answer would be of use.
MOST_SCALE = 2.0**50
WIDEST = 1 << 62
# Shares below one over this are refused before they are turned into a float.
LEAST_SHARE = 1 << 200


@lru_cache(maxsize=512)
def measurement(mechanism: Mechanism, measure: Measure, scale: float) -> Any:
    """OpenDP's measurement; building one takes about 0.1 ms, so the last ones are kept. It holds no data.

    >>> measurement("laplace", "epsilon", 2.0).map(1)
    0.5
    """
    numbers = dp.vector_domain(dp.atom_domain(T="i64"))
    if mechanism == "laplace":
        return dp.m.make_laplace(numbers, dp.l1_distance(T="i64"), scale=scale, MO="MaxDivergence")
    if mechanism == "gaussian":
        return dp.m.make_gaussian(
            numbers, dp.l2_distance(T="i64"), scale=scale, MO="ZeroConcentratedDivergence"
        )
    divergence = dp.max_divergence() if measure == "epsilon" else dp.zero_concentrated_divergence()
    return dp.m.make_noisy_max(numbers, dp.linf_distance(T="i64"), divergence, scale=scale, negate=True)


@lru_cache(maxsize=4096)
def calibrate(
    mechanism: Mechanism, measure: Measure, sensitivity: int, asked: Fraction
) -> tuple[float, Fraction]:
    """The smallest scale, to a few last bits, whose map stays within *asked*, and what that map charges exactly.

    sensitivity / epsilon in floating point often maps to more than epsilon; so the scale is stepped up, one float and
    then two, four ... at a time, until the map itself agrees.

    >>> scale, charge = calibrate("laplace", "epsilon", 1, Fraction(1, 3))
    >>> round(scale, 6), charge <= Fraction(1, 3)
    (3.0, True)
    """
    if asked * LEAST_SHARE < 1:
        scale = math.inf
    elif mechanism == "laplace":
        scale = float(sensitivity / asked)
    elif measure == "epsilon":
        scale = float(2 * sensitivity / asked)
    else:
        # One formula for both: the Gaussian's (s / scale)^2 / 2, and (2 s / scale)^2 / 8 of the noisy maximum.
        scale = sensitivity / math.sqrt(2 * asked)
    if not scale < MOST_SCALE:
        raise QueryRefused(
            "The share of the budget for this answer is too small.",
            "Its noise would be larger than any number the answer could hold.",
            "Spend more on the query, or ask for fewer things at once.",
        )
    scale = max(scale, 2.0**-20)
    steps = 1
    while (charge := Fraction(measurement(mechanism, measure, scale).map(sensitivity))) > asked:
        scale += steps * math.ulp(scale)
        steps *= 2
    return scale, charge


def add(mechanism: Literal["laplace", "gaussian"], measure: Measure, scale: float, values: Counts) -> Counts:
    """The values with independent noise of that scale; saturates at the 64-bit limits, which tells nothing more.

    >>> add("laplace", "epsilon", 1.0, np.zeros(3, dtype=np.int64)).shape
    (3,)
    """
    bounded = np.clip(values, -WIDEST, WIDEST)
    noisy = measurement(mechanism, measure, scale)(bounded.ravel().tolist())
    return np.asarray(noisy, dtype=np.int64).reshape(values.shape)


def choose_smallest(
    measure: Measure, scale: float, rows: Sequence[Sequence[int]], deadline: float | None = None
) -> Counts:
    """For every row of scores the place of the one that is smallest after noise; EngineError after the *deadline*.

    >>> choose_smallest("epsilon", 1e-3, [[900, 0, 900]])
    array([1])
    """
    choose = measurement("noisy-max", measure, scale)
    chosen = []
    for row in rows:
        check_time(deadline)
        chosen.append(choose(row))
    return np.array(chosen, dtype=np.int64)


def calibrate_response(categories: int, asked: Fraction) -> tuple[float, Fraction]:
    """The largest chance of a true answer among *categories* whose map stays within *asked*, and its exact charge.

    >>> chance, charge = calibrate_response(2, Fraction(1))
    >>> round(chance, 3), charge <= 1
    (0.731, True)
    """
    # 1 / (1 + (k-1) e^-x) does not overflow where e^x would.
    chance = 1 / (1 + (categories - 1) * math.exp(-float(asked)))
    chance = min(chance, math.nextafter(1.0, 0.0))
    steps = 1
    while (charge := Fraction(_response(categories, chance).map(1))) > asked:
        chance -= steps * math.ulp(chance)
        steps *= 2
    return chance, charge


def respond(categories: int, chance: float, codes: Counts) -> Counts:
    """Each code kept with that chance, else another one, all alike; one call to OpenDP per code.

    >>> respond(3, 1 - 1e-15, np.array([0, 2, 1]))
    array([0, 2, 1])
    """
    answer = _response(categories, chance)
    if categories == 2:
        return np.array([answer(code == 1) for code in codes.tolist()], dtype=np.int64)
    return np.array([answer(code) for code in codes.tolist()], dtype=np.int64)


@lru_cache(maxsize=64)
def _response(categories: int, chance: float) -> Any:
    if categories == 2:
        return dp.m.make_randomized_response_bool(chance)
    return dp.m.make_randomized_response(list(range(categories)), chance, T="i64")


def check_time(deadline: float | None) -> None:
    """Nothing, or EngineError where a *deadline* of `time.monotonic` has passed.

    >>> check_time(None)
    """
    if deadline is not None and time.monotonic() > deadline:
        raise EngineError(
            "Drawing the noise took longer than the time allowed.",
            "It was stopped, and what was drawn was thrown away.",
            "Ask for fewer keys, bins or quantiles, or let the owner allow more time.",
        )


# How wide the noise is: exact tails of the discrete mechanisms.

# Up to this scale the discrete Gaussian's tail is summed; beyond it a continuous bound is less than one step off.
SUMMED = 4096.0


def check_confidence(confidence: Fraction | float) -> None:
    """Nothing, where it is a chance strictly between 0 and 1.

    >>> check_confidence(0.95)
    """
    why = say("It is the chance that the interval holds the exact answer.")
    chance = float(confidence) if isinstance(confidence, Fraction) else confidence
    checked_argument("confidence", chance, Annotated[float, Setting(gt=0, lt=1, why=why)])


@lru_cache(maxsize=1024)
def half_width(mechanism: Mechanism, scale: float, confidence: Fraction) -> int:
    """The smallest whole t (Gaussian beyond scale 4,096: at most one more) with P(|noise| <= t) >= confidence.

    Discrete Laplace: P(|X| > t) = 2 p^(t+1) / (1 + p) with p = exp(-1/scale). Discrete Gaussian: the sum of
    exp(-x^2 / 2 scale^2), or P(X >= m) <= P(N(0, scale^2) >= m - 1) (Canonne, Kamath, Steinke 2020, prop. 25).

    >>> half_width("laplace", 1.0, Fraction(19, 20)), half_width("gaussian", 10.0, Fraction(19, 20))
    (3, 20)
    """
    check_confidence(confidence)
    outside = float(1 - confidence)
    if mechanism == "laplace":
        p = math.exp(-1 / scale)
        t = max(0, math.ceil(scale * math.log(2 / ((1 + p) * outside))) - 1)
        # The logarithm may be off by its last bit: the tail itself decides.
        while _laplace_tail(scale, t) > outside:
            t += 1
        while t > 0 and _laplace_tail(scale, t - 1) <= outside:
            t -= 1
        return t
    if mechanism == "gaussian":
        if scale > SUMMED:
            return math.ceil(-scale * NormalDist().inv_cdf(outside / 2))
        beyond = _gaussian_tails(scale)
        # The tails fall; the first one within `outside` is the answer.
        return int(np.searchsorted(-beyond, -outside))
    raise ValueError("a chosen candidate has a rank error, not a width")


def _laplace_tail(scale: float, t: int) -> float:
    """P(|X| > t) of the discrete Laplace distribution."""
    p = math.exp(-1 / scale)
    return 2 * math.exp(-(t + 1) / scale) / (1 + p)


def chance_at_least(mechanism: Mechanism, scale: float, least: int) -> float:
    """P(noise >= least), for a whole least of at least 1.

    >>> round(chance_at_least("laplace", 2.0, 6), 4), round(chance_at_least("gaussian", 10.0, 20), 4)
    (0.031, 0.0255)
    """
    if mechanism == "laplace":
        return _laplace_tail(scale, least - 1) / 2
    if scale > SUMMED:
        return 1 - NormalDist().cdf((least - 1) / scale)
    tails = _gaussian_tails(scale)
    return float(tails[min(least - 1, len(tails) - 1)]) / 2


@lru_cache(maxsize=64)
def _gaussian_tails(scale: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """P(|X| > t) for t = 0, 1, ..., summed from the far end so that small tails keep their digits."""
    x = np.arange(0, math.ceil(40 * scale) + 2, dtype=np.float64)
    weights = np.exp(-0.5 * (x / scale) ** 2)
    above = np.cumsum(weights[::-1])[::-1]
    total = weights[0] + 2 * above[1]
    tails: np.ndarray[tuple[int], np.dtype[np.float64]] = np.append(2 * above[1:], 0.0) / total
    return tails


@lru_cache(maxsize=256)
def widest_scale(mechanism: Mechanism, width: int, confidence: Fraction) -> float:
    """The largest scale, to one part in 10^9, whose half-width is at most *width*; what an accuracy asks for.

    >>> scale = widest_scale("laplace", 10, Fraction(19, 20))
    >>> half_width("laplace", scale, Fraction(19, 20)), half_width("laplace", scale * 1.001, Fraction(19, 20))
    (10, 11)
    """
    # At a scale of 1/128 both noises are 0 with a chance nobody can tell from 1, so this one always fits.
    fits, beyond = 2.0**-7, 2.0**-6
    while beyond < MOST_SCALE / 2 and _width(mechanism, beyond, confidence) <= width:
        fits, beyond = beyond, beyond * 2
    if beyond >= MOST_SCALE / 2:
        return fits
    while beyond > fits * (1 + 1e-9):
        middle = (fits + beyond) / 2
        if _width(mechanism, middle, confidence) <= width:
            fits = middle
        else:
            beyond = middle
    return fits


def _width(mechanism: Mechanism, scale: float, confidence: Fraction) -> int:
    # A search passes many scales once: they are not worth keeping.
    if mechanism == "gaussian" and scale <= SUMMED:
        beyond = _gaussian_tails.__wrapped__(scale)
        return int(np.searchsorted(-beyond, -float(1 - confidence)))
    return half_width.__wrapped__(mechanism, scale, confidence)


def joint_width(
    mechanism: Mechanism, scales: tuple[float, float], weight: float, confidence: Fraction
) -> float:
    """A t with P(|X + weight Y| <= t) >= confidence, for independent noises X and Y of these scales; rises with *weight* >= 0.

    Each discrete noise lies within one step (Laplace) or two (Gaussian) of a continuous one of its scale, coupled by sign and
    rank: its tail is between theirs one, or two, steps further out and in (for the Gaussian by Canonne, Kamath, Steinke 2020,
    prop. 25, and, the other way, by comparing sums with integrals). So t is that of the continuous sum and (1 + weight)
    such steps. Continuous Laplace noises of scales a, b: P(|X + Y| > t) = (a^2 e^(-t/a) - b^2 e^(-t/b)) / (a^2 - b^2).

    >>> round(joint_width("gaussian", (300.0, 400.0), 1.0, Fraction(19, 20)))
    984
    """
    check_confidence(confidence)
    outside = float(1 - confidence)
    a, b = scales[0], scales[1] * weight
    if mechanism == "gaussian":
        return -math.hypot(a, b) * NormalDist().inv_cdf(outside / 2) + 2 * (1 + weight)
    small, large = sorted((a, b))
    if small > large * (1 - 1e-6):
        small = large  # a little more noise than there is

    def tail(t: float) -> float:
        if small == large:
            return math.exp(-t / large) * (1 + t / (2 * large))
        ratio = small / large
        part = ratio * ratio * math.exp(-t / small) if small > 0 else 0.0
        return (math.exp(-t / large) - part) / (1 - ratio * ratio)

    low, high = 0.0, (small + large) * math.log(2 / outside)
    while high > low * (1 + 1e-12) and high > 1e-300:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if tail(middle) > outside:
            low = middle
        else:
            high = middle
    return high + 1 + weight


@lru_cache(maxsize=256)
def mixed_factor(mechanism: Mechanism, least_scale: float, cells: int, confidence: Fraction) -> float:
    """A k with P(|S| <= k deviation) >= confidence for every weighted sum S of *cells* independent noises of at least that scale.

    *deviation* is the sum's, the squares of weight times `standard_deviation` added up; so sum of weight^2 <= (deviation / d)^2, d being
    the least noise's own. Both bounds smooth the discrete sum by an independent symmetric Z: P(S > t) <= P(S + Z > t - z) / P(Z >= -z).

    Laplace: an exponential number is its whole part and an independent fraction, so a continuous Laplace noise is the discrete one plus
    the difference of two fractions, which is sub-Gaussian with variance 1/6; S + Z is a sum of continuous ones, see `laplace_quantile`.
    Gaussian: Z has normal parts of deviation tau; the density of each discrete noise and its part is at most 1 + e times the normal one of
    their joint variance, e = 2a / (1 - a^3), a = exp(-2 pi^2 s^2), 1/s^2 = 1/scale^2 + 1/tau^2 (Poisson's sum).

    >>> round(mixed_factor("gaussian", 50.0, 100, Fraction(19, 20)), 2), round(mixed_factor("laplace", 50.0, 100, Fraction(19, 20)), 2)
    (2.0, 2.18)
    """
    check_confidence(confidence)
    outside = float(1 - confidence)
    d = standard_deviation(mechanism, least_scale)
    if mechanism == "laplace":
        found = [1 / math.sqrt(outside)]  # Chebyshev
        if d < 1e-9:  # next to no noise: the others only lose digits
            return found[0]
        for reach in (0.9, 1.1, 1.3, 1.5, 1.8, 2.2):
            inside = 1 - math.exp(-3 * reach**2)
            found.append(math.sqrt(1 + 1 / (6 * d * d)) * laplace_quantile(outside * inside) + reach / d)
        return min(found)
    found = [
        math.sqrt(2 * math.log(2 / outside))
    ]  # discrete noises are sub-Gaussian (Canonne, Kamath, Steinke 2020)
    for tau in (0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0):
        a = math.exp(-2 * math.pi**2 / (1 / d**2 + 1 / tau**2))
        more = math.exp(min(cells * 2 * a / (1 - a**3), 50.0))
        for reach in (1.5, 2.0, 2.5, 3.0, 3.5):
            tail = outside * NormalDist().cdf(reach) / (2 * more)
            normal = -NormalDist().inv_cdf(tail) if tail > 1e-300 else math.inf
            found.append(math.sqrt(1 + (tau / d) ** 2) * normal + reach * tau / d)
    return min(found)


@lru_cache(maxsize=256)
def laplace_quantile(outside: float) -> float:
    """A t that no weighted sum of continuous Laplace noises with a variance of 1 exceeds, in absolute value, with more than that chance.

    A Laplace noise is a normal one whose variance is exponential, so the sum is normal with a variance V = sum of a_j E_j, sum of a_j = 1. V
    is below E_1 in convex order, and P(|N| > t / sqrt(v)) is convex in v, then concave. So the largest chance is that of a variance which is
    E up to some c and its mean c + 1 beyond: max over c of the integral of e^-v P(v) up to c, and e^-c P(c + 1).

    >>> round(laplace_quantile(0.05), 3), round(math.log(1 / 0.05) / math.sqrt(2), 3), round(laplace_quantile(0.5), 3)
    (2.157, 2.118, 0.674)
    """
    low, high = 0.0, 2 + 2 * math.log(1 / outside)
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _largest_tail(middle) > outside else (low, middle)
    return high * (1 + 1e-5)


def _largest_tail(t: float) -> float:
    # Beyond t^2 / 3 + 3 the tail is concave, and no c lies there. Steps are short beside the last digits that count.
    edges = np.linspace(0.0, t * t / 3 + 3, 2001)
    tails = np.array([math.erfc(t / math.sqrt(2 * v)) if v > 0 else 0.0 for v in edges.tolist()])
    beyond = np.array([math.erfc(t / math.sqrt(2 * (v + 1))) for v in edges.tolist()])
    falling = np.exp(-edges)
    pieces = (falling[:-1] - falling[1:]) * (tails[:-1] + tails[1:]) / 2
    inner = np.concatenate([[0.0], np.cumsum(pieces)])
    return float((inner + falling * beyond).max())


def standard_deviation(mechanism: Mechanism, scale: float) -> float:
    """Of the discrete Laplace sqrt(2p)/(1-p), p = exp(-1/scale); of the discrete Gaussian at most its scale.

    >>> round(standard_deviation("laplace", 10.0), 2)
    14.14
    """
    if mechanism == "laplace":
        return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
    return scale


def wins_from(epsilon: Amount, delta: Amount) -> int:
    """The least number of equal counts from which zCDP adds less noise than pure epsilon does.

    The standard deviation of each is sqrt(2) k / epsilon when pure and, at the same (epsilon, delta), sqrt(k / 2 rho) when
    concentrated: the second wins when k > epsilon^2 / (4 rho). The two promises differ: the second may fail with chance delta.

    >>> wins_from(1, "1e-6"), wins_from(1, "1e-9")
    (15, 22)
    """
    return math.floor(exact(epsilon) ** 2 / (4 * Budget.approximate(epsilon, delta).total)) + 1
