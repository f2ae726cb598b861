"""Progressive generalization: generalize first, but no further than each record needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from velado.anonymize.goal import Goal, Progress, Promise, silent
from velado.anonymize.methods.base import repair
from velado.anonymize.methods.k_member import RECODER_NAMES
from velado.anonymize.methods.mondrian import Mondrian
from velado.anonymize.methods.progressive_cover import join_leftovers
from velado.anonymize.methods.progressive_improve import improved
from velado.anonymize.methods.progressive_lattice import Lattice, lattice
from velado.anonymize.methods.progressive_peel import Peeled, peel
from velado.anonymize.recoded import Recoded
from velado.anonymize.recoders import recoder_named
from velado.data.encode import EncodedTable
from velado.data.partition import IntArray, Partition
from velado.errors import GuaranteeNotMet

_PEEL_WORK = {"fast": 500_000_000, "default": 1_500_000_000, "high": 3_000_000_000}
"""Tuples looked at before the listing ends: about 10, 30 and 60 s of one core. Adult needs 40 million."""


@dataclass(frozen=True)
class Progressive:
    """Every group is a box that was the cheapest one left with enough rows in it.

    A *box* is one generalized tuple: a node per column, from the levels of its taxonomy, or for numbers from
    DAS's bins and their unions. It costs the sum of its nodes' normalized certainty penalties. Boxes are
    visited from the cheapest to the dearest; one in which the goal holds for the rows that are still there
    becomes a class, and its rows leave. The few rows left at the end join the class they widen least. Each
    class is published as the tight cover of its members, which is never wider than its box.

    Only boxes that hold enough rows, and that no narrower box holds as well, are ever listed: a search over
    the columns, dearest first, drops a box with everything inside it as soon as its rows or its cost decide.
    Effort *high* then frees neighbouring classes again and again and keeps what is better. Efforts *fast* and
    *default* differ only in how much work may be done before the listing of boxes ends.

    With very many columns the boxes are too many to list. Then the listing ends after a fixed amount of work,
    and the rows that remain are cut by strict Mondrian; notes say how many. `progressive_bound.lower_bound`
    proves how little *any* release of the same table in groups of the same size must lose.

    Cost: near O(n log n) for the tuples, then in the number of boxes listed; no more than a fixed amount of
    work for a table. Protects rows (or people, under a per-person goal) against being singled out among the
    quasi-identifiers; against nothing that other guarantees are needed for.
    """

    name: ClassVar[str] = "progressive"
    title: ClassVar[str] = "Progressive generalization"
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = "O(n log n) plus the boxes listed, limited work"
    source: ClassVar[str] = "velado; boxes as in full-domain generalization, chosen per record"

    k: int = field(default=5, metadata={"help": "rows (or people) in every group", "min": 2})
    effort: Literal["fast", "default", "high"] = field(
        default="default",
        metadata={"help": "how long to search for a better release", "choices": ("fast", "default", "high")},
    )
    work: int = field(
        default=0,
        metadata={"help": "tuples looked at before the listing of boxes ends; 0: by effort", "min": 0},
    )
    recoder: str = field(
        default="cover",
        metadata={
            "help": "how a group is published",
            "choices": RECODER_NAMES,
        },
    )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table in groups in which the goal holds, each published by the recoder."""
        space = lattice(data)
        peeled = peel(data, space, goal, _part(progress, 0.0, 0.4), self.work or _PEEL_WORK[self.effort])
        cut = _cut_the_rest(data, space, goal, peeled)
        labels = _joined(data, space, goal, peeled)
        if self.effort == "high" and goal.rows_only and bool((labels >= 0).any()):
            labels = improved(space, labels, max(goal.least_rows, 1), random, _part(progress, 0.4, 0.95))
        partition = repair(data, Partition.of(labels), goal, _part(progress, 0.95, 0.96))
        columns = recoder_named(self.recoder).publish(data, partition)
        notes: dict[str, Any] = {"classes": partition.count, "rows_cut_by_mondrian": cut}
        progress(1.0, "done")
        return Recoded(columns, partition.kept, partition, notes)


def _cut_the_rest(data: EncodedTable, space: Lattice, goal: Goal, peeled: Peeled) -> int:
    """Rows that peeling had no time for become classes by Mondrian; returns how many rows that concerns.

    A few rows, or rows in which the goal cannot hold, are left to join other classes.
    """
    rows = np.flatnonzero(peeled.label[space.tuple_of_row] < 0)
    if rows.size < max(2 * goal.least_rows, 2):
        return 0
    try:
        part = Mondrian(k=max(goal.least_rows, 2)).partition(data.subset(rows), goal, silent)
    except GuaranteeNotMet:
        return 0
    # All rows of a tuple go where its first row went, so that a class is a set of whole tuples.
    tuples, first = np.unique(space.tuple_of_row[rows], return_index=True)
    placed = part.labels[first]
    kept = placed >= 0
    peeled.label[tuples[kept]] = peeled.classes + placed[kept]
    peeled.classes += part.count
    return int(rows.size)


def _joined(data: EncodedTable, space: Lattice, goal: Goal, peeled: Peeled) -> IntArray:
    """The class of each row once the leftovers have joined one, or were dropped where the goal allows it."""
    if peeled.classes == 0:
        return np.zeros(data.rows, dtype=np.int32)
    droppable = goal.suppressible(data.rows)
    # A dropped row costs 1 in every column.
    join_leftovers(space.space, peeled.label, peeled.classes, droppable, float(len(data.columns)))
    return np.asarray(peeled.label[space.tuple_of_row])


def _part(progress: Progress, begin: float, end: float) -> Progress:
    """Progress of one stage as a part of the whole."""

    def report(share: float, doing: str = "") -> None:
        progress(begin + (end - begin) * min(max(share, 0.0), 1.0), doing)

    return report
