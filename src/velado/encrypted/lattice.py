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

from velado.encrypted.exact import ridge_entries
from velado.encrypted.job import Job
from velado.encrypted.scaling import scaling_of

# How much finer than the bounds coordinates are kept when they are rounded to whole numbers.
_FINE = 20
# Of how many vectors of the reduced basis sums and differences are tried, and how many factors of each.
_TAKEN = 5
_FACTORS = 100_000


@dataclass(frozen=True, repr=False)
class Sums:
    """X^T X and X^T y of the pooled rows in the columns' own units, as encoded; with an intercept, its entry counts the rows."""

    matrix: tuple[tuple[Fraction, ...], ...]
    vector: tuple[Fraction, ...]


def moments_from_exact_coefficients(
    beta: Sequence[Fraction], job: Job, whole: Collection[str] = ()
) -> Sums | None:
    """The pooled sums, from nothing but what the evaluator of one masked run holds: beta as a fraction, and the job.

    *whole* names columns that are known to hold whole numbers. None where no candidate keeps to the public limits.
    """
    return _sums(beta, [Fraction(0)] * len(beta), job, whole)


def moments_from_rounded_coefficients(
    beta: Sequence[float], job: Job, whole: Collection[str] = ()
) -> Sums | None:
    """The same attempt from the coefficients that all clients get, rounded to floats; the sums it gives may be wrong ones."""
    return _sums([Fraction(b) for b in beta], [Fraction(math.ulp(b)) / 2 for b in beta], job, whole)


def _sums(
    beta: Sequence[Fraction], errors: Sequence[Fraction], job: Job, whole: Collection[str]
) -> Sums | None:
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
    return Sums(
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
