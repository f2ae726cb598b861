"""A secret of 32 bytes in shares, of which any *threshold* give it back and fewer say nothing (Shamir 1979).

The secret is a polynomial's value at 0 modulo the first prime above 2^256; the other coefficients are uniform. The share
of holder x is its value at x, for x = 1, 2, ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from velado.encrypted.crypto.modular import Tapelike

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
