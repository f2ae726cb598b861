"""What commands print: tables, notes and JSON. Column names are shown as text, never as markup."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from velado.apps.cli.failures import plain

NARROW = 120
"""Width of tables where the output is a file or a pipe: wide enough that nothing is broken needlessly."""


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on standard output; long cells are folded, not cut."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else NARROW)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in head:
        grid.add_column(Text(name), overflow="fold")
    for row in rows:
        grid.add_row(*(Text(plain(str(cell))) for cell in row))
    if title:
        line(title)
    console.print(grid)
    line("")


def line(text: str) -> None:
    """One line on standard output."""
    click.echo(plain(text))


def note(text: str) -> None:
    """One line on standard error, for what is not the result."""
    click.echo(plain(text), err=True)


def as_json(result: Mapping[str, Any]) -> None:
    """The result as JSON on standard output; numbers that JSON lacks become null."""
    click.echo(json.dumps(_clean(result), ensure_ascii=False, indent=2))


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return _clean(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
