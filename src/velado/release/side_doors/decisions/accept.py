"""Accept: it is published all the same, and somebody answers for that with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from velado.data.schema import Column
from velado.release.side_doors.decisions._decision import Decision, Edit
from velado.text import Sentence, say


class Accept(Decision):
    """The door stays open, for a reason, with the figures it was accepted on.

    >>> Accept().edit(Column("ward"), "", "rooms, not people").column.side_door
    'accept'
    """

    name: ClassVar[str] = "accept"
    wish: ClassVar[Sentence] = say("publish it all the same, for this reason:")
    done: ClassVar[Sentence] = say("published all the same")
    takes: ClassVar[str] = "reason"
    for_the_table: ClassVar[bool] = True
    keeps_open: ClassVar[bool] = True
    trace: ClassVar[str] = "side_door"

    def edit(self, column: Column, step: str, reason: str) -> Edit:
        """The column is signed for."""
        return Edit(replace(column, side_door="accept", reason=reason))

    def stands(self, column: Column, operations: object, step: str, reason: str) -> bool:
        """Signed for and published, whatever the reason became."""
        return column.published and column.side_door == "accept"

    def taken_back(self, column: Column) -> Column:
        """Nobody signs for the column."""
        return replace(column, side_door="refuse", reason="")

    def seen_in(self, column: Mapping[str, Any]) -> bool:
        """The schema says so."""
        return column.get("side_door") == "accept"
