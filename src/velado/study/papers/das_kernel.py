"""The links of the DAS paper, in floating point as they were counted there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(cache=True)
def first_nearest(
    queries: npt.NDArray[np.float64], targets: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """For each query the first target at the least squared distance, summed column by column from the left.

    Exact arithmetic would find ties that rounding breaks, and the published counts hang on that (by one or two
    in thousands), so nothing here may be reordered. O(queries x targets x columns).
    """
    rows, width = queries.shape
    out = np.empty(rows, dtype=np.int64)
    for row in range(rows):
        best = np.inf
        for at in range(targets.shape[0]):
            total = 0.0
            for column in range(width):
                gap = queries[row, column] - targets[at, column]
                total += gap * gap
            if total < best:
                best = total
                out[row] = at
    return out
