"""The engine of Mondrian for any goal: all groups of a level propose a cut at once, the goal judges the parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.anonymize.goal import Goal, Progress
from velado.anonymize.methods.mondrian_plan import CutPlan
from velado.data.encode import EncodedTable
from velado.data.partition import BoolArray, IntArray, Partition

IntVector = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Level:
    """The groups that may still be cut: their rows side by side, in the order of the table within a group."""

    rows: IntVector
    codes: npt.NDArray[np.int32]
    starts: IntVector
    sizes: IntVector
    group: IntVector

    @classmethod
    def of(cls, rows: IntVector, sizes: IntVector, plan: CutPlan) -> _Level:
        starts = np.cumsum(sizes) - sizes
        return cls(rows, plan.codes[rows], starts, sizes, np.repeat(np.arange(sizes.size), sizes))

    def only(self, groups: BoolArray, column: int) -> tuple[IntVector, npt.NDArray[np.int32], IntVector]:
        """Positions, codes and sizes of the groups marked True."""
        at = np.flatnonzero(groups[self.group])
        return at, self.codes[at, column], self.sizes[groups]


def partition_levels(
    data: EncodedTable, plan: CutPlan, goal: Goal, least: int, relaxed: bool, progress: Progress
) -> tuple[npt.NDArray[np.int32], int]:
    """Group labels and their number: the groups of the compiled engine, for a goal that counts more than rows.

    A cut is made where the goal holds in all its parts. Each level costs O(n log n) per attribute tried.
    """
    order = np.arange(data.rows)
    sizes = np.array([data.rows], dtype=np.int64)
    open_ = sizes >= 2 * least
    while bool(open_.any()):
        in_open = np.repeat(open_, sizes)
        level = _Level.of(order[in_open], sizes[open_], plan)
        part, parts = _cut_level(data, plan, level, goal, least, relaxed)
        # Parts take the place of their group, so groups stay numbered from left to right.
        key = part + np.repeat(np.cumsum(parts) - parts, level.sizes)
        order[in_open] = level.rows[np.argsort(key, kind="stable")]
        replaced = np.ones(sizes.size, dtype=np.int64)
        replaced[open_] = parts
        from_open = np.repeat(open_, replaced)
        cut = np.ones(sizes.size, dtype=bool)
        cut[open_] = parts > 1
        was_cut = np.repeat(cut, replaced)
        new = np.empty(from_open.size, dtype=np.int64)
        new[~from_open] = sizes[~open_]
        new[from_open] = np.bincount(key, minlength=int(parts.sum()))
        sizes = new
        open_ = from_open & was_cut & (sizes >= 2 * least)
        progress(0.9 * float(sizes[~open_].sum()) / data.rows, "cutting the table")
    labels = np.empty(data.rows, dtype=np.int32)
    labels[order] = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
    return labels, int(sizes.size)


def _cut_level(
    data: EncodedTable, plan: CutPlan, level: _Level, goal: Goal, least: int, relaxed: bool
) -> tuple[IntVector, IntVector]:
    """The part each row goes to, and how many parts each group is cut into; 1 where no cut is allowed."""
    low = np.minimum.reduceat(level.codes, level.starts, axis=0)
    high = np.maximum.reduceat(level.codes, level.starts, axis=0)
    columns = low.shape[1]
    width = np.stack([plan.widths(c, low[:, c], high[:, c]) for c in range(columns)], axis=1)
    width[low == high] = 0.0
    preference = np.argsort(-width, axis=1, kind="stable")
    groups = level.sizes.size
    part = np.zeros(level.rows.size, dtype=np.int64)
    parts = np.ones(groups, dtype=np.int64)
    for attempt in range(columns):
        chosen = preference[:, attempt]
        trying = (parts == 1) & (width[np.arange(groups), chosen] > 0)
        if not trying.any():
            break
        proposed = np.zeros(level.rows.size, dtype=np.int64)
        for column in np.unique(chosen[trying]).tolist():
            mine = trying & (chosen == column)
            at, codes, sizes = level.only(mine, column)
            if plan.trees[column] is not None:
                proposed[at] = _branches(plan, column, codes, sizes, low[mine, column], high[mine, column])
            else:
                proposed[at] = _halves(codes, sizes, relaxed)
        good, count = _judge(data, level, trying, proposed, goal, least)
        part = np.where(good[level.group], proposed, part)
        parts[good] = count[good]
    return part, parts


def _judge(
    data: EncodedTable, level: _Level, trying: BoolArray, proposed: IntVector, goal: Goal, least: int
) -> tuple[BoolArray, IntVector]:
    """Which groups may be cut as proposed, and into how many parts."""
    count = np.maximum.reduceat(proposed, level.starts) + 1
    first = np.cumsum(count) - count
    label = proposed + first[level.group]
    rows = np.bincount(label, minlength=int(count.sum()))
    good = trying & (np.minimum.reduceat(rows, first) >= least)
    if good.any():
        seen = np.full(data.rows, -1, dtype=np.int64)
        judged = good[level.group]
        seen[level.rows[judged]] = label[judged]
        holds = np.zeros(rows.size, dtype=bool)
        holds[np.repeat(good, count)] = goal.holds_in_parts(data, Partition.of(seen))
        good &= np.logical_and.reduceat(holds, first)
    return good, count


def _halves(codes: npt.NDArray[np.int32], sizes: IntVector, relaxed: bool) -> IntVector:
    """0 or 1 for each row of groups that lie side by side: left or right of the cut at the median."""
    group = np.repeat(np.arange(sizes.size), sizes)
    starts = np.cumsum(sizes) - sizes
    order = np.lexsort((codes, group))
    if relaxed:
        part = np.empty(codes.size, dtype=np.int64)
        part[order] = np.arange(codes.size) - starts[group] >= (sizes // 2)[group]
        return part
    median = codes[order][starts + (sizes - 1) // 2]
    here = median[group]
    below = np.add.reduceat((codes < here).astype(np.int64), starts)
    through = np.add.reduceat((codes <= here).astype(np.int64), starts)
    before = (through == sizes) | ((below > 0) & (sizes - 2 * below < np.abs(2 * through - sizes)))
    right = (codes > here) | (before[group] & (codes == here))
    return np.asarray(right, dtype=np.int64)


def _branches(
    plan: CutPlan, column: int, codes: npt.NDArray[np.int32], sizes: IntVector, low: IntArray, high: IntArray
) -> IntVector:
    """For each row of groups that lie side by side, which child of the group's common ancestor holds it."""
    tree = plan.trees[column]
    assert tree is not None
    group = np.repeat(np.arange(sizes.size), sizes)
    starts = np.cumsum(sizes) - sizes
    depth = tree.depth[tree.common_ancestor(low, high)]
    child = tree.levels[codes, tree.height - 1 - depth[group]]
    order = np.lexsort((codes, group))
    ordered = child[order]
    new = np.zeros(codes.size, dtype=np.int64)
    new[1:] = ordered[1:] != ordered[:-1]
    new[starts] = 0
    running = np.cumsum(new)
    part = np.empty(codes.size, dtype=np.int64)
    part[order] = running - running[starts][group]
    return part
