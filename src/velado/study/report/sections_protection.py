"""The sections about protection: promise, risk, blanks, side doors, limits. No figure is computed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from velado.study.report.blocks import Section, chart, items, section, table, text
from velado.study.report.notes import few_digits
from velado.study.report.phrases import (
    attacker,
    blank_reading,
    door_sentence,
    guarantee_name,
    linkage_rule,
    promise_explanation,
    risk_change,
    unit_name,
    verdict_sentence,
)
from velado.study.report.words import Words

Facts = Mapping[str, Any]


def promise_section(facts: Facts, say: Words) -> Section:
    """What was promised, on what it was checked, and what was found."""
    promise = facts["promise"]
    blocks = [text(promise_explanation(promise["type"], say))]
    if promise["verdicts"]:
        rows = [
            [
                guarantee_name(verdict["guarantee"], say),
                f"{say.plain(verdict['needed'])} {unit_name(verdict['unit'], say)}",
                say.plain(verdict["achieved"]),
                say("holds") if verdict["holds"] else say("broken"),
            ]
            for verdict in promise["verdicts"]
        ]
        header = [say("guarantee"), say("needed"), say("weakest_group"), say("verdict")]
        blocks.append(table(say("promise_table"), header, rows))
        blocks.append(items([verdict_sentence(verdict, say) for verdict in promise["verdicts"]]))
        blocks.append(text(say("promise_how", columns=say.listed(facts["quasi"]))))
    else:
        blocks.append(text(say("promise_none", smallest=facts["class_sizes"]["smallest"])))
    ends = facts["interval_ends"]
    if ends["true"]:
        blocks.append(text(say("ends_true", columns=say.listed(ends["true"]))))
    if ends["rounded"]:
        steps = [
            say("ends_step", step=few_digits(step, say), column=name)
            for name, step in ends["rounded"].items()
        ]
        blocks.append(text(say("ends_rounded", columns=say.listed(steps))))
    return section("promise", say("promise_title"), blocks)


def risk_section(facts: Facts, say: Words) -> Section:
    """How exposed people were, and are now, to each attacker."""
    risk = facts["risk"]
    unit = unit_name("people" if risk["unit"] == "person" else "rows", say)
    rows, bars = [], []
    for name in ("prosecutor_highest", "prosecutor_mean", "journalist_highest", "marketer"):
        before, after = risk["before"][name], risk["after"][name]
        rows.append([attacker(name, say), say.share(before), say.share(after)])
        bars.append((attacker(name, say), [(before, say.share(before)), (after, say.share(after))]))
    blocks = [
        text(say("risk_intro"), say("risk_unit", unit=unit)),
        text(
            say(
                "risk_unique",
                rows=risk["unique_rows_before"],
                share=say.share(risk["unique_rows_share_before"]),
                after=risk["unique_rows_after"],
            ),
            ""
            if risk["unique_people_before"] is None
            else say("risk_unique_people", people=risk["unique_people_before"], of=risk["people"]),
        ),
        chart(
            "pairs",
            say("risk_chart"),
            risk_change(risk["before"]["prosecutor_highest"], risk["after"]["prosecutor_highest"], say),
            say("risk_axis"),
            bars,
            [say("before"), say("after")],
            in_table=True,
        ),
        table(say("risk_table"), [say("attacker"), say("before"), say("after")], rows),
        table(
            say("risk_above", unit=unit),
            [say("risk_threshold"), say("before"), say("after")],
            [
                [
                    f"> {say.share(float(limit), 0)}",
                    say.share(share),
                    say.share(risk["after"]["above"][limit]),
                ]
                for limit, share in risk["before"]["above"].items()
            ],
        ),
        text(say("risk_attackers"), "" if risk["population"] else say("risk_no_population")),
    ]
    linkage = risk["linkage"]
    if "skipped" in linkage:
        blocks.append(text(say("linkage_skipped", reason=linkage["skipped"])))
    else:
        blocks.append(
            text(
                say(
                    "linkage_found",
                    share=say.share(linkage["share"], 2),
                    correct=say.number(linkage["correct"]),
                    rows=int(linkage["rows"]),
                ),
                linkage_rule(linkage, say),
                say("linkage_one_attack"),
            )
        )
    return section("risk", say("risk_title"), blocks)


def blanks_section(facts: Facts, say: Words) -> Section:
    """The two readings of blanks and stars."""
    rows = [
        [blank_reading(reading["name"], say), say.count(reading["smallest"]), say.number(reading["mean"])]
        for reading in facts["readings_of_blanks"]
    ]
    header = [say("reading"), say("smallest_class"), say("mean_class")]
    return section(
        "blanks", say("blanks_title"), [text(say("blanks_intro")), table(say("blanks_table"), header, rows)]
    )


def doors_section(facts: Facts, say: Words) -> Section:
    """Published columns outside the promise that may undo it."""
    doors = facts["side_doors"]
    if not doors:
        return section("side-doors", say("doors_title"), [text(say("doors_none"))])
    rows = [
        [
            door["column"],
            door["reveals"] or "–",
            say.share(door["guess"]) if door["reveals"] else "–",
            say.share(door["baseline"]) if door["reveals"] else "–",
            say.count(door["smallest_class_with_column"]),
        ]
        for door in doors
        if door["column"]
    ]
    header = [
        say("column"),
        say("reveals"),
        say("guessed_with"),
        say("guessed_without"),
        say("smallest_with_column"),
    ]
    blocks = [
        text(say("doors_intro")),
        items([door_sentence(door, say) for door in doors]),
        table(say("doors_table"), header, rows, labels=2),
        text(say("doors_fix")),
    ]
    return section("side-doors", say("doors_title"), blocks)


def limits_section(facts: Facts, say: Words) -> Section:
    """What the release does not promise."""
    found = {verdict["guarantee"]: verdict for verdict in facts["promise"]["verdicts"]}
    limits = [say("limit_quasi", columns=say.listed(facts["quasi"]))]
    if "l-diversity" not in found:
        limits.append(say("limit_shared"))
    limits.append(say("limit_skew"))
    if "k-anonymity" in found and found["k-anonymity"]["unit"] == "rows":
        limits.append(say("limit_rows"))
    if facts["sensitive_in_view"]:
        limits.append(say("limit_minimality"))
    limits += [say("limit_twice"), say("limit_other"), say("limit_membership"), say("limit_law")]
    return section("limits", say("limits_title"), [text(say("limits_intro")), items(limits)])
