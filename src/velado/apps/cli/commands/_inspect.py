"""`velado inspect`: which columns identify, and how exposed people are now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.apps.cli.engine_flags import RowSourceFlags, in_memory, is_lake
from velado.text import say

if TYPE_CHECKING:
    from velado.data.inspect import Inspection
    from velado.data.schema import Schema
    from velado.data.table import Table


@command("inspect")
def inspect(
    file: flags.Source,
    *,
    write: Annotated[Path | None, option("--write -w FILE", help="Write the proposed schema here.")] = None,
    reading: flags.ReadingFlags,
    engine: RowSourceFlags,
    force: flags.Force = False,
) -> None:
    """Propose roles; say how exposed people are.

    Looks at names, shapes and counts of the columns, and writes a schema file to review.
    """
    with show.waiting():
        from velado.data.staging import write_file

        if engine.stays(file):
            engine.refuse([("--sheet", reading.sheet is not None)])
            inspection, text = _where_it_lies(file, reading, engine)
        else:
            source = _whole(file, reading) if is_lake(file) else Path(file)
            _, inspection, text = inferred(source, reading)
        if write is not None:
            write_file(write, text, force)
    from velado.report.terminal import exposure, roles

    view = [*roles(inspection), *exposure(inspection)]
    if inspection.judged:
        view.append(inspection.judged)
    if write is None:
        view.append(say("Write the proposal to a file with --write schema.toml, then review it."))
    else:
        view.append(say("Schema written to {path}. Review it before anything is published.", path=write))
    show.result({**inspection.to_dict(), "schema_file": None if write is None else str(write)}, view)


def inferred(source: Path | Table, reading: flags.ReadingFlags) -> tuple[Table, Inspection, bytes]:
    """The table, what was inferred of it, and the text of the proposed schema file."""
    from velado.data.inspect import inspect as look

    table = reading.table(source) if isinstance(source, Path) else source
    found, text = _proposal(look(table), reading)
    return table, found, text


def _proposal(found: Inspection, reading: flags.ReadingFlags) -> tuple[Inspection, bytes]:
    from velado.data.schema_draft import schema_toml

    if reading.encoding is not None:
        found = replace(found, schema=replace(found.schema, encoding=reading.encoding))
    return found, schema_toml(found).encode()


def _where_it_lies(
    place: str, reading: flags.ReadingFlags, engine: RowSourceFlags
) -> tuple[Inspection, bytes]:
    from velado.release.sources.source_inspect import inspect_source

    with engine.opened(place, _unread(reading)) as rows:
        return _proposal(inspect_source(rows, getattr(rows, "separator", ",")), reading)


def _whole(place: str, reading: flags.ReadingFlags) -> Table:
    return in_memory(place, _unread(reading)).blanked()


def _unread(reading: flags.ReadingFlags) -> Schema:
    """How files are read whose columns have no meaning yet."""
    from velado.data.schema import Schema

    return Schema({}, encoding=reading.encoding or "utf-8")
