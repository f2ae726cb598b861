"""What one client can do to the model, limited: rows are capped, updates shortened, and the centre may be a median.

None of this is possible under secure sums, where nobody sees one client's update. Whoever fears a hostile client more than a
curious coordinator chooses "mean", "median" or "trimmed-mean"; median and trimmed mean are those of Flower's FedMedian and
FedTrimmedAvg (Yin et al. 2018), to which they are held in a test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from velado.learning.flower.aggregations import AGGREGATIONS
from velado.learning.flower.federation import AUTO, Federation

Floats = npt.NDArray[np.float64]
FAR = 4.0
"""A client lies far out where it is so many times as far from the middle of all updates as the median client is."""


def counted_rows(rows: Sequence[int], federation: Federation) -> Floats:
    """With how many rows each client counts: as many as it says, the agreed most, or *row_cap* times the median of all.

    >>> counted_rows([100, 120, 10**12], Federation()).tolist()
    [100.0, 120.0, 360.0]
    """
    found = np.minimum(np.asarray(rows, dtype=np.float64), federation.most_rows)
    if federation.row_cap > 0:
        found = np.minimum(found, federation.row_cap * np.median(found))
    return np.asarray(found, dtype=np.float64)


def shortened(updates: Floats, clip: float) -> Floats:
    """The updates, one in each row, none longer than *clip* times the median length.

    >>> np.linalg.norm(shortened(np.array([[3.0, 4], [0, 5], [-300, 400]]), 2.0), axis=1).tolist()
    [5.0, 5.0, 10.0]
    """
    length = np.linalg.norm(updates, axis=1)
    if clip <= 0 or not length.size:
        return updates
    most = clip * np.median(length)
    return np.asarray(updates * np.minimum(1.0, most / np.maximum(length, 1e-300))[:, None], dtype=np.float64)


def centre(updates: Floats, rows: Floats, federation: Federation) -> Floats:
    """The one update that stands for all, as the agreed way has it; the mean, which "auto" is where answers are seen.

    >>> centre(np.array([[1.0], [4.0], [-50.0]]), np.ones(3), Federation(aggregation="median")).tolist()
    [1.0]
    """
    way = "mean" if federation.aggregation == AUTO else federation.aggregation
    return AGGREGATIONS[way].centre(updates, rows, federation)


def far_out(updates: Floats) -> npt.NDArray[np.bool_]:
    """Which updates lie far from the middle of all; nobody where there are fewer than four.

    >>> far_out(np.array([[1.0], [1.1], [0.9], [-50.0]])).tolist()
    [False, False, False, True]
    """
    if len(updates) < 4:
        return np.zeros(len(updates), dtype=bool)
    distance = np.linalg.norm(updates - np.median(updates, axis=0), axis=1)
    return np.asarray(distance > FAR * max(float(np.median(distance)), 1e-12), dtype=bool)
