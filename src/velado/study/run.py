"""publish(): one run from a table to a release folder. Either the whole folder stands there, or nothing does.

    anonymize -> measure -> what-ifs -> summarize -> render -> write

Nothing here touches the disk: reading is `velado.data.io`, writing is `velado.data.staging`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from velado.data.formulas import escaped_names
from velado.data.io import attach_taxonomies, read_schema, read_table
from velado.data.keys import OWNER_FILE, Key, owner_key
from velado.data.schema import Schema
from velado.data.staging import (
    PRIVATE,
    PRIVATE_FILES,
    PUBLIC,
    Formulas,
    count_formulas,
    csv_bytes,
    parquet_bytes,
    write_folder,
)
from velado.data.table import Table, Undeclared
from velado.errors import ParameterError
from velado.measures.measured import Scores, measure
from velado.release.anonymize import DEFAULT_METHOD, carry_out, method_from
from velado.release.goal import Progress, silent
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods._method import Method
from velado.release.operations._operation import Operation
from velado.release.population import read_plain
from velado.release.prepare import prepare
from velado.release.release import Release
from velado.report.blocks import Page
from velado.report.facts import OutputFacts, ReleaseFacts, SourceFacts
from velado.report.manifest import input_digest, manifest, manifest_json
from velado.report.release_page import public_page, release_page
from velado.report.render import render_html, render_markdown, to_json
from velado.settings import parse_toml
from velado.study.recipe import Format, Language, Per, Recipe, Report, without_folders
from velado.study.what_if import best_possible, what_ifs
from velado.text import language, say, speaking

RENDERERS: Mapping[Report, Callable[[ReleaseFacts, Page], str]] = {
    "html": lambda facts, page: render_html(page),
    "md": lambda facts, page: render_markdown(page),
    "json": lambda facts, page: to_json({"language": language(), "facts": facts.facts(), "report": page}),
}


@dataclass(frozen=True, kw_only=True, repr=False)
class Published:
    """A release that stands in *folder*, all that is known of it, and the *page* its reports were rendered from.

    *public* is the part of the folder that may be handed over, *private* the part that stays.
    """

    facts: ReleaseFacts
    page: Page
    folder: Path

    @property
    def release(self) -> Release:
        """The release itself."""
        return self.facts.release

    @property
    def scores(self) -> Scores:
        """What was measured on it."""
        return self.facts.scores

    @property
    def public(self) -> Path:
        """The folder that may leave."""
        return self.folder / PUBLIC

    @property
    def private(self) -> Path:
        """The folder that stays."""
        return self.folder / PRIVATE

    def __repr__(self) -> str:
        return f"Published({self.release!r} in '{self.folder.name}')"


def publish(
    source: Any,
    schema: Schema | str | Path,
    method: Method | type[Method] | str = DEFAULT_METHOD,
    guarantees: Sequence[Guarantee] = (),
    *,
    out: str | Path,
    k: int | None = None,
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
    key: Key | str | Path | None = None,
    keep_order: bool = False,
    progress: Progress = silent,
) -> Published:
    """The release of *source* stands in folder *out*, or an error is raised.

    *out* gets two folders: `release` may leave (the table, its manifest, a short page), `private` stays (the report,
    the recipe, the key, which row is which). *key* is the owner's key or its file, by default that of this user.

    *schema* is a Schema or the path of a schema file; *schema_folder* says where taxonomy files lie that a
    Schema names but does not hold. *population* is a table of everyone the source was
    drawn from. *beside* are further private files, such as an inferred schema. The same
    input, settings, *seed* and *key* give the same folder byte for byte.
    """
    reads = []
    if not isinstance(schema, Schema):
        reads.append(Path(schema))
        schema = read_schema(schema)
    recipe = Recipe(
        schema,
        method_from(method, k),
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
        keep_order=keep_order,
    )
    if schema_folder is not None:
        recipe = _with_files(recipe, Path(schema_folder))
    return _run(recipe, source, Path(out), reads, force, beside or {}, progress, population, key)


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
    key: Key | str | Path | None = None,
    progress: Progress = silent,
) -> Published:
    """The run of *recipe* done again on *source*: chosen, recoded and checked anew, nothing carried over.

    *recipe* is a Recipe or the path of a `recipe.toml`. On the recorded input and
    with the same *key* the table comes out the same byte for byte; on another file every promise is checked on that file. *language* and *reports* may differ.
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
    return _run(replace(recipe, **changes), source, Path(out), [], force, {}, progress, population, key)


def read_recipe(path: str | Path) -> Recipe:
    """A Recipe from its file. Taxonomy files it names but does not hold are read from its folder."""
    path = Path(path)
    return _with_files(Recipe.from_dict(parse_toml(path, say("The recipe file"))), path.parent)


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
    given_key: Key | str | Path | None,
) -> Published:
    named = (source, population, given_key)
    reads = [*reads, *(Path(given) for given in named if isinstance(given, str | Path))]
    table = read_table(source, recipe.schema, recipe.undeclared)
    everyone = None if population is None else read_plain(population, recipe.schema)
    key = owner_key(given_key)
    prepared = prepare(
        table,
        operations=recipe.operations,
        per=recipe.per,
        population=everyone,
        key=key,
        keep_order=recipe.keep_order,
    )
    release = carry_out(
        prepared,
        recipe.method,
        recipe.guarantees,
        suppression=recipe.suppression,
        seed=recipe.seed,
        progress=_part(progress, 0.0, 0.45),
    )
    progress(0.45, "bounding what is possible")
    release = replace(release, notes={**release.notes, **best_possible(release)})
    progress(0.5, "measuring")
    scores = measure(release)
    others = what_ifs(release, recipe.guarantees, _part(progress, 0.7, 0.9))
    progress(0.9, "writing")
    recipe = replace(
        recipe,
        schema=without_folders(recipe.schema),
        input_name=table.source,
        input_digest=input_digest(table, key),
        key_fingerprint=key.fingerprint,
    )
    table_file, content = _table_file(release, recipe, table)
    kept = recipe.formulas == "keep"
    facts = ReleaseFacts(
        release=release,
        scores=scores,
        what_ifs=others,
        source=SourceFacts(
            name=table.source,
            keyed_sha256=recipe.input_digest,
            key=key.fingerprint,
            rows=table.rows,
            columns=tuple(table.frame.columns),
        ),
        output=OutputFacts(
            file=table_file,
            sha256=hashlib.sha256(content).hexdigest(),
            formulas=count_formulas(release.frame) if kept else 0,
            escaped_names={} if kept else escaped_names(release.aligned.columns),
        ),
    )
    files = {
        f"{PUBLIC}/{table_file}": content,
        f"{PUBLIC}/manifest.json": manifest_json(manifest(facts, key, everyone)),
        f"{PRIVATE}/recipe.toml": recipe.to_toml().encode(),
        f"{PRIVATE}/{OWNER_FILE}": key.secret + b"\n",
        f"{PRIVATE}/rows.csv": csv_bytes(pl.DataFrame({"row": release.rows + 1})),
    }
    with speaking(recipe.language):
        page = release_page(facts)
        files[f"{PUBLIC}/about.html"] = render_html(public_page(facts)).encode()
        for kind in recipe.reports:
            files[f"{PRIVATE}/report.{kind}"] = RENDERERS[kind](facts, page).encode()
    clash = [name for name in beside if f"{PRIVATE}/{name}" in files or name not in PRIVATE_FILES]
    if clash:
        raise ParameterError(
            f"A file named '{clash[0]}' cannot be put into the release folder.",
            "The name is taken, or is none of a release's files, and the folder could never be replaced.",
            "Choose another name, or keep the file elsewhere.",
        )
    own = {f"{PRIVATE}/{name}": data for name, data in beside.items()}
    folder = write_folder(out, {**files, **own}, force, reads)
    progress(1.0, "done")
    return Published(facts=facts, page=page, folder=folder)


def _table_file(release: Release, recipe: Recipe, table: Table) -> tuple[str, bytes]:
    if recipe.format == "parquet":
        return "table.parquet", parquet_bytes(release.frame)
    return "table.csv", csv_bytes(release.frame, table.separator, recipe.formulas)


def _part(progress: Progress, start: float, end: float) -> Progress:
    """The same progress bar, seen from one part of the run."""

    def within(share: float, doing: str = "") -> None:
        progress(start + (end - start) * share, doing)

    return within
