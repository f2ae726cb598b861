"""`velado compare`: every method on the user's own table, side by side at the same promise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.options import (
    GuaranteeFlag,
    LDiversityFlag,
    PopulationFlag,
    TClosenessFlag,
    asked_for,
    by_person,
)
from velado.apps.cli.show import waiting
from velado.apps.cli.words import number, say
from velado.errors import GuaranteeNotMet

if TYPE_CHECKING:
    from velado.study.compare import Comparison

COLUMNS = (
    "name",
    "compare_loss",
    "compare_groups",
    "compare_suppressed",
    "compare_linked",
    "compare_seconds",
    "compare_reason",
)


def compare(
    file: flags.File,
    schema: Annotated[
        Path, typer.Option("--schema", "-s", metavar="FILE", help="Schema file (TOML).", show_default=False)
    ],
    k: Annotated[int, typer.Option("-k", help="Rows or people that share the quasi-identifiers.")] = 5,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="LIST",
            help="Methods to compare, comma-separated; default: all that guarantee k.",
            show_default=False,
        ),
    ] = None,
    l_diversity: LDiversityFlag = None,
    t_closeness: TClosenessFlag = None,
    guarantee: GuaranteeFlag = None,
    population: PopulationFlag = None,
    suppression: Annotated[
        float, typer.Option("--suppression", help="Share of rows that may be dropped, from 0 to 1.")
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of every random choice.")] = 0,
    per: flags.Per = None,
    undeclared: flags.Undeclared = "refuse",
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Compare the methods on a table.

    Each method is run with the same promise; nothing is written. The least loss comes first.
    """
    from velado.data.io import read_schema

    tongue = flags.language(lang)
    meaning = read_schema(schema)
    with waiting(tongue, quiet or as_json) as progress:
        from velado.study.compare import compare as run

        found = run(
            file,
            meaning,
            k,
            None if methods is None else [name.strip() for name in methods.split(",")],
            asked_for(l_diversity, t_closeness, guarantee, by_person(per, meaning)),
            suppression=suppression,
            seed=seed,
            per=None if per is None else flags.one_of(per, flags.PER, "--per"),
            undeclared=flags.one_of(undeclared, flags.UNDECLARED, "--undeclared"),  # type: ignore[arg-type]
            population=population,
            progress=progress,
        )
    if as_json:
        show.as_json(found.facts())
    elif not quiet:
        _show(found, k, tongue)
    if found.best is None:
        raise typer.Exit(GuaranteeNotMet.exit_code)


def _show(found: Comparison, k: int, tongue: str) -> None:
    share = [
        [
            result.method,
            *(
                ["-"] * 5 + [result.failed]
                if result.loss is None
                else [
                    f"{number(100 * result.loss, tongue, 2)}%",
                    number(result.groups or 0, tongue),
                    number(result.suppressed or 0, tongue),
                    "-" if result.linked is None else f"{number(100 * result.linked, tongue, 2)}%",
                    number(result.seconds or 0.0, tongue, 2),
                    "",
                ]
            ),
        ]
        for result in found.results
    ]
    show.table(
        say(tongue, "compare_title", k=k, rows=number(found.rows, tongue)),
        [say(tongue, key) for key in COLUMNS],
        share,
    )
