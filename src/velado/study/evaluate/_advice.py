"""The recommendation in words with its reasons, methods at the same risk, and what the study did not test.

What is recommended is settled in `_choice`, what may be called sure in `_claims`; here it is told. A sentence says what was
found, then between which values it lies; where seeds or rows are too few, it says how many would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from velado.measures.models.model_registry import MODELS
from velado.measures.models.quality import LEAST_VALUES
from velado.release.methods import METHODS
from velado.study.evaluate._amounts import (
    EVEN,
    amount,
    bare,
    called,
    digits_beside,
    figure,
    interval_of,
    lost,
    number,
    percent,
)
from velado.study.evaluate._choice import SAME, Choice, Decision, considered, kept_at_first, risk_of, within
from velado.study.evaluate._claims import Above, Claims, claims_of
from velado.study.evaluate._matched import Rival
from velado.study.evaluate.analysis import (
    LEAST_TO_SPLIT,
    MAJORITY,
    Analysis,
    ReleaseSetting,
    StudyRow,
)
from velado.study.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS, protocol_named
from velado.text import NOTHING, join, say, say_n

# ---- the choice


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The setting that is spoken of (None where there is none), how far it is decided, and the sentences that say why.

    *more_seeds* or *rows* say what would decide what is open.
    """

    choice: StudyRow | None
    decision: Decision
    sentences: tuple[str, ...]
    more_seeds: int | None = None
    rows: int | None = None

    @property
    def within_limit(self) -> bool:
        """Whether it surely keeps the limit, so that it is recommended."""
        return self.decision == "use"


def recommend(study: Analysis, claims: Claims | None = None) -> Recommendation:
    """What to use, with its reasons, and what must be known beside it."""
    claims = claims or claims_of(study)
    made = claims.choice
    reasons = _without(study) if made.row is None else _reasons(study, made.row, claims)
    return Recommendation(
        choice=made.row,
        decision=made.decision,
        sentences=(*reasons, *_beside_it(study)),
        more_seeds=made.more_seeds,
        rows=made.rows,
    )


def _reasons(study: Analysis, chosen: StudyRow, claims: Claims) -> Iterator[str]:
    yield _headline(study, chosen, claims.choice)
    yield from _rests_on(study, chosen)
    yield _what_it_leaves(study, chosen)
    yield from _why(study, chosen, claims.choice)
    yield from _each_model(study, chosen, claims)
    for other in claims.rivals.get(None, ()):
        yield _compared(study.main, chosen, other, claims.count)
    yield from over_majority(study, claims)
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


_HEADLINES: dict[Decision, str] = {
    "use": say("Use {setting}: {lost} on average over the models{range}, within the limit of {most}."),
    "open": say(
        "This table cannot decide yet. {setting} comes nearest: {lost} on average over the models{range}, and the limit is "
        "{most}."
    ),
    "beyond": say(
        "No setting keeps the limit of {most}. {setting} comes nearest: {lost} on average over the models{range}."
    ),
}


def _headline(study: Analysis, chosen: StudyRow, made: Choice) -> str:
    """What to do, in one or two sentences: use it, or what would decide."""
    drop, limit = chosen["drop"], study.material.recipe.analyses.most_drop
    digits = digits_beside(study.main, drop, limit)
    first = say(
        _HEADLINES[made.decision],
        setting=chosen.setting.name,
        lost=lost("it", study.main, drop.mean or 0.0, digits),
        range=interval_of(study.main, drop, digits),
        most=amount(study.main, limit),
    )
    return first if made.decision != "open" else join([first, _would_decide(made)])


def _would_decide(made: Choice) -> str:
    if made.more_seeds is not None:
        return say_n(
            "About {n} more seed would decide.", "About {n} more seeds would decide.", made.more_seeds
        )
    if made.rows is not None:
        return say(
            "A table of about {rows} rows would decide; more seeds of this one would not.",
            rows=number(made.rows, 0),
        )
    return say(
        "The mean loss lies so near the limit that no number of seeds or rows can be named: set another limit, or try other settings."
    )


def _what_it_leaves(study: Analysis, chosen: StudyRow) -> str:
    metrics = study.material.recipe.metrics
    before = next((row["risk"].mean for row in study.tradeoff if row.setting.is_original), None)
    return say(
        "With it the risk ({risk_name}) is {risk}; in the original table it is {before}. Its loss ({loss_name}) is {loss}.",
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
    seeds = len(study.reported)
    if chosen.seeds < seeds:
        yield say(
            "It rests on {done} of {seeds} seeds; in the others something could not be computed.",
            done=chosen.seeds,
            seeds=seeds,
        )


def _why(study: Analysis, chosen: StudyRow, made: Choice) -> Iterator[str]:
    """Why this setting: the least risk within the limit (or about the least); how sure that is, and on which seeds."""
    limits = study.material.recipe.analyses
    seeds, told = len(study.material.recipe.anonymization.seeds), len(study.reported)
    if made.decision == "use":
        least = min(risk_of(row) for row in kept_at_first(study, considered(study)))
        if risk_of(chosen) > least * (1 + EVEN):
            yield say(
                "On the seeds that chose it, it leaves about the least risk of the settings whose whole interval keeps the limit: the least "
                "is {least}, and where risks differ by at most {tie} the smaller loss decides.",
                least=percent(least, 2),
                tie=percent(SAME, 0),
            )
        else:
            yield say(
                "On the seeds that chose it, it leaves the least risk of the settings whose whole interval keeps the limit."
            )
    elif made.decision == "open" and chosen["drop"].high is None:
        yield say_n(
            "{n} seed shows no interval, so that chance cannot be told from loss.",
            "{n} seeds show no interval, so that chance cannot be told from loss.",
            chosen["drop"].count,
        )
    elif made.decision == "open":
        if within(chosen["drop"], limits.most_drop) == "surely":
            yield say(
                "Its interval keeps the limit, but the same seeds tried {count} settings, and the best of many keeps it by "
                "luck more often.",
                count=len(considered(study)),
            )
        else:
            yield say("Its interval lies on both sides of the limit.")
    if study.splits_seeds:
        yield say(
            "It was chosen on {first} seeds (random splits of the rows); what is told of it comes from the {others} others, so that "
            "luck in choosing does not pass for quality.",
            first=seeds - told,
            others=told,
        )
    elif seeds > 1:
        yield say(
            "The same {seeds} seeds chose it and speak of it, so its loss may look a little smaller than it is. From {least} "
            "seeds on, some choose and the others report.",
            seeds=seeds,
            least=LEAST_TO_SPLIT,
        )
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
        "{where}, no difference between {first} and {second} is shown ({low} to {range_end}), at a risk of {risk} "
        "against {other}."
    ),
    "one": say(
        "{where}, {first} and {second} differ by {gain}; too few seeds to tell that from chance. The risk is {risk} "
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
        "{where}, it is open whether {second} loses more or less than {first} ({low} to {range_end}); it leaves less risk "
        "({other} against {risk}) and was not run at this one."
    ),
    "riskier even": say(
        "{where}, it is open whether {second} loses more or less than {first} ({low} to {range_end}); it leaves more risk "
        "({other} against {risk}) and was not run at this one."
    ),
}


def _compared(main: str, chosen: StudyRow, other: Rival, comparisons: int) -> str:
    """The chosen setting beside another method. A difference is stated only where it is sure among all comparisons."""
    gain, low, high = other.gain.ends
    key: str = other.verdict
    if key == "apart" and (low is None or high is None):
        key = "one"
    elif key == "apart":
        side = "even" if not other.sure else "more" if (gain or 0.0) > 0 else "less"
        key = f"{'safer' if other.risk < risk_of(chosen) else 'riskier'} {side}"
    if key.endswith("less") and low is not None and high is not None:
        low, high = -high, -low  # the numbers then say how much less the other loses
    alone = key.endswith("even") and low is not None and high is not None and low * high > 0
    said = say(
        _COMPARED[key],
        where=_where(chosen.setting, other),
        first=chosen.setting.method,
        second=other.method,
        gain=amount(main, abs(gain or 0.0)),
        low=bare(main, low),
        high=bare(main, high),
        range_end=amount(main, high),
        risk=percent(risk_of(chosen)),
        other=percent(other.risk),
    )
    return (
        said
        if not alone
        else join([said, say("Among {count} comparisons that can be chance.", count=comparisons)])
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
    "on average": say(", on average within the limit of {most}; its interval reaches beyond"),
    "one": say(", within the limit of {most} in seeds too few for an interval"),
    "no": say(", more than the limit of {most}"),
}


def _each_model(study: Analysis, chosen: StudyRow, claims: Claims) -> Iterator[str]:
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
        others = claims.rivals.get(row.model, ())
        yield join([first, _ranking(study.main, others, risk_of(chosen))]) if others else first


_RANKS = {
    "less": say("less is lost by {names}"),
    "even": say("no difference is shown from {names}"),
    "one": say("too few seeds to compare with {names}"),
    "more": say("more is lost by {names}"),
    "apart": say("there is no setting of {names} to compare"),
}


def _ranking(main: str, others: Sequence[Rival], risk: float) -> str:
    """At the risk of the chosen setting: who loses less, who cannot be told from it, who loses more, who was not there."""
    seen = {other.verdict for other in others}
    parts: list[str] = []
    if seen == {"more"}:
        count = len(others)
        parts.append(
            say("the other method loses more")
            if count == 1
            else say("all {count} other methods lose more", count=count)
        )
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
        "{seeds} seeds are too few to make that sure: run more."
    ),
    "near": say(
        "With it the best model ({model}) is right for {value} of the test rows, always saying the commonest class for "
        "{majority}: it is not shown that models learn anything."
    ),
}


_OVER_ORIGINAL = {
    "few": say(
        "On the original rows {model} is right for {value} of the test rows, always saying the commonest class for "
        "{majority}; {seeds} seeds are too few to make that sure: run more."
    ),
    "near": say(
        "On the original rows, too, it is not shown that a model beats always saying the commonest class ({majority}): "
        "accuracy cannot tell methods apart here. Put auc or balanced_accuracy first in [metrics] quality."
    ),
}


def over_majority(study: Analysis, claims: Claims) -> Iterator[str]:
    """Whether models learn anything from the release, and whether there is anything to learn at all.

    One model that surely does is enough. Where none surely does but one clearly lies above, the seeds are too few.
    """
    for setting, found in claims.above.items():
        words = _OVER_ORIGINAL if setting.is_original else _OVER
        if not found:
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
            return ("one" if one.gain.count < 2 else "few"), one
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

    kind = "number" if recipe.number else "class"
    models = others(one for one in MODELS if one.predicts == kind)
    methods, protocols = others(METHODS), others(PROTOCOLS)
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
    if len(axes.seeds) < LEAST_VALUES:
        yield say_n(
            "{n} seed: chance cannot be told from difference.",
            "{n} seeds: chance cannot be told from difference.",
            len(axes.seeds),
        )
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
