"""`velado federate`: one model over locally anonymized rows, simulated here, or made ready for several machines."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import OneOf, argument, command, option
from velado.apps.cli.regression_account import AccountFlags
from velado.errors import OutputError, ParameterError, SchemaError
from velado.text import language, number, percent, say, say_n

if TYPE_CHECKING:
    from velado.learning.flower._terms import FederationTerms
    from velado.learning.flower.agreement import FederationRecipe
    from velado.learning.flower.flower_records import FederatedFit, RoundRecord
    from velado.learning.flower.simulation import Ready
    from velado.release.goal import Progress
    from velado.report.blocks import Table


@command("federate")
def federate(
    recipe: Annotated[Path, argument("FEDERATION", help="The recipe of the federation (TOML).")],
    *,
    output: flags.NewFolder = Path("federated"),
    dry_run: Annotated[
        bool, option("--dry-run", help="Anonymize and show the clients and the terms; train nothing.")
    ] = False,
    machines: Annotated[
        Path | None,
        option(
            "--machines DIR",
            help="Write what several machines need, and the commands, instead of simulating.",
        ),
    ] = None,
    address: Annotated[
        str, option("--address HOST:PORT", help="With --machines: where the SuperLink is.")
    ] = "localhost:9443",
    engine: Annotated[
        Literal["flower", "loop"],
        option(
            "--engine",
            click_type=OneOf("flower", "loop"),
            help="Flower's simulation, or a loop in this process.",
        ),
    ] = "flower",
    form: Annotated[
        Literal["csv", "parquet"],
        option("--format", click_type=OneOf("csv", "parquet"), help="File format of the rounds."),
    ] = "csv",
    account: AccountFlags,
) -> None:
    """Train one model over rows that each client anonymizes itself.

    The recipe names the table (for a simulation), schema, target, method and the federation's settings. Scores are of true
    rows held out before anything is anonymized. With epsilon in [federation] the run is debited from the table's ledger first.
    """
    if machines is not None:
        _write_machines(recipe, machines, address)
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
        plan = _Plan.of(agree(settings, schema).terms)
        bare = say("The recipe names no table: these are the terms that every party must have.")
        show.result(asdict(plan), [plan.sentence(), _digest(plan.digest), bare])
        return
    if not dry_run:
        _refuse_output(output)
    with show.waiting() as progress:
        from velado.learning.flower.deployment import require_flower
        from velado.learning.flower.simulation import make_ready

        require_flower(engine == "flower", settings.federation.model)
        progress(0.0, say("clients anonymize their rows"))
        ready = make_ready(
            recipe.parent / settings.data.table,
            schema,
            settings.anonymization,
            settings.federation,
            target=settings.data.target,
            encoding=settings.models,
            features=settings.data.features,
            undeclared=settings.data.undeclared,
        )
        if not dry_run:
            from velado.learning.flower._run_debit import debit_run
            from velado.learning.noise_account import NoiseAccount

            flags_given = NoiseAccount(
                ledger=account.ledger, seal=account.seal, budget=account.budget, analyst=account.analyst
            )
            paid = debit_run(
                recipe.parent / settings.data.table, settings.federation, settings.data.target, flags_given
            )
            fit = _run(ready, engine, settings, progress, output, form)
    if not dry_run:
        show.result(fit.to_dict, _fitted(fit, output, paid))
        return
    plan, records = _Plan.of(ready.terms), [part.record for part in ready.parts]
    document = {**asdict(plan), "client_records": [one.to_dict() for one in records], "notes": ready.notes}
    show.result(document, _ready(ready, plan))


def _run(
    ready: Ready,
    engine: Literal["flower", "loop"],
    settings: FederationRecipe,
    progress: Progress,
    output: Path,
    form: Literal["csv", "parquet"],
) -> FederatedFit:
    """The fit, written; of a run that stopped early what there is of it is written too."""
    from velado.learning.flower.deployment import FederationInterrupted
    from velado.learning.flower.flower_records import FederationStopped
    from velado.learning.flower.outcome import fit_files, write_files
    from velado.learning.flower.simulation import run_ready

    total, start = settings.federation.rounds, time.monotonic()

    def told(record: RoundRecord) -> None:
        text = say(
            "round {round} of {rounds}, accuracy {accuracy}, about {minutes:,.1f} min left",
            round=record.number,
            rounds=total,
            accuracy=number(record.accuracy, 4),
            minutes=(time.monotonic() - start) / record.number * (total - record.number) / 60,
        )
        progress(record.number / total, text)

    try:
        fit = run_ready(ready, engine, told)
    except FederationStopped as stopped:
        if stopped.fit is not None:
            write_files(output, fit_files(stopped.fit, language(), form))
        raise
    except FederationInterrupted as ended:
        done = len(ended.fit.rounds) if ended.fit is not None else 0
        if ended.fit is not None and done:
            write_files(output, fit_files(ended.fit, language(), form))
            text = say(
                "Ended after {rounds} of {total} rounds, as you asked; what was learned until then is written in "
                "{folder}.",
                rounds=done,
                total=total,
                folder=output,
            )
        else:
            text = say(
                "Ended before the first of {total} rounds was over, as you asked; {folder} was not written.",
                total=total,
                folder=output,
            )
        show.note(text)
        raise typer.Exit(ended.exit_code) from None
    write_files(output, fit_files(fit, language(), form))
    return fit


def _refuse_output(folder: Path) -> None:
    """Nothing, if a fit can be written to *folder*; else an error, before anything is trained."""
    if folder.exists() or folder.is_symlink():
        raise OutputError(
            say("The output '{folder}' exists already.", folder=folder.name or folder),
            "A fit is written to a folder of its own, so that two are never mixed.",
            "Name another folder with --output, or remove this one first.",
        )
    above = next(part for part in folder.absolute().parents if part.exists())
    try:
        with tempfile.TemporaryDirectory(prefix=".velado-", dir=above):
            pass
    except OSError as error:
        from velado.data.staging import reason_of

        raise OutputError(
            say(
                "The output folder '{folder}' cannot be made ({reason}).",
                folder=folder.name,
                reason=reason_of(error),
            ),
            "The fit would be lost after the training.",
            "Check the path, the permissions and the space left.",
        ) from None


def _write_machines(recipe: Path, folder: Path, address: str) -> None:
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
    terms = write_deployment(recipe, folder, address).terms
    digest, keys = terms.digest, ("/path/to/identity", "/path/to/passphrase") if terms.parties else None
    nodes = supernode_command(
        folder, address, 1, "/path/to/own-table.csv", "/path/to/private", "supernode.key", identity=keys
    )
    commands = {
        "superlink": superlink_command(folder, address),
        "register": register_command("supernode.key.pub"),
        "supernode": nodes,
        "run": run_command(folder, "/path/to/output"),
    }
    show.result(
        {"digest": digest, "environment": environment(folder), "commands": commands},
        [
            _digest(digest),
            say("Written in {folder}. The commands, in their order (START.md explains each):", folder=folder),
            *(f"  export {name}={shlex.quote(value)}" for name, value in environment(folder).items()),
            *(f"  {shlex.join(line)}" for line in commands.values()),
        ],
    )


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What the terms come to."""

    digest: str
    model: str
    clients: int
    rounds: int
    needed: int
    features: int
    classes: int

    @classmethod
    def of(cls, terms: FederationTerms) -> _Plan:
        federation = terms.federation
        return cls(
            digest=terms.digest,
            model=federation.model,
            clients=federation.clients,
            rounds=federation.rounds,
            needed=federation.needed,
            features=len(terms.encoder.names),
            classes=len(terms.encoder.classes),
        )

    def sentence(self) -> str:
        return say(
            "{model}, {clients} clients, {rounds} rounds; a round needs {needed} answers. {features} features, "
            "{classes} classes.",
            **asdict(self),
        )


def _digest(digest: str) -> str:
    return say("Digest of the terms: {digest}", digest=digest)


def _ready(ready: Ready, plan: _Plan) -> Iterator[str | Table]:
    records = [part.record for part in ready.parts]
    yield plan.sentence()
    yield _clients(records)
    yield from [*(one.gap for one in records if one.gap), *ready.notes]
    yield _digest(plan.digest)


def _clients(records: Sequence[Any]) -> Table:
    return show.table(
        say("Clients"),
        [
            say("client"),
            say("training rows"),
            say("held out"),
            say("information loss"),
            say("record linkage"),
        ],
        [[one.name, one.rows, one.test_rows, percent(one.ncp), percent(one.linkage)] for one in records],
    )


def _fitted(fit: FederatedFit, output: Path, paid: str | None) -> Iterator[str | Table]:
    from velado.learning.flower.outcome import protection_lines
    from velado.report.phrases import phrase

    yield _clients(fit.clients)
    if paid is not None:
        yield paid
    last = fit.rounds[-1]
    yield say(
        "After round {round}: accuracy {accuracy} (most frequent class {majority}), AUC {auc}, loss {loss}.",
        round=last.number,
        majority=percent(fit.majority),
        accuracy=percent(last.accuracy),
        auc=number(last.auc, 4),
        loss=number(last.loss, 4),
    )
    yield from protection_lines(fit)
    yield from fit.how.notes
    if fit.gaps:
        yield say_n(
            "Missing: {n} remark: {first}",
            "Missing: {n} remarks; the first: {first}",
            len(fit.gaps),
            first=fit.gaps[0],
        )
    promise = fit.promise
    first = [*promise.guaranteed, *promise.measured][0]
    yield say("Promise ({type}): {sentences}", type=phrase(promise.type), sentences=first)
    yield say("Not promised: {sentence}", sentence=promise.not_promised[0])
    files = ", ".join(sorted(path.name for path in output.iterdir()))
    yield say("Written in {folder}: {files}", folder=output, files=files)
