"""How a party's messages come and go: the evaluator's boxes, which all others empty, and the errands of those who call.

    exchange: magic "VLDX" | version 1 | tenths of seconds to wait u16 | marks u16, 16 bytes each | letters
    answer:   magic "VLDX" | version 1 | letters
    letters:  count u16 | (sender | size u32 | signed message)*

Whoever calls brings what it has to say and the marks of what it has on its disk, and is given what waits for it, or waits
for that. What clients and key holder say to one another lies in the same boxes, as it was signed; the boxes are emptied in
order, and a message to the evaluator comes last of those said together, so that whatever the evaluator says next stands behind them.
"""

from __future__ import annotations

import queue
import struct
import threading
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from velado.errors import KeyRefused, OutputError, ProtocolError
from velado.learning.net._https import Caller, Server, Undelivered
from velado.learning.net._journal import ACKNOWLEDGED, MARK_BYTES, Inbox, PartyLog, mark_of
from velado.learning.net._mutual_tls import Pins
from velado.learning.net._wire import Cursor, malformed
from velado.learning.net.identity import Identity
from velado.learning.protocols.protocol import Message
from velado.learning.protocols.reasons import sentence_of
from velado.text import say

MAGIC, VERSION = b"VLDX", 1
LONGEST_WAIT = 25.0
MOST_MARKS = 8192
FRAME = 1 << 18
"""What an exchange may have beside the largest message: marks, names, heads."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


@dataclass(frozen=True)
class Letter:
    """A signed message on its way."""

    sender: str
    receiver: str
    number: int
    kind: str
    data: bytes

    @cached_property
    def mark(self) -> bytes:
        """By what its arrival is acknowledged."""
        return mark_of(self.data)


@dataclass(frozen=True)
class Asked:
    """One call: what is said, what arrived earlier, and how long the answer may wait."""

    wait: float
    marks: tuple[bytes, ...]
    letters: tuple[tuple[str, bytes], ...]


def asked_bytes(asked: Asked) -> bytes:
    """The call as it travels."""
    head = struct.pack(">HH", round(10 * asked.wait), len(asked.marks)) + b"".join(asked.marks)
    return MAGIC + bytes([VERSION]) + head + letters_bytes(asked.letters)


def letters_bytes(letters: Sequence[tuple[str, bytes]]) -> bytes:
    """Signed messages as they travel, each with the name of its sender."""
    parts = [struct.pack(">H", len(letters))]
    for sender, data in letters:
        name = sender.encode()
        parts += [struct.pack(">H", len(name)), name, struct.pack(">I", len(data)), data]
    return b"".join(parts)


def read_asked(data: bytes) -> Asked:
    """A call, or ProtocolError."""
    cursor = _begun(data)
    wait, count = cursor.number(2) / 10, cursor.number(2)
    if count > MOST_MARKS:
        raise malformed(say("An exchange acknowledges too much at once."))
    marks = tuple(cursor.take(MARK_BYTES) for _ in range(count))
    return Asked(wait, marks, _letters(cursor))


def answer_bytes(letters: Sequence[Letter]) -> bytes:
    """The answer to a call."""
    return MAGIC + bytes([VERSION]) + letters_bytes([(one.sender, one.data) for one in letters])


def read_answer(data: bytes) -> tuple[tuple[str, bytes], ...]:
    """What an answer brings, or ProtocolError."""
    return _letters(_begun(data))


def _begun(data: bytes) -> Cursor:
    cursor = Cursor(data)
    if cursor.take(len(MAGIC)) != MAGIC or cursor.number(1) != VERSION:
        raise malformed(say("An exchange is of a version this velado does not know."))
    return cursor


def _letters(cursor: Cursor) -> tuple[tuple[str, bytes], ...]:
    count = cursor.number(2)
    found = tuple((cursor.text(), cursor.take(cursor.number(4))) for _ in range(count))
    cursor.end()
    return found


def together(letters: Collection[Letter], most: int) -> list[Letter]:
    """As many of the first letters as go into one exchange: one at least."""
    out: list[Letter] = []
    size = 0
    for letter in letters:
        size += len(letter.data)
        if out and (size > most or len(out) == MOST_MARKS):
            break
        out.append(letter)
    return out


class Line(Protocol):
    """What carries a party's messages: the same for who listens and for who calls."""

    reasons: dict[str, str]

    @property
    def reached(self) -> bool:
        """Whether the first words between this party and another were exchanged."""

    def put(self, letters: Sequence[Letter]) -> None:
        """They are on their way."""

    def get(self, seconds: float) -> list[Message]:
        """What came, at the latest after so many seconds."""

    def owed(self) -> list[str]:
        """Parties that have not got everything that was said to them."""

    def give_up(self, names: Collection[str]) -> None:
        """Nobody waits for these parties any more; the last word to them stays for a while."""

    def wait(self, seconds: float) -> None:
        """Some of what is owed was taken, or the time is over."""

    def close(self) -> None:
        """Nothing more comes or goes."""


class Boxes:
    """The evaluator's line: a box for every other party, which the party empties when it calls."""

    def __init__(
        self,
        names: Collection[str],
        inbox: Inbox,
        audit: PartyLog,
        known: Collection[bytes],
    ) -> None:
        self._inbox, self._audit, self._known = inbox, audit, known
        self._boxes: dict[str, deque[Letter]] = {name: deque() for name in names}
        self._filled = {name: threading.Condition() for name in names}
        self._turns = dict.fromkeys(names, 0)
        self._taken = threading.Condition()
        self._given_up: set[str] = set()
        self._closed = False
        self._server: Server | None = None
        self.reasons: dict[str, str] = {}

    @property
    def reached(self) -> bool:
        """Whether anybody has called yet with a message."""
        return bool(self._inbox.heard)

    def listen(self, identity: Identity, pins: Pins, address: tuple[str, int]) -> int:
        """The boxes can be reached; returns the port."""
        largest = self._inbox.largest_body + FRAME
        self._server = Server(identity, pins, address, self.exchange, largest, self._audit)
        return self._server.port

    def put(self, letters: Sequence[Letter]) -> None:
        """Each is in its receiver's box, unless it was acknowledged before."""
        for letter in letters:
            if letter.mark in self._known:
                continue
            with self._filled[letter.receiver]:
                self._boxes[letter.receiver].append(letter)
                self._filled[letter.receiver].notify_all()

    def relay(self, message: Message, data: bytes) -> None:
        """What one party said to another is in the other's box."""
        self.put([Letter(message.sender, message.receiver, message.number, message.kind, data)])

    def exchange(self, peer: str, body: bytes) -> tuple[int, bytes]:
        """What a party brings is kept, what it acknowledges is gone from its box, and it is given what waits there."""
        try:
            asked = read_asked(body)
        except ProtocolError as error:
            self._audit.write("refused", peer=peer, reason=error.what)
            return 400, error.what.encode("ascii", "replace")
        box, filled, marks = self._boxes[peer], self._filled[peer], set(asked.marks)
        with filled:
            gone = [letter for letter in box if letter.mark in marks]
        beside = [(ACKNOWLEDGED, b"".join(letter.mark for letter in gone))] if gone else []
        status, reason = self._inbox.accept([(peer, data) for _, data in asked.letters], beside)
        if status != 200:
            return status, reason.encode("ascii", "replace")
        self._empty(peer, gone)
        with filled:
            self._turns[peer] += 1
            turn = self._turns[peer]
            filled.notify_all()  # an earlier call of the same party need not wait any more
            filled.wait_for(
                lambda: box or self._closed or self._turns[peer] != turn, min(asked.wait, LONGEST_WAIT)
            )
            told = together(box, self._inbox.largest_body) if self._turns[peer] == turn else []
        return 200, answer_bytes(told)

    def _empty(self, peer: str, gone: Sequence[Letter]) -> None:
        box, marks = self._boxes[peer], {letter.mark for letter in gone}
        with self._filled[peer]:
            for _ in range(len(box)):
                letter = box.popleft()
                if letter.mark not in marks:
                    box.append(letter)
        for letter in gone:
            event = "handed on" if letter.sender in self._boxes else "sent"
            self._audit.write(
                event, peer=peer, kind=letter.kind, number=letter.number, bytes=len(letter.data)
            )
        if gone:
            with self._taken:
                self._taken.notify_all()

    def get(self, seconds: float) -> list[Message]:
        """The next message, if one comes in time."""
        return _next(self._inbox, seconds)

    def owed(self) -> list[str]:
        """Parties whose boxes are not empty, those aside that left or ended the job themselves."""
        gone = self._given_up | self._inbox.ended
        return sorted(name for name, box in self._boxes.items() if box and name not in gone)

    def give_up(self, names: Collection[str]) -> None:
        """Their boxes are not waited for."""
        self._given_up.update(names)

    def wait(self, seconds: float) -> None:
        """A letter was taken, or the time is over."""
        with self._taken:
            self._taken.wait(seconds)

    def close(self) -> None:
        """Whoever waits for an answer gets it, and nobody is answered any more."""
        self._closed = True
        for filled in self._filled.values():
            with filled:
                filled.notify_all()
        if self._server is not None:
            self._server.close()


class Errands:
    """The line of who calls: every call brings what is to be said and fetches what waits."""

    def __init__(
        self,
        caller: Caller,
        inbox: Inbox,
        hub: str,
        audit: PartyLog,
        known: Collection[bytes],
        stop: threading.Event,
    ) -> None:
        self._caller, self._inbox, self._hub = caller, inbox, hub
        self._audit, self._known, self._stop = audit, known, stop
        self._letters: deque[Letter] = deque()
        self._marks: list[bytes] = []
        self._pause = FIRST_PAUSE
        self.reasons: dict[str, str] = {}
        self.reached = False

    def put(self, letters: Sequence[Letter]) -> None:
        """They go with the next call, those to the evaluator behind the others."""
        new = [letter for letter in letters if letter.mark not in self._known]
        self._letters.extend(sorted(new, key=lambda letter: letter.receiver == self._hub))

    def remember(self, data: bytes) -> None:
        """A message is on the disk, and the evaluator may not know: the next call tells it."""
        self._marks.append(mark_of(data))

    def get(self, seconds: float) -> list[Message]:
        """One call; what it brought. Where it failed, a pause."""
        letters = together(self._letters, self._inbox.largest_body)
        wait = 0.0 if len(letters) < len(self._letters) else max(0.0, min(seconds, LONGEST_WAIT))
        marks, self._marks = self._marks, []
        said = Asked(wait, tuple(marks[:MOST_MARKS]), tuple((one.sender, one.data) for one in letters))
        try:
            told = self._caller.exchange(asked_bytes(said), wait, self._inbox.largest_body + FRAME)
            found = read_answer(told)
        except (Undelivered, KeyRefused, OutputError, ProtocolError) as error:
            self._marks = marks
            self._failed(error.reason if isinstance(error, Undelivered) else sentence_of(error.what))
            return []
        beside = [(ACKNOWLEDGED, b"".join(letter.mark for letter in letters))] if letters else []
        # It is on the disk before it is acknowledged, which the next call does.
        status, reason = self._inbox.accept(found, beside)
        if status == 503:  # it could not be kept, so it is asked for again
            self._marks = marks
            self._failed(reason)
            return []
        self._marks = marks[MOST_MARKS:] + [mark_of(data) for _, data in found]
        self._pause, self.reached = FIRST_PAUSE, True
        self.reasons.pop(self._hub, None)
        for letter in letters:
            self._letters.popleft()
            self._audit.write(
                "sent", peer=letter.receiver, kind=letter.kind, number=letter.number, bytes=len(letter.data)
            )
        if status != 200:
            raise ProtocolError(
                say(
                    "{hub} handed over a message that no party of the job wrote so: {reason}",
                    hub=self._hub,
                    reason=reason,
                ),
                "Whoever carries messages must not change, swap or invent one.",
                "Ask the evaluator's people what happened; start a new job when it is clear.",
            )
        out: list[Message] = []
        while not self._inbox.waiting.empty():
            out.append(self._inbox.waiting.get_nowait())
        return out

    def _failed(self, reason: str) -> None:
        if self.reasons.get(self._hub) != reason:
            self._audit.write("waiting", peer=self._hub, reason=reason)
        self.reasons[self._hub] = reason
        self._stop.wait(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def owed(self) -> list[str]:
        """Whom something is still to be said to; the evaluator, where it does not know yet what arrived."""
        names = {letter.receiver for letter in self._letters}
        return sorted(names | ({self._hub} if self._marks else set()))

    def give_up(self, names: Collection[str]) -> None:
        """Nothing: who calls leaves nobody behind."""

    def wait(self, seconds: float) -> None:
        """One more call, which does not wait for an answer."""
        before = time.monotonic()
        self.get(0.0)
        if self.owed():
            self._stop.wait(max(0.0, min(seconds, 0.2) - (time.monotonic() - before)))

    def close(self) -> None:
        """The connection is closed."""
        self._caller.close()


def _next(inbox: Inbox, seconds: float) -> list[Message]:
    try:
        return [inbox.waiting.get(timeout=max(0.001, seconds))]
    except queue.Empty:
        return []
