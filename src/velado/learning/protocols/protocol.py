"""Protocol: what one way of working together is, said once: who may say what and when, which limits a job keeps, who learns what.

A protocol is a value. `protocol_registry` lists those of this room; whoever has another (a paper's, to be repeated and
attacked) hands it in where a job is read. Which message may follow which is a table of `Step`s that every role checks
before it decodes anything, and from which `docs/reference/protocols.md` is drawn.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

RoleName = Literal["provider", "evaluator", "client"]
Text = Mapping[str, str]

START = "start"


@dataclass(frozen=True)
class Message:
    """One message of a job: *number* counts the messages of its sender to its receiver, from 0.

    A message is pure data: how it becomes bytes, is signed and travels is `velado.learning.net`'s business. *fields* hold
    bytes under short names; the exact fields of a kind and the most bytes of each stand in the protocol's steps.
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


class Role(typing.Protocol):
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
    def outcome(self) -> dict[str, typing.Any] | None:
        """What the role knows at the end: coefficients where it is to know them, and what it learned."""

    @property
    def awaited(self) -> tuple[str, ...]:
        """Whom the job waits for now and could go on without; empty where it cannot."""

    def start(self) -> Sequence[Message]:
        """The messages the role sends before it has received any."""

    def receive(self, message: Message) -> Sequence[Message]:
        """Take one message and return what follows from it.

        A repeated message (same sender and number, same bytes) changes nothing and is answered with nothing; one ahead of
        its number is kept until its turn; one of another job, of an unknown sender or kind, that no step allows now, or with
        fields that do not validate raises ProtocolError and leaves the role as it was. "abort" ends the role with its reason.
        """

    def without(self, names: Collection[str]) -> Sequence[Message]:
        """Go on without those of *names* that are still awaited, where the protocol can do that."""

    def abort(self, reason: str) -> Sequence[Message]:
        """End the job here and tell every other party why (a time limit, a local error)."""


@dataclass(frozen=True)
class Step:
    """One line of a protocol's table: in *state*, *sender* may say *kind* to *receiver*, and they are in *next* afterwards.

    The state belongs to the two who talk; both keep it, the one by what it sends and the other by what it takes. Between two
    clients each direction is a talk of its own, since both may begin. *fields* are the message's fields with the most bytes
    each, a number or a function of the job.
    """

    state: str
    sender: RoleName
    kind: str
    receiver: RoleName
    next: str
    fields: Mapping[str, int | Callable[..., int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a party of some role saw in a run, and what follows from it; `{told}` stands for what is told to all."""

    saw: Text
    infers: Text


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Who learns what under which assumptions, and which coalitions break it: of the protocol, not of one table.

    *hides* is what the protocol promises to hide, None where it promises nothing; *computed* what somebody can compute
    besides what it is told.
    """

    assumptions: Text
    parties: Mapping[RoleName, Seen]
    coalitions: tuple[Text, ...]
    hides: Text | None
    computed: Text | None = None


def _accepted(job: object) -> None:
    """Nothing: a protocol without limits of its own takes every job that keeps the common ones."""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One protocol: its roles' classes, its table of messages, the limits it sets on a job, and what it tells whom.

    *pooled* names the role that sees the pooled sums in the clear: only there can standard errors be worked out and noise be
    added. *scaled*: columns are scaled and centred by their bounds. *stored_key*: a provider may bring a key it made before.
    *refuse* raises where a job keeps the common limits and still cannot be run.
    """

    name: str
    steps: tuple[Step, ...]
    facts: Facts
    client: Callable[..., Role]
    evaluator: Callable[..., Role]
    provider: Callable[..., Role] | None = None
    pooled: RoleName | None = None
    least_key_bits: int = 2048
    least_clients: int = 3
    scaled: bool = True
    stored_key: bool = True
    refuse: Callable[..., None] = _accepted
