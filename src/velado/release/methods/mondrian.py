"""Mondrian: cut the table in two again and again, as long as every part keeps the goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.partition import BoolArray, IntArray, Partition
from velado.data.taxonomy import Taxonomy
from velado.errors import ParameterError
from velado.release.goal import Goal, Progress, Promise
from velado.release.methods._method import RecoderName, Takes, in_groups, repair
from velado.release.methods._mondrian_kernel import Codes, IntVector, partition_rows
from velado.release.recoded import NoteName, Recoded
from velado.settings import Setting, settings
from velado.text import say

# CutPlan: what both engines of Mondrian read: the code matrix, and how wide and how cut each column is.

_WHOLE: IntVector = np.zeros(1, dtype=np.int64)  # where the parts of a table begin that is not cut yet
_BLANK_WIDTH = 3.0  # wider than any column can be (2, with blanks), so that blanks are split off first


@dataclass(frozen=True, repr=False)
class CutPlan:
    """Columns as flat arrays, those of column c starting at its *base*.

    *codes* has one column per quasi-identifier, and one more (0 value, 1 blank) for each that has blanks; *weight* is how
    many rows each of its entries stands for.
    *places* is where each code of a column without a tree lies. A column with a tree has *stride* > 0:
    *path* holds *stride* ancestors per leaf from the root down (short branches repeat their leaf) and
    *node_loss* the loss of each node; it is cut into its tree's branches.

    >>> from velado.testing.examples import encoded
    >>> plan = CutPlan.of(encoded(age=[20, 25, 40]), ordered=False)
    >>> plan.widths(0, np.array([0]), np.array([1])).tolist()
    [0.25]
    """

    codes: Codes
    weight: IntVector
    trees: tuple[Taxonomy | None, ...]
    places: npt.NDArray[np.float64]
    place_base: IntVector
    path: Codes
    path_base: IntVector
    stride: IntVector
    node_loss: npt.NDArray[np.float64]
    node_base: IntVector
    widest: int

    @classmethod
    def of(cls, data: EncodedTable, ordered: bool) -> CutPlan:
        """The plan for *data*; *ordered* takes categories for equally spaced points in leaf order."""
        blanks = [c for c in data.columns if c.missing >= 0 and bool((c.codes == c.missing).any())]
        codes = data.matrix
        if blanks:
            flags = [(c.codes == c.missing).astype(np.int32) for c in blanks]
            codes = np.ascontiguousarray(np.column_stack([codes, *flags]))
        trees = tuple(None if ordered else c.tree for c in data.columns) + (None,) * len(blanks)
        none = np.empty(0)
        weights = [c.weight for c in data.columns] + [1.0] * len(blanks)
        places = [c.weight * c.positions for c in data.columns]
        places += [np.array([0.0, _BLANK_WIDTH])] * len(blanks)
        paths = [np.empty((0, 0), np.int32) if tree is None else tree.levels[:, ::-1] for tree in trees]
        losses = [
            none if tree is None else weight * tree.loss(np.arange(tree.root + 1))
            for tree, weight in zip(trees, weights, strict=True)
        ]
        return cls(
            codes=codes,
            weight=np.ones(data.rows, dtype=np.int64) if data.counts is None else data.counts,
            trees=trees,
            places=np.concatenate(places),
            place_base=_bases([place.size for place in places]),
            path=np.concatenate([path.ravel() for path in paths]),
            path_base=_bases([path.size for path in paths]),
            stride=np.array([path.shape[1] for path in paths], dtype=np.int64),
            node_loss=np.concatenate(losses),
            node_base=_bases([loss.size for loss in losses]),
            widest=max(column.size for column in data.columns) + 1,
        )

    def widths(self, column: int, low: Codes, high: Codes) -> npt.NDArray[np.float64]:
        """How wide one column is in groups whose codes run from *low* to *high*."""
        tree = self.trees[column]
        if tree is not None:
            # Selecting among the same numbers as the compiled engine keeps comparisons bit for bit alike.
            return np.asarray(self.node_loss[self.node_base[column] + tree.common_ancestor(low, high)])
        base = self.place_base[column]
        return np.asarray(self.places[base + high] - self.places[base + low])


def _bases(sizes: list[int]) -> IntVector:
    return np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)


# The engine of Mondrian for any goal: all groups of a level propose a cut at once, the goal judges the parts.


@dataclass(frozen=True)
class _Level:
    """The groups that may still be cut: their entries side by side, in the order of the table within a group.

    *sizes* says how many entries each group has, *weight* how many rows an entry stands for.
    """

    entries: IntVector
    codes: Codes
    weight: IntVector
    starts: IntVector
    sizes: IntVector
    group: IntVector

    @classmethod
    def of(cls, entries: IntVector, sizes: IntVector, plan: CutPlan) -> _Level:
        starts = np.cumsum(sizes) - sizes
        group = np.repeat(np.arange(sizes.size), sizes)
        return cls(entries, plan.codes[entries], plan.weight[entries], starts, sizes, group)

    def only(self, groups: BoolArray, column: int) -> tuple[IntVector, Codes, IntVector]:
        """Positions, codes and sizes of the groups marked True."""
        at = np.flatnonzero(groups[self.group])
        return at, self.codes[at, column], self.sizes[groups]


def partition_levels(
    data: EncodedTable,
    plan: CutPlan,
    goal: Goal,
    least: int,
    relaxed: bool,
    progress: Progress,
    begins: IntVector = _WHOLE,
) -> tuple[Codes, int]:
    """Group labels and their number: the groups of the compiled engine, for a goal that counts more than rows.

    A cut is made where the goal holds in all its parts. The table may lie in parts already, the first entries of which are
    *begins*. Each level costs O(n log n) per attribute tried.

    >>> from velado.release.goal import silent
    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 31, 21, 30])
    >>> partition_levels(data, CutPlan.of(data, False), Goal((KAnonymity(2),)), 2, False, silent)[0].tolist()
    [0, 1, 0, 1]
    """
    order = np.arange(data.rows)
    sizes = np.diff(begins, append=data.rows)  # entries of each group
    rows = np.add.reduceat(plan.weight, begins)
    open_ = rows >= 2 * least
    while bool(open_.any()):
        in_open = np.repeat(open_, sizes)
        level = _Level.of(order[in_open], sizes[open_], plan)
        part, parts = _cut_level(data, plan, level, goal, least, relaxed)
        # Parts take the place of their group, so groups stay numbered from left to right.
        key = part + np.repeat(np.cumsum(parts) - parts, level.sizes)
        order[in_open] = level.entries[np.argsort(key, kind="stable")]
        replaced = np.ones(sizes.size, dtype=np.int64)
        replaced[open_] = parts
        from_open = np.repeat(open_, replaced)
        cut = np.ones(sizes.size, dtype=bool)
        cut[open_] = parts > 1
        was_cut = np.repeat(cut, replaced)
        total = int(parts.sum())
        sizes = _replaced(sizes[~open_], np.bincount(key, minlength=total), from_open)
        rows = _replaced(rows[~open_], np.bincount(key, level.weight, minlength=total), from_open)
        open_ = from_open & was_cut & (rows >= 2 * least)
        progress(0.9 * float(rows[~open_].sum()) / data.total, "cutting the table")
    labels = np.empty(data.rows, dtype=np.int32)
    labels[order] = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
    return labels, int(sizes.size)


def _replaced(closed: IntArray, opened: npt.NDArray[Any], from_open: BoolArray) -> IntVector:
    out = np.empty(from_open.size, dtype=np.int64)
    out[~from_open] = closed
    out[from_open] = opened
    return out


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
    part = np.zeros(level.entries.size, dtype=np.int64)
    parts = np.ones(groups, dtype=np.int64)
    for attempt in range(columns):
        chosen = preference[:, attempt]
        trying = (parts == 1) & (width[np.arange(groups), chosen] > 0)
        if not trying.any():
            break
        proposed = np.zeros(level.entries.size, dtype=np.int64)
        for column in np.unique(chosen[trying]).tolist():
            mine = trying & (chosen == column)
            at, codes, sizes = level.only(mine, column)
            if plan.trees[column] is not None:
                proposed[at] = branches(plan, column, codes, sizes, low[mine, column], high[mine, column])
            else:
                proposed[at] = halves(codes, sizes, level.weight[at], relaxed)
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
    rows = np.bincount(label, level.weight, minlength=int(count.sum()))
    good = trying & (np.minimum.reduceat(rows, first) >= least)
    if good.any():
        seen = np.full(data.rows, -1, dtype=np.int64)
        judged = good[level.group]
        seen[level.entries[judged]] = label[judged]
        holds = np.zeros(rows.size, dtype=bool)
        holds[np.repeat(good, count)] = goal.holds_in_parts(data, Partition.of(seen))
        good &= np.logical_and.reduceat(holds, first)
    return good, count


def halves(codes: Codes, sizes: IntVector, weight: IntVector, relaxed: bool) -> IntVector:
    """0 or 1 for each entry of groups that lie side by side: left or right of the cut at the median of their rows.

    >>> halves(np.array([0, 1, 5, 7]), np.array([4]), np.array([1, 1, 1, 9]), relaxed=False).tolist()
    [0, 0, 0, 1]
    """
    group = np.repeat(np.arange(sizes.size), sizes)
    starts = np.cumsum(sizes) - sizes
    order = np.lexsort((codes, group))
    if relaxed:
        part = np.empty(codes.size, dtype=np.int64)
        part[order] = np.arange(codes.size) - starts[group] >= (sizes // 2)[group]
        return part
    running = np.cumsum(weight[order])
    rows = np.add.reduceat(weight, starts)
    middle = running[starts + sizes - 1] - rows + (rows - 1) // 2
    median = codes[order][np.searchsorted(running, middle, side="right")]
    here = median[group]
    below = np.add.reduceat(np.where(codes < here, weight, 0), starts)
    through = np.add.reduceat(np.where(codes <= here, weight, 0), starts)
    before = (through == rows) | ((below > 0) & (rows - 2 * below < np.abs(2 * through - rows)))
    right = (codes > here) | (before[group] & (codes == here))
    return np.asarray(right, dtype=np.int64)


def branches(
    plan: CutPlan, column: int, codes: Codes, sizes: IntVector, low: IntArray, high: IntArray
) -> IntVector:
    """For each row of groups that lie side by side, which child of the group's common ancestor holds it.

    >>> from velado.testing.examples import encoded
    >>> data = encoded(home=["a", "b", "a"])
    >>> codes, ends = data.columns[0].codes, np.array([0])
    >>> branches(CutPlan.of(data, ordered=False), 0, codes, np.array([3]), ends, ends + 1).tolist()
    [0, 1, 0]
    """
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


@settings
class Mondrian:
    """Every group keeps the goal, and none can be cut further where Mondrian would cut it.

    LeFevre, DeWitt, Ramakrishnan, *Mondrian Multidimensional K-Anonymity* (2006). A group is cut along its
    widest attribute (interval / domain for numbers, loss of the lowest common ancestor for categories); if a
    part would break the goal, along the next widest. Numbers are cut at the median: "strict" keeps equal
    values together, "relaxed" shares them out so that both halves are equal. Categories are cut into the
    children of the group's lowest common ancestor; with categories = "ordered" their leaves count as equally
    spaced points and are cut like numbers, which no rare branch can block but which straddles branches. Either way the published
    value is the lowest common ancestor.

    Departures. Of the two strict boundaries next to the median the more balanced one is taken, where the
    paper always keeps the median left: it can only allow more cuts. Blanks are split from values
    before anything else where the goal allows it, because only `*` would cover both.

    No choice is random: the same rows give the same groups. O(n d log(n / k)).

    >>> from velado.testing.examples import shown
    >>> shown(Mondrian(), [20, 21, 30, 31])
    ['[20..21]', '[20..21]', '[30..31]', '[30..31]']
    """

    name: ClassVar[str] = "mondrian"
    title: ClassVar[str] = say("Mondrian multidimensional partitioning")
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = say("O(n d log(n / k))")
    source: ClassVar[str] = "LeFevre, DeWitt, Ramakrishnan 2006"

    cut: Annotated[
        Literal["strict", "relaxed"], Setting("keep rows equal in the cut column together, or share them out")
    ] = "strict"
    categories: Annotated[Literal["taxonomy", "ordered"], Setting("cut categories into the taxonomy's branches, or at the median leaf")] = "taxonomy"  # fmt: skip
    recoder: RecoderName = "cover"

    @property
    def takes(self) -> Takes:
        """Tuples, but for relaxed cuts, which part equal rows, and centroids: the first of rows equally near."""
        return "tuples" if self.cut == "strict" and self.recoder != "centroid" else "rows"

    def partition(self, data: EncodedTable, goal: Goal, progress: Progress) -> Partition:
        """The groups alone, every one keeping the goal, numbered from left to right in the tree of cuts."""
        relaxed = self.cut == "relaxed"
        if relaxed and data.counts is not None:
            raise ParameterError(
                "Relaxed cuts cannot be made where rows with the same values are counted together.",
                "They send some of such rows to the left and others to the right, and nobody could tell which.",
                "Leave --cut at strict.",
            )
        # Does nothing unless not even the whole table keeps the goal; then it says so.
        return repair(data, self.partition_parts(data, goal, _WHOLE, progress), goal, progress)

    def partition_parts(
        self, data: EncodedTable, goal: Goal, begins: IntVector, progress: Progress
    ) -> Partition:
        """The groups of a table that earlier cuts left in parts; *begins* are the first entries of these."""
        plan = CutPlan.of(data, self.categories == "ordered")
        relaxed = self.cut == "relaxed"
        least = goal.least_rows
        if goal.rows_only:
            labels, count = _compiled(plan, least, relaxed, begins)
        else:
            labels, count = partition_levels(data, plan, goal, least, relaxed, progress, begins)
        return Partition(labels, count, weights=data.counts)

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table published group by group; *random* is not used."""
        progress(0.0, "cutting the table")
        groups = self.partition(data, goal, progress)
        progress(0.9, "publishing groups")
        made = self.published(data, groups)
        progress(1.0, "done")
        return made

    def published(self, data: EncodedTable, groups: Partition) -> Recoded:
        """The table published in *groups*."""
        notes: dict[str, object] = {
            NoteName("cut", say("cut")): self.cut,
            NoteName("categories", say("treatment of categories")): self.categories,
        }
        return in_groups(data, groups, self.recoder, notes)


def _compiled(plan: CutPlan, least: int, relaxed: bool, begins: IntVector) -> tuple[Codes, int]:
    labels, count = partition_rows(
        codes=plan.codes,
        weight=plan.weight,
        parts_begin=begins,
        least=least,
        relaxed=relaxed,
        places=plan.places,
        place_base=plan.place_base,
        path=plan.path,
        path_base=plan.path_base,
        stride=plan.stride,
        node_loss=plan.node_loss,
        node_base=plan.node_base,
        widest=plan.widest,
    )
    return labels, int(count)
