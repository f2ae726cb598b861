"""What an engine is asked to compute, and who it is asked through: whole numbers per key, never a row.

An engine receives frozen values alone. Each array it returns holds exact integers, one per cell of the keys (in the
order of `cells_of`), so that the noise, which is drawn elsewhere, is the only thing between it and an analyst.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from velado.query.grid import Grid
from velado.query.unit import Unit
from velado.query.values import Predicate

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Key:
    """A column to group by and its public domain; one more cell, the last, holds missing and undeclared values."""

    column: str
    domain: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """How many rows match; with *column*, how many of them have a value there (NaN counts as none)."""

    column: str | None = None


@dataclass(frozen=True)
class GridSum:
    """The sum of (index - offset) over matching rows that have a value; saturates at +-2^62."""

    grid: Grid
    offset: int = 0


@dataclass(frozen=True)
class GridCells:
    """Matching rows per bin of the grid: bin b holds the indices edges[b] <= index < edges[b+1]."""

    grid: Grid
    edges: tuple[int, ...]


Need = Rows | GridSum | GridCells


def cells_of(keys: tuple[Key, ...]) -> int:
    """How many cells the keys make together: the product of (domain + 1), row-major, the last key fastest."""
    return prod(len(key.domain) + 1 for key in keys)


class Engine(Protocol):
    """Where the rows are. Truncation to the unit's most rows happens inside, before anything else."""

    @property
    def version(self) -> str:
        """Tells one content of the table from another; equal text, equal content."""

    @property
    def unit(self) -> Unit:
        """Whose rows were cut to their most; a session about another unit refuses this engine."""

    def tally(
        self,
        where: Predicate | None,
        keys: tuple[Key, ...],
        needs: tuple[Need, ...],
        seconds: float | None = None,
    ) -> tuple[Counts, ...]:
        """One array per need: shape (cells,), or (cells, bins) for GridCells. EngineError after *seconds*."""

    def close(self) -> None:
        """Give back what the engine holds."""
