"""`velado apply`: run a recipe again, on the same file or on the next one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import summary
from velado.apps.cli.commands._anonymize import refuse_existing
from velado.apps.cli.options import PopulationFlag
from velado.apps.cli.show import waiting


def apply(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", show_default=False)],
    file: flags.File,
    output: flags.Output = Path("out"),
    key: flags.KeyFlag = None,
    report: Annotated[
        str | None,
        typer.Option(
            "--report",
            metavar="LIST",
            help="Report formats, comma-separated: html, md, json; default: the recipe's.",
            show_default=False,
        ),
    ] = None,
    population: PopulationFlag = None,
    encoding: flags.Encoding = None,
    force: flags.Force = False,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Repeat a recipe on a file.

    Groups are chosen and every promise is checked anew on that file.
    """
    tongue = flags.language(lang)
    reports = None if report is None else flags.several_of(report, flags.REPORTS, "--report")
    refuse_existing(output, force, recipe, file, population, key)
    with waiting(tongue, quiet or as_json) as progress:
        from velado.study.run import apply_recipe, read_recipe

        plan = read_recipe(recipe)
        if encoding is not None:
            plan = replace(plan, schema=replace(plan.schema, encoding=encoding))
        published = apply_recipe(
            plan,
            file,
            output,
            recipe_folder=recipe.parent,
            population=population,
            force=force,
            language=None if lang is None else tongue,
            reports=reports,  # type: ignore[arg-type]  # checked by several_of()
            key=key,
            progress=progress,
        )
    summary.published(published, tongue, as_json, quiet)
