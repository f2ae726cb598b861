"""`velado compare`: every method on the user's own table, side by side at the same promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.errors import GuaranteeNotMet
from velado.text import number, percent, say

if TYPE_CHECKING:
    from velado.report.blocks import Table
    from velado.study.compare import Comparison


@command("compare")
def compare(
    file: flags.File,
    *,
    schema: flags.SchemaFile,
    k: Annotated[
        int, option("-k", click_type=flags.CROWD, help="Rows or people that share the quasi-identifiers.")
    ] = 5,
    methods: Annotated[
        str | None,
        option("--methods LIST", help="Methods to compare, comma-separated; default: all that guarantee k."),
    ] = None,
    promises: flags.PromiseFlags,
    suppression: flags.Suppression = 0.0,
    seed: flags.Seed = 0,
    improve: flags.Improve = False,
    blind: flags.Blind = False,
    per: flags.Per = None,
    undeclared: flags.Undeclared = "refuse",
) -> None:
    """Compare the methods on a table.

    Each method is run with the same promise; nothing is written. The least loss comes first.
    """
    from velado.data.io import read_schema

    meaning = read_schema(schema)
    with show.waiting() as progress:
        from velado.study.compare import compare as run

        found = run(
            file,
            meaning,
            k,
            None if methods is None else [name.strip() for name in methods.split(",")],
            promises.guarantees(flags.by_person(per, meaning)),
            suppression=suppression,
            seed=seed,
            improve=improve,
            blind=blind,
            per=per,
            undeclared=undeclared,
            population=promises.population,
            progress=progress,
        )
    show.result(found.facts(), _view(found, k))
    if found.best is None:
        raise typer.Exit(GuaranteeNotMet.exit_code)


def _view(found: Comparison, k: int) -> Iterator[Table]:
    yield show.table(
        say("Methods at k = {k} on {rows:,} rows, the least loss first", k=k, rows=found.rows),
        [
            say("name"),
            say("loss (NCP)"),
            say("groups"),
            say("suppressed"),
            say("linked"),
            say("CPU s"),
            say("why not"),
        ],
        [
            [one.method, *["-"] * 5, one.failed]
            if one.loss is None
            else [
                one.method,
                percent(one.loss, 2),
                number(one.groups or 0),
                number(one.suppressed or 0),
                "-" if one.linked is None else percent(one.linked, 2),
                number(one.seconds or 0.0, 2),
                "",
            ]
            for one in found.results
        ],
    )
