"""Method 1 of Nascimento 2023 (after Qiu, Gui and Zhao 2020) as plain arithmetic: conversion, masks, division, solution.

Protocol 1 (conversion): x -> floor((x + M) 2^q), M the least multiple of 2^-q that leaves nothing negative. Protocol 2
(masking): floor((x c + r) / d) - floor(r / d), which is floor(x c / d) or one more. Protocol 3: a~_ij = u_i v_j a_ij / e^2,
b~1_i = w1 s_i b_i / e^2, b~2_i = w2 t_i b_i / e^2, u = s + t; A~ xi = b~1, A~ eta = b~2; beta_i = v_i (xi_i / w1 + eta_i / w2).

**Not private**: the masks cancel in a~_ij a~_ji / (a~_ii a~_jj). It is here to repeat the source's figures and to be
attacked (`velado.papers.regression.mask_attacks`). Where the source is silent: e has q bits; the intercept column is 2^q; the shift is
undone by alpha = alpha' - M + M sum_j beta_j; r is 80 bits longer than what it hides; both systems are solved exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from velado.errors import ParameterError
from velado.learning.crypto.fixed_point import Columns
from velado.learning.crypto.modular import exact_gram
from velado.learning.regression.design_matrix import moments_of
from velado.learning.regression.fit import Moments, ridge_entries, singular
from velado.learning.regression.job import Job
from velado.randomness import Tape
from velado.text import say

SPREAD = 10  # masks lie between e and 2^10 e
HIDING = 80  # how many bits longer than what it hides the addend of Protocol 2 is
_INT64 = 61


@dataclass(frozen=True, repr=False)
class Masks:
    """The evaluator's secrets of one run: the prime e (known to the provider too), v, s, t and w1, w2; u = s + t.

    >>> Masks(prime=5, v=(7,), s=(6,), t=(8,), w1=9, w2=11).factors()
    [98, 54, 88]
    """

    prime: int
    v: tuple[int, ...]
    s: tuple[int, ...]
    t: tuple[int, ...]
    w1: int
    w2: int

    @property
    def u(self) -> tuple[int, ...]:
        """The row masks."""
        return tuple(a + b for a, b in zip(self.s, self.t, strict=True))

    def factors(self) -> list[int]:
        """The c of every division: u_i v_j by rows, then w1 s_i, then w2 t_i."""
        matrix = [u * v for u in self.u for v in self.v]
        return [*matrix, *(self.w1 * s for s in self.s), *(self.w2 * t for t in self.t)]


def _floor_encode(values: Any, bits: int) -> NDArray[Any]:
    """floor(a 2^q) of every float, exactly: int64 where all fit, Python integers where not."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    shift = exponent.astype(np.int64) + (bits - 53)
    # An arithmetic shift to the right is a floor, of negative numbers too.
    down = digits >> np.clip(-shift, 0, 63)
    up = np.clip(shift, 0, None)
    if not up.any():
        return down
    if int(exponent.max()) + bits <= _INT64:
        return np.asarray(np.where(shift > 0, digits << up, down))
    return np.asarray(np.where(shift > 0, digits.astype(object) << up.astype(object), down.astype(object)))


def has_negatives(job: Job) -> bool:
    """Whether the public bounds allow a negative value, so that Protocol 1 is run.

    >>> from velado.learning.regression.simulate import small_job
    >>> has_negatives(small_job())
    True
    """
    return any(column.low < 0 for column in (*job.features, job.target))


def own_shift(columns: Columns, job: Job) -> int:
    """A client's ceil(-z_k 2^q), z_k its least negative value; 0 where it has none.

    >>> from velado.learning.regression.simulate import small_job
    >>> own_shift({"x": [1.0, -2.5], "y": [0.0, 3.0]}, small_job(bits=4))
    40
    """
    names = [column.name for column in (*job.features, job.target)]
    return max(0, *(-int(_floor_encode(columns[name], job.bits).min()) for name in names))


def paper_moments(columns: Columns, job: Job, shift: int = 0) -> Moments:
    """A_k and b_k of one client's rows, converted by Protocol 1 with M = *shift* / 2^q.

    Bounds, missing values and too few rows are refused as in the other protocols, before anything else is done.

    >>> from velado.learning.regression.simulate import small_job, small_rows
    >>> paper_moments(small_rows(), small_job(bits=4)).rows == len(small_rows()["x"])
    True
    """
    rows = moments_of(columns, job).rows
    encoded = [_floor_encode(columns[column.name], job.bits) for column in (*job.features, job.target)]
    if shift:
        reach = max(shift, *(int(np.abs(one).max()) for one in encoded))
        wide = (2 * reach).bit_length() > _INT64
        encoded = [(one.astype(object) if wide else one) + shift for one in encoded]
    if job.intercept:
        encoded.insert(0, np.full(rows, 1 << job.bits, dtype=np.int64 if job.bits < _INT64 else object))
    gram, width = exact_gram(encoded), job.width
    return Moments(
        matrix=tuple(tuple(int(x) for x in row[:width]) for row in gram[:width]),
        vector=tuple(int(row[width]) for row in gram[:width]),
        square=None,
        rows=rows,
    )


def hidden_bits(job: Job) -> int:
    """The most bits a product x c of Protocol 2 can have, from public figures.

    >>> from velado.learning.regression.simulate import small_job
    >>> hidden_bits(small_job(bits=4)) < hidden_bits(small_job(bits=8))
    True
    """
    unit = 1 << job.bits
    columns = (*job.features, job.target)
    most = max(math.ceil(max(abs(c.low), abs(c.high), Fraction(1)) * unit) for c in columns)
    shift = max(0, *(math.ceil(-c.low * unit) for c in columns))
    entry = job.most_rows * (most + shift) ** 2 + max(ridge_entries(job))
    return entry.bit_length() + 2 * (job.bits + SPREAD) + 1


def refuse(job: Job) -> None:
    """Raise where Method 1 cannot be run: no prime of q bits, a shift that nothing could undo, or too short a key.

    >>> from velado.learning.regression.simulate import small_job
    >>> refuse(small_job(bits=1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ParameterError: Method 1 of the source cannot be run with 1 fractional bits...
    """
    if job.bits < 2:
        raise ParameterError(
            say("Method 1 of the source cannot be run with {bits} fractional bits.", bits=job.bits),
            "Its masks are multiples of a prime of that many bits.",
            "Use 10 or more.",
        )
    if has_negatives(job) and not job.intercept:
        raise ParameterError(
            "Method 1 of the source cannot fit negative values without an intercept.",
            "It shifts all values to be positive, and only an intercept can take the shift back.",
            'Set intercept = true, or use protocol = "masked".',
        )
    need = hidden_bits(job) + HIDING + 3
    if need > job.key_bits:
        raise ParameterError(
            say(
                "Masked sums may need a key of {need} bits and the job has {key_bits}.",
                need=need,
                key_bits=job.key_bits,
            ),
            "A number larger than the modulus would come back as another number.",
            say(
                "Use a key of {need} bits, fewer fractional bits, or tighter bounds.",
                need=-(-need // 512) * 512,
            ),
        )


def draw_masks(bits: int, width: int, tape: Tape, spread: int = SPREAD) -> Masks:
    """A prime e of *bits* bits, and every mask uniform between e and 2^*spread* e, both ends left out.

    >>> masks = draw_masks(bits=10, width=2, tape=Tape(bytes(32)))
    >>> masks.prime.bit_length(), all(masks.prime < mask < masks.prime << SPREAD for mask in masks.v)
    (10, True)
    """
    while True:
        prime = (1 << (bits - 1)) + tape.below(1 << (bits - 1))
        if gmpy2.is_prime(prime, 40):
            break

    def one() -> int:
        return prime + 1 + tape.below((prime << spread) - prime - 1)

    v, s, t = (tuple(one() for _ in range(width)) for _ in range(3))
    return Masks(prime, v, s, t, one(), one())


def draw_addends(count: int, bits: int, tape: Tape) -> list[int]:
    """The r of Protocol 2 for *count* divisions of numbers of at most *bits* bits.

    >>> len(draw_addends(3, bits=20, tape=Tape(bytes(32))))
    3
    """
    return [tape.below(1 << (bits + HIDING)) for _ in range(count)]


def solve_both(
    numbers: Sequence[int], width: int, job: Job | None = None
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """xi and eta of A~ xi = b~1, A~ eta = b~2, exactly; the numbers are A~ by rows, b~1, b~2.

    >>> solve_both([2, 0, 0, 4, 2, 4, 4, 2], width=2)
    ((Fraction(1, 1), Fraction(1, 1)), (Fraction(2, 1), Fraction(1, 2)))
    """
    import flint

    square = width * width
    matrix = flint.fmpz_mat([[int(x) for x in numbers[i * width : (i + 1) * width]] for i in range(width)])
    if matrix.det() == 0:
        if job is not None:
            raise singular(job, ())
        raise ZeroDivisionError("the masked matrix is singular")
    right = flint.fmpz_mat(
        [[int(numbers[square + i]), int(numbers[square + width + i])] for i in range(width)]
    )
    found = flint.fmpq_mat(matrix).solve(flint.fmpq_mat(right))
    xi, eta = (tuple(Fraction(int(found[i, k].p), int(found[i, k].q)) for i in range(width)) for k in (0, 1))
    return xi, eta


def combine(masks: Masks, xi: Sequence[Fraction], eta: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """beta~ of equation 4.5: v_i (xi_i / w1 + eta_i / w2).

    >>> combine(Masks(5, v=(6,), s=(6,), t=(7,), w1=2, w2=3), [Fraction(1)], [Fraction(1)])
    (Fraction(5, 1),)
    """
    return tuple(v * (x / masks.w1 + y / masks.w2) for v, x, y in zip(masks.v, xi, eta, strict=True))


def undo_shift(beta: Sequence[Fraction], shift: int, bits: int) -> tuple[Fraction, ...]:
    """The coefficients of the rows as they were: y + M = alpha' + sum beta_j (x_j + M) gives alpha = alpha' - M + M sum beta_j.

    >>> undo_shift([Fraction(5), Fraction(2)], shift=16, bits=4)
    (Fraction(6, 1), Fraction(2, 1))
    """
    if not shift:
        return tuple(beta)
    moved = Fraction(shift, 1 << bits)
    intercept, *slopes = beta
    return (intercept - moved + moved * sum(slopes, Fraction(0)), *slopes)


def paper_solution(
    matrix: Sequence[Sequence[int]],
    vector: Sequence[int],
    bits: int,
    tape: Tape,
    longest: int | None = None,
    spread: int = SPREAD,
) -> tuple[Fraction, ...]:
    """beta~ of Method 1 for known A and b, without any encryption: what a run of the roles gives, number for number.

    *tape* is the evaluator's tape and *longest* the job's `hidden_bits`; without it the addends are made for these sums.
    Cost: two solutions of D unknowns, milliseconds.

    >>> beta = paper_solution([[4 << 40, 0], [0, 2 << 40]], [8 << 40, 2 << 40], 20, Tape(bytes(32)))
    >>> [round(float(value), 6) for value in beta]
    [2.0, 1.0]
    """
    width = len(vector)
    masks = draw_masks(bits, width, tape.fork("masks"), spread)
    sums = [*(int(x) for row in matrix for x in row), *map(int, vector), *map(int, vector)]
    products = [x * c for x, c in zip(sums, masks.factors(), strict=True)]
    most = max(abs(x) for x in products).bit_length() if longest is None else longest
    addends = draw_addends(len(products), most, tape.fork("addends"))
    d = masks.prime**2
    divided = [(x + r) // d - r // d for x, r in zip(products, addends, strict=True)]
    return combine(masks, *solve_both(divided, width))
