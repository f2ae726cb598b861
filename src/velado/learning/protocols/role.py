"""What every role of every protocol does: take a message, return messages. No clock, no socket, no file.

A role's randomness is a tape made from one secret seed, so that a role killed at any point is brought back by giving a
new one the same seed and the messages it had received: it then stands where it stood, byte for byte, and what it
sends again is what it had sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from velado.errors import ProtocolError, VeladoError
from velado.learning.regression.job import Job, RoleName
from velado.randomness import Tape

# What parties say to each other: named kinds with named binary fields, and nothing else.
#
# A message is pure data. How it becomes bytes, how it is signed and how it travels is `velado.learning.net`'s business;
# in a test a message goes from one role's list into another's `receive`.


@dataclass(frozen=True)
class Message:
    """One message of a job: *number* counts the messages of its sender to its receiver, from 0.

    *fields* hold bytes under short names; a kind's exact fields and limits are listed by the protocol that defines it
    and checked on arrival, before anything is decoded.
    """

    job: str
    sender: str
    receiver: str
    number: int
    kind: str
    fields: Mapping[str, bytes] = field(default_factory=dict)

    def __repr__(self) -> str:
        size = sum(len(value) for value in self.fields.values())
        return f"Message({self.kind} {self.number}: {self.sender} to {self.receiver}, {size} bytes)"


class Role(Protocol):
    """One party's part in one job."""

    @property
    def name(self) -> str:
        """The party's name in the job."""

    @property
    def done(self) -> bool:
        """Whether the role expects nothing more: it has its result, or the job has failed."""

    @property
    def failure(self) -> str | None:
        """Why the job failed, in a sentence that may be told to all parties; None while it has not."""

    @property
    def outcome(self) -> dict[str, Any] | None:
        """What the role knows at the end: coefficients where it is to know them, and what it learned."""

    def start(self) -> Sequence[Message]:
        """The messages the role sends before it has received any."""

    def receive(self, message: Message) -> Sequence[Message]:
        """Take one message and return what follows from it.

        A repeated message (same sender and number, same bytes) changes nothing and is answered with nothing; one out of
        turn is kept until its turn; one of another job, of an unknown sender or kind, or with fields that do not
        validate raises ProtocolError and leaves the role as it was. A message of kind "abort" ends the role with its reason.
        """

    def abort(self, reason: str) -> Sequence[Message]:
        """End the job here and tell every other party why (a time limit, a local error)."""


# The discipline every role shares: whose message, of which job, in which turn, with which fields.
#
# A role lists the kinds it takes; nothing is decoded before job, receiver, sender, kind, turn and sizes were checked.

# How far ahead of its turn a message may come and still be kept.
WINDOW = 64
LONGEST_REASON = 600


@dataclass(frozen=True)
class Kind:
    """A kind of message a role takes: who may send it, its fields with the most bytes each, and what it leads to."""

    sender: RoleName
    fields: Mapping[str, int]
    take: Callable[[Message], Sequence[Message]]


class BaseRole:
    """Order, duplicates and the end of a job; what a protocol does stands in the kinds its roles list."""

    def __init__(self, job: Job, name: str, tape: Tape) -> None:
        self.job = job
        self._name = name
        self._id = job.digest()
        self._tape = tape
        self._sent: dict[str, int] = {}
        self._due: dict[str, int] = {}
        self._taken: dict[tuple[str, int], bytes] = {}
        self._early: dict[tuple[str, int], Message] = {}
        self._failure: str | None = None
        self._outcome: dict[str, Any] | None = None
        job.party(name)

    @property
    def name(self) -> str:
        """The party's name in the job."""
        return self._name

    @property
    def done(self) -> bool:
        """Whether the role has its result or the job has failed."""
        return self._failure is not None or self._outcome is not None

    @property
    def failure(self) -> str | None:
        """Why the job failed, or None."""
        return self._failure

    @property
    def outcome(self) -> dict[str, Any] | None:
        """What the role knows at the end."""
        return self._outcome

    def kinds(self) -> Mapping[str, Kind]:
        """The kinds of message this role takes."""
        return {}

    def start(self) -> Sequence[Message]:
        """The messages the role sends before it has received any."""
        return ()

    def receive(self, message: Message) -> Sequence[Message]:
        """Check one message, take it in its turn, and return what follows from it and from those kept for later."""
        self._check(message)
        place = (message.sender, message.number)
        due = self._due.get(message.sender, 0)
        print_ = _fingerprint(message)
        if message.number < due:
            if self._taken.get(place) != print_:
                raise refused("repeats a number with other content")
            return ()
        if message.number > due:
            kept = self._early.get(place)
            if message.number >= due + WINDOW:
                raise refused("is too far ahead of its turn")
            if kept is not None and _fingerprint(kept) != print_:
                raise refused("repeats a number with other content")
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

    def abort(self, reason: str) -> Sequence[Message]:
        """End the job here and tell every other party why."""
        if self.done:
            return ()
        self._failure = reason[:LONGEST_REASON]
        return [
            self._message(party.name, "abort", reason=self._failure.encode()[:LONGEST_REASON])
            for party in self.job.parties
            if party.name != self._name
        ]

    def _take(self, message: Message) -> Sequence[Message]:
        taken_before = self.done
        if message.kind == "abort":
            reason = message.fields["reason"].decode("utf-8", "replace")
            out: Sequence[Message] = ()
            if not taken_before:
                clean = "".join(c if c.isprintable() else "?" for c in reason)
                self._failure = f"{message.sender} ended the job: {clean}"
        elif taken_before:
            out = ()
        else:
            try:
                out = self.kinds()[message.kind].take(message)
            except ProtocolError:
                raise
            except VeladoError as error:
                # Not the message's fault: the job cannot go on, and all parties are told why.
                out = self.abort(f"{error.what} {error.fix}")
        self._due[message.sender] = message.number + 1
        self._taken[message.sender, message.number] = _fingerprint(message)
        return out

    def _check(self, message: Message) -> None:
        if message.job != self._id:
            raise refused("belongs to another job, or to another version of the job file")
        if message.receiver != self._name:
            raise refused("is addressed to somebody else")
        roles = {party.name: party.role for party in self.job.parties}
        if message.sender not in roles or message.sender == self._name:
            raise refused("comes from nobody the job names")
        if message.number < 0:
            raise refused("has a negative number")
        if message.kind == "abort":
            allowed: Mapping[str, int] = {"reason": LONGEST_REASON}
        else:
            kind = self.kinds().get(message.kind)
            if kind is None or kind.sender != roles[message.sender]:
                raise refused("is of a kind its sender may not send here")
            allowed = kind.fields
        if set(message.fields) != set(allowed):
            raise refused("lacks a field, or has one too many")
        if any(len(value) > allowed[key] for key, value in message.fields.items()):
            raise refused("has a field larger than its kind allows")

    def _message(self, receiver: str, kind: str, **fields: bytes) -> Message:
        number = self._sent.get(receiver, 0)
        self._sent[receiver] = number + 1
        return Message(self._id, self._name, receiver, number, kind, fields)

    def _one(self, role: RoleName) -> str:
        return self.job.of(role)[0].name


def refused(why: str) -> ProtocolError:
    """The error of a message that was not taken; it names no content."""
    return ProtocolError(
        f"A message {why}.",
        "Taking it could mix up runs or let a stranger in.",
        "Check that all parties run the same job file and version; the message was dropped.",
    )


def _fingerprint(message: Message) -> bytes:
    digest = hashlib.sha256(message.kind.encode())
    for key in sorted(message.fields):
        value = message.fields[key]
        digest.update(len(key).to_bytes(2, "big") + key.encode() + len(value).to_bytes(8, "big") + value)
    return digest.digest()
