"""Kernels that count, sort and rank rows by label or by packed codes in linear time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from velado.compiled import njit

if TYPE_CHECKING:
    from velado.data.partition import Int32Array, Int64Array

MOST_KEYS = 1 << 25
"""Combinations of codes that are counted in a table of one byte each; more are sorted."""
MANY = 255
"""So many rows or more: a byte does not count on."""


@njit(cache=True)
def crowds_met(
    codes: Int32Array, chosen: Int64Array, sizes: Int64Array, weights: Int64Array
) -> tuple[int, int, int]:
    """How many combinations of codes occur, how many of them in one row, and the fewest rows of one (255: so many or more).

    *codes* is column x entry, and the columns *chosen* count; entry e stands for ``weights[e]`` rows, or for one where *weights* is empty. The product of
    their *sizes* is at most MOST_KEYS. O(entries + combinations), a byte for each combination.
    """
    space = 1
    for column in chosen:
        space *= sizes[column]
    seen = np.zeros(space, dtype=np.uint8)
    for entry in range(codes.shape[1]):
        key = 0
        for column in chosen:
            key = key * sizes[column] + codes[column, entry]
        more = 1 if weights.size == 0 else weights[entry]
        seen[key] = min(seen[key] + more, 255)
    groups, alone, least = 0, 0, 255
    for key in range(space):
        if seen[key]:
            groups += 1
            alone += seen[key] == 1
            least = min(least, seen[key])
    return groups, alone, least


@njit(cache=True)
def pair_counts(codes: Int32Array, first: Int64Array, weights: Int64Array) -> Int64Array:
    """How many rows have two codes in two columns, for every pair of columns at once: one square table of all codes.

    *codes* is column x entry, code x of column c has row and column ``first[c] + x`` of the table, and ``first`` ends with how
    many there are. The half above the diagonal blocks is filled, and the diagonal with the rows of each code alone. Entries
    stand for *weights* rows, or for one where *weights* is empty. O(entries x pairs of columns).
    """
    columns, entries = codes.shape
    found = np.zeros((first[-1], first[-1]), dtype=np.int64)
    place = np.empty(columns, dtype=np.int64)
    for entry in range(entries):
        more = 1 if weights.size == 0 else weights[entry]
        for column in range(columns):
            place[column] = first[column] + codes[column, entry]
        for one in range(columns):
            for other in range(one, columns):
                found[place[one], place[other]] += more
    return found


@njit(cache=True)
def by_label(labels: Int32Array, starts: Int64Array) -> Int64Array:
    """The entries sorted by label, equal ones in their own order; those with a negative label are left out.

    *starts* says where each label begins, and at its end how many entries have one. O(entries).
    """
    order = np.empty(starts[-1], dtype=np.int64)
    place = starts.copy()
    for entry in range(labels.size):
        label = labels[entry]
        if label >= 0:
            order[place[label]] = entry
            place[label] += 1
    return order


@njit(cache=True)
def ranked_keys(keys: Int64Array, space: int) -> tuple[Int32Array, int]:
    """The rank of each key among the distinct ones, and how many there are; keys lie in 0..space - 1.

    Sorted digit by digit of eleven bits, the least first: O(keys) for each digit that *space* has.
    """
    number = keys.size
    order, other = np.empty(number, dtype=np.int32), np.empty(number, dtype=np.int32)
    held, moved = keys.copy(), np.empty(number, dtype=np.int64)
    for entry in range(number):
        order[entry] = entry
    shift = 0
    while shift < 63 and (space - 1) >> shift:
        place = np.zeros(2049, dtype=np.int64)
        for entry in range(number):
            place[((held[entry] >> shift) & 2047) + 1] += 1
        if place.max() < number:  # else all keys share the digit
            for digit in range(2048):
                place[digit + 1] += place[digit]
            for entry in range(number):
                digit = (held[entry] >> shift) & 2047
                moved[place[digit]] = held[entry]
                other[place[digit]] = order[entry]
                place[digit] += 1
            held, moved = moved, held
            order, other = other, order
        shift += 11
    rank = -1
    for entry in range(number):
        if entry == 0 or held[entry] != held[entry - 1]:
            rank += 1
        other[order[entry]] = rank
    return other, rank + 1
