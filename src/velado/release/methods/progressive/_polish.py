"""What is had at another goal from what a search has found: rows leave its groups, or one start is made instead of three."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.release.goal import Goal, silent
from velado.release.methods.progressive._annealing import records_of
from velado.release.methods.progressive._starts import AROUND_SEEDS as AROUND_SEEDS
from velado.release.methods.progressive.progressive import Progressive


def without_dear_rows(data: EncodedTable, groups: Partition, least: int, droppable: int) -> Partition:
    """The same groups without the rows, *droppable* at most, that cost the others more than they are worth themselves.

    The loss, a row that is dropped counting as wholly lost, never rises, and every group keeps *least* rows. Of all rows
    the one that gains most goes first. Only groups that lose more than one row could are looked at.

    >>> from velado.testing.examples import encoded
    >>> data, whole = encoded(age=[20, 21, 22, 23, 90]), Partition.of(np.zeros(5, dtype=np.int32))
    >>> without_dear_rows(data, whole, 2, 1).labels.tolist()
    [0, 0, 0, 0, -1]
    """
    whole = float(sum(column.weight for column in data.columns))
    order, starts = groups.members()
    members = dict(enumerate(np.split(order, starts[1:])))
    heap: list[tuple[float, int, int]] = []

    def offer(group: int) -> None:
        rows = members[group]
        if rows.size <= max(least, 1):
            return
        together, without = _prices(data, rows)
        gain = rows.size * together - (rows.size - 1) * without - whole
        best = int(np.argmax(gain))
        if gain[best] > 1e-9:
            heapq.heappush(heap, (-float(gain[best]), int(rows[best]), group))

    price = np.zeros(groups.count)
    for column in data.columns:
        price += column.loss(*groups.least_and_greatest(column.codes))
    for group in np.flatnonzero(price * groups.sizes > whole).tolist():
        offer(group)
    labels = groups.labels.copy()
    left = droppable - int((labels < 0).sum())
    while heap and left > 0:
        _, row, group = heapq.heappop(heap)
        labels[row] = -1
        left -= 1
        members[group] = members[group][members[group] != row]
        offer(group)
    return Partition.of(labels)


def at_another_goal(data: EncodedTable, goal: Goal, begun: str, seed: int) -> Partition:
    """What the default's fast effort finds at another goal on a table whose best start is known by its name.

    Records, boxes and neighbours are those of the search before; other starts are made only where that one cannot be.

    >>> from velado.release.guarantees.k_anonymity import KAnonymity
    >>> from velado.testing.examples import encoded
    >>> at_another_goal(encoded(age=[20, 31, 21, 30]), Goal((KAnonymity(2),)), AROUND_SEEDS, 0).labels.tolist()
    [0, 1, 0, 1]
    """
    method, records = Progressive("fast"), records_of(data)
    start = method.start(data, records, goal, seed, silent, only=begun)
    return Partition.of(method.searched(data, records, goal, start, seed, silent))


def _prices(data: EncodedTable, rows: npt.NDArray[np.int64]) -> tuple[float, npt.NDArray[np.float64]]:
    """What the cover of *rows* costs, and what that of all others does, for each of them."""
    together, without = 0.0, np.zeros(rows.size)
    for column in data.columns:
        codes = column.codes[rows]
        ordered = np.sort(codes)
        low = np.where(codes == ordered[0], ordered[1], ordered[0])
        high = np.where(codes == ordered[-1], ordered[-2], ordered[-1])
        together += float(column.loss(ordered[:1], ordered[-1:])[0])
        without += column.loss(low.astype(np.int32), high.astype(np.int32))
    return together, without
