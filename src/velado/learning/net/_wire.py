"""A message as versioned bytes, and any bytes as a message or a ProtocolError.

    magic "VLDM" | version 1 | job digest 32 | number u32 | sender | receiver | kind | fields u16 | (name | size u32 | value)*

Texts are a u16 length and UTF-8. Fields stand in the order of their names' bytes, so that a message has exactly one
encoding: encode(decode(b)) = b and decode(encode(m)) = m. Lengths are checked before anything is copied, and nothing in
the bytes can name a type, a file or code. Why not msgpack or CBOR: docs/decisions/0021.
"""

from __future__ import annotations

import re
import struct

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from velado.errors import ProtocolError
from velado.learning.protocols.protocol import Message
from velado.learning.regression.job import Job
from velado.text import say

MAGIC = b"VLDM"
VERSION = 1
LARGEST = 1 << 28
LONGEST_TEXT = 200
MOST_FIELDS = 1024
MOST_NUMBER = (1 << 32) - 1
_DIGEST = re.compile(r"[0-9a-f]{64}")


def largest_message(job: Job) -> int:
    """The most bytes a message of this job may have: room for every ciphertext of the widest kind, twice over.

    The finer limits, field by field, are the role's; this one is checked before a body is read at all.
    """
    ciphertext = 2 * (job.key_bits // 8)
    widest = (job.width + 2) ** 2
    return min(LARGEST, (1 << 21) + 2 * widest * ciphertext + 4096 * len(job.parties))


def encode(message: Message) -> bytes:
    """The one encoding of a message; what `decode` would refuse is refused here already."""
    if not _DIGEST.fullmatch(message.job):
        raise malformed(say("A message names no job."))
    if not 0 <= message.number <= MOST_NUMBER:
        raise malformed(say("A message has a number out of range."))
    if len(message.fields) > MOST_FIELDS:
        raise malformed(say("A message has too many fields."))
    parts = [MAGIC, bytes([VERSION]), bytes.fromhex(message.job), struct.pack(">I", message.number)]
    parts += [_text(message.sender), _text(message.receiver), _text(message.kind)]
    parts.append(struct.pack(">H", len(message.fields)))
    for name, value in sorted((_text(key), value) for key, value in message.fields.items()):
        parts += [name, struct.pack(">I", len(value)), bytes(value)]
    data = b"".join(parts)
    if len(data) > LARGEST:
        raise malformed(say("A message is larger than any message may be."))
    return data


def decode(data: bytes, most: int = LARGEST) -> Message:
    """The message these bytes encode, or ProtocolError; *most* is the job's limit."""
    if len(data) > most:
        raise malformed(say("A message is larger than the job allows."))
    cursor = Cursor(data)
    if cursor.take(len(MAGIC)) != MAGIC:
        raise malformed(say("A message does not begin as a message."))
    if cursor.number(1) != VERSION:
        raise malformed(say("A message is of a version this velado does not know."))
    job = cursor.take(32).hex()
    number = cursor.number(4)
    sender, receiver, kind = cursor.text(), cursor.text(), cursor.text()
    count = cursor.number(2)
    if count > MOST_FIELDS:
        raise malformed(say("A message has too many fields."))
    fields: dict[str, bytes] = {}
    before = b""
    for _ in range(count):
        start = cursor.at
        name = cursor.text()
        written = data[start : cursor.at]
        if written <= before:
            raise malformed(say("A message has its fields out of order."))
        before = written
        fields[name] = cursor.take(cursor.number(4))
    cursor.end()
    return Message(job, sender, receiver, number, kind, fields)


class Cursor:
    """Reads bytes from front to back; running out of them is a ProtocolError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next *count* bytes."""
        if count > len(self._data) - self.at:
            raise malformed(say("A message is cut short."))
        self.at += count
        return self._data[self.at - count : self.at]

    def number(self, size: int) -> int:
        """The next *size* bytes as a whole number, most significant first."""
        return int.from_bytes(self.take(size), "big")

    def text(self) -> str:
        """The next text: a u16 length and so many bytes of UTF-8."""
        size = self.number(2)
        if not 1 <= size <= 4 * LONGEST_TEXT:
            raise malformed(say("A message has a name of a length that is not allowed."))
        try:
            text = self.take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise malformed(say("A message has a name that is no text.")) from None
        _check_text(text)
        return text

    def end(self) -> None:
        """Nothing, if every byte was read."""
        if self.at != len(self._data):
            raise malformed(say("A message has bytes after its end."))


def _text(text: str) -> bytes:
    _check_text(text)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise malformed(say("A message has a name that is no text.")) from None
    return struct.pack(">H", len(data)) + data


def _check_text(text: str) -> None:
    if not 1 <= len(text) <= LONGEST_TEXT or not text.isprintable():
        raise malformed(say("A message has a name that is empty, too long or not printable."))


def malformed(what: str) -> ProtocolError:
    """The error of bytes that are no message; it repeats nothing of them."""
    return ProtocolError(
        what,
        "What cannot be read exactly is not guessed at.",
        "Check that all parties run the same version of velado; the bytes were dropped.",
    )


# A signed message: who said it is settled before a byte of it is decoded.
#
# magic "VLDE" | version 1 | size u32 | message | Ed25519 signature of ("velado message 1" NUL message), 64 bytes
#
# TLS authenticates the connection; the signature goes with the message into the receiver's journal, so that what a party
# said can still be shown afterwards. Freshness comes from inside: the job's digest and the sender's number.

ENVELOPE_MAGIC = b"VLDE"
ENVELOPE_VERSION = 1
SIGNATURE = 64
OVERHEAD = len(ENVELOPE_MAGIC) + 1 + 4 + SIGNATURE
_CONTEXT = b"velado message 1\0"


def seal(message: Message, key: Ed25519PrivateKey) -> bytes:
    """The message with its sender's signature. Ed25519 is deterministic: a message sealed again is the same bytes."""
    body = encode(message)
    signature = key.sign(_CONTEXT + body)
    return ENVELOPE_MAGIC + bytes([ENVELOPE_VERSION]) + struct.pack(">I", len(body)) + body + signature


def sender_of(data: bytes, most: int) -> str:
    """Whom an envelope names as its sender, before anybody has checked that it is so."""
    head = len(ENVELOPE_MAGIC) + 5
    if len(data) > most + OVERHEAD:
        raise malformed(say("A message is larger than the job allows."))
    return decode(data[head:-SIGNATURE], most).sender


def open_envelope(data: bytes, key: Ed25519PublicKey, most: int) -> Message:
    """The message, if *key* signed it; *most* limits the message without its envelope."""
    cursor = Cursor(data)
    if cursor.take(len(ENVELOPE_MAGIC)) != ENVELOPE_MAGIC:
        raise malformed(say("A message does not come in an envelope."))
    if cursor.number(1) != ENVELOPE_VERSION:
        raise malformed(say("A message comes in an envelope of a version this velado does not know."))
    size = cursor.number(4)
    if size > most:
        raise malformed(say("A message is larger than the job allows."))
    body = cursor.take(size)
    signature = cursor.take(SIGNATURE)
    cursor.end()
    try:
        key.verify(signature, _CONTEXT + body)
    except InvalidSignature:
        raise ProtocolError(
            "A message does not bear the signature of the party it came from.",
            "Somebody else wrote it, or it was changed on its way.",
            "Check that the job holds each party's signing key; the message was dropped.",
        ) from None
    return decode(body, most)
