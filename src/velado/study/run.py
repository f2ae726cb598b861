"""publish(): one run from a table to a release folder. Either the whole folder stands there, or nothing does.

    anonymize -> measure -> what-ifs -> summarize -> render -> write

Nothing here touches the disk: reading is `velado.data.io`, writing is `velado.data.folders`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from velado.anonymize.goal import Progress, silent
from velado.anonymize.guarantees.base import Guarantee
from velado.anonymize.methods.base import Method
from velado.anonymize.operations.base import Operation
from velado.anonymize.population import read_plain
from velado.anonymize.release import Release, anonymize
from velado.data.folders import Formulas, count_formulas, csv_bytes, parquet_bytes, write_folder
from velado.data.io import attach_taxonomies, read_schema, read_table, read_toml
from velado.data.schema import Schema
from velado.data.table import Table, Undeclared
from velado.errors import ParameterError, SchemaError
from velado.measure.measured import Scores, measure
from velado.study.best_possible import best_possible
from velado.study.manifest import manifest, manifest_json
from velado.study.recipe import Format, Language, Per, Recipe, Report, without_folders
from velado.study.report.render_html import render_html
from velado.study.report.render_json import render_json
from velado.study.report.render_markdown import render_markdown
from velado.study.report.summarize import summarize
from velado.study.what_if import what_ifs

RENDERERS = {"html": render_html, "md": render_markdown, "json": render_json}


@dataclass(frozen=True, repr=False)
class Published:
    """A release that stands in *folder*, its scores, and the *summary* its reports were rendered from."""

    release: Release
    scores: Scores
    folder: Path
    summary: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Published({self.release!r} in '{self.folder.name}')"


def publish(
    source: Any,
    schema: Schema | str | Path,
    method: Method,
    guarantees: Sequence[Guarantee] = (),
    *,
    out: str | Path,
    suppression: float = 0.0,
    seed: int = 0,
    per: Per | None = None,
    operations: Sequence[Operation] = (),
    population: Any = None,
    undeclared: Undeclared = "refuse",
    format: Format = "csv",
    formulas: Formulas = "keep",
    force: bool = False,
    language: Language = "en",
    reports: Sequence[Report] = ("html",),
    schema_folder: str | Path | None = None,
    beside: Mapping[str, bytes] | None = None,
    progress: Progress = silent,
) -> Published:
    """The release of *source* stands in folder *out* with its report, manifest and recipe, or an error is raised.

    *schema* is a Schema or the path of a schema file; *schema_folder* says where taxonomy files lie that a
    Schema names but does not hold. *population* is a table of everyone the source was
    drawn from. *beside* are further files for the folder, such as an inferred schema. The same input, settings and *seed* give the same folder byte for byte.
    """
    reads = []
    if not isinstance(schema, Schema):
        reads.append(Path(schema))
        schema = read_schema(schema)
    recipe = Recipe(
        schema,
        method,
        tuple(guarantees),
        float(suppression),
        seed,
        per,
        tuple(operations),
        format,
        formulas,
        language,
        tuple(reports),
        undeclared,
    )
    if schema_folder is not None:
        recipe = _with_files(recipe, Path(schema_folder))
    return _run(recipe, source, Path(out), reads, force, beside or {}, progress, population)


def apply_recipe(
    recipe: Recipe | str | Path,
    source: Any,
    out: str | Path,
    *,
    recipe_folder: str | Path | None = None,
    population: Any = None,
    force: bool = False,
    language: Language | None = None,
    reports: Sequence[Report] | None = None,
    progress: Progress = silent,
) -> Published:
    """The run of *recipe* done again on *source*: chosen, recoded and checked anew, nothing carried over.

    *recipe* is a Recipe or the path of a `recipe.toml`. On the recorded input the table comes out the same
    byte for byte; on another file every promise is checked on that file. *language* and *reports* may differ.
    *recipe_folder* says where taxonomy files lie that a Recipe names but does not hold.
    """
    if not isinstance(recipe, Recipe):
        recipe = read_recipe(recipe)
    elif recipe_folder is not None:
        recipe = _with_files(recipe, Path(recipe_folder))
    changes: dict[str, Any] = {}
    if language is not None:
        changes["language"] = language
    if reports is not None:
        changes["reports"] = tuple(reports)
    return _run(replace(recipe, **changes), source, Path(out), [], force, {}, progress, population)


def read_recipe(path: str | Path) -> Recipe:
    """A Recipe from its file. Taxonomy files it names but does not hold are read from its folder."""
    path = Path(path)
    return _with_files(Recipe.from_dict(read_toml(path, SchemaError, "recipe")), path.parent)


def _with_files(recipe: Recipe, folder: Path) -> Recipe:
    columns = dict(recipe.schema.columns)
    specs = {name: column.taxonomy for name, column in columns.items() if column.taxonomy is not None}
    bare = [n for n, spec in specs.items() if spec.file and spec.paths is None and spec.tree is None]
    read = attach_taxonomies(recipe.schema.with_columns(columns[name] for name in bare), folder)
    return replace(recipe, schema=recipe.schema.with_columns({**columns, **read.columns}.values()))


def _run(
    recipe: Recipe,
    source: Any,
    out: Path,
    reads: Sequence[Path],
    force: bool,
    beside: Mapping[str, bytes],
    progress: Progress,
    population: Any,
) -> Published:
    reads = [*reads, *(Path(given) for given in (source, population) if isinstance(given, str | Path))]
    table = read_table(source, recipe.schema, recipe.undeclared)
    everyone = None if population is None else read_plain(population, recipe.schema)
    fingerprint = table.fingerprint or hashlib.sha256(csv_bytes(table.frame)).hexdigest()
    release = anonymize(
        table,
        table.schema,
        recipe.method,
        recipe.guarantees,
        suppression=recipe.suppression,
        seed=recipe.seed,
        operations=recipe.operations,
        per=recipe.per,
        population=everyone,
        progress=_part(progress, 0.0, 0.45),
    )
    progress(0.45, "bounding what is possible")
    release = replace(release, notes={**release.notes, **best_possible(release)})
    progress(0.5, "measuring")
    scores = measure(release)
    others = what_ifs(release, table, recipe.guarantees, recipe.per, everyone, _part(progress, 0.7, 0.9))
    progress(0.9, "writing")
    recipe = replace(
        recipe,
        schema=without_folders(recipe.schema),
        input_name=table.source,
        input_sha256=fingerprint,
    )
    table_file, content = _table_file(release, recipe, table)
    formulas = count_formulas(release.frame) if recipe.formulas == "keep" else 0
    digest = hashlib.sha256(content).hexdigest()
    summary = summarize(release, scores, others, recipe, table, table_file, digest, formulas)
    files = {
        table_file: content,
        "manifest.json": manifest_json(
            manifest(release, table, fingerprint, scores.to_dict(), table_file, digest, everyone, formulas)
        ),
        "recipe.toml": recipe.to_toml().encode(),
        **{f"report.{kind}": RENDERERS[kind](summary).encode() for kind in recipe.reports},
    }
    clash = [name for name in beside if name in files or Path(name).name != name]
    if clash:
        raise ParameterError(
            f"A file named '{clash[0]}' cannot be put into the release folder.",
            "The name is taken, or is not a plain file name.",
            "Choose another name.",
        )
    folder = write_folder(out, {**files, **beside}, force, reads)
    progress(1.0, "done")
    return Published(release, scores, folder, summary)


def _table_file(release: Release, recipe: Recipe, table: Table) -> tuple[str, bytes]:
    if recipe.format == "parquet":
        return "table.parquet", parquet_bytes(release.frame)
    return "table.csv", csv_bytes(release.frame, table.separator, recipe.formulas)


def _part(progress: Progress, start: float, end: float) -> Progress:
    """The same progress bar, seen from one part of the run."""

    def within(share: float, doing: str = "") -> None:
        progress(start + (end - start) * share, doing)

    return within
