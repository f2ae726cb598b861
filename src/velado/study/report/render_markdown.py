"""The report as Markdown: the same blocks as the page; charts become tables of their numbers, once each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def render_markdown(summary: Mapping[str, Any]) -> str:
    """The summary as Markdown. Texts are escaped: a column name cannot become markup or a link."""
    report = summary["report"]
    verdict = report["verdict"]
    lines = [f"# {_plain(report['title'])}", "", _plain(report["subtitle"]), ""]
    lines += [f"> **{_plain(verdict['label'])}: {_plain(verdict['headline'])}**"]
    lines += [f">\n> {_plain(sentence)}" for sentence in verdict["details"]]
    lines += ["", f"**{_plain(report['notice']['title'])}** {_plain(report['notice']['text'])}", ""]
    lines += [f"- {_plain(entry['name'])}: {_plain(entry['value'])}" for entry in report["key_figures"]]
    for section in report["sections"]:
        lines += ["", f"## {_plain(section['title'])}"]
        for block in section["blocks"]:
            if not block.get("in_table"):
                lines += ["", *_block(block)]
    lines += ["", "---", "", _plain(report["footer"]), ""]
    return "\n".join(lines)


def _block(block: Mapping[str, Any]) -> list[str]:
    if block["kind"] == "text":
        return [_plain(block["text"])]
    if block["kind"] == "list":
        return [f"- {_plain(item)}" for item in block["items"]]
    if block["kind"] == "code":
        return ["```", block["text"].replace("`", "'").replace("\n", " "), "```"]
    if block["kind"] == "table":
        return _table(block["title"], block["header"], block["rows"], block["labels"])
    rows = [[bar["label"], *bar["texts"]] for bar in block["bars"]]
    header = [block["axis"], *block["series"]]
    return _table(block["title"], header, rows, 1)


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], labels: int) -> list[str]:
    rule = ["---" if at < labels else "---:" for at in range(len(header))]
    return [
        f"**{_plain(title)}**",
        "",
        _line([_plain(cell) for cell in header]),
        _line(rule),
        *[_line([_plain(cell) for cell in row]) for row in rows],
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text.replace("\r", " ").replace("\n", " "))
