"""Where a search begins: peeled boxes, one-scan k-member, relaxed Mondrian, cuts of one column; the cheapest of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.partition import FloatArray, Int32Array, Int64Array, IntArray, Partition
from velado.errors import GuaranteeNotMet
from velado.release.goal import Goal, Progress, silent, within
from velado.release.methods._method import repair
from velado.release.methods._one_scan import labels_of_moves, one_scan
from velado.release.methods._row_covers import CoverMeasure, RowCovers, cover_cost
from velado.release.methods.mondrian import Mondrian
from velado.release.methods.progressive._cover_lattice import lattice
from velado.release.methods.progressive._neighbour_graph import kd_blocks, scaled
from velado.release.methods.progressive._ordered_cuts import cut_in_order
from velado.release.methods.progressive._peel import peel
from velado.release.methods.progressive._progressive_kernel import join_leftovers
from velado.text import Sentence, say


@dataclass(frozen=True, repr=False)
class Start:
    """A grouping, the rows x price of it, and where it is from; *others* are dearer ones, the cheapest of them first."""

    name: Sentence
    labels: Int32Array
    cost: float
    others: tuple[Int32Array, ...] = ()


@njit(cache=True)
def _grouping_cost(
    measure: CoverMeasure, points: FloatArray, record_of: Int32Array, label: Int32Array, count: int
) -> tuple[FloatArray, Int64Array]:
    """Price and rows of each group."""
    columns = points.shape[1]
    low = np.full((count, columns), np.inf)
    high = np.full((count, columns), -np.inf)
    rows = np.zeros(count, dtype=np.int64)
    for row in range(label.size):
        g = label[row]
        if g < 0:
            continue
        rows[g] += 1
        for c in range(columns):
            x = points[record_of[row], c]
            low[g, c] = min(low[g, c], x)
            high[g, c] = max(high[g, c], x)
    price = np.zeros(count)
    for g in range(count):
        if rows[g]:
            price[g] = cover_cost(measure, low, high, g)
    return price, rows


def grouping_cost(covers: RowCovers, labels: IntArray) -> float:
    """Rows x price of a grouping, a row in no group at the price of everything.

    >>> from velado.testing.examples import encoded
    >>> grouping_cost(RowCovers.of(encoded(age=[20, 21, 30])), np.array([0, 0, -1]))
    1.2
    """
    label = np.ascontiguousarray(labels, dtype=np.int32)
    count = int(label.max(initial=-1)) + 1
    price, rows = _grouping_cost(covers.measure, covers.points, covers.record_of, label, count)
    return float((price * rows).sum() + (label < 0).sum() * covers.measure.most.sum())


def clustered(covers: RowCovers, rows: IntArray, k: int, block: int, seed: int) -> Int64Array:
    """One-scan k-member over some rows of the table, in blocks of so many records where there are more.

    >>> from velado.testing.examples import encoded
    >>> clustered(RowCovers.of(encoded(age=[20, 31, 21, 30])), np.arange(4), 2, 100, 0).tolist()
    [0, 1, 0, 1]
    """
    present, record_of, weight = _present(covers, rows)
    parts = [np.arange(present.size)]
    if present.size > block:
        random = np.array([2 * seed + 1], dtype=np.int64)
        order, begins = kd_blocks(
            np.ascontiguousarray(scaled(covers)[:, present]), np.ones(present.size, np.int64), block, random
        )
        # Every block must have a group's rows; what has too few stays with what comes next, the last with the one before.
        through = np.cumsum(weight[order])
        cuts = [0]
        for cut in begins[1:-1].tolist():
            before = through[cuts[-1] - 1] if cuts[-1] else 0
            if through[cut - 1] - before >= k and through[-1] - through[cut - 1] >= k:
                cuts.append(cut)
        parts = np.split(order, cuts[1:]) if len(cuts) > 1 else parts
    covers = _part_of(covers, present)
    moves: list[tuple[Int64Array, Int64Array, Int64Array]] = []
    offset = 0
    for part, (record, taken, into, count) in zip(
        parts, _each_scanned(covers, parts, weight, k, seed), strict=True
    ):
        if not count:  # fewer rows than a group: they are one
            record, taken, into, count = np.arange(part.size), weight[part], np.zeros(part.size, np.int64), 1
        moves.append((part[record], taken, into + offset))
        offset += count
    record, taken, into = (np.concatenate([move[i] for move in moves]) for i in range(3))
    return labels_of_moves(record_of, record, taken, into)


def _present(covers: RowCovers, rows: IntArray) -> tuple[Int64Array, Int32Array, Int64Array]:
    """The records that some rows have, the place among these of each row's, and how many of the rows each has."""
    record_of = covers.record_of[rows]
    if rows.size < covers.records // 16:  # a group of some dozens of rows must not cost what the table does
        present, place, weight = np.unique(record_of, return_inverse=True, return_counts=True)
        return present.astype(np.int64), place.astype(np.int32), weight
    weight = np.bincount(record_of, minlength=covers.records)
    present = np.flatnonzero(weight)
    return present, (np.cumsum(weight > 0) - 1).astype(np.int32)[record_of], weight[present]


_Moves = tuple[Int64Array, Int64Array, Int64Array, int]


def _each_scanned(
    covers: RowCovers, parts: list[Int64Array], weight: Int64Array, k: int, seed: int
) -> list[_Moves]:
    def scanned(part: Int64Array) -> _Moves:
        return one_scan(_part_of(covers, part), weight[part], k, seed % part.size)

    if len(parts) == 1:
        return [scanned(parts[0])]
    with ThreadPoolExecutor(
        _THREADS
    ) as pool:  # parts have no record in common: threads change nothing in the result
        return list(pool.map(scanned, parts))


def _part_of(covers: RowCovers, part: IntArray) -> RowCovers:
    if part.size == covers.records:
        return covers
    nothing = np.zeros(0, dtype=np.int32)
    return RowCovers(covers.points[part], covers.across[:, :0], covers.weight[part], nothing, covers.measure)


def finer(covers: RowCovers, labels: Int32Array, k: int, seed: int) -> Int32Array:
    """The same grouping with every group of 2 k rows or more that costs anything cut by one-scan k-member.

    >>> from velado.testing.examples import encoded
    >>> finer(RowCovers.of(encoded(age=[20, 31, 21, 30])), np.zeros(4, np.int32), 2, 0).tolist()
    [0, 1, 0, 1]
    """
    count = int(labels.max(initial=-1)) + 1
    price, sizes = _grouping_cost(covers.measure, covers.points, covers.record_of, labels, count)
    large = np.flatnonzero((price > 0) & (sizes >= 2 * k))
    if not large.size:
        return labels
    out = labels.copy()
    order, starts = Partition(labels, count).members()
    for g in large.tolist():
        rows = order[starts[g] : starts[g] + sizes[g]]
        new = clustered(covers, rows, k, 8_000, seed)
        out[rows] = np.where(new == 0, g, count + new - 1)
        count += int(new.max())
    return out if grouping_cost(covers, out) < grouping_cost(covers, labels) else labels


_FEW = 15_000
_MANY = 300_000
_SMALL_BLOCK = 8_000
_THREADS = 2


def peeled_start(
    data: EncodedTable, covers: RowCovers, goal: Goal, work: int, progress: Progress
) -> tuple[Int32Array | None, int]:
    """Groups from the cheapest boxes, and how many rows they did not reach.

    Those are clustered by themselves, or cut by Mondrian where the goal counts more than rows; a few join the group
    they widen least, or are dropped where the goal allows it. Where rows alone count and most of them were not
    reached there are no groups: clusters of all rows are better than of what boxes left.
    """
    space = lattice(data)
    least = max(goal.least_rows, 1)
    peeled = peel(data, space, goal, progress, work)
    label = peeled.label[space.tuple_of_row].astype(np.int32)
    rows = np.flatnonzero(label < 0)
    missed = 0
    if rows.size >= 2 * least:
        missed = int(rows.size)
        if goal.rows_only:
            if 2 * missed > data.rows:
                return None, missed
            new = clustered(covers, rows, least, _FEW if data.rows <= _MANY else _SMALL_BLOCK, 1)
            label[rows] = peeled.groups + new
            return label, missed
        try:
            part = Mondrian().partition(data.subset(rows), goal, silent)
        except GuaranteeNotMet:
            missed = 0
        else:
            # All rows of a tuple go where its first row went, so that a group is a set of whole tuples.
            tuples, first = np.unique(space.tuple_of_row[rows], return_index=True)
            placed = part.labels[first]
            kept = placed >= 0
            peeled.label[tuples[kept]] = peeled.groups + placed[kept]
            peeled.groups += part.count
    if peeled.groups == 0:
        return np.zeros(data.rows, dtype=np.int32), missed
    most_each = float(covers.measure.most.sum())  # a dropped row loses everything
    join_leftovers(space.space, peeled.label, peeled.groups, goal.suppressible(data.rows), most_each)
    return np.asarray(peeled.label[space.tuple_of_row], dtype=np.int32), missed


_ALONE = 2_000
BOXES, AROUND_SEEDS, AT_MEDIANS, IN_ORDER = (
    say("boxes, cheapest first"),
    say("groups around seeds"),
    say("cuts at medians"),
    say("best cuts of the sorted rows"),
)


@dataclass(frozen=True, kw_only=True)
class StartLimits:
    """Tuples looked at for boxes, records in a block of k-member, and the kinds of start that are made, by name."""

    work: int
    few: int
    kinds: tuple[str, ...] = (BOXES, AROUND_SEEDS, AT_MEDIANS, IN_ORDER)


def starts_for(
    data: EncodedTable, covers: RowCovers, goal: Goal, limits: StartLimits, seed: int, progress: Progress
) -> list[Start]:
    """Up to four groupings, the boxes first; none where those asked for cannot be made.

    Where the goal counts more than rows, k-member, which cannot ask for it, is mended after; where it reads sensitive
    values, there are the boxes alone.
    """
    least = max(goal.least_rows, 1)
    found: list[Start] = []

    def offer(name: Sentence, labels: Int32Array) -> None:
        if goal.rows_only:
            labels = finer(covers, labels, least, seed)
        else:
            labels = repair(data, Partition.of(labels), goal, silent).labels
        labels = Partition.of(labels).labels
        found.append(Start(name, labels, grouping_cost(covers, labels)))

    # Where hardly two rows are alike and all columns are numbers, boxes never won and cost most of a start's time.
    alone = covers.columns == covers.measure.lines and covers.records > 0.9 * data.rows > _ALONE
    if (alone and goal.rows_only) or BOXES not in limits.kinds:
        peeled, missed = None, data.rows
    else:
        peeled, missed = peeled_start(data, covers, goal, limits.work, within(progress, 0.0, 0.6))
    if peeled is not None:
        offer(BOXES, peeled)
    if goal.reads_sensitive:  # to choose between groupings with the values in view would tell of them
        return found
    in_order = cut_in_order(covers, least) if IN_ORDER in limits.kinds else None
    if in_order is not None:
        offer(IN_ORDER, in_order)
    # On categories alone boxes win; k-member is then tried only where it costs next to nothing.
    cheap = covers.records**2 * covers.columns < 30_000_000 * min(least, 10)
    if AROUND_SEEDS in limits.kinds and (missed or covers.measure.lines or cheap):
        if found and goal.rows_only and not _seeds_may_win(covers, found[0], least, seed):
            return found
        block = min(limits.few, _FEW if covers.records <= _MANY else _SMALL_BLOCK)
        progress(0.6, "making groups around seeds")
        offer(
            AROUND_SEEDS,
            clustered(covers, np.arange(data.rows), least, block, seed).astype(np.int32),
        )
    if AT_MEDIANS in limits.kinds:
        progress(0.9, "cutting the table")
        offer(AT_MEDIANS, Mondrian(cut="relaxed").partition(data, goal, silent).labels)
    progress(1.0, "cutting the table")
    return found


_TRIED = 4_000
_HOPELESS = 1.2
"""Clusters of a few thousand records cost up to a sixth more than those of the whole table."""


def _seeds_may_win(covers: RowCovers, boxes: Start, k: int, seed: int) -> bool:
    """Whether k-member in two small parts of a large table comes near what boxes cost there.

    Where it does not, clusters of the whole table, which take most of a start's time, do not either, nor do cuts.
    """
    if covers.records <= 3 * _TRIED:
        return True
    ones, random = np.ones(covers.records, dtype=np.int64), np.array([2 * seed + 1], dtype=np.int64)
    order, begins = kd_blocks(scaled(covers), ones, _TRIED, random)
    tried = np.zeros(covers.records, dtype=np.bool_)
    for part in (0, (begins.size - 1) // 2):
        tried[order[begins[part] : begins[part + 1]]] = True
    rows = np.flatnonzero(tried[covers.record_of])
    if rows.size < k:
        return True
    label = clustered(covers, rows, k, _TRIED, seed).astype(np.int32)
    record_of, count = covers.record_of[rows], int(label.max()) + 1
    price, sizes = _grouping_cost(covers.measure, covers.points, record_of, label, count)
    whole = int(boxes.labels.max(initial=-1)) + 1
    of_box, _ = _grouping_cost(covers.measure, covers.points, covers.record_of, boxes.labels, whole)
    there = boxes.labels[rows]
    paid = float(of_box[there[there >= 0]].sum() + (there < 0).sum() * covers.measure.most.sum())
    return float((price * sizes).sum()) <= _HOPELESS * paid
