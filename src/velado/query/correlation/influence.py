"""s_j = |f(D) - f(D without j)| for the five aggregates, for every row at once (definitions 2, 3 and 7).

=======  ==========================================================================
COUNT    1
SUM      |x_j|
AVG      |x_j - mean| / (m - 1); with one row there is no mean without it
MIN/MAX  the gap to the next value where j alone holds the extreme, else 0
=======  ==========================================================================

for the m rows of the answer, and 0 for every other row. A row whose value is missing (NaN) is not in the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from velado.errors import QueryRefused
from velado.query.correlation.records import Floats

Aggregation = Literal["count", "sum", "avg", "min", "max"]
AGGREGATIONS: tuple[Aggregation, ...] = ("count", "sum", "avg", "min", "max")
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class Influence:
    """The true answer, s_j per row, and which rows are in the answer."""

    answer: float
    of_row: Floats
    inside: Mask

    def __repr__(self) -> str:
        return f"Influence({int(self.inside.sum())} of {self.inside.size} rows)"


def influence(kind: Aggregation, inside: Mask, values: Floats | None = None) -> Influence:
    """What every row does to the answer of *kind* over the rows *inside*. O(n).

    Refuses an answer that does not exist: no row at all, or the mean of a single row, whose influence is undefined.
    """
    if values is not None:
        inside = inside & ~np.isnan(values)
    matching = int(np.count_nonzero(inside))
    if matching == 0 or (kind == "avg" and matching == 1):
        raise QueryRefused(
            f"{kind.upper()} has too few rows to be answered as in the source.",
            "Without a row, or for the mean of one, the source's sensitivity is not defined.",
            "Ask about more rows; or use a promise that does not depend on the rows.",
        )
    out = np.zeros(inside.size)
    if kind == "count":
        out[inside] = 1.0
        return Influence(float(matching), out, inside)
    if values is None:
        raise QueryRefused(
            f"{kind.upper()} needs a numeric column.",
            "Only rows can be counted without one.",
            "Name the column.",
        )
    x = values[inside]
    if kind == "sum":
        out[inside] = np.abs(x)
        return Influence(float(x.sum()), out, inside)
    if kind == "avg":
        mean = float(x.mean())
        out[inside] = np.abs(x - mean) / (matching - 1)
        return Influence(mean, out, inside)
    answer, gap = _extreme(x if kind == "max" else -x)
    if gap > 0.0:
        out[np.flatnonzero(inside)[int(np.argmax(x) if kind == "max" else np.argmin(x))]] = gap
    return Influence(answer if kind == "max" else -answer, out, inside)


def _extreme(x: Floats) -> tuple[float, float]:
    """The greatest value, and its gap to the next one (0 for ties).

    Of a single row the gap to nothing is nothing: the source names no answer for the empty set, so none is charged.
    """
    if x.size == 1:
        return float(x[0]), 0.0
    two = np.partition(x, x.size - 2)[-2:]
    return float(two[1]), float(two[1] - two[0])
