"""k-anonymity: every group holds at least k rows, or k different people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from velado.data.partition import GroupCounts
from velado.release.guarantees._guarantee import Guarantee, Numbers, Reads, Union
from velado.settings import Setting, settings
from velado.text import say

CROWD = Setting(
    ge=2, why=say("Below 2 it hides nobody: each person needs another one to be confused with."), example="5"
)


@settings
class KAnonymity(Guarantee):
    """Every group holds at least *k* rows (unit "row") or rows of at least *k* different people ("person").

    Whom it protects: a person known to be in the table whose quasi-identifiers are known; the table alone
    leaves at least k candidates. It does not hide what all k share (see l-diversity). Where a person has
    several rows only the unit "person" keeps that promise: five rows of one patient are a crowd of one.

    >>> KAnonymity(5).counted_by("person")
    KAnonymity(k=5, unit='person')
    """

    name: ClassVar[str] = "k-anonymity"
    title: ClassVar[str] = say("k-anonymity")
    reads: ClassVar[Reads] = "crowd"
    union_holds_with: ClassVar[Union] = "one"
    limit: ClassVar[str] = "k"
    measured_in: ClassVar[str] = say("rows")
    k: Annotated[int, CROWD, Setting("rows or people in each group")] = 5
    unit: Annotated[Literal["row", "person"], Setting("what is counted")] = "row"

    @property
    def least_rows(self) -> int:
        """k: as many rows as people are needed at least."""
        return self.k

    @property
    def rows_decide(self) -> bool:
        """Whether rows are counted, and not people."""
        return self.unit == "row"

    def counted_by(self, unit: Literal["row", "person"]) -> KAnonymity:
        """The same k in rows or in people."""
        return replace(self, unit=unit)

    def measure(self, groups: GroupCounts) -> Numbers:
        """The rows or people of each group."""
        return groups.rows if self.unit == "row" or groups.people is None else groups.people

    def worst(self, numbers: Numbers, groups: GroupCounts) -> tuple[float, float, str]:
        """The smallest group, in rows or people."""
        needed, achieved, _ = super().worst(numbers, groups)
        return needed, achieved, say("people") if self.unit == "person" else self.measured_in

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Small crowds, by row and by person."""
        return cls(3), cls(2, "person")

    def holds_for(self, here: Sequence[int], all_of_them: Sequence[int]) -> bool:
        """k rows, or k different people among them."""
        return len(here if self.unit == "row" else set(here)) >= self.k
