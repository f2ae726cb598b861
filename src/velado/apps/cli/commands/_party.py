"""`velado party`: a hospital's own part in a regression over several hospitals' rows, as a process of its own."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from velado.apps.cli import options as flags
from velado.apps.cli import show as out
from velado.apps.cli.app import OfSetting, OneOf, command, group, option
from velado.apps.cli.commands._regress import coefficients
from velado.apps.cli.error_display import STOPPED
from velado.apps.cli.regression_account import AccountFlags, debit
from velado.errors import ParameterError, ProtocolError
from velado.text import Sentence, language, say, told

if TYPE_CHECKING:
    from fractions import Fraction

    from velado.learning.crypto.fixed_point import Bounded, Columns
    from velado.learning.net.outputs import Ending
    from velado.learning.protocols.protocol import RoleName
    from velado.learning.regression.job import Job, Party
    from velado.report.blocks import Table

LONGEST_WAIT = 31 * 24 * 60
app = group(
    "party", help="Take part in a regression over several parties' rows: make keys, then run one role."
)

JobFile = Annotated[Path, option("--job FILE", help="The job all parties agreed on (TOML).")]
PassphraseFile = Annotated[
    Path | None,
    option(
        "--passphrase-file FILE", help="File with the passphrase of the keys; without it, it is asked for."
    ),
]


@dataclass(frozen=True, kw_only=True)
class PartyFlags:
    """What every role needs to take part in a job."""

    job: JobFile
    identity: Annotated[Path, option("--identity DIR", help="The folder that `velado party keygen` made.")]
    output: Annotated[Path, option("--output -o DIR", help="Folder for results, audit log and journal.")]
    passphrase_file: PassphraseFile = None


@dataclass(frozen=True, kw_only=True)
class SecretFlags:
    """What opens the keys: words that somebody knows, or a file for a party that no person starts."""

    passphrase_file: PassphraseFile = None
    new_passphrase_file: Annotated[
        Path | None,
        option(
            "--new-passphrase-file FILE",
            help="Draw a random passphrase of 256 bits and write it to this new file, for a party that runs unattended.",
        ),
    ] = None


@command("keygen", app)
def keygen(
    secret: SecretFlags,
    *,
    name: Annotated[str, option("--name NAME", help="The party's name in the job.")],
    output: Annotated[Path, option("--output -o DIR", help="A new, private folder.")],
    role: Annotated[
        Literal["client", "evaluator", "provider"],
        option(
            "--role", click_type=OneOf("client", "evaluator", "provider"), help="The party's role in the job."
        ),
    ] = "client",
    address: Annotated[
        str | None,
        option(
            "--address HOST:PORT",
            help="Where the others reach the evaluator (default: localhost:8443); all others only call.",
        ),
    ] = None,
    days: Annotated[
        int,
        option(
            "--days",
            click_type=OfSetting("velado.learning.net.identity:CertificateDays", "INTEGER"),
            help="How long the certificate is valid.",
        ),
    ] = 365,
    paillier: Annotated[
        int,
        option("--paillier BITS", help="Also make a provider's encryption key; else each job has its own."),
    ] = 0,
) -> None:
    """Make a party's keys, and print the public part for the job file."""
    flags.needs_crypto()
    from velado.learning.net._mutual_tls import parse_address
    from velado.learning.net.identity import party_toml, public_file
    from velado.learning.protocols.protocol import ROLES
    from velado.learning.regression.job import Party

    if address is not None and role != "evaluator":
        raise ParameterError(
            say("A {role} has no address.", role=ROLES[role]),
            "The evaluator alone listens; everybody else calls it, so that no firewall has to be opened.",
            "Leave --address out.",
        )
    reached = (address or "localhost:8443") if role == "evaluator" else ""
    if reached:
        parse_address(reached, name)
    if paillier and not 2048 <= paillier <= 8192:
        raise ParameterError(
            say("A key of {bits} bits is not made.", bits=paillier),
            "Under 2048 bits it can be broken.",
            "Use 3072.",
        )
    made = _made(secret, output, Party(name, role, reached), days, paillier)
    file = public_file(output)
    notes = [
        say(
            "Keys of '{name}' made in {folder}; the private ones open with the passphrase only.",
            name=name,
            folder=output,
        ),
        say("The certificate is valid for {days} days.", days=days),
        say("Put this entry into the job file, the same at all parties ({file} holds it too):", file=file),
    ]
    if secret.new_passphrase_file is not None:
        notes.insert(
            1,
            say(
                "A random passphrase is in {file}, readable by you alone. Keep it away from copies of the keys.",
                file=secret.new_passphrase_file,
            ),
        )
    out.result(
        {"folder": str(output), "file": str(file), "party": vars(made)},
        [*map(out.Note, notes), *party_toml(made).splitlines()],
    )


def _made(secret: SecretFlags, output: Path, party: Party, days: int, paillier: int) -> Party:
    """The keys stand in *output*, sealed with the words given or with a random passphrase in a file of its own."""
    from velado.data.staging import write_file
    from velado.learning.net.identity import RANDOM_LOG2_N, make_identity, random_passphrase

    file = secret.new_passphrase_file
    if file is None:
        return make_identity(
            output, party, passphrase_of(secret.passphrase_file, confirm=True), days, paillier
        )
    if secret.passphrase_file is not None:
        raise ParameterError(
            "Two files are given for the passphrase.",
            "One is read and the other is written.",
            "Give --passphrase-file or --new-passphrase-file.",
        )
    if file.resolve().is_relative_to(output.resolve()):
        raise ParameterError(
            "The passphrase would lie beside the keys it opens.",
            "Whoever copies the folder could speak as this party.",
            "Give --new-passphrase-file in another folder.",
        )
    passphrase = random_passphrase()
    write_file(file, f"{passphrase}\n".encode(), private=True)
    try:
        return make_identity(output, party, passphrase, days, paillier, RANDOM_LOG2_N)
    except BaseException:
        file.unlink()  # it opens nothing
        raise


@command("provider", app)
def provider(part: PartyFlags) -> None:
    """Hold the key of a job. Run it again after an interruption and it goes on."""
    _run("provider", part)


@command("evaluator", app)
def evaluator(
    part: PartyFlags,
    *,
    listen: Annotated[
        str | None, option("--listen HOST:PORT", help="Where to listen, if not at the address in the job.")
    ] = None,
    wait: Annotated[
        float | None,
        option("--wait MINUTES", help="How long to wait for the first party that calls; default: no limit."),
    ] = None,
) -> None:
    """Add up what nobody can read; the others call it. Run it again after an interruption and it goes on."""
    if wait is not None and not 0 < wait <= LONGEST_WAIT:
        raise ParameterError(
            say("--wait cannot be {minutes:g}.", minutes=wait),
            "It is how many minutes nobody may have called: more than 0, and at most a month.",
            "Write for example --wait 60.",
        )
    _run("evaluator", part, listen=listen, wait=wait)


@command("client", app)
def client(
    part: PartyFlags,
    table: Annotated[
        Path, option("--table FILE", help="This party's rows: CSV, Parquet, Arrow, a spreadsheet.")
    ],
    *,
    schema: Annotated[
        Path | None,
        option("--schema -s FILE", help="Schema: how the file is read (decimal mark, missing values)."),
    ] = None,
    account: AccountFlags,
    reading: flags.ReadingFlags,
) -> None:
    """Bring rows to a job; they do not leave this process. Run it again after an interruption and it goes on.

    A comma as decimal mark is found where the columns leave no doubt; `decimal = ","` in [table] of a schema says so.
    """
    _run("client", part, _Rows(table, schema, reading), account)


@command("show", app)
def show(job: JobFile) -> None:
    """Show what a job file says, its digest, and what each role would learn."""
    flags.needs_crypto()
    from velado.learning.net._mutual_tls import certificate_in
    from velado.learning.net.identity import fingerprint, read_job
    from velado.learning.protocols.protocol import ROLES
    from velado.learning.protocols.who_learns_what import learned, promise
    from velado.papers.regression.paper_masked import WITH_PAPER

    found = read_job(job, WITH_PAPER)
    facts = learned(found)
    out.result(
        {"digest": found.digest(), "job": found.to_dict(), "learned": facts.to_dict(language())},
        [
            *_agreed(found),
            say(
                "Digest: {digest}. Compare it with the other parties before you start.", digest=found.digest()
            ),
            out.table(
                say("Parties"),
                [say("name"), say("role"), say("address"), say("certificate (SHA-256)")],
                [
                    [
                        one.name,
                        say("client with the key") if one.name == found.key_holder else ROLES[one.role],
                        one.address,
                        fingerprint(certificate_in(one.certificate)) if one.certificate else "",
                    ]
                    for one in found.parties
                ],
            ),
            out.table(
                say("What each role sees and can infer"),
                [say("role"), say("sees"), say("can infer")],
                [[ROLES.get(role, role), seen.saw, seen.infers] for role, seen in facts.parties.items()],
            ),
            *promise(found).lines(),
            *facts.coalitions,
            facts.always,
        ],
    )


def _agreed(job: Job) -> Iterator[str | Table]:
    """What a job's parties agree on, as one reads it who is to bring rows: columns, bounds, categories, limits."""
    yield say(
        "Job '{name}': {model} of {target}, protocol {protocol}",
        name=job.name,
        model=job.model.about,
        target=job.target.name,
        protocol=job.protocol.name,
    )
    parts = [(job.target, say("the target"))]
    parts += [] if job.weight is None else [(job.weight, say("weight of the row"))]
    parts += [(one, say("feature")) for one in job.features]
    yield out.table(
        say("Columns that every client's table must have"),
        [say("column"), say("part"), say("values")],
        [[name, part, values] for name, part, values in _columns_of(parts)],
    )
    unknown = say("a constant and {features} coefficients", features=len(job.features))
    yield say(
        "Fitted: {unknowns}, lambda {ridge}.",
        unknowns=unknown if job.intercept else say("{features} coefficients", features=len(job.features)),
        ridge=job.ridge,
    )
    yield say(
        "Rows: at least {fewest:,} of every client, at most {most:,} of all together; at least {clients} clients.",
        fewest=job.minimum_rows,
        most=job.most_rows,
        clients=job.minimum_clients,
    )
    if job.noise is None:
        yield say(
            "No column is summed in which fewer than {least} people differ from all others.",
            least=job.least_cell,
        )
    if job.path != "none":
        yield say("Coefficients at many penalties ({path}) are told too.", path=job.path)
    if job.folds:
        yield say("The penalty is chosen on {folds} parts of the rows held out in turn.", folds=job.folds)
    yield say(
        "Values are told apart to about 2^-{bits} of their column's span; the job ends {minutes:g} minutes after the first call.",
        bits=job.bits,
        minutes=job.minutes,
    )
    if job.protocol.provider is not None or job.protocol.client_holds_key:
        yield say("Encryption with a Paillier key of {bits} bits.", bits=str(job.key_bits))


def _columns_of(parts: Sequence[tuple[Bounded, Sentence]]) -> Iterator[tuple[str, str, str]]:
    """Each column once: its bounds, or its categories with the reference first; products by their factors."""
    told: set[str] = set()
    for one, part in parts:
        if one.factors:
            yield say("{factors} (product)", factors=" x ".join(one.factors)), part, ""
        elif not one.value:
            yield (
                one.name,
                part,
                say("{low:,} to {high:,}", low=_plain(one.low), high=_plain(one.high)),
            )
        elif one.column not in told:
            told.add(one.column)
            mine = [other.value for other, _ in parts if other.column == one.column]
            rest = ", ".join(value for value in one.among if value not in mine)
            yield (
                one.column,
                part,
                say("{values}; reference: {rest}", values=", ".join(mine), rest=rest),
            )


def _plain(bound: Fraction) -> int | float:
    return int(bound) if bound.denominator == 1 else float(bound)


def event_sentence(event: str, facts: Mapping[str, object]) -> str:
    """What a runner tells of while it runs, as a sentence.

    >>> event_sentence("finished", {})
    "This party's part is done."
    """
    if event == "started" and "port" in facts:
        return say("{name} ({role}) listens on port {port}; job {digest}.", **facts)
    if event == "started":
        return say("{name} ({role}) calls {peer}; job {digest}.", **facts)
    if event == "resumed":
        return say("{name} ({role}) goes on from its journal; job {digest}.", **facts)
    if event == "processed":
        return say("Taken: {kind} from {peer}.", **facts)
    if event == "left":
        return say("The job goes on without {peer}: nothing came from it for too long.", **facts)
    if event == "waiting" and facts["reason"]:
        return say("{names} cannot be reached: {reason}. Trying again until the job's time is up.", **facts)
    if event == "waiting":
        return say("Nothing came for {seconds:,} seconds. Still waiting for {names}.", **facts)
    if event == "finished":
        return say("This party's part is done.")
    return say("The job ended without a result.")


@dataclass(frozen=True)
class _Rows:
    """A client's table, and how its file is read."""

    file: Path
    schema: Path | None
    reading: flags.ReadingFlags

    def columns(self, job: Job) -> Columns:
        """The job's columns: of a plain file without a data frame library, which starting a client would mostly be spent on."""
        from velado.learning.net.runner import job_columns, read_columns

        if self.schema is None and self.reading == flags.ReadingFlags():
            return read_columns(self.file, job)
        from velado.apps.cli.regression_rows import read_rows
        from velado.data.io import read_schema
        from velado.learning.regression.table_columns import columns_in

        declared = None if self.schema is None else read_schema(self.schema)
        table = read_rows(self.file, self.reading, declared)
        return columns_in(table, job_columns(job), None if declared is None else declared.decimal)


def _run(
    role: RoleName,
    part: PartyFlags,
    rows: _Rows | None = None,
    account: AccountFlags | None = None,
    listen: str | None = None,
    wait: float | None = None,
) -> None:
    flags.needs_crypto()
    from velado.learning.net import outputs
    from velado.learning.net.identity import open_identity, read_job
    from velado.learning.net.runner import JOURNAL, Runner, read_paillier
    from velado.learning.protocols.protocol import ROLES
    from velado.papers.regression.paper_masked import WITH_PAPER
    from velado.randomness import Tape

    job = read_job(part.job, WITH_PAPER)
    passphrase = passphrase_of(part.passphrase_file)
    identity = open_identity(part.identity, passphrase)
    columns = None if rows is None else rows.columns(job)
    # A run that goes on from its journal says the same noise again, and was paid when it began.
    begun = (part.output / JOURNAL).exists()
    if rows is not None and account is not None and not begun:
        paid = debit(rows.file, job, account, Tape.fresh_seed().hex())
        if paid is not None and not out.manner().silent:
            out.note(paid)
    private = read_paillier(identity, passphrase, job) if role == "provider" else None
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    written: list[str] = []
    tongue = language()
    # The runner tells from threads of its own, which would begin in English and aloud.
    ours = copy_context()

    def note(text: str) -> None:
        if not out.manner().silent:
            out.note(text)

    def hear(event: str, facts: Mapping[str, object]) -> None:
        known = {
            "name": identity.name,
            "role": ROLES.get(role, role),
            "digest": job.digest()[:16],
            **facts,
        }
        ours.copy().run(note, event_sentence(event, known))

    def finished(ending: Ending) -> None:
        written[:] = outputs.write_outputs(part.output, job, identity.name, ending, tongue)
        if ending.untold:
            peers = ", ".join(ending.untold)
            text = say(
                "Still waiting for an answer from: {peers}; until the job's time is up, or until Ctrl-C.",
                peers=peers,
            )
            ours.copy().run(note, text)

    runner = Runner(
        job=job,
        identity=identity,
        role=role,
        folder=part.output,
        columns=columns,
        private=private,
        listen=listen or "",
        wait=math.inf if wait is None else wait,
        told=hear,
        stop=stop,
    )
    ending = runner.run(finished)
    if ending.stopped:
        if not out.manner().quiet:
            out.note(say("Stopped. Run the same command again to go on from the journal."))
        raise typer.Exit(STOPPED)
    outputs.write_outputs(part.output, job, identity.name, ending, language())
    if ending.failure is not None:
        raise ProtocolError(
            say("The job ended without a result: {failure}", failure=ending.failure),
            "No coefficients can be given.",
            "Mend what the sentence names, agree on a new job name, and start it again at all parties.",
        )
    fit = None if ending.fit is None else ending.fit.to_dict()
    facts = {"job": job.digest(), "fit": fit, "untold": list(ending.untold), "cost": dict(ending.cost)}
    out.result(
        {**facts, "folder": str(part.output), "files": written}, _ended(job, ending, part.output, written)
    )


def _ended(job: Job, ending: Ending, output: Path, written: list[str]) -> Iterator[str | out.Note | Table]:
    from velado.learning.net.outputs import counted_sentences
    from velado.learning.protocols.who_learns_what import short_key

    if short_key(job):
        yield out.Note(short_key(job))
    if ending.fit is None:
        yield say("This party does not learn the coefficients.")
    else:
        yield from coefficients(say("Coefficients"), ending.fit)
    yield from counted_sentences(job, ending)
    yield say("Written in {folder}: {files}", folder=output, files=", ".join(written))
    if ending.untold:
        yield out.Note(say("Not told: {peers}.", peers=", ".join(ending.untold)))


def passphrase_of(path: Path | None, confirm: bool = False) -> str:
    """The passphrase in a file, or asked for."""
    from velado.learning.net.identity import read_passphrase

    if path is not None:
        return read_passphrase(path)
    asked = told(say("Passphrase of this party's keys"))
    text: str = typer.prompt(asked, hide_input=True, confirmation_prompt=confirm, err=True)
    return text
