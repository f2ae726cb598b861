"""Penalised coefficients for a whole row of penalties, from sums that are there anyway: ridge, lasso, elastic net.

With columns standardised by their pooled means and deviations, R their correlations, r their covariances with the target, the coefficients at a penalty l are

    argmin_b  1/2 b'R b - r'b + l (alpha |b|_1 + (1 - alpha) / 2 |b|^2),    alpha = 1 lasso, 1/2 elastic net, 0 ridge,

scikit-learn's ElasticNet on the pooled, standardised rows (its Ridge with l times the rows). Coordinate descent finds which
coefficients are not 0 and their signs (Friedman, Hastie and Tibshirani 2010); on these the solution is linear and solved exactly. Penalties fall evenly in their
logarithm to a thousandth of the first, which is the least at which no column is left; ridge, which leaves all in, goes from a thousand times the
lasso's first to a thousandth of it.

The choice is the least BIC = n log(RSS / n) + df log n; df counts the lasso's columns, and is the trace of R_A (R_A + l (1 - alpha) I)^-1
on the columns A of the others (Zou, Hastie and Tibshirani 2007). No further release is needed: all of it follows from the sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PathKind = Literal["none", "ridge", "lasso", "elastic-net"]
ALPHAS: Mapping[str, float] = {"ridge": 0.0, "elastic-net": 0.5, "lasso": 1.0}
PENALTIES = 30
SMALLEST = 1e-3
MOST_SWEEPS = 5000


@dataclass(frozen=True, kw_only=True)
class PenaltyPath:
    """Coefficients in the columns' own units, in the order of the unknowns, for falling penalties; *chosen* has the least BIC.

    Where rows were held out in turn, *held_out* are the mean squared errors on them and *held_out_errors* these' standard errors, and *chosen*
    has the least of them.

    >>> path = PenaltyPath(kind="lasso", penalties=(1.0, 0.1), coefficients=((2.0, 0.0), (1.0, 0.5)), bic=(9.0, 3.0), chosen=1)
    >>> path.best, path.enters(1), PenaltyPath.from_dict(path.to_dict()) == path
    ((1.0, 0.5), 0.1, True)
    """

    kind: PathKind
    penalties: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    bic: tuple[float, ...]
    chosen: int
    held_out: tuple[float, ...] = ()
    held_out_errors: tuple[float, ...] = ()

    @property
    def best(self) -> tuple[float, ...]:
        """The coefficients at the chosen penalty."""
        return self.coefficients[self.chosen]

    @property
    def as_good(self) -> tuple[float, float]:
        """The largest and the least penalty whose error on held-out rows is within one standard error of the chosen one's."""
        most = self.held_out[self.chosen] + self.held_out_errors[self.chosen]
        near = [one for one, error in zip(self.penalties, self.held_out, strict=True) if error <= most]
        return max(near), min(near)

    def enters(self, place: int) -> float | None:
        """The largest penalty at which a coefficient is not 0; None where it never is."""
        pairs = zip(self.penalties, self.coefficients, strict=True)
        return next((penalty for penalty, beta in pairs if beta[place] != 0), None)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON, numbers exactly."""
        return {
            "kind": self.kind,
            "penalties": list(self.penalties),
            "coefficients": [list(one) for one in self.coefficients],
            "bic": list(self.bic),
            "chosen": self.chosen,
            **({"held_out": list(self.held_out)} if self.held_out else {}),
            **({"held_out_errors": list(self.held_out_errors)} if self.held_out else {}),
        }

    @classmethod
    def from_dict(cls, document: Any) -> PenaltyPath:
        """What `to_dict` wrote; ValueError, KeyError or TypeError where it is no path."""
        path = cls(
            kind=document["kind"],
            penalties=tuple(map(_finite, document["penalties"])),
            coefficients=tuple(tuple(map(_finite, one)) for one in document["coefficients"]),
            bic=tuple(map(_finite, document["bic"])),
            chosen=document["chosen"],
            held_out=tuple(map(_finite, document.get("held_out", ()))),
            held_out_errors=tuple(map(_finite, document.get("held_out_errors", ()))),
        )
        count = len(path.penalties)
        if path.kind not in ALPHAS or type(path.chosen) is not int or not 0 <= path.chosen < count:
            raise ValueError("no path")
        if (
            len(path.coefficients) != count
            or len(path.bic) != count
            or len(set(map(len, path.coefficients))) != 1
        ):
            raise ValueError("no path")
        if {len(path.held_out), len(path.held_out_errors)} not in ({0}, {count}):
            raise ValueError("no path")
        if any(one < 0 for one in (*path.held_out, *path.held_out_errors)):
            raise ValueError("no path")
        return path


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("no number")
    return float(value)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """What a path needs of the rows: covariances of the features, with the target, its variance, all means, and the rows.

    Without an intercept the same about 0 instead of the means, which are 0 then.

    >>> Spread(features=np.eye(1), cross=np.ones(1), target=2.0, means=np.zeros(1), target_mean=0.0, rows=9.0).intercept
    True
    """

    features: Floats
    cross: Floats
    target: float
    means: Floats
    target_mean: float
    rows: float
    intercept: bool = True


def penalty_path(spread: Spread, kind: PathKind, penalties: Sequence[float] | None = None) -> PenaltyPath:
    """The path of one kind, at its own penalties or at those of another path.

    >>> spread = Spread(features=np.eye(2), cross=np.array([1.0, 0.1]), target=1.5, means=np.zeros(2), target_mean=0.0, rows=100.0)
    >>> path = penalty_path(spread, "lasso")
    >>> path.coefficients[0], [round(b, 3) for b in path.best]
    ((0.0, 0.0, 0.0), [0.0, 0.999, 0.099])
    """
    alpha = ALPHAS[kind]
    size = np.sqrt(np.maximum(np.diag(spread.features), 1e-300))
    inner = spread.features / np.outer(size, size)
    cross = spread.cross / size
    most = float(np.abs(cross).max()) or 1.0
    largest = most / max(alpha, SMALLEST)
    smallest = SMALLEST if alpha else SMALLEST**2
    if penalties is None:
        penalties = [largest * smallest ** (k / (PENALTIES - 1)) for k in range(PENALTIES)]
    found, bic = [], []
    beta = np.zeros(len(cross))
    for penalty in penalties:
        beta = _at(inner, cross, penalty, alpha, beta)
        slopes = beta / size
        first = [spread.target_mean - float(slopes @ spread.means)] if spread.intercept else []
        found.append((*first, *slopes.tolist()))
        left = max(
            spread.target - 2 * float(cross @ beta) + float(beta @ inner @ beta),
            1e-12 * spread.target,
            1e-300,
        )
        freedom = _freedom(inner, beta, penalty * (1 - alpha))
        bic.append(spread.rows * math.log(left) + (freedom + len(first)) * math.log(max(spread.rows, 2.0)))
    chosen = int(np.argmin(bic))
    return PenaltyPath(
        kind=kind, penalties=tuple(penalties), coefficients=tuple(found), bic=tuple(bic), chosen=chosen
    )


def _at(inner: Floats, cross: Floats, penalty: float, alpha: float, start: Floats) -> Floats:
    """The coefficients at one penalty, from those at a larger one."""
    square, edge = penalty * (1 - alpha), penalty * alpha
    if alpha == 0:
        return np.asarray(np.linalg.solve(inner + square * np.eye(len(cross)), cross))
    beta = start.copy()
    rest = cross - inner @ beta
    scale = float(np.abs(cross).max()) or 1.0
    diagonal = np.diag(inner) + square
    for _ in range(MOST_SWEEPS):
        moved = 0.0
        for j in range(len(beta)):
            pull = rest[j] + inner[j, j] * beta[j]
            new = 0.0 if abs(pull) <= edge else (pull - math.copysign(edge, pull)) / diagonal[j]
            if new != beta[j]:
                rest -= inner[:, j] * (new - beta[j])
                moved = max(moved, abs(new - beta[j]))
                beta[j] = new
        if moved <= 1e-9 * scale:
            break
    kept = np.flatnonzero(beta)
    if len(kept):
        part = inner[np.ix_(kept, kept)] + square * np.eye(len(kept))
        exact = np.linalg.lstsq(part, cross[kept] - edge * np.sign(beta[kept]), rcond=None)[0]
        if (np.sign(exact) == np.sign(beta[kept])).all():
            beta[kept] = exact
    return beta


def _freedom(inner: Floats, beta: Floats, square: float) -> float:
    kept = np.flatnonzero(beta)
    if square == 0 or not len(kept):
        return float(len(kept))
    part = inner[np.ix_(kept, kept)]
    return float(np.trace(np.linalg.solve(part + square * np.eye(len(kept)), part)))
