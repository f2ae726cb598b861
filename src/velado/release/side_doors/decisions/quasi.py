"""CallQuasi: the column is something that outsiders know, so that groups are made by it too."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from velado.data.schema import Column
from velado.release.side_doors.decisions._decision import Decision, Edit
from velado.text import Sentence, say


class CallQuasi(Decision):
    """It becomes a quasi-identifier.

    >>> CallQuasi().edit(Column("cost"), "", "").column.role
    'quasi'
    """

    name: ClassVar[str] = "quasi"
    wish: ClassVar[Sentence] = say("treat it as something outsiders know")
    done: ClassVar[Sentence] = say("treated as something outsiders know")

    def edit(self, column: Column, step: str, reason: str) -> Edit:
        """Its role is that of a quasi-identifier; the inventory of columns says so."""
        return Edit(replace(column, role="quasi"))

    def taken_back(self, column: Column) -> None:
        """Which role it had is not kept: Roles say it anew."""
        return
