"""TopCode and BottomCode: the extreme numbers of a column replaced by a threshold."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from velado.data.table import Table
from velado.errors import ParameterError
from velado.randomness import Draws
from velado.release.operations._numbers_of import (
    MOST_DECIMALS,
    FloatVector,
    NumbersOf,
    numbers_of,
    with_numbers,
)
from velado.release.operations._operation import ColumnName
from velado.settings import Setting, settings
from velado.text import say


@settings
class TopCode:
    """Each number above *at* is published as *at*; the others stay.

    A published *at* reads "at or above it". Whoever knows the true number codes it alike, so that the crowd at
    the threshold is a true one. Blanks stay blank; the column stays numeric and loses its taxonomy. O(n).

    >>> from velado.testing.examples import changed
    >>> changed(TopCode("x", at=90), ["21", "90", "97"], "numeric")
    ['21', '90', '90']
    """

    name: ClassVar[str] = "top-code"
    title: ClassVar[str] = say("Publish larger numbers as that number.")
    typed: ClassVar[str] = "COLUMN:NUMBER"
    falsifies: ClassVar[bool] = False
    main: ClassVar[tuple[str, str]] = ("at", "at")
    column: ColumnName
    at: Annotated[float, Setting("the largest number that is published", example="at = 90")]

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with no number above the threshold; *random* is not used."""
        found = numbers_of(table, self.name, self.column)
        return _coded(table, found, np.minimum(found.numbers, self.at), self.name, self.at)


@settings
class BottomCode:
    """Each number below *at* is published as *at*; the others stay.

    A published *at* reads "at or below it"; all else is as for `TopCode`. O(n).

    >>> from velado.testing.examples import changed
    >>> changed(BottomCode("x", at=18), ["3", "18", "40"], "numeric")
    ['18', '18', '40']
    """

    name: ClassVar[str] = "bottom-code"
    title: ClassVar[str] = say("Publish smaller numbers as that number.")
    typed: ClassVar[str] = "COLUMN:NUMBER"
    falsifies: ClassVar[bool] = False
    main: ClassVar[tuple[str, str]] = ("at", "at")
    column: ColumnName
    at: Annotated[float, Setting("the smallest number that is published", example="at = 18")]

    def apply(self, table: Table, random: Draws) -> Table:
        """The table with no number below the threshold; *random* is not used."""
        found = numbers_of(table, self.name, self.column)
        return _coded(table, found, np.maximum(found.numbers, self.at), self.name, self.at)


def _coded(table: Table, found: NumbersOf, numbers: FloatVector, operation: str, at: float) -> Table:
    bounds = found.column.bounds
    if bounds is not None and not bounds[0] <= at <= bounds[1]:
        raise ParameterError(
            say(
                "The threshold of '{operation}' lies outside the bounds of '{column}'.",
                operation=operation,
                column=found.column.name,
            ),
            "Every number would become one that the column cannot have.",
            "Give a threshold within the bounds that the schema declares.",
        )
    known = ~found.blank
    if bool((numbers[known] == at).all()) and bool((found.numbers[known] != at).any()):
        raise ParameterError(
            say(
                "'{operation}' would leave one single number in '{column}'.",
                operation=operation,
                column=found.column.name,
            ),
            "The column would tell nothing any more.",
            "Move the threshold towards the extreme, or use the operation suppress.",
        )
    decimals = max(found.decimals, 0 if float(at).is_integer() else len(repr(at).partition(".")[2]))
    return with_numbers(table, found, numbers, min(decimals, MOST_DECIMALS))
