"""A table as the source's algorithms see it: one row of numbers in [0, 1] per record.

The source does not say how it turned categories into numbers. Here they are ordinal codes in the order of their names,
and every column is scaled to [0, 1] by its least and greatest value (a constant column becomes 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.data.numbers import parse_numbers
from velado.data.table import Table
from velado.errors import SchemaError, TableError
from velado.text import say, say_n

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Records:
    """*values* (rows x columns) scaled to [0, 1], the names of the columns, and the codes of a target for RFE.

    *features* are the positions of the columns RFE may choose from: all but the target.

    >>> Records(np.zeros((4, 2)), ("age", "pay"))
    Records(4 rows x 2 columns)
    """

    values: Floats
    columns: tuple[str, ...]
    target: Integers | None = None
    features: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"Records({self.rows} rows x {len(self.columns)} columns)"

    @property
    def rows(self) -> int:
        """How many records there are."""
        return int(self.values.shape[0])


def records_of(table: Table, columns: Sequence[str] | None = None, target: str | None = None) -> Records:
    """The table's *columns* (default: all but identifiers and the target) as scaled numbers. O(n d log n).

    >>> import polars as pl
    >>> from velado.data.schema import Column, Schema
    >>> schema = Schema({"age": Column("age", kind="numeric"), "sex": Column("sex")})
    >>> records_of(Table.of(pl.DataFrame({"age": ["20", "60"], "sex": ["M", "F"]}), schema, "t")).values
    array([[0., 1.],
           [1., 0.]])
    """
    if columns is None:
        columns = [
            name
            for name, column in table.schema.columns.items()
            if column.role != "identifier" and name != target
        ]
    if target is not None:
        _refuse_unknown(table, target)
    if len(columns) < 2:
        raise TableError(
            "Fewer than two columns are left to compare records by.",
            "Ranks within a record need at least two.",
            "Name more columns.",
        )
    values = np.empty((table.rows, len(columns)))
    for at, name in enumerate(columns):
        values[:, at] = scaled(column_numbers(table, name))
    codes = None if target is None else _codes(table, target)
    features = tuple(at for at, name in enumerate(columns) if name != target)
    return Records(values, tuple(columns), codes, features)


def column_numbers(table: Table, name: str) -> Floats:
    """A numeric column as it stands, any other as ordinal codes in the order of the names.

    >>> import polars as pl
    >>> from velado.data.schema import Column, Schema
    >>> column_numbers(Table.of(pl.DataFrame({"sex": ["M", "F"]}), Schema({"sex": Column("sex")}), "t"), "sex")
    array([1., 0.])
    """
    _refuse_unknown(table, name)
    blank = table.is_missing(name).to_numpy()
    if blank.any():
        raise TableError(
            say_n(
                "Column '{name}' has {n} missing cell.",
                "Column '{name}' has {n} missing cells.",
                int(blank.sum()),
                name=name,
            ),
            "The source removes records with missing cells before it compares them.",
            "Drop those rows first, or fill the blanks with --impute COLUMN.",
        )
    column = table.schema.columns[name]
    if column.kind == "numeric":
        return parse_numbers(table, column, blank)[0]
    return _codes(table, name).astype(np.float64)


def scaled(values: Floats) -> Floats:
    """Min-max scaling to [0, 1]; a constant column becomes 0.

    >>> scaled(np.array([10.0, 20.0, 30.0]))
    array([0. , 0.5, 1. ])
    """
    low, high = float(values.min()), float(values.max())
    if high == low:
        return np.zeros_like(values)
    return np.asarray((values - low) / (high - low))


def _codes(table: Table, name: str) -> Integers:
    codes = table.text(name).rank("dense").to_numpy()
    return np.asarray(codes, dtype=np.int64) - 1


def _refuse_unknown(table: Table, name: str) -> None:
    if name not in table.schema.columns:
        raise SchemaError(
            say("There is no column '{name}'.", name=name),
            "A record is compared by columns the schema names.",
            "Check the spelling.",
        )
