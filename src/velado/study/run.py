"""publish(): one run from a table to a release folder. Either the whole folder stands there, or nothing does.

    anonymize -> measure -> what-ifs -> facts -> render -> write

Nothing here touches the disk: reading is `velado.data.io`, writing is `velado.data.staging`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import polars as pl

from velado.data.formulas import Formulas, count_formulas, escaped_names
from velado.data.history_file import HistoryFile, history_held
from velado.data.io import attach_taxonomies, read_schema, read_table
from velado.data.keys import OWNER_FILE, Key, owner_key
from velado.data.partition import Partition
from velado.data.release_folder import PublishedFolder
from velado.data.schema import Schema
from velado.data.staging import (
    PRIVATE,
    PRIVATE_FILES,
    PUBLIC,
    StagedFolder,
    day_of_writing,
    staged_folder,
)
from velado.data.table import Table, Undeclared
from velado.data.table_bytes import csv_bytes, parquet_bytes
from velado.errors import ParameterError, VeladoError
from velado.measures.measured import Scores, measure
from velado.measures.risk.rows_together import joining_doors
from velado.release import DEFAULT_METHOD
from velado.release.anonymize import carry_out, goal_for
from velado.release.goal import Goal, Progress, default_k, silent, within
from velado.release.history.together import Held, Together
from velado.release.methods._method import Method
from velado.release.methods.improve import Effort
from velado.release.methods.progressive._polish import at_another_goal, without_dear_rows
from velado.release.methods.progressive.lower_bound import BoundEffort, lower_bound
from velado.release.methods.progressive.objectives.mixture import ObjectiveMixture
from velado.release.methods.progressive.progressive import Progressive
from velado.release.operations._operation import Operation
from velado.release.population import read_plain
from velado.release.prepare import prepare
from velado.release.recoded import NoteName, Recoded
from velado.release.release import Release
from velado.release.release import release as make_release
from velado.release.run_settings import Bound, Guarantees
from velado.release.side_doors import decided_doors
from velado.report.blocks import Page
from velado.report.evidence.figures import measured_figures
from velado.report.facts import ABOVE_BEST, OutputFacts, ReleaseFacts, SourceFacts, WhatIf, WhatIfs
from velado.report.manifest import input_digest, manifest, manifest_json, package_version
from velado.report.release_page import public_page, release_page
from velado.report.render import as_values, render_html, render_markdown, to_json
from velado.settings import Where, made, parse_toml
from velado.study.held_people import held_people, with_rows_of_leavers
from velado.study.held_values import held_values, refuse_for_values
from velado.study.history import HistoryDraft, no_history, refuse_order, refuse_without_person
from velado.study.recipe import Format, Per, Recipe, RecipeInput, Report, without_folders
from velado.text import Language, language, say, speaking

RENDERERS: Mapping[Report, Callable[[ReleaseFacts, Page], str]] = {
    "html": lambda facts, page: render_html(page),
    "md": lambda facts, page: render_markdown(page),
    "json": lambda facts, page: to_json(
        {"language": language(), "facts": _in_english(facts), "report": page}
    ),
}


def _in_plain_english(figures: object) -> bytes:
    with speaking("en"):
        return to_json(figures).encode()


def _in_english(facts: ReleaseFacts) -> object:
    """Facts are for programs: the same words whatever language the report is told in."""
    with speaking("en"):
        return as_values(facts.facts())


@dataclass(frozen=True, kw_only=True, repr=False)
class Published(PublishedFolder):
    """A release that stands in *folder*, all that is known of it, and the *page* its reports were rendered from.

    *public* is the part of the folder that may be handed over, *private* the part that stays.

    >>> from velado.testing.examples import small_release
    >>> small_release().public.name, small_release().page.title
    ('release', 'Release report')
    """

    facts: ReleaseFacts
    page: Page

    @property
    def release(self) -> Release:
        """The release itself."""
        return self.facts.release

    @property
    def scores(self) -> Scores:
        """What was measured on it."""
        return self.facts.scores

    def __repr__(self) -> str:
        return f"Published({self.release!r} in '{self.folder.name}')"


def publish(
    source: Any,
    schema: Schema | str | Path,
    method: Method | type[Method] | str = DEFAULT_METHOD,
    guarantees: Guarantees = (),
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
    improve: bool = False,
    blind: bool = False,
    bound: Bound = "fast",
    made_on: date | None = None,
    history: str | Path | None = None,
    together: Together | Literal["people", "values"] | None = None,
    progress: Progress = silent,
) -> Published:
    """The release of *source* stands in folder *out*, or an error is raised.

    *out* gets two folders: `release` may leave (the table, its manifest, a short page), `private` stays (the report,
    the recipe, the key, which row is which). *key* is the owner's key or its file, by default that of this user.

    *schema* is a Schema or the path of a schema file; *schema_folder* says where taxonomy files lie that a
    Schema names but does not hold. *history* is the file of a history: what this release tells together with those before
    it is measured and said, and it is entered before it leaves. *together* holds people, or values, together over all of
    them, which is then promised. *population* is a table of everyone the source was drawn from. *beside* are further
    private files, such as an inferred schema. *improve* searches on from the
    groups that a partitioner made, *blind* makes groups without a look at sensitive values, *bound* says how long the least possible loss is looked for. The same input, settings, *seed* and *key* give the same folder byte for
    byte, on the same day: the private report bears it (*made_on*, by default today).

    >>> import tempfile
    >>> frame = pl.DataFrame({"age": [20, 21, 30, 31]})
    >>> schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     publish(frame, schema, "mondrian", k=2, out=f"{folder}/out", key=Key(bytes(range(40))))
    Published(Release(4 rows by mondrian; k-anonymity: needs 2 rows, the weakest group has 2; holds.) in 'out')
    """
    reads = []
    if not isinstance(schema, Schema):
        reads.append(Path(schema))
        schema = read_schema(schema)
    given: dict[str, Any] = {
        "schema": schema,
        "method": method,
        "guarantees": guarantees,
        "seed": seed,
        "k": k,
        "suppression": suppression,
        "per": per,
        "format": format,
        "formulas": formulas,
        "language": language,
        "undeclared": undeclared,
        "reports": reports,
        "keep_order": keep_order,
        "improve": improve,
        "blind": blind,
        "bound": bound,
        "operations": operations,
    }
    if together is not None:
        given["together"] = together if isinstance(together, Together) else Together(what=together)
    recipe = made(Recipe, given, Where("python"))
    if k is None:
        recipe = replace(recipe, k=default_k(recipe.method.promise, recipe.guarantees))
    if schema_folder is not None:
        recipe = _with_files(recipe, Path(schema_folder))
    return _run(
        recipe,
        source,
        Path(out),
        population=population,
        key=key,
        reads=reads,
        force=force,
        beside=beside or {},
        made_on=made_on,
        history=history,
        progress=progress,
    )


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
    made_on: date | None = None,
    history: str | Path | None = None,
    progress: Progress = silent,
) -> Published:
    """The run of *recipe* done again on *source*: chosen, recoded and checked anew, nothing carried over.

    *recipe* is a Recipe or the path of a `recipe.toml`. On the recorded input and with the same *key* the table comes
    out the same byte for byte; on another file every promise is checked on that file. *language* and *reports* may
    differ. Without a *history* nothing about earlier releases is checked.
    *recipe_folder* says where taxonomy files lie that a Recipe names but does not hold.

    >>> import tempfile
    >>> from velado.release.methods import Mondrian
    >>> frame = pl.DataFrame({"age": [20, 21, 30, 31]})
    >>> recipe = Recipe(Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}}), Mondrian(), k=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     apply_recipe(recipe, frame, f"{folder}/out", key=Key(bytes(range(40)))).release.suppressed
    0
    """
    if not isinstance(recipe, Recipe):
        recipe = read_recipe(recipe)
    elif recipe_folder is not None:
        recipe = _with_files(recipe, Path(recipe_folder))
    told = recipe.reports if reports is None else tuple(reports)
    recipe = replace(recipe, language=language or recipe.language, reports=told)
    return _run(
        recipe,
        source,
        Path(out),
        population=population,
        key=key,
        force=force,
        made_on=made_on,
        history=history,
        progress=progress,
    )


def read_recipe(path: str | Path) -> Recipe:
    """A Recipe from its file. Taxonomy files it names but does not hold are read from its folder.

    >>> read_recipe("no-such-recipe.toml")
    Traceback (most recent call last):
    velado.errors.SchemaError: There is no file 'no-such-recipe.toml'. Nothing was read. Check the path and the spelling.
    """
    path = Path(path)
    return _with_files(Recipe.from_dict(parse_toml(path, say("The recipe file"))), path.parent)


def _with_files(recipe: Recipe, folder: Path) -> Recipe:
    columns = dict(recipe.schema.columns)
    specs = {name: column.taxonomy for name, column in columns.items() if column.taxonomy is not None}
    bare = [n for n, spec in specs.items() if spec.file and spec.paths is None and spec.tree is None]
    read = attach_taxonomies(recipe.schema.with_columns(columns[name] for name in bare), folder)
    return replace(recipe, schema=recipe.schema.with_columns({**columns, **read.columns}.values()))


def _run(recipe: Recipe, source: Any, out: Path, *, history: str | Path | None, **given: Any) -> Published:
    """The run, with the history held from its beginning to its end: a second run on it is refused at once."""
    if history is None:
        return _held_run(recipe, source, out, **given)
    key = owner_key(given.pop("key"))
    with history_held(Path(history), key) as file:
        return _held_run(recipe, source, out, key=key, file=file, **given)


def _held_run(
    recipe: Recipe,
    source: Any,
    out: Path,
    *,
    population: Any,
    key: Key | str | Path | None,
    force: bool,
    progress: Progress,
    made_on: date | None = None,
    reads: Sequence[Path] = (),
    beside: Mapping[str, bytes] = MappingProxyType({}),
    file: HistoryFile | None = None,
) -> Published:
    given_files = (source, population, key)
    reads = [*reads, *(Path(given) for given in given_files if isinstance(given, str | Path))]
    reads += [] if file is None else [file.path]
    table = read_table(source, recipe.schema, recipe.undeclared)
    everyone = None if population is None else read_plain(population, recipe.schema)
    key = owner_key(key)
    if recipe.together.what is not None and file is None:
        raise no_history()
    if recipe.together.what is not None and recipe.keep_order:
        raise refuse_order()
    if file is not None:
        refuse_without_person(table.schema)
    held: Held | None = None
    shown, gone = table, 0
    if file is not None and recipe.together.what == "values":
        refuse_for_values(recipe)
        held, shown = held_values(recipe, table, file, key)
    elif file is not None and recipe.together.kind == ("people", "keep"):
        shown, gone = with_rows_of_leavers(recipe, table, file, key)
    prepared = prepare(
        shown,
        operations=recipe.operations,
        per=recipe.per,
        population=everyone,
        key=key,
        keep_order=recipe.keep_order,
    ).packed()
    if shown is table:
        table = (
            prepared.original
        )  # the texts as they were read go: of a million rows they are a quarter of all memory
    del shown
    goal = goal_for(prepared, recipe.method, recipe.k, recipe.guarantees, recipe.suppression, recipe.blind)
    if file is not None and recipe.together.what == "people":
        held, recoded = held_people(recipe, prepared, goal, file, key, gone)
        release = make_release(prepared, recoded, goal, recipe.method, recipe.seed)
    else:
        release = carry_out(
            prepared,
            recipe.method,
            goal,
            seed=recipe.seed,
            improve="default" if recipe.improve else None,
            lots=None if held is None else held.lots,
            progress=within(progress, 0.0, 0.45),
        )
    progress(0.45, "bounding what is possible")
    release = replace(release, notes={**release.notes, **best_possible(release, recipe.bound)})
    progress(0.5, "measuring")
    doors = decided_doors((*release.side_doors, *joining_doors(release)), recipe.doors)
    release = replace(release, prepared=replace(release.prepared, side_doors=doors))
    scores = measure(release)
    others = (
        WhatIfs(skipped="together")
        if recipe.together.what == "people"
        else what_ifs(release, within(progress, 0.7, 0.9))
    )
    progress(0.9, "writing")
    recipe = replace(
        recipe,
        schema=without_folders(recipe.schema),
        input=RecipeInput(name=table.source, digest=input_digest(table, key), key=key.fingerprint),
    )
    with staged_folder(out, force, reads) as staged:
        table_file, digest = _put_table(staged, release, recipe, table)
        entry: HistoryDraft | None = None
        if file is not None:
            with speaking(recipe.language):
                written = staged.read(f"{PUBLIC}/{table_file}")
                entry = HistoryDraft.of(file, release, written, table.separator, key, held, recipe.formulas)
                kept = entry.over_time
                # What is guaranteed stands among the promises; that nothing is must be seen by whoever reads warnings alone.
                fallen = () if kept is None or kept.promise == "guaranteed" else (kept.sentence,)
            release = replace(
                release,
                prepared=replace(
                    release.prepared,
                    own_warnings=(*release.prepared.own_warnings, *entry.told.sentences()),
                    warnings=(*fallen, *release.prepared.warnings),
                ),
                over_time=kept,
            )
        columns = release.listed.columns
        facts = ReleaseFacts(
            release=release,
            scores=scores,
            what_ifs=others,
            source=SourceFacts(
                name=table.source,
                keyed_sha256=recipe.input.digest,
                key=key.fingerprint,
                rows=table.rows,
                columns=tuple(table.frame.columns),
            ),
            output=OutputFacts(
                file=table_file,
                sha256=digest,
                formulas=count_formulas(release.listed) + (0 if entry is None else entry.like_formulas)
                if recipe.formulas == "keep"
                else 0,
                escaped_names=escaped_names(columns) if recipe.formulas == "escape" else {},
            ),
            made_on=made_on or day_of_writing(),
            version=package_version("velado"),
            decisions=recipe.doors,
        )
        files = {
            f"{PUBLIC}/manifest.json": manifest_json(manifest(facts, key, everyone)),
            f"{PRIVATE}/recipe.toml": recipe.to_toml().encode(),
            f"{PRIVATE}/{OWNER_FILE}": key.secret + b"\n",
            f"{PRIVATE}/measured.json": _in_plain_english(measured_figures(facts)),
            f"{PRIVATE}/rows.csv": csv_bytes(_row_numbers(release, table.rows)),
        }
        if entry is not None and entry.values is not None:
            files[f"{PUBLIC}/values.csv"] = entry.values
        with speaking(recipe.language):
            page = release_page(facts)
            files[f"{PUBLIC}/about.html"] = render_html(public_page(facts)).encode()
            for kind in recipe.reports:
                files[f"{PRIVATE}/report.{kind}"] = RENDERERS[kind](facts, page).encode()
        clash = [name for name in beside if f"{PRIVATE}/{name}" in files or name not in PRIVATE_FILES]
        if clash:
            raise ParameterError(
                say("A file named '{clash}' cannot be put into the release folder.", clash=clash[0]),
                "The name is taken, or is none of a release's files, and the folder could never be replaced.",
                "Choose another name, or keep the file elsewhere.",
            )
        own = {f"{PRIVATE}/{name}": data for name, data in beside.items()}
        staged.put({**files, **own})
        if entry is not None:
            entry.begin()
    if entry is not None:
        entry.confirm()
    progress(1.0, "done")
    return Published(facts=facts, page=page, folder=staged.folder)


def _row_numbers(release: Release, rows: int) -> pl.DataFrame:
    """Which row of the input each published row is; a quoted blank for those of people who left: no reader skips it."""
    numbers = pl.Series("row", release.rows + 1)
    if (numbers <= rows).all():
        return pl.DataFrame({"row": numbers})
    return pl.DataFrame({"row": numbers.set(numbers > rows, None).cast(pl.String).fill_null("")})


def _put_table(staged: StagedFolder, release: Release, recipe: Recipe, table: Table) -> tuple[str, str]:
    """The table stands in the staged folder, written piece by piece: its file's name, and the digest of its bytes."""
    if recipe.format == "parquet":
        return "table.parquet", staged.pour(f"{PUBLIC}/table.parquet", [parquet_bytes(release.frame)])
    pieces = release.csv_pieces(table.separator, recipe.formulas)
    return "table.csv", staged.pour(f"{PUBLIC}/table.csv", pieces)


# ---- beside a release: how far it is from the best possible, and what other settings would have given

_WELL_BOUNDED = 200_000
"""Of larger tables boxes and pairs are looked at in part, and the release says that its bound is weak."""
_BOUNDED = 300_000
"""Of more distinct rows no box is looked at, and pairs of the few that are cannot price a hundredth of the rows."""
WORK = 24_000_000
"""Tuples looked at: about a third of a second of one core. More makes the bound tighter, not truer."""
_BRIEF = 6_000_000
"""The same for a release that was asked for fast."""
LARGEST_RERUN = 1_000_000
"""Rows x quasi-identifiers up to which the reruns are made: a rule, not a clock, so that reports repeat."""
SUPPRESSIONS = (0.01, 0.05)
_BOUND = NoteName("lower_bound", say("proven lower bound of the loss"), share=True)
_ABOVE = NoteName(ABOVE_BEST, say("above the best possible, at most"), share=True)
_ABOUT_BOUND = NoteName("lower_bound_reason", say("about the lower bound"))


def best_possible(release: Release, effort: Bound = "fast") -> Mapping[str, object]:
    """The least loss any release with the same k could have, and how far above it this one is at most, as notes.

    The bound (see `velado.release.methods.progressive.lower_bound`) holds for every grouping with at least k rows in
    each group. Further guarantees, k per person, substitutions and suppressed rows (each counted as wholly lost) can
    only cost more, so it holds for any release of the table.

    >>> from velado.testing.examples import small_release
    >>> round(best_possible(small_release().release)["lower_bound"], 3), round(small_release().release.loss, 3)
    (0.032, 0.032)
    """
    k = release.goal.k
    if k is None or effort == "off":
        return {}
    if effort == "fast" and release.data.classes.count > _BOUNDED:
        unsought = say(
            "not looked for: a table of more than {rows:,} distinct rows takes long to bound, and in a short time next to "
            "nothing is proven; --bound tight looks for it",
            rows=_BOUNDED,
        )
        return {_ABOUT_BOUND: unsought}
    # Rows that left before the method saw them lost everything; the bound speaks of the others.
    share = release.data.rows / release.table.rows
    brief = effort == "fast" and isinstance(release.method, Progressive) and release.method.effort == "fast"
    how: BoundEffort = "brief" if brief else effort
    bound = share * lower_bound(release.data, k, _BRIEF if brief else WORK, how) + (1 - share)
    reached = release.loss
    above = reached / bound - 1 if bound > 0 else (0.0 if reached <= 0 else None)
    if release.data.rows <= _WELL_BOUNDED:
        return {_BOUND: bound, _ABOVE: above}
    weak = say(
        "from a part of the boxes and pairs alone: with more than {rows:,} rows it is weak",
        rows=_WELL_BOUNDED,
    )
    return {_BOUND: bound, _ABOVE: above, _ABOUT_BOUND: weak}


def what_ifs(release: Release, progress: Progress = silent) -> WhatIfs:
    """The release's method on the same table at k/2 and 2k, and with 1 % and 5 % suppression if none is allowed.

    Costs up to four runs of the method alone: the table is neither read nor judged nor encoded again, and the default's
    search is the fast one. Where the release itself keeps the other goal and loses less than the rerun, its figures
    stand: nothing forbids larger groups, or to drop no row.

    >>> from velado.testing.examples import small_release
    >>> [(run.k, run.suppression, run.groups) for run in what_ifs(small_release().release).runs]
    [(4, 0.0, 2), (2, 0.01, 4), (2, 0.05, 4)]
    """
    k = release.goal.k
    if k is None or release.method.promise == "measured":
        return WhatIfs(skipped="no-k")
    if release.data.rows * len(release.data.columns) > LARGEST_RERUN:
        return WhatIfs(skipped="large")
    limit, rows = release.goal.suppression, release.table.rows
    asked: list[tuple[Literal["k", "suppression"], int, float]] = []
    asked += [("k", other, limit) for other in (k // 2, 2 * k) if 2 <= other <= rows and other != k]
    asked += [("suppression", k, other) for other in SUPPRESSIONS if limit == 0]
    runs = []
    method = release.method
    improve: Effort | None = None if release.recoded.before is None else "fast"
    if isinstance(method, Progressive):
        method = replace(method, effort="fast")
    dropped: tuple[Partition, Release] | None = None
    for number, (changed, other, suppression) in enumerate(asked):
        progress(number / len(asked), "what if")
        goal = replace(release.goal.at(other), suppression=suppression)
        try:
            groups, publish = _known_groups(release, goal), release.recoded.regrouped
            if groups is None or publish is None:
                again = carry_out(release.prepared, method, goal, seed=release.seed, improve=improve)
            elif other == k and dropped is not None and bool((dropped[0].labels == groups.labels).all()):
                again = dropped[1]  # a higher limit that drops no further row: the same release
            else:
                recoded = Recoded(publish(groups), groups.kept, groups)
                again = make_release(release.prepared, recoded, goal, method, release.seed, readings=False)
                dropped = (groups, again) if other == k else dropped
            if other <= k and release.loss < again.loss:
                again = release
            runs.append(WhatIf.of(again, other, suppression, changed))
        except VeladoError as error:
            runs.append(WhatIf(k=other, suppression=suppression, changed=changed, failed=error.what))
    return WhatIfs(runs=tuple(runs))


def _known_groups(release: Release, goal: Goal) -> Partition | None:
    """What the default gives at another goal as far as it is had without another search; None where it must run again.

    Rows are dropped from the groups that are there. At another k the search begins where this one did: records, boxes and
    neighbours are known, and of the three starts the one that was best is made.
    """
    method, groups = release.method, release.recoded.partition
    if not isinstance(method, Progressive) or not goal.rows_only or goal.blind or groups is None:
        return None
    if not ObjectiveMixture.of(method.objective).is_usual:
        return None
    data = release.prepared.seen
    if goal.k == release.goal.k:
        return without_dear_rows(data, groups, goal.least_rows, goal.suppressible(data.rows))
    searched = method.effort != "fast"
    return at_another_goal(data, goal, str(release.notes["start"]), release.seed, searched)
