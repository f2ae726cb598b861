"""Averages of groups formed in a fixed order that one record cannot rearrange (Soria-Comas et al. 2014, section 4).

Rows are put in a total order of the declared domain (a Z-order curve through the cells; equal rows are interchangeable), and every
k that follow one another are a group. A unit of g rows that comes or goes moves every later row by g places: at most g rows leave
each group and g enter it, whoever they are. So the sums of a column with bounds [low, high] move in each of G groups by at most
g (high - low), in L1 by G g (high - low) and in L2 by sqrt(G) g (high - low); an average's noise is that divided by k. The number of
rows is told with noise first; beyond it rows are not read, and what is short of it is filled with the last cell of the domain, so that G is
fixed by what was told.

Departures from the paper: sums have the discrete noise of this room, with zCDP the L2 bound; a category is not the noisy mode of
its group but dealt out by the group's noisy counts, which move by g in two cells (sqrt(2 G) g in L2), so that rare values stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from velado.errors import QueryRefused
from velado.query import noise
from velado.query.needs import Counts
from velado.query.synthetic.axes import Axis
from velado.query.synthetic.measuring import Step, Till

Codes = NDArray[np.int32]
COUNTING = Fraction(1, 20)
"""The share of the spend for the number of rows."""
BITS = 3
"""So many first bits of each column's place decide the order; then its cells themselves."""


@dataclass(frozen=True, repr=False)
class Averages:
    """Noisy sums (of numbers, in steps above the lower bound) and noisy counts (of categories) of every group.

    >>> Averages(rows=10, size=5, parts=(np.array([7, 9]),)).groups
    2
    """

    rows: int
    size: int
    parts: tuple[Counts, ...]

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return max(1, self.rows // self.size)

    def __repr__(self) -> str:
        return f"Averages({self.groups} groups of {self.size})"


def group_size(rows: int) -> int:
    """The size of groups where nobody says: rows^(2/3), between what groups blur and what noise adds.

    >>> group_size(27_000), group_size(1)
    (900, 1)
    """
    return max(1, round(math.pow(rows, 2 / 3)))


def microaggregate(
    axes: Sequence[Axis], codes: Sequence[Codes], till: Till, size: int | None = None
) -> Averages:
    """The rows' groups were averaged within the till's total; *size* rows make a group.

    The columns' shares are alike. O(n log n) for the order.
    """
    if till.unit.dependence is not None:
        raise QueryRefused(
            "Groups of rows are not averaged for a unit with a dependence bound.",
            "A related row that changes may change its place in the order.",
            "Leave the dependence out, or use another method.",
        )
    held = till.counts((), np.array([codes[0].size], dtype=np.int64), till.total * COUNTING)
    rows = max(1, int(held.counts[0]))
    made = Averages(rows, min(rows, size or group_size(rows)), ())
    share = (till.total - till.total * COUNTING) / len(axes)
    parts = [
        _told(part, at, till, share)
        for at, part in enumerate(group_sums(axes, codes, made.groups, made.size, till.unit.rows))
    ]
    return Averages(rows, made.size, tuple(parts))


@dataclass(frozen=True, repr=False)
class GroupSums:
    """The exact sums or counts of every group of one column, and the most one unit moves them, in L1 and in L2.

    >>> GroupSums(np.array([3, 4]), 2, 2)
    GroupSums(2 groups, moved by 2 and 2)
    """

    exact: Counts
    l1: int
    l2: int

    def __repr__(self) -> str:
        return f"GroupSums({self.exact.shape[0]} groups, moved by {self.l1} and {self.l2})"


def group_sums(
    axes: Sequence[Axis], codes: Sequence[Codes], groups: int, size: int, unit_rows: int
) -> list[GroupSums]:
    """Every column's sums (numbers) or counts (categories) in *groups* groups of *size* rows that follow one another in the fixed order.

    The bounds are those of the module's text; L2 is rounded up to a whole number.
    """
    order, taken = _order(axes, codes), groups * size
    out = []
    for axis, column in zip(axes, codes, strict=True):
        cells = _filled(column[order[:taken]], taken, axis).reshape(groups, size)
        exact, reach, spread = _exact(axis, cells)
        moved = unit_rows * reach
        l2 = moved * (math.isqrt(spread * groups - 1) + 1)
        out.append(GroupSums(exact, moved * spread * groups, l2))
    return out


def _order(axes: Sequence[Axis], codes: Sequence[Codes]) -> NDArray[np.int64]:
    """The rows along a Z-order curve of the declared cells; a row's place follows from its own cells alone."""
    bits = min(BITS, 62 // len(axes)) if len(axes) <= 62 else 0
    curve = np.zeros(codes[0].size, dtype=np.int64)
    for bit in range(bits):
        for axis, cells in zip(axes, codes, strict=True):
            place = cells.astype(np.int64) * (1 << bits) // axis.size
            curve = curve * 2 + (place >> (bits - 1 - bit) & 1)
    order: NDArray[np.int64] = np.lexsort(np.stack([*codes[::-1], curve]))
    return order


def _filled(cells: Codes, taken: int, axis: Axis) -> Codes:
    """As many cells as there are places; where rows are short, the last cell of the domain stands."""
    short = taken - cells.size
    return np.concatenate([cells, np.full(short, axis.size - 1, dtype=np.int32)]) if short > 0 else cells


def _exact(axis: Axis, groups: Codes) -> tuple[Counts, int, int]:
    """Sums or counts of every group, how far one row reaches in a cell of them, and how many cells it touches in a group."""
    count = groups.shape[0]
    if axis.grid is None:
        flat = np.repeat(np.arange(count), groups.shape[1]) * axis.size + groups.ravel()
        counts = np.bincount(flat, minlength=count * axis.size).astype(np.int64)
        return counts.reshape(count, axis.size), 1, 2
    # A blank counts as the middle of the domain: it has no number, and must not move a sum further than one has.
    middles = np.array([*_middles(axis), _middle(axis)], dtype=np.int64)
    return middles[groups].sum(axis=1).astype(np.int64), max(1, int(middles.max())), 1


def _told(sums: GroupSums, at: int, till: Till, share: Fraction) -> Counts:
    """The sums with noise, for at most *share*."""
    moved = sums.l1 if till.measure == "epsilon" else sums.l2
    if moved > noise.MOST_SENSITIVITY:
        raise QueryRefused(
            "One unit could move the groups' sums by more than noise can hide.",
            "There are too many groups, or a column's bounds are too wide.",
            "Use larger groups, or narrower bounds.",
        )
    scale, charge = noise.calibrate(till.mechanism, till.measure, moved, share)
    till.enter(Step("averages", (at,), till.mechanism, moved, scale, charge))
    return noise.add(till.mechanism, till.measure, scale, sums.exact)


def _middles(axis: Axis) -> list[int]:
    """The index in the middle of each bin, from the lower bound of the grid."""
    assert axis.grid is not None
    return [
        (low + high - 1) // 2 - axis.grid.low for low, high in zip(axis.edges, axis.edges[1:], strict=False)
    ]


def _middle(axis: Axis) -> int:
    assert axis.grid is not None
    return (axis.grid.high - axis.grid.low) // 2


def shown(axes: Sequence[Axis], made: Averages, random: np.random.Generator) -> list[NDArray[np.int64]]:
    """For every row and column a grid index (of a number) or a cell (of a category), group after group; free post-processing.

    Averages are held to the bounds. Categories are dealt out by the noisy counts, negative ones being none. There are *rows* rows:
    what does not fill a group belongs to the last one.
    """
    sizes = np.full(made.groups, made.size, dtype=np.int64)
    sizes[-1] += made.rows - made.groups * made.size
    groups = np.repeat(np.arange(made.groups), sizes)
    out = []
    for axis, part in zip(axes, made.parts, strict=True):
        if axis.grid is not None:
            average = np.floor(part / made.size + 0.5).astype(np.int64)
            out.append(np.clip(average, 0, axis.grid.high - axis.grid.low)[groups] + axis.grid.low)
            continue
        shares = np.maximum(part, 0).astype(np.float64)
        shares = np.where(shares.sum(axis=1, keepdims=True) > 0, shares, 1.0)
        cumulative = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
        cumulative[:, -1] = 1.0
        ladder = (cumulative + np.arange(made.groups)[:, None]).ravel()
        rank = np.arange(made.rows) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        within = (rank + 0.5) / sizes[groups]
        place = np.searchsorted(ladder, groups + within, side="right") - groups * axis.size
        dealt = np.minimum(place, axis.size - 1)
        # The same order in every column would tie their shares together.
        shuffled = random.permutation(made.rows)
        back = shuffled[np.argsort(groups[shuffled], kind="stable")]
        mixed = np.empty_like(dealt)
        mixed[back] = dealt
        out.append(mixed)
    return out
