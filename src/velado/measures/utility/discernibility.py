"""Discernibility: how many rows each row cannot be told from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from velado.data.partition import IntArray
from velado.measures.declared import Measure
from velado.text import say


@dataclass(frozen=True)
class Discernibility:
    """The discernibility metric and its share of the worst case (everything suppressed, or one class).

    >>> discernibility(np.array([2, 2]), suppressed=0).normalized
    0.5
    """

    value: int
    normalized: float

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return {"value": self.value, "normalized": self.normalized, "normalized_by": "rows squared"}


def discernibility(sizes: IntArray, suppressed: int = 0) -> Discernibility:
    """Each row is charged the size of its class, a suppressed row the size of the table (Bayardo 2005).

    C_DM = sum over classes |E|^2 + suppressed x |T|, with |T| all rows, suppressed ones included; normalized
    by |T|^2. O(classes). Counts only: the pairing of rows is not needed.

    >>> discernibility(np.array([2, 3]), suppressed=1)
    Discernibility(value=19, normalized=0.5277777777777778)
    """
    total = int(np.sum(sizes)) + suppressed
    value = int(np.sum(np.asarray(sizes, dtype=np.int64) ** 2)) + suppressed * total
    return Discernibility(value, value / total**2 if total else 0.0)


DISCERNIBILITY = Measure(
    name="discernibility",
    title=say("discernibility"),
    of=lambda published, scores: scores.discernibility.normalized,
    detailed=True,
)
