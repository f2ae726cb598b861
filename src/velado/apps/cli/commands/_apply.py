"""`velado apply`: run a recipe again, on the same file or on the next one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from velado.apps.cli import history_flags, show
from velado.apps.cli import options as flags
from velado.apps.cli.app import LANGUAGE_ASKED, argument, command, option
from velado.apps.cli.commands._anonymize import show_published
from velado.apps.cli.engine_flags import is_database, is_lake
from velado.apps.cli.first_kernel import load_first_kernel
from velado.errors import ParameterError
from velado.text import language, say


@command("apply")
def apply(
    ctx: typer.Context,
    recipe: Annotated[Path, argument("RECIPE", help="The recipe.toml of a release.")],
    file: flags.File,
    *,
    folder: flags.FolderFlags,
    reading: flags.ReadingFlags,
    report: Annotated[
        str | None,
        option(
            "--report LIST", help="Report formats, comma-separated: html, md, json; default: the recipe's."
        ),
    ] = None,
    population: flags.Population = None,
    history: history_flags.History = None,
) -> None:
    """Repeat a recipe on a file.

    Groups are chosen and every promise is checked anew on that file.
    """
    reports = None if report is None else flags.several_of(report, flags.REPORTS, "--report")
    folder.refuse(recipe, file, population)
    if str(file).startswith(("postgresql:", "postgres:")) or is_lake(str(file)) or is_database(str(file)):
        raise ParameterError(
            "`velado apply` repeats a recipe on one file, in memory.",
            "Folders, patterns of files, databases and servers are released by `velado anonymize` alone.",
            "Run `velado anonymize` on them with the schema and the settings that stand in the recipe.",
        )
    with show.waiting() as progress:
        from velado.study.run import apply_recipe, read_recipe

        load_first_kernel()
        plan = read_recipe(recipe)
        if reading.encoding is not None:
            plan = replace(plan, schema=replace(plan.schema, encoding=reading.encoding))
        published = apply_recipe(
            plan,
            reading.source(file),
            folder.output,
            recipe_folder=recipe.parent,
            population=population,
            force=folder.force,
            # The recipe has a language of its own, which holds where none is asked for.
            language=language() if LANGUAGE_ASKED in ctx.meta else None,
            reports=reports,
            key=folder.key,
            history=history,
            progress=progress,
        )
    if history is None and not show.manner().silent:
        # Not in the report: on the recorded file a recipe gives the same folder byte for byte.
        unchecked = say(
            "Nothing about earlier releases was checked: what this one and those before it tell together is not known (--history FILE)."
        )
        show.present([show.warning(unchecked)])
    show_published(published)
