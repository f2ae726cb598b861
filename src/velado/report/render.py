"""The report as Markdown: the same blocks as the page; charts become tables of their numbers, once each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from velado.report.charts import Bar, Pair, bars, columns, paired_bars
from velado.report.report_words import HTML_LANGUAGE

# The report as one self-contained HTML page: no script, no network, printable, everything escaped.


def render_html(summary: Mapping[str, Any]) -> str:
    """The summary as a page. Column names and values of the table are shown as text, never as markup."""
    environment = Environment(
        loader=PackageLoader("velado.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    template = environment.get_template("report.html.j2")
    report = summary["report"]
    return template.render(draw=draw, html_language=HTML_LANGUAGE[summary["language"]], **report)


def draw(block: Mapping[str, Any]) -> Markup:
    """One chart block as inline SVG. charts.py escapes every text it is given, so the result is safe."""
    series = block["series"]
    if block["shape"] == "bars":
        single = [Bar(bar["label"], bar["values"][0], bar["texts"][0]) for bar in block["bars"]]
        return Markup(bars(block["title"], block["description"], single, block["axis"]))
    pairs = [
        Pair(bar["label"], *(Bar(bar["label"], bar["values"][at], bar["texts"][at]) for at in (0, 1)))
        for bar in block["bars"]
    ]
    shape = columns if block["shape"] == "columns" else paired_bars
    return Markup(shape(block["title"], block["description"], pairs, block["axis"], series[0], series[1]))


# The report as JSON: the summary itself, facts and texts.


def render_json(summary: Mapping[str, Any]) -> str:
    """The summary as text. A number that is not finite would be no JSON, so there must be none."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


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
