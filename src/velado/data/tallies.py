"""Kernels that count, sort and rank rows by label or by packed codes in linear time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from velado.compiled import njit

if TYPE_CHECKING:
    from velado.data.partition import Int32Array, Int64Array

MOST_KEYS = 1 << 20
"""Combinations of codes that are counted in a table of eight bytes each; more are sorted."""


@njit(cache=True)
def crowds_met(
    blocks: Int64Array, codes: Int32Array, chosen: Int64Array, sizes: Int64Array, weights: Int64Array
) -> tuple[int, int, int]:
    """How many combinations of codes occur in all blocks, how many of them in one row, and the fewest rows of one.

    Entries lie block by block, the entries of block b from ``blocks[b]`` to ``blocks[b + 1]``: they share the code of one more column.
    *codes* is column x entry, and the columns *chosen* count, with so many codes as *sizes* says; entry e stands for ``weights[e]``
    rows, at least one, or for one where *weights* is empty. The product of *sizes* is at most MOST_KEYS: so small a table stays in the
    cache, and only what a block has touched is cleared. O(entries x columns).
    """
    space, longest = 1, 0
    for size in sizes:
        space *= size
    for block in range(blocks.size - 1):
        longest = max(longest, blocks[block + 1] - blocks[block])
    seen = np.zeros(space, dtype=np.int64)
    keys, met = np.empty(longest, dtype=np.int32), np.empty(longest, dtype=np.int32)
    groups, alone, least = 0, 0, 1 << 62
    for block in range(blocks.size - 1):
        begin = blocks[block]
        held = blocks[block + 1] - begin
        keys[:held] = 0
        for at in range(chosen.size):
            size, column = np.int32(sizes[at]), codes[chosen[at]]
            for place in range(held):
                keys[place] = keys[place] * size + column[begin + place]
        new = 0
        for place in range(held):
            # Written whether it is met for the first time or not: a branch that cannot be foretold costs more.
            met[new] = keys[place]
            new += seen[keys[place]] == 0
            seen[keys[place]] += 1 if weights.size == 0 else weights[begin + place]
        groups += new
        for place in range(new):
            rows = int(seen[met[place]])
            alone += rows == 1
            least = min(least, rows)
            seen[met[place]] = 0
    return groups, alone, least


@njit(cache=True)
def squares_met(values: Int32Array, order: Int64Array, starts: Int64Array, size: int) -> Int64Array:
    """For each group the sum, over the values 0..size - 1, of the squared number of its entries that have the value.

    Group g has the entries ``order[starts[g] : starts[g + 1]]``. A value met for the n-th time adds n^2 - (n - 1)^2. O(entries).
    """
    seen = np.zeros(size, dtype=np.int64)
    out = np.zeros(starts.size - 1, dtype=np.int64)
    for group in range(starts.size - 1):
        for at in range(starts[group], starts[group + 1]):
            value = values[order[at]]
            out[group] += 2 * seen[value] + 1
            seen[value] += 1
        for at in range(starts[group], starts[group + 1]):
            seen[values[order[at]]] = 0
    return out


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
