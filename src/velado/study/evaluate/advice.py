"""The recommendation in words with its reasons, and what the study did not test.

The rule is plain: among the settings that lose at most `most_drop` of the main quality (and keep the risk at or below
`most_risk`, where one is given), the one with the least risk; ties by the smaller drop. Methods are compared at the same
risk, not at the same k, and called different only where the interval of their seed-by-seed difference leaves out zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from velado.anonymize.methods import METHODS
from velado.measure.models.quality import Interval
from velado.measure.models.registry import MODELS
from velado.study.evaluate.grid import ORIGINAL
from velado.study.evaluate.matched import beside, within
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS, protocol_named
from velado.study.evaluate.words import loss_text, percent, points, quality_name, say

if TYPE_CHECKING:
    from velado.study.evaluate.analysis import Study

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
        sentences += _each_model(study, chosen, language)
        sentences += _beside(study, chosen, language)
        sentences += _over_majority(study, chosen, language)
        sentences += _across_clients(study, chosen, language)
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
    return say(
        language,
        "choice",
        setting=setting_text(chosen),
        drop=points(chosen["drop"], language),
        quality=quality_name(study.main, language),
        range=_span(chosen["drop_low"], chosen["drop_high"], language),
        risk_name=say(language, f"name_{recipe.risk}"),
        risk=percent(chosen["risk"], language),
        before=percent(before[0] if before else None, language),
        loss_name=say(language, f"name_{recipe.loss}"),
        loss=loss_text(chosen["loss"], recipe.loss, language),
    )


def _beside(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """The chosen setting beside every other method at the same risk, over all models."""
    return [_compared(chosen, other, language) for other in beside(study, chosen)]


def _compared(chosen: dict[str, Any], other: dict[str, Any], language: str) -> str:
    turned = other["gain"] < 0
    low, high = other["gain_low"], other["gain_high"]
    if other["verdict"] == "less":
        low, high = -high, -low
    return say(
        language,
        f"compare_{other['verdict']}" if other["verdict"] != "apart" else _apart(other, chosen, turned),
        where=_where(chosen, other, language),
        first=chosen["method"],
        second=other["method"],
        gain=points(abs(other["gain"]), language),
        low=points(low, language),
        high=points(high, language),
        risk=percent(chosen["risk"], language),
        other=percent(other["risk"], language),
    )


def _apart(other: dict[str, Any], chosen: dict[str, Any], keeps_more: bool) -> str:
    safer = other["risk"] < chosen["risk"]
    return f"apart_{'safer' if safer else 'riskier'}_{'keeps' if keeps_more else 'loses'}"


def _where(chosen: dict[str, Any], other: dict[str, Any], language: str) -> str:
    """Where the two are compared: the same k and risk, the same risk, or as near as the other comes."""
    ks = {"first": chosen["k"] or "–", "second": other["k"] or "–", "third": other["k_other"] or "–"}
    if other["k_other"] is not None:
        return say(language, "risk_between", **ks)
    if chosen["k"] is not None and chosen["k"] == other["k"]:
        return say(language, "risk_same_k" if other["same_risk"] else "same_k", k=chosen["k"])
    return say(language, "risk_same" if other["same_risk"] else "risk_nearest", **ks)


def _each_model(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """Model by model: what the chosen setting loses, whether that keeps the limit, and who does better at its risk."""
    out = []
    most = study.material.recipe.most_drop
    drop = f"drop_{study.main}"
    rows = study.quality.filter(
        (pl.col("protocol") == study.protocol)
        & (pl.col("method") == chosen["method"])
        & pl.col("k").eq_missing(pl.lit(chosen["k"], dtype=pl.Int64))
        & (pl.col("guarantees") == chosen["guarantees"])
        & (pl.col("model") != "majority")
        & pl.col(drop).is_not_null()
    )
    for row in rows.iter_rows(named=True):
        low, high = row[f"{drop}_low"], row[f"{drop}_high"]
        limit = {"surely": "limit_surely", "on average": "limit_average", "no": "limit_no"}
        first = say(
            language,
            "model_loses",
            model=row["model"],
            drop=points(row[drop], language, 2),
            range=_span(low, high, language, 2),
            quality=quality_name(study.main, language),
            limit=say(language, limit[within(row[drop], high, most)], most=points(most, language)),
        )
        out.append(f"{first} {_ranking(beside(study, chosen, row['model']), chosen, language)}".strip())
    return out


def _ranking(others: list[dict[str, Any]], chosen: dict[str, Any], language: str) -> str:
    """At the risk of the chosen setting: who loses less, who cannot be told from it, who loses more, who was not there."""
    if not others:
        return ""
    by_verdict: dict[str, list[dict[str, Any]]] = {}
    for other in others:
        by_verdict.setdefault(other["verdict"], []).append(other)
    parts = []
    if "less" in by_verdict:
        less = sorted(by_verdict["less"], key=lambda one: float(one["gain"]))
        names = [f"{one['method']} ({points(-one['gain'], language, 2)})" for one in less]
        parts.append(say(language, "rank_less", names=", ".join(names)))
    elif not set(by_verdict) & {"even", "one", "apart"}:
        parts.append(say(language, "rank_best", count=len(others)))
    for verdict in ("even", "one", "more", "apart"):
        if verdict in by_verdict and (verdict != "more" or len(by_verdict) > 1):
            names = [one["method"] for one in by_verdict[verdict]]
            parts.append(say(language, f"rank_{verdict}", names=", ".join(names)))
    start = say(language, "rank_start", risk=percent(chosen["risk"], language, 2))
    return f"{start} {'; '.join(parts)}."


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


def _across_clients(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """What the chosen setting comes to where clients anonymize and train, model by model and split by split."""
    out = []
    for row in study.federated_summary:
        if (row["method"], row["k"]) != (chosen["method"], chosen["k"]) or row["drop_accuracy"] is None:
            continue
        out.append(
            say(
                language,
                "federated_choice",
                model=row["model"],
                split=row["split"],
                setting=setting_text({**row, "guarantees": ""}),
                value=percent(row["accuracy"], language),
                drop=points(row["drop_accuracy"], language),
                range=_span(row["drop_accuracy_low"], row["drop_accuracy_high"], language),
            )
        )
    return out


def _span(low: float | None, high: float | None, language: str, digits: int = 1) -> str:
    """The interval in brackets; nothing where there is none."""
    if low is None:
        return ""
    return say(language, "range", low=points(low, language, digits), high=points(high, language, digits))


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
                    share=percent(row["share"], language, 0),
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
    if study.material.alone:
        out.append(say(language, "nt_alone", count=study.material.alone))
    if recipe.federated is None:
        out.append(say(language, "nt_federated"))
    elif any(recipe.guarantees) or recipe.per is not None:
        out.append(say(language, "nt_federated_promises"))
    out += [say(language, key) for key in ("nt_tuning", "nt_table", "nt_attack")]
    return out
