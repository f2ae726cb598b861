"""Class sizes: how large the crowds are in which people hide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from velado.data.partition import IntArray


@dataclass(frozen=True)
class ClassSizes:
    """Smallest, median, mean and largest class, and a histogram: *edges* are the first size of each bin.

    Bin i holds sizes from ``edges[i]`` to ``edges[i+1] - 1``; the last one has no upper end.
    """

    classes: int
    smallest: int
    median: float
    mean: float
    largest: int
    edges: tuple[int, ...]
    classes_in_bin: tuple[int, ...]
    rows_in_bin: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The sizes of each bin as text: `1`, `3-4`, `100+`."""
        pairs = zip(self.edges, self.edges[1:], strict=False)
        closed = [str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in pairs]
        return (*closed, *(f"{edge}+" for edge in self.edges[-1:]))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "classes": self.classes,
            "smallest": self.smallest,
            "median": self.median,
            "mean": self.mean,
            "largest": self.largest,
            "histogram": {
                "sizes": list(self.labels),
                "classes": list(self.classes_in_bin),
                "rows": list(self.rows_in_bin),
            },
        }


def class_sizes(sizes: IntArray) -> ClassSizes:
    """A histogram of class *sizes* with bins 1, 2, 3-4, 5-9, 10-19, 20-49, ... up to the largest. O(classes).

    Bins below the smallest class are kept: that nobody stands alone is what the picture is to show.
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    if not sizes.size:
        return ClassSizes(0, 0, 0.0, 0.0, 0, (1,), (0,), (0,))
    largest = int(sizes.max())
    edges = [1, 2, 3]
    scale = 5
    while edges[-1] < largest:
        edges += [scale, 2 * scale, 4 * scale]
        scale *= 10
    while len(edges) > 1 and edges[-1] > largest:
        edges.pop()
    which = np.searchsorted(np.array(edges), sizes, side="right") - 1
    return ClassSizes(
        int(sizes.size),
        int(sizes.min()),
        float(np.median(sizes)),
        float(sizes.mean()),
        largest,
        tuple(edges),
        tuple(np.bincount(which, minlength=len(edges)).tolist()),
        tuple(np.bincount(which, weights=sizes, minlength=len(edges)).astype(int).tolist()),
    )
