"""`velado compare`: every method on the user's own table, side by side at the same promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import command, option
from velado.errors import GuaranteeNotMet
from velado.text import number, percent, say, told

if TYPE_CHECKING:
    from velado.report.blocks import Table
    from velado.study.compare import Compared, Comparison


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
    objectives: Annotated[
        str | None,
        option(
            "--objectives LIST",
            help="Objectives to search for beside the loss: sse, discernibility, marginals, or all.",
        ),
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

    Each method is run with the same promise; nothing is written. The least loss comes first. With --objectives the
    default method also searches for other purposes, and a table shows what each of them gains and costs.
    """
    from velado.data.io import read_schema

    meaning = read_schema(schema)
    with show.waiting() as progress:
        from velado.study.compare import compare as run
        from velado.study.compare import purposes_named

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
            objectives=purposes_named(objectives or ""),
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
            say("variance inside (SSE)"),
            say("error of tables"),
            say("groups"),
            say("suppressed"),
            say("linked"),
            say("CPU s"),
            say("why not"),
        ],
        [
            [_called(one), *["-"] * 7, told(one.failed)]
            if one.loss is None
            else [
                _called(one),
                percent(one.loss, 2),
                _share(one.sse),
                _share(one.marginals),
                number(one.groups or 0),
                number(one.suppressed or 0),
                _share(one.linked),
                number(one.seconds or 0.0, 2),
                "",
            ]
            for one in found.results
        ],
    )
    if any(one.objective for one in found.results):
        yield _trade_off(found)


def _called(one: Compared) -> str:
    return f"{one.method} ({one.objective})" if one.objective else one.method


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value, 2)


def _trade_off(found: Comparison) -> Table:
    """Each objective's release in all four measures: what it gains in its own, and what it costs in the others."""
    least = {
        name: min(value for one in found.purposes if (value := getattr(one, name)) is not None)
        for name in _FOUR
        if any(getattr(one, name) is not None for one in found.purposes)
    }

    def beside(value: float | None, name: str) -> str:
        if value is None or name not in least:
            return "-"
        best = least[name]
        shown = percent(value, 2) if name != "discernibility" else number(value * found.rows, 1)
        above = value / best - 1 if best > 0 else 0.0
        return say("{value} (least)", value=shown) if above <= 0 else f"{shown} (+{percent(above)})"

    return show.table(
        say(
            "What each objective gains and costs: the four measures, and how far above the least of the column"
        ),
        [
            say("objective"),
            say("loss (NCP)"),
            say("variance inside (SSE)"),
            say("error of tables"),
            say("discernibility a row"),
        ],
        [
            [one.objective or "ncp", *(beside(getattr(one, name), name) for name in _FOUR)]
            for one in found.purposes
        ],
    )


_FOUR = ("loss", "sse", "marginals", "discernibility")
