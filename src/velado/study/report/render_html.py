"""The report as one self-contained HTML page: no script, no network, printable, everything escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from velado.study.report.charts import Bar, Pair, bars, columns, paired_bars
from velado.study.report.words import HTML_LANGUAGE


def render_html(summary: Mapping[str, Any]) -> str:
    """The summary as a page. Column names and values of the table are shown as text, never as markup."""
    environment = Environment(
        loader=PackageLoader("velado.study.report", "templates"),
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
