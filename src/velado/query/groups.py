"""Which rows might move together, as a proposal that binds nobody until the owner signs it.

Clustering finds rows that look alike; that is a hint of dependence, not a bound on it. And groups computed from the private
rows would tell of them, and would shift when one person leaves, which voids the promise. So a proposal is made from public
data, or from other data than the table that will be asked; the owner reads it, signs it, and writes it as a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.data.table import Table
from velado.errors import MissingExtra, ParameterError
from velado.query.budget import Facts
from velado.query.unit import Unit
from velado.text import say

Made = Literal["public", "other"]
Clustering = Literal["dbscan", "gmm"]


@dataclass(frozen=True)
class Proposal:
    """A group label for each row, how large the groups are, and whether somebody answers for them.

    A row that no cluster holds is a group of its own. *most_rows* is the largest group found in the data the
    proposal was made from; the most that is enforced is declared when signing and may be another number.

    >>> proposal = Proposal("group", np.array([0, 0, 1]), {"name": "dbscan"}, "public")
    >>> proposal.sign("data steward", "households of the register", rows=4).unit()
    Unit(column='group', rows=4, dependence=None)
    """

    column: str
    labels: NDArray[np.int64]
    method: Facts
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

    def to_dict(self) -> Facts:
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

    >>> from velado.data.schema import Column, Schema
    >>> schema = Schema({"age": Column("age", kind="numeric")})
    >>> register = Table.of(pl.DataFrame({"age": ["1", "2", "90"]}), schema, "register")
    >>> suggest_groups(register, "public", reach=0.1).most_rows
    2
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
        settings: Facts = {"name": "dbscan", "reach": reach, "neighbours": neighbours}
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
            say("{absent} of the columns to cluster by are not in the table.", absent=len(absent)),
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
