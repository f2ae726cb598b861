"""Top-down greedy: split between two far-apart tuples, again and again."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.release.goal import Goal, Progress, Promise
from velado.release.methods._cover_tables import CoverTables, Int32Array, Int64Array, Tables, fill_costs
from velado.release.methods._method import RecoderName, Takes, published
from velado.release.recoded import Recoded
from velado.settings import settings
from velado.text import say

# The loop of top-down greedy: split every group between two far-apart tuples while both sides keep k.

_ROUNDS = 3  # rounds of "the farthest from the farthest"; Xu et al. found more to change little
_SEARCHED = 100
"""In a group of fewer than so many times k rows the border is sought where both sides together lose least."""


@njit(cache=True)
def _cover_cost(low, high, tables):  # type: ignore[no-untyped-def]
    """Loss of the cover low..high, summed over the columns."""
    most_of, base, missing, places, node_base, _, parent, _, last, loss = tables
    total = 0.0
    for column in range(low.size):
        least, most, at, start = low[column], high[column], base[column], node_base[column]
        if start >= 0:
            node = least
            while last[start + node] < most:
                node = parent[start + node]
            total += loss[start + node]
        elif most == missing[column] and least != most:
            total += most_of[column]
        else:
            total += min(places[at + most] - places[at + least], most_of[column])
    return total


@njit(cache=True)
def _pair_costs(records, entries, seed, tables, costs, out):  # type: ignore[no-untyped-def]
    """out[i] = loss of covering tuple *seed* and the i-th of *entries* together."""
    if entries.size < costs.size:  # few tuples of long domains: pair by pair, the same numbers
        low = np.empty(records.shape[1], dtype=np.int32)
        high = np.empty(records.shape[1], dtype=np.int32)
        for at, entry in enumerate(entries):
            for column in range(low.size):
                low[column] = min(records[seed, column], records[entry, column])
                high[column] = max(records[seed, column], records[entry, column])
            out[at] = _cover_cost(low, high, tables)
        return
    fill_costs(records[seed], records[seed], tables, costs)
    base = tables[1]
    for at, entry in enumerate(entries):
        total = 0.0
        for column in range(records.shape[1]):
            total += costs[base[column] + records[entry, column]]
        out[at] = total


@njit(cache=True)
def _split_all(records: Int32Array, weight: Int64Array, k: int, tables: Tables, width: int) -> Int32Array:
    """Group of each tuple by top-down greedy (Xu et al. 2006). O(n d log(n / k)) tuples touched for balanced splits.

    A tuple of k rows and more is a group: it loses nothing. Of the others, in a group of 2k rows or more: start at
    its first tuple, three times go to the tuple farthest away; the last two are the seeds, and a border is set in
    the order of how much more a tuple loses with the one than with the other.
    """
    count = records.shape[0]
    entries = np.empty(count, dtype=np.int64)
    labels = np.empty(count, dtype=np.int32)
    few = 0
    rest = 0
    for at in range(count):
        if weight[at] < k:
            rest += weight[at]
    group = 0
    for at in range(count):
        if weight[at] >= k and (rest >= k or rest == 0):
            labels[at] = group
            group += 1
        else:
            entries[few] = at
            few += 1
    scratch = np.empty(few, dtype=np.int64)
    to_one = np.empty(few)
    to_two = np.empty(few)
    costs = np.empty(width)
    begins = np.empty(few + 2, dtype=np.int64)
    ends = np.empty(few + 2, dtype=np.int64)
    begins[0] = 0
    ends[0] = few
    stack = 1 if few > 0 else 0
    while stack > 0:
        stack -= 1
        begin, end = begins[stack], ends[stack]
        size = 0
        for at in range(begin, end):
            size += weight[entries[at]]
        middle = begin
        if size >= 2 * k:
            one = entries[begin]
            two = one
            for _ in range(_ROUNDS):
                _pair_costs(records, entries[begin:end], one, tables, costs, to_one[begin:end])
                far = begin
                for at in range(begin + 1, end):
                    if to_one[at] > to_one[far]:
                        far = at
                two = one
                one = entries[far]
                if to_one[far] == 0.0:
                    break
            if one != two:
                _pair_costs(records, entries[begin:end], one, tables, costs, to_one[begin:end])
                _pair_costs(records, entries[begin:end], two, tables, costs, to_two[begin:end])
                lean = to_one[begin:end] - to_two[begin:end]
                middle = begin + _divide(
                    entries[begin:end], weight, size, k, lean, records, tables, scratch, to_two
                )
        if middle == begin:
            for at in range(begin, end):
                labels[entries[at]] = group
            group += 1
        else:
            begins[stack], ends[stack] = begin, middle
            begins[stack + 1], ends[stack + 1] = middle, end
            stack += 2
    return labels


@njit(cache=True)
def _divide(entries, weight, size, k, lean, records, tables, scratch, after):  # type: ignore[no-untyped-def]
    """Tuples of the first side come first; returns how many they are, 0 for no split.

    Both sides get k rows. In a small group the border lies where they lose least together, in a larger one where every
    tuple is with the seed it loses less with, or as near to it as k and whole tuples allow.
    """
    count, columns = entries.size, records.shape[1]
    wanted = 0
    for at in range(count):
        if lean[at] < 0.0 or (lean[at] == 0.0 and 2 * wanted < size):
            wanted += weight[entries[at]]
    order = np.argsort(lean, kind="mergesort")
    for at in range(count):
        scratch[at] = entries[order[at]]
    for at in range(count):
        entries[at] = scratch[at]
    small = size < _SEARCHED * k
    low = np.empty(columns, dtype=np.int32)
    high = np.empty(columns, dtype=np.int32)
    if small:
        low[:] = records[entries[count - 1]]
        high[:] = low
        for at in range(count - 1, 0, -1):
            _widen(low, high, records[entries[at]])
            after[at] = _cover_cost(low, high, tables)
        low[:] = records[entries[0]]
        high[:] = low
    best = 0
    least = np.inf
    rows = 0
    for at in range(count - 1):
        rows += weight[entries[at]]
        if size - rows < k:
            break
        if small:
            _widen(low, high, records[entries[at]])
        if rows < k:
            continue
        worth = float(abs(rows - wanted))
        if small:
            worth = _cover_cost(low, high, tables) * rows + after[at + 1] * (size - rows)
        if worth < least:
            least = worth
            best = at + 1
    return best


@njit(cache=True)
def _widen(low, high, record):  # type: ignore[no-untyped-def]
    for column in range(low.size):
        low[column] = min(low[column], record[column])
        high[column] = max(high[column], record[column])


@settings
class TopDownGreedy:
    """Every group is split between two tuples far apart, as long as both sides can hold k rows.

    Xu, Wang, Pei, Wang, Shi, Fu, "Utility-Based Anonymization Using Local Recoding" (2006): three rounds of
    "the farthest from the farthest" find two seeds, each tuple goes to the seed with which it loses less, a side
    below k borrows the tuples cheapest to move. Tuples are taken in the order of their codes, so the order of the
    table decides nothing and nothing is drawn.

    Departures. Rows with the same values stay together, where the paper may part them: the same groups come from counted
    tuples, wherever the rows lie. A tuple of k rows and more is a group from the start. In a group of fewer than 100 k rows
    the border is not set where the seeds are equally near, but where both sides together lose least.

    >>> from velado.testing.examples import shown
    >>> shown(TopDownGreedy(), [20, 21, 30, 31])
    ['[20..21]', '[20..21]', '[30..31]', '[30..31]']
    """

    name: ClassVar[str] = "top-down-greedy"
    title: ClassVar[str] = say("Top-down greedy")
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = say("O(n d log n) for balanced splits")
    source: ClassVar[str] = "Xu, Wang, Pei, Wang, Shi, Fu 2006"
    recoder: RecoderName = "cover"

    @property
    def takes(self) -> Takes:
        """Tuples, but for centroids: the first of rows equally near."""
        return "tuples" if self.recoder != "centroid" else "rows"

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """Groups by splitting, repaired until the goal holds."""
        progress(0.0, self.title)
        tables = CoverTables.of(data)
        groups = _split_all(
            tables.records, tables.weight, max(goal.least_rows, 1), tables.tables, tables.width
        )
        return published(data, Partition.of(groups[tables.record_of]), goal, self.recoder, progress)
