"""Powers and products modulo a large number: on both cores where GMP lets go of the interpreter, with few squarings where not.

`gmpy2.powmod_base_list` releases the interpreter's lock, so one list of powers is split over threads. A product of
powers x_1^e_1 ... x_k^e_k shares its squarings (Straus 1964): about b + k b / (w + 1) multiplications for b-bit
exponents and windows of w bits, against 1.2 k b for k separate powers. Nothing here is constant in time: whoever can
time single operations of the key holder is not defended against.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from itertools import product as pairs
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from velado.errors import MissingExtra

# Exact products of matrices of whole numbers, at the speed of floating-point matrix products.
#
# Every number is cut into signed limbs of w bits with rows * 2^(2w) <= 2^53. Products of limbs and all their partial
# sums are then whole numbers that a float holds exactly, whatever the order of summation, so the BLAS computes them
# without error; the limbs' products are put together as Python integers. Cost: limbs^2 matrix products: 17,379 x 14
# numbers of 60 bits in some 20 ms, against 0.4 s with Python integers.

# OpenBLAS works on one thread up to this many multiplications.
_ONE_THREAD = 250_000


def exact_gram(columns: list[NDArray[Any]]) -> list[list[int]]:
    """The inner products of all pairs of columns, exactly; columns of int64 or of Python integers.

    >>> exact_gram([np.array([1, 2]), np.array([3, 4])])
    [[5, 11], [11, 25]]
    """
    if not columns:
        return []
    rows, count = len(columns[0]), len(columns)
    if not rows:
        return [[0] * count for _ in range(count)]
    width = (53 - rows.bit_length()) // 2
    limbs = [_limbs(column, width) for column in columns]
    owner = [index for index, parts in enumerate(limbs) for _ in parts]
    place = [k for parts in limbs for k in range(len(parts))]
    products = _small_products(np.stack([part for parts in limbs for part in parts], axis=1)).tolist()
    gram = [[0] * count for _ in range(count)]
    for a, line in enumerate(products):
        for b, value in enumerate(line):
            gram[owner[a]][owner[b]] += int(value) << (width * (place[a] + place[b]))
    return gram


def _small_products(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """table^T table, block of rows by block: each product is too small for the BLAS to wake its threads.

    Waking and awaiting them costs ten times the work when other processes hold the cores.
    """
    rows, width = table.shape
    block = max(1, _ONE_THREAD // (width * width))
    whole = rows // block * block
    blocks = table[:whole].reshape(-1, block, width)
    rest = table[whole:]
    return np.asarray(np.matmul(blocks.transpose(0, 2, 1), blocks).sum(axis=0) + rest.T @ rest)


def _limbs(column: NDArray[Any], width: int) -> list[NDArray[np.float64]]:
    """The signed limbs of a column, lowest first, as floats; at least one."""
    size = np.abs(column)
    sign = np.where(column < 0, -1.0, 1.0)
    most = int(size.max())
    mask = (1 << width) - 1
    found = []
    for shift in range(0, max(1, most.bit_length()), width):
        found.append((size >> shift & mask).astype(np.float64) * sign)
    return found


try:
    import gmpy2
    from gmpy2 import mpz
except ImportError as missing:  # pragma: no cover - the development environment has it
    raise MissingExtra(
        "gmpy2 is not installed.",
        "Encrypted regression multiplies numbers of thousands of bits, which Python alone does too slowly.",
        "Install velado[encrypted].",
    ) from missing

Whole: TypeAlias = Any
"""A whole number, of Python or of gmpy2: both are accepted everywhere, gmpy2's is returned where speed matters."""


@runtime_checkable
class Tapelike(Protocol):
    """A source of uniform whole numbers below a limit, such as `velado.randomness.Tape`.

    >>> from velado.randomness import Tape
    >>> isinstance(Tape(bytes(32)), Tapelike)
    True
    """

    def below(self, limit: int, /) -> int:
        """0 <= x < limit, uniform."""
        ...


class _BitSource(Protocol):
    """A source of random bits, such as `velado.randomness.secure()`."""

    def getrandbits(self, k: int, /) -> int:
        """0 <= x < 2^k, uniform."""
        ...


Source: TypeAlias = Tapelike | _BitSource


def uniform(source: Source, limit: int) -> int:
    """A whole number 0 <= x < limit, every one as likely: by rejection, never by a remainder.

    >>> from random import Random
    >>> uniform(Random(1), 10) < 10
    True
    """
    if isinstance(source, Tapelike):
        return source.below(limit)
    bits = (limit - 1).bit_length()
    while True:
        value = source.getrandbits(bits) if bits else 0
        if value < limit:
            return value


def powers(bases: Sequence[Whole], exponent: Whole, modulus: Whole, threads: int = 2) -> list[Whole]:
    """Every base to the same power, in order; the bases are shared out over *threads*.

    >>> [int(x) for x in powers([2, 3], 5, 100)]
    [32, 43]
    """
    bases = [mpz(base) for base in bases]
    share = -(-len(bases) // max(1, threads)) or 1
    parts = [bases[start : start + share] for start in range(0, len(bases), share)]
    if len(parts) < 2:
        return list(gmpy2.powmod_base_list(bases, exponent, modulus)) if bases else []
    with ThreadPoolExecutor(len(parts)) as pool:
        found = pool.map(lambda part: gmpy2.powmod_base_list(part, exponent, modulus), parts)
        return [value for part in found for value in part]


def product(values: Sequence[Whole], modulus: Whole) -> Whole:
    """The product of all values modulo *modulus*; 1 of none.

    >>> int(product([6, 7], 10))
    2
    """
    result = mpz(1)
    for value in values:
        result = result * value % modulus
    return result


class SharedBases:
    """Products of powers of the same bases, again and again: tables of odd powers once, squarings once a product.

    A negative exponent uses the base's inverse, whose table is made when the first one comes.

    >>> int(SharedBases([2, 3], 1000, exponent_bits=3).product([5, 2]))  # 32 x 9
    288
    """

    def __init__(self, bases: Sequence[Whole], modulus: Whole, exponent_bits: int, uses: int = 1) -> None:
        self._bases = [mpz(base) for base in bases]
        self._modulus = mpz(modulus)
        self._window = min(range(1, 11), key=lambda w: (1 << (w - 1)) / uses + exponent_bits / (w + 1))
        self._tables: dict[tuple[int, bool], list[Whole]] = {}

    def _table(self, index: int, inverse: bool) -> list[Whole]:
        """x, x^3, x^5, ... up to the window, of a base or of its inverse."""
        table = self._tables.get((index, inverse))
        if table is None:
            modulus = self._modulus
            first = gmpy2.invert(self._bases[index], modulus) if inverse else self._bases[index]
            square = first * first % modulus
            table = [first]
            for _ in range((1 << (self._window - 1)) - 1):
                table.append(table[-1] * square % modulus)
            self._tables[index, inverse] = table
        return table

    def product(self, exponents: Sequence[Whole]) -> Whole:
        """x_1^e_1 ... x_k^e_k modulo the modulus, the exponents signed."""
        modulus, window = self._modulus, self._window
        mask = (1 << window) - 1
        longest = max((abs(int(e)).bit_length() for e in exponents), default=0)
        due: list[list[Whole]] = [[] for _ in range(longest)]
        for index, signed in enumerate(exponents):
            exponent, place = mpz(abs(signed)), 0
            table = self._table(index, signed < 0) if exponent else []
            while exponent:
                zeros = gmpy2.bit_scan1(exponent)
                exponent >>= zeros
                place += zeros
                due[place].append(table[int(exponent & mask) >> 1])
                exponent >>= window
                place += window
        result = mpz(1)
        for factors in reversed(due):
            result = result * result % modulus
            for factor in factors:
                result = result * factor % modulus
        return result


def shared_products(
    bases: Sequence[Whole], columns: Sequence[Sequence[Whole]], modulus: Whole
) -> list[Whole]:
    """One product of powers of the same bases for each column of exponents; a plain function, so processes can share it.

    >>> [int(value) for value in shared_products([2, 3], [[1, 1], [3, 2]], 1000)]
    [6, 72]
    """
    bits = max((abs(int(e)).bit_length() for column in columns for e in column), default=1)
    shared = SharedBases(bases, modulus, max(1, bits), max(1, len(columns)))
    return [shared.product(column) for column in columns]


# An encrypted matrix times a plain one with few multiplications: no squaring is done twice, and factors are put in buckets.
#
# Every entry of the result is a product of powers x_1^e_1 ... x_k^e_k, and the same x stand in many of them: in each
# column, and in two rows where the matrix is symmetric. So every x is squared along once, for all entries together
# (Brickell, Gordon, McCurley and Wilson 1992), and at each step of w bits it is multiplied into one bucket for every group
# of c columns: the one named by the w c bits that these columns have there (Pippenger 1976). At the end 2^(w c) buckets
# fall together into c products by halves. Multiplications, for R x K bases of which S differ, b bits and C columns:
#
# S b + R (K b / w) (C / c) + R (C / c) 2^(w c + 1)
#
# which for a symmetric 13 x 13 matrix and 14 columns of 3,072 bits is 30 per cent fewer than `SharedBases` (measured: a
# fifth less time, because buckets do not stay in the processor's cache).
# Memory: R (C / c) 2^(w c) numbers.

_WIDEST = 13


def grid_products(
    bases: Sequence[Whole], rows: Sequence[Sequence[int]], columns: Sequence[Sequence[int]], modulus: Whole
) -> list[list[Whole]]:
    """result[r][c] = product over k of bases[rows[r][k]] ^ columns[c][k] modulo *modulus*; no exponent is negative.

    >>> [[int(value) for value in row] for row in grid_products([2, 3], [[0, 1]], [[5, 2], [1, 1]], 1000)]
    [[288, 6]]
    """
    if any(exponent < 0 for column in columns for exponent in column):
        raise ValueError("the exponents of a grid are not negative")
    bits = max((int(e).bit_length() for column in columns for e in column), default=0)
    if not rows or not columns or not bits:
        return [[mpz(1) for _ in columns] for _ in rows]
    inner, modulus = len(columns[0]), mpz(modulus)
    window, groups = plan(len(rows), inner, len(columns), bits)
    steps = -(-bits // window)
    digits = [[_digits(columns, group, k, window, steps) for k in range(inner)] for group in groups]
    buckets: list[list[list[Whole | None]]] = [
        [[None] * (1 << window * len(group)) for group in groups] for _ in rows
    ]
    current = [mpz(base) % modulus for base in bases]
    for step in range(steps):
        for row, kept in zip(rows, buckets, strict=True):
            for into, group in zip(kept, digits, strict=True):
                for k, base in enumerate(row):
                    place = group[k][step]
                    if place:
                        old = into[place]
                        into[place] = current[base] if old is None else old * current[base] % modulus
        if step + 1 < steps:
            for _ in range(window):
                current = [value * value % modulus for value in current]
    return [
        [
            value
            for into, group in zip(kept, groups, strict=True)
            for value in _fold(into, len(group), window, modulus)
        ]
        for kept in buckets
    ]


def plan(rows: int, inner: int, columns: int, bits: int) -> tuple[int, tuple[range, ...]]:
    """The window and the groups of columns that need the fewest multiplications.

    >>> plan(rows=13, inner=13, columns=14, bits=3072)
    (2, (range(0, 4), range(4, 9), range(9, 14)))
    """

    def cost(choice: tuple[int, int]) -> float:
        window, count = choice
        sizes = [len(group) for group in _split(columns, count)]
        if window * max(sizes) > _WIDEST:
            return float("inf")
        return rows * (inner * -(-bits // window) * count + sum(2 << (window * size) for size in sizes))

    window, count = min(pairs(range(1, 11), range(1, columns + 1)), key=cost)
    return window, _split(columns, count)


def _split(columns: int, count: int) -> tuple[range, ...]:
    """Columns in *count* runs of nearly equal length."""
    edges = [columns * i // count for i in range(count + 1)]
    return tuple(range(low, high) for low, high in pairwise(edges))


def _digits(columns: Sequence[Sequence[int]], group: range, k: int, window: int, steps: int) -> list[int]:
    """At each step, the bits that the group's columns have there in exponent k, side by side."""
    mask = (1 << window) - 1
    found = [0] * steps
    for place, column in enumerate(group):
        exponent = int(columns[column][k])
        for step in range(steps):
            found[step] |= (exponent >> (step * window) & mask) << (place * window)
    return found


def _fold(buckets: list[Whole | None], size: int, window: int, modulus: Whole) -> list[Whole]:
    """The product of each column of a group: bit by bit, the upper half of the buckets counts and falls onto the lower."""
    of_bit: list[Whole] = []
    for bit in reversed(range(size * window)):
        half = 1 << bit
        found = mpz(1)
        for low in range(half):
            value = buckets[half + low]
            if value is not None:
                found = found * value % modulus
                under = buckets[low]
                buckets[low] = value if under is None else under * value % modulus
        of_bit.append(found)
    of_bit.reverse()
    results = []
    for place in range(size):
        result = mpz(1)
        for bit in reversed(range(window)):
            result = result * result % modulus * of_bit[place * window + bit] % modulus
        results.append(result)
    return results
