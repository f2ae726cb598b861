"""Masks that cancel: the coordinator learns the sum of the clients' figures, and nothing of one client's.

Clients u < v agree on a key by X25519, and from it on one stream of 64-bit words for every message of the run; u adds the
words to its figures, v subtracts them, modulo 2^64 (the pairwise masks of Bonawitz et al. 2017). Summed over all members they
cancel. There are no shares to recover from a loss with, because none could be used: exact sums over two different
sets of clients tell, by their difference, what one client said. So the members are fixed by the first message a client
answers, and a round that one of them misses is asked again under new masks.

The coordinator passes the public keys on. One that follows the protocol learns sums; one that put keys of its own in between would
learn more, and is found out where the clients compare `keys_digest`, which every one of them and the fit's file show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from velado.errors import ParameterError
from velado.learning.crypto import _sharing as pairwise
from velado.randomness import Tape

Figures = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
KEY_BYTES = 32


def public_key(secret: bytes) -> bytes:
    """What the others need to agree on masks with the client that has *secret*."""
    return pairwise.public_of(_mask_secret(secret))


def noise_tape(secret: bytes, step: int) -> Tape:
    """The client's own source of noise for one step: the same again for the same step, and nobody else's."""
    return Tape(secret, f"federated noise {step}")


def masked(
    figures: Figures, secret: bytes, members: Sequence[int], keys: Sequence[bytes], job: str, label: str
) -> Words:
    """The figures under one mask for every other member; *label* must never be used twice in a run."""
    own = keys.index(public_key(secret))
    total = figures.astype(np.int64).view(np.uint64).copy()
    for at, key in enumerate(keys):
        if at == own:
            continue
        pair = [str(number) for number in sorted((members[own], members[at]))]
        agreed = pairwise.agreed(_mask_secret(secret), key, job, "federated mask", label, *pair)
        if agreed is None:
            raise ParameterError(
                "A key that another client sent agrees on nothing.",
                "A mask made from it would hide nothing.",
                "Let that client start again.",
            )
        words = np.frombuffer(pairwise.key_stream(agreed, 8 * figures.size), dtype="<u8")
        total = total + words if members[own] < members[at] else total - words
    return total


def summed(vectors: Iterable[Words]) -> Figures:
    """The sum of all members' figures: their masks have cancelled."""
    total = np.add.reduce([np.asarray(vector, dtype=np.uint64) for vector in vectors])
    return np.asarray(total, dtype=np.uint64).view(np.int64)


def keys_digest(members: Sequence[int], keys: Sequence[bytes]) -> str:
    """A short text that is the same for all who were given the same keys; to be compared by telephone."""
    said = b"".join(number.to_bytes(4, "big") + key for number, key in zip(members, keys, strict=True))
    text = hashlib.sha256(b"velado federated keys" + said).hexdigest()[:24]
    return " ".join(text[at : at + 4] for at in range(0, 24, 4))


def _mask_secret(secret: bytes) -> bytes:
    return Tape(secret, "federated masks").bytes(32)
