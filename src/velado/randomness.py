"""The one file that makes random sources: seeded for work that must repeat, secure for noise and keys.

Everything else receives its source as an argument. A seed gives the same release byte for byte, so the
seeded source is a counter-based generator whose stream NumPy promises to keep (PCG64).
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


def seeded(seed: int, *path: str) -> np.random.Generator:
    """A source that gives the same stream for the same *seed* and *path*, on every machine.

    *path* names the use (``seeded(0, "gfkmc")``), so that two parts of one run never share a stream and
    adding a part does not change the others.

    >>> int(seeded(0, "gfkmc").integers(100)) == int(seeded(0, "gfkmc").integers(100))
    True
    >>> seeded(0, "gfkmc").integers(100, size=3).tolist() == seeded(0, "mdav").integers(100, size=3).tolist()
    False
    """
    words = [byte for name in path for byte in (*name.encode(), 256)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


def secure() -> secrets.SystemRandom:
    """A source nobody can predict, from the operating system. For noise and keys.

    >>> 0 <= secure().random() < 1
    True
    """
    return secrets.SystemRandom()


class Draws(Protocol):
    """What a random operation on a column draws from: a NumPy Generator, or `KeyedDraws`.

    >>> source: Draws = KeyedDraws(bytes(32))
    >>> sorted(source.permutation(3).tolist())
    [0, 1, 2]
    """

    def permutation(self, x: int, /) -> npt.NDArray[Any]: ...

    def uniform(self, low: float, high: float, size: int, /) -> npt.NDArray[np.float64]: ...

    def laplace(self, loc: float, scale: float, size: int, /) -> npt.NDArray[np.float64]: ...


class KeyedDraws:
    """Draws that nobody without the 32-byte *secret* can redo, however many of them are known; the same again with it.

    Words come from SHAKE-256 of secret and a counter. A NumPy generator would repeat as well, but its state can be
    worked out from what it gave, and then everything else it gave.

    >>> KeyedDraws(bytes(32)).permutation(5).tolist() == KeyedDraws(bytes(32)).permutation(5).tolist()
    True
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32:
            raise ValueError("keyed draws need a secret of 32 bytes")
        self._secret = secret
        self._used = 0

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """The next *count* words of 64 bits."""
        stream = hashlib.shake_256(self._secret + self._used.to_bytes(8, "big"))
        self._used += 1
        return np.frombuffer(stream.digest(8 * count), dtype="<u8").astype(np.uint64)

    def permutation(self, x: int, /) -> npt.NDArray[np.int64]:
        """0..x-1 in an order of which every one is equally likely (two equal words have chance x^2 / 2^65)."""
        return np.argsort(self.words(x), kind="stable").astype(np.int64)

    def uniform(self, low: float, high: float, size: int, /) -> npt.NDArray[np.float64]:
        """Numbers evenly spread over low..high, neither end included."""
        share = ((self.words(size) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
        return low + (high - low) * share

    def laplace(self, loc: float, scale: float, size: int, /) -> npt.NDArray[np.float64]:
        """Numbers of density exp(-|x - loc| / scale) / (2 scale), by inversion."""
        share = self.uniform(-0.5, 0.5, size)
        noise: npt.NDArray[np.float64] = loc - scale * np.sign(share) * np.log1p(-2.0 * np.abs(share))
        return noise


class Tape:
    """Unpredictable to everyone without its 32-byte seed, and the same again for who has it.

    The stream is SHAKE-256 of seed, label and a block counter. A protocol role draws its keys and masks from a tape,
    so that it can be brought back after a crash from the seed and the messages it had received; the seed is as secret
    as the private key.

    >>> Tape(bytes(32), "keys").below(1000) == Tape(bytes(32), "keys").below(1000)
    True
    >>> Tape(bytes(32), "keys").bytes(4) == Tape(bytes(32), "masks").bytes(4)
    False
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
