"""The blocks a report section is made of: plain dicts, so that every renderer shows the same content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Block = dict[str, Any]
Section = dict[str, Any]


def section(name: str, title: str, blocks: Sequence[Block]) -> Section:
    """One titled part of the report; *name* is its anchor."""
    return {"name": name, "title": title, "blocks": list(blocks)}


def text(*sentences: str) -> Block:
    """A paragraph."""
    return {"kind": "text", "text": " ".join(sentence for sentence in sentences if sentence)}


def items(entries: Sequence[str]) -> Block:
    """A list."""
    return {"kind": "list", "items": list(entries)}


def code(line: str) -> Block:
    """A command to copy."""
    return {"kind": "code", "text": line}


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], labels: int = 1) -> Block:
    """A table; the first *labels* columns are labels, the rest are figures and stand to the right."""
    return {
        "kind": "table",
        "title": title,
        "header": list(header),
        "rows": [list(row) for row in rows],
        "labels": labels,
    }


def chart(
    shape: str,
    title: str,
    description: str,
    axis: str,
    bars: Sequence[tuple[str, Sequence[tuple[float, str]]]],
    series: Sequence[str],
    in_table: bool = False,
) -> Block:
    """A chart of *shape* "bars", "pairs" or "columns": per label one (value, text) for each of *series*.

    *description* says in words what the chart shows, *axis* names the unit. *in_table* is true when a table of
    the same section has all its figures: where charts cannot be drawn it is then left out.
    """
    return {
        "kind": "chart",
        "shape": shape,
        "title": title,
        "description": description,
        "axis": axis,
        "series": list(series),
        "in_table": in_table,
        "bars": [
            {"label": label, "values": [value for value, _ in pairs], "texts": [text for _, text in pairs]}
            for label, pairs in bars
        ],
    }
