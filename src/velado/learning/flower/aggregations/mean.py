"""FedAvg (McMahan et al. 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from velado.learning.flower.aggregations._aggregation import Aggregation, Floats
from velado.text import say

if TYPE_CHECKING:
    from velado.learning.flower.federation import Federation


class Mean(Aggregation):
    """The mean weighted by rows.

    >>> from velado.learning.flower.federation import Federation
    >>> Mean().centre(np.array([[1.0], [4.0]]), np.array([2.0, 1.0]), Federation()).tolist()
    [2.0]
    """

    name: ClassVar[str] = "mean"
    says: ClassVar[str] = say(
        "Put together by the mean; rows are capped and updates shortened, and the coordinator saw each."
    )
    trees: ClassVar[bool] = True

    def centre(self, updates: Floats, rows: Floats, federation: Federation) -> Floats:
        """sum_i (n_i/n) u_i."""
        return np.asarray((rows / rows.sum()) @ updates, dtype=np.float64)
