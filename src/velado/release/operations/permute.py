"""Permute: the values of a column dealt out anew among the rows."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from velado.data.table import Table
from velado.randomness import Draws
from velado.release.operations._operation import ColumnName, changeable, with_cells
from velado.settings import settings
from velado.text import say


@settings
class Permute:
    """The column has the same values as often as before, each in a row drawn at random.

    What is true of the column alone stays true (mean, frequencies); what ties it to other columns is gone.
    Blanks are dealt out too. Cells keep their type, the column its meaning. Every order is equally likely. O(n).

    >>> from velado.testing.examples import changed
    >>> changed(Permute("x"), ["a", "b", "c"])
    ['b', 'a', 'c']
    """

    name: ClassVar[str] = "permute"
    title: ClassVar[str] = say("Deal the values out anew among the rows.")
    typed: ClassVar[str] = "COLUMN"
    falsifies: ClassVar[bool] = True
    main: ClassVar[tuple[str, str]] = ("", "")
    column: ColumnName

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with the column shuffled by *random*."""
        column = changeable(table, self.name, self.column)
        order = pl.Series(random.permutation(table.rows))
        return with_cells(table, column, table.frame.get_column(self.column).gather(order))
