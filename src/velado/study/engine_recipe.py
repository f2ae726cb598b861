"""apply_recipe_to_files(), apply_recipe_to_table(): a recipe done again where the rows lie, as `apply_recipe` does it in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from velado.data.keys import Key
from velado.engines.open_source import Reader, local_files
from velado.release.goal import Progress, silent
from velado.release.run_settings import Plan
from velado.study.engine_run import EnginePublished, files_of, run_on_files, run_on_table, with_k
from velado.study.recipe import Recipe, Report
from velado.study.run import read_recipe
from velado.text import Language


def apply_recipe_to_files(
    recipe: Recipe | str | Path,
    place: str | Path,
    out: str | Path,
    *,
    force: bool = False,
    language: Language | None = None,
    reports: Sequence[Report] | None = None,
    key: Key | str | Path | None = None,
    engine: Reader = "duckdb",
    memory: str | None = None,
    plan: Plan = "auto",
    table: str | None = None,
    progress: Progress = silent,
) -> EnginePublished:
    """The run of *recipe* done again on the files of *place*, as `publish_files` would: counted, chosen, written and checked anew.

    *recipe* is a Recipe or the path of a `recipe.toml`, whoever wrote it; one that asks for what needs every row at hand is
    refused. The table has the format that the recipe says. Everything else is as for `apply_recipe` and `publish_files`.

    >>> apply_recipe_to_files("no-such-recipe.toml", "lake/*.parquet", "out")
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'no-such-recipe.toml'. Nothing was read. Check the path and the spelling.
    """
    return run_on_files(
        _again(recipe, language, reports),
        str(place),
        Path(out),
        reads=[*local_files(str(place)), *files_of(recipe, key)],
        force=force,
        key=key,
        engine=engine,
        memory=memory,
        plan=plan,
        table=table,
        progress=progress,
    )


def apply_recipe_to_table(
    recipe: Recipe | str | Path,
    url: str,
    table: str,
    out: str | Path,
    *,
    to_table: str,
    to: str | None = None,
    force: bool = False,
    language: Language | None = None,
    reports: Sequence[Report] | None = None,
    key: Key | str | Path | None = None,
    memory: str | None = None,
    plan: Plan = "auto",
    progress: Progress = silent,
) -> EnginePublished:
    """The run of *recipe* done again on *table* of the PostgreSQL server of *url*, as `publish_table` would; what it releases stands in *to_table*.

    *recipe* is a Recipe or the path of a `recipe.toml`, whoever wrote it; one that asks for what needs every row at hand is
    refused. Everything else is as for `apply_recipe` and `publish_table`.

    >>> apply_recipe_to_table("no-such-recipe.toml", "postgresql://", "stays", "out", to_table="stays_k5")
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'no-such-recipe.toml'. Nothing was read. Check the path and the spelling.
    """
    return run_on_table(
        _again(recipe, language, reports),
        url,
        table,
        Path(out),
        to=to,
        to_table=to_table,
        reads=files_of(recipe, key),
        force=force,
        key=key,
        memory=memory,
        plan=plan,
        progress=progress,
    )


def _again(
    recipe: Recipe | str | Path, language: Language | None, reports: Sequence[Report] | None
) -> Recipe:
    if not isinstance(recipe, Recipe):
        recipe = read_recipe(recipe)
    told = recipe.reports if reports is None else tuple(reports)
    return with_k(replace(recipe, language=language or recipe.language, reports=told))
