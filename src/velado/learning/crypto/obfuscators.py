"""The random n-th residues that hide plaintexts: made ahead of time, handed out once each, never twice.

A Paillier ciphertext is (1 + m n) s mod n^2 with s = r^n for a fresh r; nearly all of its cost is s, which does not
depend on m. A pool makes them before they are needed. Three makers:

* `FullPower` (default): r uniform modulo n, as in Paillier's proof. One full power each.
* `OwnerPower`: the same distribution by the owner of the private key, at under a third of the cost.
* `ShortPower` (only when asked for, as clients of masked regression do): h^x with h = (-y^2)^n fixed and x of half the key's length (Damgard, Jurik and
  Nielsen 2010, section 4.2), some ten times faster. It rests on one assumption more: that such powers with short
  exponents cannot be told from random n-th residues. That holds for moduli p = q = 3 mod 4 with gcd(p-1, q-1) = 2 under
  the assumptions of that paper; a public key cannot prove that it is of that kind.
"""

from __future__ import annotations

import threading
from collections import deque
from multiprocessing.util import register_after_fork
from types import TracebackType
from typing import NoReturn, Protocol

import gmpy2
from gmpy2 import mpz

from velado.errors import ParameterError
from velado.learning.crypto.modular import Source, Whole, powers, product, uniform
from velado.learning.crypto.paillier_keys import PrivateKey, PublicKey
from velado.randomness import secure


class _Maker(Protocol):
    """Makes fresh n-th residues for one key."""

    @property
    def key(self) -> PublicKey:
        """The key they belong to."""
        ...

    def make(self, count: int) -> list[Whole]:
        """*count* new ones, independent of all before."""
        ...


class FullPower:
    """r^n mod n^2 with r uniform among the units modulo n.

    >>> maker = FullPower(PrivateKey(1009, 1019).public)
    >>> len(maker.make(2))
    2
    """

    def __init__(self, key: PublicKey, random: Source | None = None, threads: int = 2) -> None:
        self.key = key
        self._random = secure() if random is None else random
        self._threads = threads

    def make(self, count: int) -> list[Whole]:
        """*count* full powers, on all threads."""
        n = int(self.key.n)
        bases: list[Whole] = []
        while len(bases) < count:
            r = uniform(self._random, n)
            if gmpy2.gcd(r, n) == 1:
                bases.append(mpz(r))
        return powers(bases, self.key.n, self.key.n2, self._threads)


class OwnerPower:
    """The same distribution as `FullPower`, made modulo p^2 and q^2 by who knows them.

    >>> len(OwnerPower(PrivateKey(1009, 1019)).make(3))
    3
    """

    def __init__(self, private: PrivateKey, random: Source | None = None, threads: int = 2) -> None:
        self.key = private.public
        self._private = private
        self._random = secure() if random is None else random
        self._threads = threads

    def make(self, count: int) -> list[Whole]:
        """*count* residues from uniform units modulo p and modulo q."""
        p, q = int(self._private.p), int(self._private.q)
        pairs = [(1 + uniform(self._random, p - 1), 1 + uniform(self._random, q - 1)) for _ in range(count)]
        return self._private.random_residues(pairs, self._threads)


class ShortPower:
    """h^x mod n^2 with a fixed n-th residue h and a random x of half the key's bits; see the module for what it assumes.

    Powers of h by a table h^(d 2^(w i)), 0 < d < 2^w: bits/(2 w) multiplications each. The table takes 12 MB at 3072 bits;
    a narrower window has a smaller one, which pays for a hundred powers or fewer.

    >>> len(ShortPower(PrivateKey(1009, 1019).public, accept_short_exponents=True).make(2))
    2
    """

    def __init__(
        self,
        key: PublicKey,
        random: Source | None = None,
        *,
        accept_short_exponents: bool = False,
        window: int = 6,
    ) -> None:
        if not accept_short_exponents:
            raise ParameterError(
                "Short exponents were not asked for.",
                "They rest on an assumption that full powers do not need.",
                "Pass accept_short_exponents=True, or use FullPower.",
            )
        self.key, self._window = key, window
        self._random = secure() if random is None else random
        n, n2 = int(key.n), key.n2
        y = uniform(self._random, n)
        while gmpy2.gcd(y, n) != 1:
            y = uniform(self._random, n)
        base = gmpy2.powmod(-(mpz(y) ** 2) % n, n, n2)
        self._windows = -(-((key.bits + 1) // 2) // self._window)
        self._table: list[list[Whole]] = []
        for _ in range(self._windows):
            row = [mpz(1)]
            for _ in range((1 << self._window) - 1):
                row.append(row[-1] * base % n2)
            self._table.append(row)
            base = row[-1] * base % n2

    def make(self, count: int) -> list[Whole]:
        """*count* powers of h by table look-up."""
        return [self._one() for _ in range(count)]

    def _one(self) -> Whole:
        # One draw for all digits: asking the operating system for six bits at a time takes longer than the products.
        x = uniform(self._random, 1 << (self._window * self._windows))
        mask = (1 << self._window) - 1
        digits = [x >> (self._window * i) & mask for i in range(self._windows)]
        return product(
            [row[digit] for row, digit in zip(self._table, digits, strict=True) if digit], self.key.n2
        )


class ObfuscatorPool:
    """Hands out each residue of a maker once, first made first out; makes what is lacking on the spot.

    `keep(count)` starts a thread that refills the pool behind the caller's back until `close()`. The order is that of
    making, so that a maker with a seeded tape gives the same sequence again whether or not the pool was filled ahead.
    A pool cannot be copied or sent to another process, and a forked process finds it empty: both would use a residue
    twice, and two ciphertexts with one residue show the difference of their plaintexts to anyone. (Processes made by
    multiprocessing are seen; after a bare os.fork, or with a maker that draws from a tape, make a new pool yourself.)

    >>> pool = ObfuscatorPool(FullPower(PrivateKey(1009, 1019).public))
    >>> pool.fill(2)
    >>> pool.ready
    2
    """

    _BATCH = 4

    def __init__(self, maker: _Maker) -> None:
        self._maker = maker
        self._after_fork()
        register_after_fork(self, ObfuscatorPool._after_fork)

    def _after_fork(self) -> None:
        self._ready: deque[Whole] = deque()
        self._making = threading.RLock()
        self._changed = threading.Condition()
        self._target = 0
        self._keeper: threading.Thread | None = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("A pool of obfuscators cannot be copied: each may be used once.")

    @property
    def key(self) -> PublicKey:
        """The key the residues belong to."""
        return self._maker.key

    @property
    def ready(self) -> int:
        """How many are waiting."""
        return len(self._ready)

    def fill(self, count: int) -> None:
        """Make as many as are lacking to *count* now."""
        with self._making:
            lacking = count - len(self._ready)
            if lacking > 0:
                self._ready.extend(self._maker.make(lacking))

    def take(self, count: int) -> list[Whole]:
        """*count* residues that nobody had before."""
        with self._changed:
            if len(self._ready) >= count:
                taken = [self._ready.popleft() for _ in range(count)]
                self._changed.notify_all()
                return taken
        # The maker's lock keeps the order: what the keeper has under way comes before what is made here.
        with self._making, self._changed:
            while len(self._ready) < count:
                self._ready.extend(self._maker.make(count - len(self._ready)))
            taken = [self._ready.popleft() for _ in range(count)]
            self._changed.notify_all()
            return taken

    def keep(self, count: int) -> None:
        """Refill the pool to *count* in the background from now on."""
        with self._changed:
            self._target = count
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._refill, name="obfuscators", daemon=True)
                self._keeper.start()
            self._changed.notify_all()

    def _refill(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._target or len(self._ready) < self._target)
                if not self._target:
                    return
            with self._making:
                lacking = self._target - len(self._ready)
                if lacking > 0:
                    self._ready.extend(self._maker.make(min(lacking, self._BATCH)))

    def close(self) -> None:
        """Stop refilling and forget what was not used."""
        with self._changed:
            self._target = 0
            keeper, self._keeper = self._keeper, None
            self._changed.notify_all()
        if keeper is not None:
            keeper.join()
        with self._making, self._changed:
            self._ready.clear()

    def __enter__(self) -> ObfuscatorPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
