"""The two loops of full-domain search: put tuples into groups, and add up what failing tuples cost.

Compiled by Numba on first use (about two seconds, then cached). A tuple's key is built from look-up tables,
one per column and level, so that a node of the lattice costs one pass over the distinct tuples.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_BLOCK = 2048


@numba.njit(cache=True)
def group_tuples(
    codes: Int32,
    column: Int64,
    lookup: Int32,
    start: Int64,
    stride: Int64,
    slot_key: Int64,
    slot_group: Int32,
    slot_stamp: Int32,
    stamp: int,
    labels: Int32,
    first: Int32,
) -> int:
    """Give tuples that are equal in every column one label, in order of first appearance; returns how many.

    Of the columns listed, ``column[c]`` adds ``stride[c] * lookup[start[c] + code]`` to the key; strides are
    such that different tuples have different keys, below 2^62. The slots are an open hash table of a power
    of two entries, at least twice the tuples; an entry is live where its stamp is *stamp*, so that the table
    need not be cleared between nodes. *codes* is columns x tuples.
    """
    bits = 4
    while (1 << bits) < 2 * codes.shape[1]:
        bits += 1
    mask = np.int64((1 << bits) - 1)
    shift = np.uint64(64 - bits)
    keys = np.empty(_BLOCK, dtype=np.int64)
    groups = 0
    for begin in range(0, codes.shape[1], _BLOCK):
        rows = min(_BLOCK, codes.shape[1] - begin)
        keys[:rows] = 0
        for c in range(column.size):  # one column at a time: its look-up table stays in the fastest memory
            line = codes[column[c], begin : begin + rows]
            table = lookup[start[c] :]
            step = stride[c]
            for row in range(rows):
                keys[row] += step * table[line[row]]
        for row in range(rows):
            key = keys[row]
            at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> shift)
            while slot_stamp[at] == stamp and slot_key[at] != key:
                at = (at + 1) & mask
            if slot_stamp[at] != stamp:
                slot_stamp[at] = stamp
                slot_key[at] = key
                slot_group[at] = groups
                first[groups] = begin + row
                groups += 1
            labels[begin + row] = slot_group[at]
    return groups


@numba.njit(cache=True)
def add_by_label(labels: Int32, weights: Int64, out: Int64) -> None:
    """Add each tuple's weight to its group."""
    for row in range(labels.size):
        out[labels[row]] += weights[row]


@numba.njit(cache=True)
def failing_charges(
    codes: Int32,
    weights: Int64,
    labels: Int32,
    good: npt.NDArray[np.bool_],
    charge: npt.NDArray[np.float64],
    start: Int64,
    out: npt.NDArray[np.float64],
) -> None:
    """Add up, column by column, what the tuples of groups that are not *good* are charged at this node."""
    for row in range(labels.size):
        if not good[labels[row]]:
            for c in range(start.size):
                out[c] += weights[row] * charge[start[c] + codes[c, row]]
