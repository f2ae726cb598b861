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

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import gmpy2
from gmpy2 import mpz

from velado.errors import CiphertextRefused, KeyRefused, ParameterError, PlaintextOverflow
from velado.learning.crypto.modular import Whole, grid_products, product, shared_products
from velado.learning.crypto.obfuscators import ObfuscatorPool
from velado.learning.crypto.paillier_keys import LEAST_BITS, MOST_BITS, PrivateKey, PublicKey
from velado.text import say

# Several signed sums in one plaintext: each in a slot wide enough that no sum can reach its neighbour.
#
# A plaintext holds P = sum_i v_i 2^(o_i). When at most *terms* packed plaintexts are added and every |v_i| <= B_i, a sum
# lies within terms * B_i, so a slot of bits(terms * B_i) + 1 bits keeps it, sign and all; *guard* further bits make a
# party that breaks its bound show up (as PlaintextOverflow at unpacking) instead of spilling at once. Slots are found by
# first fit, widest first, from public figures alone: every party finds the same layout. The figures are in bits:
# sum of widths / (bits of n - 2) ciphertexts, about a twentieth of one value each at 3072 bits and q = 50.


class _Slot(NamedTuple):
    """Where a value lies: in which plaintext, from which bit, over how many bits."""

    plaintext: int
    offset: int
    width: int


@dataclass(frozen=True)
class Packing:
    """The layout for values with |v_i| <= bounds[i], of which at most *terms* are added up, in plaintexts of some bits.

    >>> packing = Packing((100, 100), terms=3, plaintext_bits=64)
    >>> (one,), (other,) = packing.pack([7, -100]), packing.pack([1, 40])
    >>> packing.unpack([one + other])
    [8, -60]
    """

    bounds: tuple[int, ...]
    terms: int
    plaintext_bits: int
    guard: int = 1

    def __post_init__(self) -> None:
        if not self.bounds or min(self.bounds) < 0 or self.terms < 1 or self.guard < 0:
            raise ParameterError(
                "A packing needs bounds of 0 or more and at least one term.",
                "The slots follow from them.",
                "Give one bound for each value and the most plaintexts that are added.",
            )
        widest = max(self._width(bound) for bound in self.bounds)
        if widest > self.plaintext_bits:
            raise PlaintextOverflow(
                say(
                    "A sum of {terms} values needs a slot of {widest} bits and a plaintext has "
                    "{plaintext_bits}.",
                    terms=self.terms,
                    widest=widest,
                    plaintext_bits=self.plaintext_bits,
                ),
                "It would come back as another number.",
                say(
                    "Use a key of {widest} bits or more, fewer fractional bits, or tighter bounds.",
                    widest=widest + 2,
                ),
            )

    @classmethod
    def for_key(cls, key: PublicKey, bounds: Sequence[int], terms: int, guard: int = 1) -> Packing:
        """The layout under a key: packed sums stay within its signed plaintexts."""
        return cls(tuple(int(b) for b in bounds), terms, key.bits - 2, guard)

    def _width(self, bound: int) -> int:
        return (self.terms * bound).bit_length() + 1 + self.guard

    @cached_property
    def slots(self) -> tuple[_Slot, ...]:
        """The slot of each value, in the order of the bounds."""
        widths = [self._width(bound) for bound in self.bounds]
        used: list[int] = []
        found: dict[int, _Slot] = {}
        for index in sorted(range(len(widths)), key=lambda i: (-widths[i], i)):
            width = widths[index]
            place = next((k for k, bits in enumerate(used) if bits + width <= self.plaintext_bits), len(used))
            if place == len(used):
                used.append(0)
            found[index] = _Slot(place, used[place], width)
            used[place] += width
        return tuple(found[index] for index in range(len(widths)))

    @cached_property
    def plaintexts(self) -> int:
        """How many plaintexts the values take."""
        return 1 + max(slot.plaintext for slot in self.slots)

    @cached_property
    def _biases(self) -> tuple[int, ...]:
        """Half of every slot of a plaintext: added, it makes all slots non-negative, so that they can be cut apart."""
        biases = [0] * self.plaintexts
        for slot in self.slots:
            biases[slot.plaintext] += 1 << (slot.offset + slot.width - 1)
        return tuple(biases)

    @cached_property
    def _used(self) -> tuple[int, ...]:
        used = [0] * self.plaintexts
        for slot in self.slots:
            used[slot.plaintext] = max(used[slot.plaintext], slot.offset + slot.width)
        return tuple(used)

    def pack(self, values: Sequence[int]) -> list[int]:
        """The plaintexts that hold one party's values; one beyond its bound is refused."""
        if len(values) != len(self.bounds):
            raise ValueError("a packing takes one value for each bound")
        plaintexts = [0] * self.plaintexts
        for index, (value, slot) in enumerate(zip(values, self.slots, strict=True)):
            if abs(value) > self.bounds[index]:
                raise self._too_large(index)
            plaintexts[slot.plaintext] += int(value) << slot.offset
        return plaintexts

    def unpack(self, plaintexts: Sequence[int], terms: int | None = None) -> list[int]:
        """The sums, exactly; one that *terms* honest parties cannot have reached is refused."""
        if len(plaintexts) != self.plaintexts:
            raise ValueError("a packing unpacks as many plaintexts as it packs")
        most = self.terms if terms is None else terms
        if not 1 <= most <= self.terms:
            raise ValueError("no more terms may be unpacked than the slots were made for")
        raised = [int(p) + bias for p, bias in zip(plaintexts, self._biases, strict=True)]
        for value, bits in zip(raised, self._used, strict=True):
            if value < 0 or value >> bits:
                raise self._too_large(None)
        sums = []
        for index, slot in enumerate(self.slots):
            cut = raised[slot.plaintext] >> slot.offset & ((1 << slot.width) - 1)
            value = cut - (1 << (slot.width - 1))
            if abs(value) > most * self.bounds[index]:
                raise self._too_large(index)
            sums.append(value)
        return sums

    def _too_large(self, index: int | None) -> PlaintextOverflow:
        what = say("A packed sum is larger than the public bounds allow.")
        if index is not None:
            count = len(self.bounds)
            what = say(
                "Value {index} of {count} is larger than the public bounds allow.", index=index, count=count
            )
        return PlaintextOverflow(
            what,
            "It would spill into its neighbours, or a party broke its bounds.",
            "Check every party's bounds and row count.",
        )


@dataclass(frozen=True, repr=False, slots=True)
class Ciphertext:
    """A number modulo n^2 under a key, and whether it carries an obfuscator of its own that nothing else shares.

    >>> private = PrivateKey(1009, 1019)
    >>> decrypt(private, Ciphertext(1 + 5 * private.public.n, private.public))
    5
    """

    value: Whole
    key: PublicKey
    obfuscated: bool = False

    def __repr__(self) -> str:
        state = "obfuscated" if self.obfuscated else "not obfuscated"
        return f"Ciphertext({state}, key {self.key.fingerprint.hex()[:16]})"


def encrypt(key: PublicKey, plaintext: Whole, pool: ObfuscatorPool) -> Ciphertext:
    """The plaintext under a fresh obfuscator: (1 + m n) s mod n^2. Cost: two products, if the pool is filled.

    >>> from velado.learning.crypto.obfuscators import FullPower
    >>> private = PrivateKey(1009, 1019)
    >>> decrypt(private, encrypt(private.public, -7, ObfuscatorPool(FullPower(private.public))))
    -7
    """
    return encrypt_many(key, [plaintext], pool)[0]


def encrypt_many(key: PublicKey, plaintexts: Sequence[Whole], pool: ObfuscatorPool) -> list[Ciphertext]:
    """Each plaintext under an obfuscator of its own.

    >>> from velado.learning.crypto.obfuscators import FullPower
    >>> private = PrivateKey(1009, 1019)
    >>> pool = ObfuscatorPool(FullPower(private.public))
    >>> decrypt_many(private, encrypt_many(private.public, [1, -2], pool))
    [1, -2]
    """
    _same_key(key, pool.key)
    reduced = [_in_range(key, m) for m in plaintexts]
    n, n2 = key.n, key.n2
    masks = pool.take(len(reduced))
    return [Ciphertext((1 + m * n) * s % n2, key, True) for m, s in zip(reduced, masks, strict=True)]


def obfuscate(ciphertexts: Sequence[Ciphertext], pool: ObfuscatorPool) -> list[Ciphertext]:
    """The same plaintexts under fresh obfuscators: what leaves a party must have gone through here or `encrypt`.

    >>> from velado.learning.crypto.obfuscators import FullPower
    >>> private = PrivateKey(1009, 1019)
    >>> pool = ObfuscatorPool(FullPower(private.public))
    >>> (two,) = obfuscate([Ciphertext(1 + 2 * private.public.n, private.public)], pool)
    >>> two.obfuscated, decrypt(private, two)
    (True, 2)
    """
    masks = pool.take(len(ciphertexts))
    for c in ciphertexts:
        _same_key(c.key, pool.key)
    return [Ciphertext(c.value * s % c.key.n2, c.key, True) for c, s in zip(ciphertexts, masks, strict=True)]


def decrypt(private: PrivateKey, ciphertext: Ciphertext) -> int:
    """The signed plaintext.

    >>> private = PrivateKey(1009, 1019)
    >>> decrypt(private, Ciphertext(1 + 7 * private.public.n, private.public))
    7
    """
    return decrypt_many(private, [ciphertext])[0]


def decrypt_many(private: PrivateKey, ciphertexts: Sequence[Ciphertext], threads: int = 2) -> list[int]:
    """The signed plaintext of each; the two primes are worked on side by side.

    >>> private = PrivateKey(1009, 1019)
    >>> decrypt_many(private, [Ciphertext(1 + m * private.public.n, private.public) for m in (2, 3)])
    [2, 3]
    """
    key = private.public
    for c in ciphertexts:
        _same_key(c.key, key)
    n, half = int(key.n), int(key.half)
    found = [int(m) for m in private.residues([c.value for c in ciphertexts], threads)]
    return [m - n if m > half else m for m in found]


def add(first: Ciphertext, second: Ciphertext) -> Ciphertext:
    """A ciphertext of the sum.

    >>> private = PrivateKey(1009, 1019)
    >>> two, three = (Ciphertext(1 + m * private.public.n, private.public) for m in (2, 3))
    >>> decrypt(private, add(two, three))
    5
    """
    _same_key(first.key, second.key)
    return Ciphertext(first.value * second.value % first.key.n2, first.key)


def add_plain(ciphertext: Ciphertext, plaintext: Whole) -> Ciphertext:
    """A ciphertext of the sum with a number in the clear.

    >>> private = PrivateKey(1009, 1019)
    >>> two, three = (Ciphertext(1 + m * private.public.n, private.public) for m in (2, 3))
    >>> decrypt(private, add_plain(two, 40))
    42
    """
    key = ciphertext.key
    return Ciphertext(ciphertext.value * (1 + _in_range(key, plaintext) * key.n) % key.n2, key)


def multiply_plain(ciphertext: Ciphertext, factor: Whole) -> Ciphertext:
    """A ciphertext of the product with a signed number in the clear; a negative one costs an inverse, not a long power.

    >>> private = PrivateKey(1009, 1019)
    >>> two, three = (Ciphertext(1 + m * private.public.n, private.public) for m in (2, 3))
    >>> decrypt(private, multiply_plain(three, -5))
    -15
    """
    key = ciphertext.key
    (exponent,) = _exponents(key, [factor])
    base = gmpy2.invert(ciphertext.value, key.n2) if exponent < 0 else ciphertext.value
    return Ciphertext(gmpy2.powmod(base, abs(exponent), key.n2), key)


def sum_ciphertexts(ciphertexts: Sequence[Ciphertext]) -> Ciphertext:
    """A ciphertext of the sum of at least one.

    >>> private = PrivateKey(1009, 1019)
    >>> two, three = (Ciphertext(1 + m * private.public.n, private.public) for m in (2, 3))
    >>> decrypt(private, sum_ciphertexts([two, three, three]))
    8
    """
    key = _one_key(ciphertexts)
    return Ciphertext(product([c.value for c in ciphertexts], key.n2), key)


def dot(ciphertexts: Sequence[Ciphertext], factors: Sequence[Whole]) -> Ciphertext:
    """A ciphertext of sum_k factor_k m_k, by one product of powers with shared squarings.

    >>> private = PrivateKey(1009, 1019)
    >>> two, three = (Ciphertext(1 + m * private.public.n, private.public) for m in (2, 3))
    >>> decrypt(private, dot([two, three], [10, 1]))
    23
    """
    return dots(ciphertexts, [factors])[0]


def dots(ciphertexts: Sequence[Ciphertext], columns: Sequence[Sequence[Whole]]) -> list[Ciphertext]:
    """`dot` with each column of factors: the tables of powers are made once, so a row times a matrix is cheaper still.

    For full-length factors and d columns of d entries: about d (b + d b / 8) products instead of 1.2 d^2 b.

    >>> private = PrivateKey(1009, 1019)
    >>> two, three = (Ciphertext(1 + m * private.public.n, private.public) for m in (2, 3))
    >>> decrypt_many(private, dots([two, three], [[10, 1], [1, 10]]))
    [23, 32]
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

    >>> private = PrivateKey(1009, 1019)
    >>> two, three = (Ciphertext(1 + m * private.public.n, private.public) for m in (2, 3))
    >>> [decrypt_many(private, row) for row in matrix_dots([[two, three], [three, two]], [[1, 0], [0, 1]])]
    [[2, 3], [3, 2]]
    """
    keys = [_one_key(row) for row in rows]
    for row, key in zip(rows, keys, strict=True):
        _same_key(key, keys[0])
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


def _same_key(first: PublicKey, second: PublicKey) -> None:
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
        _same_key(c.key, key)
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
            say(
                "A plaintext needs {bit_length} bits and the key holds {bits}.",
                bit_length=value.bit_length() + 1,
                bits=key.bits - 1,
            ),
            "It would come back as another number.",
            "Use a longer key, fewer fractional bits, or tighter bounds.",
        )
    return value


# What arrives is checked before it is used: bytes of a known version and length, keys of a safe form, ciphertexts that are units of their key.
#
# A key is written as version, kind, and its canonical bytes; ciphertexts as version, kind, fingerprint of their key,
# count, and one fixed-length big-endian number each. Every decoder takes any bytes and either returns a value that
# writes back to the same bytes or raises KeyRefused or CiphertextRefused.

VERSION = 1
_KEY_KIND = 1
_CIPHERTEXTS_KIND = 2
_HEAD = 2 + 32 + 4


def ciphertext_size(key: PublicKey) -> int:
    """How many bytes one ciphertext takes: those of n, twice.

    >>> ciphertext_size(PrivateKey(1009, 1019).public)
    6
    """
    return 2 * ((key.bits + 7) // 8)


def ciphertexts_size(key: PublicKey, count: int) -> int:
    """How many bytes a message of *count* ciphertexts takes.

    >>> ciphertexts_size(PrivateKey(1009, 1019).public, 3)  # a head of 38 bytes, and 6 each
    56
    """
    return _HEAD + count * ciphertext_size(key)


def key_to_bytes(key: PublicKey) -> bytes:
    """The key as it is sent.

    >>> key_to_bytes(PublicKey(1009 * 1019)).hex()  # version, kind, length, n
    '0101000000030fb04b'
    """
    return bytes([VERSION, _KEY_KIND]) + key.canonical


def key_from_bytes(
    data: bytes, minimum_bits: int = LEAST_BITS, fingerprint: bytes | None = None
) -> PublicKey:
    """The key in *data*, if its form is right, it is safe to use and, where *fingerprint* is given, it is the one expected.

    >>> key_from_bytes(key_to_bytes(PublicKey(2**2203 - 1)))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.KeyRefused: The modulus of the key is a prime...
    """
    if len(data) < 6 or len(data) > 6 + MOST_BITS // 8:
        raise _bad_key(say("The bytes of a key are cut short, or too many."))
    if data[0] != VERSION or data[1] != _KEY_KIND:
        raise _bad_key(say("The bytes of a key are of an unknown version or kind."))
    size = int.from_bytes(data[2:6], "big")
    if size != len(data) - 6 or size < 1 or data[6] == 0:
        raise _bad_key(say("The bytes of a key do not have the length they state."))
    key = PublicKey(int.from_bytes(data[6:], "big")).validate(minimum_bits)
    if fingerprint is not None and key.fingerprint != fingerprint:
        raise _bad_key(say("The key is not the one whose fingerprint was agreed on."))
    return key


def check_values(key: PublicKey, values: Sequence[Whole]) -> None:
    """Raise unless every value is a ciphertext under the key: 0 < c < n^2, coprime to n, and with an obfuscator other than 1.

    One gcd serves all: the product of the values modulo n shares a factor with n if one of them does.

    >>> check_values(PublicKey(1009 * 1019), [1009])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.CiphertextRefused: A ciphertext shares a factor with its modulus...
    """
    n, n2 = key.n, key.n2
    together = mpz(1)
    for value in values:
        if not 0 < value < n2:
            raise _bad_ciphertext(say("A ciphertext is not between 0 and the square of its modulus."))
        residue = mpz(value) % n
        if residue == 1:
            raise _bad_ciphertext(say("A ciphertext carries no randomness."))
        together = together * residue % n
    if gmpy2.gcd(together, n) != 1:
        raise _bad_ciphertext(say("A ciphertext shares a factor with its modulus."))


def ciphertexts_to_bytes(key: PublicKey, ciphertexts: Sequence[Ciphertext]) -> bytes:
    """The ciphertexts as they are sent; one that was computed and not re-randomised does not leave.

    >>> from velado.learning.crypto.obfuscators import FullPower
    >>> private = PrivateKey(1009, 1019)
    >>> pool = ObfuscatorPool(FullPower(private.public))
    >>> len(ciphertexts_to_bytes(private.public, encrypt_many(private.public, [1, 2], pool)))
    50
    """
    size = ciphertext_size(key)
    for c in ciphertexts:
        _same_key(c.key, key)
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

    >>> from velado.learning.crypto.obfuscators import FullPower
    >>> private = PrivateKey(1009, 1019)
    >>> pool = ObfuscatorPool(FullPower(private.public))
    >>> data = ciphertexts_to_bytes(private.public, encrypt_many(private.public, [1, 2], pool))
    >>> decrypt_many(private, ciphertexts_from_bytes(private.public, data, 2))
    [1, 2]
    """
    size = ciphertext_size(key)
    if len(data) != _HEAD + count * size:
        raise _bad_ciphertext(say("The bytes of ciphertexts are cut short, or too many."))
    if data[0] != VERSION or data[1] != _CIPHERTEXTS_KIND:
        raise _bad_ciphertext(say("The bytes of ciphertexts are of an unknown version or kind."))
    if data[2:34] != key.fingerprint:
        raise _bad_ciphertext(say("The ciphertexts belong to another key."))
    if int.from_bytes(data[34:_HEAD], "big") != count:
        raise _bad_ciphertext(say("The bytes hold another number of ciphertexts than expected."))
    places = range(_HEAD, len(data), size)
    values = [mpz(int.from_bytes(data[start : start + size], "big")) for start in places]
    check_values(key, values)
    if seen is not None:
        seen.add([data[start : start + size] for start in places])
    return [Ciphertext(value, key) for value in values]


class SeenCiphertexts:
    """Remembers what arrived, so that a ciphertext sent again is refused: fresh ones never coincide by chance.

    >>> seen = SeenCiphertexts()
    >>> seen.add([b"one", b"two"])
    >>> seen.add([b"two"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.CiphertextRefused: A ciphertext was sent before...
    """

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def add(self, encoded: Sequence[bytes]) -> None:
        """Take them all, or none and raise when one was seen before or stands twice."""
        digests = [hashlib.sha256(item).digest() for item in encoded]
        if len(set(digests)) != len(digests) or not self._digests.isdisjoint(digests):
            raise _bad_ciphertext(say("A ciphertext was sent before."))
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
