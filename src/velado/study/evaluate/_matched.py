"""Methods at the same risk: what another method would lose where it leaves an attacker as much as the setting in hand.

k means something else to every method, so that equal k is no equal protection. A method's settings are points (risk, drop);
between the two whose risks lie on either side, the drop is interpolated on the logarithm of the risk, seed by seed with
one weight, and the difference has its interval over seeds like every other. Where all risks of a method lie on one side,
only domination is said: less lost at less risk. O(methods x k) for each setting asked about. Whether a difference is sure is
not settled here but over all comparisons of a page (`_claims`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from velado.measures.models.quality import Interval
from velado.study.evaluate._choice import SAME, Within, within
from velado.study.evaluate.analysis import Analysis, ReleaseSetting

NEAR = 0.1
"""Where a method's risks all lie on one side, one that differs by at most this share is still about the same."""

Verdict = Literal["less", "even", "one", "more", "apart"]


@dataclass(frozen=True, kw_only=True)
class Rival:
    """Another method where it leaves as much risk as the setting in hand.

    *gain* is how many points more it loses (negative: it keeps more), and whether that is *sure* among all comparisons of
    the page. *verdict* is "more", "less" or "even" (not sure), "one" (too few seeds for an interval) or "apart" (never at that
    risk, and neither is better in both). *k* and *k_other* are the settings between which was interpolated; *k_other* is None
    where one setting was taken.
    """

    method: str
    k: int | None
    k_other: int | None
    risk: float
    same_risk: bool
    gain: Interval
    verdict: Verdict = "even"
    sure: bool = False

    def judged(self, sure: bool, risk: float) -> Rival:
        """The same with its verdict beside a setting of *risk*."""
        return replace(self, sure=sure, verdict=_verdict(self, sure, risk))


@dataclass(frozen=True, kw_only=True)
class Leader:
    """The release of one k and promise from which *model* loses least, and every other method at its risk."""

    setting: ReleaseSetting
    model: str
    risk: float | None
    drop: Interval
    within: Within
    beside: tuple[Rival, ...]


def beside(
    study: Analysis, chosen: ReleaseSetting, risk: float, model: str | None = None
) -> tuple[Rival, ...]:
    """Every other method against *chosen* at its *risk*, over all models or one. O(methods x k)."""
    points: dict[str, list[tuple[float, ReleaseSetting]]] = {}
    for row in study.compared:
        if row.setting.method != chosen.method and row.setting.guarantees == chosen.guarantees:
            points.setdefault(row.setting.method, []).append((row["risk"].mean or 0.0, row.setting))
    own = study.drops_of(chosen, model)
    out = []
    for method, found in points.items():
        (first_risk, first), (_, second), weight = _bracket(sorted(found, key=lambda one: one[0]), risk)
        one, two = study.drops_of(first, model), study.drops_of(second, model)
        both = [seed for seed in own if seed in one and seed in two]
        gain = study.estimate(
            ((1 - weight) * one[seed] + weight * two[seed] - own[seed] for seed in both),
            study.overlap,
            drops=True,
        )
        if gain.mean is None:
            continue
        out.append(
            Rival(
                method=method,
                k=first.k,
                k_other=second.k if weight > 0 else None,
                risk=risk if weight > 0 else first_risk,
                same_risk=weight > 0 or _same(first_risk, risk, NEAR),
                gain=gain,
            )
        )
    return tuple(out)


def _bracket(
    points: list[tuple[float, ReleaseSetting]], risk: float
) -> tuple[tuple[float, ReleaseSetting], tuple[float, ReleaseSetting], float]:
    """The two settings around *risk* and the weight of the second; one setting twice where only one will do."""
    near = min(points, key=lambda one: abs(one[0] - risk))
    below, above = ([one for one in points if side * one[0] > side * risk] for side in (-1, 1))
    if _same(near[0], risk) or not below or not above:
        return near, near, 0.0
    first, second = above[0], below[-1]
    if second[0] <= 0:  # no logarithm: as far along as the risk itself is
        return first, second, (first[0] - risk) / first[0]
    return first, second, math.log(first[0] / risk) / math.log(first[0] / second[0])


def _same(one: float, other: float, share: float = SAME) -> bool:
    return abs(one - other) <= share * max(one, other)


def _verdict(rival: Rival, sure: bool, asked: float) -> Verdict:
    met, gain = rival.same_risk, rival.gain.mean or 0.0
    if rival.gain.low is None or rival.gain.high is None:
        return "one" if met else "apart"
    if sure and gain > 0:  # the other loses more; at less risk that is no verdict
        return "more" if met or rival.risk > asked else "apart"
    if sure and gain < 0:
        return "less" if met or rival.risk < asked else "apart"
    return "even" if met else "apart"


def leaders(study: Analysis) -> tuple[Leader, ...]:
    """For each k, promise and model: the release from which it loses least, and every other method at that risk."""
    risks = {row.setting: row["risk"].mean for row in study.tradeoff}
    out = []
    for first, *_ in study.ranked():
        risk, model, drop = risks.get(first.setting), str(first.model), first[f"drop_{study.main}"]
        out.append(
            Leader(
                setting=first.setting,
                model=model,
                risk=risk,
                drop=drop,
                within=within(drop, study.material.recipe.analyses.most_drop),
                beside=() if risk is None else beside(study, first.setting, risk, model),
            )
        )
    return tuple(out)
