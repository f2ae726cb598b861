"""MakeCoarser: the column is generalized before the groups are made: numbers to bands, others up their hierarchy."""

from __future__ import annotations

from typing import ClassVar

from velado.data.schema import Column
from velado.errors import ParameterError
from velado.release.side_doors.decisions._decision import Decision, Edit, number_given
from velado.text import Sentence, say


class MakeCoarser(Decision):
    """Its values are made coarser.

    >>> MakeCoarser().edit(Column("cost", kind="numeric"), "50", "").operation
    {'name': 'generalize', 'column': 'cost', 'width': 50.0}
    """

    name: ClassVar[str] = "generalize"
    wish: ClassVar[Sentence] = say("make it coarser")
    done: ClassVar[Sentence] = say("made coarser")
    takes: ClassVar[str] = "step"
    trace: ClassVar[str] = "generalize"

    def edit(self, column: Column, step: str, reason: str) -> Edit:
        """The operation `generalize`: bands of that width, or so many levels up."""
        width = number_given(column, step)
        if column.kind == "numeric" and column.taxonomy is None:
            return Edit(column, {"name": "generalize", "column": column.name, "width": width})
        if not (width >= 1 and width == width // 1):
            raise ParameterError(
                say("'{column}' cannot be made coarser by this step.", column=column.name),
                "It goes up a hierarchy, level by level.",
                "Write a whole number of levels, such as 1.",
            )
        return Edit(column, {"name": "generalize", "column": column.name, "level": int(width)})
