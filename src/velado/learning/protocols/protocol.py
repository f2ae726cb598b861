"""Protocol: what one way of working together is, said once: who may say what and when, which limits a job keeps, who learns what.

A protocol is a value. `protocol_registry` lists those of this room; whoever has another (a paper's, to be repeated and
attacked) hands it in where a job is read. Which message may follow which is a table of `Step`s that every role checks
before it decodes anything, and from which `docs/reference/protocols.md` is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from velado.text import say

RoleName = Literal["provider", "evaluator", "client"]
ROLES: Mapping[str, str] = {
    "client": say("client"),
    "evaluator": say("evaluator"),
    "provider": say("provider"),
}
"""What a party's role is called by its reader."""

START = "start"

Limits = Mapping[str, int | Callable[..., int]]
"""The fields of a message with the most bytes of each: a number, or a function of the job."""


@dataclass(frozen=True)
class Message:
    """One message of a job: *number* counts the messages of its sender to its receiver, from 0.

    A message is pure data: how it becomes bytes, is signed and travels is `velado.learning.net`'s business. *fields* hold
    bytes under short names; the exact fields of a kind and the most bytes of each stand in the protocol's steps.

    >>> Message("0" * 64, "hub", "clinic", 0, "key", {"key": b"12345"})
    Message(key 0: hub to clinic, 5 bytes)
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


@dataclass(frozen=True)
class Step:
    """One line of a protocol's table: in *state*, *sender* may say *kind* to *receiver*, and they are in *next* afterwards.

    The state belongs to the two who talk; both keep it, the one by what it sends and the other by what it takes. Between two
    clients each direction is a talk of its own, since both may begin. *fields* are the message's fields with the most bytes
    each, a number or a function of the job.

    >>> Step("start", "provider", "key", "client", "keyed", {"key": 4096}).next
    'keyed'
    """

    state: str
    sender: RoleName
    kind: str
    receiver: RoleName
    next: str
    fields: Limits = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a party of some role saw in a run, and what follows from it; `{told}` stands for what is told to all.

    >>> Seen(saw="The public key.", infers="Nothing.").infers
    'Nothing.'
    """

    saw: str
    infers: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Who learns what under which assumptions, and which coalitions break it: of the protocol, not of one table.

    *hides* is what the protocol promises to hide, nothing where it promises nothing; *computed* what somebody can compute
    besides what it is told. *census*: whoever sees exact pooled sums sees before them, or with them, how many rows lie at which points.

    >>> Facts(assumptions="None.", parties={}, coalitions=()).hides
    ''
    """

    assumptions: str
    parties: Mapping[RoleName, Seen]
    coalitions: tuple[str, ...]
    hides: str = ""
    computed: str = ""
    census: bool = False


def _accepted(job: object) -> None:
    """Nothing: a protocol without limits of its own takes every job that keeps the common ones."""


@dataclass(frozen=True, kw_only=True)
class RegressionProtocol:
    """One protocol: its roles' classes, its table of messages, the limits it sets on a job, and what it tells whom.

    *pooled* names the role that sees the pooled sums in the clear: only there can standard errors be worked out and noise be
    added. *scaled*: columns are scaled and centred by their bounds. *stored_key*: a provider may bring a key it made before.
    *client_holds_key*: the job's `key_holder`, a client, has the key that another protocol's provider has.
    *rounds*: sums may be asked for at several points, as Newton's method does.
    *refuse* raises where a job keeps the common limits and still cannot be run.

    >>> from velado.learning.protocols.secure_sum import SECURE_SUM
    >>> SECURE_SUM.pooled, SECURE_SUM.provider is None, [step.kind for step in SECURE_SUM.steps][:3]
    ('evaluator', True, ['hello', 'hello', 'roster'])
    """

    name: str
    steps: tuple[Step, ...]
    facts: Facts
    client: Callable[..., Any]
    evaluator: Callable[..., Any]
    provider: Callable[..., Any] | None = None
    pooled: RoleName | None = None
    least_key_bits: int = 2048
    least_clients: int = 3
    scaled: bool = True
    stored_key: bool = True
    client_holds_key: bool = False
    rounds: bool = False
    refuse: Callable[..., None] = _accepted
