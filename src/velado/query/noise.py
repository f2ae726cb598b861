"""The only place that draws noise, and the only one that imports OpenDP. Features: `contrib` alone.

Every mechanism is discrete and adds to, or chooses among, whole numbers. What it costs is what OpenDP's own map of the
measurement says for the stated sensitivity; no formula of ours is charged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from velado.errors import EngineError, MissingExtra, QueryRefused
from velado.query.budget import Measure
from velado.query.needs import Counts, GridCells, cells_of

if TYPE_CHECKING:
    from velado.query.plan import Draw, Plan

try:
    import opendp.prelude as dp
except ImportError:  # pragma: no cover - exercised where the extra is not installed
    raise MissingExtra(
        "OpenDP is not installed.",
        "It draws the noise of every private answer.",
        "Install velado[query].",
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
    """OpenDP's measurement; building one takes about 0.1 ms, so the last ones are kept. It holds no data."""
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


def carry_out(plan: Plan, tallies: tuple[Counts, ...], deadline: float | None = None) -> tuple[Counts, ...]:
    """One noisy array per draw of *plan*, from one exact array per need: whole numbers, or chosen candidates' places.

    The shape of what an engine returned is checked before anything is drawn; its numbers are not looked at. Between two
    draws, and between two cells of a quantile, a *deadline* that `time.monotonic` has passed is an EngineError.
    """
    cells = cells_of(plan.keys)
    if len(tallies) != len(plan.needs):
        raise _wrong_shape()
    for need, tally in zip(plan.needs, tallies, strict=True):
        expected = (cells, len(need.edges) - 1) if isinstance(need, GridCells) else (cells,)
        if tally.shape != expected or tally.dtype != np.int64:
            raise _wrong_shape()
    exact = dict(zip(plan.needs, tallies, strict=True))
    return tuple(_drawn(draw, plan.measure, exact[draw.need], deadline) for draw in plan.draws)


def add(mechanism: Literal["laplace", "gaussian"], measure: Measure, scale: float, values: Counts) -> Counts:
    """The values with independent noise of that scale; saturates at the 64-bit limits, which tells nothing more."""
    bounded = np.clip(values, -WIDEST, WIDEST)
    noisy = measurement(mechanism, measure, scale)(bounded.ravel().tolist())
    return np.asarray(noisy, dtype=np.int64).reshape(values.shape)


def choose_smallest(
    measure: Measure, scale: float, rows: Sequence[Sequence[int]], deadline: float | None = None
) -> Counts:
    """For every row of scores the place of the one that is smallest after noise; EngineError after the *deadline*."""
    choose = measurement("noisy-max", measure, scale)
    chosen = []
    for row in rows:
        _check_time(deadline)
        chosen.append(choose(row))
    return np.array(chosen, dtype=np.int64)


def calibrate_response(categories: int, asked: Fraction) -> tuple[float, Fraction]:
    """The largest chance of a true answer among *categories* whose map stays within *asked*, and its exact charge."""
    # 1 / (1 + (k-1) e^-x) does not overflow where e^x would.
    chance = 1 / (1 + (categories - 1) * math.exp(-float(asked)))
    chance = min(chance, math.nextafter(1.0, 0.0))
    steps = 1
    while (charge := Fraction(_response(categories, chance).map(1))) > asked:
        chance -= steps * math.ulp(chance)
        steps *= 2
    return chance, charge


def respond(categories: int, chance: float, codes: Counts) -> Counts:
    """Each code kept with that chance, else another one, all alike; one call to OpenDP per code."""
    answer = _response(categories, chance)
    if categories == 2:
        return np.array([answer(code == 1) for code in codes.tolist()], dtype=np.int64)
    return np.array([answer(code) for code in codes.tolist()], dtype=np.int64)


@lru_cache(maxsize=64)
def _response(categories: int, chance: float) -> Any:
    if categories == 2:
        return dp.m.make_randomized_response_bool(chance)
    return dp.m.make_randomized_response(list(range(categories)), chance, T="i64")


def _drawn(draw: Draw, measure: Measure, tally: Counts, deadline: float | None) -> Counts:
    _check_time(deadline)
    if draw.mechanism == "noisy-max":
        return choose_smallest(measure, draw.scale, draw.scores(tally).tolist(), deadline)
    return add(draw.mechanism, measure, draw.scale, tally)


def _check_time(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise EngineError(
            "Drawing the noise took longer than the time allowed.",
            "It was stopped, and what was drawn was thrown away.",
            "Ask for fewer keys, bins or quantiles, or let the owner allow more time.",
        )


def _wrong_shape() -> EngineError:
    return EngineError(
        "The engine returned arrays of another shape or type than it was asked for.",
        "Noise is drawn on 64-bit whole numbers, one array per need and one number per cell.",
        "Report this as a fault of the engine.",
    )
