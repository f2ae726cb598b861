"""What an objective may read of a record and of a group, so that the cost of a change is known in O(columns).

Of a record: its place in every column (`points`), its standardized numbers, its categories, and the cell of the one-way
tables it is counted in. Of a group: its size, the two lowest and highest places and codes of every column, sums of the
numbers, counts of categories and of cells. What the chosen objectives do not read has no columns, and costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from velado.compiled import njit
from velado.data.partition import FloatArray, Int32Array, Int64Array
from velado.release.methods._row_covers import CoverMeasure, cover_cost


class Margins(NamedTuple):
    """Columns as cross tables show them: the *codes* [record, column] of column c are cut into *cells[c]* runs of neighbouring codes.

    The cell of a code is ``cell_of[code_at[c] + code]``; ``begin[cell_at[c] + b]`` is its first code. The published cover of
    codes low..high of a category is the node whose *first*..*last* holds both: see `shown_range`.
    """

    codes: Int32Array
    weight: FloatArray
    size: Int64Array
    blank: Int64Array
    cells: Int64Array
    cell_at: Int64Array
    cell_of: Int32Array
    code_at: Int64Array
    begin: Int64Array
    node_at: Int64Array
    parent: Int32Array
    first: Int32Array
    last: Int32Array


class RecordMoments(NamedTuple):
    """*numbers* [record, dimension], standardized, and their squared *length*; *values* [record, category], counted from *begin* on, worth *weight*."""

    numbers: FloatArray
    length: FloatArray
    values: Int32Array
    begin: Int64Array
    weight: FloatArray


class Ingredients(NamedTuple):
    """All that does not change in a search: the records, their neighbours, which rows each has, and the mixture.

    The fields of a `World`, so that the same steps read them; then what each objective reads of a record; *mix*, what
    one unit of each objective weighs; *tie*, what a unit of rows x price weighs beside one squared row.
    """

    measure: CoverMeasure
    points: FloatArray
    moments: RecordMoments
    margins: Margins
    near: Int32Array
    route: Int32Array
    record: Int32Array
    row_at: Int64Array
    rows_of: Int32Array
    mix: FloatArray
    tie: float


class Ends(NamedTuple):
    """The lowest, second lowest, second highest and highest place [g, column]."""

    low: FloatArray
    low2: FloatArray
    high2: FloatArray
    high: FloatArray


class MomentSums(NamedTuple):
    """*sums* [g, dimension] and *squares[g]* of numbers; *counts* [g, value] and *alike* [g, category], squared counts."""

    sums: FloatArray
    squares: FloatArray
    counts: Int32Array
    alike: FloatArray


class MarginCounts(NamedTuple):
    """*histogram* [g, cell], and the two lowest and the two highest codes [g, column]."""

    histogram: Int32Array
    least: Int32Array
    least2: Int32Array
    most2: Int32Array
    most: Int32Array


class GroupTallies(NamedTuple):
    """Which row is in which group, as in a `State`, and what each objective reads of a group.

    *cost[g]* is what the mixture charges for the group.
    """

    head: Int32Array
    label: Int32Array
    before: Int32Array
    after: Int32Array
    block: Int32Array
    size: Int64Array
    price: FloatArray
    low: FloatArray
    high: FloatArray
    ends: Ends
    moments: MomentSums
    margins: MarginCounts
    cost: FloatArray


@njit(cache=True)
def empty_groups(world: Ingredients, rows: int, room: int) -> GroupTallies:
    """Room for so many groups over so many rows, nobody in any."""
    columns = world.points.shape[1]
    coded = world.margins.codes.shape[1]
    cells = 0
    for c in range(coded):
        cells += world.margins.cells[c]
    categories = world.moments.values.shape[1]
    low = np.zeros((room, columns))
    high = np.zeros((room, columns))
    return GroupTallies(
        label=np.full(rows, -1, dtype=np.int32),
        head=np.full(room, -1, dtype=np.int32),
        after=np.full(rows, -1, dtype=np.int32),
        before=np.full(rows, -1, dtype=np.int32),
        size=np.zeros(room, dtype=np.int64),
        low=low,
        high=high,
        price=np.zeros(room),
        block=np.full(room, -1, dtype=np.int32),
        ends=Ends(low, np.zeros((room, columns)), np.zeros((room, columns)), high),
        moments=MomentSums(
            np.zeros((room, world.moments.numbers.shape[1])),
            np.zeros(room),
            np.zeros((room, world.moments.begin[categories]), dtype=np.int32),
            np.zeros((room, categories)),
        ),
        margins=MarginCounts(
            np.zeros((room, cells), dtype=np.int32),
            np.zeros((room, coded), dtype=np.int32),
            np.zeros((room, coded), dtype=np.int32),
            np.zeros((room, coded), dtype=np.int32),
            np.zeros((room, coded), dtype=np.int32),
        ),
        cost=np.zeros(room),
    )


@njit(cache=True)
def clear_group(groups: GroupTallies, g: int) -> None:
    """Nothing is known of g any more."""
    groups.size[g] = 0
    groups.price[g] = 0.0
    groups.cost[g] = 0.0
    groups.ends.low[g, :] = np.inf
    groups.ends.low2[g, :] = np.inf
    groups.ends.high2[g, :] = -np.inf
    groups.ends.high[g, :] = -np.inf
    groups.moments.squares[g] = 0.0
    groups.moments.sums[g, :] = 0.0
    groups.moments.counts[g, :] = 0
    groups.moments.alike[g, :] = 0.0
    groups.margins.histogram[g, :] = 0
    groups.margins.least[g, :] = 2147483647
    groups.margins.least2[g, :] = 2147483647
    groups.margins.most2[g, :] = -1
    groups.margins.most[g, :] = -1


@njit(cache=True)
def take_in(world: Ingredients, groups: GroupTallies, g: int, record: int) -> None:
    """One more row of *record* in g: all but price and cost follow. O(columns)."""
    g, record = g + 0, record + 0  # 64 bits wide whatever they were, so that this is compiled once
    groups.size[g] += 1
    _widen(world.points, groups.ends, g, record)
    _add_moments(world.moments, groups.moments, g, record)
    _add_margins(world.margins, groups.margins, g, record)


@njit(cache=True)
def _widen(points: FloatArray, ends: Ends, g: int, record: int) -> None:
    low, low2, high2, high = ends.low, ends.low2, ends.high2, ends.high
    for c in range(points.shape[1]):
        x = points[record, c]
        low2[g, c] = min(max(x, low[g, c]), low2[g, c])
        low[g, c] = min(x, low[g, c])
        high2[g, c] = max(min(x, high[g, c]), high2[g, c])
        high[g, c] = max(x, high[g, c])


@njit(cache=True)
def _add_moments(moments: RecordMoments, kept: MomentSums, g: int, record: int) -> None:
    for j in range(moments.numbers.shape[1]):
        z = moments.numbers[record, j]
        kept.sums[g, j] += z
        kept.squares[g] += z * z
    for j in range(moments.values.shape[1]):
        at = moments.begin[j] + moments.values[record, j]
        kept.alike[g, j] += 2 * kept.counts[g, at] + 1
        kept.counts[g, at] += 1


@njit(cache=True)
def _add_margins(margins: Margins, kept: MarginCounts, g: int, record: int) -> None:
    for c in range(margins.codes.shape[1]):
        code = margins.codes[record, c]
        kept.histogram[g, margins.cell_at[c] + cell_of(margins, c, code)] += 1
        kept.least2[g, c] = min(max(code, kept.least[g, c]), kept.least2[g, c])
        kept.least[g, c] = min(code, kept.least[g, c])
        kept.most2[g, c] = max(min(code, kept.most[g, c]), kept.most2[g, c])
        kept.most[g, c] = max(code, kept.most[g, c])


@njit(cache=True)
def priced(world: Ingredients, groups: GroupTallies, g: int) -> float:
    """What the cover of g costs a row."""
    groups.price[g] = cover_cost(world.measure, groups.low, groups.high, g) if groups.size[g] else 0.0
    return groups.price[g]  # type: ignore[no-any-return]


@njit(cache=True)
def cell_of(margins: Margins, column: int, code: int) -> int:
    """The cell a code is counted in."""
    return margins.cell_of[margins.code_at[column] + code]  # type: ignore[no-any-return]


@njit(cache=True)
def shown_range(margins: Margins, column: int, low: int, high: int) -> tuple[int, int]:
    """The codes that the published cover of low..high is true of: a node's leaves, all codes where a blank is among others."""
    if low == high:
        return low, high
    at = margins.node_at[column]
    if at >= 0:
        node = low
        while margins.last[at + node] < high:
            node = margins.parent[at + node]
        return margins.first[at + node], margins.last[at + node]
    if high == margins.blank[column]:
        return 0, margins.size[column] - 1
    return low, high
