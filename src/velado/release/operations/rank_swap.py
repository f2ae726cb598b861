"""RankSwap: the numbers of a column exchanged between rows of near rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.compiled import njit
from velado.data.encode import encode_column
from velado.data.table import Table
from velado.errors import ParameterError
from velado.randomness import Draws
from velado.release.operations._operation import ColumnName, changeable, with_cells
from velado.settings import Setting, settings
from velado.text import say


@settings
class RankSwap:
    """Each number changes places with one whose rank is at most *percent* of the rows away.

    Moore (1996). Rows are ranked, ties in an order drawn at random; from the lowest rank up, each row that has
    no partner yet gets one drawn among the next *percent* of the ranks (from the drawn rank the next that is
    free), and the two swap cells. The column keeps every value as often as before; a row's value moves by few
    ranks, so that what ties it to other columns is blurred. A row left without a free neighbour keeps its
    own. Numbers and days only; blanks stay blank; the column keeps its meaning. sdcMicro also averages the extreme
    5 % first: use `top-code` for that. O(n log n).

    >>> from velado.testing.examples import changed
    >>> changed(RankSwap("x", percent=50), ["10", "20", "30", "40"], "numeric")
    ['30', '40', '10', '20']
    """

    name: ClassVar[str] = "rank-swap"
    title: ClassVar[str] = say("Swap numbers between rows whose ranks are that near.")
    typed: ClassVar[str] = "COLUMN:PERCENT"
    falsifies: ClassVar[bool] = True
    main: ClassVar[tuple[str, str]] = ("percent", "percent")
    column: ColumnName
    percent: Annotated[
        float, Setting("how far ranks may lie apart, in percent of the rows", gt=0, le=100)
    ] = 5.0

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with the column's numbers swapped by *random*."""
        column = changeable(table, self.name, self.column)
        if column.kind not in ("numeric", "date"):
            raise ParameterError(
                say("Column '{column}' has no order, so its values have no ranks.", column=self.column),
                "Only numbers and days can be swapped by rank.",
                "Use the operation pram for categories, or set kind in the schema.",
            )
        known = np.flatnonzero(~table.is_missing(self.column).to_numpy())
        reach = int(known.size * self.percent / 100)
        if reach < 1:
            raise ParameterError(
                say(
                    "{percent:g} % of the values of '{column}' are not even one rank.",
                    percent=self.percent,
                    column=self.column,
                ),
                "No value would be swapped.",
                "Allow a larger percent.",
            )
        codes = encode_column(table, replace(column, missing="value")).codes[known]
        ranked = known[np.lexsort((random.permutation(known.size), codes))]
        partner = _partners(random.uniform(0.0, 1.0, known.size), reach)
        source = np.arange(table.rows)
        source[ranked] = ranked[partner]
        return with_cells(table, column, table.frame.get_column(self.column).gather(pl.Series(source)))


@njit(cache=True)
def _partners(shares: npt.NDArray[np.float64], reach: int) -> npt.NDArray[np.int64]:
    """For each rank, the rank it swaps with: itself where no free one lies within *reach* above it."""
    n = shares.size
    partner = np.arange(n)
    # following[i] leads to the first free rank at or above i; found ways are shortened as they are walked.
    following = np.arange(n + 1)
    for at in range(n):
        if following[at] != at:
            continue
        following[at] = at + 1
        last = min(at + reach, n - 1)
        if last == at:
            continue
        chosen = _free(following, at + 1 + int(shares[at] * (last - at)))
        if chosen > last:
            chosen = _free(following, at + 1)
        if chosen > last:
            continue
        following[chosen] = chosen + 1
        partner[at], partner[chosen] = chosen, at
    return partner


@njit(cache=True)
def _free(following: npt.NDArray[np.int64], at: int) -> int:
    end = at
    while following[end] != end:
        end = following[end]
    while following[at] != end and at != end:
        following[at], at = end, following[at]
    return end
