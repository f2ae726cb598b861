"""How a sample was drawn: how many people each row stands for, and which rows are one household."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.data.normal import value_codes
from velado.data.numbers import parse_numbers
from velado.data.partition import FloatArray
from velado.data.table import Table
from velado.errors import TableError
from velado.text import say


@dataclass(frozen=True, repr=False)
class SampleDesign:
    """The sampling *weights* and the *households* (codes) of the rows of a table; None where the schema names none.

    >>> SampleDesign(np.array([2.0, 3.0]), None).households is None
    True
    """

    weights: FloatArray | None
    households: npt.NDArray[np.int64] | None

    def of_rows(self, rows: npt.NDArray[np.int64]) -> SampleDesign:
        """The same for some of the rows."""
        return SampleDesign(
            None if self.weights is None else self.weights[rows],
            None if self.households is None else self.households[rows],
        )


def sample_design(table: Table) -> SampleDesign | None:
    """What the schema says of how *table* was drawn; None where it says nothing.

    The weights are those of the column marked `sampling_weight`, households the values of the column marked `group`;
    a row without a household is one of its own.

    >>> import polars as pl
    >>> from velado.data.schema import Column, Schema
    >>> schema = Schema({"home": Column("home", group=True), "w": Column("w", kind="numeric", sampling_weight=True)})
    >>> found = sample_design(Table.of(pl.DataFrame({"home": ["a", "a", None], "w": ["10", "5", "2"]}), schema))
    >>> found.weights.tolist(), found.households.tolist()
    ([10.0, 5.0, 2.0], [1, 1, 2])
    """
    column, group = table.schema.sampling_weight, table.schema.group
    if column is None and group is None:
        return None
    weights, households = None, None
    if column is not None:
        blank = table.is_missing(column.name).to_numpy()
        weights, _ = parse_numbers(table, column, blank)
        bad = int((weights <= 0).sum())
        if bad:
            raise TableError(
                say("{bad} of {rows} sampling weights are blank or not above 0.", bad=bad, rows=table.rows),
                "A weight says how many people of the population a row stands for, itself at least.",
                say(
                    "Correct the column '{column}', or remove sampling_weight from it in the schema.",
                    column=column.name,
                ),
            )
    if group is not None:
        codes, size = value_codes(table, group)
        households = codes.astype(np.int64)
        alone = np.flatnonzero(households == 0)
        households[alone] = size + np.arange(alone.size)
    return SampleDesign(weights, households)
