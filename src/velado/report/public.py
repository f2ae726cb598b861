"""The page that leaves with the table: what was promised, what it cost, what each column is; nothing of the original."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from velado.report.blocks import Section, section, table, text
from velado.report.phrases import role_name
from velado.report.render import render_html
from velado.report.report_words import Words
from velado.report.sections import limits_section, promise_section

Facts = Mapping[str, Any]


def public_page(summary: Mapping[str, Any]) -> str:
    """The short public page of a release, from the same facts as its report.

    It is made of what the published table shows anyway: sizes of its groups, its loss, its columns. What was measured
    on the original (risks before, distributions, row numbers) stays in the report.
    """
    say = Words(summary["language"])
    facts, report = summary["facts"], summary["report"]
    output = facts["output"]
    loss = fmean(facts["public_losses"].values())
    page = {
        "title": say("public_title"),
        "subtitle": say(
            "public_subtitle",
            rows=output["rows"],
            columns=output["columns"],
            method=facts["method"]["title"],
        ),
        "verdict": {
            **report["verdict"],
            "details": [
                say("cost_sentence", loss=say.share(loss), rows=output["suppressed_rows"]),
                *report["verdict"]["details"][1:],
            ],
        },
        "notice": {"title": say("public_notice_title"), "text": say("public_notice", file=output["file"])},
        "key_figures": [
            {"name": say("key_smallest"), "value": say.count(facts["class_sizes"]["smallest"])},
            {"name": say("key_loss"), "value": say.share(loss)},
            {"name": say("key_suppressed"), "value": say.count(output["suppressed_rows"])},
        ],
        "contents": say("contents"),
        "sections": [promise_section(facts, say), columns_section(facts, say), limits_section(facts, say)],
        "footer": report["footer"],
    }
    return render_html({"language": summary["language"], "report": page})


def columns_section(facts: Facts, say: Words) -> Section:
    """What each published column is and what it lost; columns somebody signed for, with the reason."""
    losses = facts["public_losses"]
    rows = [
        [
            column["name"],
            role_name(column["role"], say),
            say.share(losses[column["name"]]) if column["name"] in losses else "–",
        ]
        for column in facts["columns"]
    ]
    blocks = [
        text(say("columns_intro")),
        table(say("columns_table"), [say("column"), say("column_role"), say("loss")], rows, labels=2),
    ]
    done = [f"{entry['name']}: {entry['column']}" for entry in facts["how"]["operations"]]
    if done:
        blocks.append(text(say("operations_done", operations="; ".join(done))))
    if facts["signed_columns"]:
        signed = [[one["column"], one["reason"]] for one in facts["signed_columns"]]
        blocks += [
            text(say("signed_intro")),
            table(say("signed_table"), [say("column"), say("reason")], signed, labels=2),
        ]
    return section("columns", say("columns_title"), blocks)
