"""Methods at the same risk: what another method would lose where it leaves an attacker as much as the setting in hand.

k means something else to every method, so that equal k is no equal protection. A method's settings are points (risk, drop);
between the two whose risks lie on either side, the drop is interpolated on the logarithm of the risk, seed by seed with
one weight, and the difference has its interval over seeds like every other. Where all risks of a method lie on one side,
only domination is said: less lost at less risk. O(methods x k) for each setting asked about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from velado.measures.models.quality import Interval
from velado.study.evaluate.amounts import at_most
from velado.study.evaluate.study_grid import ORIGINAL

if TYPE_CHECKING:
    from velado.study.evaluate.analysis import Study

SAME = 0.02
"""Risks within this share of each other are taken for equal."""

NEAR = 0.1
"""Where a method's risks all lie on one side, one that differs by at most this share is still about the same."""

Setting = Mapping[str, Any]


def beside(study: Study, chosen: Setting, model: str | None = None) -> list[dict[str, Any]]:
    """Every other method against *chosen* at its risk, over all models or one.

    *gain* is how many points more the other loses (negative: it keeps more). *verdict* is "more", "less" or "even" (the
    interval holds zero), "one" (a single seed) or "apart" (never at that risk, and neither is better in both).
    *k* and *k_other* are the settings between which was interpolated; *k_other* is None where one setting was taken.
    """
    table = study.tradeoff.filter(
        (pl.col("guarantees") == chosen["guarantees"])
        & ~pl.col("method").is_in([ORIGINAL, chosen["method"]])
        & pl.col("drop").is_not_null()
        & pl.col("risk").is_not_null()
    )
    own = study.drops_of(chosen, model)
    out = []
    for (method,), part in table.group_by(["method"], maintain_order=True):
        first, second, weight = _bracket(part.sort("risk").to_dicts(), chosen["risk"])
        one, two = study.drops_of(first, model), study.drops_of(second, model)
        gains = [
            (1 - weight) * one[seed] + weight * two[seed] - own[seed]
            for seed in own
            if seed in one and seed in two
        ]
        gain = study.interval_of(pl.Series(gains, dtype=pl.Float64))
        if gain is None:
            continue
        met = weight > 0 or _same(first["risk"], chosen["risk"], NEAR)
        risk = chosen["risk"] if weight > 0 else first["risk"]
        out.append(
            {
                "method": method,
                "k": first["k"],
                "k_other": second["k"] if weight > 0 else None,
                "risk": risk,
                "same_risk": met,
                "gain": gain.mean,
                "gain_low": gain.low,
                "gain_high": gain.high,
                "verdict": _verdict(gain, met, risk, chosen["risk"]),
            }
        )
    return out


def _bracket(points: list[dict[str, Any]], risk: float) -> tuple[dict[str, Any], dict[str, Any], float]:
    """The two settings around *risk* and the weight of the second; one setting twice where only one will do."""
    near = min(points, key=lambda one: abs(one["risk"] - risk))
    below = [one for one in points if one["risk"] < risk]
    above = [one for one in points if one["risk"] > risk]
    if _same(near["risk"], risk) or not below or not above:
        return near, near, 0.0
    first, second = above[0], below[-1]
    if second["risk"] <= 0:  # no logarithm: as far along as the risk itself is
        return first, second, (first["risk"] - risk) / first["risk"]
    return first, second, math.log(first["risk"] / risk) / math.log(first["risk"] / second["risk"])


def _same(one: float, other: float, share: float = SAME) -> bool:
    return abs(one - other) <= share * max(one, other)


def _verdict(gain: Interval, met: bool, risk: float, asked: float) -> str:
    if gain.low is None or gain.high is None:
        return "one" if met else "apart"
    if gain.low > 0:  # the other loses more; at less risk that is no verdict
        return "more" if met or risk > asked else "apart"
    if gain.high < 0:
        return "less" if met or risk < asked else "apart"
    return "even" if met else "apart"


def best_at_each_k(study: Study) -> list[dict[str, Any]]:
    """For each k, promise and model: the release from which it loses least, and every other method at that risk."""
    drop = f"drop_{study.main}"
    table = study.quality.filter(
        (pl.col("protocol") == study.protocol)
        & (pl.col("method") != ORIGINAL)
        & (pl.col("model") != "majority")
        & pl.col(drop).is_not_null()
    )
    risks = {
        (row["method"], row["k"], row["guarantees"]): row["risk"]
        for row in study.tradeoff.iter_rows(named=True)
    }
    most = study.material.recipe.most_drop
    out = []
    for (k, promised, model), part in table.group_by(["k", "guarantees", "model"], maintain_order=True):
        best = part.sort(drop, "method").row(0, named=True)
        setting = {name: best[name] for name in ("method", "k", "guarantees")}
        risk = risks.get((best["method"], k, promised))
        low, high = best[f"{drop}_low"], best[f"{drop}_high"]
        out.append(
            {
                **setting,
                "model": model,
                "risk": risk,
                "drop": best[drop],
                "drop_low": low,
                "drop_high": high,
                "within": within(best[drop], high, most),
                "beside": [] if risk is None else beside(study, {**setting, "risk": risk}, str(model)),
            }
        )
    return out


def within(drop: float, high: float | None, most: float) -> str:
    """Whether a drop keeps the limit: "surely", "on average" (its interval reaches beyond, or has none), or "no"."""
    if not at_most(drop, most):
        return "no"
    return "surely" if high is not None and at_most(high, most) else "on average"
