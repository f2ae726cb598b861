"""Facts -> the titled sections of the report, in words, in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from velado.report.blocks import Block, Section, chart, code, items, section, table, text
from velado.report.notes import as_typed, few_digits, note_rows
from velado.report.phrases import (
    attacker,
    blank_reading,
    door_sentence,
    grouped_sentence,
    guarantee_name,
    linkage_rule,
    promise_explanation,
    risk_change,
    unit_name,
    variant_name,
    verdict_sentence,
)
from velado.report.report_words import Words

# The sections about cost: loss, why, group sizes, distributions, rows left out. No figure is computed here.

Facts = Mapping[str, Any]


def loss_section(facts: Facts, say: Words) -> Section:
    """What the release gave up, per column and overall."""
    loss = facts["loss"]
    ordered = sorted(loss["by_column"].items(), key=lambda item: (-item[1], item[0]))
    false = loss["false_cells"]
    header = [say("column"), say("loss")]
    rows = [[name, say.share(value)] for name, value in ordered]
    rows.append([say("overall"), say.share(loss["overall"])])
    if false is not None:
        header.append(say("false_cells"))
        shares = [*(false["by_column"].get(name, 0.0) for name, _ in ordered), false["share"]]
        rows = [[*row, say.share(share)] for row, share in zip(rows, shares, strict=True)]
    dearest = ordered[0]
    blocks = [
        text(
            say("loss_intro", loss=say.share(loss["overall"])),
            say("loss_variant", variant=variant_name(loss["variant"], say)),
        ),
        *_bound(loss, say),
        chart(
            "bars",
            say("loss_chart"),
            say("loss_chart_described", column=dearest[0], loss=say.share(dearest[1])),
            say("loss_axis"),
            [(name, [(value, say.share(value))]) for name, value in ordered],
            [say("loss")],
            in_table=True,
        ),
        table(say("loss_table"), header, rows),
        text(_false_cells(false, say)),
    ]
    return section("loss", say("loss_title"), blocks)


def _bound(loss: Mapping[str, Any], say: Words) -> list[Block]:
    """How far the best possible is, where the method proved a bound on it."""
    above = loss["above_best_percent"]
    if above is None:
        return []
    near = say("bound_reached") if above <= 0 else say("bound_at_most", above=above)
    return [text(near, say("bound_means", bound=say.share(loss["lower_bound"])))]


def _false_cells(false: Mapping[str, Any] | None, say: Words) -> str:
    if false is None:
        return say("false_unknown")
    if not false["cells"]:
        return say("false_none")
    return say("false_some", cells=int(false["cells"]), share=say.share(false["share"]))


def why_section(facts: Facts, say: Words) -> Section:
    """Which columns and rows carry the loss, and what another setting would change."""
    why = facts["why"]
    if facts["loss"]["overall"] == 0:
        blocks = [text(say("why_nothing"))]
    else:
        shares = sorted(why["share_by_column"].items(), key=lambda item: (-item[1], item[0]))
        most = [f"{name} ({say.share(share)})" for name, share in shares[:3] if share > 0]
        blocks = [
            text(say("why_columns", columns=say.listed(most))),
            text(say("why_rows", one=say.share(why["carried_by_1"]), five=say.share(why["carried_by_5"]))),
            text(say("why_even") if why["carried_by_5"] < 0.15 else say("why_outliers")),
            table(
                say("why_rows_table"),
                [say("row_number"), say("dearest_column"), say("loss")],
                [
                    [say.count(r["row"]), say.listed(r["columns"]), say.share(r["loss"])]
                    for r in why["costliest_rows"]
                ],
                labels=2,
            ),
        ]
    runs = why["what_if"]
    if why["what_if_skipped"]:
        reasons = {"large": say("what_if_large"), "no-k": say("what_if_no_k")}
        blocks.append(text(reasons[why["what_if_skipped"]]))
    if runs:
        k, limit = why["now"]["k"], why["now"]["suppression"]
        done = [why["now"], *(run for run in runs if not run["failed"])]
        blocks.append(
            table(
                say("what_if_table"),
                [
                    "k",
                    say("suppression_limit"),
                    say("loss"),
                    say("suppressed_rows"),
                    say("classes"),
                    say("smallest_class"),
                ],
                [
                    [
                        f"{say.count(run['k'])}{' *' if (run['k'], run['suppression']) == (k, limit) else ''}",
                        say.share(run["suppression"]),
                        say.share(run["loss"]),
                        say.count(run["suppressed"]),
                        say.count(run["groups"]),
                        say.count(run["smallest"]),
                    ]
                    for run in done
                ],
            )
        )
        blocks.append(text(say("what_if_note")))
        failed = [
            say("what_if_failed", k=run["k"], suppression=say.share(run["suppression"]), why=run["failed"])
            for run in runs
            if run["failed"]
        ]
        if failed:
            blocks.append(items(failed))
    blocks.append(text(say("other_methods")))
    blocks.append(code(f"velado compare FILE --schema SCHEMA -k {why['now']['k'] or 5}"))
    return section("why", say("why_title"), blocks)


def classes_section(facts: Facts, say: Words) -> Section:
    """How large the crowds are."""
    sizes = facts["class_sizes"]
    bars = zip(sizes["histogram"]["sizes"], sizes["histogram"]["rows"], strict=True)
    summary = say(
        "classes_intro",
        classes=sizes["classes"],
        smallest=sizes["smallest"],
        median=say.plain(sizes["median"]),
        mean=say.number(sizes["mean"]),
        largest=sizes["largest"],
    )
    return section(
        "classes",
        say("classes_title"),
        [
            text(summary),
            chart(
                "bars",
                say("classes_chart"),
                summary,
                say("classes_axis"),
                [(label, [(float(count), say.count(count))]) for label, count in bars],
                [say("rows")],
            ),
        ],
    )


def distributions_section(facts: Facts, say: Words) -> Section:
    """Each quasi-identifier before and after."""
    blocks = [text(say("distributions_intro"))]
    for name, found in facts["distributions"].items():
        bars = []
        for at, (label, before, after) in enumerate(
            zip(found["labels"], found["before"], found["after"], strict=True)
        ):
            if at == found["blank"]:
                label = say("blank")
            elif at == found["other"]:
                label = say("other_values")
            bars.append((label, [(before, say.share(before)), (after, say.share(after))]))
        blocks.append(
            chart(
                "columns",
                say("distribution_of", column=name),
                say("distribution_described", column=name, moved=say.share(found["total_variation"])),
                say("distribution_axis"),
                bars,
                [say("before"), say("after")],
            )
        )
        blocks.append(
            text(
                grouped_sentence(found["grouped"], name, say),
                say("distribution_moved", column=name, moved=say.share(found["total_variation"])),
            )
        )
    return section("distributions", say("distributions_title"), blocks)


def suppressed_section(facts: Facts, say: Words) -> Section:
    """Rows that did not leave, and everything else a steward should know of the run."""
    output = facts["output"]
    blocks = []
    if output["suppressed_rows"]:
        blocks.append(
            text(
                say(
                    "suppressed_some",
                    rows=output["suppressed_rows"],
                    share=say.share(output["suppressed_share"]),
                    limit=say.share(facts["how"]["suppression_limit"]),
                ),
                say("suppressed_numbers", numbers=", ".join(map(str, output["suppressed_row_numbers"]))),
                say("suppressed_bias"),
            )
        )
    else:
        blocks.append(text(say("suppressed_none")))
    warnings = list(facts["warnings"])
    if facts["formulas"]:
        warnings.append(say("formulas", cells=facts["formulas"]))
    blocks.append(items(warnings) if warnings else text(say("warnings_none")))
    return section("suppressed", say("suppressed_title"), blocks)


# The sections on what the release gives away beside identity: guesses of sensitive values, partial knowledge.

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


# The sections about protection: promise, risk, blanks, side doors, limits. No figure is computed here.


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
