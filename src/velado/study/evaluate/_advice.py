"""The recommendation in words with its reasons, methods at the same risk, and what the study did not test.

The rule is plain: among the settings that lose at most `most_drop` of the main quality (and keep the risk at or below
`most_risk`, where one is given), the one with the least risk; ties by the smaller drop.

Methods are compared at the same risk, not at the same k, and called different only where the interval of their
seed-by-seed difference leaves out zero (`matched`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import polars as pl

from velado.measures.models.model_registry import MODELS
from velado.measures.models.quality import Interval
from velado.release.methods import METHODS
from velado.study.evaluate._amounts import (
    EVEN,
    amount,
    at_most,
    bare,
    called,
    digits_beside,
    figure,
    interval_of,
    lost,
    number,
    percent,
)
from velado.study.evaluate._matched import SAME, Rival, beside, within
from velado.study.evaluate._study_grid import ORIGINAL
from velado.study.evaluate.analysis import MAJORITY, Analysis, ReleaseSetting, StudyRow
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS, protocol_named
from velado.text import NOTHING, join, say, say_n

# ---- the choice


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The chosen setting (None where there is none), whether it keeps the limit, and the sentences that say why."""

    choice: StudyRow | None
    within_limit: bool
    sentences: tuple[str, ...]


def recommend(study: Analysis) -> Recommendation:
    """What to use, with its reasons, and what must be known beside it."""
    chosen, reached = choose(study)
    sentences = (*(_reasons(study, chosen, reached) if chosen else _without(study)), *_beside_it(study))
    return Recommendation(choice=chosen, within_limit=reached, sentences=sentences)


def _reasons(study: Analysis, chosen: StudyRow, reached: bool) -> Iterator[str]:
    yield _choice(study, chosen)
    yield from _rests_on(study, chosen)
    yield from _why(study, chosen, reached)
    yield from _each_model(study, chosen)
    for other in beside(study, chosen.setting, _risk(chosen)):
        yield _compared(study.main, chosen, other)
    yield from over_majority(study, chosen.setting)
    yield from _across_clients(study, chosen)


def _without(study: Analysis) -> Iterator[str]:
    yield no_choice(study)
    if study.tradeoff and all(row["risk"].mean is None for row in study.tradeoff):
        yield say(
            "The risk ({risk}) was not measured for any setting: very large tables are not compared row by row. Set "
            'risk = "reidentification" in [metrics].',
            risk=called(study.material.recipe.metrics.risk),
        )


def _beside_it(study: Analysis) -> Iterator[str]:
    yield from _protocol_notes(study)
    if study.gaps.height:
        yield say(
            "{gaps} of {cells} cells could not be computed; their reasons stand below, and no average holds them.",
            gaps=study.gaps.height,
            cells=study.planned,
        )


def choose(study: Analysis) -> tuple[StudyRow | None, bool]:
    """The setting to recommend, and whether it keeps the drop within the limit."""
    rows = _considered(study)
    good = _good(study, rows)
    least = min((_risk(row) for row in good), default=0.0)
    near = [row for row in good if _risk(row) <= least * (1 + SAME)] or rows

    def order(row: StudyRow) -> tuple[float, float, str]:
        return row["drop"].mean or 0.0, _risk(row), row.setting.method

    return min(near, key=order, default=None), bool(good)


def _considered(study: Analysis) -> list[StudyRow]:
    """The settings of which drop and risk are known, within the limit of the risk where there is one."""
    most = study.material.recipe.analyses.most_risk
    return [row for row in study.compared if most is None or _risk(row) <= most]


def _good(study: Analysis, rows: Iterable[StudyRow]) -> list[StudyRow]:
    most = study.material.recipe.analyses.most_drop
    return [row for row in rows if at_most(row["drop"].mean or 0.0, most)]


def _risk(row: StudyRow) -> float:
    return row["risk"].mean or 0.0


def no_choice(study: Analysis) -> str:
    """The sentence that says why there is no recommendation: the true reason, found in the results."""
    recipe = study.material.recipe
    quality, risk = called(study.main), called(recipe.metrics.risk)
    rows = [row for row in study.tradeoff if not row.setting.is_original]
    if not rows:
        return say(
            "No setting can be recommended: no release was made. The reasons stand under what could not be computed."
        )
    if all(row["drop"].mean is None for row in rows):
        missing = study.models_left_out
        if not study.models_asked:
            return say(
                "No setting can be recommended: what a release loses is asked of models, and none was trained besides "
                "always saying the commonest class. Add one to use in [models]."
            )
        if missing == study.models_asked:
            return say(
                "No setting can be recommended: the {quality} of {names} is not known, so what is lost is not either. "
                "Put another quality first in [metrics] quality, or add a model that has it.",
                quality=quality,
                names=", ".join(missing),
            )
        return say(
            "No setting can be recommended: in no seed is the {quality} of all models known both on a release and on "
            "the original rows. The reasons stand under what could not be computed.",
            quality=quality,
        )
    if all(row["risk"].mean is None for row in rows):
        return say("No setting can be recommended: the risk ({risk}) of none is known.", risk=risk)
    if not study.compared:
        return say(
            "No setting can be recommended: none has both its {quality} and its risk ({risk}) known.",
            quality=quality,
            risk=risk,
        )
    return say(
        "No setting can be recommended: none keeps the risk at or below the limit of {limit}.",
        limit=percent(recipe.analyses.most_risk),
    )


def _choice(study: Analysis, chosen: StudyRow) -> str:
    metrics, drop = study.material.recipe.metrics, chosen["drop"]
    before = next((row["risk"].mean for row in study.tradeoff if row.setting.is_original), None)
    digits = digits_beside(study.main, drop, study.material.recipe.analyses.most_drop)
    return say(
        "Use {setting}: {lost} on average over the models{range}, with a risk ({risk_name}) of {risk} "
        "(original: {before}); {loss_name}: {loss}.",
        setting=chosen.setting.name,
        lost=lost("it", study.main, drop.mean or 0.0, digits),
        range=interval_of(study.main, drop, digits),
        risk_name=called(metrics.risk),
        risk=percent(chosen["risk"].mean),
        before=percent(before),
        loss_name=called(metrics.loss),
        loss=figure(metrics.loss, chosen["loss"].mean),
    )


def _rests_on(study: Analysis, chosen: StudyRow) -> Iterator[str]:
    """Which models the average leaves out, and how many of the seeds it holds."""
    if study.models_left_out:
        yield say(
            "Not in that average, because their {quality} is not known: {names}.",
            quality=called(study.main),
            names=", ".join(study.models_left_out),
        )
    seeds = len(study.material.recipe.anonymization.seeds)
    if chosen.seeds < seeds:
        yield say(
            "It rests on {done} of {seeds} seeds only; in the others something could not be computed.",
            done=chosen.seeds,
            seeds=seeds,
        )


def _why(study: Analysis, chosen: StudyRow, reached: bool) -> Iterator[str]:
    """Why this setting: the least risk within the limit (or about the least), or the least loss; and how sure that is."""
    limits = study.material.recipe.analyses
    most = amount(study.main, limits.most_drop)
    if not reached:
        yield say("No setting loses at most {most}; this one loses least.", most=most)
    else:
        least = min(_risk(row) for row in _good(study, _considered(study)))
        if _risk(chosen) > least * (1 + EVEN):
            yield say(
                "Of all settings that lose at most {most} it leaves about the least risk: the least is {least}, "
                "and where risks differ by at most {tie} the smaller loss decides.",
                most=most,
                least=percent(least, 2),
                tie=percent(SAME, 0),
            )
        else:
            yield say("Of all settings that lose at most {most} it leaves the least risk.", most=most)
        kept = within(chosen["drop"], limits.most_drop)
        if kept == "one":
            yield say("One seed gives no interval: more seeds could decide otherwise.")
        elif kept != "surely":
            yield say("Its interval reaches beyond that limit: more seeds could decide otherwise.")
    if limits.most_risk is not None:
        limit = percent(limits.most_risk)
        yield say("Only settings with a risk of at most {limit} were considered.", limit=limit)


_COMPARED = {
    "more": say(
        "{where}, {first} loses {gain} less than {second} ({low} to {high}), at a risk of {risk} against {other}."
    ),
    "less": say(
        "{where}, {second} loses {gain} less than {first} ({low} to {high}), at a risk of {other} against {risk}: "
        "on this it is better."
    ),
    "even": say(
        "{where}, these seeds tell no difference between {first} and {second} ({low} to {range_end}), at a risk of "
        "{risk} against {other}."
    ),
    "one": say(
        "{where}, {first} and {second} differ by {gain} in one seed, which decides nothing; the risk is {risk} "
        "against {other}."
    ),
    "safer more": say(
        "{where}, {second} loses {gain} more than {first} ({low} to {high}) and leaves less risk ({other} against "
        "{risk}): it was not run at this risk."
    ),
    "riskier less": say(
        "{where}, {second} loses {gain} less than {first} ({low} to {high}) and leaves more risk ({other} against "
        "{risk}): it was not run at this risk."
    ),
    "safer even": say(
        "{where}, these seeds do not tell whether {second} loses more or less than {first} ({low} to {range_end}); it "
        "leaves less risk ({other} against {risk}) and was not run at this one."
    ),
    "riskier even": say(
        "{where}, these seeds do not tell whether {second} loses more or less than {first} ({low} to {range_end}); it "
        "leaves more risk ({other} against {risk}) and was not run at this one."
    ),
}


def _compared(main: str, chosen: StudyRow, other: Rival) -> str:
    """The chosen setting beside another method.

    Apart in risk, a difference is stated only where its whole interval lies on one side of zero.
    """
    gain, low, high = other.gain.ends
    key: str = other.verdict
    if key == "apart" and (low is None or high is None):
        key = "one"
    elif key == "apart":
        side = "more" if (low or 0.0) > 0 else "less" if (high or 0.0) < 0 else "even"
        key = f"{'safer' if other.risk < _risk(chosen) else 'riskier'} {side}"
    if key.endswith("less") and low is not None and high is not None:
        low, high = -high, -low  # the numbers then say how much less the other loses
    return say(
        _COMPARED[key],
        where=_where(chosen.setting, other),
        first=chosen.setting.method,
        second=other.method,
        gain=amount(main, abs(gain or 0.0)),
        low=bare(main, low),
        high=bare(main, high),
        range_end=amount(main, high),
        risk=percent(_risk(chosen)),
        other=percent(other.risk),
    )


def _where(chosen: ReleaseSetting, other: Rival) -> str:
    """Where the two are compared: the same k and risk, the same risk, or as near as the other comes."""
    first, second = chosen.k or NOTHING, other.k or NOTHING
    if other.k_other is not None:
        return say(
            "At the same risk (k = {first}; the other between k = {second} and k = {third})",
            first=first,
            second=second,
            third=other.k_other or NOTHING,
        )
    if chosen.k is not None and chosen.k == other.k:
        return say("At k = {k} and about the same risk" if other.same_risk else "At k = {k}", k=first)
    return say(
        "At about the same risk (k = {first} and k = {second})"
        if other.same_risk
        else "Where the risks come nearest (k = {first} and k = {second})",
        first=first,
        second=second,
    )


_LIMIT = {
    "surely": say(", within the limit of {most}"),
    "on average": say(", on average within the limit of {most}, but not surely"),
    "one": say(", in one seed within the limit of {most}"),
    "no": say(", more than the limit of {most}"),
}


def _each_model(study: Analysis, chosen: StudyRow) -> Iterator[str]:
    """Model by model: what the chosen setting loses, whether that keeps the limit, and who does better at its risk."""
    most = study.material.recipe.analyses.most_drop
    for row in study.known_drops:
        if (row.protocol, row.setting) != (study.protocol, chosen.setting):
            continue
        drop = row[f"drop_{study.main}"]
        digits = digits_beside(study.main, drop, most, 2)
        first = say(
            "With {model} {lost}{range}{limit}.",
            model=row.model,
            lost=lost("it", study.main, drop.mean or 0.0, digits),
            range=interval_of(study.main, drop, digits),
            limit=say(_LIMIT[within(drop, most)], most=bare(study.main, most)),
        )
        others = beside(study, chosen.setting, _risk(chosen), row.model)
        yield join([first, _ranking(study.main, others, _risk(chosen))]) if others else first


_RANKS = {
    "less": say("less is lost by {names}"),
    "even": say("no difference is told from {names}"),
    "one": say("one seed decides nothing about {names}"),
    "more": say("more is lost by {names}"),
    "apart": say("not run at such a risk, or not surely better or worse: {names}"),
}


def _ranking(main: str, others: Sequence[Rival], risk: float) -> str:
    """At the risk of the chosen setting: who loses less, who cannot be told from it, who loses more, who was not there."""
    seen = {other.verdict for other in others}
    parts: list[str] = []
    if seen == {"more"}:
        count = len(others)
        parts.append(say("none of the {count} other methods run loses as little", count=count))
    for verdict, template in _RANKS.items():
        found = [one for one in others if one.verdict == verdict]
        if not found or seen == {"more"}:
            continue
        names: list[str] = [one.method for one in found]
        if verdict == "less":
            found.sort(key=lambda one: one.gain.mean or 0.0)
            names = [
                join([one.method, join(["(", amount(main, -(one.gain.mean or 0.0), 2), ")"], "")])
                for one in found
            ]
        parts.append(say(template, names=join(names, ", ")))
    return say("At its risk ({risk}) {parts}.", risk=percent(risk, 2), parts=join(parts, "; "))


# ---- whether models learn anything: are they right more often than always saying the commonest class, and is that sure


@dataclass(frozen=True)
class Above:
    """A model with a setting: how often it is right, and by how much it beats the commonest class.

    *clear* says that it does so in every seed, or by more than two standard errors: then few seeds are why it is not
    sure, for Student's interval of two seeds is thirteen standard errors wide on either side.

    >>> Above("knn", 0.8, Interval(0.2, 0.1, 0.3), True).sure
    True
    """

    model: str
    accuracy: float
    gain: Interval
    clear: bool

    @property
    def sure(self) -> bool:
        """Whether the whole interval lies above zero."""
        return self.gain.low is not None and self.gain.low > 0


def above_majority(study: Analysis, setting: ReleaseSetting) -> list[Above]:
    """Every model with *setting*, the most often right first."""
    cells = study.done.filter(
        (pl.col("protocol") == study.protocol)
        & (pl.col("kind") == "model")
        & (pl.col("model") != MAJORITY)
        & (pl.col("method") == setting.method)
        & pl.col("k").eq_missing(pl.lit(setting.k))
        & (pl.col("guarantees") == setting.guarantees)
        & pl.col("accuracy").is_not_null()
        & pl.col("majority").is_not_null()
    )
    found = []
    for (model,), part in cells.group_by(["model"], maintain_order=True):
        gains = (part.get_column("accuracy") - part.get_column("majority")).to_list()
        right = fmean(part.get_column("accuracy").to_list())
        found.append(Above(str(model), right, study.estimate(gains), _clear(gains)))
    return sorted(found, key=lambda one: -one.accuracy)


def _clear(gains: Sequence[float]) -> bool:
    mean = fmean(gains)
    if mean <= 0 or len(gains) == 1:
        return mean > 0
    return min(gains) > 0 or mean > 2 * stdev(gains) / math.sqrt(len(gains))


_OVER = {
    "over": say(
        "With it {model} is right for {value} of the test rows, surely more often than always saying the commonest "
        "class ({majority})."
    ),
    "one": say(
        "With it {model} is right for {value} of the test rows in one seed; always saying the commonest class for "
        "{majority}."
    ),
    "few": say(
        "With it {model} is right for {value} of the test rows, always saying the commonest class for {majority}; "
        "{seeds} seeds are too few to make it sure: run more."
    ),
    "near": say(
        "With it no model is surely right more often ({model}: {value}) than always saying the commonest class "
        "({majority})."
    ),
}


def over_majority(study: Analysis, chosen: ReleaseSetting) -> Iterator[str]:
    """Whether models learn anything from the release, and whether there is anything to learn at all.

    One model that surely does is enough. Where none surely does but one clearly lies above, the seeds are too few.
    """
    for setting, words in (
        (chosen, _OVER),
        (
            ReleaseSetting(ORIGINAL),
            {
                "few": say(
                    "On the original rows {model} is right for {value} of the test rows, always saying the commonest "
                    "class for {majority}; {seeds} seeds are too few to make it sure: run more."
                ),
                "near": say(
                    "Even on the original rows no model is surely right more often than always saying the commonest "
                    "class ({majority}): accuracy cannot tell methods apart here. Put auc or balanced_accuracy first "
                    "in [metrics] quality."
                ),
            },
        ),
    ):
        found = above_majority(study, setting)
        if not found or (setting.is_original and study.main != "accuracy"):
            continue
        key, one = _told(found)
        if key in words:
            yield say(
                words[key],
                model=one.model,
                value=percent(one.accuracy),
                majority=percent(study.majority),
                seeds=one.gain.count,
            )


def _told(found: Sequence[Above]) -> tuple[str, Above]:
    """Which sentence is true, and of which model: over, one (a single seed), few or near."""
    for one in found:
        if one.sure:
            return "over", one
    for one in found:
        if one.clear:
            return ("one" if one.gain.low is None else "few"), one
    return "near", found[0]


def _across_clients(study: Analysis, chosen: StudyRow) -> Iterator[str]:
    """What the chosen setting comes to where clients anonymize and train, model by model and split by split."""
    for one in study.across_clients:
        row, drop = one.row, one.row["drop_accuracy"]
        if (row.setting.method, row.setting.k) != (
            chosen.setting.method,
            chosen.setting.k,
        ) or drop.mean is None:
            continue
        yield say(
            "Trained across clients ({model}, {split}), {setting} ends at {value} accuracy, {lost}{range}.",
            model=row.model,
            split=row.split,
            setting=row.setting.name,
            value=percent(row["accuracy"].mean),
            lost=lost("apart", "accuracy", drop.mean),
            range=interval_of("accuracy", drop),
        )


def _protocol_notes(study: Analysis) -> Iterator[str]:
    honest = next((one for one in study.protocols if one.protocol == DEFAULT_PROTOCOL), None)
    for one in study.protocols:
        if honest is None or one is honest:
            continue
        yield say(
            "Under {protocol} releases {seem}; asked about true rows, as the default protocol does, they {honest}.",
            protocol=one.protocol,
            seem=lost("seem", study.main, one.drop),
            honest=lost("they", study.main, honest.drop),
        )
        if one.pairs:
            yield say(
                "Under {protocol} two methods lie {between} apart on average, under the default protocol {default}; "
                "the protocol alone moves their difference by {due}: {due_bare} / ({due_bare} + {default_bare}) = "
                "{share} of what is seen is due to it, and {reversed} of {pairs} comparisons turn round.",
                protocol=one.protocol,
                between=amount(study.main, one.between),
                default=amount(study.main, one.default),
                due=amount(study.main, one.due),
                due_bare=bare(study.main, one.due),
                default_bare=bare(study.main, one.default),
                share=percent(one.share, 0),
                reversed=one.reversed,
                pairs=one.pairs,
            )


def not_tested(study: Analysis) -> Iterator[str]:
    """What a reader might take for granted and the study did not look at."""
    recipe, material = study.material.recipe, study.material
    axes = recipe.anonymization
    run = {MAJORITY, *recipe.analyses.protocols, *(one.name for one in axes.methods)}
    run |= {one.name for one in recipe.models.use}

    def others(parts: Iterable[object]) -> str:
        return ", ".join(name for part in parts if (name := str(getattr(part, "name", ""))) not in run)

    methods, models, protocols = others(METHODS), others(MODELS), others(PROTOCOLS)
    promised, part = any(axes.guarantees), percent(1 - recipe.analyses.test_share, 0)
    if methods:
        yield say("Methods not run: {names}.", names=methods)
    if models:
        yield say("Models not trained: {names}.", names=models)
    if protocols:
        yield say("Protocols not run: {names}.", names=protocols)
    yield say("Only k = {ks}; what lies between or beyond was not run.", ks=", ".join(map(str, axes.k)))
    if not promised:
        yield say(
            "No promise beyond k: what a release says about the sensitive values of a whole group is measured, not bounded."
        )
    if len(axes.seeds) == 1:
        yield say("One seed: chance cannot be told from difference.")
    if protocol_named(study.protocol).scope == "train":
        yield say(
            "Loss and risk are those of releases of the training part, {share} of the rows; a release of all rows loses a "
            "little less.",
            share=part,
        )
    if material.dropped:
        yield say("{count} rows without a target were left out.", count=number(material.dropped, 0))
    if material.alone:
        yield say_n(
            "{n} class has too few people: models learn it, and no test part could ask about it.",
            "{n} classes have too few people: models learn them, and no test part could ask about them.",
            material.alone,
        )
    if recipe.federated is None:
        yield say("Rows were all in one place; training across sites is not part of this study.")
    elif promised or axes.per is not None:
        yield say("Clients promise k alone: other promises and per were not tried across clients.")
    yield say("Model settings are fixed, not tuned; a tuned model may rank methods differently.")
    yield say("One table and one target: another target may need other columns and another k.")
    yield say("The attacker of the risk figures knows all quasi-identifiers of everybody and nothing else.")
