"""`velado inspect`: which columns identify, and how exposed people are now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.text import say

if TYPE_CHECKING:
    from velado.data.inspect import Inspection
    from velado.data.table import Table


@command("inspect")
def inspect(
    file: flags.File,
    *,
    write: Annotated[Path | None, option("--write -w FILE", help="Write the proposed schema here.")] = None,
    reading: flags.ReadingFlags,
    force: flags.Force = False,
) -> None:
    """Propose roles; say how exposed people are.

    Looks at names, shapes and counts of the columns, and writes a schema file to review.
    """
    with show.waiting():
        from velado.data.staging import write_file

        _, inspection, text = inferred(file, reading)
        if write is not None:
            write_file(write, text, force)
    from velado.report.terminal import exposure, roles

    view = [*roles(inspection), *exposure(inspection)]
    if write is None:
        view.append(say("Write the proposal to a file with --write schema.toml, then review it."))
    else:
        view.append(say("Schema written to {path}. Review it before anything is published.", path=write))
    show.result({**inspection.to_dict(), "schema_file": None if write is None else str(write)}, view)


def inferred(file: Path, reading: flags.ReadingFlags) -> tuple[Table, Inspection, bytes]:
    """The table, what was inferred of it, and the text of the proposed schema file."""
    from velado.data.inspect import inspect as look
    from velado.data.inspect import schema_toml

    table = reading.table(file)
    found = look(table)
    if reading.encoding is not None:
        found = replace(found, schema=replace(found.schema, encoding=reading.encoding))
    return table, found, schema_toml(found).encode()
