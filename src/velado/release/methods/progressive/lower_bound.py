"""How good any release can be at best: prices that no box can exceed.

Give every row a price p so that in no box do the k largest prices add up to more than k times the box's
cost. A group of s >= k rows published as a box of cost c pays s c, and its rows' prices add up to at most
s c: the k largest to k c or less, and then each of the others is at most c. So the sum of all prices is at
most what *any* k-anonymous grouping pays, and their mean, divided by the number of columns, bounds NCP.
The prices are found by raising all of them together (a dual ascent); when a box becomes full, those of its
rows that still rise stop.

On numbers boxes say little, and prices from pairs of rows take their place (`pair_prices`); of larger tables the rows that
lie most apart are given such prices. Where a table is small enough to search its groups of k rows, prices are guessed and
then proved (`checked_prices`). What each column must lose by itself (`columns_alone`) counts where groups are large or columns
few. The largest bound counts.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.release.methods.progressive._cover_lattice import CoverLattice, bound_lattice
from velado.release.methods.progressive._peel import BoxList
from velado.release.methods.progressive._progressive_kernel import Floats, Ints, Longs
from velado.release.methods.progressive.checked_prices import checked_prices
from velado.release.methods.progressive.columns_alone import columns_alone
from velado.release.methods.progressive.pair_prices import MOST_PAIRS, pair_prices

BoundEffort = Literal["brief", "fast", "tight"]

_STAGES = (1 / 12, 0.2, 1 / 4, 1 / 3, 0.45, 0.6, 0.8, 1.0)
"""How far prices rise in each stage, as shares of the cost of the box that covers everything."""
_MEMBERS = 1 << 25
_BOXES = 1 << 20
_PAIRED = {"brief": 2_000, "fast": 5_000, "tight": 50_000}
"""Distinct rows up to which all pairs are looked at; five times as many where all columns are numbers."""
_PART = {"brief": 500, "fast": 2_000, "tight": 20_000}
"""Distinct rows of a larger table that are given prices from pairs: those that lie most apart."""
_BOXED = 300_000
_WORTH = 0.25
_CHECKED_ROWS, _CHECKED_K, _CHECKED_STEPS = 30_000, 12, 120_000_000


@njit(cache=True)
def _fills_at(
    start: int, end: int, members: Ints, weight: Longs, price: Floats, cost: float, k: int, top: Floats
) -> float:
    """The common price of the rows still rising at which this box is full; infinity when none rises.

    With j < k rising rows and F the sum of the k - j largest fixed prices it is (k cost - F) / j.
    """
    rising = 0
    for i in range(start, end):
        if price[members[i]] < 0:
            rising += weight[members[i]]
    if rising == 0:
        return np.inf
    if rising >= k:
        return cost
    wanted = k - rising
    held = 0
    for i in range(start, end):  # the largest fixed prices, kept in falling order
        tuple_ = members[i]
        value = price[tuple_]
        if value < 0:
            continue
        for _ in range(min(weight[tuple_], wanted)):
            if held == wanted and top[held - 1] >= value:
                break
            j = held if held < wanted else held - 1
            while j > 0 and top[j - 1] < value:
                top[j] = top[j - 1]
                j -= 1
            top[j] = value
            if held < wanted:
                held += 1
    fixed = 0.0
    for j in range(held):
        fixed += top[j]
    return (k * cost - fixed) / rising


@njit(cache=True)
def _sift(heap: Longs, key: Floats, size: int) -> None:
    """The first entry moved down to where the heap is in order again."""
    box = heap[0]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and key[heap[below + 1]] < key[heap[below]]:
            below += 1
        if key[heap[below]] >= key[box]:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = box


@njit(cache=True)
def _raise_prices(
    members: Ints, box_start: Longs, box_cost: Floats, weight: Longs, k: int, cap: float, price: Floats
) -> None:
    """All negative (rising) prices rise together up to *cap* and stay where a box fills.

    The boxes are all that cost less than *cap* and hold a rising tuple; a dearer box cannot fill below it.
    A box fills later, never sooner, when another stops some of its rows, so a heap of the boxes by the price
    at which they fill needs to be looked at only from its top.
    """
    key = box_cost.copy()
    heap = np.argsort(key)  # a sorted list is a heap
    size = box_cost.size
    top = np.empty(k)
    while size > 0:
        box = heap[0]
        fills = _fills_at(
            start=box_start[box],
            end=box_start[box + 1],
            members=members,
            weight=weight,
            price=price,
            cost=box_cost[box],
            k=k,
            top=top,
        )
        if fills > key[box] + 1e-12 and fills < cap:
            key[box] = fills
        else:
            if fills < cap:
                for i in range(box_start[box], box_start[box + 1]):
                    if price[members[i]] < 0:
                        price[members[i]] = key[box]
            size -= 1
            heap[0] = heap[size]
        _sift(heap, key, size)


def lower_bound(
    data: EncodedTable, k: int, most_work: int = 100_000_000, effort: BoundEffort = "fast"
) -> float:
    """No release of *data* in groups of *k* rows or more has a smaller NCP than this; a dropped row counts 1.

    Columns count by their weights, as in the loss that is bounded.

    NCP here is that of covers: taxonomy nodes and intervals of values. The largest of the bounds by boxes, by pairs, by each
    column alone and, with effort "tight" on small tables, by checked prices: some ten seconds, for a bound that is often within a
    few percent of the best release; "brief" looks at fewer pairs. *most_work* bounds the tuples looked at in boxes; less makes the bound lower,
    never wrong.

    >>> from velado.testing.examples import encoded
    >>> lower_bound(encoded(age=[20, 20, 30, 40]), 2)
    0.25
    >>> ages = encoded(age=[20, 21, 22, 29, 30, 31])
    >>> round(lower_bound(ages, 3), 3), round(lower_bound(ages, 3, effort="tight"), 3)
    (0.182, 0.182)
    """
    if data.rows < k or not data.columns:
        return 0.0
    lattice = bound_lattice(data)
    numbers = all(column.is_numeric for column in data.columns)
    tuples, weights = lattice.tuples, sum(column.weight for column in data.columns)
    # Windows of numbers bound next to nothing once there are several columns of them, and in a table of very many tuples
    # the work is spent before a box is full.
    allowed = most_work // 10 if numbers else most_work
    best = np.zeros(data.rows)
    if tuples <= _BOXED:
        best = _box_prices(lattice, k, allowed)[lattice.tuple_of_row]
    del lattice  # of a large table it takes as much room as the pairs will
    whole = tuples <= _PAIRED[effort] * (5 if numbers else 1)
    # Pairs of a part of the table would have to price its rows at a good deal of all there is to lose.
    if whole or best.mean() < _WORTH * weights * _PART[effort] / tuples:
        best = max(
            best,
            pair_prices(
                data, k, None if whole else _PART[effort], MOST_PAIRS * (2 if effort == "tight" else 1)
            ),
            key=lambda price: float(price.sum()),
        )
    if effort == "tight" and tuples <= _CHECKED_ROWS and k <= _CHECKED_K:
        best = checked_prices(data, k, best, _CHECKED_STEPS)
    return max(columns_alone(data, k) / data.rows, float(best.mean())) / len(data.columns)


def _box_prices(lattice: CoverLattice, k: int, most_work: int) -> Floats:
    """The price of each tuple when all rise together until a box stops them.

    A numeric column is charged by the levels of `bound_lattice`, which no interval undercuts. The prices rise in
    stages; when a stage would look at more tuples than *most_work* allows (no stage looks at fewer than the one before
    did), or fill the room, those still rising stay where they are. O(boxes log boxes) in the boxes that hold k rows.
    """
    weight = lattice.space.weight
    price = np.full(lattice.tuples, -1.0)
    price[weight >= k] = 0.0
    room = BoxList.of(lattice, _MEMBERS, _BOXES)
    reached, last = 0.0, 0
    for share in _STAGES:
        rising = price < 0
        if not rising.any() or last > most_work - room.work:
            break
        cap = lattice.top_cost * share
        # Tuples that still rise come first, then the dearest: of the others a box needs its k largest prices.
        order = np.argsort(np.where(rising, -np.inf, -price), kind="stable").astype(np.int32)
        before = room.work
        if not room.list(lattice, order, k, 0.0, cap, most_work - before, rising):
            break
        last = room.work - before
        boxes = room.count
        _raise_prices(room.members, room.starts[: boxes + 1], room.costs[:boxes], weight, k, cap, price)
        reached = cap
    price[price < 0] = reached
    return price
