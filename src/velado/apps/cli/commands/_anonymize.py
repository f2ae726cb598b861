"""`velado anonymize`: publish a table that keeps a promise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from velado.apps.cli import history_flags, show
from velado.apps.cli import options as flags
from velado.apps.cli.app import OfSetting, OneOf, command, option
from velado.apps.cli.commands._inspect import inferred
from velado.apps.cli.commands._presets import preset_named
from velado.apps.cli.engine_flags import EngineFlags, in_memory, is_lake
from velado.apps.cli.first_kernel import load_first_kernel
from velado.apps.cli.options import META, CommandWithMethodFlags, by_person
from velado.engines.places import SERVERS
from velado.errors import SchemaError
from velado.release import DEFAULT_METHOD
from velado.text import language, say

if TYPE_CHECKING:
    import polars as pl

    from velado.data.schema import Schema
    from velado.data.table import Table
    from velado.release.methods._method import Method
    from velado.release.operations._operation import Operation
    from velado.study.engine_run import EnginePublished
    from velado.study.run import Published


@command("anonymize", cls=CommandWithMethodFlags)
def anonymize(
    ctx: typer.Context,
    file: flags.Source,
    *,
    schema: flags.MaybeSchema = None,
    method: flags.MethodName = DEFAULT_METHOD,
    k: Annotated[
        int | None,
        option(
            "-k --k",
            click_type=flags.CROWD,
            help="k-anonymity: rows or people that share the quasi-identifiers.",
            show_default="5",
        ),
    ] = None,
    promises: flags.PromiseFlags,
    preset: Annotated[
        str | None,
        option(
            "--preset NAME", help="Promise and operations by what the table is for; see `velado presets`."
        ),
    ] = None,
    suppression: flags.Suppression = 0.0,
    seed: flags.Seed = 0,
    folder: flags.FolderFlags,
    engine: EngineFlags,
    accept_inferred: Annotated[
        bool, option("--accept-inferred", help="Without --schema: publish with the inferred roles, unseen.")
    ] = False,
    keep_order: flags.KeepOrder = False,
    improve: flags.Improve = False,
    blind: flags.Blind = False,
    bound: Annotated[
        Literal["off", "fast", "tight"],
        option(
            "--bound",
            click_type=OfSetting(f"{flags.RUN}.bound", "off|fast|tight"),
            help="How long to look for the least loss that is possible; tight takes seconds, on small tables.",
        ),
    ] = "fast",
    per: flags.Per = None,
    undeclared: flags.Undeclared = "refuse",
    reading: flags.ReadingFlags,
    round_intervals: Annotated[
        str | None,
        option(
            "--round-intervals COLUMN=STEP,...",
            help="Publish interval ends of these columns as multiples of a step, e.g. age=5,weight=10.",
        ),
    ] = None,
    format: Annotated[
        Literal["csv", "parquet"] | None,
        option(
            "--format",
            click_type=OneOf("csv", "parquet"),
            help="File format of the published table; by default csv, or that of the files an engine reads.",
        ),
    ] = None,
    formulas: flags.Formulas = "keep",
    report: Annotated[
        str, option("--report LIST", help="Report formats, comma-separated: html, md, json.")
    ] = "html",
    history: history_flags.History = None,
    over_time: history_flags.TogetherFlags,
) -> None:
    """Publish a table that keeps a promise.

    DIR/release may leave: the table, its manifest, a short page. DIR/private stays: report, recipe, key. The method's own parameters are flags too: `velado methods NAME` lists them. Without --schema a proposal is
    written and shown, and nothing is published until you have read it.
    """
    reports = flags.several_of(report, flags.REPORTS, "--report")
    served = engine.serves(file)
    elsewhere = served or engine.scans(file)
    engine.refuse_plan(elsewhere)
    no_one_file = served or is_lake(file) or file.startswith(SERVERS)
    folder.refuse(None if no_one_file else Path(file), schema, promises.population)
    if schema is None and (elsewhere or is_lake(file)):
        raise _no_schema()
    if schema is None and not accept_inferred:
        propose(Path(file), reading)
    if schema is not None and elsewhere:
        engine.refuse(
            [
                ("--keep-order", keep_order),
                ("--preset", preset is not None),
                ("--population", promises.population is not None),
                ("--bound tight", bound == "tight"),
                ("--improve", improve),
                ("--blind", blind),
                ("--history", history is not None),
                ("--together", over_time.together is not None),
                ("--sheet", reading.sheet is not None),
                ("--format", served and format is not None),
                ("--formulas", served and formulas != "keep"),
            ],
            file,
        )
        with show.waiting() as progress:
            from velado.study.engine_run import publish_files, publish_table

            meaning = _meaning(schema, reading, round_intervals)
            done = (
                publish_table(
                    file,
                    engine.table or "",
                    meaning,
                    _method(method)(**ctx.meta.get(META, {})),
                    promises.guarantees(by_person(per, meaning)),
                    to=engine.to,
                    to_table=engine.to_table or "",
                    out=folder.output,
                    k=k,
                    suppression=suppression,
                    seed=seed,
                    per=per,
                    undeclared=undeclared,
                    force=folder.force,
                    language=language(),
                    reports=reports,
                    key=folder.key,
                    memory=engine.memory,
                    plan=engine.plan,
                    progress=progress,
                )
                if served
                else publish_files(
                    file,
                    meaning,
                    _method(method)(**ctx.meta.get(META, {})),
                    promises.guarantees(by_person(per, meaning)),
                    k=k,
                    out=folder.output,
                    suppression=suppression,
                    seed=seed,
                    per=per,
                    undeclared=undeclared,
                    format=format,
                    formulas=formulas,
                    force=folder.force,
                    language=language(),
                    reports=reports,
                    key=folder.key,
                    engine=engine.reader,
                    memory=engine.memory,
                    plan=engine.plan,
                    table=engine.table,
                    progress=progress,
                )
            )
        show_engine_published(done)
        return
    with show.waiting() as progress:
        from velado.study.run import publish

        load_first_kernel()
        chosen = _method(method)
        inspection, beside, said = None, dict[str, bytes](), tuple[str, ...]()
        source: Path | Table
        if schema is None:
            source, inspection, beside["schema.toml"] = inferred(Path(file), reading)
            meaning = _rounded(inspection.schema, reading, round_intervals)
        else:
            meaning = _meaning(schema, reading, round_intervals)
            source = in_memory(file, meaning) if is_lake(file) else reading.source(Path(file))
        further = promises.guarantees(by_person(per, meaning))
        operations: tuple[Operation, ...] = ()
        if preset is not None:
            source = _table_of(source, meaning, reading, undeclared)
            plan = preset_named(preset).applied(source)
            meaning, operations = plan.schema, plan.operations
            named = {one.name for one in further}
            further = (*further, *(one for one in plan.guarantees if one.name not in named))
            k, suppression = plan.k if k is None else k, suppression or plan.suppression
            said = plan.said
        published = publish(
            source,
            meaning,
            chosen(**ctx.meta.get(META, {})),
            further,
            k=k,
            out=folder.output,
            operations=operations,
            suppression=suppression,
            seed=seed,
            per=per,
            population=promises.population,
            undeclared=undeclared,
            format=format or "csv",
            formulas=formulas,
            force=folder.force,
            language=language(),
            reports=reports,
            schema_folder=None if schema is None else schema.parent,
            beside=beside,
            key=folder.key,
            keep_order=keep_order,
            improve=improve,
            blind=blind,
            bound=bound,
            history=history,
            together=over_time.asked(),
            progress=progress,
        )
    if inspection is not None and not show.manner().silent:
        from velado.report.terminal import roles

        place = published.private / "schema.toml"
        inferred_roles = say(
            "No schema was given: the roles below were inferred. Review them; they are saved in {path}.",
            path=place,
        )
        show.present([inferred_roles, *roles(inspection)])
    if said and not show.manner().silent:
        show.present(list(said))
    show_published(published)


def _table_of(
    source: Path | Table | pl.DataFrame,
    meaning: Schema,
    reading: flags.ReadingFlags,
    undeclared: Literal["refuse", "drop", "keep"],
) -> Table:
    from velado.data.io import read_table

    if isinstance(source, Path):
        return reading.table(source, meaning, undeclared)
    return read_table(source, meaning, undeclared)


def _method(name: str) -> type[Method]:
    from velado.release.methods import method_named

    return method_named(name)


def _meaning(schema: Path, reading: flags.ReadingFlags, rounding: str | None) -> Schema:
    from velado.data.io import read_schema

    return _rounded(read_schema(schema), reading, rounding)


def _rounded(meaning: Schema, reading: flags.ReadingFlags, rounding: str | None) -> Schema:
    from velado.data.encoded import with_rounding

    if reading.encoding is not None:
        meaning = replace(meaning, encoding=reading.encoding)
    return with_rounding(meaning, flags.rounding_steps(rounding))


def _no_schema() -> SchemaError:
    return SchemaError(
        "No schema was given, and several files or a large one are to be published.",
        "Roles decide what is published, so a person must have read them.",
        "Make a proposal with `velado inspect SOURCE --write schema.toml`, read it, and give it with --schema.",
    )


def propose(file: Path, reading: flags.ReadingFlags) -> NoReturn:
    """The proposed schema stands beside the run and was shown; publishing waits for a decision."""
    from velado.data.staging import write_file

    path = Path(f"{file.name.split('.')[0]}.schema.toml")
    if path.exists():
        raise SchemaError(
            say("No schema was given, and '{path}' exists already.", path=path),
            "Roles decide what is published, so a person must have read them.",
            say("If you have read it, run the command again with --schema {path}.", path=path),
        )
    with show.waiting():
        _, inspection, text = inferred(file, reading)
        write_file(path, text)
    if not show.manner().silent:
        from velado.report.terminal import exposure, roles

        show.present([*roles(inspection), *exposure(inspection)])
    raise SchemaError(
        say("No schema was given: a proposal was written to '{path}', and nothing was published.", path=path),
        "Roles decide what is published; what was inferred may be wrong.",
        say(
            "Read and correct it, then run the command again with --schema {path} (or take it unseen: --accept-inferred).",
            path=path,
        ),
    )


def show_published(done: Published) -> None:
    """A finished release is told: as JSON the manifest and the folder, else in ten lines and its warnings."""
    show.result(lambda: _document(done, metrics=done.scores.to_dict()), _lines(done))


def show_engine_published(done: EnginePublished) -> None:
    """The same of a release that an engine made."""
    show.result(lambda: _document(done, cost=done.release.facts()["cost"]), _engine_lines(done))


def _document(done: Published | EnginePublished, **cost: object) -> dict[str, object]:
    import json

    # The owner sees all that was measured; the manifest, which leaves, has only what the table shows.
    facts = done.release.facts()
    parts = {part.name: sorted(path.name for path in part.iterdir()) for part in (done.public, done.private)}
    return {
        "folder": str(done.folder),
        "files": parts,
        **json.loads((done.public / "manifest.json").read_text("utf-8")),
        "side_doors": facts["promise"]["side_doors"],
        "how": facts["how"],
        **cost,
    }


def _lines(done: Published) -> Iterator[str | show.Note]:
    from velado.report.terminal import ten_lines, warning_lines

    reports = sorted(path.name for path in done.private.glob("report.*"))
    report = "report.html" if "report.html" in reports else (reports[0] if reports else "")
    yield from (show.warning(text) for text in warning_lines(done.facts))
    yield from ten_lines(done.facts, done.public, done.private / report)


def _engine_lines(done: EnginePublished) -> Iterator[str | show.Note]:
    from velado.report.terminal import engine_lines, formula_warnings, minimality_warnings

    known = minimality_warnings(done.release.plan.goal)
    warnings = [*done.facts.warnings, *known, *formula_warnings(done.facts.output.formulas, by_engine=True)]
    yield from (show.warning(text) for text in warnings)
    reports = sorted(path.name for path in done.private.glob("report.*"))
    yield from engine_lines(done.facts, done.public, done.private / (reports[0] if reports else ""))
