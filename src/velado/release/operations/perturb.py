"""Perturb: noise on every number of a column."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.numbers import parse_numbers
from velado.data.table import Table
from velado.errors import ParameterError
from velado.randomness import Draws
from velado.release.operations._operation import ColumnName, changeable, keep_missing, with_cells
from velado.settings import Setting, settings


@settings
class Perturb:
    """Each number is itself plus independent noise, rounded to the decimals its column had.

    Laplace noise has density exp(-|x|/scale) / (2 scale); uniform noise lies within +-scale. Declared bounds
    are kept by moving values onto them; blanks stay blank. This is **not differential privacy**: the same
    table and key repeat the noise, floating-point noise can be told apart, the scale is set by hand and each row is
    still there. It blurs values against exact matching, nothing more. The taxonomy of the column is dropped, since
    new numbers may have no place in it. O(n).
    """

    name: ClassVar[str] = "perturb"
    falsifies: ClassVar[bool] = True
    column: ColumnName
    scale: Annotated[float, Setting("size of the noise, in the column's unit", gt=0)] = 1.0
    noise: Annotated[Literal["laplace", "uniform"], Setting("shape of the noise")] = "laplace"

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with noisy numbers in the column."""
        column = changeable(table, self.name, self.column)
        if column.kind != "numeric":
            raise ParameterError(
                f"Column '{self.column}' is not numeric and cannot be perturbed.",
                "Noise can only be added to numbers.",
                'Set kind = "numeric" in the schema if it holds numbers, or use another operation.',
            )
        blank = table.is_missing(self.column).to_numpy()
        numbers, whole = parse_numbers(table, column, blank)
        if self.noise == "laplace":
            noisy = numbers + random.laplace(0.0, self.scale, numbers.size)
        else:
            noisy = numbers + random.uniform(-self.scale, self.scale, numbers.size)
        decimals = 0 if whole else _decimals(table.text(self.column), table.schema.decimal)
        noisy = np.round(noisy, decimals)
        if column.bounds is not None:
            noisy = np.clip(noisy, *column.bounds)
        cells = _texts(noisy, decimals, table.schema.decimal)
        return with_cells(table, replace(column, taxonomy=None), keep_missing(table, self.column, cells))


def _decimals(texts: pl.Series, decimal: str) -> int:
    mark = "," if decimal == "," else r"\."
    longest = texts.str.extract(mark + r"(\d+)\s*$", 1).str.len_chars().max()
    return min(int(str(longest)), 12) if longest is not None else 12


def _texts(numbers: npt.NDArray[np.float64], decimals: int, decimal: str) -> pl.Series:
    if decimals == 0 and bool(np.all(numbers == np.floor(numbers))):
        return pl.Series(numbers.astype(np.int64)).cast(pl.String)
    # Adding zero turns -0.0 into 0.0, which is how people write it.
    texts = pl.Series(numbers + 0.0).cast(pl.String)
    return texts.str.replace(".", decimal, literal=True) if decimal != "." else texts
