"""Putting changed cells back into a table, with the meaning of their column kept true."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from velado.data.schema import Column
from velado.data.table import Table
from velado.errors import ParameterError


def changeable(table: Table, operation: str, name: str) -> Column:
    """The column *name* of *table*, unless it says which rows are one person."""
    column = table.schema.columns[name]
    if column.person:
        raise ParameterError(
            f"The operation '{operation}' would change the person column '{name}'.",
            "Rows of one person could no longer be told to be one, and a promise per person would be wrong.",
            "Leave it out of the operations; as an identifier it is not published anyway.",
        )
    return column


def with_cells(table: Table, column: Column, cells: pl.Series) -> Table:
    """The table with other *cells* in one column, and with that column meaning *column*."""
    schema = table.schema
    columns = [column if old.name == column.name else old for old in schema.columns.values()]
    frame = table.frame.with_columns(cells.alias(column.name))
    return replace(table, frame=frame, schema=schema.with_columns(columns))


def keep_missing(table: Table, name: str, cells: pl.Series) -> pl.Series:
    """*cells*, but a cell that had no value stays exactly as it came."""
    original = table.frame.get_column(name).cast(pl.String)
    return cells.zip_with(~table.is_missing(name), original)
