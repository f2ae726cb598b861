"""publish_files(): a table that lies in files of any size, released out of core. The whole folder stands there, or nothing.

    count -> method on counted tuples -> join and write -> count what was written -> facts -> put in place

Everything a run writes on its way lies in one private folder beside the target, which the next run removes if this one is
killed; the release stands under its name only after the written bytes were counted and every promise held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import polars as pl

from velado.data.blanks import is_text
from velado.data.formulas import formula_cells
from velado.data.io import read_schema
from velado.data.keys import OWNER_FILE, Key, owner_key
from velado.data.release_folder import PublishedFolder
from velado.data.schema import Schema
from velado.data.staging import PRIVATE, PUBLIC, StagedFolder, file_digest, staged_folder
from velado.data.table import Undeclared
from velado.engines.duckdb_source import DuckDBSource
from velado.engines.open_source import READERS, Reader, local_files, open_source
from velado.engines.places import CSV
from velado.engines.postgres_source import new_table, open_table
from velado.engines.postgres_source import within as table_within
from velado.engines.row_source import ROWS, FileSink, Recoding, RowSource, as_read
from velado.engines.spark_files import SparkFiles
from velado.errors import OutputError, ParameterError
from velado.release import DEFAULT_METHOD
from velado.release.asked_goal import goal_of
from velado.release.goal import Progress, default_k, silent, within
from velado.release.methods._method import Method
from velado.release.run_settings import Guarantees, Plan, run_settings
from velado.release.sources.source_release import counts_people, plan_release, prepare_source
from velado.release.sources.source_written import SourceRelease, check_written
from velado.report.blocks import Page
from velado.report.engine_facts import EngineFacts, StepTime
from velado.report.engine_page import engine_page, engine_public_page
from velado.report.evidence.engine_figures import engine_figures
from velado.report.facts import OutputFacts, SourceFacts
from velado.report.manifest import engine_manifest, manifest_json
from velado.report.render import as_values, render_html, render_markdown, to_json
from velado.settings import Where, made
from velado.study.recipe import Format, Per, Recipe, RecipeInput, Report, without_folders
from velado.text import Language, say, say_n, speaking


@dataclass(frozen=True, kw_only=True, repr=False)
class EnginePublished(PublishedFolder):
    """A release that an engine wrote to *folder*, all that is known of it, and the *page* its reports were rendered from.

    >>> from velado.testing.examples import small_lake
    >>> small_lake()
    EnginePublished(SourceRelease(8 rows by mondrian; k-anonymity: needs 2 rows, the weakest group has 2; holds.) in 'out')
    """

    facts: EngineFacts
    page: Page

    @property
    def release(self) -> SourceRelease:
        """The release itself."""
        return self.facts.release

    def __repr__(self) -> str:
        return f"EnginePublished({self.release!r} in '{self.folder.name}')"


@dataclass
class StepClock:
    """The steps of a run: each is told as progress when it begins, and how long it took is kept.

    *names* has every step with its usual part of the time of a run, so that the time left can be told; *rows* are those of the
    source, once they are known.

    >>> clock = StepClock(silent, {"reading": 0.4, "writing": 0.6})
    >>> with clock.step():
    ...     pass
    >>> [step.name for step in clock.done]
    ['reading']
    """

    progress: Progress
    names: Mapping[str, float]
    done: list[StepTime] = field(default_factory=list)
    rows: int | None = None

    @contextmanager
    def step(self) -> Iterator[Progress]:
        """The next step, with a progress of its own."""
        at, steps, parts = len(self.done), len(self.names), list(self.names.values())
        name = list(self.names)[at]

        def told(share: float, doing: str = "") -> None:
            parted = {"at": at + 1, "steps": steps, "name": doing or name}
            what = say("step {at} of {steps}: {name}", **parted)
            if self.rows is not None:
                what = say("step {at} of {steps}, {rows:,} rows: {name}", **parted, rows=self.rows)
            self.progress((sum(parts[:at]) + parts[at] * min(max(share, 0.0), 1.0)) / sum(parts), what)

        told(0.0)
        begun = time.perf_counter()
        yield told
        self.done.append(StepTime(name, time.perf_counter() - begun))


# With its usual part of the time: of a run on 2 million rows and 8 columns.
STEPS: dict[str, float] = {
    say("counting the rows"): 0.25,
    say("choosing groups"): 0.2,
    say("writing the recoded rows"): 0.35,
    say("counting what was written"): 0.15,
    say("writing the report"): 0.05,
}


def publish_files(
    place: str | Path,
    schema: Schema | str | Path,
    method: Method | type[Method] | str = DEFAULT_METHOD,
    guarantees: Guarantees = (),
    *,
    out: str | Path,
    k: int | None = None,
    suppression: float = 0.0,
    seed: int = 0,
    per: Per | None = None,
    undeclared: Undeclared = "refuse",
    format: Format | None = None,
    formulas: str = "keep",
    force: bool = False,
    language: Language = "en",
    reports: Sequence[Report] = ("html",),
    key: Key | str | Path | None = None,
    engine: Reader = "duckdb",
    memory: str | None = None,
    plan: Plan = "auto",
    table: str | None = None,
    progress: Progress = silent,
) -> EnginePublished:
    """The release of the table in the files of *place* stands in folder *out*, or an error is raised.

    *place* is a file, a folder or a pattern of CSV or Parquet files that are one table, a DuckDB or SQLite file with a *table*, or an
    s3:// address of Parquet files, or a postgresql:// address with a *table* that DuckDB's own extension copies (`publish_table` leaves the
    rows where they are); *engine* reads it, holding at most *memory* (e.g. "3GB"); *plan* says how it is
    grouped. The table is written in *format*, by default that of the files. Everything else is as for `publish`;
    what an engine cannot do yet is refused.

    >>> from velado.testing.examples import small_lake
    >>> small_lake().release.plan.rows
    8
    """
    place = str(place)
    paths = local_files(place)
    given = {
        "schema": schema,
        "method": method,
        "guarantees": guarantees,
        "seed": seed,
        "k": k,
        "suppression": suppression,
        "per": per,
        "format": format or ("csv" if paths and paths[0].suffix.lower() in CSV else "parquet"),
        "formulas": formulas,
        "language": language,
        "undeclared": undeclared,
        "reports": reports,
    }
    return run_on_files(
        _recipe(given),
        place,
        Path(out),
        reads=[*paths, *files_of(schema, key)],
        force=force,
        key=key,
        engine=engine,
        memory=memory,
        plan=plan,
        table=table,
        progress=progress,
    )


def run_on_files(
    recipe: Recipe,
    place: str,
    out: Path,
    *,
    reads: Sequence[Path],
    force: bool,
    key: Key | str | Path | None,
    engine: Reader,
    memory: str | None,
    plan: Plan,
    table: str | None,
    progress: Progress,
) -> EnginePublished:
    """The run of *recipe* on the files of *place*, or the error of what no engine can do yet; *reads* are files that stay as they are.

    >>> run_on_files.__name__
    'run_on_files'
    """
    _refuse_undone(recipe)
    asked = run_settings(plan=plan, engine=engine)
    plan, engine = asked.plan, asked.engine
    owner = owner_key(key)
    clock = StepClock(progress, STEPS)
    file = f"table.{recipe.format}"
    with staged_folder(out, force, reads) as staged:
        source = open_source(
            place, recipe.schema, staged.scratch, table=table, engine=engine, memory=memory, attach=True
        )

        def write(recoding: Recoding) -> RowSource:
            path = staged.file(f"{PUBLIC}/{file}")
            source.write(recoding, FileSink(path, recipe.format))
            source.unchanged()
            meaning = replace(recipe.schema, encoding="utf-8")
            return READERS[engine](path, meaning, staged.scratch, memory=memory)

        def known(written: RowSource) -> OutputFacts:
            digest = file_digest(staged.file(f"{PUBLIC}/{file}"))
            written.close()
            return OutputFacts(file=file, sha256=digest)

        try:
            facts, page = _release(recipe, source, owner, staged, clock, (write, known), plan)
        finally:
            source.close()
    progress(1.0, say("done"))
    return EnginePublished(facts=facts, page=page, folder=out.absolute())


def publish_table(
    url: str,
    table: str,
    schema: Schema | str | Path,
    method: Method | type[Method] | str = DEFAULT_METHOD,
    guarantees: Guarantees = (),
    *,
    to_table: str,
    to: str | None = None,
    out: str | Path,
    k: int | None = None,
    suppression: float = 0.0,
    seed: int = 0,
    per: Per | None = None,
    undeclared: Undeclared = "refuse",
    force: bool = False,
    language: Language = "en",
    reports: Sequence[Report] = ("html",),
    key: Key | str | Path | None = None,
    memory: str | None = None,
    plan: Plan = "auto",
    progress: Progress = silent,
) -> EnginePublished:
    """The release of *table* on the PostgreSQL server of *url* stands in *to_table* on that of *to*, or an error is raised.

    Without *to* both are on one server. The table is made in one transaction, which ends only after its rows were counted and
    every promise held; manifest, pages, recipe and key stand in folder *out*. Of what the server answers at most about *memory*
    (e.g. "3GB") is held here: by *plan* "auto" a table with more distinct tuples is cut first, there. What an address leaves out comes from
    the environment or a service file, and neither the address nor what it holds is ever written or shown.

    >>> publish_table("postgresql://127.0.0.1:1/x", "stays", Schema({}), to_table="k5", out="o")
    Traceback (most recent call last):
    velado.errors.EngineError: The PostgreSQL server could not be reached. The address, name or password is wrong, or the server is not running. Check the URL and try again; it is not repeated here because it may hold a password.
    """
    given = {
        "schema": schema,
        "method": method,
        "guarantees": guarantees,
        "seed": seed,
        "k": k,
        "suppression": suppression,
        "per": per,
        "language": language,
        "undeclared": undeclared,
        "reports": reports,
    }
    return run_on_table(
        _recipe(given),
        url,
        table,
        Path(out),
        to=to,
        to_table=to_table,
        reads=files_of(schema, key),
        force=force,
        key=key,
        memory=memory,
        plan=plan,
        progress=progress,
    )


def run_on_table(
    recipe: Recipe,
    url: str,
    table: str,
    out: Path,
    *,
    to: str | None,
    to_table: str,
    reads: Sequence[Path],
    force: bool,
    key: Key | str | Path | None,
    memory: str | None,
    plan: Plan,
    progress: Progress,
) -> EnginePublished:
    """The run of *recipe* on *table* of a server, or the error of what no engine can do yet; *reads* are files that stay as they are.

    >>> run_on_table.__name__
    'run_on_table'
    """
    _refuse_undone(recipe)
    plan = run_settings(plan=plan).plan
    clock = StepClock(progress, STEPS)
    source = as_read(open_table(url, table, memory=memory), recipe.schema)
    try:
        with (
            staged_folder(out, force, reads) as staged,
            new_table(to or url, to_table, force, source) as sink,
        ):

            def write(recoding: Recoding) -> RowSource:
                source.write(recoding, sink)
                return table_within(sink.connection, to_table)

            def known(written: RowSource) -> OutputFacts:
                return OutputFacts(file=to_table, sha256=written.fingerprint().hex())

            facts, page = _release(recipe, source, owner_key(key), staged, clock, (write, known), plan)
    finally:
        source.close()
    progress(1.0, say("done"))
    return EnginePublished(facts=facts, page=page, folder=out.absolute())


def files_of(*given: object) -> list[Path]:
    """Those of the arguments that are files.

    >>> [path.name for path in files_of("schema.toml", None)]
    ['schema.toml']
    """
    return [Path(one) for one in given if isinstance(one, str | Path)]


def _recipe(given: Mapping[str, object]) -> Recipe:
    """The settings of a run, checked as those in memory are."""
    schema = given["schema"]
    if isinstance(schema, str | Path):
        given = {**given, "schema": read_schema(schema)}
    recipe = made(Recipe, given, Where("python"))
    return with_k(recipe)


def with_k(recipe: Recipe) -> Recipe:
    """The recipe with the k that its method and promises take where none was named.

    >>> from velado.release.methods import Mondrian
    >>> with_k(Recipe(Schema({}), Mondrian())).k
    5
    """
    if recipe.k is not None:
        return recipe
    return replace(recipe, k=default_k(recipe.method.promise, recipe.guarantees))


def _refuse_undone(recipe: Recipe) -> None:
    """Nothing, unless the recipe asks for what no engine can do yet."""
    if recipe.formulas == "escape":
        raise ParameterError(
            "An engine cannot escape cells that begin like a formula yet.",
            "They would be published as they are.",
            "Use --formulas keep (they are counted) or refuse, or --engine memory.",
        )
    at_hand = {
        "keep_order": recipe.keep_order,
        "improve": recipe.improve,
        "blind": recipe.blind,
        "bound": recipe.bound == "tight",
        "operations": bool(recipe.operations),
        "together": recipe.together.what is not None,
    }
    for name, asked in at_hand.items():
        if asked:
            raise ParameterError(
                say("The recipe's `{name}` cannot be done with an engine yet.", name=name),
                "It needs every row at hand.",
                "Apply it with --engine memory to files, or take the setting out of the recipe.",
            )


_Writing = tuple[Callable[[Recoding], RowSource], Callable[[RowSource], OutputFacts]]
"""How a recoded table is written and opened again, and what it is known by there, once it was counted."""


def _release(
    recipe: Recipe,
    source: RowSource,
    key: Key,
    staged: StagedFolder,
    clock: StepClock,
    writing: _Writing,
    how: Plan,
) -> tuple[EngineFacts, Page]:
    write, known = writing
    clock.rows = source.rows
    with clock.step() as progress:
        goal = goal_of(
            recipe.schema, recipe.per, recipe.method, recipe.k, recipe.guarantees, recipe.suppression
        )
        prepared = prepare_source(
            source,
            recipe.schema,
            per=recipe.per,
            undeclared=recipe.undeclared,
            values=goal.reads_sensitive,
            people=counts_people(goal),
            method=recipe.method,
            plan=how,
            progress=within(progress, 0.0, 0.9),
        )
        content = source.fingerprint()
    with clock.step() as progress:
        plan = plan_release(
            prepared,
            recipe.method,
            k=recipe.k,
            guarantees=recipe.guarantees,
            suppression=recipe.suppression,
            seed=recipe.seed,
            progress=progress,
        )
    with clock.step() as progress, _watched(source, plan.rows, progress):
        written = write(plan.recoding(key, content))
    with clock.step():
        release = check_written(plan, written, values=True)
        cells = written.formulas() if isinstance(written, SparkFiles) else count_formula_cells(written)
        output = replace(known(written), formulas=cells)
    if cells and recipe.formulas == "refuse":
        raise OutputError(
            say_n(
                "{n:,} cell or column name begins like a spreadsheet formula.",
                "{n:,} cells or column names begin like a spreadsheet formula.",
                cells,
            ),
            "A spreadsheet program would run them when the file is opened.",
            "Allow them with --formulas keep, or correct them.",
        )
    with clock.step():
        digest = key.digest(content)
        facts = EngineFacts(
            release=release,
            source=SourceFacts(
                name=source.name,
                keyed_sha256=digest,
                key=key.fingerprint,
                rows=source.rows,
                columns=tuple(source.types.names),
            ),
            output=output,
            steps=tuple(clock.done),
        )
        recipe = replace(
            recipe,
            schema=without_folders(recipe.schema),
            input=RecipeInput(name=source.name, digest=digest, key=key.fingerprint),
        )
        files, page = report_files(facts, recipe, key)
        staged.put(files)
    return facts, page


@contextmanager
def _watched(source: RowSource, rows: int, progress: Progress) -> Iterator[None]:
    """How many of *rows* are written is told, where the engine can tell."""

    def told(share: float) -> None:
        progress(share, say("writing row {row:,}", row=int(share * rows)))

    with source.watched(told) if isinstance(source, DuckDBSource) else nullcontext():
        yield


def report_files(facts: EngineFacts, recipe: Recipe, key: Key) -> tuple[dict[str, bytes], Page]:
    """The files of a release beside its table, by name, and the page the reports are rendered from.

    >>> from velado.testing.examples import small_lake
    >>> report_files.__name__, small_lake().page.title
    ('report_files', 'Release report')
    """
    files = {
        f"{PUBLIC}/manifest.json": manifest_json(engine_manifest(facts, key)),
        f"{PRIVATE}/recipe.toml": recipe.to_toml().encode(),
        f"{PRIVATE}/{OWNER_FILE}": key.secret + b"\n",
    }
    with speaking("en"):
        files[f"{PRIVATE}/measured.json"] = to_json(engine_figures(facts, recipe.doors)).encode()
    with speaking(recipe.language):
        page = engine_page(facts)
        files[f"{PUBLIC}/about.html"] = render_html(engine_public_page(facts)).encode()
        for kind in recipe.reports:
            files[f"{PRIVATE}/report.{kind}"] = _rendered(kind, facts, page, recipe.language).encode()
    return files, page


def _rendered(kind: Report, facts: EngineFacts, page: Page, language: Language) -> str:
    if kind == "html":
        return render_html(page)
    if kind == "md":
        return render_markdown(page)
    with speaking("en"):
        told = as_values(facts.facts())
    return to_json({"language": language, "facts": told, "report": page})


def count_formula_cells(written: RowSource) -> int:
    """How many text cells and names of a written table a spreadsheet program would run as a formula.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> count_formula_cells(of_arrow(pa.table({"note": ["=1+1", "=1+1", "-5"]})))
    2
    """
    names = pl.Series(written.types.names, dtype=pl.String)
    cells = int(formula_cells(names).sum())
    for name in written.types.names:
        if is_text(written.types.field(name).type):
            found = cast(pl.DataFrame, pl.from_arrow(written.domain(name)))
            risky = formula_cells(found.get_column("value").cast(pl.String))
            cells += int(found.get_column(ROWS).filter(risky).sum())
    return cells
