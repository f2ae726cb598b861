"""Exact linear algebra of a regression: over the rationals where moments are known, modulo n where they are hidden.

With X, y the encoded columns (scaled and centred by public bounds, then times 2^q: `scaling`), A = X^T X + Lambda and
b = X^T y, beta' = A^-1 b are rationals, and `scaling` takes them back to the columns' own units. python-flint does the
arithmetic; what is ours is the ridge on the right entries, the names of collinear columns, and the bound below.

How large n must be: by Cauchy-Binet and Cauchy-Schwarz det A <= prod_j N_j^2 and, for Cramer's numerators,
|num_i| <= prod_j N_j * prod_(j != i) N_j * N_y, where N_j^2 = rows * B_j^2 + Lambda_j bounds a column's squared length.
A fraction is recovered from its residue without doubt when n > 2 |num| |den|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint

from velado.encrypted.job import Job
from velado.encrypted.scaling import scaling_of
from velado.errors import ParameterError, SingularDesignError


@dataclass(frozen=True)
class Moments:
    """A = X^T X as full rows, b = X^T y and, where asked for, y^T y of encoded rows, and how many rows they count."""

    matrix: tuple[tuple[int, ...], ...]
    vector: tuple[int, ...]
    square: int | None
    rows: int


@dataclass(frozen=True)
class Bounds:
    """What is public beforehand: the most |a_ij| and |b_i| can be, and the needed bits of a modulus."""

    entry: int
    numerator: int
    denominator: int

    @property
    def modulus_bits(self) -> int:
        """The least size of n for which every fraction is recovered without doubt."""
        return (2 * self.numerator * self.denominator).bit_length() + 1


def ridge_entries(job: Job) -> tuple[int, ...]:
    """What is added to the diagonal: lambda 2^(2 q_j) for features, half to even, and 0 for the intercept.

    So lambda is a penalty on the coefficients in their own units, whatever the bounds are.
    """
    scaled = (round(job.ridge * (1 << (2 * scale.bits))) for scale in scaling_of(job).features)
    return (*((0,) if job.intercept else ()), *scaled)


def reaches(job: Job) -> tuple[int, ...]:
    """The most an encoded value of each unknown's column can be in size, the target's last."""
    scaling = scaling_of(job)
    scales = zip((*scaling.features, scaling.target), (*job.features, job.target), strict=True)
    most = [scale.reach(column) for scale, column in scales]
    return (*((1 << job.bits,) if job.intercept else ()), *most)


def bounds_of(job: Job) -> Bounds:
    """The bound of the module's docstring for this job's public bounds and most rows."""
    *columns, target = reaches(job)
    squares = [job.most_rows * b * b + extra for b, extra in zip(columns, ridge_entries(job), strict=True)]
    y_square = job.most_rows * target * target
    denominator = math.prod(squares)
    # num_i^2 <= prod N_j^2 * prod_(j != i) N_j^2 * N_y^2: the shortest column left out gives the largest.
    left_out = math.prod(squares) // min(squares)
    numerator = math.isqrt(denominator * left_out * y_square) + 1
    entry = max(max(squares), math.isqrt(max(squares) * y_square) + 1)
    return Bounds(entry, numerator, denominator)


def refuse_overflow(job: Job, modulus_bits: int | None = None) -> None:
    """Raise when the hidden solution could not be told from its residue, naming the bits or the key that works."""
    have = job.key_bits if modulus_bits is None else modulus_bits
    need = bounds_of(job).modulus_bits
    if need < have:  # a key of k bits has n >= 2^(k-1)
        return
    works = next((q for q in range(job.bits - 1, -1, -1) if _needed(job, q) < have), None)
    key = -(-(need + 1) // 512) * 512
    advice = [f"a key of {key} bits"] if key <= 8192 else []
    advice += [f"at most {works} fractional bits"] if works is not None else []
    advice += ["tighter bounds or a smaller most_rows"]
    raise ParameterError(
        f"The solution may need a modulus of {need + 1} bits and the key has {have}.",
        "A number larger than the modulus would come back as another number.",
        f"Use {', or '.join(advice)}.",
    )


def _needed(job: Job, bits: int) -> int:
    from dataclasses import replace

    return bounds_of(replace(job, bits=bits)).modulus_bits


def with_ridge(moments: Moments, job: Job) -> Any:
    """A + Lambda as an integer matrix of python-flint."""
    extra = ridge_entries(job)
    return flint.fmpz_mat(
        [
            [value + (extra[i] if i == j else 0) for j, value in enumerate(row)]
            for i, row in enumerate(moments.matrix)
        ]
    )


def solve(moments: Moments, job: Job) -> tuple[Fraction, ...]:
    """beta in the columns' own units, exactly; SingularDesignError names the columns that follow from others."""
    return scaling_of(job).to_real(solve_encoded(moments, job))


def solve_encoded(moments: Moments, job: Job) -> tuple[Fraction, ...]:
    """beta' = (A + Lambda)^-1 b, exactly: the coefficients of the encoded columns."""
    matrix = with_ridge(moments, job)
    if matrix.det() == 0:
        raise singular(job, dependent_columns(matrix, job))
    right = flint.fmpz_mat([[value] for value in moments.vector])
    solution = flint.fmpq_mat(matrix).solve(flint.fmpq_mat(right))
    return tuple(Fraction(int(x.p), int(x.q)) for x in solution.entries())


def covariance_diagonal(moments: Moments, job: Job) -> tuple[Fraction, ...] | None:
    """The squared standard errors of plain least squares, in the coefficients' own units.

    diag(T Sigma T^t) with T of `scaling`, Sigma = s^2 A^-1 and s^2 = (y^T y - b^T A^-1 b) / (rows - D) of encoded rows.
    None where y'y is not known, lambda is not 0 (the textbook formula does not hold), or there are no rows to spare.
    """
    spare = moments.rows - job.width
    if moments.square is None or job.ridge != 0 or spare <= 0:
        return None
    inverse = flint.fmpq_mat(with_ridge(moments, job)).inv()
    right = flint.fmpq_mat(flint.fmpz_mat([[value] for value in moments.vector]))
    sigma2 = (moments.square - (right.transpose() * inverse * right)[0, 0]) / spare
    covariance = [[Fraction(int(x.p), int(x.q)) for x in row] for row in (inverse * sigma2).table()]
    return scaling_of(job).variances(covariance)


def dependent_columns(matrix: Any, job: Job) -> tuple[str, ...]:
    """The unknowns whose columns take part in a linear dependence: where some vector of A's null space is not 0."""
    basis, rank = matrix.nullspace()
    involved = [
        name for i, name in enumerate(job.unknowns) if any(int(basis[i, j]) != 0 for j in range(int(rank)))
    ]
    return tuple(involved)


def singular(job: Job, names: Sequence[str]) -> SingularDesignError:
    """The error that says which columns are collinear, or that some are when only that is known."""
    which = f"The columns {', '.join(names)}" if names else "Some columns of the design"
    return SingularDesignError(
        f"{which} depend linearly on one another.",
        "Then infinitely many coefficients fit equally well.",
        "Leave one of them out, or set lambda above 0.",
    )


def solve_modulo(
    matrix: Sequence[Sequence[int]], vector: Sequence[int], modulus: int
) -> tuple[int, ...] | None:
    """w with C w = d modulo n, or None where C has no inverse (its determinant is 0, or shares a factor with n)."""
    ring = flint.fmpz_mod_ctx(modulus)
    c = flint.fmpz_mod_mat([[int(x) for x in row] for row in matrix], ring)
    if math.gcd(int(c.det()), modulus) != 1:
        return None
    d = flint.fmpz_mod_mat([[int(x)] for x in vector], ring)
    try:
        return tuple(int(x) for x in c.solve(d).entries())
    except ZeroDivisionError:  # elimination met a number that shares a factor with n
        return None


def reconstruct(residue: int, modulus: int, numerator: int, denominator: int) -> Fraction | None:
    """The one fraction p/q = residue modulo n with |p| <= numerator and 0 < q <= denominator, or None.

    Half of the extended Euclidean algorithm, stopped at the first remainder within the numerator's bound (Wang 1981);
    unique when n > 2 * numerator * denominator.
    """
    old, new = modulus, residue % modulus
    old_t, new_t = 0, 1
    while new > numerator:
        quotient = old // new
        old, new = new, old - quotient * new
        old_t, new_t = new_t, old_t - quotient * new_t
    if new_t == 0 or abs(new_t) > denominator or math.gcd(new, abs(new_t)) != 1:
        return None
    return Fraction(new, new_t) if new_t > 0 else Fraction(-new, -new_t)
