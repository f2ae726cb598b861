"""All roles in one process: messages go from one list into the next, and the whole transcript can be read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from velado.errors import ProtocolError
from velado.learning.crypto.fixed_point import Bounded, Columns
from velado.learning.protocols.protocol import Message, RegressionProtocol
from velado.learning.protocols.role import Role, make_role
from velado.learning.protocols.secure_sum import SECURE_SUM
from velado.learning.regression.fit import Fit
from velado.learning.regression.job import Job, Party
from velado.randomness import Tape
from velado.text import say


@dataclass
class Transcript:
    """Every message in the order of its delivery, and how the roles stood at the end.

    >>> Transcript({}).failures
    {}
    """

    roles: Mapping[str, Role]
    messages: list[Message] = field(default_factory=list)

    @property
    def failures(self) -> dict[str, str]:
        """Why the job failed, by party; empty where it did not."""
        return {name: role.failure for name, role in self.roles.items() if role.failure is not None}


def deliver(
    roles: Mapping[str, Role], change: Callable[[Message], Sequence[Message]] | None = None
) -> Transcript:
    """Run roles until nobody has anything to say. *change* may drop, repeat or alter a message on its way.

    >>> job = small_job()
    >>> roles = {one.name: make_role(job, one.name, bytes(32), small_rows()) for one in job.parties}
    >>> len(deliver(roles).messages)
    42
    """
    transcript = Transcript(roles)
    waiting: deque[Message] = deque()
    for role in roles.values():
        waiting.extend(role.start())
    while waiting:
        message = waiting.popleft()
        for arriving in (message,) if change is None else change(message):
            transcript.messages.append(arriving)
            waiting.extend(roles[arriving.receiver].receive(arriving))
    return transcript


def simulate(job: Job, tables: Mapping[str, Columns], seed: bytes | None = None) -> tuple[Fit, Transcript]:
    """Fit with every role in this process; *tables* maps each client's name to its columns.

    >>> job = small_job()
    >>> fit, _ = simulate(job, dict.fromkeys(("c0", "c1", "c2"), small_rows()))
    >>> [round(beta, 6) for beta in fit.coefficients]
    [1.0, 2.0]
    """
    base = seed or Tape.fresh_seed()
    roles = {
        party.name: make_role(job, party.name, Tape(base, party.name).bytes(32), tables.get(party.name))
        for party in job.parties
    }
    transcript = deliver(roles)
    evaluator = roles[job.of("evaluator")[0].name]
    if evaluator.outcome is None or evaluator.outcome.fit is None:
        raise ProtocolError(
            say(
                "The job ended without a result: {failure}",
                failure=evaluator.failure or say("a message is missing."),
            ),
            "No coefficients can be given.",
            "Mend what the sentence names and run it again.",
        )
    return evaluator.outcome.fit, transcript


def small_job(protocol: RegressionProtocol = SECURE_SUM, **settings: Any) -> Job:
    """A job to try things with: three clients, y explained by x, both within -8 and 8.

    >>> small_job(bits=4).unknowns
    ('(intercept)', 'x')
    """
    parties = [Party("hub", "evaluator"), *(Party(f"c{i}", "client") for i in range(3))]
    if protocol.provider is not None:
        parties.append(Party("vault", "provider"))
    x, y = (Bounded(name, (Fraction(-8), Fraction(8))) for name in "xy")
    if protocol.client_holds_key:
        settings = {"key_holder": "c0", **settings}
    given = {"features": (x,), "target": y, "parties": tuple(parties), **settings}
    return Job("small", protocol, **given)


def small_rows() -> dict[str, list[float]]:
    """Ten rows for a client of it: y = 1 + 2 x.

    >>> small_rows()["y"][:3]
    [-4.0, -3.0, -2.0]
    """
    x = [(i - 5) / 2 for i in range(10)]
    return {"x": x, "y": [1 + 2 * value for value in x]}
