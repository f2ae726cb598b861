"""How wide the noise is: exact tails of the discrete mechanisms, and from how many queries zCDP is the quieter one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.data.table import Table
from velado.errors import MissingExtra, ParameterError
from velado.query.budget import Budget, Measure
from velado.query.noise import Mechanism
from velado.query.unit import Unit

# Up to this scale the discrete Gaussian's tail is summed; beyond it a continuous bound is less than one step off.
SUMMED = 4096.0


@lru_cache(maxsize=1024)
def half_width(mechanism: Mechanism, scale: float, confidence: Fraction) -> int:
    """The smallest whole t (Gaussian beyond scale 4,096: at most one more) with P(|noise| <= t) >= confidence.

    Discrete Laplace: P(|X| > t) = 2 p^(t+1) / (1 + p) with p = exp(-1/scale). Discrete Gaussian: the sum of
    exp(-x^2 / 2 scale^2), or P(X >= m) <= P(N(0, scale^2) >= m - 1) (Canonne, Kamath, Steinke 2020, prop. 25).
    """
    if not 0 < confidence < 1:
        raise ParameterError(
            "The confidence of an interval must lie strictly between 0 and 1.",
            "It is the chance that the interval holds the exact answer.",
            "Choose for example 0.95.",
        )
    outside = float(1 - confidence)
    if mechanism == "laplace":
        p = math.exp(-1 / scale)
        t = max(0, math.ceil(scale * math.log(2 / ((1 + p) * outside))) - 1)
        # The logarithm may be off by its last bit: the tail itself decides.
        while laplace_tail(scale, t) > outside:
            t += 1
        while t > 0 and laplace_tail(scale, t - 1) <= outside:
            t -= 1
        return t
    if mechanism == "gaussian":
        if scale > SUMMED:
            return math.ceil(-scale * NormalDist().inv_cdf(outside / 2))
        beyond = _gaussian_tails(scale)
        # The tails fall; the first one within `outside` is the answer.
        return int(np.searchsorted(-beyond, -outside))
    raise ValueError("a chosen candidate has a rank error, not a width")


def laplace_tail(scale: float, t: int) -> float:
    """P(|X| > t) of the discrete Laplace distribution."""
    p = math.exp(-1 / scale)
    return 2 * math.exp(-(t + 1) / scale) / (1 + p)


@lru_cache(maxsize=64)
def _gaussian_tails(scale: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """P(|X| > t) for t = 0, 1, ..., summed from the far end so that small tails keep their digits."""
    x = np.arange(0, math.ceil(40 * scale) + 2, dtype=np.float64)
    weights = np.exp(-0.5 * (x / scale) ** 2)
    above = np.cumsum(weights[::-1])[::-1]
    total = weights[0] + 2 * above[1]
    tails: np.ndarray[tuple[int], np.dtype[np.float64]] = np.append(2 * above[1:], 0.0) / total
    return tails


def standard_deviation(mechanism: Mechanism, scale: float) -> float:
    """Of the discrete Laplace sqrt(2p)/(1-p), p = exp(-1/scale); of the discrete Gaussian at most its scale."""
    if mechanism == "laplace":
        return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
    return scale


def better_measure(queries: int, epsilon: Fraction | float | str, delta: Fraction | float | str) -> Measure:
    """The measure under which each of so many equal counts gets the smaller standard deviation.

    Pure: sqrt(2) k / epsilon. Concentrated, at the same (epsilon, delta): sqrt(k / 2 rho). The second wins when
    k > epsilon^2 / (4 rho): from 15 queries on at epsilon 1 and delta 1e-6, from 22 at 1e-9. The two promises differ:
    the second may fail with chance delta.
    """
    return "rho" if queries >= wins_from(epsilon, delta) else "epsilon"


def wins_from(epsilon: Fraction | float | str, delta: Fraction | float | str) -> int:
    """The least number of equal counts from which zCDP adds less noise than pure epsilon does."""
    rho = Budget.approximate(epsilon, delta).total
    exact = Fraction(str(epsilon))
    return math.floor(exact**2 / (4 * rho)) + 1


# Which rows might move together, as a proposal that binds nobody until the owner signs it.
#
# Clustering finds rows that look alike; that is a hint of dependence, not a bound on it. And groups computed from the private
# rows would tell of them, and would shift when one person leaves, which voids the promise. So a proposal is made from public
# data, or from other data than the table that will be asked; the owner reads it, signs it, and writes it as a column.

Made = Literal["public", "other"]
Clustering = Literal["dbscan", "gmm"]


@dataclass(frozen=True)
class Proposal:
    """A group label for each row, how large the groups are, and whether somebody answers for them.

    A row that no cluster holds is a group of its own. *most_rows* is the largest group found in the data the
    proposal was made from; the most that is enforced is declared when signing and may be another number.
    """

    column: str
    labels: NDArray[np.int64]
    method: Mapping[str, Any]
    made_from: Made
    signed_by: str | None = None
    reason: str | None = None
    rows: int | None = None

    @property
    def signed_off(self) -> bool:
        """Whether an owner has taken responsibility for the groups."""
        return self.signed_by is not None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each group, by label."""
        return np.bincount(self.labels).astype(np.int64)

    @property
    def most_rows(self) -> int:
        """Rows of the largest group."""
        return int(self.sizes.max())

    def sign(self, name: str, reason: str, rows: int | None = None) -> Proposal:
        """The same proposal, signed: *name* declares these groups, at most *rows* of each counting, for a stated *reason*."""
        if not name.strip() or not reason.strip():
            raise ParameterError(
                "A proposal is signed with a name and a reason.",
                "Groups are a declaration somebody answers for, not something the data decided.",
                "Pass both, for example sign('data steward', 'households of the public register').",
            )
        rows = self.most_rows if rows is None else rows
        Unit(self.column, rows)  # refuses a most below 1
        return replace(self, signed_by=name.strip(), reason=reason.strip(), rows=rows)

    def unit(self) -> Unit:
        """The unit a signed proposal declares; an unsigned one declares none."""
        if not self.signed_off or self.rows is None:
            raise ParameterError(
                "The proposed groups are not signed off.",
                "Clusters only suggest which rows move together; a promise needs somebody who declares it.",
                "Review the groups, then use proposal.sign(name, reason).",
            )
        return Unit(self.column, self.rows)

    def series(self) -> pl.Series:
        """The labels as a column of texts, to be written beside the rows they were made from."""
        width = len(str(len(self.sizes)))
        return pl.Series(self.column, self.labels).cast(pl.String).str.zfill(width)

    def to_dict(self) -> dict[str, Any]:
        """The proposal without its rows: how it was made, how large the groups are, who signed."""
        sizes, counts = np.unique(self.sizes, return_counts=True)
        return {
            "column": self.column,
            "made_from": self.made_from,
            "method": dict(self.method),
            "groups": len(self.sizes),
            "most_rows": self.most_rows,
            "groups_by_size": {int(size): int(count) for size, count in zip(sizes, counts, strict=True)},
            "signed_off": self.signed_off,
            "signed_by": self.signed_by,
            "reason": self.reason,
            "rows": self.rows,
        }


def suggest_groups(
    table: Table,
    made_from: Made,
    *,
    columns: Sequence[str] | None = None,
    method: Clustering = "dbscan",
    column: str = "group",
    reach: float = 0.4,
    neighbours: int = 2,
    components: int = 10,
    seed: int = 0,
) -> Proposal:
    """Groups of rows that lie near one another, by scikit-learn's DBSCAN or Gaussian mixture, unsigned.

    *made_from* says what the rows are: "public", or "other" data than will be asked. Columns are scaled to [0, 1]
    (categories as their places in sorted order), identifiers left out. *reach* and *neighbours* are DBSCAN's eps and
    minPoints, *components* the mixture's. DBSCAN costs O(n log n) to O(n^2), the mixture O(n d^2) per round.
    """
    if made_from not in get_args(Made):
        raise ParameterError(
            "What the groups are suggested from must be 'public' or 'other' data.",
            "Groups computed from the private rows would tell of them.",
            "Pass made_from='public' or made_from='other', if that is true.",
        )
    if method not in get_args(Clustering):
        raise ParameterError(
            "Groups are suggested by 'dbscan' or 'gmm'.",
            "No other clustering is offered.",
            "Name one of the two.",
        )
    try:
        from sklearn.cluster import DBSCAN
        from sklearn.mixture import GaussianMixture
    except ImportError:
        raise MissingExtra(
            "scikit-learn is not installed.",
            "Suggesting groups needs its clustering.",
            "Install velado[ml].",
        ) from None
    points = _points(table, columns)
    if method == "dbscan":
        raw = DBSCAN(eps=reach, min_samples=neighbours).fit_predict(points)
        settings: dict[str, Any] = {"name": "dbscan", "reach": reach, "neighbours": neighbours}
    else:
        mixture = GaussianMixture(min(components, len(points)), random_state=seed, reg_covar=1e-6)
        raw = mixture.fit_predict(points)
        settings = {"name": "gmm", "components": components, "seed": seed}
    return Proposal(column, _labels(np.asarray(raw, dtype=np.int64)), settings, made_from)


def _points(table: Table, columns: Sequence[str] | None) -> NDArray[np.float64]:
    named = columns or [name for name, column in table.schema.columns.items() if column.role != "identifier"]
    absent = [name for name in named if name not in table.frame.columns]
    if absent or not named:
        raise ParameterError(
            f"{len(absent)} of the columns to cluster by are not in the table.",
            "Rows are compared by these columns.",
            "Name columns of the table.",
        )
    out = []
    for name in named:
        text = table.text(name)
        if table.schema.columns[name].kind == "numeric":
            values = text.str.replace(table.schema.decimal, ".", literal=True).cast(pl.Float64, strict=False)
        else:
            values = text.rank("dense").cast(pl.Float64)
        array = values.fill_nan(None).to_numpy().astype(np.float64)
        array = np.where(np.isfinite(array), array, np.nan)
        low, high = (np.nanmin(array), np.nanmax(array)) if np.isfinite(array).any() else (0.0, 0.0)
        scaled = (array - low) / (high - low) if high > low else np.zeros_like(array)
        out.append(np.where(np.isnan(scaled), 0.5, scaled))  # a missing cell pulls to no side
    return np.column_stack(out)


def _labels(raw: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels 0, 1, 2, ...; each row outside every cluster (-1) gets one of its own."""
    alone = raw < 0
    first = int(raw.max(initial=-1)) + 1
    raw = raw.copy()
    raw[alone] = first + np.arange(int(alone.sum()))
    return np.unique(raw, return_inverse=True)[1].astype(np.int64).reshape(-1)
