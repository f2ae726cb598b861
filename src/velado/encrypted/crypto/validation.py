"""What arrives is checked before it is used: bytes of a known version and length, keys of a safe form, ciphertexts that are units of their key.

A key is written as version, kind, and its canonical bytes; ciphertexts as version, kind, fingerprint of their key,
count, and one fixed-length big-endian number each. Every decoder takes any bytes and either returns a value that
writes back to the same bytes or raises KeyRefused or CiphertextRefused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from velado.encrypted.crypto.keys import LEAST_BITS, MOST_BITS, PublicKey
from velado.encrypted.crypto.modular import Whole
from velado.encrypted.crypto.paillier import Ciphertext, same_key
from velado.errors import CiphertextRefused, KeyRefused

VERSION = 1
_KEY_KIND = 1
_CIPHERTEXTS_KIND = 2
_HEAD = 2 + 32 + 4


def ciphertext_size(key: PublicKey) -> int:
    """How many bytes one ciphertext takes: those of n, twice."""
    return 2 * ((key.bits + 7) // 8)


def ciphertexts_size(key: PublicKey, count: int) -> int:
    """How many bytes a message of *count* ciphertexts takes."""
    return _HEAD + count * ciphertext_size(key)


def key_to_bytes(key: PublicKey) -> bytes:
    """The key as it is sent."""
    return bytes([VERSION, _KEY_KIND]) + key.canonical


def key_from_bytes(
    data: bytes, minimum_bits: int = LEAST_BITS, fingerprint: bytes | None = None
) -> PublicKey:
    """The key in *data*, if its form is right, it is safe to use and, where *fingerprint* is given, it is the one expected."""
    if len(data) < 6 or len(data) > 6 + MOST_BITS // 8:
        raise _bad_key("The bytes of a key are cut short, or too many.")
    if data[0] != VERSION or data[1] != _KEY_KIND:
        raise _bad_key("The bytes of a key are of an unknown version or kind.")
    size = int.from_bytes(data[2:6], "big")
    if size != len(data) - 6 or size < 1 or data[6] == 0:
        raise _bad_key("The bytes of a key do not have the length they state.")
    key = PublicKey(int.from_bytes(data[6:], "big")).validate(minimum_bits)
    if fingerprint is not None and key.fingerprint != fingerprint:
        raise _bad_key("The key is not the one whose fingerprint was agreed on.")
    return key


def check_values(key: PublicKey, values: Sequence[Whole]) -> None:
    """Raise unless every value is a ciphertext under the key: 0 < c < n^2, coprime to n, and with an obfuscator other than 1.

    One gcd serves all: the product of the values modulo n shares a factor with n if one of them does.
    """
    n, n2 = key.n, key.n2
    together = mpz(1)
    for value in values:
        if not 0 < value < n2:
            raise _bad_ciphertext("A ciphertext is not between 0 and the square of its modulus.")
        residue = mpz(value) % n
        if residue == 1:
            raise _bad_ciphertext("A ciphertext carries no randomness.")
        together = together * residue % n
    if gmpy2.gcd(together, n) != 1:
        raise _bad_ciphertext("A ciphertext shares a factor with its modulus.")


def ciphertexts_to_bytes(key: PublicKey, ciphertexts: Sequence[Ciphertext]) -> bytes:
    """The ciphertexts as they are sent; one that was computed and not re-randomised does not leave."""
    size = ciphertext_size(key)
    for c in ciphertexts:
        same_key(c.key, key)
        if not c.obfuscated:
            raise CiphertextRefused(
                "A ciphertext that was computed was not re-randomised.",
                "Its randomness would show how it was made.",
                "Pass it through obfuscate() first.",
            )
    head = bytes([VERSION, _CIPHERTEXTS_KIND]) + key.fingerprint + len(ciphertexts).to_bytes(4, "big")
    return head + b"".join(int(c.value).to_bytes(size, "big") for c in ciphertexts)


def ciphertexts_from_bytes(
    key: PublicKey, data: bytes, count: int, seen: SeenCiphertexts | None = None
) -> list[Ciphertext]:
    """The *count* ciphertexts in *data*, each checked; with *seen*, none that was seen before.

    They arrive as somebody else's: what is passed on must be re-randomised here, so they count as not obfuscated.
    """
    size = ciphertext_size(key)
    if len(data) != _HEAD + count * size:
        raise _bad_ciphertext("The bytes of ciphertexts are cut short, or too many.")
    if data[0] != VERSION or data[1] != _CIPHERTEXTS_KIND:
        raise _bad_ciphertext("The bytes of ciphertexts are of an unknown version or kind.")
    if data[2:34] != key.fingerprint:
        raise _bad_ciphertext("The ciphertexts belong to another key.")
    if int.from_bytes(data[34:_HEAD], "big") != count:
        raise _bad_ciphertext("The bytes hold another number of ciphertexts than expected.")
    places = range(_HEAD, len(data), size)
    values = [mpz(int.from_bytes(data[start : start + size], "big")) for start in places]
    check_values(key, values)
    if seen is not None:
        seen.add([data[start : start + size] for start in places])
    return [Ciphertext(value, key) for value in values]


class SeenCiphertexts:
    """Remembers what arrived, so that a ciphertext sent again is refused: fresh ones never coincide by chance."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def add(self, encoded: Sequence[bytes]) -> None:
        """Take them all, or none and raise when one was seen before or stands twice."""
        digests = [hashlib.sha256(item).digest() for item in encoded]
        if len(set(digests)) != len(digests) or not self._digests.isdisjoint(digests):
            raise _bad_ciphertext("A ciphertext was sent before.")
        self._digests.update(digests)


def _bad_key(what: str) -> KeyRefused:
    return KeyRefused(
        what,
        "Encrypting under a key that is not the right one hands the data to somebody else.",
        "Ask the key's owner to send it again.",
    )


def _bad_ciphertext(what: str) -> CiphertextRefused:
    return CiphertextRefused(
        what,
        "Computing with it could give a wrong result, or give away a secret when it is decrypted.",
        "Ask its sender to encrypt again under the key of this job.",
    )
