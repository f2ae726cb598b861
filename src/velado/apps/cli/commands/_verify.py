"""`velado verify`: check a release, trusting nothing but the file and the schema."""

from __future__ import annotations

from typing import Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.apps.cli.error_display import failure_of
from velado.errors import GuaranteeNotMet
from velado.text import told


@command("verify")
def verify(
    file: flags.File,
    *,
    schema: flags.SchemaFile,
    k: Annotated[
        int,
        option("-k", click_type=flags.CROWD, help="Rows (or people) that must share the quasi-identifiers."),
    ] = 5,
    promises: flags.PromiseFlags,
    undeclared: flags.Undeclared = "refuse",
    encoding: flags.Encoding = None,
) -> None:
    """Check a published file.

    Nothing but the file and the schema is trusted. Leaves with exit code 4 when a promise does not hold.
    """
    from velado.data.io import read_schema
    from velado.release.guarantees import KAnonymity
    from velado.release.verify import verify as check

    meaning = read_schema(schema)
    found = check(
        file,
        meaning,
        [KAnonymity(k), *promises.guarantees()],
        population=promises.population,
        undeclared=undeclared,
        encoding=encoding,
    )
    from velado.report.terminal import conclusion, unseen, verification_lines

    notes = list(unseen(found, meaning))
    failure = {} if found.broken is None else failure_of(found.broken).to_dict()
    document = {**failure, "file": file.name, **found.facts(), "notes": [told(text) for text in notes]}
    show.result(document, [*verification_lines(found), *notes, conclusion(found)])
    if found.broken is not None:
        # The JSON above names the error already; a second object would make the output unreadable.
        raise typer.Exit(GuaranteeNotMet.exit_code) if show.manner().as_json else found.broken
