"""Errors as a person or a program reads them: three sentences on standard error, a code, JSON if asked.

A message that did not come from velado may hold a cell of the table, so of an unexpected error only the type
is named. A traceback is shown with --debug only. Errors count values and never repeat them; whoever holds the table
may ask for the values with --show-values, and they go to a file that only their owner can read.
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

import click

from velado.apps.cli.options import SHOW_VALUES
from velado.apps.cli.show import note, printable
from velado.errors import OutputError, TaxonomyError, VeladoError
from velado.text import Sentence, say, say_n, told, told_error, told_sentences

EXIT_CODES = {
    0: say("done, and every promise holds"),
    1: say("an unexpected error"),
    2: say("a flag or parameter is wrong"),
    3: say("the table, schema, taxonomy or recipe cannot be used as it is"),
    4: say("a promise does not hold, or could not be kept within the suppression limit"),
    5: say("the output exists already, cannot be written, or was refused"),
    6: say("an optional library is not installed"),
    7: say("the answer would cost more than is left"),
    8: say("the ledger is missing, was edited or rolled back, or cannot be written"),
    9: say("the engine did not answer"),
    10: say("a key, ciphertext or message was refused, or an encrypted job failed"),
    11: say("an evidence pack was changed, contradicts itself, or is of another table or key"),
    130: say("interrupted by the user"),
    143: say("ended by a signal of the system"),
}
INTERRUPTED, STOPPED = 130, 143


def write_hidden(error: BaseException, kept: dict[str, Path]) -> None:
    """The values that *error* hides stand in the file that was asked for, if one was; its path is printed.

    >>> write_hidden(ValueError(), {})
    """
    path = kept.get(SHOW_VALUES)
    if path is None or not isinstance(error, TaxonomyError) or not error.hidden:
        return
    from velado.data.staging import write_file

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["value"], *([value] for value in error.hidden)])
    try:
        write_file(path, text.getvalue().encode(), private=True)
    except OutputError as problem:
        note(told_error(problem))
        return
    note(
        say_n(
            "{n:,} value written to {path}, readable by you alone. It is a cell: delete the file afterwards.",
            "{n:,} values written to {path}, readable by you alone. They are cells: delete the file afterwards.",
            len(error.hidden),
            path=path,
        )
    )


@dataclass(frozen=True)
class Failure:
    """What happened, why it matters, what to do (in the language spoken), the kind of error, and the exit code.

    >>> Failure("TableError", "It is empty.", "Nobody is in it.", "Give another file.", 3).to_dict()["error"]["fix"]
    'Give another file.'
    """

    kind: str
    what: str
    why: str
    fix: str
    code: int

    def to_dict(self) -> dict[str, dict[str, str | int]]:
        """As it is printed with --json."""
        parts: dict[str, str | int] = {"type": self.kind, "what": self.what, "why": self.why, "fix": self.fix}
        return {"error": {**parts, "exit_code": self.code}}


def failure_of(error: BaseException) -> Failure:
    """Any error as a Failure; only velado's own and click's messages are repeated.

    >>> failure_of(VeladoError("It broke.", "It matters.", "Mend it.")).what, failure_of(ValueError("a cell")).what
    ('It broke.', 'An unexpected ValueError stopped the run.')
    """
    if isinstance(error, VeladoError):
        return Failure(type(error).__name__, *told_sentences(error), error.exit_code)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx is not None else "velado"
        near, see = _nearest(error), told(say("See `{command} --help`.", command=command))
        fix = f"{told(near)} {see}" if near else see
        why = told(say("The command line cannot be understood as it stands."))
        return Failure("UsageError", _usage(error), why, fix, 2)
    return Failure(
        type(error).__name__,
        told(say("An unexpected {kind} stopped the run.", kind=type(error).__name__)),
        told(say("Its message is not shown because it may hold values of the table.")),
        told(say("Run the command again with --debug to see where it happened.")),
        1,
    )


def _usage(error: click.UsageError) -> str:
    # A name that is not known is told without click's own suggestions: `_nearest` makes ours, in either language.
    text = (error.message if hasattr(error, "possibilities") else error.format_message()).strip()
    return text if text.endswith((".", "?", "!")) else text + "."


def _nearest(error: click.UsageError) -> Sentence | None:
    if error.ctx is None:
        return None
    if isinstance(error, click.NoSuchOption):
        every = error.ctx.command.get_params(error.ctx)
        asked, known = error.option_name, [opt for one in every for opt in one.opts]
    elif isinstance(error.ctx.command, click.Group) and error.ctx.args == []:
        words = error.format_message().split("'")
        asked, known = (words[1] if len(words) > 1 else ""), list(error.ctx.command.commands)
    else:
        return None
    near = difflib.get_close_matches(asked, known, n=1)
    return say("Did you mean '{word}'?", word=near[0]) if near else None


def report(error: BaseException, as_json: bool, debug: bool) -> int:
    """The error is shown, and its exit code returned.

    >>> report(VeladoError("It broke.", "It matters.", "Mend it."), as_json=False, debug=False)
    1
    """
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    failure = failure_of(error)
    click.echo(click.style(printable(failure.what), bold=True), err=True)
    note(say("Why: {why}", why=failure.why))
    note(say("What to do: {fix}", fix=failure.fix))
    if as_json:
        click.echo(json.dumps(failure.to_dict(), ensure_ascii=False, indent=2))
    return failure.code
