"""`velado evaluate`: methods, k and models side by side on the user's own table, to decide from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.show import kernels_are_cold, waiting
from velado.apps.cli.words import number
from velado.apps.cli.words_evaluate import say
from velado.errors import GuaranteeNotMet

if TYPE_CHECKING:
    from velado.study.evaluate.analysis import Study


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
    tongue = flags.language(lang)
    with waiting(tongue, quiet or as_json) as progress:
        from velado.study.evaluate.load import load
        from velado.study.evaluate.study_run import Plan, make_plan
        from velado.study.evaluate.study_run import evaluate as run

        def planned(made: Plan) -> None:
            if made.damaged and not quiet:
                typer.echo(say(tongue, "evaluate_damaged", count=number(made.damaged, tongue)), err=True)

        material = load(study)
        if dry_run:
            plan = make_plan(material, output, jobs).to_dict()
        else:
            try:
                found = run(
                    material,
                    output,
                    jobs=jobs,
                    language=tongue,  # type: ignore[arg-type]
                    progress=progress,
                    planned=planned,
                )
            except KeyboardInterrupt:
                typer.echo(say(tongue, "evaluate_interrupted"), err=True)
                raise
    if dry_run:
        _show_plan(plan, tongue, as_json, quiet)
        return
    if as_json:
        show.as_json(found.to_dict(tongue))  # type: ignore[arg-type]
    elif not quiet:
        _show(found, output, tongue)
    if not found.any_release:
        raise typer.Exit(GuaranteeNotMet.exit_code)


def _show_plan(plan: dict[str, Any], tongue: str, as_json: bool, quiet: bool) -> None:
    if as_json:
        show.as_json(plan)
        return
    if quiet:
        return
    # Runs across clients have a column where the study has any.
    counts = ("releases", *(("federated",) if plan["federated_runs"] else ()), "cells")
    rows = [(name, *(entry[count] for count in counts)) for name, entry in plan["methods"].items()]
    head = [say(tongue, f"evaluate_{key}") for key in ("method", *counts)]
    show.table(say(tongue, "evaluate_grid"), head, rows)
    show.line(
        say(
            tongue,
            "evaluate_cost",
            cells=number(plan["cells"], tongue),
            missing=number(plan["missing"], tongue),
            workers=plan["workers"],
            minutes=number(plan["estimated_seconds"] / 60, tongue, 1),
        )
    )
    if plan["damaged"]:
        show.line(say(tongue, "evaluate_damaged", count=number(plan["damaged"], tongue)))
    if plan["missing"] and kernels_are_cold():
        show.line(say(tongue, "evaluate_cold"))


def _show(study: Study, output: Path, tongue: str) -> None:
    from velado.study.evaluate.advice import setting_text
    from velado.study.evaluate.amounts import bare, in_points
    from velado.study.evaluate.study_run import RESULTS
    from velado.study.evaluate.study_words import loss_text, percent, quality_name
    from velado.study.evaluate.study_words import say as tell

    found = study.to_dict(tongue)  # type: ignore[arg-type]
    metrics, main = found["recipe"]["metrics"], found["main_quality"]
    rows = [
        (
            setting_text(row, tongue),
            loss_text(row["loss"], metrics["loss"], tongue),
            percent(row["risk"], tongue),
            bare(main, row["drop"], tongue),
        )
        for row in found["tradeoff"]
    ]
    head = [
        say(tongue, "evaluate_setting"),
        say(tongue, "evaluate_loss", name=tell(tongue, f"name_{metrics['loss']}")),
        say(tongue, "evaluate_risk", name=tell(tongue, f"name_{metrics['risk']}")),
        say(
            tongue,
            "evaluate_drop" if in_points(main) else "evaluate_drop_plain",
            name=quality_name(main, tongue),
        ),
    ]
    show.table("", head, rows)
    for sentence in found["recommendation"]["sentences"]:
        show.line(sentence)
    files = [name for name in RESULTS if (output / name).exists()]
    show.line(say(tongue, "evaluate_written", folder=output, files=", ".join(files)))
    if "study.html" in files:
        show.line(say(tongue, "evaluate_page", page=output / "study.html"))
