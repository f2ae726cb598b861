"""What a column operation is: one elementary technique on one column, before a method runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from velado.data.keys import Key, content_of
from velado.data.table import Table
from velado.errors import SchemaError
from velado.randomness import Draws


class Operation(Protocol):
    """A frozen dataclass with a `column` and one verb. A recipe lists it as ``[[operations]] name = ...``.

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
