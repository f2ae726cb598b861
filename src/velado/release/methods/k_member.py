"""k-member clustering and nearest-neighbour clustering: groups of exactly k similar records."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.partition import FloatArray, Int64Array, Partition
from velado.release.goal import Goal, Progress, Promise
from velado.release.methods._cover_tables import in_blocks
from velado.release.methods._method import BlockRows, RecoderName, Takes, published
from velado.release.methods._one_scan import farthest, labels_of_moves, note_move, one_scan, with_leftovers
from velado.release.methods._row_covers import CoverMeasure, RowCovers, score
from velado.release.methods.mdav import nearest_first
from velado.release.recoded import Recoded
from velado.settings import settings
from velado.text import say

# The loops of nearest-neighbour clustering, on distinct records with weights.


@njit(cache=True)
def _grow_around(
    measure: CoverMeasure, points: FloatArray, left: Int64Array, k: int, turn: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array, int]:
    """Clusters of exactly *k* rows; what remains in *left* are fewer than k rows.

    Seeds come in the order *turn* and take their k - 1 nearest records at once, found with one `score` each. Returns the
    moves (record, rows, cluster) and the number of clusters. O(n^2 d / k) over distinct records.
    """
    count, columns = points.shape
    total = left.sum()
    moved_record = np.empty(count + total // k, dtype=np.int64)  # a move empties a record or fills a cluster
    moved_rows = np.empty(moved_record.size, dtype=np.int64)
    moved_into = np.empty(moved_record.size, dtype=np.int64)
    moves = 0
    across = np.ascontiguousarray(points.T)
    name = np.arange(count)
    living = count
    distance = np.empty(count)
    costs = np.empty(measure.widest)
    chosen = np.empty(k, dtype=np.int64)
    following = 0
    clusters = 0
    while total >= k:
        while left[turn[following]] == 0:
            following += 1
        seed = points[turn[following]]
        score(measure, across, living, seed, seed, costs, distance)
        held = min(k, living)
        nearest_first(distance, living, held, chosen[:held])
        need = k
        for at in range(held):
            record = name[chosen[at]]
            rows = min(need, left[record])
            left[record] -= rows
            need -= rows
            moves = note_move(moved_record, moved_rows, moved_into, moves, record, rows, clusters)
            if need == 0:
                break
        total -= k
        clusters += 1
        write = chosen[:held].min()  # order is kept, so that ties stay with the smaller number
        for at in range(write, living):
            if left[name[at]] > 0:
                name[write] = name[at]
                for c in range(columns):
                    across[c, write] = across[c, at]
                write += 1
        living = write
    return moved_record[:moves], moved_rows[:moves], moved_into[:moves], clusters


def _around_seeds(data: EncodedTable, k: int, random: np.random.Generator) -> Partition:
    """k-member: groups of k rows each around seeds far from each other; the last rows join the group they widen least."""
    covers = RowCovers.of(data)
    seed = farthest(covers, int(random.integers(covers.records)))
    return _in_clusters(covers, one_scan(covers, covers.weight, k, seed))


def _in_clusters(covers: RowCovers, moves: tuple[Int64Array, Int64Array, Int64Array, int]) -> Partition:
    record, rows, into, count = moves
    if not count:  # fewer rows than a group: one group, which does not hold
        return Partition(np.zeros(covers.record_of.size, dtype=np.int32), 1)
    return Partition.of(labels_of_moves(covers.record_of, record, rows, into))


def _nearest(data: EncodedTable, k: int) -> Partition:
    """Groups of k rows each; the last rows join the group they widen least.

    Rows with equal quasi-identifiers are interchangeable: which of them goes where follows table order.
    """
    covers = RowCovers.of(data)
    left = covers.weight.copy()
    turn = np.argsort(-covers.weight, kind="stable")
    grown = _grow_around(covers.measure, covers.points, left, k, turn)
    return _in_clusters(covers, with_leftovers(covers, left, k, grown))


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
