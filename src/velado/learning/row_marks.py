"""Rows told from equal ones by how many of them stand before: what follows from rows then follows from which rows there are, not from their places."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


def equal_before(marks: Words) -> Words:
    """For each mark how many equal ones stand before it. O(n log n).

    >>> equal_before(np.array([7, 5, 7, 7], dtype=np.uint64)).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(marks, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(marks[order]) != 0))
    before = np.empty(marks.size, dtype=np.uint64)
    before[order] = np.arange(marks.size) - np.repeat(begins, np.diff(np.append(begins, marks.size)))
    return before
