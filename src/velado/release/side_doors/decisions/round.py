"""RoundOff: the column's numbers are rounded to multiples of a step, before the groups are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from velado.data.schema import Column
from velado.errors import InputError
from velado.release.side_doors.decisions._decision import Decision, Edit, number_given
from velado.text import Sentence, say


class RoundOff(Decision):
    """Its numbers are rounded.

    >>> RoundOff().edit(Column("cost", kind="numeric"), "100", "").operation
    {'name': 'round', 'column': 'cost', 'to': 100.0}
    """

    name: ClassVar[str] = "round"
    wish: ClassVar[Sentence] = say("round its numbers")
    done: ClassVar[Sentence] = say("numbers rounded")
    takes: ClassVar[str] = "step"
    trace: ClassVar[str] = "round"

    def fits(self, kinds: Sequence[str]) -> bool:
        """Offered for numbers."""
        return "numeric" in kinds

    def edit(self, column: Column, step: str, reason: str) -> Edit:
        """The operation `round`, for numbers alone."""
        width = number_given(column, step)
        if column.kind != "numeric":
            raise InputError(
                say("'{column}' does not hold numbers, so they cannot be rounded.", column=column.name),
                "Nothing was changed, and nothing was run.",
                "Hold it back, make it coarser, or decide otherwise.",
            )
        return Edit(column, {"name": "round", "column": column.name, "to": width})
