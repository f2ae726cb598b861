"""Schemas and tables for tests, each in a line: what is special about a column stands out, the rest is a word."""

import json
from typing import Any

import polars as pl

from velado.data.schema import Schema
from velado.data.table import Table

Said = str | dict[str, Any]


def column(words: str, **more: Any) -> dict[str, Any]:
    """The entry of a schema for `"quasi numeric"` (a role and, if it matters, a kind), and whatever else is said."""
    return dict(zip(("role", "kind"), words.split(), strict=False)) | more


def entries(columns: dict[str, Said]) -> dict[str, dict[str, Any]]:
    return {name: column(said) if isinstance(said, str) else said for name, said in columns.items()}


def schema(columns: dict[str, Said], **settings: Any) -> Schema:
    """A schema of these columns; *settings* are those of its table."""
    return Schema.from_dict(({"table": settings} if settings else {}) | {"columns": entries(columns)})


def table(columns: dict[str, Said], cells: dict[str, list[Any]], **settings: Any) -> Table:
    """A table of these cells as texts, under a schema of these columns."""
    frame = pl.DataFrame({n: pl.Series(n, [_text(c) for c in cells[n]], dtype=pl.String) for n in cells})
    return Table.of(frame, schema(columns, **settings))


def _text(cell: Any) -> str | None:
    return None if cell is None else str(cell)


def toml(**columns: Said) -> str:
    """The same schema as a file says it."""
    return "\n".join(
        f"[columns.{name}]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in entry.items())
        for name, entry in entries(columns).items()
    )


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
