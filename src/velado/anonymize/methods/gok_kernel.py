"""Fuzzy assignment under a minimum of k: memberships decide who goes where, and who is lent to whom."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@njit(cache=True)
def memberships(distance: FloatArray, fuzziness: float) -> FloatArray:
    """Equation 4: mu_ij = 1 / sum_c (d_ij / d_ic)^(2 / (m - 1)), over the nearest centres of each record.

    A record that sits on a centre belongs to it wholly.
    """
    rows, near = distance.shape
    power = 2.0 / (fuzziness - 1.0)
    out = np.zeros((rows, near))
    for row in range(rows):
        if distance[row, 0] <= 0.0:
            out[row, 0] = 1.0
            continue
        total = 0.0
        for at in range(near):
            if np.isfinite(distance[row, at]):
                total += (distance[row, 0] / distance[row, at]) ** power
        for at in range(near):
            if np.isfinite(distance[row, at]):
                out[row, at] = (distance[row, 0] / distance[row, at]) ** power / total
    return out


@njit(cache=True)
def assign(centre: Int64Array, member: FloatArray, weight: Int64Array, centres: int, k: int) -> Int64Array:
    """The cluster of each record so that clusters below k are filled up or given up; -1 where none is left.

    *centre* and *member* hold each record's nearest centres and its memberships in them, best first; a record
    stands for *weight* table rows. Clusters below k are served from the largest down: each borrows, in order of
    membership, records whose own cluster can spare them (He et al. 2012); one that cannot be filled is given up
    and its records go to the best cluster that is left.
    """
    rows, near = centre.shape
    label = centre[:, 0].copy()
    size = np.zeros(centres, dtype=np.int64)
    for row in range(rows):
        size[label[row]] += weight[row]
    # Records that know a cluster, best membership first: candidates it may borrow.
    count = np.zeros(centres + 1, dtype=np.int64)
    for row in range(rows):
        for at in range(near):
            if member[row, at] > 0.0:
                count[centre[row, at] + 1] += 1
    begin = np.cumsum(count)
    fill = begin[:-1].copy()
    who = np.empty(begin[-1], dtype=np.int64)
    how = np.empty(begin[-1])
    for row in range(rows):
        for at in range(near):
            if member[row, at] > 0.0:
                place = fill[centre[row, at]]
                who[place] = row
                how[place] = member[row, at]
                fill[centre[row, at]] += 1
    gone = np.zeros(centres, dtype=np.bool_)
    order = np.argsort(-size, kind="mergesort")
    for cluster in order:
        if size[cluster] >= k:
            continue
        if size[cluster] == 0:
            gone[cluster] = True
            continue
        low, high = begin[cluster], begin[cluster + 1]
        ranked = np.argsort(-how[low:high], kind="mergesort")
        lent = np.empty(high - low, dtype=np.int64)
        lenders = np.empty(high - low, dtype=np.int64)
        loans = 0
        for at in ranked:
            row = who[low + at]
            owner = label[row]
            if owner == cluster or gone[owner] or size[owner] - weight[row] < k:
                continue
            label[row] = cluster
            size[owner] -= weight[row]
            size[cluster] += weight[row]
            lent[loans] = row
            lenders[loans] = owner
            loans += 1
            if size[cluster] >= k:
                break
        if size[cluster] < k:
            for at in range(loans):
                row = lent[at]
                label[row] = lenders[at]
                size[lenders[at]] += weight[row]
                size[cluster] -= weight[row]
            gone[cluster] = True
    for row in range(rows):
        if gone[label[row]]:
            found = np.int64(-1)
            for at in range(near):
                if member[row, at] > 0.0 and not gone[centre[row, at]]:
                    found = centre[row, at]
                    break
            label[row] = found
    return label
