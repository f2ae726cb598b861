"""The sections about cost: loss, why, group sizes, distributions, rows left out. No figure is computed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from velado.study.report.blocks import Block, Section, chart, code, items, section, table, text
from velado.study.report.phrases import grouped_sentence, variant_name
from velado.study.report.words import Words

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
