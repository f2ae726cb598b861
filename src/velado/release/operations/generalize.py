"""Generalize: every value of a column replaced by a broader one of fixed breadth."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from velado.data.encode import EncodedColumn, encode_column
from velado.data.schema import Column, TaxonomySpec
from velado.data.table import Table
from velado.data.taxonomy import interval_paths
from velado.errors import ParameterError
from velado.randomness import Draws
from velado.release.operations._operation import ColumnName, changeable, keep_missing, with_cells
from velado.settings import Setting, settings
from velado.text import say, say_n


@settings
class Generalize:
    """Each value is its ancestor *level* steps up the taxonomy, or the interval of *width* it lies in.

    A column with a taxonomy (or a date: month, year, decade) takes `level`, a numeric one takes `width`;
    intervals start at multiples of the width. Blanks stay blank. Afterwards the column is categorical and its
    taxonomy begins at the new values: the levels above, or intervals of twice, four times, ... the width.
    Full-domain recoding of a single column (Samarati 2001). O(n).

    >>> from velado.testing.examples import changed
    >>> changed(Generalize("x", width=10), ["21", "25", "34"], "numeric")
    ['[20..29]', '[20..29]', '[30..39]']
    """

    name: ClassVar[str] = "generalize"
    title: ClassVar[str] = say("Broader values: intervals of a width, or levels of a taxonomy up.")
    typed: ClassVar[str] = "COLUMN:WIDTH"
    falsifies: ClassVar[bool] = False
    main: ClassVar[tuple[str, str]] = ("width", "level")
    column: ColumnName
    level: Annotated[int | None, Setting("steps up the taxonomy", ge=1)] = None
    width: Annotated[float | None, Setting("width of the intervals", gt=0)] = None

    def __post_init__(self) -> None:
        if (self.level is None) == (self.width is None):
            raise ParameterError(
                say("Generalizing '{column}' needs either a level or a width.", column=self.column),
                "The one is for taxonomies, the other for numbers.",
                "Give level = 1 for a column with a taxonomy, or width = 10 for a numeric one.",
            )

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with broader values in the column; *random* is not used."""
        column = changeable(table, self.name, self.column)
        numeric = column.kind == "numeric" and column.taxonomy is None
        if numeric == (self.width is None):
            raise ParameterError(
                say("Column '{column}' is numeric and cannot be generalized by level.", column=self.column)
                if numeric
                else say(
                    "Column '{column}' is not numeric and cannot be generalized by width.", column=self.column
                ),
                "Intervals of a width are for numbers, levels for taxonomies and dates.",
                "Give width instead of level."
                if numeric
                else "Give level instead of width, also where an operation before made intervals of the numbers.",
            )
        if bool(table.is_missing(self.column).all()):
            return table
        encoded = encode_column(table, replace(column, missing="value"))
        paths = self._intervals(encoded) if numeric else self._ancestors(encoded)
        present = [path for path in paths if path]
        labels = pl.Series([path[0] if path else None for path in paths], dtype=pl.String)
        cells = keep_missing(table, self.column, labels.gather(pl.Series(encoded.codes)))
        return with_cells(table, _recoded(column, present), cells)

    def _ancestors(self, encoded: EncodedColumn) -> list[tuple[str, ...]]:
        tree, level = encoded.tree, self.level
        assert tree is not None and level is not None
        if level >= tree.height:
            raise ParameterError(
                say_n(
                    "The taxonomy of '{column}' has {n} level between its values and its root.",
                    "The taxonomy of '{column}' has {n} levels between its values and its root.",
                    tree.height - 1,
                    column=self.column,
                ),
                say("Level {level} would leave nothing of the column.", level=level),
                "Use a lower level, or the operation suppress.",
            )
        paths = [tuple(tree.labels[node] for node in nodes) for nodes in tree.levels[:, level:-1].tolist()]
        return [() if code == encoded.missing else path for code, path in enumerate(paths)]

    def _intervals(self, encoded: EncodedColumn) -> list[tuple[str, ...]]:
        width, points = self.width, encoded.points
        assert width is not None and points is not None
        known = np.delete(points, encoded.missing) if encoded.missing >= 0 else points
        whole = encoded.whole and float(width).is_integer()
        # Doubling ends when one interval holds all values, or all on either side of zero.
        factors = [1]
        while len(factors) < 64 and np.unique(np.floor(known / (width * factors[-1]))).size > 2:
            factors.append(2 * factors[-1])
        paths = interval_paths(points.tolist(), width, factors, whole=whole, decimal=encoded.decimal)
        return [() if code == encoded.missing else path for code, path in enumerate(paths)]


def _recoded(column: Column, paths: list[tuple[str, ...]]) -> Column:
    spec = TaxonomySpec("levels", paths=tuple(dict.fromkeys(paths)))
    return replace(column, kind="categorical", bounds=None, clamp=False, taxonomy=spec)
