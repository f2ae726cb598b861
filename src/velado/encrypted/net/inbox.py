"""What is let in: a signed message of this job, to this party, from the party whose certificate the connection showed.

It is on the disk before its sender is told that it arrived. The same message again is acknowledged again and goes no
further; the same number with other content is refused.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable

from velado.encrypted.job import Job
from velado.encrypted.net.audit import Audit
from velado.encrypted.net.envelope import OVERHEAD, open_envelope
from velado.encrypted.net.tls import Pins
from velado.encrypted.net.wire import largest_message
from velado.encrypted.protocols.messages import Message
from velado.errors import OutputError, ProtocolError

# A party that runs ahead of what it was answered by more than this is not taken seriously; roles keep as many.
WINDOW = 64
MOST_MESSAGES = 4096

Answer = tuple[int, str]


class Inbox:
    """Messages wait here, in the order of the journal, until the role takes them."""

    def __init__(self, job: Job, name: str, pins: Pins, keep: Callable[[bytes], None], audit: Audit) -> None:
        self._digest, self._name, self._pins = job.digest(), name, pins
        self._keep, self._audit = keep, audit
        self._seen: dict[tuple[str, int], bytes] = {}
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self.most = largest_message(job)
        self.heard: set[str] = set()
        self.waiting: queue.SimpleQueue[Message] = queue.SimpleQueue()

    @property
    def largest_body(self) -> int:
        """The most bytes a request may carry."""
        return self.most + OVERHEAD

    def again(self, data: bytes) -> Message:
        """A message from the journal, for which the signature is checked once more; it counts as seen."""
        for name, key in self._pins.signing.items():
            if name == self._name:
                continue
            try:
                message = open_envelope(data, key, self.most)
            except ProtocolError:
                continue
            if message.sender == name:
                self._note(message, data)
                return message
        raise ProtocolError(
            "The journal holds a message that no party of the job signed.",
            "It was changed, or belongs to another job.",
            "Restore it from a copy, or start the job again with an empty output folder at all parties.",
        )

    def accept(self, peer: str, data: bytes) -> Answer:
        """Take what *peer* sent, as its certificate says; the HTTP status and a reason without content."""
        try:
            message = open_envelope(data, self._pins.signing[peer], self.most)
        except ProtocolError as error:
            return self._refuse(peer, 400, error.what)
        if message.sender != peer:
            return self._refuse(peer, 403, "A message names another sender than its connection.")
        if message.job != self._digest:
            return self._refuse(peer, 409, "A message belongs to another job or another version of its file.")
        if message.receiver != self._name:
            return self._refuse(peer, 400, "A message is addressed to somebody else.")
        place = (peer, message.number)
        with self._lock:
            before = self._seen.get(place)
            if before is not None:
                if before != hashlib.sha256(data).digest():
                    return self._refuse(peer, 409, "A message repeats a number with other content.")
                self._audit.write("repeated", peer=peer, kind=message.kind, number=message.number)
                return 200, "known"
            if message.number >= min(self._counts.get(peer, 0) + WINDOW, MOST_MESSAGES):
                return self._refuse(peer, 409, "A message is too far ahead of its turn.")
            try:
                self._keep(data)
            except OutputError as error:
                return self._refuse(peer, 503, error.what)
            self._note(message, data)
            self._audit.write(
                "received", peer=peer, kind=message.kind, number=message.number, bytes=len(data)
            )
            self.waiting.put(message)
        return 200, "kept"

    def _note(self, message: Message, data: bytes) -> None:
        self._seen[message.sender, message.number] = hashlib.sha256(data).digest()
        self._counts[message.sender] = self._counts.get(message.sender, 0) + 1
        self.heard.add(message.sender)

    def _refuse(self, peer: str, status: int, reason: str) -> Answer:
        self._audit.write("refused", peer=peer, reason=reason)
        return status, reason
