"""The list of commands, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import click
import typer

from velado.apps.cli import error_display as failures
from velado.apps.cli import error_display as hidden_values
from velado.apps.cli.commands import (
    _anonymize as anonymize,
)
from velado.apps.cli.commands import (
    _apply as apply,
)
from velado.apps.cli.commands import (
    _compare as compare,
)
from velado.apps.cli.commands import (
    _data as data,
)
from velado.apps.cli.commands import (
    _demo as demo,
)
from velado.apps.cli.commands import (
    _evaluate as evaluate,
)
from velado.apps.cli.commands import (
    _federate as federate,
)
from velado.apps.cli.commands import (
    _groups as groups,
)
from velado.apps.cli.commands import (
    _inspect as inspect,
)
from velado.apps.cli.commands import (
    _joined as joined,
)
from velado.apps.cli.commands import (
    _ledger as ledger,
)
from velado.apps.cli.commands import (
    _measure as measure,
)
from velado.apps.cli.commands import (
    _methods as methods,
)
from velado.apps.cli.commands import (
    _party as party,
)
from velado.apps.cli.commands import (
    _predict as predict,
)
from velado.apps.cli.commands import (
    _pseudonymize as pseudonymize,
)
from velado.apps.cli.commands import (
    _query as query,
)
from velado.apps.cli.commands import (
    _regress as regress,
)
from velado.apps.cli.commands import (
    _reproduce as reproduce,
)
from velado.apps.cli.commands import (
    _serve as serve,
)
from velado.apps.cli.commands import (
    _verify as verify,
)
from velado.apps.cli.options import ARGUMENTS, Command, CommandWithMethodFlags, language
from velado.apps.cli.words import EXIT_CODES
from velado.errors import ParameterError

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {text['en']}" for code, text in EXIT_CODES.items())

app = typer.Typer(
    name="velado",
    help="Publish tables about people without exposing them, and prove what was protected.",
    epilog=EPILOG,
    add_completion=False,
    # Plain help needs no Rich and starts in a fraction of the time.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from velado import __version__

        typer.echo(f"velado {__version__}")
        raise typer.Exit


@app.callback()
def velado(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Publish tables about people without exposing them, and prove what was protected."""


app.command("inspect", cls=Command)(inspect.inspect)
app.command("anonymize", cls=CommandWithMethodFlags)(anonymize.anonymize)
app.command("verify", cls=Command)(verify.verify)
app.command("measure", cls=Command)(measure.measure)
app.command("apply", cls=Command)(apply.apply)
app.command("pseudonymize", cls=Command)(pseudonymize.pseudonymize)
app.command("joined", cls=CommandWithMethodFlags)(joined.joined)
app.command("compare", cls=Command)(compare.compare)
app.command("methods", cls=Command)(methods.methods)
app.command("query", cls=Command)(query.query)
app.command("regress", cls=Command)(regress.regress)
app.command("predict", cls=Command)(predict.predict)
app.command("groups", cls=Command)(groups.groups)
app.add_typer(party.app, name="party")
app.add_typer(ledger.app, name="ledger")
app.add_typer(serve.commands(), name="serve")
app.command("reproduce", cls=Command)(reproduce.reproduce)
app.add_typer(data.app, name="data")
app.command("evaluate", cls=Command)(evaluate.evaluate)
app.command("federate", cls=Command)(federate.federate)
app.command("demo", cls=Command)(demo.demo)


def command() -> click.Group:
    """The whole command line as click knows it, with the help of every argument."""
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group)
    for name in hidden_values.COMMANDS:
        group.commands[name].params.append(hidden_values.option())
    for part in _parts(group):
        for parameter in part.params:
            # click 8.5 resets the help that typer 0.23 has given to an argument.
            if isinstance(parameter, click.Argument) and not getattr(parameter, "help", None):
                vars(parameter)["help"] = ARGUMENTS[str(parameter.metavar)]
    return group


def _parts(group: click.Group) -> Iterator[click.Command]:
    """Every command, those of groups inside groups too."""
    for part in group.commands.values():
        yield part
        if isinstance(part, click.Group):
            yield from _parts(part)


def run(arguments: Sequence[str]) -> int:
    """The command is run, and its exit code returned. No traceback leaves without --debug."""
    arguments = list(arguments) or ["--help"]
    as_json, debug = "--json" in arguments, "--debug" in arguments
    kept: dict[str, Path] = {}
    try:
        code = command().main(arguments, prog_name="velado", standalone_mode=False, obj=kept)
    except (KeyboardInterrupt, click.Abort):
        click.echo("", err=True)
        return failures.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output left (`velado ... | head`): nothing is wrong, and nobody is there to tell.
        return 0
    except (SystemExit, GeneratorExit):
        raise
    except click.exceptions.Exit as done:
        return int(done.exit_code)
    except BaseException as error:  # Polars' panics are no Exceptions; they too must not show a cell.
        tongue = _language_of(arguments)
        code = failures.report(error, tongue, as_json, debug)
        hidden_values.write_hidden(error, kept, tongue)
    return code if isinstance(code, int) else 0


def _language_of(arguments: Sequence[str]) -> str:
    """The language of error frames, even where the command line itself could not be parsed."""
    for at, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name == "--lang":
            wanted = value if equals else "".join(arguments[at + 1 : at + 2])
            try:
                return language(wanted)
            except ParameterError:
                break
    return language(None)


def main() -> None:
    """The entry point: runs the command of this process and leaves with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A column name may hold a letter that the terminal's encoding lacks; it must not stop the run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))
