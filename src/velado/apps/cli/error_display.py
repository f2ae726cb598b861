"""Errors as a person or a program reads them: three sentences on standard error, a code, JSON if asked.

A message that did not come from velado may hold a cell of the table, so of an unexpected error only the type
is named. A traceback is shown with --debug only.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from velado.apps.cli.words import say
from velado.errors import OutputError, TaxonomyError, VeladoError

# --show-values: the cells an error speaks of but never shows, written to a file that only their owner can read.
#
# Errors travel into logs and tickets, so they count values and never repeat them. Whoever holds the table may ask for
# the values themselves; they go to a file of mode 0600, and its path is all that is printed.

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
    from velado.data.staging import write_file

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["value"], *([value] for value in error.hidden)])
    try:
        write_file(path, text.getvalue().encode(), private=True)
    except OutputError as problem:
        click.echo(f"{problem.what} {problem.why} {problem.fix}", err=True)
        return
    click.echo(say(lang, "values_written", count=len(error.hidden), path=path), err=True)


INTERRUPTED = 130


@dataclass(frozen=True)
class Failure:
    """What happened, why it matters, what to do, the kind of error, and the exit code."""

    kind: str
    what: str
    why: str
    fix: str
    code: int

    def to_dict(self) -> dict[str, Any]:
        """As it is printed with --json."""
        return {
            "error": {
                "type": self.kind,
                "what": self.what,
                "why": self.why,
                "fix": self.fix,
                "exit_code": self.code,
            }
        }


def failure_of(error: BaseException, lang: str) -> Failure:
    """Any error as a Failure; only velado's own and click's messages are repeated."""
    if isinstance(error, VeladoError):
        return Failure(type(error).__name__, error.what, error.why, error.fix, error.exit_code)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx is not None else "velado"
        return Failure(
            "UsageError",
            _usage(error),
            say(lang, "usage_why"),
            say(lang, "usage_fix", hint=_nearest(error, lang), command=command).strip(),
            2,
        )
    return Failure(
        type(error).__name__,
        say(lang, "unexpected_what", kind=type(error).__name__),
        say(lang, "unexpected_why"),
        say(lang, "unexpected_fix"),
        1,
    )


def _usage(error: click.UsageError) -> str:
    text = error.format_message().strip()
    return text if text.endswith((".", "?", "!")) else text + "."


def _nearest(error: click.UsageError, lang: str) -> str:
    if error.ctx is None:
        return ""
    if isinstance(error, click.NoSuchOption):
        asked, known = error.option_name, [opt for p in error.ctx.command.params for opt in p.opts]
    elif isinstance(error.ctx.command, click.Group) and error.ctx.args == []:
        words = error.format_message().split("'")
        asked, known = (words[1] if len(words) > 1 else ""), list(error.ctx.command.commands)
    else:
        return ""
    near = difflib.get_close_matches(asked, known, n=1)
    return say(lang, "did_you_mean", word=near[0]) + " " if near else ""


def report(error: BaseException, lang: str, as_json: bool, debug: bool) -> int:
    """The error is shown, and its exit code returned."""
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    failure = failure_of(error, lang)
    click.echo(click.style(plain(failure.what), bold=True), err=True)
    click.echo(f"{say(lang, 'why')}: {plain(failure.why)}", err=True)
    click.echo(f"{say(lang, 'what_to_do')}: {plain(failure.fix)}", err=True)
    if as_json:
        click.echo(json.dumps(failure.to_dict(), ensure_ascii=False, indent=2))
    return failure.code


def plain(text: str) -> str:
    """The text without control characters: a column name must not be able to steer the terminal."""
    return "".join(c if c.isprintable() else "�" for c in text)
