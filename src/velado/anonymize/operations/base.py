"""What a column operation is: one elementary technique on one column, before a method runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np

from velado.data.table import Table
from velado.errors import SchemaError
from velado.randomness import seeded


class Operation(Protocol):
    """A frozen dataclass with a `column` and one verb. A recipe lists it as ``[[operations]] name = ...``."""

    name: ClassVar[str]

    @property
    def column(self) -> str:
        """The column it works on."""
        ...

    def apply(self, table: Table, random: np.random.Generator) -> Table:
        """The table with the operation done on its column; other columns are untouched."""
        ...


def apply_operations(table: Table, operations: Sequence[Operation], seed: int) -> Table:
    """The table after all *operations*, in order. Each draws from its own stream of the seed."""
    for number, operation in enumerate(operations):
        if operation.column not in table.schema.columns:
            raise SchemaError(
                f"Operation {number + 1} ({operation.name}) names a column '{operation.column}' that the table does not have.",
                "It would do nothing.",
                "Correct the column name in the recipe.",
            )
        table = operation.apply(table, seeded(seed, "operation", str(number), operation.name))
    return table
