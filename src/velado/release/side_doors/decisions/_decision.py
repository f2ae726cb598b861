"""What a decision about a side door is: words for it, what it asks for, and what it changes of a recipe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from velado.data.schema import Column
from velado.errors import InputError, ParameterError
from velado.text import Sentence, say


@dataclass(frozen=True, repr=False)
class Edit:
    """What a decision changes: the *column* of the schema, or what a recipe does to it, an entry of [[operations]].

    >>> Edit(Column("cost")).operation is None
    True
    """

    column: Column
    operation: Mapping[str, Any] | None = None


class Decision(ABC):
    """One way to settle a side door: *wish* is how it is offered, *done* what is said when it was taken.

    *takes* says what the person must add: a "step" (a number), a "reason" in words, or nothing. A decision *for_the_table* can be
    taken about a door that belongs to no column. One that *keeps_open* leaves the door as it is, so it is bound to the figures it
    was taken on. *trace* is the word by which an evidence pack has it: an operation's name, or what `seen_in` finds; empty where the inventory says it.
    """

    name: ClassVar[str]
    wish: ClassVar[Sentence]
    done: ClassVar[Sentence]
    takes: ClassVar[str] = ""
    for_the_table: ClassVar[bool] = False
    keeps_open: ClassVar[bool] = False
    trace: ClassVar[str] = ""

    @abstractmethod
    def edit(self, column: Column, step: str, reason: str) -> Edit:
        """What it changes; refused where it cannot be done to such a column. The core judges it when it is run."""

    def taken_back(self, column: Column) -> Column | None:
        """The column without the decision, once what was done to it is done no longer; None where nobody knows how it was.

        >>> from velado.release.side_doors.decisions import DECISIONS
        >>> DECISIONS["hold"].taken_back(Column("cost", publish=False)).published
        True
        """
        return column

    def fits(self, kinds: Sequence[str]) -> bool:
        """Whether it is offered for a door of columns of these *kinds*; none is a door of the whole table."""
        return bool(kinds) or self.for_the_table

    def stands(self, column: Column, operations: Sequence[Mapping[str, Any]], step: str, reason: str) -> bool:
        """Whether a recipe with such a *column* and such *operations* still does what was decided."""
        try:
            made = self.edit(column, step, reason)
        except (InputError, ParameterError):
            return False
        if made.operation is None:
            return made.column == column
        return any(made.operation.items() <= one.items() for one in operations)

    def seen_in(self, column: Mapping[str, Any]) -> bool:
        """Whether a manifest's entry of a column shows that somebody decided so; operations are found by their name."""
        return False


def number_given(column: Column, step: str) -> float:
    """The number that somebody wrote as a step; refused if there is none.

    >>> number_given(Column("cost"), "2,5")
    2.5
    """
    try:
        return float(step.replace(",", "."))
    except ValueError:
        raise ParameterError(
            say("No step was given for '{column}'.", column=column.name),
            "Numbers are rounded to its multiples.",
            "Write a number above 0, such as 100.",
        ) from None
