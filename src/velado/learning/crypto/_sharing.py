"""A secret of 32 bytes in shares, of which any *threshold* give it back and fewer say nothing (Shamir 1979).

The secret is a polynomial's value at 0 modulo the first prime above 2^256; the other coefficients are uniform. The share
of holder x is its value at x, for x = 1, 2, ...
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from velado.learning.crypto.modular import Tapelike

PRIME = (1 << 256) + 297
SECRET_BYTES = 32
SHARE_BYTES = 33


def split(secret: bytes, threshold: int, holders: Sequence[int], tape: Tapelike) -> dict[int, bytes]:
    """The share of every holder; the same tape gives the same polynomial whoever the holders are."""
    if len(secret) != SECRET_BYTES or threshold < 1 or min(holders) < 1 or len(set(holders)) != len(holders):
        raise ValueError("shares need a secret of 32 bytes and distinct holders from 1 on")
    polynomial = [int.from_bytes(secret, "big"), *(tape.below(PRIME) for _ in range(threshold - 1))]
    shares = {}
    for x in holders:
        value = 0
        for coefficient in reversed(polynomial):
            value = (value * x + coefficient) % PRIME
        shares[x] = value.to_bytes(SHARE_BYTES, "big")
    return shares


def join(shares: Mapping[int, bytes]) -> bytes | None:
    """The secret that these shares determine, by Lagrange's formula at 0; None where they determine none of 32 bytes."""
    secret = 0
    for x, share in shares.items():
        above, below = 1, 1
        for other in shares:
            if other != x:
                above = above * other % PRIME
                below = below * (other - x) % PRIME
        secret += int.from_bytes(share, "big") * above * pow(below, -1, PRIME)
    secret %= PRIME
    return secret.to_bytes(SECRET_BYTES, "big") if secret >> 256 == 0 else None


def well_formed(share: bytes) -> bool:
    """Whether bytes can be a share at all."""
    return len(share) == SHARE_BYTES and int.from_bytes(share, "big") < PRIME


# What two clients agree on and a third cannot know: masks that cancel, and sealed letters through somebody else's hands.
#
# X25519 (RFC 7748) agrees on a secret, HKDF-SHA-256 (RFC 5869) makes one key for each use of it, with the job and both
# names in it, ChaCha20 (RFC 8439) stretches a key to a mask, and ChaCha20-Poly1305 seals a letter. Every key is used for
# one mask or one letter, so a constant nonce is sound. All from `cryptography`; nothing here is our own cipher.

SEAL_BYTES = 16
_NONCE = bytes(12)


def public_of(secret: bytes) -> bytes:
    """The public key of 32 secret bytes."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def agreed(secret: bytes, public: bytes, job: str, *use: str) -> bytes | None:
    """The 32-byte key of one use between two; None where the public key is one that agrees on nothing."""
    try:
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(
            X25519PublicKey.from_public_bytes(public)
        )
    except ValueError:
        return None
    return derived(shared, job, *use)


def derived(secret: bytes, job: str, *use: str) -> bytes:
    """A key for one use of a secret within one job; the words of a use cannot run into one another."""
    info = b"".join(len(word.encode()).to_bytes(2, "big") + word.encode() for word in ("velado 1", *use))
    return HKDF(algorithm=SHA256(), length=32, salt=job.encode(), info=info).derive(secret)


def key_stream(key: bytes, count: int) -> bytes:
    """*count* bytes, uniform to whoever lacks the key."""
    return Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(count))


def mask(key: bytes, count: int, size: int) -> list[int]:
    """*count* numbers of *size* bytes each, uniform to whoever lacks the key."""
    stream = key_stream(key, count * size)
    return [int.from_bytes(stream[i * size : (i + 1) * size], "little") for i in range(count)]


def masked(values: Sequence[int], masks: Sequence[tuple[int, Sequence[int]]], size: int) -> list[int]:
    """The values plus every mask with its sign, modulo 2^(8 size)."""
    modulus = 1 << (8 * size)
    total = [value % modulus for value in values]
    for sign, numbers in masks:
        total = [(value + sign * number) % modulus for value, number in zip(total, numbers, strict=True)]
    return total


def seal(key: bytes, letter: bytes, about: bytes) -> bytes:
    """The letter, readable and genuine under the key alone, and bound to what it is about."""
    return ChaCha20Poly1305(key).encrypt(_NONCE, letter, about)


def unseal(key: bytes, sealed: bytes, about: bytes) -> bytes | None:
    """The letter, or None where it is not what was sealed."""
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, sealed, about)
    except InvalidTag:
        return None


def commitment(secret: bytes, job: str) -> bytes:
    """A value that only this secret fits, and that does not tell it."""
    return hashlib.sha256(b"velado 1 self mask" + job.encode() + secret).digest()
