"""--show-values: the cells an error speaks of but never shows, written to a file that only their owner can read.

Errors travel into logs and tickets, so they count values and never repeat them. Whoever holds the table may ask for
the values themselves; they go to a file of mode 0600, and its path is all that is printed.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click

from velado.apps.cli.words import say
from velado.errors import OutputError, TaxonomyError

COMMANDS = ("anonymize", "apply", "compare", "joined", "measure")
_PLACE = "velado.show_values"


def option() -> click.Option:
    """The flag, for commands that read a table with taxonomies. Its value is kept for whoever reports the error."""
    return click.Option(
        ["--show-values"],
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        expose_value=False,
        callback=_keep,
        help="Write values that a taxonomy does not cover to this private file.",
    )


def _keep(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    kept = ctx.find_root().obj
    if value is None or not isinstance(kept, dict):
        return
    if value.exists():
        raise OutputError(
            f"'{value.name}' exists already.",
            "The values would replace what is there.",
            "Choose another name for --show-values.",
        )
    kept[_PLACE] = value


def write_hidden(error: BaseException, kept: dict[str, Path], lang: str) -> None:
    """The values that *error* hides stand in the file that was asked for, if one was; its path is printed."""
    path = kept.get(_PLACE)
    if path is None or not isinstance(error, TaxonomyError) or not error.hidden:
        return
    from velado.data.folders import write_file

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["value"], *([value] for value in error.hidden)])
    try:
        write_file(path, text.getvalue().encode(), private=True)
    except OutputError as problem:
        click.echo(f"{problem.what} {problem.why} {problem.fix}", err=True)
        return
    click.echo(say(lang, "values_written", count=len(error.hidden), path=path), err=True)
