"""Putting changed cells back into a table, with the meaning of their column kept true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Protocol

import polars as pl

from velado.data.keys import Key, content_of
from velado.data.schema import Column
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError
from velado.randomness import Draws
from velado.settings import Setting

# What a column operation is: one elementary technique on one column, before a method runs.


ColumnName = Annotated[str, Setting("the column it works on", items=1, example='"age"')]


class Operation(Protocol):
    """A settings class with a `column` and one verb. A recipe lists it as ``[[operations]] name = ...``.

    *falsifies* says whether the cells it leaves may be untrue of their people (noise, permutation).
    """

    name: ClassVar[str]
    falsifies: ClassVar[bool]

    @property
    def column(self) -> str:
        """The column it works on."""
        ...

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with the operation done on its column; other columns are untouched."""
        ...


def apply_operations(table: Table, operations: Sequence[Operation], key: Key) -> Table:
    """The table after all *operations*, in order, each with draws of its own under the owner's *key*.

    The table's content is part of what is drawn from: the same table gets the same noise whenever it is published
    again, so that two releases of it do not average out, and another table gets another.
    """
    content = content_of(table.frame)
    for number, operation in enumerate(operations):
        if operation.column not in table.schema.columns:
            raise SchemaError(
                f"Operation {number + 1} ({operation.name}) names a column '{operation.column}' that the table does not have.",
                "It would do nothing.",
                "Correct the column name in the recipe.",
            )
        table = operation.apply(table, key.draws(f"operation {number} {operation.name}", content))
    return table


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
