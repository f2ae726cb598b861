"""The page of a study: its blocks in order, as one self-contained HTML file to decide from, and as Markdown.

In the file no network, everything escaped; the script only shows, hides, sorts and saves what is there, so that without it
nothing but comfort is missing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from velado.measures.measure_registry import losses, risks
from velado.measures.models.quality import LEAST_VALUES
from velado.report.blocks import Block, Bullets, Figure, Legend, Page, Section, Text, VerdictCard, section
from velado.report.charts import DOTTED, INK, LegendEntry, definitions, swatch, tell
from velado.report.render import HTML_LANGUAGE, environment, render_markdown, source
from velado.study.evaluate._amounts import called, commas, names, number, percent, promises
from velado.study.evaluate.analysis import MAJORITY, StudyRow
from velado.study.evaluate.page import _convergence as convergence
from velado.study.evaluate.page import _panels as panels
from velado.study.evaluate.page import _tradeoff as tradeoff
from velado.study.evaluate.page._looks import COMMONEST, ORIGINAL_DATA, Looks
from velado.study.evaluate.page._study_tables import (
    gap_blocks,
    limit_blocks,
    line_columns,
    lines_of,
    plain_lines,
    protocol_blocks,
    same_risk_blocks,
    state_of,
    table_of,
    tradeoff_table,
)
from velado.study.evaluate.study_outcome import StudyFacts
from velado.text import Language, join, language, say, speaking, told


def to_markdown(facts: StudyFacts, language: Language = "en") -> str:
    """The study as Markdown: the recommendation, the tables behind it, the gaps, and what was not tested."""
    facts = facts.in_order()
    curves = convergence.curves_of(facts.federated)
    lines = table_of([*line_columns(facts).values()], lines_of(facts))
    with speaking(language):
        return render_markdown(
            _page(
                facts,
                section("tradeoff", TRADEOFF, tradeoff_table(facts)),
                section("federated", FEDERATED, *convergence.federated_blocks(facts, curves, None)),
                section("table", ALL_FIGURES, lines),
            )
        )


TRADEOFF = say("Loss against risk")
QUALITY = say("Model quality")
FEDERATED = say("Training across clients")
ALL_FIGURES = say("All figures")
GAP = say("could not be computed")


def _page(facts: StudyFacts, *middle: Section) -> Page:
    """What every view of a study says, in reading order, around its *middle*."""
    recipe, table = facts.recipe, facts.table
    seeds = facts.seeds
    intro = say(
        "{rows} rows, target {target} (a number), {features} columns as features, protocol {protocol}."
        if recipe.number
        else "{rows} rows, target {target} ({classes} classes), {features} columns as features, protocol {protocol}.",
        rows=number(table.rows, 0),
        target=recipe.data.target,
        classes=table.classes,
        features=len(table.features),
        protocol=facts.protocol,
    )
    intervals = (
        say(
            "Intervals are {confidence}%, over {seeds} seeds. Those of models are corrected for test parts that share rows "
            "(Nadeau and Bengio 2003); a difference is called sure only if it holds among all comparisons of this page "
            "(Holm 1979). They speak of this table, not of other tables.",
            confidence=_confidence(facts),
            seeds=facts.reported,
        )
        if facts.reported >= LEAST_VALUES
        else say(
            "A single seed: the interval of accuracy is over its test rows, other intervals cannot be given."
        )
        if seeds == 1
        else say("Two seeds: no interval can be given.")
    )
    averaged = (
        say(
            "Precision, recall and F1 are means over the classes, each counted once (macro); the AUC of several classes is "
            "the mean of one against the rest."
        )
        if recipe.data.positive is None
        else say("Precision, recall, F1 and AUC are those of the class the study file calls positive.")
    )
    rate = percent(facts.majority)
    commonest = say("Always saying the commonest class is right for {rate} of the test rows.", rate=rate)
    baseline = say(
        "Always saying the mean explains 0% of the variance; errors are in the unit of the target."
    )
    first, *why = facts.recommendation.sentences
    before = (
        section("limit", say("Against the original data"), *limit_blocks(facts)),
        section("same_risk", say("Which method keeps most at the same risk"), *same_risk_blocks(facts)),
    )
    return Page(
        title=say("Evaluation of {source}", source=table.source),
        subtitle=join(
            [intro, intervals, baseline] if recipe.number else [intro, intervals, averaged, commonest]
        ),
        verdict=VerdictCard(
            state=state_of(facts), label=say("Recommendation"), headline=first, details=tuple(why)
        ),
        key_figures=(
            Figure(say("rows"), number(table.rows, 0)),
            Figure(say("target"), recipe.data.target),
            Figure(say("methods"), commas(facts.methods), long=True),
            Figure("k", commas(recipe.anonymization.k)),
            Figure(say("seeds"), number(seeds, 0)),
            Figure(say("models"), commas(facts.models), long=True),
            Figure(say("protocol"), facts.protocol),
            Figure(
                say("cells computed"),
                say("{done} of {planned}", done=number(facts.done, 0), planned=number(facts.planned, 0)),
            ),
        ),
        sections=(
            *(part for part in before if part.blocks),
            *middle,
            section("protocols", say("What the protocol alone does"), *protocol_blocks(facts)),
            section("gaps", say("What could not be computed"), *gap_blocks(facts)),
            section("not_tested", say("What was not tested"), Bullets(facts.not_tested)),
        ),
        footer=say(
            "Made by velado on this computer; the page loads nothing and sends nothing. Table: fingerprint under the "
            "owner's key {digest}.",
            digest=table.keyed_sha256,
        ),
    )


def _confidence(facts: StudyFacts) -> str:
    return number(100 * facts.recipe.analyses.confidence, 0)


def to_html(facts: StudyFacts, language: Language = "en") -> str:
    """The page of a study in *language*.

    The policy in the page's head names the digests of its one style and one script: nothing else runs, not even where
    a name in the study holds markup. O(lines x qualities).
    """
    facts = facts.in_order()
    templates = environment("velado.study.evaluate.page", finish=_unbroken)
    style, script = (
        source(templates, "report.css") + source(templates, "page.css"),
        source(templates, "page.js"),
    )
    with speaking(language):
        return templates.get_template("study.html").render(
            language=HTML_LANGUAGE[language],
            policy=_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            marks=Markup(definitions()),
            say=say,
            **_content(facts),
        )


def _unbroken(value: str) -> str:
    """The text told, with a number and its sign, k and its number, and the two ends of an interval on one line."""
    return tell(value).replace("k = ", "k\u00a0=\u00a0").replace("…", "\u2060…\u2060")


def _policy(style: str, script: str) -> str:
    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _content(facts: StudyFacts) -> dict[str, object]:
    """The page with its charts, what a reader can choose, the table of all figures, and the script's data."""
    lines = lines_of(facts)
    settings = tradeoff.settings_of(facts)
    trained = [one for one in facts.federated if one.fit.rounds]
    drawn = [row.setting for row in (*settings, *lines)]
    looks = Looks.of([*drawn, *(one.setting for one in trained)])
    models = list(dict.fromkeys(str(line.model) for line in lines if line.model != MAJORITY))
    texts = tradeoff.texts_of(settings, facts, models)
    curves = convergence.curves_of(facts.federated)
    columns = line_columns(facts)
    metrics = facts.recipe.metrics
    page = _page(
        facts,
        section("tradeoff", TRADEOFF, *_tradeoff_blocks(facts, settings, texts, looks)),
        section("quality", QUALITY, *_quality_blocks(facts, lines, models, looks)),
        section("federated", FEDERATED, *convergence.federated_blocks(facts, curves, looks)),
        section("table", ALL_FIGURES),
    )
    return {
        "page": page,
        "filters": _filters(looks, models),
        "choices": {
            "tradeoff": [
                ("loss", say("loss"), tradeoff.measured(settings, losses(), metrics.loss), metrics.loss),
                ("risk", say("risk"), tradeoff.measured(settings, risks(), metrics.risk), metrics.risk),
            ],
            "quality": [
                ("metric", say("quality"), metrics.quality, facts.main),
                ("protocol", say("protocol"), facts.recipe.analyses.protocols, facts.protocol),
            ],
            "federated": [("measure", say("measure"), [*convergence.MEASURES], "accuracy")],
        },
        "names": {**names(), **{key: called(name) for key, name in convergence.MEASURES.items()}},
        "confidence": _confidence(facts),
        "columns": columns,
        "table_figures": [figure for _, figure, _ in columns.values()],
        "lines": [
            {
                "cells": [show(line) for _, _, show in columns.values()],
                "data": {
                    **looks.tags(line.setting),
                    **({"o": models.index(line.model)} if line.model in models else {}),
                },
                "gap": line.seeds == 0,
            }
            for line in lines
        ],
        "data": {
            "language": HTML_LANGUAGE[language()],
            "table": plain_lines(facts, lines),
            **spoken(
                {
                    "words": {
                        "shown": say("{shown} of {all} lines"),
                        "round": convergence.ROUND,
                        "mark_gap": GAP,
                    },
                    "measures": {key: called(name) for key, name in convergence.MEASURES.items()},
                    "settings": [vars(one) for one in texts],
                    "curves": convergence.data_of(curves),
                }
            ),
        },
    }


def spoken(value: Any) -> Any:
    """The same plain values with every text told in the language spoken.

    >>> spoken({"head": [say("method"), 3]})
    {'head': ['method', 3]}
    """
    if isinstance(value, str):
        return told(value)
    if isinstance(value, Mapping):
        return {key: spoken(one) for key, one in value.items()}
    return [spoken(one) for one in value] if isinstance(value, list | tuple) else value


def _tradeoff_blocks(
    facts: StudyFacts, settings: Sequence[StudyRow], texts: Sequence[tradeoff.SettingTip], looks: Looks
) -> list[Block]:
    chosen = [LegendEntry(say("recommended"), swatch(INK, mark="chosen"))] if facts.choice else []
    original = LegendEntry(ORIGINAL_DATA, swatch(INK, mark="star"))
    note = say(
        "Numbers beside points are k; where points crowd, k is in the table and shown when a point is pointed at. Down and "
        "left is better: less lost, less risk."
    )
    return [
        *tradeoff.drawings(facts, settings, texts, looks),
        Legend((*looks.legend(), original, *chosen)),
        Text(note, hint=True),
    ]


def _quality_blocks(
    facts: StudyFacts, lines: Sequence[StudyRow], models: Sequence[str], looks: Looks
) -> list[Block]:
    marks = (
        LegendEntry(ORIGINAL_DATA, swatch(INK, dash="")),
        LegendEntry(COMMONEST, swatch(INK, dash=DOTTED)),
        LegendEntry(GAP, swatch(INK, mark="gap")),
    )
    bars = (
        say(
            "Bars are {confidence}% intervals over {seeds} seeds. Solid line: the same model on the original data, its "
            "interval shaded.",
            confidence=_confidence(facts),
            seeds=facts.reported,
        )
        if facts.reported >= LEAST_VALUES
        else say("Two seeds: no bars. Solid line: the same model on the original data.")
        if facts.seeds > 1
        else say(
            "One seed: the bars of accuracy are over its test rows, other measures have none. Solid line: the same model on "
            "the original data."
        )
    )
    note = say(
        "Dotted line: always saying the commonest class. A cross at the foot marks what could not be computed."
    )
    return [
        *panels.drawings(facts, lines, models, looks),
        Legend((*looks.legend(), *marks)),
        Text(join([bars, note]), hint=True),
    ]


def _filters(looks: Looks, models: Sequence[str]) -> list[tuple[str, str, Sequence[str]]]:
    """Boxes to tick: methods, promises, models; a kind with a single entry has nothing to choose."""
    kinds = (
        ("m", say("method"), looks.methods),
        ("g", say("promise"), tuple(promises(one) or say("k alone") for one in looks.promises)),
        ("o", say("model"), models),
    )
    return [kind for kind in kinds if len(kind[2]) > 1]
