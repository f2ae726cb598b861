"""One role, run to its end among real parties: started or resumed, fed, heard, timed, and closed.

The evaluator listens and everybody else calls it (`_line`). A message is journaled before it is acknowledged and acknowledged
before it is taken; what a role says follows from its seed and from what it took, so a party killed at any point is brought
back by its journal, and says again what nobody has acknowledged. Where a protocol can go on without some clients, it does when
nothing came from them for a fifth of the job's time. Every wait ends: the job's time begins with the first party that calls,
whenever the evaluator was started, and when it is up the role gives up and tells the others. The evaluator, who hears
from everyone and can name who was missing, gives up first; provider and clients a little later.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from velado.data.plain_csv import LARGEST_PLAIN, plain_columns
from velado.errors import KeyRefused, ProtocolError
from velado.learning.crypto.fixed_point import Bounded, Columns, is_number
from velado.learning.crypto.paillier_keys import PrivateKey, open_sealed
from velado.learning.net._https import Caller
from velado.learning.net._journal import (
    ACKNOWLEDGED,
    BEGIN,
    CLOCK,
    ENDED,
    LEFT,
    RECEIVED,
    RELAYED,
    Begin,
    Inbox,
    Journal,
    PartyLog,
    marks_in,
)
from velado.learning.net._line import Boxes, Errands, Letter, Line
from velado.learning.net._mutual_tls import Pins, parse_address
from velado.learning.net._wire import seal
from velado.learning.net.identity import PAILLIER, Identity, make_private_folder, read_private
from velado.learning.net.job_register import (
    column_marks,
    column_sketches,
    enter,
    read_register,
    refuse_second,
    row_sketch,
)
from velado.learning.net.outputs import Ending
from velado.learning.protocols.parts import EarlierJob, RegressionRole
from velado.learning.protocols.protocol import Message, RoleName
from velado.learning.protocols.reasons import reason_bytes, reason_in, sentence_of
from velado.learning.protocols.role import make_role
from velado.learning.regression.job import Job
from velado.randomness import Tape
from velado.text import join, say

# What a party brings to its role: the rows of its table, or a key it made before.


def read_columns(path: Path, job: Job) -> Columns:
    """The job's columns of a table; cells of a CSV stay text, so that 0.1 is the decimal it says.

    A decimal comma is found; a cell that is no number, and a missing one, is an error that names and counts (`number_columns`).

    >>> from velado.learning.regression.simulate import small_job
    >>> _ = Path("rows.csv").write_text("x;y\\n0,5;2\\n")
    >>> {name: values.tolist() for name, values in read_columns(Path("rows.csv"), small_job()).items()}
    {'x': ['0.5'], 'y': ['2']}
    """
    wanted = job_columns(job)
    plain = _plain(path)
    if plain is not None:
        numbers = [plain[one.name] for one in wanted if not one.value and one.name in plain]
        if all(map(is_number, set().union(*numbers))):
            names = dict.fromkeys(one.column or one.name for one in wanted)
            return {name: np.array(plain[name], dtype=object) for name in names if name in plain}
    from velado.data.io import read_table
    from velado.learning.regression.table_columns import columns_in

    return columns_in(read_table(path), wanted, None)


def job_columns(job: Job) -> tuple[Bounded, ...]:
    """The columns a client's table must have: features that are no products, the target, the weight.

    >>> from velado.learning.regression.simulate import small_job
    >>> [one.name for one in job_columns(small_job())]
    ['x', 'y']
    """
    weight = () if job.weight is None else (job.weight,)
    return tuple(one for one in (*job.features, job.target, *weight) if not one.factors)


def _plain(path: Path) -> dict[str, list[str | None]] | None:
    """The cells of a CSV that needs no data frame library, which most of starting a client would be spent on; None of another."""
    if path.suffix.lower() != ".csv":
        return None
    try:
        with path.open("rb") as stream:
            return plain_columns(stream.read(LARGEST_PLAIN + 1), path.name)
    except (OSError, ValueError):  # the door has the sentence for it
        return None


def _rows_mark(columns: Columns | None, job: Job, identity: Identity) -> bytes:
    """32 bytes that show whether a resumed client has the rows it began with, and tell others nothing of them."""
    if columns is None:
        return bytes(32)
    text = ",".join(
        f"{name}={mark}" for name, mark in sorted(column_marks(columns, identity, ordered=True).items())
    )
    return hmac.new(identity.journal_key, text.encode(), hashlib.sha256).digest()


def read_paillier(identity: Identity, passphrase: str, job: Job) -> PrivateKey | None:
    """The provider's stored key, if its identity holds one; one of another size than the job's is refused.

    >>> from velado.learning.regression.simulate import small_job
    >>> from velado.learning.net.identity import Ed25519PrivateKey
    >>> without = Identity("clinic", Path("nowhere"), b"", Ed25519PrivateKey.generate(), b"", b"")
    >>> read_paillier(without, "four words", small_job()) is None
    True
    """
    path = identity.folder / PAILLIER
    if not path.exists():
        return None
    private = open_sealed(read_private(path), passphrase)
    if private.public.bits != job.key_bits:
        raise KeyRefused(
            say(
                "The stored key has {bits} bits and the job says {key_bits}.",
                bits=private.public.bits,
                key_bits=job.key_bits,
            ),
            "The others would refuse it.",
            say(
                "Remove {paillier} to have a fresh key made for the job, or make one of that size.",
                paillier=PAILLIER,
            ),
        )
    return private


JOURNAL, AUDIT = "journal.bin", "audit.log"
# How much longer than the evaluator the others wait, as a share of the job's time and at most so many seconds.
PATIENCE: Mapping[RoleName, float] = {"evaluator": 0.0, "provider": 0.05, "client": 0.1}
MOST_PATIENCE = 30.0
# A client that nothing comes from for this share of the job's time is left behind, where the protocol can do that.
STAGE = 0.2
# A failed job is told to whoever asks within this time, and the evaluator is told within it that its last word arrived; an
# evaluator that is started again after its end answers for the shorter one.
LINGER, RESUMED_LINGER = 15.0, 3.0
_BEAT = 0.25
# A party that waits says for whom: after so many seconds, then after twice as many, and at last once an hour.
REMIND, LONGEST_REMIND = 60.0, 3600.0


@dataclass(frozen=True, kw_only=True)
class Runner:
    """One party in one job, and what it brings. *told* hears of events as they happen; *stop* ends it early, ready to be resumed.

    *wait*: how many minutes an evaluator waits for the first party that calls.

    >>> Runner.__dataclass_fields__["linger"].default  # seconds for the last words
    15.0
    """

    job: Job
    identity: Identity
    role: RoleName
    folder: Path
    columns: Columns | None = None
    private: PrivateKey | None = None
    listen: str = ""
    told: Callable[[str, Mapping[str, object]], None] = lambda event, facts: None
    stop: threading.Event = field(default_factory=threading.Event)
    linger: float = LINGER
    wait: float = math.inf

    def run(self, finished: Callable[[Ending], None] = lambda ending: None) -> Ending:
        """Run to the end. *finished* is called as soon as this party has its result, before it waits for others."""
        pins = Pins(self.job)
        pins.check_own(self.identity, self.role, self.job)
        if self.listen:
            parse_address(self.listen, self.identity.name)
        make_private_folder(self.folder)
        with (
            closing(Journal(self.folder / JOURNAL)) as journal,
            closing(PartyLog(self.folder / AUDIT)) as log,
        ):
            return _Running(self, pins, journal, log).run(finished)


class _Running:
    """A run under way: its journal is open and locked, its role stands where the journal left it."""

    def __init__(self, party: Runner, pins: Pins, journal: Journal, log: PartyLog) -> None:
        self._party, self.job, self.identity = party, party.job, party.identity
        self._pins, self._journal, self._log = pins, journal, log
        self._began = time.monotonic()
        self._stop = party.stop
        self._linger = min(party.linger, self.job.minutes * 60)
        self._unexpected: Exception | None = None
        self._awaited: tuple[str, ...] = ()
        self._since = time.monotonic()
        self._cost = {"messages_sent": 0.0, "bytes_sent": 0.0}
        self._resumed = bool(journal.records)
        begin, seed = self._begin()
        self._inbox, self._line = self._make_line()
        self._role = make_role(self.job, self.identity.name, seed, party.columns, party.private)
        if isinstance(self._role, RegressionRole) and party.columns is not None:
            read_register(self.identity)  # a client without one is not run
            self._role.own_columns = column_marks(party.columns, self.identity)
            self._role.own_rows = row_sketch(party.columns, self.identity)
            self._role.own_sketches = column_sketches(party.columns, self.identity)
            self._role.register = partial(enter, self.identity)
        if not self._resumed:
            if party.role == "client":
                refuse_second(self.identity, self.job.digest())
            journal.append((BEGIN, begin.to_bytes()))
        if party.role == "client":
            enter(self.identity, EarlierJob(job=self.job.digest(), roster=(), columns={}))
        self._patience = min(MOST_PATIENCE, PATIENCE[party.role] * self.job.minutes * 60)
        # Until somebody has called, the evaluator waits as long as it is let; others try to reach it for the job's time.
        listens = party.role == "evaluator"
        self._until = time.time() + party.wait * 60 if listens else begin.until + self._patience
        self._remind, self._quiet_since = REMIND, time.monotonic()
        self._clock = False

    def run(self, finished: Callable[[Ending], None]) -> Ending:
        """From the replay of the journal to the last word, or to where it was stopped."""
        with closing(self._line):
            self._replay()
            event = "resumed" if self._resumed else "started"
            if isinstance(self._line, Boxes):
                listen = self._party.listen
                address = parse_address(listen, self.identity.name) if listen else self._pins.address
                self._event(event, port=self._line.listen(self.identity, self._pins, address))
            else:
                self._event(event, peer=self._pins.evaluator)
            self._go_on()
            ending = self._ending()
            if not ending.stopped:
                self._event("failed" if ending.failure else "finished", reason=ending.failure)
                finished(ending)
                self._wait_for_others(ending)
                ending = self._ending()
        if self._unexpected is not None:
            raise self._unexpected
        return ending

    def _make_line(self) -> tuple[Inbox, Line]:
        name, log, keep = self.identity.name, self._log, self._journal.append
        known = {
            mark for kind, marks in self._journal.records if kind == ACKNOWLEDGED for mark in marks_in(marks)
        }
        if self._party.role == "evaluator":
            others = [party.name for party in self.job.parties if party.name != name]
            held: list[Boxes] = []
            inbox = Inbox(
                self.job, name, self._pins, keep, log, lambda message, data: held[0].relay(message, data)
            )
            held.append(Boxes(others, inbox, log, known))
            return inbox, held[0]
        inbox = Inbox(self.job, name, self._pins, keep, log)
        caller = Caller(self.identity, self._pins, self._stop)
        return inbox, Errands(caller, inbox, self._pins.evaluator, log, known, self._stop)

    def _begin(self) -> tuple[Begin, bytes]:
        name, digest = self.identity.name, self.job.digest()
        rows = _rows_mark(self._party.columns, self.job, self.identity)
        if not self._journal.records:
            seed = Tape.fresh_seed()
            until = time.time() + self.job.minutes * 60
            return Begin.make(digest, name, until, rows, seed, self.identity.journal_key), seed
        kind, payload = self._journal.records[0]
        begin = Begin.from_bytes(payload) if kind == BEGIN else None
        if begin is None or (begin.job, begin.name) != (digest, name):
            raise ProtocolError(
                "The output folder holds the journal of another job, of another version of the job file, or of another party.",
                "Going on from it would mix up two runs.",
                "Give an empty output folder, or the job file it was begun with.",
            )
        if begin.rows != rows:
            raise ProtocolError(
                "The table is not the one this job was begun with.",
                "What was sent before came from other rows.",
                "Give the same table, or end the job and start it again at all parties.",
            )
        return begin, begin.seed(self.identity.journal_key)

    def _replay(self) -> None:
        """The role stands where it stood: it took again what the journal holds, in that order."""
        self._send(self._role.start())
        for kind, payload in self._journal.records:
            if kind == RECEIVED:
                # Whoever died between keeping it and saying so says so again: else the evaluator waits for the word in vain.
                if isinstance(self._line, Errands):
                    self._line.remember(payload)
                self._take(self._inbox.again(payload))
            elif kind == RELAYED and isinstance(self._line, Boxes):
                self._line.relay(self._inbox.again(payload), payload)
            elif kind == LEFT:
                self._without(payload.decode("utf-8", "replace").split("\n"))
            elif kind == ENDED:
                self._send(self._role.abort(reason_in(payload, self.job)))
            elif kind == CLOCK:
                self._clock, self._until = True, struct.unpack(">d", payload)[0] + self._patience
        self._journal.records = []

    def _go_on(self) -> None:
        while not self._role.done and not self._stop.is_set():
            self._start_clock()
            left = self._until - time.time()
            if left <= 0:
                self._end(self._time_is_up())
                return
            self._leave_behind()
            self._say_who_is_missing()
            try:
                messages = self._line.get(min(left, _BEAT if self._party.role == "evaluator" else left))
            except ProtocolError as error:
                self._end(sentence_of(error.what))
                return
            if messages:
                self._remind, self._quiet_since = REMIND, time.monotonic()
            for message in messages:
                self._take(message)
                self._event("processed", peer=message.sender, kind=message.kind, number=message.number)
            if self._role.unheard:
                # What clients say to each other is handed on before the evaluator's own next word.
                self._end(
                    say(
                        "{hub} counts on {names}, but did not hand on what they said.",
                        hub=self._pins.evaluator,
                        names=", ".join(self._role.unheard),
                    )
                )

    def _start_clock(self) -> None:
        """The job's time begins with the first party that calls, or for who calls with the first answer."""
        if not self._clock and self._line.reached:
            until = time.time() + self.job.minutes * 60
            self._journal.append((CLOCK, struct.pack(">d", until)))
            self._clock, self._until, self._since = True, until + self._patience, time.monotonic()

    def _leave_behind(self) -> None:
        """Clients that are awaited too long are left behind, if the role knows how."""
        awaited = self._role.awaited
        if awaited != self._awaited or not self._clock:
            self._awaited, self._since = awaited, time.monotonic()
        elif awaited and time.monotonic() - self._since > STAGE * self.job.minutes * 60:
            self._journal.append((LEFT, "\n".join(awaited).encode()))
            self._without(awaited)
            for name in awaited if self._role.failure is None else ():  # else its end names them
                self._event("left", peer=name)

    def _say_who_is_missing(self) -> None:
        """Who waits long tells its own people for whom, ever less often."""
        waited = time.monotonic() - self._quiet_since
        if waited < self._remind:
            return
        self._remind = waited + min(waited, LONGEST_REMIND)
        facts: dict[str, object] = {"seconds": round(waited)}
        if self._party.role != "evaluator":
            hub = self._pins.evaluator
            self._party.told("waiting", facts | {"names": hub, "reason": self._line.reasons.get(hub, "")})
            return
        others = [party.name for party in self.job.parties if party.name != self.identity.name]
        silent = [name for name in others if name not in self._inbox.heard]
        if names := silent or self._role.awaited:
            self._party.told("waiting", facts | {"names": ", ".join(names), "reason": ""})

    def _without(self, names: Sequence[str]) -> None:
        self._line.give_up(names)
        self._send(self._role.without(names))

    def _take(self, message: Message) -> None:
        try:
            self._send(self._role.receive(message))
        except ProtocolError as error:
            # It was signed by a party of the job, so the job cannot go on without it, nor with it.
            refusal = say("What {sender} sent was refused.", sender=message.sender)
            self._send(self._role.abort(join([refusal, sentence_of(error.what)])))
        except Exception as error:  # whatever it is, the others must not wait for us until the deadline
            self._unexpected = error
            self._end(say("An unexpected error stopped {name}.", name=self.identity.name))

    def _end(self, reason: str) -> None:
        if not self._role.done:
            self._journal.append((ENDED, reason_bytes(reason)))
            self._send(self._role.abort(reason))

    def _send(self, messages: Sequence[Message]) -> None:
        letters = []
        for message in messages:
            data = seal(message, self.identity.signing)
            self._cost["messages_sent"] += 1
            self._cost["bytes_sent"] += len(data)
            letters.append(Letter(message.sender, message.receiver, message.number, message.kind, data))
        self._line.put(letters)

    def _time_is_up(self) -> str:
        minutes, hub = self.job.minutes, self._pins.evaluator
        if self._party.role == "evaluator":
            others = [party.name for party in self.job.parties if party.name != hub]
            if not self._clock:
                return say(
                    "Nobody called within {minutes:g} minutes. Waited for {names}.",
                    minutes=self._party.wait,
                    names=", ".join(others),
                )
            if silent := [name for name in others if name not in self._inbox.heard]:
                return say(
                    "Time is up after {minutes:g} minutes; nothing came from {names}.",
                    minutes=minutes,
                    names=", ".join(silent),
                )
        elif self._line.reasons:
            return say(
                "Time is up after {minutes:g} minutes; nothing came from {hub} ({reason}).",
                minutes=minutes,
                hub=hub,
                reason=self._line.reasons[hub],
            )
        return say("Time is up after {minutes:g} minutes; a message is missing.", minutes=minutes)

    def _wait_for_others(self, ending: Ending) -> None:
        """Everybody who is to hear the end has heard it, or the time for that is over."""
        now = time.time()
        listens = self._party.role == "evaluator"
        # Who calls and has its result owes the evaluator the word that it arrived, and nothing more.
        more = ending.failure is None and (listens or set(self._line.owed()) - {self._pins.evaluator})
        end = max(now, self._until) if more else now + self._linger
        while time.time() < end and not self._stop.is_set() and self._line.owed():
            try:
                self._line.wait(_BEAT)
            except ProtocolError:
                return
        if listens and self._resumed:
            self._stop.wait(max(0.0, now + RESUMED_LINGER - time.time()))

    def _ending(self) -> Ending:
        failure, outcome = self._role.failure, self._role.outcome
        return Ending(
            outcome=outcome,
            failure=failure,
            stopped=not self._role.done,
            untold=tuple(self._untold()),
            cost={**self._cost, "seconds": round(time.monotonic() - self._began, 3)},
        )

    def _untold(self) -> list[str]:
        return [name for name in self._line.owed() if isinstance(self._line, Boxes) or self._role.failure]

    def _event(self, event: str, **facts: object) -> None:
        self._log.write(event, **facts)
        self._party.told(event, facts)
