"""`velado evaluate`: methods, k and models side by side on the user's own table, to decide from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from velado.apps.cli import show
from velado.apps.cli.app import argument, command, option
from velado.errors import GuaranteeNotMet
from velado.text import language, say, say_n

if TYPE_CHECKING:
    from velado.report.blocks import Table
    from velado.study.evaluate.study_outcome import Study
    from velado.study.evaluate.study_run import StudyPlan


@command("evaluate")
def evaluate(
    study: Annotated[Path, argument("STUDY", help="The study file (TOML).")],
    *,
    output: Annotated[
        Path, option("--output -o DIR", help="Folder of the study; what it holds is not computed again.")
    ] = Path("study"),
    dry_run: Annotated[
        bool, option("--dry-run", help="Show the grid and what it may cost; compute nothing.")
    ] = False,
    jobs: Annotated[
        int | None, option("--jobs N", help="Processes side by side.", show_default="all cores")
    ] = None,
) -> None:
    """Compare methods, k and models on a table.

    The study file names the table, methods, k, models and metrics. An interrupted study goes on where it was left:
    run the same command again.
    """
    with show.waiting() as progress:
        from velado.study.evaluate.load import load
        from velado.study.evaluate.study_run import evaluate as run
        from velado.study.evaluate.study_run import make_plan

        def planned(made: StudyPlan) -> None:
            if made.damaged and not show.manner().quiet:
                show.note(_damaged(made.damaged))

        material = load(study)
        if dry_run:
            plan = make_plan(material, output, jobs)
        else:
            try:
                found = run(
                    material, output, jobs=jobs, language=language(), progress=progress, planned=planned
                )
            except KeyboardInterrupt:
                show.note(
                    say("Interrupted: finished cells are kept, and the same command goes on from there.")
                )
                raise
    if dry_run:
        show.result(plan.facts(), _plan(plan))
        return
    show.result(lambda: found.facts().to_dict(language()), _view(found, output))
    if not found.any_release:
        raise typer.Exit(GuaranteeNotMet.exit_code)


def _damaged(count: int) -> str:
    return say_n(
        "{n:,} stored cell was damaged on the disk; it does not count and is computed again.",
        "{n:,} stored cells were damaged on the disk; they do not count and are computed again.",
        count,
    )


def _plan(plan: StudyPlan) -> Iterator[str | Table]:
    # Runs across clients have a column where the study has any.
    across = any(one.federated for one in plan.methods.values())
    counts = {
        "releases": say("releases"),
        **({"federated": say("runs across clients")} if across else {}),
        "cells": say("cells"),
    }
    yield show.table(
        say("The grid"),
        [say("method"), *counts.values()],
        [[name, *(getattr(one, count) for count in counts)] for name, one in plan.methods.items()],
    )
    yield say_n(
        "{cells:,} cells, {missing:,} to compute: about {minutes:,.1f} min on {n} process, roughly.",
        "{cells:,} cells, {missing:,} to compute: about {minutes:,.1f} min on {n} processes, roughly.",
        plan.workers,
        cells=plan.cells,
        missing=plan.missing,
        minutes=plan.seconds / 60,
    )
    if plan.damaged:
        yield _damaged(plan.damaged)
    if plan.missing and show.kernels_are_cold():
        yield say("The first run also compiles its kernels once, which may take a minute more.")


def _view(study: Study, output: Path) -> Iterator[str | Table]:
    from velado.study.evaluate.page import tradeoff_table
    from velado.study.evaluate.study_run import RESULTS

    facts = study.facts()
    yield tradeoff_table(facts)
    yield from facts.recommendation.sentences
    files = [name for name in RESULTS if (output / name).exists()]
    yield say("Written in {folder}: {files}", folder=output, files=", ".join(files))
    if "study.html" in files:
        yield say("The page to decide from, for a browser: {page}", page=output / "study.html")
