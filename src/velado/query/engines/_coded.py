"""Every kept row as the cells it stands in: one array for each column, rows in one order, for counts of many columns together.

What a synthetic table needs of the rows: all its pairs are counted from these arrays, which stay in the room that adds the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from velado.query.engines._compile import DUCKDB, Layout, Statement
from velado.query.needs import GroupKey

if TYPE_CHECKING:
    from velado.query.synthetic.axes import Axis

Fetch = Callable[[Statement, str], tuple[NDArray[np.int64], NDArray[np.int64]]]


def coded(layout: Layout, axes: Sequence[Axis], rows: int, fetch: Fetch) -> list[NDArray[np.int32]]:
    """One array of cells for each axis. A row that an axis without blanks has no cell for is left out of all."""
    out = []
    for axis in axes:
        statement = Statement(layout, DUCKDB)
        if axis.grid is not None:
            index = statement.index(layout.on_grid(axis.grid))
            sql = f"SELECT rowid AS r, coalesce({index}, {axis.edges[-1]}) AS k FROM kept"
            numbers, found = fetch(statement, sql)
            cells = np.searchsorted(np.array(axis.edges), found, side="right") - 1
        else:
            code, joins = statement.cell((GroupKey(axis.column, axis.texts),))
            numbers, cells = fetch(statement, f"SELECT kept.rowid AS r, {code} AS k FROM kept{joins}")
        placed = np.empty(rows, dtype=np.int32)
        placed[numbers] = cells
        out.append(placed)
    kept = np.ones(rows, dtype=np.bool_)
    for axis, cells in zip(axes, out, strict=True):
        if not axis.blanks:
            kept &= cells < axis.declared
    return out if kept.all() else [cells[kept] for cells in out]
