"""`velado party`: a hospital's own part in a regression over several hospitals' rows, as a process of its own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show as out
from velado.apps.cli.words_party import tell
from velado.errors import MissingExtra, ParameterError, ProtocolError
from velado.text import say, told

if TYPE_CHECKING:
    from velado.learning.net.outputs import Ending
    from velado.learning.protocols.protocol import RoleName
    from velado.learning.regression.job import Job

STOPPED = 143
ROLES = ("client", "evaluator", "provider")

app = typer.Typer(
    name="party",
    help="Take part in a regression over several parties' rows: make keys, then run one role.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

JobFile = Annotated[
    Path,
    typer.Option("--job", metavar="FILE", help="The job all parties agreed on (TOML).", show_default=False),
]
IdentityFolder = Annotated[
    Path,
    typer.Option(
        "--identity", metavar="DIR", help="The folder that `velado party keygen` made.", show_default=False
    ),
]
Results = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Folder for results, audit log and journal.", show_default=False
    ),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help="File with the passphrase of the keys; without it, it is asked for.",
        show_default=False,
    ),
]
Listen = Annotated[
    str,
    typer.Option(
        "--listen",
        metavar="HOST:PORT",
        help="Where to listen, if not at the address in the job.",
        show_default=False,
    ),
]


@app.command("keygen", cls=flags.Command)
def keygen(
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The party's name in the job.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="A new, private folder.", show_default=False)
    ],
    role: Annotated[
        str, typer.Option("--role", metavar="|".join(ROLES), help="The party's role in the job.")
    ] = "client",
    address: Annotated[
        str, typer.Option("--address", metavar="HOST:PORT", help="Where the others reach it.")
    ] = "localhost:8443",
    days: Annotated[int, typer.Option("--days", help="How long the certificate is valid.")] = 365,
    paillier: Annotated[
        int,
        typer.Option(
            "--paillier",
            metavar="BITS",
            help="Also make a provider's encryption key; else each job has its own.",
        ),
    ] = 0,
    passphrase_file: PassphraseFile = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Make a party's keys, and print the public part for the job file."""
    tongue = flags.language(lang)
    flags.one_of(role, ROLES, "--role")
    _need_libraries()
    from velado.learning.net._mutual_tls import parse_address
    from velado.learning.net.identity import make_identity, party_toml, public_file
    from velado.learning.regression.job import Party

    parse_address(address, name)
    if paillier and not 2048 <= paillier <= 8192:
        raise ParameterError(
            say("A key of {paillier} bits is not made.", paillier=paillier),
            "Under 2048 bits it can be broken.",
            "Use 3072.",
        )
    passphrase = _passphrase(passphrase_file, tongue, confirm=True)
    made = make_identity(output, Party(name, role, address), passphrase, days, paillier)  # type: ignore[arg-type]
    if as_json:
        out.as_json({"folder": str(output), "file": str(public_file(output)), "party": vars(made)})
    elif not quiet:
        out.note(tell(tongue, "party_made", name=name, folder=output))
        out.note(tell(tongue, "party_until", days=days))
        out.note(tell(tongue, "party_paste", file=public_file(output)))
        for line in party_toml(made).splitlines():
            out.line(line)


@app.command("provider", cls=flags.Command)
def provider(
    job: JobFile,
    identity: IdentityFolder,
    output: Results,
    passphrase_file: PassphraseFile = None,
    listen: Listen = "",
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Hold the key of a job. Run it again after an interruption and it goes on."""
    _run(
        "provider",
        job,
        identity,
        output,
        passphrase_file,
        table=None,
        listen=listen,
        as_json=as_json,
        lang=lang,
        quiet=quiet,
    )


@app.command("evaluator", cls=flags.Command)
def evaluator(
    job: JobFile,
    identity: IdentityFolder,
    output: Results,
    passphrase_file: PassphraseFile = None,
    listen: Listen = "",
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Add up what nobody can read. Run it again after an interruption and it goes on."""
    _run(
        "evaluator",
        job,
        identity,
        output,
        passphrase_file,
        table=None,
        listen=listen,
        as_json=as_json,
        lang=lang,
        quiet=quiet,
    )


@app.command("client", cls=flags.Command)
def client(
    job: JobFile,
    identity: IdentityFolder,
    table: Annotated[
        Path,
        typer.Option(
            "--table", metavar="FILE", help="This party's rows: CSV, Parquet or Arrow.", show_default=False
        ),
    ],
    output: Results,
    passphrase_file: PassphraseFile = None,
    listen: Listen = "",
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Bring rows to a job; they do not leave this process. Run it again after an interruption and it goes on."""
    _run(
        "client",
        job,
        identity,
        output,
        passphrase_file,
        table=table,
        listen=listen,
        as_json=as_json,
        lang=lang,
        quiet=quiet,
    )


@app.command("show", cls=flags.Command)
def show(
    job: JobFile,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Show what a job file says, its digest, and what each role would learn."""
    tongue = flags.language(lang)
    _need_libraries()
    from velado.learning.net.identity import read_job
    from velado.learning.protocols.who_learns_what import learned, promise
    from velado.papers.regression.paper_masked import WITH_PAPER

    found = read_job(job, WITH_PAPER)
    spoken: Any = "pt" if tongue == "pt" else "en"
    facts = learned(found)
    if as_json:
        out.as_json({"digest": found.digest(), "job": found.to_dict(), "learned": facts.to_dict(spoken)})
        return
    if quiet:
        return
    parts = {"features": len(found.features), "bits": found.bits, "key_bits": found.key_bits}
    described = {"name": found.name, "target": found.target.name, "protocol": found.protocol.name}
    out.line(tell(tongue, "party_job", **described, ridge=found.ridge, **parts))
    out.line(tell(tongue, "party_digest", digest=found.digest()))
    head = [tell(tongue, f"party_{key}") for key in ("name", "role", "address", "certificate")]
    rows = [[party.name, party.role, party.address, party.certificate] for party in found.parties]
    out.table(tell(tongue, "party_parties"), head, rows)
    head = [tell(tongue, f"party_{key}") for key in ("role", "saw", "infers")]
    seen = [[role, told(said.saw, spoken), told(said.infers, spoken)] for role, said in facts.parties.items()]
    out.table(tell(tongue, "party_learned"), head, seen)
    for text in (*promise(found).lines(), *facts.coalitions, facts.always):
        out.line(told(text, spoken))


def _run(
    role: RoleName,
    job_file: Path,
    folder: Path,
    output: Path,
    passphrase_file: Path | None,
    *,
    table: Path | None,
    listen: str,
    as_json: bool,
    lang: str | None,
    quiet: bool,
) -> None:
    tongue = flags.language(lang)
    _need_libraries()
    from velado.learning.net import outputs
    from velado.learning.net.identity import open_identity, read_job
    from velado.learning.net.runner import Runner, read_columns, read_paillier
    from velado.papers.regression.paper_masked import WITH_PAPER

    job = read_job(job_file, WITH_PAPER)
    passphrase = _passphrase(passphrase_file, tongue)
    identity = open_identity(folder, passphrase)
    columns = None if table is None else read_columns(table, job)
    private = read_paillier(identity, passphrase, job) if role == "provider" else None
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    written: list[str] = []

    def hear(event: str, facts: Mapping[str, object]) -> None:
        if not quiet and not as_json:
            parts = {"name": identity.name, "role": role, "digest": job.digest()[:16], **facts}
            out.note(tell(tongue, f"party_{event}", **parts))

    def finished(ending: Ending) -> None:
        written[:] = outputs.write_outputs(
            output, job, identity.name, ending, "pt" if tongue == "pt" else "en"
        )
        if not quiet and not as_json and ending.untold:
            out.note(tell(tongue, "party_waiting", peers=", ".join(ending.untold)))

    party = Runner(
        job=job,
        identity=identity,
        role=role,
        folder=output,
        columns=columns,
        private=private,
        listen=listen,
        told=hear,
        stop=stop,
    )
    ending = party.run(finished)
    if ending.stopped:
        if not quiet:
            out.note(tell(tongue, "party_stopped"))
        raise typer.Exit(STOPPED)
    outputs.write_outputs(output, job, identity.name, ending, "pt" if tongue == "pt" else "en")
    if ending.failure is not None:
        raise ProtocolError(
            say("The job ended without a result: {failure}", failure=ending.failure),
            "No coefficients can be given.",
            "Mend what the sentence names, agree on a new job name, and start it again at all parties.",
        )
    _show_ending(job, output, ending, written, as_json, tongue, quiet)


def _show_ending(
    job: Job, output: Path, ending: Ending, written: list[str], as_json: bool, tongue: str, quiet: bool
) -> None:
    from velado.learning.protocols.who_learns_what import short_key

    fit = ending.fit
    if as_json:
        facts = {
            "job": job.digest(),
            "fit": None if fit is None else fit.to_dict(),
            "untold": list(ending.untold),
            "cost": dict(ending.cost),
        }
        out.as_json({**facts, "folder": str(output), "files": written})
        return
    if quiet:
        return
    if short_key(job):
        out.note(told(short_key(job), "pt" if tongue == "pt" else "en"))
    if fit is None:
        out.line(tell(tongue, "party_no_coefficients"))
    else:
        errors = fit.standard_errors
        head = [tell(tongue, "party_column"), tell(tongue, "party_coefficient")]
        head += [] if errors is None else [tell(tongue, "party_error")]
        rows = [
            [column, f"{value:.10g}", *(() if errors is None else (f"{errors[place]:.4g}",))]
            for place, (column, value) in enumerate(zip(fit.names, fit.coefficients, strict=True))
        ]
        out.table(tell(tongue, "party_coefficients"), head, rows)
    out.line(tell(tongue, "party_written", folder=output, files=", ".join(written)))
    if ending.untold:
        out.note(tell(tongue, "party_untold", peers=", ".join(ending.untold)))


def _passphrase(path: Path | None, tongue: str, confirm: bool = False) -> str:
    from velado.learning.net.identity import read_passphrase

    if path is not None:
        return read_passphrase(path)
    text: str = typer.prompt(
        tell(tongue, "party_passphrase"), hide_input=True, confirmation_prompt=confirm, err=True
    )
    return text


def _need_libraries() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("gmpy2", "flint", "cryptography")):
        raise MissingExtra(
            "gmpy2, python-flint or cryptography is not installed.",
            "A party computes with them.",
            "Install velado[encrypted].",
        )
