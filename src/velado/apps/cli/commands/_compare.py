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
            help="Objectives to search for beside the loss, comma-separated (names as in --objective), or all.",
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
    from velado.study.compare import OTHERS

    brief = [one for one in OTHERS if one.in_brief]
    yield show.table(
        say("Methods at k = {k} on {rows:,} rows, the least loss first", k=k, rows=found.rows),
        [
            say("name"),
            say("loss (NCP)"),
            *(other.heading for other in brief),
            say("groups"),
            say("suppressed"),
            say("linked"),
            say("CPU s"),
            say("why not"),
        ],
        [
            [_called(one), *["-"] * (5 + len(brief)), told(one.failed)]
            if one.loss is None
            else [
                _called(one),
                percent(one.loss, 2),
                *(_share(one.value(other.name)) for other in brief),
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
    """Each objective's release in the measures of all: what it gains in its own, and what it costs in the others."""
    from velado.release.methods.progressive.objectives.mixture import OBJECTIVES, Objective

    def least(objective: type[Objective]) -> float:
        values = (one.value(objective.name) for one in found.purposes)
        return min((value for value in values if value is not None), default=0.0)

    def beside(objective: type[Objective], one: Compared) -> str:
        value, best = one.value(objective.name), least(objective)
        if value is None:
            return "-"
        shown = objective.shown(value, found.rows)
        above = value / best - 1 if best > 0 else 0.0
        return say("{value} (least)", value=shown) if above <= 0 else f"{shown} (+{percent(above)})"

    return show.table(
        say(
            "What each objective gains and costs: the measures of all, and how far above the least of the column"
        ),
        [say("objective"), *(one.heading for one in OBJECTIVES)],
        [
            [one.objective or OBJECTIVES[0].name, *(beside(objective, one) for objective in OBJECTIVES)]
            for one in found.purposes
        ],
    )
