"""Hold: the column is not published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from velado.data.schema import Column
from velado.release.side_doors.decisions._decision import Decision, Edit
from velado.text import Sentence, say


class Hold(Decision):
    """The column stays at home.

    >>> Hold().edit(Column("cost"), "", "").column.published
    False
    """

    name: ClassVar[str] = "hold"
    wish: ClassVar[Sentence] = say("hold the column back")
    done: ClassVar[Sentence] = say("held back")
    trace: ClassVar[str] = "held back"

    def edit(self, column: Column, step: str, reason: str) -> Edit:
        """The column is not published."""
        return Edit(replace(column, publish=False))

    def stands(self, column: Column, operations: object, step: str, reason: str) -> bool:
        """Whatever keeps it at home."""
        return not column.published

    def taken_back(self, column: Column) -> Column:
        """The column is published."""
        return replace(column, publish=True)

    def seen_in(self, column: Mapping[str, Any]) -> bool:
        """An identifier is at home without a decision."""
        return column.get("publish") is False and column["role"] != "identifier"
