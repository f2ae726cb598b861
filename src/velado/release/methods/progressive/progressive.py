"""Progressive generalization: generalize first, but no further than each record needs."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from velado.data.encode import EncodedTable
from velado.data.partition import IntArray, Partition
from velado.errors import GuaranteeNotMet
from velado.release.goal import Goal, Progress, Promise, silent, within
from velado.release.methods._method import RecoderName, published
from velado.release.methods.mondrian import Mondrian
from velado.release.methods.progressive._cover_lattice import CoverLattice, lattice
from velado.release.methods.progressive._neighbourhood_search import search, start
from velado.release.methods.progressive._peel import BoxList, Peeled, peel
from velado.release.methods.progressive._progressive_kernel import (
    Floats,
    covers,
    join_leftovers,
    scratch_for,
)
from velado.release.recoded import NoteName, Recoded
from velado.settings import Setting, settings
from velado.text import say

# High effort: the grouping made better by freeing neighbouring groups, in steps that report progress.

_WORK = 2_600_000_000
"""About 40 s of one core."""
_WORK_A_ROW = 100_000
"""Small tables stop sooner: by then every few neighbours have been tried many times."""
_ROUNDS = 40
_HEAT = 0.005
"""Times the least rows of a group: how much worse a step may be at first, in rows x cost."""


def improved(
    lattice: CoverLattice, labels: IntArray, least: int, random: np.random.Generator, progress: Progress
) -> IntArray:
    """Labels of a grouping that costs no more than the given one, groups of *least* rows or more.

    >>> from velado.testing.examples import encoded
    >>> space = lattice(encoded(age=[20, 30, 21, 31]))
    >>> improved(space, np.array([0, 0, 1, 1]), 2, np.random.default_rng(0), silent).tolist()
    [0, 1, 0, 1]
    """
    space = lattice.space
    state, count = start(space, lattice.tuple_of_row, labels.astype(np.int32), least)
    need = _need(lattice, labels, least, count)
    scratch = scratch_for(int(space.size.max()))
    work = min(_WORK, _WORK_A_ROW * labels.size)
    before = float((state.price * state.size).sum())
    for part in range(_ROUNDS):
        progress(part / _ROUNDS, "searching for better groups")
        heat = _HEAT * least * (1 - (part + 1) / _ROUNDS)
        count, _ = search(
            space=space,
            tuple_of_row=lattice.tuple_of_row,
            need=need,
            state=state,
            count=count,
            least=least,
            most_work=work // _ROUNDS,
            heat=heat,
            random=random,
            scratch=scratch,
        )
    after = float((state.price[:count] * state.size[:count]).sum())
    return np.asarray(state.label) if after <= before else labels


def _need(lattice: CoverLattice, labels: IntArray, least: int, count: int) -> Floats:
    """What each tuple costs at least: the cheapest box with *least* rows, or its own group where unknown."""
    of_tuple = np.full(lattice.tuples, -1, dtype=np.int32)
    of_tuple[lattice.tuple_of_row] = labels
    _, _, _, price = covers(lattice.space, of_tuple, count)
    need = np.where(of_tuple >= 0, price[np.maximum(of_tuple, 0)], lattice.top_cost)
    room = BoxList.of(lattice, 1 << 23, 1 << 20)
    everyone = np.arange(lattice.tuples, dtype=np.int32)
    low = 0.0
    for share in (0.02, 0.05, 0.1, 0.15, 0.2):
        high = lattice.top_cost * share
        if not room.list(lattice, everyone, least, low, high, 200_000_000):
            break
        sizes = np.diff(room.starts[: room.count + 1])
        filled = int(room.starts[room.count])
        np.minimum.at(need, room.members[:filled], np.repeat(room.costs[: room.count], sizes))
        low = high
    return need


_PEEL_WORK = {"fast": 500_000_000, "default": 1_500_000_000, "high": 3_000_000_000}
"""Tuples looked at before the listing ends: about 10, 30 and 60 s of one core. Adult needs 40 million."""


@settings
class Progressive:
    """Every group is a box that was the cheapest one left with enough rows in it.

    A *box* is one generalized tuple: a node per column, from the levels of its taxonomy, or for numbers from
    DAS's bins and their unions. It costs the sum of its nodes' normalized certainty penalties. Boxes are
    visited from the cheapest to the dearest; one in which the goal holds for the rows that are still there
    becomes a group, and its rows leave. The few rows left at the end join the group they widen least. Each
    group is published as the tight cover of its members, which is never wider than its box.

    Only boxes that hold enough rows, and that no narrower box holds as well, are ever listed: a search over
    the columns, dearest first, drops a box with everything inside it as soon as its rows or its cost decide.
    Effort *high* then frees neighbouring groups again and again and keeps what is better. Efforts *fast* and
    *default* differ only in how much work may be done before the listing of boxes ends.

    With very many columns the boxes are too many to list. Then the listing ends after a fixed amount of work,
    and the rows that remain are cut by strict Mondrian; notes say how many. `progressive_bound.lower_bound`
    proves how little *any* release of the same table in groups of the same size must lose.

    Cost: near O(n log n) for the tuples, then in the number of boxes listed; no more than a fixed amount of
    work for a table. Protects rows (or people, under a per-person goal) against being singled out among the
    quasi-identifiers; against nothing that other guarantees are needed for.

    >>> from velado.testing.examples import shown
    >>> shown(Progressive(), [20, 21, 30, 31])
    ['[20..21]', '[20..21]', '[30..31]', '[30..31]']
    """

    name: ClassVar[str] = "progressive"
    title: ClassVar[str] = say("Progressive generalization")
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = say("O(n log n) plus the boxes listed, limited work")
    source: ClassVar[str] = "velado; boxes as in full-domain generalization, chosen per record"

    effort: Annotated[
        Literal["fast", "default", "high"], Setting("how long to search for a better release")
    ] = "default"
    work: Annotated[int, Setting("tuples looked at before the listing of boxes ends; 0: by effort", ge=0)] = 0
    recoder: RecoderName = "cover"

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table in groups in which the goal holds, each published by the recoder."""
        space = lattice(data)
        peeled = peel(data, space, goal, within(progress, 0.0, 0.4), self.work or _PEEL_WORK[self.effort])
        cut = _cut_the_rest(data, space, goal, peeled)
        labels = _joined(data, space, goal, peeled)
        if self.effort == "high" and goal.rows_only and bool((labels >= 0).any()):
            labels = improved(space, labels, max(goal.least_rows, 1), random, within(progress, 0.4, 0.95))
        made = published(
            data,
            Partition.of(labels),
            goal,
            self.recoder,
            within(progress, 0.95, 0.96),
            {NoteName("rows_cut_by_mondrian", say("rows left to Mondrian")): cut},
        )
        progress(1.0, "done")
        return made


def _cut_the_rest(data: EncodedTable, space: CoverLattice, goal: Goal, peeled: Peeled) -> int:
    """Rows that peeling had no time for become groups by Mondrian; returns how many rows that concerns.

    A few rows, or rows in which the goal cannot hold, are left to join other groups.
    """
    rows = np.flatnonzero(peeled.label[space.tuple_of_row] < 0)
    if rows.size < max(2 * goal.least_rows, 2):
        return 0
    try:
        part = Mondrian().partition(data.subset(rows), goal, silent)
    except GuaranteeNotMet:
        return 0
    # All rows of a tuple go where its first row went, so that a group is a set of whole tuples.
    tuples, first = np.unique(space.tuple_of_row[rows], return_index=True)
    placed = part.labels[first]
    kept = placed >= 0
    peeled.label[tuples[kept]] = peeled.groups + placed[kept]
    peeled.groups += part.count
    return int(rows.size)


def _joined(data: EncodedTable, space: CoverLattice, goal: Goal, peeled: Peeled) -> IntArray:
    """The group of each row once the leftovers have joined one, or were dropped where the goal allows it."""
    if peeled.groups == 0:
        return np.zeros(data.rows, dtype=np.int32)
    droppable = goal.suppressible(data.rows)
    # A dropped row costs 1 in every column.
    join_leftovers(space.space, peeled.label, peeled.groups, droppable, float(len(data.columns)))
    return np.asarray(peeled.label[space.tuple_of_row])
