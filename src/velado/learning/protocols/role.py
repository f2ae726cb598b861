"""The discipline every role shares: whose message, of which job, in which turn, with which fields. No clock, no socket, no file.

A role's randomness is a tape made from one secret seed, so that a role killed at any point is brought back by giving a
new one the same seed and the messages it had received: it then stands where it stood, byte for byte, and what it
sends again is what it had sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from velado.errors import KeyRefused, ProtocolError, VeladoError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.crypto.paillier_keys import PrivateKey
from velado.learning.protocols.protocol import START, Message, RoleName, Step
from velado.learning.protocols.reasons import LONGEST_REASON, reason_bytes, reason_in, reason_of
from velado.learning.regression.fit import Fit
from velado.learning.regression.job import Job
from velado.randomness import Tape
from velado.text import say

# How far ahead of its turn a message may come and still be kept.
WINDOW = 64

Take = Callable[[Message], Sequence[Message]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a role knows at the end: the fit, where it is to know it, and whose rows it counts, where some may have left.

    >>> Outcome().fit is None
    True
    """

    fit: Fit | None = None
    summed: tuple[str, ...] = ()


class Role:
    """One party's part in one job: order, duplicates and the end, by the protocol's table; what a kind leads to stands in `takes`.

    >>> from velado.learning.regression.simulate import small_job
    >>> Role(small_job(), "hub", Tape(bytes(32))).done
    False
    """

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        self.job = job
        self._name = name
        self._role = job.party(name).role
        self._id = job.digest()
        self._tape = tape
        self._roles = {party.name: party.role for party in job.parties}
        self._states: dict[tuple[str, bool], str] = {}
        self._sent: dict[str, int] = {}
        self._due: dict[str, int] = {}
        self._taken: dict[tuple[str, int], bytes] = {}
        self._early: dict[tuple[str, int], Message] = {}
        self._failure: str | None = None
        self._outcome: Outcome | None = None
        job.protocol.refuse(job)

    @property
    def name(self) -> str:
        """The party's name in the job."""
        return self._name

    @property
    def done(self) -> bool:
        """Whether the role expects nothing more: it has its result, or the job has failed."""
        return self._failure is not None or self._outcome is not None

    @property
    def failure(self) -> str | None:
        """Why the job failed, in a sentence that may be told to all parties; None while it has not."""
        return self._failure

    @property
    def outcome(self) -> Outcome | None:
        """What the role knows at the end: coefficients where it is to know them, and what it learned."""
        return self._outcome

    @property
    def awaited(self) -> tuple[str, ...]:
        """Whom the job waits for now and could go on without: nobody, unless the protocol can."""
        return ()

    @property
    def unheard(self) -> tuple[str, ...]:
        """Whose words the evaluator's last one builds on, though they did not come: nobody, where all is well."""
        return ()

    def takes(self) -> Mapping[str, Take]:
        """What is done with each kind of message this role takes."""
        return {}

    def start(self) -> Sequence[Message]:
        """The messages the role sends before it has received any."""
        return ()

    def receive(self, message: Message) -> Sequence[Message]:
        """Take one message and return what follows from it, and from those kept for later.

        A repeated message (same sender and number, same bytes) changes nothing and is answered with nothing; one ahead of
        its number is kept until its turn; one of another job, of an unknown sender or kind, that no step allows now, or with
        fields that do not validate raises ProtocolError and leaves the role as it was. "abort" ends the role with its
        reason, told in words of the catalogue and of the job alone (`reasons`).
        """
        self._check(message)
        place = (message.sender, message.number)
        due = self._due.get(message.sender, 0)
        print_ = _fingerprint(message)
        if message.number < due:
            if self._taken.get(place) != print_:
                raise refused(say("repeats a number with other content"))
            return ()
        if message.number > due:
            kept = self._early.get(place)
            if message.number >= due + WINDOW:
                raise refused(say("is too far ahead of its turn"))
            if kept is not None and _fingerprint(kept) != print_:
                raise refused(say("repeats a number with other content"))
            self._early[place] = message
            return ()
        out = list(self._take(message))
        while (following := self._early.pop((message.sender, self._due[message.sender]), None)) is not None:
            try:
                out.extend(self._take(following))
            except ProtocolError:
                # A bad message that came early is dropped as if it came now; what was to be said before it still is.
                break
        return out

    def without(self, names: Collection[str]) -> Sequence[Message]:
        """Go on without those of *names* that are still awaited, where the protocol can do that."""
        return ()

    def abort(self, reason: str) -> Sequence[Message]:
        """End the job here and tell every other party why (a time limit, a local error)."""
        if self.done:
            return ()
        self._failure = reason
        return [self._abort_to(name, reason) for name in self._others()]

    def _take(self, message: Message) -> Sequence[Message]:
        out: Sequence[Message] = ()
        if message.kind == "abort":
            if not self.done:
                reason = reason_in(message.fields["reason"], self.job)
                self._failure = say("{sender} ended the job: {reason}", sender=message.sender, reason=reason)
        elif not self.done:
            out = self._take_step(message)
        self._due[message.sender] = message.number + 1
        self._taken[message.sender, message.number] = _fingerprint(message)
        return out

    def _take_step(self, message: Message) -> Sequence[Message]:
        """What follows from a message that some step of the table allows now."""
        talk = self._talk(message.sender, coming=True)
        before = self._states.get(talk, START)
        step = self._step(message.kind, message.sender, before, coming=True)
        if step is None:
            raise refused(
                say("comes out of turn or a second time ('{kind}' does not follow here)", kind=message.kind)
            )
        self._states[talk] = step.next
        try:
            return self.takes()[message.kind](message)
        except ProtocolError:
            self._states[talk] = before
            raise
        except VeladoError as error:
            # Not the message's fault: the job cannot go on, and all parties are told why.
            return self.abort(reason_of(error))

    def _check(self, message: Message) -> None:
        if message.job != self._id:
            raise refused(say("belongs to another job, or to another version of the job file"))
        if message.receiver != self._name:
            raise refused(say("is addressed to somebody else"))
        if message.sender not in self._roles or message.sender == self._name:
            raise refused(say("comes from nobody the job names"))
        if message.number < 0:
            raise refused(say("has a negative number"))
        allowed = {"reason": LONGEST_REASON}
        if message.kind != "abort":
            step = self._step(message.kind, message.sender, None, coming=True)
            if step is None:
                raise refused(say("is of a kind its sender may not send here"))
            allowed = {
                key: most if isinstance(most, int) else most(self.job) for key, most in step.fields.items()
            }
        if set(message.fields) != set(allowed):
            raise refused(say("lacks a field, or has one too many"))
        if any(len(value) > allowed[key] for key, value in message.fields.items()):
            raise refused(say("has a field larger than its kind allows"))

    def _step(self, kind: str, peer: str, state: str | None, coming: bool) -> Step | None:
        """The step by which *kind* goes between this role and a peer in that state, or in any where it is None."""
        ends = (self._roles[peer], self._role) if coming else (self._role, self._roles[peer])
        for step in self.job.protocol.steps:
            if (step.kind, step.sender, step.receiver) == (kind, *ends) and state in (None, step.state):
                return step
        return None

    def _talk(self, peer: str, coming: bool) -> tuple[str, bool]:
        """Under what the state with a peer is kept; between two clients each direction has its own."""
        return peer, coming and self._roles[peer] == self._role

    def _message(self, receiver: str, kind: str, **fields: bytes) -> Message:
        talk = self._talk(receiver, coming=False)
        step = self._step(kind, receiver, self._states.get(talk, START), coming=False)
        if step is None:
            raise AssertionError(f"the table has no '{kind}' from {self._role} now")
        self._states[talk] = step.next
        return self._numbered(receiver, kind, fields)

    def _abort_to(self, receiver: str, reason: str) -> Message:
        return self._numbered(receiver, "abort", {"reason": reason_bytes(reason)})

    def _numbered(self, receiver: str, kind: str, fields: Mapping[str, bytes]) -> Message:
        number = self._sent.get(receiver, 0)
        self._sent[receiver] = number + 1
        return Message(self._id, self._name, receiver, number, kind, fields)

    def _one(self, role: RoleName) -> str:
        return self.job.of(role)[0].name

    def _others(self) -> list[str]:
        return [name for name in self._roles if name != self._name]


def make_role(
    job: Job,
    name: str,
    seed: bytes,
    columns: Columns | None = None,
    private: PrivateKey | None = None,
) -> Role:
    """The role a party has in a job, from its secret seed and, for a client, its rows; a provider may bring its key.

    The same seed and rows give the same role again.

    >>> from velado.learning.regression.simulate import small_job
    >>> make_role(small_job(), "hub", bytes(32)).awaited
    ('c0', 'c1', 'c2')
    """
    tape = Tape(seed, f"{job.digest()}:{name}")
    protocol, role = job.protocol, job.party(name).role
    if private is not None and role == "provider" and not protocol.stored_key:
        raise KeyRefused(
            say("The protocol {protocol} does not take a stored key.", protocol=protocol.name),
            "Its key is made for the run.",
            "Remove the stored key from the identity.",
        )
    made: Role
    if role == "client":
        made = protocol.client(job, name, tape, columns or {})
    elif role == "evaluator":
        made = protocol.evaluator(job, name, tape)
    else:
        assert protocol.provider is not None  # a job whose protocol has none names none
        made = protocol.provider(job, name, tape, private)
    return made


def refused(why: str) -> ProtocolError:
    """The error of a message that was not taken; it names no content.

    >>> str(refused(say("has a negative number"))).split(".")[0]
    'A message has a negative number'
    """
    return ProtocolError(
        say("A message {why}.", why=why),
        "Taking it could mix up runs or let a stranger in.",
        "Check that all parties run the same job file and version; the message was dropped.",
    )


def _fingerprint(message: Message) -> bytes:
    digest = hashlib.sha256(message.kind.encode())
    for key in sorted(message.fields):
        value = message.fields[key]
        digest.update(len(key).to_bytes(2, "big") + key.encode() + len(value).to_bytes(8, "big") + value)
    return digest.digest()
