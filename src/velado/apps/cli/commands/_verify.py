"""`velado verify`: check a release, trusting nothing but the file and the schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.apps.cli.engine_flags import RowSourceFlags, in_memory, is_lake
from velado.apps.cli.error_display import failure_of
from velado.errors import GuaranteeNotMet, TableError
from velado.text import told

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.release.guarantees._guarantee import Guarantee
    from velado.release.verify import Verification


@command("verify")
def verify(
    file: flags.Source,
    *,
    schema: flags.SchemaFile,
    k: Annotated[
        int,
        option("-k", click_type=flags.CROWD, help="Rows (or people) that must share the quasi-identifiers."),
    ] = 5,
    promises: flags.PromiseFlags,
    undeclared: flags.Undeclared = "refuse",
    encoding: flags.Encoding = None,
    engine: RowSourceFlags,
) -> None:
    """Check a published file.

    Nothing but the file and the schema is trusted. Leaves with exit code 4 when a promise does not hold.
    """
    from velado.data.io import read_schema
    from velado.release.guarantees import KAnonymity

    meaning = read_schema(schema)
    promised = [KAnonymity(k), *promises.guarantees()]
    if engine.stays(file):
        engine.refuse([("--population", promises.population is not None)])
        found = _where_it_lies(file, meaning, promised, undeclared, encoding, engine)
    else:
        from velado.release.verify import verify as check

        found = check(
            in_memory(file, meaning) if is_lake(file) else Path(file),
            meaning,
            promised,
            population=promises.population,
            undeclared=undeclared,
            encoding=encoding,
        )
    from velado.report.terminal import conclusion, unseen, verification_lines

    notes = list(unseen(found, meaning))
    failure = {} if found.broken is None else failure_of(found.broken).to_dict()
    name = found.table.source if engine.stays(file) else Path(file).name
    document = {**failure, "file": name, **found.facts(), "notes": [told(text) for text in notes]}
    show.result(document, [*verification_lines(found), *notes, conclusion(found)])
    if found.broken is not None:
        # The JSON above names the error already; a second object would make the output unreadable.
        raise typer.Exit(GuaranteeNotMet.exit_code) if show.manner().as_json else found.broken


def _where_it_lies(
    place: str,
    schema: Schema,
    promised: Sequence[Guarantee],
    undeclared: Literal["refuse", "drop", "keep"],
    encoding: str | None,
    engine: RowSourceFlags,
) -> Verification:
    from velado.release.sources.source_verify import published_digest, verify_source

    def checked(written: str) -> Verification:
        meaning = replace(schema, encoding=written)
        with show.waiting(), engine.opened(place, meaning) as rows:
            return verify_source(
                rows, schema, promised, undeclared=undeclared, fingerprint=published_digest(rows)
            )

    if encoding is not None:
        return checked(encoding)
    try:
        # velado writes UTF-8, whatever the encoding of the original; somebody else may have kept that one.
        return checked("utf-8")
    except TableError:
        if schema.encoding == "utf-8":
            raise
        return checked(schema.encoding)
