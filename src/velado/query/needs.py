"""What an engine is asked to compute, and on which grid: whole numbers per key, never a row.

An engine receives frozen values alone. Each array it returns holds exact integers, one per cell of the keys (in the
order of `cells_of`), so that the noise, which is drawn elsewhere, is the only thing between it and an analyst.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from velado.data.schema import Column
from velado.data.toml_keys import toml_key
from velado.errors import QueryRefused
from velado.query.identity import TableIdentity
from velado.query.unit import Unit
from velado.query.values import Predicate
from velado.text import say

# Where sums live: a declared number's cells, so that noise is drawn on whole numbers and no bit of a float leaks.
#
# A column with bounds [low, high] and step h has the indices ceil(low/h) .. floor(high/h). A cell of the table counts
# with the index nearest to its value (ties upward), clamped into that range. NaN is a missing cell; an infinity clamps to its bound.

# Without a declared step a number's range is cut into about this many cells: finer than any noise we add.
DEFAULT_CELLS = 1 << 20
# Sums of indices must fit a 64-bit integer with room for noise, whatever the table's size.
MOST_INDEX = 1 << 40
# Below this a step's own double is a coarse picture of it, and quotients of doubles are off by more than their last bit.
LEAST_STEP = Fraction(1, 10**290)
# Above this a noisy sum, which is below 2^64 steps, would not fit a double.
MOST_STEP = Fraction(10**288)


@dataclass(frozen=True)
class Grid:
    """The whole numbers a column counts with: value = index x step, low <= index <= high.

    >>> grid = Grid.of(Column("age", kind="numeric", bounds=(0, 120), step=0.5))
    >>> grid.low, grid.high, grid.value(3), grid.reach
    (0, 240, 1.5, 240)
    """

    column: str
    step: Fraction
    low: int
    high: int

    @property
    def centre(self) -> int:
        """The index in the middle of the range; averages are summed as distances from it."""
        return (self.low + self.high) // 2

    @property
    def reach(self) -> int:
        """How far one row can move a sum of indices: max |index|."""
        return max(abs(self.low), abs(self.high))

    @property
    def centred_reach(self) -> int:
        """How far one row can move a sum of (index - centre)."""
        return max(self.high - self.centre, self.centre - self.low)

    def value(self, index: int | Fraction) -> float:
        """The number an index stands for."""
        return float(self.step * index)

    @classmethod
    def of(cls, column: Column) -> Grid:
        """The grid the schema declares, or the reason why there is none. The rows are never asked."""
        if column.kind != "numeric":
            raise QueryRefused(
                say("Column '{column}' is not declared numeric.", column=column.name),
                "Sums, averages and quantiles are defined for numbers alone.",
                say(
                    'Ask COUNT, or declare kind = "numeric" in [columns.{column}].',
                    column=toml_key(column.name),
                ),
            )
        if column.bounds is None:
            raise QueryRefused(
                say("Column '{column}' has no declared bounds.", column=column.name),
                "Without public bounds one row could move the answer without limit, and bounds read off the rows would tell of them.",
                say(
                    "Declare bounds = [low, high] in [columns.{column}] from what is publicly known.",
                    column=toml_key(column.name),
                ),
            )
        return _declared(column.name, (column.bounds[0], column.bounds[1]), column.step)


@lru_cache(maxsize=1024)
def _declared(name: str, bounds: tuple[float, float], declared: float | None) -> Grid:
    """The grid of these bounds and this step. Kept, because every question asks for it several times."""
    low, high = (Fraction(str(bound)) for bound in bounds)
    if high - low > MOST_INDEX * MOST_STEP:
        raise _beyond(name)
    if declared is not None:
        step = Fraction(str(declared))
    else:
        # A power of two keeps index x step exact in floating point.
        step = Fraction(2) ** (math.frexp(float(high - low))[1] - DEFAULT_CELLS.bit_length() + 1)
    if not LEAST_STEP <= step <= MOST_STEP:
        raise _beyond(name)
    first, last = math.ceil(low / step), math.floor(high / step)
    if last < first or max(abs(first), abs(last)) > MOST_INDEX:
        raise QueryRefused(
            say("The step declared for column '{name}' does not fit its bounds.", name=name),
            "The bounds must hold at least one step and at most 2^40 of them.",
            say("Change step or bounds in [columns.{name}].", name=name),
        )
    return Grid(name, step, first, last)


def _beyond(name: str) -> QueryRefused:
    return QueryRefused(
        say("The bounds or the step of column '{name}' are too large or too small to be summed.", name=name),
        "Sums and their noise must fit a floating-point number, so a step lies between 1e-290 and 1e288.",
        say(
            "Declare the column in another unit of measurement, with bounds and step in [columns.{name}] to "
            "match.",
            name=name,
        ),
    )


Counts = NDArray[np.int64]


@dataclass(frozen=True)
class GroupKey:
    """A column to group by and its public domain; one more cell, the last, holds missing and undeclared values.

    >>> cells_of((GroupKey("sex", ("F", "M")),))
    3
    """

    column: str
    domain: tuple[str, ...]

    @property
    def size(self) -> int:
        """Cells, the last one among them."""
        return len(self.domain) + 1


@dataclass(frozen=True)
class ClassKey:
    """A column cut into classes of its values that nobody tells apart.

    Place i of *classes* is the class of values below cuts[i] and not below cuts[i-1] (numbers, days), or of texts[i]; the last but
    one is that of all further values, and the last that of missing ones. *size* is how many classes there are.

    >>> ClassKey("age", (60.0,), (), (0, 1, 1), 2).size
    2
    """

    column: str
    cuts: tuple[float | date, ...]
    texts: tuple[str, ...]
    classes: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Rows:
    """How many rows match; with *column*, how many of them have a value there (NaN counts as none).

    >>> Rows("age")
    Rows(column='age')
    """

    column: str | None = None


@dataclass(frozen=True)
class GridSum:
    """The sum of (index - offset) over matching rows that have a value; saturates at +-2^62.

    >>> GridSum(Grid("age", Fraction(1), 0, 120), offset=60).offset
    60
    """

    grid: Grid
    offset: int = 0


@dataclass(frozen=True)
class GridCells:
    """Matching rows per bin of the grid: bin b holds the indices edges[b] <= index < edges[b+1].

    >>> GridCells(Grid("age", Fraction(1), 0, 9), (0, 5, 10)).edges
    (0, 5, 10)
    """

    grid: Grid
    edges: tuple[int, ...]


Need = Rows | GridSum | GridCells


Keys = tuple[GroupKey, ...]
AnyKey = GroupKey | ClassKey
Needs = tuple[Need, ...]
Tallies = tuple[Counts, ...]
"""One array per need: shape (cells,), or (cells, bins) for GridCells."""


def cells_of(keys: Sequence[AnyKey]) -> int:
    """How many cells the keys make together: the product of their sizes, row-major, the last key fastest.

    >>> cells_of((GroupKey("sex", ("F", "M")), GroupKey("ward", ("a", "b", "c"))))
    12
    """
    return prod(key.size for key in keys)


class Engine(Protocol):
    """Where the rows are. Truncation to the unit's most rows happens inside, before anything else.

    >>> from velado.query.engines import engine_for_table
    >>> from velado.testing.examples import small_table
    >>> engine: Engine = engine_for_table(small_table(home=("other", "text", "a a b")), Unit("home", rows=1))
    >>> engine.tally(None, (), (Rows(),)), engine.close()
    ((array([2]),), None)
    """

    @property
    def version(self) -> str:
        """Tells one content of the table from another; equal text, equal content."""

    @property
    def unit(self) -> Unit:
        """Whose rows were cut to their most; a session about another unit refuses this engine."""

    @property
    def identity(self) -> TableIdentity:
        """By what the table is known, so that it has one budget through whatever door it is asked."""

    def tally(
        self, where: Predicate | None, keys: Sequence[AnyKey], needs: Needs, seconds: float | None = None
    ) -> Tallies:
        """One array per need; EngineError after *seconds*."""

    def close(self) -> None:
        """Give back what the engine holds."""
