"""Every column has the same precision relative to its span: scaled by a power of two and centred, by its public bounds.

With q the job's bits and a column within [low, high], half its span h = (high - low) / 2 (without an intercept
h = max(|low|, |high|), since nothing could take up a shift):

    e_j = the least integer with h <= 2^(e_j + g), g = 4;    q_j = q - e_j;
    M_j = round(2^q_j (low + high) / 2), or 0 without an intercept;
    a value x counts as round(x 2^q_j) - M_j, at most 2^(q+g) + 1 in size; so x' = 2^-e_j x - 2^-q M_j, and y' likewise.

What is solved is y' = beta'_0 + sum_j beta'_j x'_j; the intercept's column is 2^q. Back in the columns' own units

    beta_j = 2^(e_y - e_j) beta'_j,    beta_0 = 2^e_y (beta'_0 + 2^-q (M_y - sum_j M_j beta'_j)),

exactly: a linear map T and a shift, so that covariances are T Sigma' T^t. Since beta_j^2 = 4^(e_y - e_j) beta'_j^2, a
penalty lambda on beta_j is 4^-e_j lambda on beta'_j: lambda 4^q_j in the units of the encoded sums.

Without it a column that spans 0.06 would have four bits less than one that spans 1, and its coefficient an error to match.
The g guard bits are there because a table's columns depend on one another and the rounding of each counts against what
the others leave unexplained: on the source's four tables the coefficients, taken together, are then within 2^-q of those of
the raw rows for q = 10 to 50; without them within 17 times that. g was chosen on these tables, so other tables may do worse:
the same four moved about their means, looked at afterwards, are within 3 times 2^-q.

0 <= q_j <= 512: a column too wide for more is encoded in whole numbers (never more coarsely) and reaches further, and one
too narrow has fewer bits. Only public figures enter: all parties find the same scaling, and it tells nobody anything.
The source's own method (`paper-masked`) has one scale for all: e_j = 0, M_j = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from velado.encrypted.job import Bounded, Job

GUARD = 4
MOST_BITS = 512


@dataclass(frozen=True)
class Scale:
    """How one column is encoded: q_j fractional bits, then M_j taken off; e_j = q - q_j is the exponent taken out."""

    bits: int
    exponent: int
    centre: int

    @classmethod
    def of(cls, column: Bounded, bits: int, centred: bool) -> Scale:
        """The scale that the column's public bounds give, with q = *bits*."""
        half = (column.high - column.low) / 2 if centred else max(abs(column.low), abs(column.high))
        own = min(max(bits + GUARD - _exponent(half), 0), MOST_BITS)
        centre = round((column.low + column.high) / 2 * (1 << own)) if centred else 0
        return cls(own, bits - own, centre)

    def reach(self, column: Bounded) -> int:
        """The most an encoded value of the column can be in size; rounding keeps order, so the bounds show it."""
        ends = (round(bound * (1 << self.bits)) - self.centre for bound in (column.low, column.high))
        return max(1, *map(abs, ends))

    def value(self, encoded: int) -> Fraction:
        """The real value an encoded one stands for."""
        return Fraction(encoded + self.centre, 1 << self.bits)


@dataclass(frozen=True)
class Scaling:
    """The scales of a job's features and target, and the map between coefficients of encoded and of real columns."""

    unit_bits: int
    intercept: bool
    features: tuple[Scale, ...]
    target: Scale

    @cached_property
    def matrix(self) -> tuple[tuple[Fraction, ...], ...]:
        """T: the linear part of the way back, a row for each coefficient in the job's order."""
        slopes = [_power(self.target.exponent - scale.exponent) for scale in self.features]
        size, first = len(slopes) + int(self.intercept), int(self.intercept)
        rows = [[Fraction(0)] * size for _ in range(size)]
        for j, slope in enumerate(slopes):
            rows[first + j][first + j] = slope
        if self.intercept:
            whole = _power(self.target.exponent)
            rows[0] = [whole, *(-whole * scale.centre * _power(-self.unit_bits) for scale in self.features)]
        return tuple(map(tuple, rows))

    @property
    def shift(self) -> Fraction:
        """What is added to the intercept on the way back: 2^(e_y - q) M_y; 0 without an intercept."""
        return self.target.centre * _power(self.target.exponent - self.unit_bits)

    def to_real(self, encoded: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """beta of the real columns from beta' of the encoded ones."""
        found = [sum((t * b for t, b in zip(row, encoded, strict=True)), Fraction(0)) for row in self.matrix]
        if self.intercept:
            found[0] += self.shift
        return tuple(found)

    def to_encoded(self, real: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """beta' of the encoded columns from beta of the real ones: the map backwards, which anybody can go."""
        first = int(self.intercept)
        scales = zip(real[first:], self.features, strict=True)
        slopes = [beta * _power(scale.exponent - self.target.exponent) for beta, scale in scales]
        if not self.intercept:
            return tuple(slopes)
        row = self.matrix[0]
        taken = sum((t * b for t, b in zip(row[1:], slopes, strict=True)), self.shift)
        return ((real[0] - taken) / row[0], *slopes)

    def variances(self, covariance: Sequence[Sequence[Fraction]]) -> tuple[Fraction, ...]:
        """The diagonal of T Sigma' T^t: the variances of beta from the covariances of beta'."""
        return tuple(
            sum(
                (a * b * covariance[i][j] for i, a in enumerate(row) if a for j, b in enumerate(row) if b),
                Fraction(0),
            )
            for row in self.matrix
        )


def scaling_of(job: Job) -> Scaling:
    """The scaling all parties of a job work out for themselves from its public bounds."""
    if job.protocol == "paper-masked":
        plain = Scale(job.bits, 0, 0)
        return Scaling(job.bits, job.intercept, (plain,) * len(job.features), plain)
    features = tuple(Scale.of(column, job.bits, job.intercept) for column in job.features)
    return Scaling(job.bits, job.intercept, features, Scale.of(job.target, job.bits, job.intercept))


def _exponent(size: Fraction) -> int:
    """The least integer e with size <= 2^e, for a size above 0."""
    e = size.numerator.bit_length() - size.denominator.bit_length()  # 2^(e-1) < size < 2^(e+1)
    return e if size <= _power(e) else e + 1


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
