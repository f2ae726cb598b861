"""The sections on what the release gives away beside identity: guesses of sensitive values, partial knowledge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from velado.study.report.blocks import Section, section, table, text
from velado.study.report.words import Words

Facts = Mapping[str, Any]

SHOWN_SUBSETS = 8


def guesses_section(facts: Facts, say: Words) -> Section:
    """How often each sensitive value is guessed right from the release, and without it."""
    found = facts["measures"]["risk"].get("attribute_disclosure") or {}
    if not found:
        return section("guesses", say("guesses_title"), [text(say("guesses_none"))])
    rows = [
        [
            name,
            say.share(part["guessed"]["share"]),
            f"{say.share(part['guessed']['low'])} – {say.share(part['guessed']['high'])}",
            say.share(part["baseline"]["share"]),
            say.share(part["homogeneous"]["1"]),
        ]
        for name, part in found.items()
    ]
    header = [
        say("sensitive_column"),
        say("guessed_from_release"),
        say("guessed_interval"),
        say("guessed_blindly"),
        say("shared_value"),
    ]
    better = [name for name, part in found.items() if part["beats_baseline"]]
    return section(
        "guesses",
        say("guesses_title"),
        [
            text(say("guesses_intro")),
            table(say("guesses_table"), header, rows),
            text(
                say("guesses_better", columns=say.listed(better)) if better else say("guesses_no_better"),
                say("guesses_how"),
            ),
        ],
    )


def partial_section(facts: Facts, say: Words) -> Section:
    """What an attacker achieves who knows only some of the quasi-identifiers."""
    known = facts["measures"]["risk"].get("partial_knowledge")
    if known is None:
        return section("partial", say("partial_title"), [text(say("partial_skipped"))])
    rows = [
        [
            say.listed(part["columns"]),
            say.count(part["before"]["unique_rows"]),
            say.count(part["after"]["unique_rows"]),
            say.count(part["before"]["smallest_class"]),
            say.count(part["after"]["smallest_class"]),
        ]
        for part in known["worst"][:SHOWN_SUBSETS]
    ]
    header = [
        say("known_columns"),
        say("unique_before"),
        say("unique_after"),
        say("smallest_before"),
        say("smallest_after"),
    ]
    return section(
        "partial",
        say("partial_title"),
        [
            text(
                say(
                    "partial_intro",
                    largest=known["largest_subset"],
                    subsets=known["subsets"],
                    before=known["subsets_with_unique_rows_before"],
                    after=known["subsets_with_unique_rows_after"],
                )
            ),
            table(say("partial_table"), header, rows),
        ],
    )
