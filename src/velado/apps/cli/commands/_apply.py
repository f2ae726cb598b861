"""`velado apply`: run a recipe again, on the same file or on the next one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import history_flags, show
from velado.apps.cli import options as flags
from velado.apps.cli.app import LANGUAGE_ASKED, argument, command, option
from velado.apps.cli.commands._anonymize import show_engine_published, show_published
from velado.apps.cli.engine_flags import EngineFlags, in_memory, is_lake
from velado.apps.cli.first_kernel import load_first_kernel
from velado.text import language, say

if TYPE_CHECKING:
    from velado.study.recipe import Recipe


@command("apply")
def apply(
    ctx: typer.Context,
    recipe: Annotated[Path, argument("RECIPE", help="The recipe.toml of a release.")],
    file: flags.Source,
    *,
    folder: flags.FolderFlags,
    engine: EngineFlags,
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

    Groups are chosen and every promise is checked anew on that file. A folder or a pattern of files, a database in a file
    and a table of PostgreSQL will do too, as for anonymize.
    """
    reports = None if report is None else flags.several_of(report, flags.REPORTS, "--report")
    served = engine.serves(file)
    elsewhere = served or engine.scans(file)
    engine.refuse_plan(elsewhere)
    folder.refuse(recipe, None if served or is_lake(file) else Path(file), population)
    # The recipe has a language of its own, which holds where none is asked for.
    spoken = language() if LANGUAGE_ASKED in ctx.meta else None
    if elsewhere:
        engine.refuse(
            [
                ("--history", history is not None),
                ("--population", population is not None),
                ("--sheet", reading.sheet is not None),
            ],
            file,
        )
        with show.waiting() as progress:
            from velado.study.engine_recipe import apply_recipe_to_files, apply_recipe_to_table

            known = _read(recipe, reading)
            done = (
                apply_recipe_to_table(
                    known,
                    file,
                    engine.table or "",
                    folder.output,
                    to=engine.to,
                    to_table=engine.to_table or "",
                    force=folder.force,
                    language=spoken,
                    reports=reports,
                    key=folder.key,
                    memory=engine.memory,
                    plan=engine.plan,
                    progress=progress,
                )
                if served
                else apply_recipe_to_files(
                    known,
                    file,
                    folder.output,
                    force=folder.force,
                    language=spoken,
                    reports=reports,
                    key=folder.key,
                    engine=engine.reader,
                    memory=engine.memory,
                    plan=engine.plan,
                    table=engine.table,
                    progress=progress,
                )
            )
        _warn(
            say(
                "Nothing about earlier releases was checked: what this one and those before it tell together is not known, and an engine cannot measure it yet."
            )
        )
        show_engine_published(done)
        return
    with show.waiting() as progress:
        from velado.study.run import apply_recipe

        load_first_kernel()
        known = _read(recipe, reading)
        published = apply_recipe(
            known,
            in_memory(file, known.schema) if is_lake(file) else reading.source(Path(file)),
            folder.output,
            recipe_folder=recipe.parent,
            population=population,
            force=folder.force,
            language=spoken,
            reports=reports,
            key=folder.key,
            history=history,
            progress=progress,
        )
    if history is None:
        _warn(
            say(
                "Nothing about earlier releases was checked: what this one and those before it tell together is not known (--history FILE)."
            )
        )
    show_published(published)


def _read(recipe: Path, reading: flags.ReadingFlags) -> Recipe:
    from velado.study.run import read_recipe

    known = read_recipe(recipe)
    if reading.encoding is not None:
        known = replace(known, schema=replace(known.schema, encoding=reading.encoding))
    return known


def _warn(unchecked: str) -> None:
    # Not in the report: on the recorded file a recipe gives the same folder byte for byte.
    if not show.manner().silent:
        show.present([show.warning(unchecked)])
