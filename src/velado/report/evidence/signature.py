"""Ed25519 over the list of a pack: made with a key that follows from the owner's, checked with its public half."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from velado.data.keys import Key
from velado.errors import EvidenceRefused, MissingExtra, ParameterError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

DOMAIN = b"velado evidence pack 1\0"
"""Signed with every list, so that no signature on something else is one on a pack."""
_USE = "evidence signature"
_FILE = re.compile(r"(?:velado-evidence ed25519 )?([0-9a-f]{64})")


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra(
            "cryptography is not installed.",
            "Evidence packs are signed and checked with it.",
            "Install velado[evidence].",
        ) from None
    return ed25519


def _signing(key: Key) -> Ed25519PrivateKey:
    made: Ed25519PrivateKey = _ed25519().Ed25519PrivateKey.from_private_bytes(key.seed_for(_USE))
    return made


def public_half(key: Key) -> str:
    """The public key, 64 hexadecimal digits, by which packs signed under the owner's *key* are known.

    >>> len(public_half(Key(bytes(range(40)))))
    64
    """
    raw: bytes = _signing(key).public_key().public_bytes_raw()
    return raw.hex()


def sign(content: bytes, key: Key) -> str:
    """The signature on *content*; the same for the same content and key.

    >>> key = Key(bytes(range(40)))
    >>> check_signature(b"list", sign(b"list", key), public_half(key))
    """
    made: bytes = _signing(key).sign(DOMAIN + content)
    return made.hex()


def check_signature(content: bytes, signature: str, public: str) -> None:
    """Nothing, if *signature* on *content* is one of the key with that *public* half; else an error.

    >>> check_signature(b"list", "00" * 64, public_half(Key(bytes(range(40)))))
    Traceback (most recent call last):
    velado.errors.EvidenceRefused: The signature does not fit the pack. Something in it was changed after it was signed, or it was signed with another key. Do not rely on it; ask for the pack again, from who signed it.
    """
    ed25519 = _ed25519()
    from cryptography.exceptions import InvalidSignature

    try:
        known = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        known.verify(bytes.fromhex(signature), DOMAIN + content)
    except (InvalidSignature, ValueError):
        raise EvidenceRefused(
            "The signature does not fit the pack.",
            "Something in it was changed after it was signed, or it was signed with another key.",
            "Do not rely on it; ask for the pack again, from who signed it.",
        ) from None


def fingerprint(public: str) -> str:
    """A public key in sixteen digits by fours, to compare on the telephone.

    >>> fingerprint("00" * 32)
    '6668 7aad f862 bd77'
    """
    import hashlib

    digits = hashlib.sha256(bytes.fromhex(public)).hexdigest()[:16]
    return " ".join(digits[at : at + 4] for at in range(0, 16, 4))


def key_line(public: str) -> str:
    """A public key as a file holds it.

    >>> read_key_line(key_line("ab" * 32)) == "ab" * 32
    True
    """
    return f"velado-evidence ed25519 {public}\n"


def read_key_line(text: str) -> str:
    """The public key that *text* is, with or without the words before it.

    >>> read_key_line("abc")
    Traceback (most recent call last):
    velado.errors.ParameterError: This is no public key of evidence packs. A pack is compared with the 64 hexadecimal digits of its owner's. Let the owner run `velado evidence key`, and give what it prints.
    """
    found = _FILE.fullmatch(text.strip().lower())
    if found is None:
        raise ParameterError(
            "This is no public key of evidence packs.",
            "A pack is compared with the 64 hexadecimal digits of its owner's.",
            "Let the owner run `velado evidence key`, and give what it prints.",
        )
    return found[1]
