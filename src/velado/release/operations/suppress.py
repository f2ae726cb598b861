"""Suppress: a column blotted out, or only its rare values."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from velado.data.encode import text_codes
from velado.data.table import Table
from velado.data.taxonomy import ROOT_LABEL
from velado.errors import ParameterError
from velado.randomness import Draws
from velado.release.operations._operation import ColumnName, changeable, with_cells
from velado.settings import Setting, settings
from velado.text import say


@settings
class Suppress:
    """Every cell of the column is `*`; with *rare* above 0, only values that occur fewer times are blank.

    A wholly suppressed column tells nothing, so a quasi-identifier becomes role "other". Rare values are
    made blank, so the column keeps kind, role and taxonomy and the schema's rule for blanks holds for it,
    except that "refuse" becomes "value": these blanks are meant. O(n log n).

    >>> from velado.testing.examples import changed
    >>> changed(Suppress("x", rare=2), ["flu", "flu", "gout"])
    ['flu', 'flu', None]
    """

    name: ClassVar[str] = "suppress"
    title: ClassVar[str] = say("Blot the column out, or only values with fewer rows.")
    typed: ClassVar[str] = "COLUMN[:ROWS]"
    falsifies: ClassVar[bool] = False
    main: ClassVar[tuple[str, str]] = ("rare", "rare")
    column: ColumnName
    rare: Annotated[int, Setting("blank only values with fewer rows than this", ge=0)] = 0

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with the column blotted out; *random* is not used."""
        column = changeable(table, self.name, self.column)
        if self.rare:
            codes, size = text_codes(table.text(self.column))
            seldom = np.bincount(codes, minlength=size) < self.rare
            seldom[0] = False  # code 0 is "no value" and stays as it came
            cells = table.frame.get_column(self.column).cast(pl.String).set(pl.Series(seldom[codes]), None)
            if table.schema.missing_policy(column) == "refuse":
                column = replace(column, missing="value")
            return with_cells(table, column, cells)
        if [quasi.name for quasi in table.schema.quasi] == [self.column]:
            raise ParameterError(
                say("Suppressing '{column}' would leave no quasi-identifier.", column=self.column),
                "There would be nothing to make a promise about.",
                "Leave the operation out, or suppress only rare values with rare = 5.",
            )
        role = "other" if column.role == "quasi" else column.role
        blotted = replace(column, role=role, kind="categorical", bounds=None, clamp=False, taxonomy=None)
        cells = pl.select(pl.repeat(ROOT_LABEL, table.rows, dtype=pl.String)).to_series()
        return with_cells(table, blotted, cells)
