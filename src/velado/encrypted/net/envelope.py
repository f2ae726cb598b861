"""A signed message: who said it is settled before a byte of it is decoded.

    magic "VLDE" | version 1 | size u32 | message | Ed25519 signature of ("velado message 1" NUL message), 64 bytes

TLS authenticates the connection; the signature goes with the message into the receiver's journal, so that what a party
said can still be shown afterwards. Freshness comes from inside: the job's digest and the sender's number.
"""

from __future__ import annotations

import struct

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from velado.encrypted.net.wire import Cursor, decode, encode, malformed
from velado.encrypted.protocols.messages import Message
from velado.errors import ProtocolError

MAGIC = b"VLDE"
VERSION = 1
SIGNATURE = 64
OVERHEAD = len(MAGIC) + 1 + 4 + SIGNATURE
_CONTEXT = b"velado message 1\0"


def seal(message: Message, key: Ed25519PrivateKey) -> bytes:
    """The message with its sender's signature. Ed25519 is deterministic: a message sealed again is the same bytes."""
    body = encode(message)
    signature = key.sign(_CONTEXT + body)
    return MAGIC + bytes([VERSION]) + struct.pack(">I", len(body)) + body + signature


def open_envelope(data: bytes, key: Ed25519PublicKey, most: int) -> Message:
    """The message, if *key* signed it; *most* limits the message without its envelope."""
    cursor = Cursor(data)
    if cursor.take(len(MAGIC)) != MAGIC:
        raise malformed("does not come in an envelope")
    if cursor.number(1) != VERSION:
        raise malformed("comes in an envelope of a version this velado does not know")
    size = cursor.number(4)
    if size > most:
        raise malformed("is larger than the job allows")
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
