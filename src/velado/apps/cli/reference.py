"""The manual page of the command line, made from the commands themselves so that it cannot lie.

    python -m velado.apps.cli.reference docs/reference/cli.md

writes it; a test compares the file with what this module makes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from velado.apps.cli.commands._methods import default_shown
from velado.apps.cli.error_display import EXIT_CODES
from velado.apps.cli.main import command
from velado.settings import flags

LEAD = """\
# The command line

This page is made by `python -m velado.apps.cli.reference docs/reference/cli.md`; do not edit it by hand.

Results go to standard output, everything else (warnings, errors, the progress bar) to standard error. With
`--json` the result is one JSON object. A column or a flag that is not known is refused, never passed over.

Every error is three sentences: what happened, why it matters, what to do. With `--json` it is also an object
on standard output: `{"error": {"type", "what", "why", "fix", "exit_code"}}`. No error repeats a cell of the
table. A traceback is shown with `--debug` only. A run that fails writes nothing.

`--lang pt`, or `VELADO_LANG=pt` in the environment, switches all that is printed, help and errors included, and the
report to Portuguese.
"""


def page() -> str:
    """The whole page as Markdown.

    >>> page().splitlines()[0]
    '# The command line'
    """
    parts = [LEAD, _exit_codes()]
    parts += [_command(part, name) for name, part in _named("velado", command())]
    parts.append(_methods())
    return "\n".join(parts)


def _exit_codes() -> str:
    rows = [f"| {code} | {text} |" for code, text in EXIT_CODES.items()]
    return "\n".join(["## Exit codes", "| Code | Meaning |", "|---|---|", *rows, ""])


def _named(path: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name; a group's own page is its commands'."""
    for name, part in group.commands.items():
        if isinstance(part, click.Group):
            yield from _named(f"{path} {name}", part)
        else:
            yield f"{path} {name}", part


def _command(part: click.Command, name: str) -> str:
    ctx = click.Context(part, info_name=name)
    usage = " ".join(part.collect_usage_pieces(ctx))
    lines = [f"## {name}", "```", f"{name} {usage}", "```"]
    lines += [" ".join(text.split()) + "\n" for text in (part.help or "").split("\n\n")]
    rows = []
    for parameter in part.get_params(ctx):
        if "--help" in parameter.opts:
            continue
        name = ", ".join(f"`{opt}`" for opt in (*parameter.opts, *parameter.secondary_opts))
        if isinstance(parameter, click.Option):
            takes = "" if parameter.is_flag else _cell(_metavar(parameter, ctx))
            rows.append(f"| {name} | {takes} | {_default(parameter)} | {_cell(parameter.help or '')} |")
        else:
            label = _metavar(parameter, ctx)
            rows.append(f"| `{_cell(label)}` | | | {_cell(getattr(parameter, 'help', None) or '')} |")
    return "\n".join([*lines, "| Flag | Takes | Default | Meaning |", "|---|---|---|---|", *rows, ""])


def _metavar(parameter: Any, ctx: click.Context) -> str:
    return str(parameter.make_metavar(ctx) if parameter.metavar is None else parameter.metavar)


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    # click marks an option nobody gave a default by a sentinel of its own.
    if option.is_flag or option.default is None or "UNSET" in repr(option.default):
        return option.show_default if isinstance(option.show_default, str) else ""
    return _cell(str(option.default))


def _methods() -> str:
    from velado.release.methods import METHODS

    lines = [
        "## Methods and their flags",
        "A method's flags are given to `velado anonymize` beside `--method NAME`. `-k` is no flag of a",
        "method but the k of k-anonymity, promised whichever method is chosen.",
        "",
    ]
    for method in METHODS:
        lines += [f"### {method.name}", f"{method.title}. Source: {method.source}.", ""]
        lines += [f"Promise: {method.promise}. Cost: {method.cost}.", ""]
        lines += ["| Flag | Takes | Default | Meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{flag.flag}` | {_cell(flag.takes)} | {_cell(default_shown(flag.default))} | {_cell(flag.help)} |"
            for flag in flags(method)
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _write(Path(sys.argv[1]))
    else:
        sys.stdout.write(page())
