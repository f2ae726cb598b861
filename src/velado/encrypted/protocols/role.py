"""What every role of every protocol does: take a message, return messages. No clock, no socket, no file.

A role's randomness is a tape made from one secret seed, so that a role killed at any point is brought back by giving a
new one the same seed and the messages it had received: it then stands where it stood, byte for byte, and what it
sends again is what it had sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from velado.encrypted.protocols.messages import Message


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
