"""What parties say to each other: named kinds with named binary fields, and nothing else.

A message is pure data. How it becomes bytes, how it is signed and how it travels is `velado.encrypted.net`'s business;
in a test a message goes from one role's list into another's `receive`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
