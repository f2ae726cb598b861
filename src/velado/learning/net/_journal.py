"""An append-only file with all a killed party needs to stand where it stood: seed, messages in their order, receipts.

    magic "VLDJ" | version 1 | records
    record: size u32 | kind u8 | CRC-32 of those five | payload | first 16 bytes of SHA-256(previous check, kind, payload)

A record is on the disk before the message in it is acknowledged. The checks form a chain, so a record that was changed,
left out or moved is noticed. A crash can only leave the last record unfinished: that one is cut off, since nobody was
told that it had arrived. Anything else that does not fit is damage, and an error. Why not SQLite: docs/decisions/0021.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import queue
import struct
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from velado.data.staging import locked, reason_of
from velado.errors import OutputError, ProtocolError
from velado.learning.net._mutual_tls import Pins
from velado.learning.net._wire import OVERHEAD, Cursor, largest_message, open_envelope, sender_of
from velado.learning.protocols.protocol import Message
from velado.learning.regression.job import Job
from velado.randomness import Tape
from velado.text import say

# What a party did and refused, one JSON object a line, without any content.

MOST_REFUSALS = 1000


class PartyLog:
    """The audit log of one party: time, event, peer, kind, number, bytes. Lines are added, never changed.

    Strangers can cause refusals as often as they like, so only the first thousand of a process are written.
    """

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file = os.fdopen(handle, "a", encoding="utf-8")
        self._lock = threading.Lock()
        self._refusals = 0

    def write(self, event: str, **facts: object) -> None:
        """One line, given to the operating system before this returns."""
        with self._lock:
            if event == "refused":
                self._refusals += 1
                if self._refusals > MOST_REFUSALS:
                    return
                if self._refusals == MOST_REFUSALS:
                    facts = {"reason": "further refusals are not listed"}
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            line = {"time": now, "event": event, **{k: v for k, v in facts.items() if v is not None}}
            if not self._file.closed:
                self._file.write(json.dumps(line, ensure_ascii=True) + "\n")
                self._file.flush()

    def close(self) -> None:
        """No line is written any more."""
        with self._lock:
            self._file.close()


MAGIC = b"VLDJ\x01"
BEGIN, RECEIVED, ACKNOWLEDGED, ENDED, LEFT, RELAYED, CLOCK = 1, 2, 3, 4, 5, 6, 7
Record = tuple[int, bytes]
LARGEST_RECORD = 1 << 29
_HEAD = 9
_CHECK = 16


@dataclass(frozen=True)
class Begin:
    """The first record: which job, who, until when (seconds since 1970), a hash of the rows, the sealed seed."""

    job: str
    name: str
    until: float
    rows: bytes
    sealed_seed: bytes

    @classmethod
    def make(cls, job: str, name: str, until: float, rows: bytes, seed: bytes, key: bytes) -> Begin:
        """The record of a seed, sealed with the identity's journal key for this job and party alone."""
        nonce = Tape.fresh_seed()[:12]
        sealed = nonce + AESGCM(key).encrypt(nonce, seed, bytes.fromhex(job) + name.encode())
        return cls(job, name, until, rows, sealed)

    def seed(self, key: bytes) -> bytes:
        """The seed, if *key* opens it."""
        try:
            bound = bytes.fromhex(self.job) + self.name.encode()
            return AESGCM(key).decrypt(self.sealed_seed[:12], self.sealed_seed[12:], bound)
        except InvalidTag:
            raise ProtocolError(
                "The journal was begun with another identity.",
                "Its seed opens only with the keys of then.",
                "Give the identity the job was begun with, or an empty output folder.",
            ) from None

    def to_bytes(self) -> bytes:
        """As the record's payload."""
        name = self.name.encode()
        head = bytes.fromhex(self.job) + struct.pack(">d", self.until) + self.rows
        return head + struct.pack(">H", len(name)) + name + self.sealed_seed

    @classmethod
    def from_bytes(cls, data: bytes) -> Begin:
        """From the record's payload."""
        cursor = Cursor(data)
        job = cursor.take(32).hex()
        (until,) = struct.unpack(">d", cursor.take(8))
        rows = cursor.take(32)
        name = cursor.text()
        return cls(job, name, until, rows, cursor.take(len(data) - cursor.at))


class Journal:
    """One party's journal of one job, open and locked for this process alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._check = b"\0" * _CHECK
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            self._file: BinaryIO = os.fdopen(handle, "r+b", buffering=0)
        except OSError as error:
            raise OutputError(
                say(
                    "The journal '{path}' cannot be opened ({strerror}).",
                    path=path.name,
                    strerror=reason_of(error),
                ),
                "Without it a party that is interrupted could not go on.",
                "Check the output folder and its permissions.",
            ) from None
        try:
            self._lock_file()
            self.records: list[Record] = self._read()
        except BaseException:
            self._file.close()
            raise

    def append(self, *records: Record) -> None:
        """The records are on the disk, all of them by one write."""
        with self._lock:
            if self._file.closed:
                raise OutputError(
                    "The journal is closed.", "The party has stopped.", "Start it again to go on."
                )
            parts, check = [], self._check
            for kind, payload in records:
                head = struct.pack(">IB", len(payload), kind)
                check = _link(check, kind, payload)
                parts += [head, struct.pack(">I", zlib.crc32(head)), payload, check]
            try:
                self._write(b"".join(parts))
                os.fsync(self._file.fileno())
            except OSError as error:
                raise OutputError(
                    say("The journal cannot be written ({strerror}).", strerror=reason_of(error)),
                    "A message that is not kept must not be acknowledged.",
                    "Make room on the disk and start the party again.",
                ) from None
            self._check = check

    def close(self) -> None:
        """Another process may open it."""
        with self._lock:
            self._file.close()

    def _write(self, data: bytes) -> None:
        at = self._file.tell()
        try:
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
        except OSError:
            # A half-written record must not stand before a whole one.
            self._file.truncate(at)
            self._file.seek(at)
            raise

    def _lock_file(self) -> None:
        if not locked(self._file.fileno()):  # on Windows two runs of one party are not noticed
            raise OutputError(
                "Another process runs this party with the same output folder.",
                "Two of them would mix up one journal.",
                "Stop the other one, or choose another folder.",
            )

    def _read(self) -> list[Record]:
        # The journal is as large as the messages of one party in one job: megabytes.
        data = self._file.read()
        if len(data) < len(MAGIC) and MAGIC.startswith(data):
            self._file.seek(0)
            self._file.truncate(0)
            self._write(MAGIC)
            return []
        if not data.startswith(MAGIC):
            raise _damaged(say("The journal does not begin as one, or is of another version."))
        records: list[Record] = []
        at = len(MAGIC)
        while at < len(data):
            found = self._record(data, at)
            if found is None:
                break
            kind, payload, at = found
            records.append((kind, payload))
        self._file.seek(at)
        self._file.truncate(at)
        return records

    def _record(self, data: bytes, at: int) -> tuple[int, bytes, int] | None:
        """The record at *at* and where it ends; None where a crash left it unfinished."""
        head = data[at : at + _HEAD]
        if len(head) < _HEAD:
            return None
        size, kind, crc = struct.unpack(">IBI", head)
        if zlib.crc32(head[:5]) != crc or size > LARGEST_RECORD:
            # Some file systems fill the end of a file with zeros when the power fails.
            if not any(data[at:]):
                return None
            raise _damaged(say("The journal is damaged."))
        end = at + _HEAD + size + _CHECK
        if end > len(data):
            return None
        payload = data[at + _HEAD : end - _CHECK]
        check = _link(self._check, kind, payload)
        if check != data[end - _CHECK : end]:
            if end == len(data):
                return None
            raise _damaged(say("The journal is damaged in the middle."))
        self._check = check
        return kind, payload, end


MARK_BYTES = 16


def mark_of(data: bytes) -> bytes:
    """By what a sealed message is named when its arrival is acknowledged."""
    return hashlib.sha256(data).digest()[:MARK_BYTES]


def marks_in(payload: bytes) -> list[bytes]:
    """The messages an acknowledgement names."""
    return [payload[at : at + MARK_BYTES] for at in range(0, len(payload), MARK_BYTES)]


def _link(before: bytes, kind: int, payload: bytes) -> bytes:
    return hashlib.sha256(before + bytes([kind]) + payload).digest()[:_CHECK]


def _damaged(what: str) -> ProtocolError:
    return ProtocolError(
        what,
        "Going on from it could send something that contradicts what was sent before.",
        "Restore it from a copy, or end the job and start it again with an empty output folder at all parties.",
    )


# What is let in: a signed message of this job, from the party it names.
#
# It is on the disk before its sender is told that it arrived. The same message again is acknowledged again and goes no
# further; the same number with other content is refused. The evaluator lets in what clients say to one another as well, and
# hands it on as it is: it cannot change a signed message, and what is secret in one is sealed for its receiver.

# A party that runs ahead of what it was answered by more than this is not taken seriously; roles keep as many.
WINDOW = 64
MOST_MESSAGES = 4096

Answer = tuple[int, str]


class Inbox:
    """Messages wait here, in the order of the journal, until the role takes them; *relay* gets those for others."""

    def __init__(
        self,
        job: Job,
        name: str,
        pins: Pins,
        keep: Callable[..., None],
        audit: PartyLog,
        relay: Callable[[Message, bytes], None] | None = None,
    ) -> None:
        self._digest, self._name, self._pins = job.digest(), name, pins
        self._keep, self._audit, self._relay = keep, audit, relay
        self._seen: dict[tuple[str, str, int], bytes] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()
        self.most = largest_message(job)
        self.heard: set[str] = set()
        self.ended: set[str] = set()
        self.waiting: queue.SimpleQueue[Message] = queue.SimpleQueue()

    @property
    def largest_body(self) -> int:
        """The most bytes the messages of one exchange have."""
        return self.most + OVERHEAD

    def again(self, data: bytes) -> Message:
        """A message from the journal, for which the signature is checked once more; it counts as seen."""
        try:
            key = self._pins.signing[sender_of(data, self.most)]
            message = open_envelope(data, key, self.most)
        except (ProtocolError, KeyError):
            raise ProtocolError(
                "The journal holds a message that no party of the job signed.",
                "It was changed, or belongs to another job.",
                "Restore it from a copy, or start the job again with an empty output folder at all parties.",
            ) from None
        self._note(message, data)
        return message

    def accept(self, offered: Sequence[tuple[str, bytes]], beside: Sequence[Record] = ()) -> Answer:
        """Take what parties said, each by its name; the HTTP status and a reason without content.

        All that is new is on the disk, with the records *beside*, when this returns; it stops at the first that is refused.
        """
        answer: Answer = (200, "kept")
        fresh: list[tuple[Message, bytes]] = []
        with self._lock:
            for peer, data in offered:
                answer = self._judge(peer, data, fresh)
                if answer[0] != 200:
                    break
            own = [(RECEIVED if message.receiver == self._name else RELAYED, data) for message, data in fresh]
            if own or beside:
                try:
                    self._keep(*beside, *own)
                except OutputError as error:
                    return self._refuse(offered[0][0] if offered else None, 503, error.what)
            for message, data in fresh:
                self._note(message, data)
                mine = message.receiver == self._name
                facts = {"peer": message.sender, "kind": message.kind, "number": message.number}
                if mine:
                    self._audit.write("received", **facts, bytes=len(data))
                    self.waiting.put(message)
                elif self._relay is not None:
                    self._audit.write("relayed", **facts, to=message.receiver, bytes=len(data))
                    self._relay(message, data)
        return answer

    def _judge(self, peer: str, data: bytes, fresh: list[tuple[Message, bytes]]) -> Answer:
        """Whether one message is let in; it is among *fresh* then, if it is not known."""
        if peer not in self._pins.signing or peer == self._name:
            return self._refuse(None, 403, say("A message comes from nobody the job names."))
        try:
            message = open_envelope(data, self._pins.signing[peer], self.most)
        except ProtocolError as error:
            return self._refuse(peer, 400, error.what)
        if message.sender != peer:
            return self._refuse(peer, 403, say("A message names another sender than its connection."))
        if message.job != self._digest:
            return self._refuse(
                peer, 409, say("A message belongs to another job or another version of its file.")
            )
        other = message.receiver != self._name
        if other and (
            self._relay is None or message.receiver not in self._pins.signing or message.receiver == peer
        ):
            return self._refuse(peer, 400, say("A message is addressed to somebody else."))
        place = (peer, message.receiver, message.number)
        print_ = hashlib.sha256(data).digest()
        before = self._seen.get(place)
        for one, held in fresh:
            if (one.sender, one.receiver, one.number) == place:
                before = hashlib.sha256(held).digest()
        if before is not None:
            if before != print_:
                return self._refuse(peer, 409, say("A message repeats a number with other content."))
            self._audit.write("repeated", peer=peer, kind=message.kind, number=message.number)
            return 200, "known"
        if message.number >= min(self._counts.get(place[:2], 0) + WINDOW, MOST_MESSAGES):
            return self._refuse(peer, 409, say("A message is too far ahead of its turn."))
        fresh.append((message, data))
        return 200, "kept"

    def _note(self, message: Message, data: bytes) -> None:
        pair = (message.sender, message.receiver)
        self._seen[(*pair, message.number)] = hashlib.sha256(data).digest()
        self._counts[pair] = self._counts.get(pair, 0) + 1
        self.heard.add(message.sender)
        if message.kind == "abort" and message.receiver == self._name:
            self.ended.add(message.sender)

    def _refuse(self, peer: str | None, status: int, reason: str) -> Answer:
        self._audit.write("refused", peer=peer, reason=reason)
        return status, reason
