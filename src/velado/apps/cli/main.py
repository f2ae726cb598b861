"""The list of commands, and the one place where errors become sentences and exit codes.

A run imports the module of the command it was asked for, and all of them only where somebody wants a list: starting fifty
parties on one machine should not read twenty-five commands fifty times.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal, get_args

import click
import typer
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from velado.apps.cli import error_display
from velado.apps.cli.app import app, chosen_language, click_command, one_of
from velado.apps.cli.options import show_values_option
from velado.errors import ParameterError
from velado.text import Language, say, speaking, told

# Completion. A shell starts velado with the words typed so far in its environment; no heavy library is loaded for an answer.

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = get_args(Shell)
ASKED = "_VELADO_COMPLETE"
"""The variable in which a shell says that it wants words, and which shell it is."""


class _WithFiles(ShellComplete):
    """A shell's own way to ask, with files where nothing else is known: an argument is a table more often than not."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        found = super().get_completions(args, incomplete)
        return found or ([] if incomplete.startswith("-") else [CompletionItem(incomplete, type="file")])


class _Bash(_WithFiles, BashComplete):
    """bash."""

    @staticmethod
    def _check_version() -> None:
        """Nothing: click would start a bash to ask its version, which costs more than the answer."""


class _Zsh(_WithFiles, ZshComplete):
    """zsh."""


class _Fish(_WithFiles, FishComplete):
    """fish."""


_KNOWN: Mapping[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def script(shell: Shell) -> str:
    """What *shell* reads to complete velado's words.

    >>> "complete --no-files --command velado" in script("fish")
    True
    """
    return _KNOWN[shell](click.Command("velado"), {}, "velado", ASKED).source()


def answer(group: click.Group, asked: str) -> str | None:
    """The words a shell asked for by `bash_complete`, `zsh_complete` or `fish_complete`; None for anything else.

    >>> answer(click.Group("velado"), "tcsh_complete") is None
    True
    """
    shell, _, what = asked.partition("_")
    if what != "complete" or shell not in _KNOWN:
        return None
    return _KNOWN[shell](group, {}, "velado", ASKED).complete()


ORDER = [
    "desk",
    "inspect",
    "anonymize",
    "verify",
    "evidence",
    "measure",
    "apply",
    "pseudonymize",
    "transform",
    "joined",
    "stream",
    "history",
    "compare",
    "methods",
    "presets",
    "query",
    "local",
    "running",
    "synthesize",
    "regress",
    "predict",
    "groups",
    "reproduce",
    "evaluate",
    "federate",
    "demo",
    "party",
    "ledger",
    "serve",
    "data",
]
"""The commands in the order in which help lists them; `anonymize` stands in `commands/_anonymize.py`, and so on."""
WITH_TAXONOMIES = ("anonymize", "apply", "compare", "joined", "measure", "transform")
"""The commands that read a table with taxonomies, and have --show-values."""


def _version(wanted: bool) -> None:
    if wanted:
        from velado import __version__

        typer.echo(f"velado {__version__}")
        raise typer.Exit


def _completion(shell: str | None) -> None:
    if shell is not None:
        typer.echo(script(one_of(shell, SHELLS, "--show-completion")))
        raise typer.Exit


@app.callback()
def _velado(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    shell: Annotated[
        str | None,
        typer.Option(
            "--show-completion",
            metavar="bash|zsh|fish",
            callback=_completion,
            is_eager=True,
            help='Print what a shell reads to complete commands and flags: eval "$(velado --show-completion bash)".',
        ),
    ] = None,
) -> None:
    """Publish tables about people without exposing them, and prove what was protected."""


def command(wanted: Sequence[str] = tuple(ORDER)) -> click.Group:
    """The command line as click knows it: whole, or with the *wanted* commands and those that were loaded before.

    >>> "anonymize" in command().commands
    True
    """
    for name in wanted:
        import_module(f"velado.apps.cli.commands._{name}")  # it joins the application
    group = click_command()
    group.commands = {name: group.commands[name] for name in ORDER if name in group.commands}
    codes = "\n".join(f"  {code:<4} {told(text)}" for code, text in error_display.EXIT_CODES.items())
    group.epilog = f"\b\n{told(say('Exit codes:'))}\n{codes}"
    for name in (name for name in WITH_TAXONOMIES if name in group.commands):
        option = show_values_option()
        option.help = told(option.help or "")
        option.metavar = told(option.metavar or "")
        group.commands[name].params.append(option)
    return group


def run(arguments: Sequence[str]) -> int:
    """The command is run, and its exit code returned. No traceback leaves without --debug.

    >>> run(["methods", "--json", "--quiet", "no-such-method"]) == ParameterError.exit_code  # doctest: +ELLIPSIS
    {
      "error": {
    ...
    True
    """
    # In a context of its own: the manner and the language of a run end with it.
    return copy_context().run(_run, list(arguments) or ["--help"])


def _run(arguments: Sequence[str]) -> int:
    kept: dict[str, Path] = {}
    if asked := os.environ.get(ASKED):
        return _complete(asked)
    with speaking(_language_of(arguments)):
        try:
            code = command(_wanted(arguments)).main(
                list(arguments), prog_name="velado", standalone_mode=False, obj=kept
            )
        except (KeyboardInterrupt, click.Abort):
            click.echo("", err=True)
            return error_display.INTERRUPTED
        except BrokenPipeError:
            # The reader of our output left (`velado ... | head`): nothing is wrong, and nobody is there to tell.
            return 0
        except (SystemExit, GeneratorExit):
            raise
        except SystemError as error:
            # Compiled code that is interrupted reports an error of the system, caused by the key.
            if isinstance(error.__cause__, KeyboardInterrupt):
                click.echo("", err=True)
                return error_display.INTERRUPTED
            code = error_display.report(error, "--json" in arguments, "--debug" in arguments)
            error_display.write_hidden(error, kept)
        except click.exceptions.Exit as done:
            return int(done.exit_code)
        except BaseException as error:  # Polars' panics are no Exceptions; they too must not show a cell.
            code = error_display.report(error, "--json" in arguments, "--debug" in arguments)
            error_display.write_hidden(error, kept)
    return code if isinstance(code, int) else 0


def _wanted(arguments: Sequence[str]) -> Sequence[str]:
    """The command that was asked for, if the first word is one; else all, for help and for the nearest name.

    >>> _wanted(["party", "client"]), len(_wanted(["--help"])) == len(ORDER)
    (['party'], True)
    """
    return list(arguments[:1]) if arguments[0] in ORDER else ORDER


def _complete(asked: str) -> int:
    """The words that a shell asked for are printed; what it asks wrongly is answered with nothing."""
    words = answer(command(), asked)
    if words:
        click.echo(words)
    return 0 if words is not None else 1


def _language_of(arguments: Sequence[str]) -> Language:
    """The language of help and of error frames, even where the command line itself could not be parsed."""
    for at, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name == "--lang":
            try:
                return chosen_language(value if equals else "".join(arguments[at + 1 : at + 2]))
            except ParameterError:
                break
    return chosen_language(None)


_COLLECTED_EVERY = (100_000, 20, 50)
"""Objects made before cycles are looked for: libraries alone make 300,000 that stay, and Python looks after every 700."""


def main() -> None:
    """The entry point: runs the command of this process and leaves with its exit code.

    >>> from unittest.mock import patch
    >>> with patch.object(sys, "argv", ["velado", "methods", "--quiet"]):
    ...     main()
    Traceback (most recent call last):
    SystemExit: 0
    """
    gc.set_threshold(*_COLLECTED_EVERY)
    # Our matrices are small: threads of the linear algebra would spend more time waiting for each other than working. Who sets
    # the variable keeps it; numpy is not loaded yet.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Memory that Polars has used goes back after a tenth of a second, not after half a second and a whole one: a large table is
    # held beside what is made of it. At once would cost half a second of CPU on a million rows.
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:100,muzzy_decay_ms:100")
    for stream in (sys.stdout, sys.stderr):
        # A column name may hold a letter that the terminal's encoding lacks; it must not stop the run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    # What the process held goes with it: to look once more for cycles among it would cost a short run a tenth. DuckDB's binding counts
    # what was not let go, and complains of it to the reader.
    if "_duckdb" not in sys.modules:
        gc.freeze()
    sys.exit(code)
