"""Facts -> the titled sections of the report, in words, in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from velado.study.report.blocks import Section, code, section, table, text
from velado.study.report.notes import as_typed, note_rows
from velado.study.report.sections_cost import (
    classes_section,
    distributions_section,
    loss_section,
    suppressed_section,
    why_section,
)
from velado.study.report.sections_disclosure import guesses_section, partial_section
from velado.study.report.sections_protection import (
    blanks_section,
    doors_section,
    limits_section,
    promise_section,
    risk_section,
)
from velado.study.report.words import Words

Facts = Mapping[str, Any]


def sections(facts: Facts, say: Words) -> list[Section]:
    """All sections in reading order: what a decision needs first comes first."""
    return [
        promise_section(facts, say),
        risk_section(facts, say),
        guesses_section(facts, say),
        partial_section(facts, say),
        loss_section(facts, say),
        why_section(facts, say),
        classes_section(facts, say),
        distributions_section(facts, say),
        blanks_section(facts, say),
        doors_section(facts, say),
        suppressed_section(facts, say),
        limits_section(facts, say),
        repeat_section(facts, say),
    ]


def repeat_section(facts: Facts, say: Words) -> Section:
    """How the release was made and how to make it again."""
    how = facts["how"]
    parameters = [
        f"{name} = {as_typed(value, say)}"
        for name, value in how["method"].items()
        if name != "name" and value is not None and value != ""
    ]
    rows = [
        [say("method"), f"{facts['method']['title']} ({how['method']['name']})"],
        [say("source"), facts["method"]["source"]],
        [say("parameters"), ", ".join(parameters) or "–"],
        [say("suppression_limit"), say.share(how["suppression_limit"])],
        [say("seed"), str(how["seed"])],
        [
            say("input_file"),
            f"{facts['input']['name']}, {say('keyed_digest')} {facts['input']['keyed_sha256']}",
        ],
        [say("output_file"), f"{facts['output']['file']}, SHA-256 {facts['output']['sha256']}"],
    ]
    rows += [
        [
            say("operation"),
            ", ".join(f"{k} = {as_typed(v, say)}" for k, v in entry.items() if v is not None),
        ]
        for entry in how["operations"]
    ]
    rows += note_rows(how["notes"], say)
    return section(
        "repeat",
        say("repeat_title"),
        [
            text(say("repeat_intro")),
            code("velado apply private/recipe.toml FILE -o FOLDER"),
            table(say("repeat_table"), [say("setting"), say("value")], rows, labels=2),
        ],
    )
