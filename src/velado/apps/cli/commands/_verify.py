"""`velado verify`: check a release, trusting nothing but the file and the schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velado.apps.cli import show
from velado.apps.cli.error_display import failure_of
from velado.apps.cli.options import (
    UNDECLARED,
    AsJson,
    Debug,
    Encoding,
    File,
    GuaranteeFlag,
    Lang,
    LDiversityFlag,
    PopulationFlag,
    Quiet,
    TClosenessFlag,
    Undeclared,
    asked_for,
    language,
    one_of,
)
from velado.apps.cli.words import number, say
from velado.errors import GuaranteeNotMet
from velado.report.phrases import phrase
from velado.text import Language, told

if TYPE_CHECKING:
    from velado.release.verify import Verification


def verify(
    file: File,
    schema: Annotated[
        Path, typer.Option("--schema", "-s", metavar="FILE", help="Schema file (TOML).", show_default=False)
    ],
    k: Annotated[int, typer.Option("-k", help="Rows (or people) that must share the quasi-identifiers.")] = 5,
    l_diversity: LDiversityFlag = None,
    t_closeness: TClosenessFlag = None,
    guarantee: GuaranteeFlag = None,
    population: PopulationFlag = None,
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
    from velado.data.io import read_schema
    from velado.release.guarantees import KAnonymity
    from velado.release.verify import verify as check

    tongue = language(lang)
    one_of(undeclared, UNDECLARED, "--undeclared")
    meaning = read_schema(schema)
    guarantees: list[Any] = [KAnonymity(k), *asked_for(l_diversity, t_closeness, guarantee)]
    found = check(
        file,
        meaning,
        guarantees,
        population=population,
        undeclared=undeclared,  # type: ignore[arg-type]  # checked by one_of()
        encoding=encoding,
    )
    notes = []
    if found.people_unseen and meaning.person is not None:
        notes.append(say(tongue, "person_absent", column=meaning.person.name))
    notes += [say(tongue, "column_unchecked", column=name) for name in found.unchecked]
    notes += [say(tongue, "column_unread", column=name) for name in found.unread]
    broken = found.broken
    if as_json:
        failure = {} if broken is None else failure_of(broken, tongue).to_dict()
        show.as_json({**failure, "file": file.name, **found.to_dict(), "notes": notes})
    elif not quiet:
        _show(tongue, found, notes)
    if broken is not None:
        # The JSON above names the error already; a second object would make the output unreadable.
        raise typer.Exit(GuaranteeNotMet.exit_code) if as_json else broken


def _show(tongue: Language, found: Verification, notes: list[str]) -> None:
    table, checked, doors, behind = found.table, found.checked, found.side_doors, found.smallest_behind
    # First the number that counts: what is promised of the published values is not what is left behind a door.
    smallest = number(found.smallest, tongue)
    if behind is None:
        show.line(say(tongue, "verify_smallest", smallest=smallest))
    else:
        columns = " + ".join(f"'{name}'" for name in found.read_behind)
        left = number(behind, tongue)
        show.line(say(tongue, "verify_smallest_behind", smallest=smallest, behind=left, columns=columns))
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
                told(phrase(verdict.guarantee), tongue),
                f"{number(verdict.needed, tongue)} {told(phrase(verdict.unit), tongue)}",
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
            show.line(f"  {told(door.sentence(), tongue)}")
    for text in notes:
        show.line(text)
    if found.holds:
        show.line(
            say(tongue, "every_promise_holds_in_rows" if found.people_unseen else "every_promise_holds")
        )
    else:
        show.line(say(tongue, "promise_fails"))
