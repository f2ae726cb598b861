"""The median of each number (Yin et al. 2018; Flower's FedMedian)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from velado.learning.flower.aggregations._aggregation import Aggregation, Floats
from velado.text import say

if TYPE_CHECKING:
    from velado.learning.flower.federation import Federation


class Median(Aggregation):
    """Of each number the median of all clients', whatever their rows.

    >>> from velado.learning.flower.federation import Federation
    >>> Median().centre(np.array([[1.0], [4.0], [-50.0]]), np.ones(3), Federation()).tolist()
    [1.0]
    """

    name: ClassVar[str] = "median"
    says: ClassVar[str] = say(
        "Put together by the median of each number; the coordinator saw each client's weights."
    )

    def centre(self, updates: Floats, rows: Floats, federation: Federation) -> Floats:
        """The medians."""
        return np.asarray(np.median(updates, axis=0), dtype=np.float64)
