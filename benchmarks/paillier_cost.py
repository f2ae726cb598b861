"""How long an encrypted computation must take at least: operations counted, times what one was measured to cost.

A modular power is nearly all there is. Of n-bit keys: encrypting takes one full power modulo n^2 (ahead of time in a
pool), decrypting two powers of half the length modulo p^2 and q^2, adding one product modulo n^2.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gmpy2
from gmpy2 import mpz

from velado.learning.crypto.modular import Source, uniform
from velado.learning.crypto.paillier_keys import PrivateKey
from velado.randomness import secure


@dataclass(frozen=True)
class UnitCost:
    """Seconds on one core for one full power modulo n^2, one decryption by the two primes, and one product modulo n^2."""

    bits: int
    full_power: float
    crt_power: float
    multiplication: float


@dataclass(frozen=True)
class Operations:
    """How many of each a computation does; counts add up."""

    full_powers: int = 0
    crt_powers: int = 0
    multiplications: int = 0

    def __add__(self, other: Operations) -> Operations:
        return Operations(
            self.full_powers + other.full_powers,
            self.crt_powers + other.crt_powers,
            self.multiplications + other.multiplications,
        )

    def __mul__(self, times: int) -> Operations:
        return Operations(self.full_powers * times, self.crt_powers * times, self.multiplications * times)

    def seconds(self, cost: UnitCost, cores: int = 1) -> float:
        """The least time on so many cores, if nothing else cost anything."""
        total = (
            self.full_powers * cost.full_power
            + self.crt_powers * cost.crt_power
            + self.multiplications * cost.multiplication
        )
        return total / cores


def encryptions(count: int, pooled: bool = False) -> Operations:
    """Of *count* ciphertexts: a power each unless the pool has them, and two products."""
    return Operations(full_powers=0 if pooled else count, multiplications=2 * count)


def decryptions(count: int) -> Operations:
    """Of *count* ciphertexts, by who holds the key."""
    return Operations(crt_powers=count)


def packed_sum(clients: int, ciphertexts: int, pooled: bool = True) -> Operations:
    """Method 2 with each client's moments in so many ciphertexts: encrypt, add, re-randomise, decrypt."""
    added = Operations(multiplications=(clients - 1) * ciphertexts)
    return (
        encryptions(clients * ciphertexts, pooled)
        + added
        + encryptions(ciphertexts, pooled)
        + decryptions(ciphertexts)
    )


def matrix_product(rows: int, inner: int, columns: int, exponent_bits: int) -> Operations:
    """Encrypted matrix times plain matrix by shared squarings: the best window for tables that serve all columns."""
    one = min(
        inner * (1 << (w - 1)) / columns + exponent_bits + inner * exponent_bits / (w + 1)
        for w in range(1, 11)
    )
    return Operations(multiplications=round(rows * columns * one))


def measure(private: PrivateKey, random: Source | None = None, repeat: int = 5) -> UnitCost:
    """What one operation costs here and now: the least processor time of *repeat* runs on one core, so that other work does not count."""
    source = secure() if random is None else random
    key = private.public
    n, n2 = key.n, key.n2
    bases = [mpz(uniform(source, int(n2))) for _ in range(repeat)]
    full = min(_timed(partial(gmpy2.powmod, base, n, n2)) for base in bases)
    crt = min(_timed(partial(private.residues, [base], threads=1)) for base in bases)
    a, b = bases[0], bases[-1] + 1
    products = min(_timed(lambda: [a * b % n2 for _ in range(200)]) for _ in range(repeat)) / 200
    return UnitCost(key.bits, full, crt, products)


def _timed(work: Callable[[], Any]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start
