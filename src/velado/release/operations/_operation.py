"""Putting changed cells back into a table, with the meaning of their column kept true."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Protocol

import polars as pl

from velado.data.keys import Key, content_of
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError
from velado.randomness import Draws
from velado.settings import Setting, describe, nearest
from velado.text import say

# What a column operation is: one elementary technique on one column, before a method runs.


ColumnName = Annotated[str, Setting("the column it works on", items=1, example='"age"')]


class Operation(Protocol):
    """A settings class with a `column` and one verb. A recipe lists it as ``[[operations]] name = ...``.

    *falsifies* says whether chance makes the cells it leaves untrue of their people (noise, permutation), so that who
    knows the true value cannot tell the published one. *main* names the setting that a value alone stands for, of a
    numeric column and of any other: `--generalize age:10` is width = 10. *title* says what it does and *typed* what is
    written after its flag.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    typed: ClassVar[str]
    falsifies: ClassVar[bool]
    main: ClassVar[tuple[str, str]]

    @property
    def column(self) -> str | None:
        """The column it works on; None where it works on all quasi-identifiers together."""
        ...

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with the operation done on its column; other columns are untouched."""
        ...


def columns_of(operation: Operation, schema: Schema) -> tuple[str, ...]:
    """The columns that *operation* may change: its own, or every quasi-identifier."""
    if operation.column is not None:
        return (operation.column,)
    return tuple(column.name for column in schema.quasi)


def apply_operations(table: Table, operations: Sequence[Operation], key: Key) -> Table:
    """The table after all *operations*, in order, each with draws of its own under the owner's *key*.

    The table's content and every setting are part of what is drawn from: the same table gets the same noise
    whenever the same is done to it again, so that two releases of it do not average out; another table, another
    setting, or another operation on the column before gets another, so that no two releases share noise that their
    difference would cancel.
    """
    content = content_of(table.frame)
    for number, operation in enumerate(operations):
        refuse_unknown(table, operation, number + 1)
        table = operation.apply(table, key.draws(_use(operations[: number + 1], table.schema), content))
    return table


def _use(operations: Sequence[Operation], schema: Schema) -> str:
    """What the last of *operations* draws for: what was done to its columns so far and itself, with every setting."""
    own = {*columns_of(operations[-1], schema)}
    done = [describe(one) for one in operations if own & {*columns_of(one, schema)}]
    return "operation " + json.dumps(done, sort_keys=True)


def refuse_unknown(table: Table, operation: Operation, number: int = 1) -> None:
    """Nothing, if the table has the operation's column; it is the *number*-th of several."""
    if operation.column is not None and operation.column not in table.schema.columns:
        raise SchemaError(
            say(
                "Operation {number} ({operation}) names a column '{column}' that the table does not have.",
                number=number,
                operation=operation.name,
                column=operation.column,
            ),
            "It would do nothing.",
            nearest(operation.column, [*table.schema.columns]) or say("Correct the column's name."),
        )


def changeable(table: Table, operation: str, name: str) -> Column:
    """The column *name* of *table*, unless it says which rows are one person."""
    column = table.schema.columns[name]
    if column.person:
        raise ParameterError(
            say(
                "The operation '{operation}' would change the person column '{name}'.",
                operation=operation,
                name=name,
            ),
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
