"""Counting compatible tuples: a hash join for every pair of blank patterns; people of a population in covers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


@njit(cache=True)
def _hash(tuples, row, shown, count):  # type: ignore[no-untyped-def]
    value = np.uint64(1469598103934665603)
    for at in range(count):
        value = (value ^ np.uint64(tuples[row, shown[at]])) * np.uint64(1099511628211)
        value ^= value >> np.uint64(29)
    return value


@njit(cache=True)
def _same(tuples, one, other, shown, count):  # type: ignore[no-untyped-def]
    for at in range(count):  # noqa: SIM110 (compiled: a generator would not be)
        if tuples[one, shown[at]] != tuples[other, shown[at]]:
            return False
    return True


@njit(cache=True)
def count_matches(
    tuples: Int32Array, weight: Int64Array, patterns: npt.NDArray[np.bool_], begins: Int64Array
) -> Int64Array:
    """For each tuple, the summed weight of all tuples that agree with it wherever both show a value.

    *tuples* are distinct and sorted by pattern; pattern p holds the tuples begins[p]..begins[p + 1] - 1 and is
    True where a column is blank. Equal hashes are compared value by value, so the count is exact.
    """
    total, width = tuples.shape
    out = np.zeros(total, dtype=np.int64)
    shown = np.empty(width, dtype=np.int64)
    for theirs in range(patterns.shape[0]):
        low, high = begins[theirs], begins[theirs + 1]
        slots = 8
        while slots < 2 * (high - low):
            slots *= 2
        mask = np.uint64(slots - 1)
        keeper = np.empty(slots, dtype=np.int64)
        sums = np.empty(slots, dtype=np.int64)
        for mine in range(patterns.shape[0]):
            count = 0
            for column in range(width):
                if not patterns[theirs, column] and not patterns[mine, column]:
                    shown[count] = column
                    count += 1
            keeper[:] = -1
            for row in range(low, high):
                slot = _hash(tuples, row, shown, count) & mask
                while keeper[slot] >= 0 and not _same(tuples, keeper[slot], row, shown, count):
                    slot = (slot + np.uint64(1)) & mask
                if keeper[slot] < 0:
                    keeper[slot] = row
                    sums[slot] = 0
                sums[slot] += weight[row]
            for row in range(begins[mine], begins[mine + 1]):
                slot = _hash(tuples, row, shown, count) & mask
                while keeper[slot] >= 0 and not _same(tuples, keeper[slot], row, shown, count):
                    slot = (slot + np.uint64(1)) & mask
                if keeper[slot] >= 0:
                    out[row] += sums[slot]
    return out


@njit(cache=True)
def match_population(low: Int32Array, high: Int32Array, population: Int32Array) -> tuple[Int64Array, int]:
    """For each cover, how many people of the population lie in it; and how many lie in none."""
    groups, width = low.shape
    people = population.shape[0]
    out = np.zeros(groups, dtype=np.int64)
    seen = np.zeros(people, dtype=np.bool_)
    for group in range(groups):
        for person in range(people):
            inside = True
            for column in range(width):
                code = population[person, column]
                if code < low[group, column] or code > high[group, column]:
                    inside = False
                    break
            if inside:
                out[group] += 1
                seen[person] = True
    return out, people - int(seen.sum())
