"""The one file that makes random sources: seeded for work that must repeat, secure for noise and keys.

Everything else receives its source as an argument. A seed gives the same release byte for byte, so the
seeded source is a counter-based generator whose stream NumPy promises to keep (PCG64).
"""

from __future__ import annotations

import hashlib
import secrets

import numpy as np


def seeded(seed: int, *path: str) -> np.random.Generator:
    """A source that gives the same stream for the same *seed* and *path*, on every machine.

    *path* names the use (``seeded(0, "gfkmc")``), so that two parts of one run never share a stream and
    adding a part does not change the others.
    """
    words = [byte for name in path for byte in (*name.encode(), 256)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


def secure() -> secrets.SystemRandom:
    """A source nobody can predict, from the operating system. For noise and keys."""
    return secrets.SystemRandom()


class Tape:
    """Unpredictable to everyone without its 32-byte seed, and the same again for who has it.

    The stream is SHAKE-256 of seed, label and a block counter. A protocol role draws its keys and masks from a tape,
    so that it can be brought back after a crash from the seed and the messages it had received; the seed is as secret
    as the private key.
    """

    _BLOCK = 4096

    def __init__(self, seed: bytes, label: str = "") -> None:
        if len(seed) != 32:
            raise ValueError("a tape's seed has 32 bytes")
        self._prefix = seed + len(label.encode()).to_bytes(4, "big") + label.encode()
        self._counter = 0
        self._buffer = b""

    @staticmethod
    def fresh_seed() -> bytes:
        """32 bytes nobody can predict."""
        return secrets.token_bytes(32)

    def bytes(self, count: int) -> bytes:
        """The next *count* bytes."""
        while len(self._buffer) < count:
            block = hashlib.shake_256(self._prefix + self._counter.to_bytes(8, "big"))
            self._buffer += block.digest(max(self._BLOCK, count))
            self._counter += 1
        out, self._buffer = self._buffer[:count], self._buffer[count:]
        return out

    def below(self, limit: int) -> int:
        """A uniformly random whole number 0 <= x < limit, by rejection."""
        size, extra = (limit.bit_length() + 7) // 8, -limit.bit_length() % 8
        while True:
            value = int.from_bytes(self.bytes(size), "big") >> extra
            if value < limit:
                return value

    def fork(self, label: str) -> Tape:
        """Another tape that shares nothing with this one but its seed; the order of draws here does not matter there."""
        seed = hashlib.shake_256(b"fork" + self._prefix + label.encode()).digest(32)
        return Tape(seed, label)
