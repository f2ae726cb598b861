"""Year: each day of a column replaced by its year, the earliest years together."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import polars as pl

from velado.data.normal import distinct_texts
from velado.data.schema import TaxonomySpec
from velado.data.table import Table
from velado.data.taxonomy import parse_dates
from velado.errors import ParameterError
from velado.randomness import Draws
from velado.release.operations._operation import ColumnName, changeable, keep_missing, with_cells
from velado.settings import Setting, settings
from velado.text import say


@settings
class Year:
    """Each day is its year; with *oldest*, that year and all before it are published as `<=oldest`.

    For a birth date the earliest years tell who is very old. Blanks stay blank. Afterwards the column is categorical,
    and its taxonomy goes on with decades. O(n).

    >>> from velado.testing.examples import changed
    >>> changed(Year("x", oldest=1934), ["1920-05-01", "1934-12-31", "1971-03-07"], "date")
    ['<=1934', '<=1934', '1971']
    """

    name: ClassVar[str] = "year"
    title: ClassVar[str] = say("Publish the year alone of each day; the earliest years together.")
    typed: ClassVar[str] = "COLUMN[:OLDEST]"
    falsifies: ClassVar[bool] = False
    main: ClassVar[tuple[str, str]] = ("oldest", "oldest")
    column: ColumnName
    oldest: Annotated[int | None, Setting("this year and all before it are one", ge=1, le=9999)] = None

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with years in the column; *random* is not used."""
        column = changeable(table, self.name, self.column)
        dtype = table.frame.schema[self.column]
        if column.kind != "date" and not dtype.is_temporal():
            raise ParameterError(
                say("Column '{column}' is no column of dates.", column=self.column),
                "Only a day has a year.",
                'Set kind = "date" and its format in the schema, or leave the operation out.',
            )
        if isinstance(dtype, pl.Datetime) and column.kind != "date":
            table = table.with_schema(
                table.schema.with_columns(
                    replace(one, kind="date") if one.name == self.column else one
                    for one in table.schema.columns.values()
                )
            )
        texts = distinct_texts(table, self.column).get_column("text")
        form = "%Y-%m-%d" if dtype.is_temporal() else column.format
        years = [day.year for day in parse_dates(texts.str.strip_chars().to_list(), form, self.column)]
        shown = [self._shown(year) for year in years]
        paths = tuple(
            (label,) if label[0] == "<" else (label, f"{label[:3]}0s") for label in sorted(set(shown))
        )
        if not paths:
            return table
        cells = table.text(self.column).replace_strict(texts, shown, default=None, return_dtype=pl.String)
        made = replace(
            column,
            kind="categorical",
            bounds=None,
            clamp=False,
            values=None,
            taxonomy=TaxonomySpec("levels", paths=paths),
        )
        return with_cells(table, made, keep_missing(table, self.column, cells))

    def _shown(self, year: int) -> str:
        return f"<={self.oldest}" if self.oldest is not None and year <= self.oldest else f"{year:04d}"
