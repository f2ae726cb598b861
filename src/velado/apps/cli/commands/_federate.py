"""`velado federate`: one model over locally anonymized rows, simulated here, or made ready for several machines."""

from __future__ import annotations

import shlex
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.show import waiting
from velado.apps.cli.words import number
from velado.apps.cli.words_federate import say
from velado.errors import OutputError, ParameterError, SchemaError
from velado.text import say as say_sentence

if TYPE_CHECKING:
    from velado.learning.flower.agreement import FederationRecipe
    from velado.learning.flower.flower_records import FederatedFit, RoundRecord
    from velado.learning.flower.simulation import Ready

FORMS = ("csv", "parquet")
ENGINES = ("flower", "loop")


def federate(
    recipe: Annotated[Path, typer.Argument(metavar="FEDERATION", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the fit; it must not exist.")
    ] = Path("federated"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Anonymize and show the clients and the terms; train nothing.")
    ] = False,
    machines: Annotated[
        Path | None,
        typer.Option(
            "--machines",
            metavar="DIR",
            help="Write what several machines need, and the commands, instead of simulating.",
            show_default=False,
        ),
    ] = None,
    address: Annotated[
        str, typer.Option("--address", metavar="HOST:PORT", help="With --machines: where the SuperLink is.")
    ] = "localhost:9443",
    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="flower|loop", help="Flower's simulation, or a loop in this process."
        ),
    ] = "flower",
    form: Annotated[
        str, typer.Option("--format", metavar="csv|parquet", help="File format of the rounds.")
    ] = "csv",
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Train one model over rows that each client anonymizes itself.

    The recipe names the table (for a simulation), schema, target, method and the federation's settings. Scores are of true
    rows held out before anything is anonymized.
    """
    tongue = flags.language(lang)
    flags.one_of(engine, ENGINES, "--engine")
    flags.one_of(form, FORMS, "--format")
    if machines is not None:
        _write_machines(recipe, machines, address, tongue, as_json, quiet)
        return
    from velado.learning.flower.agreement import agree, read_recipe

    settings, schema = read_recipe(recipe)
    if settings.data.table is None:
        if not dry_run:
            raise SchemaError(
                "The recipe names no table.",
                "A simulation deals out its rows to the clients.",
                'Add table = "..." to [data], or write what several machines need with --machines DIR.',
            )
        _show_terms(agree(settings, schema).terms, tongue, as_json, quiet)
        return
    if not dry_run:
        _refuse_output(output)
    with waiting(tongue, quiet or as_json) as progress:
        from velado.learning.flower.deployment import require_flower
        from velado.learning.flower.simulation import make_ready, run_ready

        require_flower(engine == "flower", settings.federation.model)
        progress(0.0, say(tongue, "federate_preparing"))
        ready = make_ready(
            recipe.parent / settings.data.table,
            schema,
            settings.anonymization.method,
            settings.federation,
            target=settings.data.target,
            encoding=settings.models,
            seed=settings.anonymization.seed,
            features=settings.data.features,
            guarantees=settings.anonymization.guarantees,
            suppression=settings.anonymization.suppression,
            undeclared=settings.data.undeclared,
        )
        if not dry_run:
            fit = _run(ready, engine, settings, tongue, progress, output, form, run_ready)
    if dry_run:
        _show_ready(ready, tongue, as_json, quiet)
        return
    if as_json:
        show.as_json(fit.to_dict())
    elif not quiet:
        _show_fit(fit, output, tongue)


def _run(
    ready: Ready,
    engine: str,
    settings: FederationRecipe,
    tongue: str,
    progress: Any,
    output: Path,
    form: str,
    run_ready: Any,
) -> FederatedFit:
    """The fit, written; of a run that stopped early what there is of it is written too."""
    from velado.learning.flower.deployment import FederationInterrupted
    from velado.learning.flower.flower_records import FederationStopped
    from velado.learning.flower.outcome import fit_files, write_files

    total, start = settings.federation.rounds, time.monotonic()

    def told(record: RoundRecord) -> None:
        left = (time.monotonic() - start) / record.number * (total - record.number) / 60
        text = say(
            tongue,
            "federate_round",
            round=record.number,
            rounds=total,
            accuracy=_number(record.accuracy, tongue),
            minutes=number(left, tongue, 1),
        )
        progress(record.number / total, text)

    try:
        fit: FederatedFit = run_ready(ready, engine, told)
    except FederationStopped as stopped:
        if stopped.fit is not None:
            write_files(output, fit_files(stopped.fit, tongue, form))
        raise
    except FederationInterrupted as ended:
        done = len(ended.fit.rounds) if ended.fit is not None else 0
        if ended.fit is not None and done:
            write_files(output, fit_files(ended.fit, tongue, form))
        said = "federate_interrupted" if done else "federate_interrupted_early"
        typer.echo(say(tongue, said, rounds=done, total=total, folder=output), err=True)
        raise typer.Exit(ended.exit_code) from None
    write_files(output, fit_files(fit, tongue, form))
    return fit


def _refuse_output(folder: Path) -> None:
    """Nothing, if a fit can be written to *folder*; else an error, before anything is trained."""
    if folder.exists() or folder.is_symlink():
        raise OutputError(
            say_sentence("The output '{folder}' exists already.", folder=folder.name or folder),
            "A fit is written to a folder of its own, so that two are never mixed.",
            "Name another folder with --output, or remove this one first.",
        )
    above = next(part for part in folder.absolute().parents if part.exists())
    try:
        with tempfile.TemporaryDirectory(prefix=".velado-", dir=above):
            pass
    except OSError as error:
        raise OutputError(
            say_sentence(
                "The output folder '{folder}' cannot be made ({strerror}).",
                folder=folder.name,
                strerror=error.strerror or "system error",
            ),
            "The fit would be lost after the training.",
            "Check the path, the permissions and the space left.",
        ) from None


def _write_machines(
    recipe: Path, folder: Path, address: str, tongue: str, as_json: bool, quiet: bool
) -> None:
    from velado.learning.flower.deployment import (
        environment,
        register_command,
        run_command,
        superlink_command,
        supernode_command,
        write_deployment,
    )

    if folder.resolve() == recipe.parent.resolve():
        raise ParameterError(
            "--machines names the folder of the recipe itself.",
            "It would be mixed up.",
            "Name another folder.",
        )
    agreement = write_deployment(recipe, folder, address)
    nodes = supernode_command(
        folder, address, 1, "/path/to/own-table.csv", "/path/to/private", "supernode.key"
    )
    commands = {
        "superlink": superlink_command(folder, address),
        "register": register_command("supernode.key.pub"),
        "supernode": nodes,
        "run": run_command(folder, "/path/to/output"),
    }
    if as_json:
        said = {"digest": agreement.terms.digest, "environment": environment(folder), "commands": commands}
        show.as_json(said)
    elif not quiet:
        show.line(say(tongue, "federate_terms", digest=agreement.terms.digest))
        show.line(say(tongue, "federate_machines", folder=folder))
        for name, value in environment(folder).items():
            show.line(f"  export {name}={shlex.quote(value)}")
        for command in commands.values():
            show.line(f"  {shlex.join(command)}")


def _plan(terms: Any) -> dict[str, Any]:
    federation = terms.federation
    return {
        "digest": terms.digest,
        "model": federation.model,
        "clients": federation.clients,
        "rounds": federation.rounds,
        "needed": federation.needed,
        "features": len(terms.encoder.names),
        "classes": len(terms.encoder.classes),
    }


def _show_terms(terms: Any, tongue: str, as_json: bool, quiet: bool) -> None:
    plan = _plan(terms)
    if as_json:
        show.as_json(plan)
    elif not quiet:
        show.line(say(tongue, "federate_plan", **plan))
        show.line(say(tongue, "federate_terms", digest=plan["digest"]))
        show.line(say(tongue, "federate_no_table"))


def _show_ready(ready: Ready, tongue: str, as_json: bool, quiet: bool) -> None:
    from velado.text import told

    plan = _plan(ready.terms)
    records = [part.record for part in ready.parts]
    if as_json:
        show.as_json({**plan, "client_records": [one.to_dict() for one in records], "notes": ready.notes})
    elif not quiet:
        show.line(say(tongue, "federate_plan", **plan))
        _clients(records, tongue)
        for text in [*(one.gap for one in records if one.gap), *ready.notes]:
            show.line(told(text, tongue))
        show.line(say(tongue, "federate_terms", digest=plan["digest"]))


def _clients(records: Any, tongue: str) -> None:
    from velado.text import told

    head = [say(tongue, f"federate_{key}") for key in ("client", "rows", "test", "loss", "linkage")]
    rows = [
        (
            told(one.name, tongue),
            one.rows,
            one.test_rows,
            _number(one.ncp, tongue),
            _number(one.linkage, tongue),
        )
        for one in records
    ]
    show.table(say(tongue, "federate_clients"), head, rows)


def _show_fit(fit: FederatedFit, output: Path, tongue: str) -> None:
    from velado.text import told

    _clients(fit.clients, tongue)
    last = fit.rounds[-1]
    parts = {name: _number(getattr(last, name), tongue) for name in ("accuracy", "auc", "loss")}
    majority = _number(fit.majority, tongue)
    show.line(say(tongue, "federate_last", round=last.number, majority=majority, **parts))
    if fit.gaps:
        show.line(say(tongue, "federate_gaps", count=len(fit.gaps), first=told(fit.gaps[0], tongue)))
    first = told([*fit.promise.guaranteed, *fit.promise.measured][0], tongue)
    kind = say(tongue, f"federate_{fit.promise.type.replace(' ', '_')}")
    show.line(say(tongue, "federate_promise", type=kind, sentence=first))
    show.line(say(tongue, "federate_not", sentence=told(fit.promise.not_promised[0], tongue)))
    files = ", ".join(sorted(path.name for path in output.iterdir()))
    show.line(say(tongue, "federate_written", folder=output, files=files))


def _number(value: float | None, tongue: str) -> str:
    return "–" if value is None else number(value, tongue, 4)
