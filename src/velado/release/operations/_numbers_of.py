"""What operations on numbers share: the numbers of a column, and writing others in their place."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.numbers import parse_numbers
from velado.data.schema import Column
from velado.data.table import Table
from velado.errors import ParameterError
from velado.release.operations._operation import changeable, keep_missing, with_cells
from velado.text import say

FloatVector = npt.NDArray[np.float64]
MOST_DECIMALS = 12


@dataclass(frozen=True, repr=False)
class NumbersOf:
    """A numeric column, its numbers (0 where it is blank), which rows are blank, and its decimals."""

    column: Column
    numbers: FloatVector
    blank: npt.NDArray[np.bool_]
    decimals: int


def numbers_of(table: Table, operation: str, name: str) -> NumbersOf:
    """The numbers of the column *name*, unless it has none or says which rows are one person."""
    column = changeable(table, operation, name)
    if column.kind != "numeric":
        raise ParameterError(
            say(
                "Column '{column}' is not numeric, and the operation '{operation}' is for numbers.",
                column=name,
                operation=operation,
            ),
            "Its values cannot be added to, ordered as numbers or rounded.",
            'Set kind = "numeric" in the schema if it holds numbers; if an operation before made intervals of them, '
            "put this one first.",
        )
    blank = table.is_missing(name).to_numpy()
    numbers, whole = parse_numbers(table, column, blank)
    decimals = 0 if whole else _decimals(table.text(name), table.schema.decimal)
    return NumbersOf(column, numbers, blank, decimals)


def with_numbers(table: Table, found: NumbersOf, numbers: FloatVector, decimals: int) -> Table:
    """The table with *numbers* in the column, rounded to *decimals* and kept within its declared bounds.

    Blanks stay blank. The column's taxonomy is dropped: new numbers may have no place in it.
    """
    numbers = np.round(numbers, decimals)
    if found.column.bounds is not None:
        numbers = np.clip(numbers, *found.column.bounds)
    cells = number_cells(numbers, decimals, table.schema.decimal)
    cells = keep_missing(table, found.column.name, cells)
    return with_cells(table, replace(found.column, taxonomy=None), cells)


def _decimals(texts: pl.Series, decimal: str) -> int:
    mark = "," if decimal == "," else r"\."
    longest = texts.str.extract(mark + r"(\d+)\s*$", 1).str.len_chars().max()
    return min(int(str(longest)), MOST_DECIMALS) if longest is not None else MOST_DECIMALS


def number_cells(numbers: FloatVector, decimals: int, decimal: str) -> pl.Series:
    """Numbers of so many decimals as the texts of a column with that decimal mark."""
    if decimals == 0 and bool(np.all(numbers == np.floor(numbers))):
        return pl.Series(numbers.astype(np.int64)).cast(pl.String)
    # Adding zero turns -0.0 into 0.0, which is how people write it.
    texts = pl.Series(numbers + 0.0).cast(pl.String)
    return texts.str.replace(".", decimal, literal=True) if decimal != "." else texts
