"""`velado verify`: check a release, trusting nothing but the file and the schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velado.apps.cli import show
from velado.apps.cli.failures import failure_of
from velado.apps.cli.options import (
    UNDECLARED,
    AsJson,
    Debug,
    Encoding,
    File,
    Lang,
    Quiet,
    Undeclared,
    language,
    one_of,
)
from velado.apps.cli.words import number, say
from velado.errors import GuaranteeNotMet, ParameterError, SchemaError

if TYPE_CHECKING:
    from velado.anonymize.check import Checked
    from velado.anonymize.side_doors import SideDoor
    from velado.data.schema import Schema
    from velado.data.table import Table


def verify(
    file: File,
    schema: Annotated[
        Path, typer.Option("--schema", "-s", metavar="FILE", help="Schema file (TOML).", show_default=False)
    ],
    k: Annotated[int, typer.Option("-k", help="Rows (or people) that must share the quasi-identifiers.")] = 5,
    l_diversity: Annotated[
        int | None,
        typer.Option("--l-diversity", help="Distinct sensitive values in each group.", show_default=False),
    ] = None,
    undeclared: Undeclared = "refuse",
    encoding: Encoding = None,
    as_json: AsJson = False,
    lang: Lang = None,
    debug: Debug = False,
    quiet: Quiet = False,
) -> None:
    """Check a published file.

    Nothing but the file and the schema is trusted. Leaves with exit code 4 when a promise does not hold.
    """
    from velado.anonymize.guarantees import KAnonymity, LDiversity
    from velado.anonymize.side_doors import find_side_doors, promise_with_side_doors
    from velado.data.io import read_schema, read_table

    tongue = language(lang)
    one_of(undeclared, UNDECLARED, "--undeclared")
    meaning = read_schema(schema)
    raw = read_table(file, encoding=encoding)
    refuse_what_must_not_be_there(raw.frame.columns, meaning)
    table = as_published(raw, meaning, undeclared)
    person = meaning.person
    by_person = person is not None and person.name in table.frame.columns
    guarantees: list[Any] = [KAnonymity(k, "person" if by_person else "row")]
    if l_diversity is not None:
        guarantees.append(LDiversity(l_diversity))
        absent = [column.name for column in meaning.sensitive if column.name not in table.frame.columns]
        if absent:
            raise ParameterError(
                f"l-diversity was asked for, but the sensitive column '{absent[0]}' is not in the file.",
                "What is not there cannot be counted.",
                "Leave --l-diversity out, or give the file that holds the column.",
            )
    checked = check(table, guarantees)
    doors = find_side_doors(table)
    telling = list(dict.fromkeys(door.column for door in doors if door.kind in ("copy", "functional")))
    quasi = [column.name for column in meaning.quasi]
    behind = promise_with_side_doors(table.frame, quasi, telling) if telling else None
    notes = []
    if person is not None and not by_person:
        notes.append(say(tongue, "person_absent", column=person.name))
    broken = broken_promise(checked)
    if as_json:
        show.as_json(
            {
                **({} if broken is None else failure_of(broken, tongue).to_dict()),
                "file": file.name,
                "sha256": raw.fingerprint,
                "rows": table.rows,
                "quasi_identifiers": quasi,
                "groups": checked.partition.count,
                "holds": checked.holds,
                "verdicts": [verdict.to_dict() for verdict in checked.verdicts],
                "readings_of_blanks": [reading.to_dict() for reading in checked.readings],
                "side_doors": [door.to_dict() for door in doors],
                "smallest_class_with_side_doors": behind,
                "notes": notes,
            }
        )
    elif not quiet:
        _show(tongue, table, checked, doors, behind, notes)
    if broken is not None:
        # The JSON above names the error already; a second object would make the output unreadable.
        raise typer.Exit(GuaranteeNotMet.exit_code) if as_json else broken


def refuse_what_must_not_be_there(present: list[str], schema: Schema) -> None:
    """An identifier, or a column the schema keeps back, in a published file is a broken promise."""
    for column in schema.columns.values():
        if column.published or column.name not in present:
            continue
        if column.role == "identifier":
            raise GuaranteeNotMet(
                f"The file holds the identifier column '{column.name}'.",
                "Whoever reads it knows whose row it is, so no crowd hides anybody.",
                "Do not publish this file; make the release again without the column.",
            )
        raise GuaranteeNotMet(
            f"The file holds the column '{column.name}', which the schema keeps back (publish = false).",
            "What the steward decided not to publish stands in the file.",
            "Do not publish this file; make the release again without the column.",
        )


def as_published(raw: Table, schema: Schema, undeclared: Any) -> Table:
    """The file with the meaning the schema gives its columns; every quasi-identifier must be there."""
    from velado.data.table import Table

    present = set(raw.frame.columns)
    absent = [column.name for column in schema.quasi if column.name not in present]
    if absent:
        raise SchemaError(
            f"The file lacks the quasi-identifier '{absent[0]}'"
            + (f" and {len(absent) - 1} more." if len(absent) > 1 else "."),
            "A promise about columns that are not there cannot be checked.",
            "Give the file that was published, or the schema it was published with.",
        )
    if not schema.quasi:
        raise SchemaError(
            "The schema names no published quasi-identifier.",
            "There is nothing to group by, so no promise can be checked.",
            'Give role = "quasi" to the columns an attacker may know.',
        )
    columns = [column for name, column in schema.columns.items() if name in present]
    return Table.of(
        raw.frame, schema.with_columns(columns), raw.source, raw.fingerprint, undeclared, raw.separator
    )


def check(table: Table, guarantees: list[Any]) -> Checked:
    """The verdicts on the visible values of a published table."""
    from velado.anonymize.check import check_published
    from velado.data.encode import text_codes

    person = table.schema.person
    people = None if person is None else text_codes(table.text(person.name))[0]
    sensitive = {column.name: text_codes(table.text(column.name)) for column in table.schema.sensitive}
    quasi = [column.name for column in table.schema.quasi]
    return check_published(table.frame, quasi, guarantees, people, sensitive)


def broken_promise(checked: Checked) -> GuaranteeNotMet | None:
    """The first promise that does not hold, as an error; None where all hold."""
    for verdict in checked.verdicts:
        if not verdict.holds:
            return GuaranteeNotMet(
                f"{verdict.failing_groups} group(s) with {verdict.failing_rows} row(s) do not keep "
                f"{verdict.guarantee}: needed {verdict.needed:g} {verdict.unit}, "
                f"the weakest has {verdict.achieved:g}.",
                "People in them could be picked out of this file.",
                "Do not publish it; make the release again, or ask for less.",
            )
    return None


def _show(
    tongue: str,
    table: Table,
    checked: Checked,
    doors: tuple[SideDoor, ...],
    behind: int | None,
    notes: list[str],
) -> None:
    show.table(
        say(
            tongue,
            "verify_title",
            rows=number(table.rows, tongue),
            quasi=len(table.schema.quasi),
            groups=number(checked.partition.count, tongue),
        ),
        [say(tongue, key) for key in ("guarantee", "needed", "achieved", "verdict", "failing")],
        [
            [
                verdict.guarantee,
                f"{number(verdict.needed, tongue)} {say(tongue, verdict.unit)}",
                number(verdict.achieved, tongue),
                say(tongue, "holds" if verdict.holds else "broken"),
                number(verdict.failing_rows, tongue),
            ]
            for verdict in checked.verdicts
        ],
    )
    show.table(
        say(tongue, "readings_title"),
        [say(tongue, key) for key in ("reading", "smallest", "mean")],
        [
            [say(tongue, reading.name), number(reading.smallest, tongue), number(reading.mean, tongue, 2)]
            for reading in checked.readings
        ],
    )
    if doors:
        show.line(say(tongue, "side_doors_title") + ":")
        for door in doors:
            show.line(f"  {door.sentence()}")
        if behind is not None:
            show.line(say(tongue, "side_doors_class", smallest=behind))
    for text in notes:
        show.line(text)
    show.line(say(tongue, "every_promise_holds" if checked.holds else "promise_fails"))
