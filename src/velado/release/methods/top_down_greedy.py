"""Top-down greedy: split between two far-apart records, again and again."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.release.goal import Goal, Progress, Promise
from velado.release.methods._cover_tables import CoverTables, Int32Array, Tables, fill_costs
from velado.release.methods._method import RecoderName, Takes, published
from velado.release.recoded import Recoded
from velado.settings import settings
from velado.text import say

# The loop of top-down greedy: split every group between two far-apart records while both sides keep k.

_ROUNDS = 3  # rounds of "the farthest from the farthest"; Xu et al. found more to change little


@njit(cache=True)
def _pair_costs(records, rows, seed, tables, costs, out):  # type: ignore[no-untyped-def]
    """out[i] = loss of covering record *seed* and the i-th row of one group together."""
    fill_costs(records[seed], records[seed], tables, costs)
    base = tables[1]
    for at, row in enumerate(rows):
        total = 0.0
        for column in range(records.shape[1]):
            total += costs[base[column] + records[row, column]]
        out[at] = total


@njit(cache=True)
def _split_all(records: Int32Array, k: int, tables: Tables, width: int) -> Int32Array:
    """Group labels of top-down greedy (Xu et al. 2006). O(n d log(n / k)) rows touched for balanced splits.

    In a group of 2k or more: start at its first record, three times go to the record farthest away; the last
    two are the seeds; every record goes to the seed with which its cover loses less. A side that gets fewer than
    k borrows the records of the other that are cheapest to move; where the other side could not spare them the
    group stays whole.
    """
    count = records.shape[0]
    rows = np.arange(count)
    scratch = np.empty(count, dtype=np.int64)
    to_one = np.empty(count)
    to_two = np.empty(count)
    costs = np.empty(width)
    labels = np.empty(count, dtype=np.int32)
    begins = np.empty(count // max(k, 1) + 2, dtype=np.int64)
    ends = np.empty(begins.size, dtype=np.int64)
    begins[0] = 0
    ends[0] = count
    stack = 1
    group = 0
    while stack > 0:
        stack -= 1
        begin, end = begins[stack], ends[stack]
        size = end - begin
        middle = begin
        if size >= 2 * k:
            one = rows[begin]
            two = one
            for _ in range(_ROUNDS):
                _pair_costs(records, rows[begin:end], one, tables, costs, to_one[begin:end])
                far = begin
                for at in range(begin + 1, end):
                    if to_one[at] > to_one[far]:
                        far = at
                two = one
                one = rows[far]
                if to_one[far] == 0.0:
                    break
            if one != two:
                _pair_costs(records, rows[begin:end], one, tables, costs, to_one[begin:end])
                _pair_costs(records, rows[begin:end], two, tables, costs, to_two[begin:end])
                middle = _divide(rows, begin, end, k, to_one, to_two, scratch)
        if middle == begin:
            for at in range(begin, end):
                labels[rows[at]] = group
            group += 1
        else:
            begins[stack], ends[stack] = begin, middle
            begins[stack + 1], ends[stack + 1] = middle, end
            stack += 2
    return labels


@njit(cache=True)
def _divide(rows, begin, end, k, to_one, to_two, scratch):  # type: ignore[no-untyped-def]
    """Rows of the first side come first; returns where the second begins, or *begin* for no split."""
    size = end - begin
    lean = np.empty(size)
    for at in range(size):
        lean[at] = to_one[begin + at] - to_two[begin + at]
    first = 0
    for at in range(size):
        # Rows that lose the same on both sides fill the first side up to half, so that copies can part.
        if lean[at] < 0.0 or (lean[at] == 0.0 and 2 * first < size):
            first += 1
    if first == 0 or first == size:
        return begin
    if first < k:
        first = k
    if size - first < k:
        first = size - k
    if first < k:
        return begin
    order = np.argsort(lean, kind="mergesort")
    for at in range(size):
        scratch[at] = rows[begin + order[at]]
    for at in range(size):
        rows[begin + at] = scratch[at]
    return begin + first


@settings
class TopDownGreedy:
    """Every group is split between two records far apart, as long as both sides can hold k.

    Xu, Wang, Pei, Wang, Shi, Fu, "Utility-Based Anonymization Using Local Recoding" (2006): three rounds of
    "the farthest from the farthest" find two seeds, each record goes to the seed with which it loses less, a side
    below k borrows the records cheapest to move. Rows are taken in the order of their codes, so the order of the
    table decides nothing and nothing is drawn.

    >>> from velado.testing.examples import shown
    >>> shown(TopDownGreedy(), [20, 21, 30, 31])
    ['[20..21]', '[20..21]', '[30..31]', '[30..31]']
    """

    name: ClassVar[str] = "top-down-greedy"
    title: ClassVar[str] = say("Top-down greedy")
    promise: ClassVar[Promise] = "guaranteed"
    takes: ClassVar[Takes] = "rows"
    cost: ClassVar[str] = say("O(n d log n) for balanced splits")
    source: ClassVar[str] = "Xu, Wang, Pei, Wang, Shi, Fu 2006"
    recoder: RecoderName = "cover"

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """Groups by splitting, repaired until the goal holds."""
        progress(0.0, self.title)
        tables = CoverTables.of(data)
        order, _ = tables.rows_by_record()
        records = np.ascontiguousarray(data.matrix[order])
        labels = np.empty(data.rows, dtype=np.int64)
        labels[order] = _split_all(records, max(goal.least_rows, 1), tables.tables, tables.width)
        return published(data, Partition.of(labels), goal, self.recoder, progress)
