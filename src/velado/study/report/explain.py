"""Why a release costs what it costs: which columns, and which rows, carry the loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.anonymize.release import Release

SHOWN_ROWS = 20
SAME = 1e-9
"""Losses this near to one another are equal but for rounding."""


@dataclass(frozen=True, repr=False)
class RowLosses:
    """The loss of every row of the input in every quasi-identifier; a suppressed row loses 1 in each.

    *losses* is rows x quasi-identifiers, in the order of the input.
    """

    losses: npt.NDArray[np.float64]
    names: tuple[str, ...]
    kept: npt.NDArray[np.bool_]

    @property
    def by_row(self) -> npt.NDArray[np.float64]:
        """Mean loss of each row."""
        return np.asarray(self.losses.mean(axis=1), dtype=np.float64)

    def column_shares(self) -> dict[str, float]:
        """The part of the whole loss that each column carries; all 0 when nothing was lost."""
        total = float(self.losses.sum())
        sums = self.losses.sum(axis=0)
        return {n: float(s / total) if total else 0.0 for n, s in zip(self.names, sums, strict=True)}

    def costliest(self, shown: int = SHOWN_ROWS) -> list[dict[str, object]]:
        """The published rows that lose most: row number (the first row is 1), loss, dearest columns, all of a tie.

        Ties go to the earlier row, so that the list repeats.
        """
        rows = np.flatnonzero(self.kept)
        means = self.by_row[rows]
        order = np.lexsort((rows, -means))[:shown]
        chosen = rows[order[means[order] > 0]]
        return [
            {
                "row": int(row) + 1,
                "loss": float(self.by_row[row]),
                "columns": [
                    name
                    for name, loss in zip(self.names, self.losses[row].tolist(), strict=True)
                    if loss >= self.losses[row].max() - SAME
                ],
            }
            for row in chosen
        ]

    def carried_by(self, share: float) -> float:
        """The part of the whole loss that the costliest *share* of all rows (at least one row) carries."""
        means = np.sort(self.by_row)[::-1]
        total = float(means.sum())
        count = max(1, int(np.ceil(share * means.size)))
        return float(means[:count].sum() / total) if total else 0.0


def row_losses(release: Release) -> RowLosses:
    """The losses of a release, row by row. O(rows x quasi-identifiers)."""
    rows = release.kept.size
    columns = release.data.columns
    seen = _rows_seen(release)
    losses = np.ones((rows, len(columns)))
    for at, (column, published) in enumerate(zip(columns, release.recoded.columns, strict=True)):
        losses[seen, at] = np.where(release.recoded.kept, published.losses(column), 1.0)
    return RowLosses(losses, tuple(column.name for column in columns), release.kept)


def _rows_seen(release: Release) -> npt.NDArray[np.int64]:
    """Which rows of the input the method saw: those without a blank that the schema says to suppress."""
    seen = np.ones(release.kept.size, dtype=bool)
    if release.data.rows != seen.size:
        schema = release.table.schema
        for column in schema.quasi:
            if schema.missing_policy(column) == "suppress":
                seen &= ~release.table.is_missing(column.name).to_numpy()
    return np.flatnonzero(seen)
