"""k-member clustering and nearest-neighbour clustering: groups of exactly k similar records."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numba import njit

from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.release.goal import Goal, Progress, Promise
from velado.release.methods._cover_tables import (
    CoverTables,
    Int32Array,
    Int64Array,
    Tables,
    cover_loss,
    fill_costs,
    in_blocks,
)
from velado.release.methods._method import BlockRows, RecoderName, Takes, published
from velado.release.methods._one_scan import farthest, labels_of_moves, note_move, one_scan
from velado.release.methods._row_covers import RowCovers
from velado.release.recoded import Recoded
from velado.settings import settings
from velado.text import say

# The loops of nearest-neighbour clustering, on distinct records with weights.


@njit(cache=True)
def _score(records, alive, living, costs, base, out):  # type: ignore[no-untyped-def]
    columns = records.shape[1]
    for at in range(living):
        record = alive[at]
        total = 0.0
        for column in range(columns):
            total += costs[base[column] + records[record, column]]
        out[at] = total


@njit(cache=True)
def _grow_clusters(
    records: Int32Array, left: Int64Array, k: int, turn: Int64Array, tables: Tables, width: int
) -> tuple[Int64Array, Int64Array, Int64Array, int]:
    """Clusters of exactly *k* rows; what remains in *left* are fewer than k rows.

    Seeds come in the order *turn* and take their k - 1 nearest records at once. Returns the moves (record, rows, cluster)
    and the number of clusters. O(n^2 d / k) over distinct records.
    """
    base = tables[1]
    count, columns = records.shape
    total = left.sum()
    most = total // k
    moved_record = np.empty(count + most, dtype=np.int64)  # a move empties a record or fills a cluster
    moved_rows = np.empty(moved_record.size, dtype=np.int64)
    moved_into = np.empty(moved_record.size, dtype=np.int64)
    moves = 0
    alive = np.arange(count)
    living = count
    costs = np.empty(width)
    score = np.empty(count)
    low = np.empty(columns, dtype=np.int32)
    high = np.empty(columns, dtype=np.int32)
    following = 0
    clusters = 0
    while total >= k:
        while left[turn[following]] == 0:
            following += 1
        seed = turn[following]
        low[:] = records[seed]
        high[:] = records[seed]
        fill_costs(low, high, tables, costs)
        _score(records, alive, living, costs, base, score)
        need = k
        while need > 0:
            best = -1
            for at in range(living):
                if left[alive[at]] > 0 and (best < 0 or score[at] < score[best]):
                    best = at
            record = alive[best]
            rows = min(need, left[record])
            left[record] -= rows
            need -= rows
            moves = note_move(moved_record, moved_rows, moved_into, moves, record, rows, clusters)
        total -= k
        clusters += 1
        write = 0
        for at in range(living):
            if left[alive[at]] > 0:
                alive[write] = alive[at]
                write += 1
        living = write
    return moved_record[:moves], moved_rows[:moves], moved_into[:moves], clusters


@njit(cache=True)
def _place_leftovers(
    records: Int32Array,
    left: Int64Array,
    low: Int32Array,
    high: Int32Array,
    rows: Int64Array,
    tables: Tables,
) -> Int64Array:
    """For each record with rows left, the cluster whose rows lose least by taking them in; covers grow in place.

    Loss is |cluster| x cover, so a wide cluster with few rows is cheaper to widen than a narrow one with many.
    """
    count, columns = records.shape
    target = np.full(count, -1, dtype=np.int64)
    for record in range(count):
        if left[record] == 0:
            continue
        best = np.inf
        for cluster in range(low.shape[0]):
            before = 0.0
            after = 0.0
            for column in range(columns):
                code = records[record, column]
                before += cover_loss(column, low[cluster, column], high[cluster, column], tables)
                after += cover_loss(
                    column, min(low[cluster, column], code), max(high[cluster, column], code), tables
                )
            increase = (rows[cluster] + left[record]) * after - rows[cluster] * before
            if increase < best:
                best = increase
                target[record] = cluster
        chosen = target[record]
        for column in range(columns):
            code = records[record, column]
            low[chosen, column] = min(low[chosen, column], code)
            high[chosen, column] = max(high[chosen, column], code)
        rows[chosen] += left[record]
    return target


def _around_seeds(data: EncodedTable, k: int, random: np.random.Generator) -> Partition:
    """k-member: groups of k rows each around seeds far from each other; the last rows join the group they widen least."""
    covers = RowCovers.of(data)
    seed = farthest(covers, int(random.integers(covers.records)))
    record, rows, into, count = one_scan(covers, covers.weight, k, seed)
    if not count:  # fewer rows than a group: one group, which does not hold
        return Partition(np.zeros(data.rows, dtype=np.int32), 1)
    return Partition.of(labels_of_moves(covers.record_of, record, rows, into))


def _nearest(data: EncodedTable, k: int) -> Partition:
    """Groups of k rows each; the last rows join the group they widen least.

    Rows with equal quasi-identifiers are interchangeable: which of them goes where follows table order.
    """
    tables = CoverTables.of(data)
    left = tables.weight.copy()
    turn = np.argsort(-tables.weight, kind="stable")
    record, rows, into, count = _grow_clusters(tables.records, left, k, turn, tables.tables, tables.width)
    low = np.full((count, len(data.columns)), np.iinfo(np.int32).max, dtype=np.int32)
    high = np.full((count, len(data.columns)), -1, dtype=np.int32)
    np.minimum.at(low, into, tables.records[record])
    np.maximum.at(high, into, tables.records[record])
    sizes = np.full(count, k, dtype=np.int64)
    target = _place_leftovers(tables.records, left, low, high, sizes, tables.tables)
    rest = np.flatnonzero(left > 0)
    record = np.concatenate((record, rest))
    rows = np.concatenate((rows, left[rest]))
    into = np.concatenate((into, target[rest]))
    return Partition.of(labels_of_moves(tables.record_of, record, rows, into))


@settings
class KMember:
    """Clusters of k: each seed takes, one after another, the record that widens its cluster least.

    One scan a cluster: every record left is compared with the seed once, which gives the next seed (the farthest) and
    the 16 k + 64 nearest, among which the cluster grows. Asking all records again for every member, as the paper has it,
    takes some times as long for about the same loss.

    Byun, Kamra, Bertino, Li, "Efficient k-Anonymization Using Clustering Techniques" (2007). The next seed is
    the record farthest from the last; the information loss of a cluster is its size times the loss of its
    cover; what is left at the end joins the cluster whose loss grows least. Works on distinct records, so
    repeated ones cost nothing. The first seed is the record farthest from one that is drawn.

    >>> from velado.testing.examples import shown
    >>> shown(KMember(), [20, 21, 22, 30, 31, 60])
    ['[20..21]', '[20..21]', '[22..30]', '[22..30]', '[31..60]', '[31..60]']
    """

    name: ClassVar[str] = "k-member"
    title: ClassVar[str] = say("k-member clustering")
    promise: ClassVar[Promise] = "guaranteed"
    takes: ClassVar[Takes] = "rows"
    cost: ClassVar[str] = say("O(n^2 d / k), quadratic; O(n b d / k) in blocks of b rows")
    source: ClassVar[str] = "Byun, Kamra, Bertino, Li 2007"
    block: BlockRows = 50_000
    recoder: RecoderName = "cover"

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """Clusters by least widening, repaired until the goal holds."""
        return _publish(self, data, goal, progress, lambda part, k: _around_seeds(part, k, random))


@settings
class NearestNeighbours:
    """Clusters of k: each seed takes its k - 1 nearest records at once.

    The clustering-based anonymization (CB) that k-AnonML compares with: nearest by the summed loss of covering
    seed and record together. The most frequent record left is the next seed (drawn
    seeds, as the peer has them, lose 4 points more on Adult at k = 50). Looser than k-member,
    since members are near the seed but not each other.

    >>> from velado.testing.examples import shown
    >>> shown(NearestNeighbours(), [20, 21, 22, 30, 31, 60])
    ['[20..21]', '[20..21]', '[22..30]', '[22..30]', '[31..60]', '[31..60]']
    """

    name: ClassVar[str] = "nearest-neighbours"
    title: ClassVar[str] = say("Nearest-neighbour clustering (CB)")
    promise: ClassVar[Promise] = "guaranteed"
    takes: ClassVar[Takes] = "rows"
    cost: ClassVar[str] = say("O(n^2 d / k), quadratic; O(n b d / k) in blocks of b rows")
    source: ClassVar[str] = "CB of k-AnonML, Slijepcevic et al. 2021"
    block: BlockRows = 100_000
    recoder: RecoderName = "cover"

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """Clusters of a seed and its nearest records, repaired until the goal holds."""
        return _publish(self, data, goal, progress, _nearest)


def _publish(
    method: KMember | NearestNeighbours,
    data: EncodedTable,
    goal: Goal,
    progress: Progress,
    grouped: Callable[[EncodedTable, int], Partition],
) -> Recoded:
    k = max(goal.least_rows, 1)
    partition = in_blocks(data, method.block, k, lambda part: grouped(part, k), progress, method.title)
    return published(data, partition, goal, method.recoder, progress)
