"""The evaluator's attack on the default protocol: exact coefficients tell the pooled sums, by lattice reduction.

Write the rows as whole numbers: column j in units of 2^-r_j, with r_j the bits it is encoded with, or 0 where it is known
to hold whole numbers (an age). Then A = Z^T Z and b = Z^T t are whole numbers, and the coefficients in these units,
gamma_j = 2^(r_y - r_j) beta_j, fulfil (A + Lambda) gamma = b. With gamma = num / den the symmetric matrices S with

    S num = 0 modulo den

form a lattice of D (D + 1) / 2 dimensions and determinant about den^D, in which a vector is some den^(2 / (D + 1)) long. den
is about det A, as long as D entries of A together: A + Lambda is far shorter than chance would have it, and LLL finds it, up to
a factor that the public limits settle. Coordinates are divided by the public bounds, rows B_i B_j, so that all count alike.

Of coefficients rounded to floats the residual S gamma - b is only known to be small; it is a coordinate then, divided by what
rounding leaves open. Floats hold 53 D bits and A and b need D (D + 1) / 2 and D numbers: they tell A where all columns are
whole numbers of few digits and D is small, and nothing certain in other tables.

Cost: one LLL in D (D + 3) / 2 dimensions; less than a second for the eight unknowns of Auto MPG. For tests and teaching.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import flint
import numpy as np
from numpy.typing import NDArray

from velado.learning.crypto.paillier import (
    ciphertext_size,
    ciphertexts_from_bytes,
    ciphertexts_size,
    decrypt_many,
)
from velado.learning.crypto.paillier_keys import PrivateKey
from velado.learning.protocols.protocol import Message
from velado.learning.regression.fit import ridge_entries, scaling_of
from velado.learning.regression.job import Job
from velado.papers.regression.paper_arithmetic import Masks

# The attacks on Method 1 of the source, as functions over what one party saw; and what they find in the sound protocol.
#
# Provider, one run: with a~_ij = u_i v_j a_ij / e^2 the masks cancel in a~_ij a~_ji / (a~_ii a~_jj) = a_ij^2 / (a_ii a_jj).
# Evaluator, several runs over the same rows: A~ xi = b~1 means A x = rho b with x_i = v_i xi_i / w1 and rho_i = s_i / u_i both
# known to it. Together with A beta = b each run gives D linear equations in A; D - 1 runs leave
# one common scale open, which the number of rows fixes.
# Against the default masked protocol the same functions find nothing: its provider sees uniform numbers, and its evaluator
# can write down A beta = b alone, a linear system that every real symmetric A fulfils for some b. But A and b are whole numbers, and
# its beta is exact: over the integers that is enough to find them, by another attack (`velado.papers.regression.mask_attacks`).
# Whoever runs them needs a party's own secrets: they are made for tests and teaching.

Matrix = NDArray[np.float64]
# To how many bits equations are rounded before they are solved exactly: far finer than the floors they hold.
_DIGITS = 600


@dataclass(frozen=True, repr=False)
class _Equations:
    """What an evaluator can write down after one run: A x = rho b entry by entry, for known x and rho."""

    x: tuple[Fraction, ...]
    rho: tuple[Fraction, ...]


def provider_numbers(messages: Sequence[Message], private: PrivateKey, width: int) -> list[list[int]]:
    """The masked matrix as the provider reads it in the one message that holds it, in either masked protocol.

    >>> from velado.learning.crypto.obfuscators import FullPower
    >>> from velado.learning.crypto.paillier import ObfuscatorPool, ciphertexts_to_bytes, encrypt_many
    >>> private = PrivateKey(1009, 1019)
    >>> sent = encrypt_many(private.public, [4, 2, 2, 9], ObfuscatorPool(FullPower(private.public)))
    >>> fields = {"ciphertexts": ciphertexts_to_bytes(private.public, sent)}
    >>> provider_numbers([Message("0" * 64, "evaluator", "provider", 0, "masked", fields)], private, width=2)
    [[4, 2], [2, 9]]
    """
    (message,) = [message for message in messages if message.kind == "masked"]
    data, key = message.fields["ciphertexts"], private.public
    count = (len(data) - ciphertexts_size(key, 0)) // ciphertext_size(key)
    numbers = decrypt_many(private, ciphertexts_from_bytes(key, data, count))
    return [numbers[i * width : (i + 1) * width] for i in range(width)]


def squared_correlations(masked: Sequence[Sequence[int]]) -> Matrix:
    """a~_ij a~_ji / (a~_ii a~_jj): the provider's attack. Of a matrix masked by rows and columns, a_ij^2 / (a_ii a_jj).

    With an intercept among the columns, means, variances and correlations about the mean follow from these.

    >>> squared_correlations([[4, 2], [2, 9]]).round(3).tolist()  # and so for any u_i v_j a_ij
    [[1.0, 0.111], [0.111, 1.0]]
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

    >>> rows = np.array([[1.0, 1.0, 3.0], [1.0, 2.0, 4.0], [1.0, 4.0, 6.0]])
    >>> sums = rows.T @ rows
    >>> correlations_about_the_mean(sums**2 / np.outer(np.diag(sums), np.diag(sums))).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    cosines = np.sqrt(squares)
    first = cosines[0, 1:]
    spread = np.sqrt(np.clip(1 - first**2, 0, None))
    return np.asarray((cosines[1:, 1:] - np.outer(first, first)) / np.outer(spread, spread))


def equations_of_paper_run(
    masks: Masks, solutions: tuple[Sequence[Fraction], Sequence[Fraction]]
) -> list[_Equations]:
    """What Method 1's evaluator knows after one run: A x = (s/u) b and A y = (t/u) b, from xi and eta.

    >>> masks = Masks(5, v=(6,), s=(6,), t=(7,), w1=2, w2=3)
    >>> equations_of_paper_run(masks, ([Fraction(1)], [Fraction(1)]))[0].x
    (Fraction(3, 1),)
    """
    found = []
    for solution, shares, w in ((solutions[0], masks.s, masks.w1), (solutions[1], masks.t, masks.w2)):
        x = tuple(v * value / w for v, value in zip(masks.v, solution, strict=True))
        rho = tuple(Fraction(s, u) for s, u in zip(shares, masks.u, strict=True))
        found.append(_Equations(x, rho))
    return found


def equations_of_sound_run(beta: Sequence[Fraction]) -> list[_Equations]:
    """What the sound protocol's evaluator can write as linear equations after one run: R w - r = beta, so A beta = b.

    Over the reals they say nothing of A. That A and b are whole numbers says all: see `velado.papers.regression.mask_attacks`.
    The provider's answer w = R^-1 (beta + r) follows from beta and the evaluator's own mask: it adds no equation.

    >>> equations_of_sound_run([Fraction(1, 2), Fraction(3)])[0].rho
    (Fraction(1, 1), Fraction(1, 1))
    """
    return [_Equations(tuple(beta), (Fraction(1),) * len(beta))]


def unidentified(equations: Sequence[_Equations], tolerance: float = 1e-9) -> int:
    """How many dimensions of A's D (D + 1) / 2 the equations leave open: 1 means that all but a common scale is known.

    Unknowns are a_ij beta_i beta_j, so that units of measurement do not matter; singular values below *tolerance* times
    the largest count as 0.

    >>> unidentified(equations_of_sound_run([Fraction(1, 2), Fraction(3)]))  # all three numbers of a symmetric A
    3
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


def second_moments(equations: Sequence[_Equations], first: Fraction) -> list[list[Fraction]]:
    """X^T X itself: the evaluator's attack. *first* is a_00, with an intercept the number of rows (times 2^(2q)).

    The equations' least-squares solution with a_00 given, by exact normal equations; ZeroDivisionError where the
    equations leave more than the scale open.

    >>> second_moments(equations_of_sound_run([Fraction(1, 2), Fraction(3)]), Fraction(10))
    Traceback (most recent call last):
    ZeroDivisionError: the equations say nothing of the matrix
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
    """The greatest common divisor of every row of u_i v_j a_ij: multiples of the masks u_i, where the floor is left out.

    >>> row_masks_by_gcd([[6 * 5, 6 * 7], [10 * 3, 10 * 9]])
    [6, 30]
    """
    return [math.gcd(*(int(x) for x in row)) for row in products]


def _pairs(width: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(width) for j in range(i, width)]


def _lines(equations: Sequence[_Equations]) -> list[list[Fraction]]:
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


def _beta(equations: Sequence[_Equations]) -> list[Fraction]:
    """beta from the first equations whose shares add up to 1: the whole of a sound run, two halves of a paper run."""
    total = [Fraction(0)] * len(equations[0].x)
    shares = Fraction(0)
    for one in equations:
        total = [a + b for a, b in zip(total, one.x, strict=True)]
        shares += one.rho[0]
        if shares == 1:
            break
    return total


def _scales(equations: Sequence[_Equations]) -> list[Fraction]:
    """|beta_i beta_j| for each unknown, in lowest precision: it only makes numbers comparable."""
    beta = [abs(value) or Fraction(1) for value in _beta(equations)]
    rough = [Fraction(float(value)) or Fraction(1) for value in beta]
    return [rough[i] * rough[j] for i, j in _pairs(len(rough))]


def _rounded(value: Fraction) -> int:
    return round(value * (1 << _DIGITS))


# How much finer than the bounds coordinates are kept when they are rounded to whole numbers.
_FINE = 20
# Of how many vectors of the reduced basis sums and differences are tried, and how many factors of each.
_TAKEN = 5
_FACTORS = 100_000


@dataclass(frozen=True, repr=False)
class _Sums:
    """X^T X and X^T y of the pooled rows in the columns' own units, as encoded; with an intercept, its entry counts the rows."""

    matrix: tuple[tuple[Fraction, ...], ...]
    vector: tuple[Fraction, ...]


def moments_from_exact_coefficients(
    beta: Sequence[Fraction], job: Job, whole: Collection[str] = ()
) -> _Sums | None:
    """The pooled sums, from nothing but what the evaluator of one masked run holds: beta as a fraction, and the job.

    *whole* names columns that are known to hold whole numbers. None where no candidate keeps to the public limits.

    >>> from velado.learning.regression.simulate import small_job
    >>> x, y = [1, 2, 4, 5, 6, 7, 8], [2, 3, 5, 4, 7, 7, 8]
    >>> rows, sums = len(x), (sum(x), sum(a * a for a in x), sum(y), sum(a * b for a, b in zip(x, y)))
    >>> slope = Fraction(rows * sums[3] - sums[0] * sums[2], rows * sums[1] - sums[0] ** 2)
    >>> found = moments_from_exact_coefficients(
    ...     [(sums[2] - slope * sums[0]) / rows, slope], small_job(minimum_rows=2, most_rows=20), whole=["x", "y"]
    ... )
    >>> [int(entry) for entry in found.matrix[0]], sums[0]  # the rows, and their sum of x
    ([7, 33], 33)
    """
    return _sums(beta, [Fraction(0)] * len(beta), job, whole)


def moments_from_rounded_coefficients(
    beta: Sequence[float], job: Job, whole: Collection[str] = ()
) -> _Sums | None:
    """The same attempt from the coefficients that all clients get, rounded to floats; the sums it gives may be wrong ones.

    >>> from velado.learning.regression.simulate import small_job
    >>> moments_from_rounded_coefficients([0.1, 0.7], small_job(minimum_rows=2, most_rows=20)) is None
    False
    """
    return _sums([Fraction(b) for b in beta], [Fraction(math.ulp(b)) / 2 for b in beta], job, whole)


def _sums(
    beta: Sequence[Fraction], errors: Sequence[Fraction], job: Job, whole: Collection[str]
) -> _Sums | None:
    scaling, columns = scaling_of(job), (*job.features, job.target)
    scales = zip((*scaling.features, scaling.target), columns, strict=True)
    *own, target = [0 if column.name in whole else scale.bits for scale, column in scales]
    bits = [0] * int(job.intercept) + own
    reach = [1] * int(job.intercept) + [
        max(1, math.ceil(max(abs(column.low), abs(column.high)) * (1 << r)))
        for r, column in zip(own, job.features, strict=True)
    ]
    units = [Fraction(1 << target, 1 << r) for r in bits]
    gamma = [b * unit for b, unit in zip(beta, units, strict=True)]
    rounding = [e * unit for e, unit in zip(errors, units, strict=True)]
    extra = _ridge(job, bits)
    fitting = (_scaled(found, extra, job, reach) for found in _short(gamma, rounding, reach, job.most_rows))
    matrix = next((found for found in fitting if found is not None), None)
    if matrix is None:
        return None
    vector = [
        Fraction(round(sum(a * g for a, g in zip(row, gamma, strict=True)) + extra[i] * gamma[i]))
        for i, row in enumerate(matrix)
    ]
    return _Sums(
        tuple(
            tuple(a / (1 << (bits[i] + bits[j])) for j, a in enumerate(row)) for i, row in enumerate(matrix)
        ),
        tuple(b / (1 << (bits[i] + target)) for i, b in enumerate(vector)),
    )


def _ridge(job: Job, bits: Sequence[int]) -> list[Fraction]:
    """Lambda in the attack's units; `ridge_entries` has it in those of the encoding."""
    encoded = [0] * int(job.intercept) + [scale.bits for scale in scaling_of(job).features]
    return [
        Fraction(extra, 1 << (2 * (q - r)))
        for extra, q, r in zip(ridge_entries(job), encoded, bits, strict=True)
    ]


def _short(
    gamma: Sequence[Fraction], errors: Sequence[Fraction], reach: Sequence[int], rows: int
) -> Iterator[list[list[int]]]:
    """Short vectors of the lattice as symmetric matrices: of the first reduced ones, sums and differences, shortest first."""
    width = len(gamma)
    pairs = [(i, j) for i in range(width) for j in range(i, width)]
    size = len(pairs) + width
    den = math.lcm(*(g.denominator for g in gamma))
    num = [int(g * den) for g in gamma]
    # The most the residual of row i can be, in units of 1 / den; 0 for exact coefficients.
    open_ = den * rows * sum((b * e for b, e in zip(reach, errors, strict=True)), Fraction(0))
    wide = max(rows * max(reach) ** 2, math.ceil(open_ * max(reach))) << _FINE
    # Exact coefficients leave no residual: it weighs so much that no vector that LLL may give has any.
    weights = [max(1, round(wide / (open_ * b))) if open_ else wide << size for b in reach]
    basis = [[0] * size for _ in range(size)]
    for place, (i, j) in enumerate(pairs):
        basis[place][place] = wide // (rows * reach[i] * reach[j])
        basis[place][len(pairs) + i] = weights[i] * num[j]
        basis[place][len(pairs) + j] = weights[j] * num[i]
    for i in range(width):
        basis[len(pairs) + i][len(pairs) + i] = weights[i] * den
    reduced = [[int(x) for x in row] for row in flint.fmpz_mat(basis).lll().table()[:_TAKEN]]
    signs = [taken for taken in product((0, 1, -1), repeat=len(reduced)) if any(taken)]
    sums = [
        [sum(c * x for c, x in zip(taken, column, strict=True)) for column in zip(*reduced, strict=True)]
        for taken in signs
    ]
    for vector in sorted(sums, key=lambda v: sum(x * x for x in v)):
        found = [[0] * width for _ in range(width)]
        for place, (i, j) in enumerate(pairs):
            found[i][j] = found[j][i] = vector[place] // basis[place][place]
        if _positive(found):
            yield found


def _positive(matrix: Sequence[Sequence[int]]) -> bool:
    """Whether a symmetric matrix is positive definite: all its leading minors are (Sylvester)."""
    return all(
        flint.fmpz_mat([list(row[:k]) for row in matrix[:k]]).det() > 0 for k in range(1, len(matrix) + 1)
    )


def _scaled(
    found: Sequence[Sequence[int]], extra: Sequence[Fraction], job: Job, reach: Sequence[int]
) -> list[list[Fraction]] | None:
    """k S - Lambda for the least k that makes it whole numbers within the public limits, or None."""
    width = len(found)
    known = [found[i][j] for i in range(width) for j in range(i, width) if i != j or extra[i] == 0]
    step = Fraction(1, math.gcd(*known) or 1)
    least = len(job.of("client")) * job.minimum_rows if job.intercept else 0
    first = step * found[0][0]
    most = min(math.floor((job.most_rows * reach[0] ** 2 + extra[0]) / first), _FACTORS)
    for times in range(max(1, math.ceil(least / first)), most + 1):
        matrix = [
            [step * times * a - (extra[i] if i == j else 0) for j, a in enumerate(row)]
            for i, row in enumerate(found)
        ]
        if all(matrix[i][i].denominator == 1 and matrix[i][i] > 0 for i in range(width)):
            return matrix
    return None
