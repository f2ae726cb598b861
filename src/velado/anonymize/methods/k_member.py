"""k-member clustering and nearest-neighbour clustering: groups of exactly k similar records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from velado.anonymize.goal import Goal, Progress, Promise
from velado.anonymize.methods.base import repair
from velado.anonymize.methods.blocks import in_blocks
from velado.anonymize.methods.cover_tables import CoverTables
from velado.anonymize.methods.k_member_kernel import grow_clusters, place_leftovers
from velado.anonymize.recoded import Recoded
from velado.anonymize.recoders import RECODERS, recoder_named
from velado.data.encode import EncodedTable
from velado.data.partition import Partition

RECODER_NAMES = tuple(recoder.name for recoder in RECODERS)


def cluster(data: EncodedTable, k: int, greedy: bool, random: np.random.Generator) -> Partition:
    """Groups of k rows each; the last rows join the group they widen least.

    Rows with equal quasi-identifiers are interchangeable: which of them goes where follows table order.
    """
    tables = CoverTables.of(data)
    left = tables.weight.copy()
    turn = (
        random.permutation(tables.records.shape[0]) if greedy else np.argsort(-tables.weight, kind="stable")
    )
    record, rows, into, count = grow_clusters(
        tables.records, left, k, turn, greedy, tables.tables, tables.width
    )
    low = np.full((count, len(data.columns)), np.iinfo(np.int32).max, dtype=np.int32)
    high = np.full((count, len(data.columns)), -1, dtype=np.int32)
    np.minimum.at(low, into, tables.records[record])
    np.maximum.at(high, into, tables.records[record])
    sizes = np.full(count, k, dtype=np.int64)
    target = place_leftovers(tables.records, left, low, high, sizes, tables.tables)
    rest = np.flatnonzero(left > 0)
    record = np.concatenate((record, rest))
    rows = np.concatenate((rows, left[rest]))
    into = np.concatenate((into, target[rest]))
    # Spread the moves of each record over its table rows.
    order = np.argsort(record, kind="stable")
    labels = np.empty(data.rows, dtype=np.int64)
    by_record, _ = tables.rows_by_record()
    labels[by_record] = np.repeat(into[order], rows[order])
    return Partition.of(labels)


@dataclass(frozen=True)
class KMember:
    """Clusters of k: each seed takes, one after another, the record that widens its cluster least.

    Byun, Kamra, Bertino, Li, "Efficient k-Anonymization Using Clustering Techniques" (2007). The next seed is
    the record farthest from the last; the information loss of a cluster is its size times the loss of its
    cover; what is left at the end joins the cluster whose loss grows least. Works on distinct records, so
    repeated ones cost nothing. The first seed is drawn.
    """

    name: ClassVar[str] = "k-member"
    title: ClassVar[str] = "k-member clustering"
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = "O(n^2 d), quadratic; O(n b d) in blocks of b rows"
    source: ClassVar[str] = "Byun, Kamra, Bertino, Li 2007"
    k: int = field(default=5, metadata={"help": "rows or people in each class", "min": 2})
    block: int = field(
        default=50_000, metadata={"help": "split larger tables into blocks of about so many rows", "min": 100}
    )
    recoder: str = field(
        default="cover", metadata={"help": "how a class is published", "choices": RECODER_NAMES}
    )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """Clusters by least widening, repaired until the goal holds."""
        return _publish(self, data, goal, random, progress, greedy=True)


@dataclass(frozen=True)
class NearestNeighbours:
    """Clusters of k: each seed takes its k - 1 nearest records at once.

    The clustering-based anonymization (CB) that k-AnonML compares with: nearest by the summed loss of covering
    seed and record together. The most frequent record left is the next seed (drawn
    seeds, as the peer has them, lose 4 points more on Adult at k = 50). Faster than k-member by a factor k, and
    looser, since members are near the seed but not each other.
    """

    name: ClassVar[str] = "nearest-neighbours"
    title: ClassVar[str] = "Nearest-neighbour clustering (CB)"
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = "O(n^2 d / k), quadratic; O(n b d / k) in blocks of b rows"
    source: ClassVar[str] = "CB of k-AnonML, Slijepcevic et al. 2021"
    k: int = field(default=5, metadata={"help": "rows or people in each class", "min": 2})
    block: int = field(
        default=100_000,
        metadata={"help": "split larger tables into blocks of about so many rows", "min": 100},
    )
    recoder: str = field(
        default="cover", metadata={"help": "how a class is published", "choices": RECODER_NAMES}
    )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """Clusters of a seed and its nearest records, repaired until the goal holds."""
        return _publish(self, data, goal, random, progress, greedy=False)


def _publish(
    method: KMember | NearestNeighbours,
    data: EncodedTable,
    goal: Goal,
    random: np.random.Generator,
    progress: Progress,
    greedy: bool,
) -> Recoded:
    k = max(goal.least_rows, 1)
    partition = in_blocks(
        data, method.block, k, lambda part: cluster(part, k, greedy, random), progress, method.title
    )
    partition = repair(data, partition, goal, progress)
    columns = recoder_named(method.recoder).publish(data, partition)
    return Recoded(columns, partition.kept, partition, {"groups": partition.count})
