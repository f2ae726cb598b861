"""The mean without the ends of each number (Yin et al. 2018; Flower's FedTrimmedAvg)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from velado.learning.flower.aggregations._aggregation import Aggregation, Floats
from velado.text import say

if TYPE_CHECKING:
    from velado.learning.flower.federation import Federation


class TrimmedMean(Aggregation):
    """Of three answers or more at least one is left out at each end: a share that rounds down to nobody would be the plain mean.

    >>> from velado.learning.flower.federation import Federation
    >>> few = Federation(aggregation="trimmed-mean", clients=4)
    >>> TrimmedMean().centre(np.array([[1.0], [1.1], [0.9], [-50.0]]), np.ones(4), few).round(2).tolist()
    [0.95]
    """

    name: ClassVar[str] = "trimmed-mean"
    says: ClassVar[str] = say(
        "Put together by the mean without the ends of each number; the coordinator saw each client's weights."
    )
    fewest: ClassVar[int] = 3

    def centre(self, updates: Floats, rows: Floats, federation: Federation) -> Floats:
        """The mean of what is left of each number."""
        cut = min(max(1, int(federation.trim * len(updates))), (len(updates) - 1) // 2)
        return np.asarray(np.sort(updates, axis=0)[cut : len(updates) - cut].mean(axis=0), dtype=np.float64)
