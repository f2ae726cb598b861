"""`velado evaluate`: methods, k and models side by side on the user's own table, to decide from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.show import kernels_are_cold, waiting
from velado.errors import GuaranteeNotMet
from velado.text import Language, say, speaking, told

if TYPE_CHECKING:
    from velado.study.evaluate.study_outcome import Study
    from velado.study.evaluate.study_run import StudyPlan


def evaluate(
    study: Annotated[Path, typer.Argument(metavar="STUDY", show_default=False)],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder of the study; what it holds is not computed again."
        ),
    ] = Path("study"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the grid and what it may cost; compute nothing.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", help="Processes side by side.", show_default="all cores"),
    ] = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Compare methods, k and models on a table.

    The study file names the table, methods, k, models and metrics. An interrupted study goes on where it was left:
    run the same command again.
    """
    tongue: Language = "pt" if flags.language(lang) == "pt" else "en"
    with waiting(tongue, quiet or as_json) as progress:
        from velado.study.evaluate.load import load
        from velado.study.evaluate.study_run import evaluate as run
        from velado.study.evaluate.study_run import make_plan

        def planned(made: StudyPlan) -> None:
            if made.damaged and not quiet:
                typer.echo(told(_damaged(made), tongue), err=True)

        material = load(study)
        if dry_run:
            plan = make_plan(material, output, jobs)
        else:
            try:
                found = run(material, output, jobs=jobs, language=tongue, progress=progress, planned=planned)
            except KeyboardInterrupt:
                kept = say("Interrupted: finished cells are kept, and the same command goes on from there.")
                typer.echo(told(kept, tongue), err=True)
                raise
    with speaking(tongue):
        if dry_run:
            _show_plan(plan, as_json, quiet)
            return
        if as_json:
            show.as_json(found.facts().to_dict(tongue))
        elif not quiet:
            _show(found, output)
    if not found.any_release:
        raise typer.Exit(GuaranteeNotMet.exit_code)


def _damaged(plan: StudyPlan) -> str:
    return say(
        "{count:,} stored cell(s) were damaged on the disk; they do not count and are computed again.",
        count=plan.damaged,
    )


def _show_plan(plan: StudyPlan, as_json: bool, quiet: bool) -> None:
    if as_json:
        show.as_json(plan.facts())
        return
    if quiet:
        return
    # Runs across clients have a column where the study has any.
    across = any(one.federated for one in plan.methods.values())
    heads = {
        "releases": say("releases"),
        **({"federated": say("runs across clients")} if across else {}),
        "cells": say("cells"),
    }
    rows = [(name, *(getattr(one, count) for count in heads)) for name, one in plan.methods.items()]
    show.table(told(say("The grid")), [told(one) for one in (say("method"), *heads.values())], rows)
    said: list[str] = [
        say(
            "{cells:,} cells, {missing:,} to compute: about {minutes:,.1f} min on {workers} process(es), roughly.",
            cells=plan.cells,
            missing=plan.missing,
            workers=plan.workers,
            minutes=plan.seconds / 60,
        )
    ]
    if plan.damaged:
        said.append(_damaged(plan))
    if plan.missing and kernels_are_cold():
        said.append(say("The first run also compiles its kernels once, which may take a minute more."))
    for sentence in said:
        show.line(told(sentence))


def _show(study: Study, output: Path) -> None:
    from velado.study.evaluate.page import tradeoff_table
    from velado.study.evaluate.study_run import RESULTS

    facts = study.facts()
    table = tradeoff_table(facts)
    show.table(
        "", [told(head) for head in table.header], [[told(cell) for cell in row] for row in table.rows]
    )
    files = [name for name in RESULTS if (output / name).exists()]
    for sentence in (
        *facts.recommendation.sentences,
        say("Written in {folder}: {files}", folder=output, files=", ".join(files)),
        say("The page to decide from, for a browser: {page}", page=output / "study.html"),
    ):
        show.line(told(sentence))
