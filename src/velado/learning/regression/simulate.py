"""All roles in one process: messages go from one list into the next, and the whole transcript can be read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from velado.errors import ProtocolError
from velado.learning.protocols.protocol import Message
from velado.learning.protocols.role import Role, make_role
from velado.learning.regression.fit import Fit
from velado.learning.regression.job import Job
from velado.randomness import Tape
from velado.text import say


@dataclass
class Transcript:
    """Every message in the order of its delivery, and how the roles stood at the end."""

    roles: Mapping[str, Role]
    messages: list[Message] = field(default_factory=list)

    @property
    def failures(self) -> dict[str, str]:
        """Why the job failed, by party; empty where it did not."""
        return {name: role.failure for name, role in self.roles.items() if role.failure is not None}


def deliver(
    roles: Mapping[str, Role], change: Callable[[Message], Sequence[Message]] | None = None
) -> Transcript:
    """Run roles until nobody has anything to say. *change* may drop, repeat or alter a message on its way."""
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


def simulate(
    job: Job, tables: Mapping[str, Mapping[str, Any]], seed: bytes | None = None
) -> tuple[Fit, Transcript]:
    """Fit with every role in this process; *tables* maps each client's name to its columns."""
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
                "The job ended without a result: {failure}.",
                failure=evaluator.failure or "a message is missing",
            ),
            "No coefficients can be given.",
            "Mend what the sentence names and run it again.",
        )
    return evaluator.outcome.fit, transcript
