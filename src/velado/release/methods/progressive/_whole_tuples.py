"""Groups of whole tuples, for tables whose equal rows are counted together: boxes, or strict cuts at medians."""

from __future__ import annotations

import numpy as np

from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.errors import GuaranteeNotMet
from velado.release.goal import Goal, Progress, silent, within
from velado.release.methods._method import repair
from velado.release.methods.mondrian import Mondrian
from velado.release.methods.progressive._cover_lattice import lattice
from velado.release.methods.progressive._peel import peel
from velado.release.methods.progressive._progressive_kernel import join_leftovers
from velado.release.methods.progressive._starts import Start
from velado.text import Sentence, say


def whole_tuples_start(data: EncodedTable, goal: Goal, work: int, progress: Progress) -> Start:
    """The cheaper of two groupings that keep all rows of a tuple together; boxes where the goal reads sensitive values.

    Tuples that the boxes do not reach are cut by Mondrian; the last few join the group they widen least, or are dropped
    where the goal allows it.
    """
    found = [_offered(say("boxes, cheapest first"), data, _boxes(data, goal, work, progress), goal)]
    if not goal.reads_sensitive:  # to choose between groupings with the values in view would tell of them
        progress(0.9, "cutting the table")
        cut = Mondrian().partition(data, goal, silent)
        found.append(_offered(say("cuts at medians"), data, cut, goal))
    progress(1.0, "cutting the table")
    return min(found, key=lambda start: start.cost)


def _boxes(data: EncodedTable, goal: Goal, work: int, progress: Progress) -> Partition:
    space = lattice(data)
    peeled = peel(data, space, goal, within(progress, 0.0, 0.9), work)
    entries = np.flatnonzero(peeled.label[space.tuple_of_row] < 0)
    rest = data.subset(entries)
    if rest.total >= 2 * max(goal.least_rows, 1):
        try:
            part = Mondrian().partition(rest, goal, silent)
        except GuaranteeNotMet:
            pass  # the rest cannot stand alone: it joins the groups there are
        else:
            peeled.label[space.tuple_of_row[entries]] = peeled.groups + part.labels
            peeled.groups += part.count
    if not peeled.groups:
        return Partition(np.zeros(data.rows, dtype=np.int32), 1)
    most_each = sum(column.weight for column in data.columns)  # a dropped row loses everything
    join_leftovers(space.space, peeled.label, peeled.groups, goal.suppressible(data.total), most_each)
    return Partition.of(peeled.label[space.tuple_of_row])


def _offered(name: Sentence, data: EncodedTable, groups: Partition, goal: Goal) -> Start:
    groups = repair(data, data.weighed(groups), goal, silent)
    cost = 0.0
    for column in data.columns:
        low, high = groups.least_and_greatest(column.codes)
        cost += float((column.loss(low, high) * groups.sizes).sum())
    dropped = data.total - int(groups.sizes.sum())
    return Start(name, groups.labels, cost + dropped * sum(column.weight for column in data.columns))
