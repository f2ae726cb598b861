"""Perturb: noise on every number of a column."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from velado.data.table import Table
from velado.randomness import Draws
from velado.release.operations._numbers_of import numbers_of, with_numbers
from velado.release.operations._operation import ColumnName
from velado.settings import Setting, settings
from velado.text import say


@settings
class Perturb:
    """Each number is itself plus independent noise, rounded to the decimals its column had.

    Laplace noise has density exp(-|x|/scale) / (2 scale); uniform noise lies within +-scale. Declared bounds
    are kept by moving values onto them; blanks stay blank. This is **not differential privacy**: the same
    table and key repeat the noise, floating-point noise can be told apart, the scale is set by hand and each row is
    still there. It blurs values against exact matching, nothing more. The taxonomy of the column is dropped, since
    new numbers may have no place in it. O(n).

    >>> from velado.testing.examples import changed
    >>> changed(Perturb("x", scale=2), ["50", "60"], "numeric")
    ['45', '61']
    """

    name: ClassVar[str] = "perturb"
    title: ClassVar[str] = say("Add noise of that size to numbers.")
    typed: ClassVar[str] = "COLUMN:SCALE"
    falsifies: ClassVar[bool] = True
    main: ClassVar[tuple[str, str]] = ("scale", "scale")
    column: ColumnName
    scale: Annotated[float, Setting("size of the noise, in the column's unit", gt=0)] = 1.0
    noise: Annotated[Literal["laplace", "uniform"], Setting("shape of the noise")] = "laplace"

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with noisy numbers in the column."""
        found = numbers_of(table, self.name, self.column)
        numbers = found.numbers
        if self.noise == "laplace":
            noisy = numbers + random.laplace(0.0, self.scale, numbers.size)
        else:
            noisy = numbers + random.uniform(-self.scale, self.scale, numbers.size)
        return with_numbers(table, found, noisy, found.decimals)
