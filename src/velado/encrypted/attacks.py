"""The attacks on Method 1 of the source, as functions over what one party saw; and what they find in the sound protocol.

Provider, one run: with a~_ij = u_i v_j a_ij / e^2 the masks cancel in a~_ij a~_ji / (a~_ii a~_jj) = a_ij^2 / (a_ii a_jj).
Evaluator, several runs over the same rows: A~ xi = b~1 means A x = rho b with x_i = v_i xi_i / w1 and rho_i = s_i / u_i both
known to it. Together with A beta = b each run gives D linear equations in A; D - 1 runs leave
one common scale open, which the number of rows fixes.
Against the default masked protocol the same functions find nothing: its provider sees uniform numbers, and its evaluator
can write down A beta = b alone, a linear system that every real symmetric A fulfils for some b. But A and b are whole numbers, and
its beta is exact: over the integers that is enough to find them, by another attack (`velado.encrypted.lattice`).
Whoever runs them needs a party's own secrets: they are made for tests and teaching.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from velado.encrypted.crypto.keys import PrivateKey
from velado.encrypted.crypto.paillier import decrypt_many
from velado.encrypted.crypto.validation import ciphertext_size, ciphertexts_from_bytes, ciphertexts_size
from velado.encrypted.protocols.messages import Message
from velado.encrypted.protocols.paper_arithmetic import Masks

Matrix = NDArray[np.float64]
# To how many bits equations are rounded before they are solved exactly: far finer than the floors they hold.
_DIGITS = 600


@dataclass(frozen=True, repr=False)
class Equations:
    """What an evaluator can write down after one run: A x = rho b entry by entry, for known x and rho."""

    x: tuple[Fraction, ...]
    rho: tuple[Fraction, ...]


def provider_numbers(messages: Sequence[Message], private: PrivateKey, width: int) -> list[list[int]]:
    """The masked matrix as the provider reads it in the one message that holds it, in either masked protocol."""
    (message,) = [message for message in messages if message.kind == "masked"]
    data, key = message.fields["ciphertexts"], private.public
    count = (len(data) - ciphertexts_size(key, 0)) // ciphertext_size(key)
    numbers = decrypt_many(private, ciphertexts_from_bytes(key, data, count))
    return [numbers[i * width : (i + 1) * width] for i in range(width)]


def squared_correlations(masked: Sequence[Sequence[int]]) -> Matrix:
    """a~_ij a~_ji / (a~_ii a~_jj): the provider's attack. Of a matrix masked by rows and columns, a_ij^2 / (a_ii a_jj).

    With an intercept among the columns, means, variances and correlations about the mean follow from these.
    """
    width = len(masked)
    found = np.full((width, width), np.nan)
    for i in range(width):
        for j in range(width):
            under = masked[i][i] * masked[j][j]
            if under:
                found[i, j] = float(Fraction(masked[i][j] * masked[j][i], under))
    return found


def correlations_about_the_mean(squares: Matrix) -> Matrix:
    """|Pearson's correlation| of all features, from `squared_correlations` of a design whose first column is the intercept.

    With c_ij = a_ij / sqrt(a_ii a_jj) >= 0, as after the source's shift: r_ij = (c_ij - c_0i c_0j) / sqrt((1 - c_0i^2)(1 - c_0j^2)).
    """
    cosines = np.sqrt(squares)
    first = cosines[0, 1:]
    spread = np.sqrt(np.clip(1 - first**2, 0, None))
    return np.asarray((cosines[1:, 1:] - np.outer(first, first)) / np.outer(spread, spread))


def equations_of_paper_run(
    masks: Masks, solutions: tuple[Sequence[Fraction], Sequence[Fraction]]
) -> list[Equations]:
    """What Method 1's evaluator knows after one run: A x = (s/u) b and A y = (t/u) b, from xi and eta."""
    found = []
    for solution, shares, w in ((solutions[0], masks.s, masks.w1), (solutions[1], masks.t, masks.w2)):
        x = tuple(v * value / w for v, value in zip(masks.v, solution, strict=True))
        rho = tuple(Fraction(s, u) for s, u in zip(shares, masks.u, strict=True))
        found.append(Equations(x, rho))
    return found


def equations_of_sound_run(beta: Sequence[Fraction]) -> list[Equations]:
    """What the sound protocol's evaluator can write as linear equations after one run: R w - r = beta, so A beta = b.

    Over the reals they say nothing of A. That A and b are whole numbers says all: see `velado.encrypted.lattice`.
    The provider's answer w = R^-1 (beta + r) follows from beta and the evaluator's own mask: it adds no equation.
    """
    return [Equations(tuple(beta), (Fraction(1),) * len(beta))]


def unidentified(equations: Sequence[Equations], tolerance: float = 1e-9) -> int:
    """How many dimensions of A's D (D + 1) / 2 the equations leave open: 1 means that all but a common scale is known.

    Unknowns are a_ij beta_i beta_j, so that units of measurement do not matter; singular values below *tolerance* times
    the largest count as 0.
    """
    lines = [line for line in _lines(equations) if any(line)]
    width = len(equations[0].x)
    unknowns = width * (width + 1) // 2
    if not lines:
        return unknowns
    scales = _scales(equations)
    table = np.array(
        [[float(value / scale) for value, scale in zip(line, scales, strict=True)] for line in lines]
    )
    size = np.abs(table).max(axis=1, keepdims=True)
    table = table[size[:, 0] > 1e-12 * size.max()]
    values = np.linalg.svd(table / np.abs(table).max(axis=1, keepdims=True), compute_uv=False)
    return unknowns - int(np.sum(values > tolerance * values[0]))


def second_moments(equations: Sequence[Equations], first: Fraction) -> list[list[Fraction]]:
    """X^T X itself: the evaluator's attack. *first* is a_00, with an intercept the number of rows (times 2^(2q)).

    The equations' least-squares solution with a_00 given, by exact normal equations; ZeroDivisionError where the
    equations leave more than the scale open.
    """
    width = len(equations[0].x)
    scales = _scales(equations)
    lines = []
    for line in _lines(equations):
        scaled = [value / scale for value, scale in zip(line, scales, strict=True)]
        most = max(abs(value) for value in scaled)
        if most:
            lines.append([_rounded(value / most) for value in scaled])
    if not lines:
        raise ZeroDivisionError("the equations say nothing of the matrix")
    left = flint.fmpz_mat([line[1:] for line in lines])
    right = flint.fmpz_mat([[-_rounded(first * scales[0]) * line[0]] for line in lines])
    across = left.transpose()
    normal = across * left
    if normal.det() == 0:
        raise ZeroDivisionError("the equations leave more than the scale open")
    solution = flint.fmpq_mat(normal).solve(flint.fmpq_mat(across * right)).entries()
    unit = Fraction(1, 1 << _DIGITS)
    rest = [
        Fraction(int(x.p), int(x.q)) * unit / scale for x, scale in zip(solution, scales[1:], strict=True)
    ]
    found = [[Fraction(0)] * width for _ in range(width)]
    for (i, j), value in zip(_pairs(width), [first, *rest], strict=True):
        found[i][j] = found[j][i] = value
    return found


def row_masks_by_gcd(products: Sequence[Sequence[int]]) -> list[int]:
    """The greatest common divisor of every row of u_i v_j a_ij: multiples of the masks u_i, where the floor is left out."""
    return [math.gcd(*(int(x) for x in row)) for row in products]


def _pairs(width: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(width) for j in range(i, width)]


def _lines(equations: Sequence[Equations]) -> list[list[Fraction]]:
    """sum_j a_ij (x_j - rho_i beta_j) = 0 for every i and run, in the unknowns a_ij with i <= j; beta = the sum of a run's x."""
    width = len(equations[0].x)
    place = {pair: at for at, pair in enumerate(_pairs(width))}
    beta = _beta(equations)
    lines = []
    for one in equations:
        for i in range(width):
            line = [Fraction(0)] * len(place)
            for j in range(width):
                line[place[min(i, j), max(i, j)]] += one.x[j] - one.rho[i] * beta[j]
            lines.append(line)
    return lines


def _beta(equations: Sequence[Equations]) -> list[Fraction]:
    """beta from the first equations whose shares add up to 1: the whole of a sound run, two halves of a paper run."""
    total = [Fraction(0)] * len(equations[0].x)
    shares = Fraction(0)
    for one in equations:
        total = [a + b for a, b in zip(total, one.x, strict=True)]
        shares += one.rho[0]
        if shares == 1:
            break
    return total


def _scales(equations: Sequence[Equations]) -> list[Fraction]:
    """|beta_i beta_j| for each unknown, in lowest precision: it only makes numbers comparable."""
    beta = [abs(value) or Fraction(1) for value in _beta(equations)]
    rough = [Fraction(float(value)) or Fraction(1) for value in beta]
    return [rough[i] * rough[j] for i, j in _pairs(len(rough))]


def _rounded(value: Fraction) -> int:
    return round(value * (1 << _DIGITS))
