"""`velado anonymize`: publish a table that keeps a promise."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show, summary
from velado.apps.cli.options import (
    DEFAULT_METHOD,
    META,
    GuaranteeFlag,
    LDiversityFlag,
    PopulationFlag,
    TClosenessFlag,
    asked_for,
    by_person,
)
from velado.apps.cli.show import waiting
from velado.apps.cli.words import say
from velado.errors import SchemaError
from velado.text import Language
from velado.text import say as say_sentence


def anonymize(
    ctx: typer.Context,
    file: flags.File,
    schema: flags.SchemaFile = None,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help="See `velado methods`.")
    ] = DEFAULT_METHOD,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--k",
            help="k-anonymity: rows or people that share the quasi-identifiers.",
            show_default="5",
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
    output: flags.Output = Path("out"),
    accept_inferred: flags.AcceptInferred = False,
    key: flags.KeyFlag = None,
    keep_order: flags.KeepOrder = False,
    per: flags.Per = None,
    undeclared: flags.Undeclared = "refuse",
    round_intervals: flags.RoundIntervals = None,
    encoding: flags.Encoding = None,
    format: flags.Format = "csv",
    formulas: flags.Formulas = "keep",
    report: flags.Reports = "html",
    force: flags.Force = False,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Publish a table that keeps a promise.

    DIR/release may leave: the table, its manifest, a short page. DIR/private stays: report, recipe, key. The method's own parameters are flags too: `velado methods NAME` lists them. Without --schema a proposal is
    written and shown, and nothing is published until you have read it.
    """
    tongue = flags.language(lang)
    settings: dict[str, Any] = {
        "suppression": suppression,
        "seed": seed,
        "per": None if per is None else flags.one_of(per, flags.PER, "--per"),
        "undeclared": flags.one_of(undeclared, flags.UNDECLARED, "--undeclared"),
        "format": flags.one_of(format, flags.FORMATS, "--format"),
        "formulas": flags.one_of(formulas, flags.FORMULAS, "--formulas"),
        "reports": flags.several_of(report, flags.REPORTS, "--report"),
        "population": population,
        "force": force,
        "language": tongue,
        "key": key,
        "keep_order": keep_order,
    }
    refuse_existing(output, force, file, schema, population, key)
    if schema is None and not accept_inferred:
        propose(file, encoding, tongue, quiet or as_json)
    with waiting(tongue, quiet or as_json) as progress:
        from velado.data.rounding import with_rounding
        from velado.release.methods import method_named
        from velado.study.run import publish

        chosen = method_named(method)
        source: Any = file
        inspection = None
        if schema is None:
            source, inspection, settings["beside"] = inferred(file, encoding)
            meaning = inspection.schema
        else:
            from velado.data.io import read_schema

            meaning = read_schema(schema)
            settings["schema_folder"] = schema.parent
        if encoding is not None:
            meaning = replace(meaning, encoding=encoding)
        meaning = with_rounding(meaning, flags.rounding_steps(round_intervals))
        published = publish(
            source,
            meaning,
            chosen(**ctx.meta.get(META, {})),
            asked_for(l_diversity, t_closeness, guarantee, by_person(per, meaning)),
            k=k,
            out=output,
            progress=progress,
            **settings,
        )
    if inspection is not None and not as_json and not quiet:
        show.line(say(tongue, "roles_inferred", path=published.private / "schema.toml"))
        summary.roles(inspection, tongue)
    summary.published(published, tongue, as_json, quiet)


def propose(file: Path, encoding: str | None, tongue: Language, quiet: bool) -> NoReturn:
    """The proposed schema stands beside the run and was shown; publishing waits for a decision."""
    from velado.data.staging import write_file

    path = Path(f"{file.name.split('.')[0]}.schema.toml")
    if path.exists():
        raise SchemaError(
            say_sentence("No schema was given, and '{path}' exists already.", path=path),
            "Roles decide what is published, so a person must have read them.",
            say_sentence("If you have read it, run the command again with --schema {path}.", path=path),
        )
    with waiting(tongue, quiet):
        _, inspection, files = inferred(file, encoding)
        write_file(path, files["schema.toml"])
    if not quiet:
        summary.roles(inspection, tongue)
        summary.exposure(inspection, tongue)
    raise SchemaError(
        say_sentence(
            "No schema was given: a proposal was written to '{path}', and nothing was published.", path=path
        ),
        "Roles decide what is published; what was inferred may be wrong.",
        say_sentence(
            "Read and correct it, then run the command again with --schema {path} (or take it unseen: "
            "--accept-inferred).",
            path=path,
        ),
    )


def refuse_existing(folder: Path, force: bool, *reads: Path | None) -> None:
    """An output folder that may not be written is refused before the work, not after it.

    *reads* are the files of this run: a folder that holds one of them is not replaced.
    """
    if not os.path.exists(folder):
        return
    from velado.data.staging import refuse_folder

    refuse_folder(folder, force, [path for path in reads if path is not None])


def inferred(file: Path, encoding: str | None) -> tuple[Any, Any, dict[str, bytes]]:
    """The table, what was inferred of it, and the schema file to put beside the release."""
    from velado.data.inspect import inspect, schema_toml
    from velado.data.io import read_table

    table = read_table(file, encoding=encoding)
    inspection = inspect(table)
    if encoding is not None:
        inspection = replace(inspection, schema=replace(inspection.schema, encoding=encoding))
    return table, inspection, {"schema.toml": schema_toml(inspection).encode()}
