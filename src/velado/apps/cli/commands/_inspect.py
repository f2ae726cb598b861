"""`velado inspect`: which columns identify, and how exposed people are now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show, summary
from velado.apps.cli.commands._anonymize import inferred
from velado.apps.cli.show import waiting
from velado.apps.cli.words import say


def inspect(
    file: flags.File,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write", "-w", metavar="FILE", help="Write the proposed schema here.", show_default=False
        ),
    ] = None,
    encoding: flags.Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing schema file.")] = False,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Propose roles; say how exposed people are.

    Looks at names, shapes and counts of the columns, and writes a schema file to review.
    """
    tongue = flags.language(lang)
    with waiting(tongue, quiet or as_json):
        from velado.data.staging import write_file

        _, inspection, files = inferred(file, encoding)
        if write is not None:
            write_file(write, files["schema.toml"], force)
    if as_json:
        show.as_json({**inspection.to_dict(), "schema_file": None if write is None else str(write)})
        return
    if quiet:
        return
    summary.roles(inspection, tongue)
    summary.exposure(inspection, tongue)
    show.line(say(tongue, "schema_hint") if write is None else say(tongue, "schema_written", path=write))
