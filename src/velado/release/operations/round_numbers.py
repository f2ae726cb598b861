"""RoundNumbers: every number of a column replaced by the nearest multiple of a step."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, ClassVar

import numpy as np

from velado.data.table import Table
from velado.randomness import Draws
from velado.release.operations._numbers_of import MOST_DECIMALS, numbers_of, with_numbers
from velado.release.operations._operation import ColumnName
from velado.settings import Setting, settings
from velado.text import say


@settings
class RoundNumbers:
    """Each number is the nearest multiple of *to*; one halfway between two goes up.

    Everybody rounds a number that they know in the same way, so that the crowds of the rounded values are true
    crowds. Declared bounds are kept by moving values onto them; blanks stay blank; the column stays numeric and
    loses its taxonomy. O(n).

    >>> from velado.testing.examples import changed
    >>> changed(RoundNumbers("x", to=5), ["21", "22.5", "34"], "numeric")
    ['20', '25', '35']
    """

    name: ClassVar[str] = "round"
    title: ClassVar[str] = say("Round numbers to multiples of a step.")
    typed: ClassVar[str] = "COLUMN:STEP"
    falsifies: ClassVar[bool] = False
    main: ClassVar[tuple[str, str]] = ("to", "to")
    column: ColumnName
    to: Annotated[float, Setting("the step whose multiples are published", gt=0, example="to = 5")] = 10.0

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with rounded numbers in the column; *random* is not used."""
        found = numbers_of(table, self.name, self.column)
        exponent = Decimal(repr(self.to)).normalize().as_tuple().exponent
        assert isinstance(exponent, int)
        # 0.15 / 0.1 is a hair below 1.5 in double precision, and still halfway.
        rounded = np.floor(found.numbers / self.to + 0.5 + 1e-9) * self.to
        return with_numbers(table, found, rounded, min(max(-exponent, 0), MOST_DECIMALS))
