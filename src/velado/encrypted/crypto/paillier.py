"""Paillier's encryption of signed whole numbers: E(a) E(b) = E(a + b), E(a)^k = E(k a), all modulo n^2, with g = n + 1.

Whom it protects: a ciphertext under a fresh obfuscator tells nothing to anyone without the private key, under the
decisional composite residuosity assumption (Paillier 1999). It does not say who made it, and anyone can change the
number inside: integrity is the message layer's work. What was computed from ciphertexts must be re-randomised before
it leaves, or its randomness shows how it was made; `Ciphertext.obfuscated` says whether that was done, and
`validation` refuses to write one that was not.

Signed numbers -half ... half stand for themselves modulo n; a sum that leaves the range comes back as another number, so
ranges are bounded beforehand (`packing`, `fixed_point`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import gmpy2
from gmpy2 import mpz

from velado.encrypted.crypto.grid_products import grid_products
from velado.encrypted.crypto.keys import PrivateKey, PublicKey
from velado.encrypted.crypto.modular import Whole, product, shared_products
from velado.encrypted.crypto.obfuscators import ObfuscatorPool
from velado.errors import CiphertextRefused, PlaintextOverflow


@dataclass(frozen=True, repr=False, slots=True)
class Ciphertext:
    """A number modulo n^2 under a key, and whether it carries an obfuscator of its own that nothing else shares."""

    value: Whole
    key: PublicKey
    obfuscated: bool = False

    def __repr__(self) -> str:
        state = "obfuscated" if self.obfuscated else "not obfuscated"
        return f"Ciphertext({state}, key {self.key.fingerprint.hex()[:16]})"


def encrypt(key: PublicKey, plaintext: Whole, pool: ObfuscatorPool) -> Ciphertext:
    """The plaintext under a fresh obfuscator: (1 + m n) s mod n^2. Cost: two products, if the pool is filled."""
    return encrypt_many(key, [plaintext], pool)[0]


def encrypt_many(key: PublicKey, plaintexts: Sequence[Whole], pool: ObfuscatorPool) -> list[Ciphertext]:
    """Each plaintext under an obfuscator of its own."""
    same_key(key, pool.key)
    reduced = [_in_range(key, m) for m in plaintexts]
    n, n2 = key.n, key.n2
    masks = pool.take(len(reduced))
    return [Ciphertext((1 + m * n) * s % n2, key, True) for m, s in zip(reduced, masks, strict=True)]


def obfuscate(ciphertexts: Sequence[Ciphertext], pool: ObfuscatorPool) -> list[Ciphertext]:
    """The same plaintexts under fresh obfuscators: what leaves a party must have gone through here or `encrypt`."""
    masks = pool.take(len(ciphertexts))
    for c in ciphertexts:
        same_key(c.key, pool.key)
    return [Ciphertext(c.value * s % c.key.n2, c.key, True) for c, s in zip(ciphertexts, masks, strict=True)]


def decrypt(private: PrivateKey, ciphertext: Ciphertext) -> int:
    """The signed plaintext."""
    return decrypt_many(private, [ciphertext])[0]


def decrypt_many(private: PrivateKey, ciphertexts: Sequence[Ciphertext], threads: int = 2) -> list[int]:
    """The signed plaintext of each; the two primes are worked on side by side."""
    key = private.public
    for c in ciphertexts:
        same_key(c.key, key)
    n, half = int(key.n), int(key.half)
    found = [int(m) for m in private.residues([c.value for c in ciphertexts], threads)]
    return [m - n if m > half else m for m in found]


def add(first: Ciphertext, second: Ciphertext) -> Ciphertext:
    """A ciphertext of the sum."""
    same_key(first.key, second.key)
    return Ciphertext(first.value * second.value % first.key.n2, first.key)


def add_plain(ciphertext: Ciphertext, plaintext: Whole) -> Ciphertext:
    """A ciphertext of the sum with a number in the clear."""
    key = ciphertext.key
    return Ciphertext(ciphertext.value * (1 + _in_range(key, plaintext) * key.n) % key.n2, key)


def multiply_plain(ciphertext: Ciphertext, factor: Whole) -> Ciphertext:
    """A ciphertext of the product with a signed number in the clear; a negative one costs an inverse, not a long power."""
    key = ciphertext.key
    (exponent,) = _exponents(key, [factor])
    base = gmpy2.invert(ciphertext.value, key.n2) if exponent < 0 else ciphertext.value
    return Ciphertext(gmpy2.powmod(base, abs(exponent), key.n2), key)


def sum_ciphertexts(ciphertexts: Sequence[Ciphertext]) -> Ciphertext:
    """A ciphertext of the sum of at least one."""
    key = _one_key(ciphertexts)
    return Ciphertext(product([c.value for c in ciphertexts], key.n2), key)


def dot(ciphertexts: Sequence[Ciphertext], factors: Sequence[Whole]) -> Ciphertext:
    """A ciphertext of sum_k factor_k m_k, by one product of powers with shared squarings."""
    return dots(ciphertexts, [factors])[0]


def dots(ciphertexts: Sequence[Ciphertext], columns: Sequence[Sequence[Whole]]) -> list[Ciphertext]:
    """`dot` with each column of factors: the tables of powers are made once, so a row times a matrix is cheaper still.

    For full-length factors and d columns of d entries: about d (b + d b / 8) products instead of 1.2 d^2 b.
    """
    key = _one_key(ciphertexts)
    if any(len(column) != len(ciphertexts) for column in columns):
        raise ValueError("a column of factors has one factor for each ciphertext")
    exponents = [_exponents(key, column) for column in columns]
    if len(ciphertexts) == 1 and len(columns) == 1:
        return [multiply_plain(ciphertexts[0], columns[0][0])]
    return [
        Ciphertext(value, key) for value in shared_products([c.value for c in ciphertexts], exponents, key.n2)
    ]


def matrix_dots(
    rows: Sequence[Sequence[Ciphertext]], columns: Sequence[Sequence[Whole]], executor: Executor | None = None
) -> list[list[Ciphertext]]:
    """An encrypted matrix times a plain one: every row's `dots`, with the fewest products (`grid_products`).

    One ciphertext that stands in several rows, as in a symmetric matrix, is squared along once for all of them. The
    products hold the interpreter's lock, so only an executor of processes spreads them; then every row is worked out by
    itself. What such workers are sent are ciphertexts and factors: run them on the machine that may know both.
    """
    keys = [_one_key(row) for row in rows]
    for row, key in zip(rows, keys, strict=True):
        same_key(key, keys[0])
        if any(len(column) != len(row) for column in columns):
            raise ValueError("a column of factors has one factor for each ciphertext")
    if not rows:
        return []
    key = keys[0]
    # One form for all columns, so that every row shares its tables.
    flat = _exponents(key, [factor for column in columns for factor in column])
    width = len(rows[0])
    exponents = [flat[start : start + width] for start in range(0, len(flat), width)]
    values = [[c.value for c in row] for row in rows]
    if executor is None and min(flat, default=0) >= 0:
        places: dict[Whole, int] = {}
        where = [[places.setdefault(value, len(places)) for value in row] for row in values]
        found: Iterable[list[Whole]] = grid_products(list(places), where, exponents, key.n2)
    else:
        work = partial(shared_products, columns=exponents, modulus=key.n2)
        found = map(work, values) if executor is None else executor.map(work, values)
    return [[Ciphertext(value, key) for value in row] for row in found]


def same_key(first: PublicKey, second: PublicKey) -> None:
    """Raise where two keys differ."""
    if first is not second and first.n != second.n:
        raise CiphertextRefused(
            "A ciphertext belongs to another key.",
            "Computing with it would give a number that means nothing.",
            "Check that all parties use the key of this job.",
        )


def _one_key(ciphertexts: Sequence[Ciphertext]) -> PublicKey:
    if not ciphertexts:
        raise ValueError("there is no key to be seen in no ciphertexts")
    key = ciphertexts[0].key
    for c in ciphertexts:
        same_key(c.key, key)
    return key


def _exponents(key: PublicKey, factors: Sequence[Whole]) -> list[Whole]:
    """The factors as exponents: signed where that makes them much shorter, modulo n where it does not."""
    residues = [mpz(f) % key.n for f in factors]
    signed = [r - key.n if r > key.half else r for r in residues]
    longest = max((r.bit_length() for r in signed), default=0)
    return signed if longest < key.bits - 64 else residues


def _in_range(key: PublicKey, plaintext: Whole) -> Whole:
    value = mpz(plaintext)
    if not -key.half <= value <= key.half:
        raise PlaintextOverflow(
            f"A plaintext needs {value.bit_length() + 1} bits and the key holds {key.bits - 1}.",
            "It would come back as another number.",
            "Use a longer key, fewer fractional bits, or tighter bounds.",
        )
    return value
