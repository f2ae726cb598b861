"""Top-down greedy: split between two far-apart records, again and again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from velado.anonymize.goal import Goal, Progress, Promise
from velado.anonymize.methods.base import repair
from velado.anonymize.methods.cover_tables import CoverTables
from velado.anonymize.methods.k_member import RECODER_NAMES
from velado.anonymize.methods.top_down_greedy_kernel import split_all
from velado.anonymize.recoded import Recoded
from velado.anonymize.recoders import recoder_named
from velado.data.encode import EncodedTable
from velado.data.partition import Partition


@dataclass(frozen=True)
class TopDownGreedy:
    """Every group is split between two records far apart, as long as both sides can hold k.

    Xu, Wang, Pei, Wang, Shi, Fu, "Utility-Based Anonymization Using Local Recoding" (2006): three rounds of
    "the farthest from the farthest" find two seeds, each record goes to the seed with which it loses less, a side
    below k borrows the records cheapest to move. Rows are taken in the order of their codes, so the order of the
    table decides nothing and nothing is drawn.
    """

    name: ClassVar[str] = "top-down-greedy"
    title: ClassVar[str] = "Top-down greedy"
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = "O(n d log n) for balanced splits"
    source: ClassVar[str] = "Xu, Wang, Pei, Wang, Shi, Fu 2006"
    k: int = field(default=5, metadata={"help": "rows or people in each class", "min": 2})
    recoder: str = field(
        default="cover", metadata={"help": "how a class is published", "choices": RECODER_NAMES}
    )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """Groups by splitting, repaired until the goal holds."""
        progress(0.0, self.title)
        tables = CoverTables.of(data)
        order, _ = tables.rows_by_record()
        records = np.ascontiguousarray(data.matrix[order])
        labels = np.empty(data.rows, dtype=np.int64)
        labels[order] = split_all(records, max(goal.least_rows, 1), tables.tables, tables.width)
        partition = repair(data, Partition.of(labels), goal, progress)
        columns = recoder_named(self.recoder).publish(data, partition)
        return Recoded(columns, partition.kept, partition, {"groups": partition.count})
