"""DBSCAN (Ester, Kriegel, Sander, Xu 1996) without neighbour lists: the same clusters as scikit-learn's, in O(n) memory.

A row is a core point when at least *min_points* rows, itself included, lie within *eps* of it (Euclidean, the border
included). Core points within *eps* of one another share a cluster; any other row within *eps* of a core point joins the
first such cluster; the rest is noise. Lists of neighbours would take gigabytes here (each record of Adult has thousands
within 0.6), so distances are computed where they are needed: a count stops at *min_points*, and two core points that
are known to share a cluster are not compared. Cost O(n^2 d) at worst.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from velado.query.correlation.records import Floats, Integers


def clusters(values: Floats, eps: float, min_points: int) -> Integers:
    """The cluster of every row, numbered by their first core point; -1 for noise."""
    # Columns that differ most come first, so that most pairs are told apart by the first one or two.
    values = np.ascontiguousarray(values[:, np.argsort(-values.var(axis=0), kind="stable")], dtype=np.float64)
    core = _core_points(values, eps * eps, min_points)
    root = _connected(values, eps * eps, core)
    order = np.flatnonzero(core)
    labels = np.full(len(values), -1, dtype=np.int64)
    _, first, inverse = np.unique(root[order], return_index=True, return_inverse=True)
    labels[order] = np.argsort(np.argsort(first))[inverse.ravel()]
    _join_borders(values, eps * eps, core, labels)
    return labels


@njit(cache=True)
def _near(values, i, j, limit):  # type: ignore[no-untyped-def]
    """Whether two rows lie within the root of *limit*; gives up as soon as they cannot."""
    total = 0.0
    for k in range(values.shape[1]):
        gap = values[i, k] - values[j, k]
        total += gap * gap
        if total > limit:
            return False
    return True


@njit(cache=True)
def _core_points(values, limit, least):  # type: ignore[no-untyped-def]
    """Which rows have at least *least* rows near, themselves included."""
    rows = values.shape[0]
    core = np.zeros(rows, dtype=np.bool_)
    for i in range(rows):
        count = 1
        # Neighbours in a file are often alike: look around the row first, then further and further away.
        for step in range(1, rows):
            if count >= least:
                break
            if i + step < rows and _near(values, i, i + step, limit):
                count += 1
            if i - step >= 0 and _near(values, i, i - step, limit):
                count += 1
        core[i] = count >= least
    return core


@njit(cache=True)
def _root(parent, i):  # type: ignore[no-untyped-def]
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True)
def _connected(values, limit, core):  # type: ignore[no-untyped-def]
    """For each core point, the first core point of its cluster."""
    rows = values.shape[0]
    parent = np.arange(rows)
    for i in range(rows):
        if not core[i]:
            continue
        mine = _root(parent, i)
        for j in range(i + 1, rows):
            if core[j]:
                other = _root(parent, j)
                if other != mine and _near(values, i, j, limit):
                    low, high = min(mine, other), max(mine, other)
                    parent[high] = low
                    mine = low
    for i in range(rows):
        parent[i] = _root(parent, i)
    return parent


@njit(cache=True)
def _join_borders(values, limit, core, labels):  # type: ignore[no-untyped-def]
    """Rows that are no core points join the lowest cluster that has a core point near."""
    for i in range(values.shape[0]):
        if core[i]:
            continue
        for j in range(values.shape[0]):
            if core[j] and (labels[i] < 0 or labels[j] < labels[i]) and _near(values, i, j, limit):
                labels[i] = labels[j]
