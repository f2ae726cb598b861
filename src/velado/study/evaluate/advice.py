"""The recommendation in words with its reasons, and what the study did not test.

The rule is plain: among the settings that lose at most `most_drop` of the main quality (and keep the risk at or below
`most_risk`, where one is given), the one with the least risk; ties by the smaller drop. Methods are compared at the same
risk, not at the same k, and called different only where the interval of their seed-by-seed difference leaves out zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from velado.measures.models.model_registry import MODELS
from velado.measures.models.quality import Interval
from velado.release.methods import METHODS
from velado.study.evaluate.amounts import EVEN, amount, at_most, bare, digits_beside, lost, span
from velado.study.evaluate.matched import beside, within
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS, protocol_named
from velado.study.evaluate.study_grid import ORIGINAL
from velado.study.evaluate.study_words import loss_text, percent, promises_in, quality_name, say

if TYPE_CHECKING:
    from velado.study.evaluate.analysis import Study


# Why no setting can be recommended: the true reason, found in the results.


def no_choice(study: Study, language: str) -> str:
    """The sentence that says why there is no recommendation. O(settings)."""
    recipe = study.material.recipe
    quality, risk = quality_name(study.main, language), say(language, f"name_{recipe.risk}")
    table = study.tradeoff.filter(pl.col("method") != ORIGINAL)
    drop, risks = pl.col("drop").is_not_null(), pl.col("risk").is_not_null()
    if not table.height:
        return say(language, "none_released")
    if not table.filter(drop).height:
        missing = study.models_left_out
        if not study.models_asked:
            return say(language, "none_modelled")
        if missing == study.models_asked:
            return say(language, "none_measured", names=", ".join(missing), quality=quality)
        return say(language, "none_lost", quality=quality)
    if not table.filter(risks).height:
        return say(language, "none_risk", risk=risk)
    if not table.filter(drop & risks).height:
        return say(language, "none_both", quality=quality, risk=risk)
    return say(language, "none_below", limit=percent(recipe.most_risk, language))


# Whether models learn anything: are they right more often than always saying the commonest class, and is that sure.


@dataclass(frozen=True)
class Above:
    """A model with a setting: how often it is right, and by how much it beats the commonest class.

    *clear* says that it does so in every seed, or by more than two standard errors: then few seeds are why it is not
    sure, for Student's interval of two seeds is thirteen standard errors wide on either side.
    """

    model: str
    accuracy: float
    gain: Interval
    clear: bool

    @property
    def sure(self) -> bool:
        """Whether the whole interval lies above zero."""
        return self.gain.low is not None and self.gain.low > 0


def above_majority(study: Study, setting: dict[str, Any]) -> list[Above]:
    """Every model with *setting*, the most often right first."""
    same = pl.all_horizontal(
        pl.col(name).eq_missing(pl.lit(setting[name])) for name in ("method", "k", "guarantees")
    )
    cells = study.done.filter(
        same
        & (pl.col("protocol") == study.protocol)
        & (pl.col("kind") == "model")
        & (pl.col("model") != "majority")
        & pl.col("accuracy").is_not_null()
        & pl.col("majority").is_not_null()
    )
    found = []
    for (model,), part in cells.group_by(["model"], maintain_order=True):
        gains = part.get_column("accuracy") - part.get_column("majority")
        gain = study.interval_of(gains)
        if gain is not None:
            mean: Any = part.get_column("accuracy").mean()
            found.append(Above(str(model), float(mean), gain, _clear(gains)))
    return sorted(found, key=lambda one: -one.accuracy)


def _clear(gains: pl.Series) -> bool:
    values = [float(value) for value in gains]
    mean = math.fsum(values) / len(values)
    if mean <= 0 or len(values) == 1:
        return mean > 0
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    return min(values) > 0 or mean > 2 * error


def over_majority(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """Whether models learn anything from the release, and whether there is anything to learn at all.

    One model that surely does is enough. Where none surely does but one clearly lies above, the seeds are too few.
    """
    majority = percent(study.majority(), language)
    out = []
    found = above_majority(study, chosen)
    if found:
        key, one = _told(found)
        out.append(
            say(
                language,
                f"{key}_majority",
                model=one.model,
                value=percent(one.accuracy, language),
                majority=majority,
                seeds=one.gain.count,
            )
        )
    before = above_majority(study, {"method": ORIGINAL, "k": None, "guarantees": ""})
    if not before or study.main != "accuracy":
        return out
    key, one = _told(before)
    if key == "near":
        out.append(say(language, "nothing_to_learn", majority=majority))
    elif key == "few":
        value = percent(one.accuracy, language)
        out.append(
            say(
                language,
                "few_to_learn",
                model=one.model,
                value=value,
                majority=majority,
                seeds=one.gain.count,
            )
        )
    return out


def _told(found: list[Above]) -> tuple[str, Above]:
    """Which sentence is true, and of which model: over, one (a single seed), few or near."""
    for one in found:
        if one.sure:
            return "over", one
    for one in found:
        if one.clear:
            return ("one" if one.gain.low is None else "few"), one
    return "near", found[0]


TIE = 0.02
"""Risks within this share of each other are taken for equal when a setting is chosen."""


def recommend(study: Study, language: str) -> dict[str, Any]:
    """The chosen setting (None where there is none), and the sentences that say why."""
    chosen, reached = choose(study)
    recipe = study.material.recipe
    sentences: list[str] = []
    if chosen is None:
        sentences.append(no_choice(study, language))
        if study.tradeoff.height and study.tradeoff.get_column("risk").null_count() == study.tradeoff.height:
            sentences.append(say(language, "risk_unknown", risk=say(language, f"name_{recipe.risk}")))
    else:
        sentences.append(_choice(study, chosen, language))
        sentences += _rests_on(study, chosen, language)
        sentences += _why(study, chosen, reached, language)
        sentences += _each_model(study, chosen, language)
        sentences += _beside(study, chosen, language)
        sentences += over_majority(study, chosen, language)
        sentences += _across_clients(study, chosen, language)
    sentences += _protocol_notes(study, language)
    if study.gaps.height:
        sentences.append(say(language, "gaps_note", gaps=study.gaps.height, cells=study.planned))
    return {"choice": chosen, "within_limit": reached, "sentences": sentences}


def choose(study: Study) -> tuple[dict[str, Any] | None, bool]:
    """The setting to recommend, and whether it keeps the drop within the limit."""
    table = _considered(study)
    if not table.height:
        return None, False
    good = _good(study, table)
    if not good.height:
        return table.sort("drop", "risk", "method").row(0, named=True), False
    near = good.filter(pl.col("risk") <= _least_risk(good) * (1 + TIE))
    return near.sort("drop", "risk", "method").row(0, named=True), True


def _considered(study: Study) -> pl.DataFrame:
    """The settings of which drop and risk are known, within the limit of the risk where there is one."""
    most = study.material.recipe.most_risk
    table = study.tradeoff.filter(
        (pl.col("method") != ORIGINAL) & pl.col("drop").is_not_null() & pl.col("risk").is_not_null()
    )
    return table if most is None else table.filter(pl.col("risk") <= most)


def _good(study: Study, table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("drop") <= study.material.recipe.most_drop + EVEN)


def _least_risk(good: pl.DataFrame) -> float:
    return float(good.get_column("risk").min() or 0.0)  # type: ignore[arg-type]


def setting_text(setting: dict[str, Any], language: str = "en") -> str:
    """`method, k = 10, further promises`."""
    parts = [setting["method"]]
    if setting["k"] is not None:
        parts.append(f"k = {setting['k']}")
    promised = promises_in(setting["guarantees"] or "", language)
    return ", ".join([*parts, *([promised] if promised else [])])


def _rests_on(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """Which models the average leaves out, and how many of the seeds it holds."""
    out = []
    if study.models_left_out:
        names, quality = ", ".join(study.models_left_out), quality_name(study.main, language)
        out.append(say(language, "left_out", names=names, quality=quality))
    seeds = len(study.material.recipe.seeds)
    if chosen["seeds"] < seeds:
        out.append(say(language, "seeds_missing", done=chosen["seeds"], seeds=seeds))
    return out


def _why(study: Study, chosen: dict[str, Any], reached: bool, language: str) -> list[str]:
    """Why this setting: the least risk within the limit (or about the least), or the least loss; and how sure that is."""
    recipe = study.material.recipe
    most = amount(study.main, recipe.most_drop, language)
    if not reached:
        out = [say(language, "why_none", most=most)]
    else:
        least = _least_risk(_good(study, _considered(study)))
        about = chosen["risk"] > least * (1 + EVEN)
        told = {"least": percent(least, language, 2), "tie": percent(TIE, language, 0)} if about else {}
        out = [say(language, "why_risk_about" if about else "why_risk", most=most, **told)]
        if chosen["drop_high"] is None:
            out.append(say(language, "not_sure_one"))
        elif not at_most(chosen["drop_high"], recipe.most_drop):
            out.append(say(language, "not_sure"))
    if recipe.most_risk is not None:
        out.append(say(language, "why_risk_limit", limit=percent(recipe.most_risk, language)))
    return out


def _choice(study: Study, chosen: dict[str, Any], language: str) -> str:
    recipe = study.material.recipe
    before = study.tradeoff.filter(pl.col("method") == ORIGINAL).get_column("risk").to_list()
    ends = (chosen["drop"], chosen["drop_low"], chosen["drop_high"])
    digits = digits_beside(study.main, ends, recipe.most_drop)
    return say(
        language,
        "choice",
        setting=setting_text(chosen, language),
        lost=lost("it", study.main, chosen["drop"], language, digits),
        range=span(study.main, *ends, language, digits),
        risk_name=say(language, f"name_{recipe.risk}"),
        risk=percent(chosen["risk"], language),
        before=percent(before[0] if before else None, language),
        loss_name=say(language, f"name_{recipe.loss}"),
        loss=loss_text(chosen["loss"], recipe.loss, language),
    )


def _beside(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """The chosen setting beside every other method at the same risk, over all models."""
    return [_compared(study.main, chosen, other, language) for other in beside(study, chosen)]


def _compared(main: str, chosen: dict[str, Any], other: dict[str, Any], language: str) -> str:
    key, turned = _sentence(chosen, other)
    low, high = other["gain_low"], other["gain_high"]
    if turned and low is not None:
        low, high = -high, -low
    return say(
        language,
        key,
        where=_where(chosen, other, language),
        first=chosen["method"],
        second=other["method"],
        gain=amount(main, abs(other["gain"]), language),
        low=bare(main, low, language),
        high=bare(main, high, language),
        range_end=amount(main, high, language),
        risk=percent(chosen["risk"], language),
        other=percent(other["risk"], language),
    )


def _sentence(chosen: dict[str, Any], other: dict[str, Any]) -> tuple[str, bool]:
    """The sentence for two methods, and whether its numbers say how much less the other loses.

    Apart in risk, a difference is stated only where its whole interval lies on one side of zero.
    """
    if other["verdict"] != "apart":
        return f"compare_{other['verdict']}", other["verdict"] == "less"
    if other["gain_low"] is None:
        return "compare_one", False
    risk = "safer" if other["risk"] < chosen["risk"] else "riskier"
    if other["gain_low"] > 0:
        return f"apart_{risk}_loses", False
    return (f"apart_{risk}_keeps", True) if other["gain_high"] < 0 else (f"apart_{risk}_even", False)


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
        ends = (row[drop], row[f"{drop}_low"], row[f"{drop}_high"])
        digits = digits_beside(study.main, ends, most, 2)
        kept = within(row[drop], ends[2], most)
        if kept == "on average" and ends[2] is None:
            kept = "one"
        first = say(
            language,
            "model_loses",
            model=row["model"],
            lost=lost("it", study.main, row[drop], language, digits),
            range=span(study.main, *ends, language, digits),
            limit=say(language, _LIMIT[kept], most=bare(study.main, most, language)),
        )
        others = beside(study, chosen, row["model"])
        out.append(f"{first} {_ranking(study.main, others, chosen, language)}".strip())
    return out


_LIMIT = {"surely": "limit_surely", "on average": "limit_average", "one": "limit_one", "no": "limit_no"}


def _ranking(main: str, others: list[dict[str, Any]], chosen: dict[str, Any], language: str) -> str:
    """At the risk of the chosen setting: who loses less, who cannot be told from it, who loses more, who was not there."""
    if not others:
        return ""
    by_verdict: dict[str, list[dict[str, Any]]] = {}
    for other in others:
        by_verdict.setdefault(other["verdict"], []).append(other)
    parts = []
    if "less" in by_verdict:
        less = sorted(by_verdict["less"], key=lambda one: float(one["gain"]))
        names = [f"{one['method']} ({amount(main, -one['gain'], language, 2)})" for one in less]
        parts.append(say(language, "rank_less", names=", ".join(names)))
    elif not set(by_verdict) & {"even", "one", "apart"}:
        parts.append(say(language, "rank_best", count=len(others)))
    for verdict in ("even", "one", "more", "apart"):
        if verdict in by_verdict and (verdict != "more" or len(by_verdict) > 1):
            names = [one["method"] for one in by_verdict[verdict]]
            parts.append(say(language, f"rank_{verdict}", names=", ".join(names)))
    start = say(language, "rank_start", risk=percent(chosen["risk"], language, 2))
    return f"{start} {'; '.join(parts)}."


def _across_clients(study: Study, chosen: dict[str, Any], language: str) -> list[str]:
    """What the chosen setting comes to where clients anonymize and train, model by model and split by split."""
    out = []
    for row in study.federated_summary:
        if (row["method"], row["k"]) != (chosen["method"], chosen["k"]) or row["drop_accuracy"] is None:
            continue
        drop, low, high = (row[f"drop_accuracy{end}"] for end in ("", "_low", "_high"))
        out.append(
            say(
                language,
                "federated_choice",
                model=row["model"],
                split=row["split"],
                setting=setting_text({**row, "guarantees": ""}, language),
                value=percent(row["accuracy"], language),
                lost=lost("apart", "accuracy", drop, language),
                range=span("accuracy", drop, low, high, language),
            )
        )
    return out


def _protocol_notes(study: Study, language: str) -> list[str]:
    table = {row["protocol"]: row for row in study.protocols.to_dicts()}
    honest = table.get(DEFAULT_PROTOCOL)
    if honest is None or honest["drop"] is None:
        return []
    out = []
    for name, row in table.items():
        if name == DEFAULT_PROTOCOL or row["drop"] is None:
            continue
        values = {
            "protocol": name,
            "seem": lost("seem", study.main, row["drop"], language),
            "honest": lost("they", study.main, honest["drop"], language),
        }
        out.append(say(language, "protocol_drop", **values))
        if row["pairs"]:
            numbers = {key: amount(study.main, row[key], language) for key in ("between", "due", "default")}
            bared = {f"{key}_bare": bare(study.main, row[key], language) for key in ("due", "default")}
            share = percent(row["share"], language, 0)
            counts = {key: row[key] for key in ("reversed", "pairs")}
            out.append(
                say(language, "protocol_pairs", protocol=name, share=share, **numbers, **bared, **counts)
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
