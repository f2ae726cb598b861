"""`velado verify`: check a release, trusting nothing but the file and the schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.apps.cli.error_display import failure_of
from velado.errors import GuaranteeNotMet
from velado.text import number, say, told

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.release.verify import Verification
    from velado.report.blocks import Table


@command("verify")
def verify(
    file: flags.File,
    *,
    schema: flags.SchemaFile,
    k: Annotated[int, option("-k", help="Rows (or people) that must share the quasi-identifiers.")] = 5,
    promises: flags.Promises,
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
    notes = list(_unseen(found, meaning))
    failure = {} if found.broken is None else failure_of(found.broken).to_dict()
    document = {**failure, "file": file.name, **found.to_dict(), "notes": [told(text) for text in notes]}
    show.result(document, [*_view(found), *notes, _conclusion(found)])
    if found.broken is not None:
        # The JSON above names the error already; a second object would make the output unreadable.
        raise typer.Exit(GuaranteeNotMet.exit_code) if show.manner().as_json else found.broken


def _unseen(found: Verification, schema: Schema) -> Iterator[str]:
    """What could not be read from this file, and so was not checked."""
    if found.people_unseen and schema.person is not None:
        yield say(
            "The person column '{column}' is not in this file, so k per person cannot be checked from it; "
            "rows are counted.",
            column=schema.person.name,
        )
    for name in found.unchecked:
        yield say(
            "Not checked: the sensitive column '{column}' is not in this file; the promise about it cannot be read "
            "from it.",
            column=name,
        )
    for name in found.unread:
        yield say(
            "The values of '{column}' could not be read as intervals: what other columns give away of it was not "
            "fully checked.",
            column=name,
        )


def _view(found: Verification) -> Iterator[str | Table]:
    from velado.report.phrases import phrase

    # First the number that counts: what is promised of the published values is not what is left behind a door.
    if found.smallest_behind is None:
        yield say("Smallest group: {smallest:,}.", smallest=found.smallest)
    else:
        yield say(
            "Smallest group: {smallest:,}; {behind:,} for who also reads {columns}.",
            smallest=found.smallest,
            behind=found.smallest_behind,
            columns=show.quoted(found.read_behind, " + "),
        )
    yield show.table(
        say(
            "What the file itself shows ({rows:,} rows, {quasi} quasi-identifiers, {groups:,} groups)",
            rows=found.table.rows,
            quasi=len(found.table.schema.quasi),
            groups=found.checked.partition.count,
        ),
        [say("guarantee"), say("needed"), say("found"), say("verdict"), say("failing rows")],
        [
            [
                phrase(one.guarantee),
                say("{needed} {unit}", needed=number(one.needed), unit=phrase(one.unit)),
                number(one.achieved),
                say("holds") if one.holds else say("BROKEN"),
                number(one.failing_rows),
            ]
            for one in found.checked.verdicts
        ],
    )
    yield show.table(
        say("Both readings of blanks"),
        [say("reading"), say("smallest group"), say("mean group")],
        [[phrase(one.name), number(one.smallest), number(one.mean, 2)] for one in found.checked.readings],
    )
    if found.side_doors:
        yield say("Side doors in this file:")
        yield from (say("  {door}", door=door.sentence()) for door in found.side_doors)


def _conclusion(found: Verification) -> str:
    if not found.holds:
        return say("A promise does not hold in this file.")
    if found.people_unseen:
        return say("Every promise that was asked for holds in this file, counted in rows, not in people.")
    return say("Every promise that was asked for holds in this file.")
