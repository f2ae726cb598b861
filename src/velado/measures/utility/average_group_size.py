"""Average group size: how much larger classes are than the promise needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from velado.data.partition import IntArray
from velado.measures.declared import Measure
from velado.text import say


@dataclass(frozen=True)
class AverageGroupSize:
    """The mean class, and C_avg = mean / k; 1 is the best a k-anonymous table can reach.

    >>> average_group_size(np.array([3, 5]), k=2).mean
    4.0
    """

    mean: float
    k: int | None
    normalized: float | None

    def to_dict(self) -> dict[str, object]:
        """As plain values; `c_avg` is None where no k was promised."""
        return {"mean": self.mean, "k": self.k, "c_avg": self.normalized}


def average_group_size(sizes: IntArray, k: int | None = None) -> AverageGroupSize:
    """C_avg = (rows / classes) / k (LeFevre 2006), on the published rows. O(classes).

    >>> average_group_size(np.array([3, 5]), k=2)
    AverageGroupSize(mean=4.0, k=2, normalized=2.0)
    """
    mean = float(np.mean(sizes)) if np.size(sizes) else 0.0
    return AverageGroupSize(mean, k, None if not k else mean / k)


AVERAGE_GROUP_SIZE = Measure(
    name="average_group_size",
    title=say("mean group size"),
    of=lambda published, scores: scores.average_group_size.mean,
    decimals=1,
    detailed=True,
)
