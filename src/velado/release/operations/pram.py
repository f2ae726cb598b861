"""PRAM, the post-randomization method: each category kept or drawn anew with stated chances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.table import Table
from velado.randomness import Draws
from velado.release.operations._operation import ColumnName, changeable, with_cells
from velado.settings import Setting, settings
from velado.text import say


@settings
class PRAM:
    """Each value stays with chance *stay*; else it is drawn from the column's own values, by their shares.

    Gouweleeuw, Kooiman, Willenborg and de Wolf (1998). The chance that i is published as j is
    R_ij = stay [i = j] + (1 - stay) p_j, where p_j is the share of j among the values that are there: a value may be
    drawn again and stay all the same. R is *invariant*, p R = p, so that the expected frequencies are those
    of the column and no analyst has to correct them; what ties the column to others is weakened by the factor *stay*.
    `transitions` gives R. Blanks stay blank, cells keep their type, the column its meaning. O(n).

    >>> from velado.testing.examples import changed
    >>> changed(PRAM("x", stay=0.5), ["cold", "flu", "gout", "flu", "flu"])
    ['cold', 'flu', 'flu', 'flu', 'gout']
    """

    name: ClassVar[str] = "pram"
    title: ClassVar[str] = say(
        "Keep each value with that chance, else draw one by its share (invariant PRAM)."
    )
    typed: ClassVar[str] = "COLUMN:CHANCE"
    falsifies: ClassVar[bool] = True
    main: ClassVar[tuple[str, str]] = ("stay", "stay")
    column: ColumnName
    stay: Annotated[float, Setting("the chance that a value is left alone", ge=0, lt=1)] = 0.8

    def transitions(self, counts: Sequence[int]) -> npt.NDArray[np.float64]:
        """The matrix R of chances, for a column whose values occur *counts* times; a row for each true value.

        >>> PRAM("x", stay=0.8).transitions([30, 10]).round(2).tolist()
        [[0.95, 0.05], [0.15, 0.85]]
        """
        shares = np.asarray(counts, dtype=np.float64) / float(np.sum(counts))
        drawn = (1.0 - self.stay) * np.tile(shares, (shares.size, 1))
        return np.asarray(self.stay * np.eye(shares.size) + drawn, dtype=np.float64)

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with the column's values kept or drawn by *random*."""
        column = changeable(table, self.name, self.column)
        known = np.flatnonzero(~table.is_missing(self.column).to_numpy())
        source = np.arange(table.rows)
        if known.size:
            # The cell of a row drawn evenly is a value drawn by its share.
            drawn = known[random.uniform(0.0, float(known.size), known.size).astype(np.int64)]
            stays = random.uniform(0.0, 1.0, known.size) < self.stay
            source[known] = np.where(stays, known, drawn)
        return with_cells(table, column, table.frame.get_column(self.column).gather(pl.Series(source)))
