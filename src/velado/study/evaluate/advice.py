"""The recommendation in words with its reasons, and what the study did not test.

The rule is plain: among the settings that lose at most `most_drop` of the main quality (and keep the risk at or below
`most_risk`, where one is given), the one with the least risk; ties by the smaller drop. Methods are called different only
where the interval of their seed-by-seed difference leaves out zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from velado.anonymize.methods import METHODS
from velado.measure.models.quality import Interval
from velado.measure.models.registry import MODELS
from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS, protocol_named
from velado.study.evaluate.words import loss_text, percent, points, quality_name, say

if TYPE_CHECKING:
    from velado.study.evaluate.analysis import Study

NEAR = 0.25
"""Settings whose risks differ by at most this share are compared as being at about the same risk."""

TIE = 0.02
"""Risks within this share of each other are taken for equal when a setting is chosen."""


def recommend(study: Study, language: str) -> dict[str, Any]:
    """The chosen setting (None where there is none), and the sentences that say why."""
    chosen, reached = choose(study)
    recipe = study.material.recipe
    sentences: list[str] = []
    if chosen is None:
        sentences.append(say(language, "no_choice"))
        if study.tradeoff.height and study.tradeoff.get_column("risk").null_count() == study.tradeoff.height:
            sentences.append(say(language, "risk_unknown", risk=say(language, f"name_{recipe.risk}")))
    else:
        sentences.append(_choice(study, chosen, language))
        why = "why_risk" if reached else "why_none"
        sentences.append(say(language, why, most=points(recipe.most_drop, language)))
        if reached and (chosen["drop_high"] is None or chosen["drop_high"] > recipe.most_drop):
            sentences.append(say(language, "not_sure"))
        if recipe.most_risk is not None:
            sentences.append(say(language, "why_risk_limit", limit=percent(recipe.most_risk, language)))
        sentences += _beside(study, chosen, language)
        sentences += _over_majority(study, chosen, language)
    sentences += _protocol_notes(study, language)
    if study.gaps.height:
        sentences.append(say(language, "gaps_note", gaps=study.gaps.height, cells=study.planned))
    return {"choice": chosen, "within_limit": reached, "sentences": sentences}


def choose(study: Study) -> tuple[dict[str, Any] | None, bool]:
    """The setting to recommend, and whether it keeps the drop within the limit."""
    recipe = study.material.recipe
    table = study.tradeoff.filter(
        (pl.col("method") != ORIGINAL) & pl.col("drop").is_not_null() & pl.col("risk").is_not_null()
    )
    if recipe.most_risk is not None:
        table = table.filter(pl.col("risk") <= recipe.most_risk)
    if not table.height:
        return None, False
    good = table.filter(pl.col("drop") <= recipe.most_drop)
    if not good.height:
        return table.sort("drop", "risk", "method").row(0, named=True), False
    least = float(good.get_column("risk").min() or 0.0)  # type: ignore[arg-type]
    near = good.filter(pl.col("risk") <= least * (1 + TIE))
    return near.sort("drop", "risk", "method").row(0, named=True), True


def setting_text(setting: dict[str, Any]) -> str:
    """`method, k = 10, further promises`."""
    parts = [setting["method"]]
    if setting["k"] is not None:
        parts.append(f"k = {setting['k']}")
    return ", ".join([*parts, *([setting["guarantees"]] if setting["guarantees"] else [])])


def _choice(study: Study, chosen: dict[str, Any], language: str) -> str:
    recipe = study.material.recipe
    before = study.tradeoff.filter(pl.col("method") == ORIGINAL).get_column("risk").to_list()
    known = chosen["drop_low"] is not None
    span = (
        say(
            language,
            "range",
            low=points(chosen["drop_low"], language),
            high=points(chosen["drop_high"], language),
        )
        if known
        else ""
    )
    return say(
        language,
        "choice",
        setting=setting_text(chosen),
        drop=points(chosen["drop"], language),
        quality=quality_name(study.main, language),
        range=span,
        risk_name=say(language, f"name_{recipe.risk}"),
        risk=percent(chosen["risk"], language),
        before=percent(before[0] if before else None, language),
        loss_name=say(language, f"name_{recipe.loss}"),
        loss=loss_text(chosen["loss"], recipe.loss, language),
    )


def _beside(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """The chosen setting beside every other method: at the nearest risk where one is near, else at the same k."""
    others = study.tradeoff.filter(
        (pl.col("guarantees") == chosen["guarantees"])
        & (pl.col("method") != chosen["method"])
        & (pl.col("method") != ORIGINAL)
        & pl.col("drop").is_not_null()
        & pl.col("risk").is_not_null()
    )
    out = []
    for _, part in others.group_by(["method"], maintain_order=True):
        away = (pl.col("risk") - chosen["risk"]).abs()
        near = part.filter(away <= NEAR * chosen["risk"]).sort(away)
        level = part.filter(pl.col("k").eq_missing(pl.lit(chosen["k"], dtype=pl.Int64)))
        found = near if near.height else level
        if not found.height:
            continue
        other = found.row(0, named=True)
        same = f"k = {chosen['k']}"
        if other["k"] != chosen["k"]:
            same = say(language, "same_risk", first=chosen["k"] or "–", second=other["k"] or "–")
        gain = study.difference(chosen, other)
        if gain is None:
            continue
        if gain.low is None or gain.high is None:
            key = "compare_one"
        elif gain.low > 0:
            key = "compare_better"
        elif gain.high < 0:
            key = "compare_worse"
        else:
            key = "compare_even"
        turned = key == "compare_worse"
        low, high = (gain.low, gain.high) if not turned else (_minus(gain.high), _minus(gain.low))
        out.append(
            say(
                language,
                key,
                same=same,
                first=chosen["method"],
                second=other["method"],
                gain=points(abs(gain.mean), language),
                low=points(low, language),
                high=points(high, language),
                risk=percent(chosen["risk"], language),
                other=percent(other["risk"], language),
            )
        )
    return out


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _over_majority(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """Whether models learn anything from the release, and whether there is anything to learn at all."""
    majority = percent(study.majority(), language)
    found = study.above_majority(chosen)
    out = []
    if found is not None:
        model, value, gain = found
        key = "over_majority" if _sure(gain) > 0 else "near_majority"
        out.append(say(language, key, model=model, value=percent(value, language), majority=majority))
    before = study.above_majority({"method": ORIGINAL, "k": None, "guarantees": ""})
    if study.main == "accuracy" and before is not None and _sure(before[2]) <= 0:
        out.append(say(language, "nothing_to_learn", majority=majority))
    return out


def _sure(gain: Interval) -> float:
    """The least that the gain may be; its mean where one seed gives no interval."""
    return gain.mean if gain.low is None else gain.low


def _protocol_notes(study: Study, language: str) -> list[str]:
    table = {row["protocol"]: row for row in study.protocols.to_dicts()}
    honest = table.get(DEFAULT_PROTOCOL)
    if honest is None:
        return []
    out = []
    for name, row in table.items():
        if name == DEFAULT_PROTOCOL:
            continue
        values = {
            "protocol": name,
            "drop": points(row["drop"], language),
            "honest": points(honest["drop"], language),
            "quality": quality_name(study.main, language),
        }
        out.append(say(language, "protocol_drop", **values))
        if row["pairs"]:
            out.append(
                say(
                    language,
                    "protocol_pairs",
                    protocol=name,
                    between=points(row["between"], language),
                    due=points(row["due"], language),
                    reversed=row["reversed"],
                    pairs=row["pairs"],
                )
            )
    return out


def not_tested(study: Study, language: str) -> list[str]:
    """What a reader might take for granted and the study did not look at."""
    recipe = study.material.recipe
    out = []
    for key, names in (
        ("nt_methods", [m.name for m in METHODS if m.name not in {str(e["name"]) for e in recipe.methods}]),
        (
            "nt_models",
            [m.name for m in MODELS if m.name not in {*(one.name for one in recipe.models), "majority"}],
        ),
        ("nt_protocols", [p.name for p in PROTOCOLS if p.name not in recipe.protocols]),
    ):
        if names:
            out.append(say(language, key, names=", ".join(names)))
    out.append(say(language, "nt_k", ks=", ".join(map(str, recipe.k))))
    if all(not promised for promised in recipe.guarantees):
        out.append(say(language, "nt_guarantees"))
    if len(recipe.seeds) == 1:
        out.append(say(language, "nt_seed"))
    if protocol_named(study.protocol).scope == "train":
        out.append(say(language, "nt_part", share=percent(1 - recipe.test_share, language, 0)))
    if study.material.dropped:
        out.append(say(language, "nt_dropped", count=study.material.dropped))
    out += [say(language, key) for key in ("nt_tuning", "nt_table", "nt_attack", "nt_federated")]
    return out
