"""Fit: the coefficients, what the run promises, what it cost and how it was made; and predictions on rows in the clear."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from velado.errors import InputError, ParameterError, SchemaError, SingularDesignError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.who_learns_what import Learned, RunPromise
from velado.learning.regression.families import FAMILIES
from velado.learning.regression.job import INTERCEPT, Job
from velado.learning.regression.penalty_path import PenaltyPath
from velado.settings import Where, read
from velado.text import listed, say

# Every column has the same precision relative to its span: scaled by a power of two and centred, by its public bounds.
#
# With q the job's bits and a column within [low, high], half its span h = (high - low) / 2 (without an intercept
# h = max(|low|, |high|), since nothing could take up a shift):
#
# e_j = the least integer with h <= 2^(e_j + g), g = 4;    q_j = q - e_j;
# M_j = round(2^q_j (low + high) / 2), or 0 without an intercept;
# a value x counts as round(x 2^q_j) - M_j, at most 2^(q+g) + 1 in size; so x' = 2^-e_j x - 2^-q M_j, and y' likewise.
#
# What is solved is y' = beta'_0 + sum_j beta'_j x'_j; the intercept's column is 2^q. Back in the columns' own units
#
# beta_j = 2^(e_y - e_j) beta'_j,    beta_0 = 2^e_y (beta'_0 + 2^-q (M_y - sum_j M_j beta'_j)),
#
# exactly: a linear map T and a shift, so that covariances are T Sigma' T^t. Since beta_j^2 = 4^(e_y - e_j) beta'_j^2, a
# penalty lambda on beta_j is 4^-e_j lambda on beta'_j: lambda 4^q_j in the units of the encoded sums.
#
# Without it a column that spans 0.06 would have four bits less than one that spans 1, and its coefficient an error to match.
# The g guard bits are there because a table's columns depend on one another and the rounding of each counts against what
# the others leave unexplained: on the source's four tables the coefficients, taken together, are then within 2^-q of those of
# the raw rows for q = 10 to 50; without them within 17 times that. g was chosen on these tables, so other tables may do worse:
# the same four moved about their means, looked at afterwards, are within 3 times 2^-q.
#
# 0 <= q_j <= 512: a column too wide for more is encoded in whole numbers (never more coarsely) and reaches further, and one
# too narrow has fewer bits. Only public figures enter: all parties find the same scaling, and it tells nobody anything.
# A protocol that is not *scaled* has one scale for all: e_j = 0, M_j = 0.

GUARD = 4
MOST_BITS = 512


@dataclass(frozen=True)
class ColumnScale:
    """How one column is encoded: q_j fractional bits, then M_j taken off; e_j = q - q_j is the exponent taken out.

    >>> ColumnScale(2, 0, 3).value(5)
    Fraction(2, 1)
    """

    bits: int
    exponent: int
    centre: int

    @classmethod
    def of(cls, column: Bounded, bits: int, centred: bool) -> ColumnScale:
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
class DesignScaling:
    """The scales of a job's features and target, and the map between coefficients of encoded and of real columns.

    >>> plain = ColumnScale(0, 0, 0)
    >>> DesignScaling(0, True, (plain,), plain).to_real((Fraction(1), Fraction(2)))
    (Fraction(1, 1), Fraction(2, 1))
    """

    unit_bits: int
    intercept: bool
    features: tuple[ColumnScale, ...]
    target: ColumnScale

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


def scaling_of(job: Job) -> DesignScaling:
    """The scaling all parties of a job work out for themselves from its public bounds.

    >>> from velado.learning.regression.simulate import small_job
    >>> scaling_of(small_job(bits=4)).target
    ColumnScale(bits=5, exponent=-1, centre=0)
    """
    if not job.protocol.scaled:
        plain = ColumnScale(job.bits, 0, 0)
        return DesignScaling(job.bits, job.intercept, (plain,) * len(job.features), plain)
    features = tuple(ColumnScale.of(column, job.bits, job.intercept) for column in job.features)
    return DesignScaling(
        job.bits, job.intercept, features, ColumnScale.of(job.target, job.bits, job.intercept)
    )


def _exponent(size: Fraction) -> int:
    """The least integer e with size <= 2^e, for a size above 0."""
    e = size.numerator.bit_length() - size.denominator.bit_length()  # 2^(e-1) < size < 2^(e+1)
    return e if size <= _power(e) else e + 1


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


# Exact linear algebra of a regression: over the rationals where moments are known, modulo n where they are hidden.
#
# With X, y the encoded columns (scaled and centred by public bounds, then times 2^q: `scaling`), A = X^T X + Lambda and
# b = X^T y, beta' = A^-1 b are rationals, and `scaling` takes them back to the columns' own units. python-flint does the
# arithmetic; what is ours is the ridge on the right entries, the names of collinear columns, and the bound below.
#
# How large n must be: by Cauchy-Binet and Cauchy-Schwarz det A <= prod_j N_j^2 and, for Cramer's numerators,
# |num_i| <= prod_j N_j * prod_(j != i) N_j * N_y, where N_j^2 = rows * B_j^2 + Lambda_j bounds a column's squared length.
# A fraction is recovered from its residue without doubt when n > 2 |num| |den|.


@dataclass(frozen=True)
class Moments:
    """A = X^T X as full rows, b = X^T y and, where asked for, y^T y of encoded rows, and how many rows they count.

    >>> Moments(((4, 2), (2, 3)), (5, 6), None, 4).rows
    4
    """

    matrix: tuple[tuple[int, ...], ...]
    vector: tuple[int, ...]
    square: int | None
    rows: int


@dataclass(frozen=True)
class Bounds:
    """What is public beforehand: the most |a_ij| and |b_i| can be, and the needed bits of a modulus.

    >>> Bounds(1, 2**10, 2**5).modulus_bits
    18
    """

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

    >>> from velado.learning.regression.simulate import small_job
    >>> ridge_entries(small_job(bits=4, ridge=1))
    (0, 1024)
    """
    scaled = (round(job.ridge * (1 << (2 * scale.bits))) for scale in scaling_of(job).features)
    return (*((0,) if job.intercept else ()), *scaled)


def reaches(job: Job) -> tuple[int, ...]:
    """The most an encoded value of each unknown's column can be in size, the target's last.

    >>> from velado.learning.regression.simulate import small_job
    >>> reaches(small_job(bits=4))
    (16, 256, 256)
    """
    scaling = scaling_of(job)
    scales = zip((*scaling.features, scaling.target), (*job.features, job.target), strict=True)
    most = [scale.reach(column) for scale, column in scales]
    return (*((1 << job.bits,) if job.intercept else ()), *most)


def bounds_of(job: Job) -> Bounds:
    """The bound of the module's docstring for this job's public bounds and most rows.

    >>> from velado.learning.regression.simulate import small_job
    >>> bounds_of(small_job(bits=4)).modulus_bits
    134
    """
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
    """Raise when the hidden solution could not be told from its residue, naming the bits or the key that works.

    >>> from velado.learning.regression.simulate import small_job
    >>> refuse_overflow(small_job(bits=4), modulus_bits=100)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ParameterError: The solution may need a modulus of 135 bits and the key has 100...
    """
    have = job.key_bits if modulus_bits is None else modulus_bits
    need = bounds_of(job).modulus_bits
    if need < have:  # a key of k bits has n >= 2^(k-1)
        return
    works = next(
        (q for q in range(job.bits - 1, -1, -1) if bounds_of(replace(job, bits=q)).modulus_bits < have), None
    )
    key = -(-(need + 1) // 512) * 512
    advice = [say("a key of {bits} bits", bits=key)] if key <= 8192 else []
    advice += [say("at most {bits} fractional bits", bits=works)] if works is not None else []
    advice += [say("tighter bounds"), say("a smaller most_rows")]
    raise ParameterError(
        say(
            "The solution may need a modulus of {need} bits and the key has {have}.", need=need + 1, have=have
        ),
        "A number larger than the modulus would come back as another number.",
        say("Use {advice}.", advice=listed(advice, "or")),
    )


def _with_ridge(moments: Moments, job: Job) -> Any:
    """A + Lambda as an integer matrix of python-flint."""
    import flint

    extra = ridge_entries(job)
    return flint.fmpz_mat(
        [
            [value + (extra[i] if i == j else 0) for j, value in enumerate(row)]
            for i, row in enumerate(moments.matrix)
        ]
    )


def solve(moments: Moments, job: Job) -> tuple[Fraction, ...]:
    """beta in the columns' own units, exactly; SingularDesignError names the columns that follow from others.

    >>> from velado.learning.regression.simulate import small_job
    >>> job = small_job(bits=4)
    >>> solve(Moments(((256, 0), (0, 1024)), (0, 512), None, 10), job)
    (Fraction(0, 1), Fraction(1, 2))
    """
    return scaling_of(job).to_real(solve_encoded(moments, job))


def solve_encoded(moments: Moments, job: Job) -> tuple[Fraction, ...]:
    """beta' = (A + Lambda)^-1 b, exactly: the coefficients of the encoded columns.

    >>> from velado.learning.regression.simulate import small_job
    >>> solve_encoded(Moments(((256, 0), (0, 1024)), (0, 512), None, 10), small_job(bits=4))
    (Fraction(0, 1), Fraction(1, 2))
    """
    import flint

    matrix = _with_ridge(moments, job)
    if matrix.det() == 0:
        raise singular(job, _dependent_columns(matrix, job))
    right = flint.fmpz_mat([[value] for value in moments.vector])
    solution = flint.fmpq_mat(matrix).solve(flint.fmpq_mat(right))
    return tuple(Fraction(int(x.p), int(x.q)) for x in solution.entries())


def covariance_diagonal(moments: Moments, job: Job) -> tuple[Fraction, ...] | None:
    """The squared standard errors of plain least squares, in the coefficients' own units.

    diag(T Sigma T^t) with T of `scaling`, Sigma = s^2 A^-1 and s^2 = (y^T y - b^T A^-1 b) / (rows - D) of encoded rows.
    None where y'y is not known, lambda is not 0 (the textbook formula does not hold), or there are no rows to spare.

    >>> from velado.learning.regression.simulate import small_job
    >>> moments = Moments(((2560, 0), (0, 1024)), (0, 512), 656, 10)
    >>> covariance_diagonal(moments, small_job(bits=4, moments=True))
    (Fraction(5, 1024), Fraction(25, 512))
    """
    import flint

    spare = moments.rows - job.width
    if moments.square is None or job.ridge != 0 or spare <= 0:
        return None
    inverse = flint.fmpq_mat(_with_ridge(moments, job)).inv()
    right = flint.fmpq_mat(flint.fmpz_mat([[value] for value in moments.vector]))
    sigma2 = (moments.square - (right.transpose() * inverse * right)[0, 0]) / spare
    covariance = [[Fraction(int(x.p), int(x.q)) for x in row] for row in (inverse * sigma2).table()]
    return scaling_of(job).variances(covariance)


def _dependent_columns(matrix: Any, job: Job) -> tuple[str, ...]:
    """The unknowns whose columns take part in a linear dependence: where some vector of A's null space is not 0."""
    basis, rank = matrix.nullspace()
    involved = [
        name for i, name in enumerate(job.unknowns) if any(int(basis[i, j]) != 0 for j in range(int(rank)))
    ]
    return tuple(involved)


def singular(job: Job, names: Sequence[str]) -> SingularDesignError:
    """The error that says which columns are collinear, or that some are when only that is known.

    >>> from velado.learning.regression.simulate import small_job
    >>> str(singular(small_job(), ["x"])).split(".")[0]
    'The columns x depend linearly on one another'
    """
    what = say("Some columns of the design depend linearly on one another.")
    if names:
        others = [name for name in names if name != INTERCEPT]
        names = (
            others if len(others) > 1 else names
        )  # two columns that add up to a constant say it by themselves
        what = say("The columns {names} depend linearly on one another.", names=", ".join(names))
    return SingularDesignError(
        what,
        "Then infinitely many coefficients fit equally well.",
        "Leave one of them out, or set lambda above 0.",
    )


def solve_modulo(
    matrix: Sequence[Sequence[int]], vector: Sequence[int], modulus: int
) -> tuple[int, ...] | None:
    """w with C w = d modulo n, or None where C has no inverse (its determinant is 0, or shares a factor with n).

    >>> solve_modulo([[2, 0], [0, 3]], [4, 9], 101)
    (2, 3)
    """
    import flint

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

    >>> reconstruct(pow(3, -1, 10007) * 2, 10007, 10, 10)
    Fraction(2, 3)
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


@dataclass(frozen=True, kw_only=True)
class Solved:
    """What a solution says: coefficients and, where they can be told, standard errors, rows, VIFs and single figures.

    *facts*: r_squared, condition, deviance, rounds, ridge, noise, held_back, where they were worked out.

    >>> Solved(coefficients=(1.0, 2.0)).rows is None
    True
    """

    coefficients: tuple[float, ...]
    errors: tuple[float, ...] | None = None
    rows: int | None = None
    inflation: tuple[float, ...] | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    path: PenaltyPath | None = None


FORMAT = 1


def mean_of(family: str, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the target that a linear score stands for: itself, a chance (logistic), or e to its power (poisson).

    >>> mean_of("logistic", np.array([0.0])).tolist()
    [0.5]
    """
    return FAMILIES[family].mean(scores)


@dataclass(frozen=True)
class Fit:
    """One model over all parties' rows: y = sum_j beta_j x_j, or log odds (logistic) or log mean (poisson) of y.

    *promise* says what holds and under which assumptions, *learned* what each party saw and can infer, *cost* what was
    spent (seconds, bytes, powers), *how* the job and the protocol. *standard_errors* stand only where the protocol reveals
    the pooled moments to someone anyway.

    >>> from velado.learning.regression.simulate import simulate, small_job, small_rows
    >>> fit, _ = simulate(small_job(), dict.fromkeys(("c0", "c1", "c2"), small_rows()))
    >>> fit.predict({"x": [0.0, 1.5]}).round(6).tolist(), Fit.from_dict(fit.to_dict()) == fit
    ([1.0, 4.0], True)
    """

    target: str
    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    promise: RunPromise
    learned: Learned
    standard_errors: tuple[float, ...] | None = None
    cost: Mapping[str, float] = field(default_factory=dict)
    how: Mapping[str, object] = field(default_factory=dict)
    family: str = "linear"
    inflation: tuple[float, ...] | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    path: PenaltyPath | None = None

    def at_choice(self) -> Fit:
        """The model at the penalty that BIC chose on the path: no standard errors, since a choice was made on the same rows."""
        if self.path is None:
            return self
        return replace(
            self, coefficients=self.path.best, standard_errors=None, inflation=None, facts={}, path=None
        )

    def predict(self, columns: Mapping[str, Sequence[float] | NDArray[np.float64]]) -> NDArray[np.float64]:
        """The model's mean of the target for every row (logistic: a chance); each feature is looked up by its name."""
        features = [name for name in self.names if name != INTERCEPT]
        absent = [name for name in features if name not in columns]
        if absent:
            raise SchemaError(
                say("The rows lack {absent}.", absent=", ".join(absent)),
                "The model was fitted with these features.",
                "Give every feature of the model.",
            )
        arrays = {name: np.asarray(columns[name], dtype=np.float64) for name in features}
        sizes = {array.shape for array in arrays.values()}
        if len(sizes) > 1:
            raise InputError(
                "The features have different numbers of rows.",
                "A prediction needs one value of each.",
                "Give columns of equal length.",
            )
        shape = sizes.pop() if sizes else (1,)
        total = np.zeros(shape)
        for name, beta in zip(self.names, self.coefficients, strict=True):
            total += beta if name == INTERCEPT else beta * arrays[name]
        return mean_of(self.family, total)

    @property
    def features(self) -> tuple[Bounded, ...]:
        """The features as the job declares them, categories and products with what they are made from."""
        job = self.how.get("job")
        listed = job.get("features", []) if isinstance(job, Mapping) else []
        found = {one["name"]: one for one in listed if isinstance(one, Mapping) and "name" in one}
        where = Where("file", say("the model"))
        return tuple(
            read(Bounded, dict(found.get(name, {"name": name, "bounds": ["0", "1"]})), where)
            for name in self.names
            if name != INTERCEPT
        )

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; coefficients as floats."""
        return {
            "format": FORMAT,
            "target": self.target,
            "family": self.family,
            "coefficients": dict(zip(self.names, self.coefficients, strict=True)),
            "standard_errors": None
            if self.standard_errors is None
            else dict(zip(self.names, self.standard_errors, strict=True)),
            "inflation": None
            if self.inflation is None
            else dict(zip(self.names, self.inflation, strict=True)),
            "facts": dict(self.facts),
            **({} if self.path is None else {"path": self.path.to_dict()}),
            "promise": self.promise.to_dict(),
            "learned": self.learned.to_dict(),
            "cost": dict(self.cost),
            "how": dict(self.how),
        }

    @classmethod
    def from_dict(cls, document: Any) -> Fit:
        """The fit a model file holds, or SchemaError where it is not one of this format."""
        try:
            if document["format"] != FORMAT:
                raise KeyError("format")
            names = tuple(str(name) for name in document["coefficients"])
            coefficients = tuple(_number(value) for value in document["coefficients"].values())
            errors, inflation = document.get("standard_errors"), document.get("inflation")
            family = document.get("family", "linear")
            if not names or family not in FAMILIES:
                raise ValueError
            return cls(
                target=str(document["target"]),
                names=names,
                coefficients=coefficients,
                promise=RunPromise.from_dict(document["promise"]),
                learned=Learned.from_dict(document["learned"]),
                standard_errors=None if errors is None else tuple(_number(errors[name]) for name in names),
                cost=dict(document.get("cost", {})),
                how=dict(document.get("how", {})),
                family=family,
                inflation=None if inflation is None else tuple(_number(inflation[name]) for name in names),
                facts={str(key): _number(value) for key, value in dict(document.get("facts", {})).items()},
                path=PenaltyPath.from_dict(document["path"]) if "path" in document else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise SchemaError(
                "The file is not a model that this version reads.",
                say("A model has format {format}, a target and finite coefficients.", format=FORMAT),
                "Give the fit.json that a regression wrote.",
            ) from None

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{beta:.6g}</td></tr>"
            for name, beta in zip(self.names, self.coefficients, strict=True)
        )
        promise = html.escape(self.promise.type)
        return f"<table><caption>{html.escape(self.target)} ({promise})</caption>{rows}</table>"


def _number(value: Any) -> float:
    """A JSON number as a float; text, true, false and what is not finite are no numbers of a model."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number
