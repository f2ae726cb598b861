"""What a published file itself shows, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator

from velado.data.schema import Schema
from velado.release.verify import Verification
from velado.report.blocks import Table
from velado.report.phrases import phrase
from velado.text import number, say


def unseen(found: Verification, schema: Schema) -> Iterator[str]:
    """What could not be read from this file, and so was not checked.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.release.verify import verify
    >>> from velado.testing.factory import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 31 35 35"))
    >>> list(unseen(verify(table.frame, table.schema, [KAnonymity(2)]), table.schema))
    []
    """
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


def verification_lines(found: Verification) -> Iterator[str | Table]:
    """The smallest group, every verdict, both readings of blanks, and side doors.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.release.verify import verify
    >>> from velado.testing.factory import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 31 35 35"))
    >>> next(verification_lines(verify(table.frame, table.schema, [KAnonymity(2)])))
    'Smallest group: 2.'
    """
    # First the number that counts: what is promised of the published values is not what is left behind a door.
    if found.smallest_behind is None:
        yield say("Smallest group: {smallest:,}.", smallest=found.smallest)
    else:
        yield say(
            "Smallest group: {smallest:,}; {behind:,} for who also reads {columns}.",
            smallest=found.smallest,
            behind=found.smallest_behind,
            columns=" + ".join(f"'{name}'" for name in found.read_behind),
        )
    yield Table(
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
    yield Table(
        say("Both readings of blanks"),
        [say("reading"), say("smallest group"), say("mean group")],
        [[phrase(one.name), number(one.smallest), number(one.mean, 2)] for one in found.checked.readings],
    )
    if found.side_doors:
        yield say("Side doors in this file:")
        yield from (say("  {door}", door=door.sentence()) for door in found.side_doors)


def conclusion(found: Verification) -> str:
    """Whether every promise holds, in one sentence.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.release.verify import verify
    >>> from velado.testing.factory import small_table
    >>> table = small_table(age=("quasi", "numeric", "31 31 35 40"))
    >>> conclusion(verify(table.frame, table.schema, [KAnonymity(2)]))
    'A promise does not hold in this file.'
    """
    if not found.holds:
        return say("A promise does not hold in this file.")
    if found.people_unseen:
        return say("Every promise that was asked for holds in this file, counted in rows, not in people.")
    return say("Every promise that was asked for holds in this file.")
