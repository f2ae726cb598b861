"""Distinct l-diversity: every group holds at least l different sensitive values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

from velado.data.partition import ValueCounts
from velado.release.guarantees._guarantee import DiversityGuarantee, Numbers, OneColumn, Union
from velado.settings import Setting, settings
from velado.text import say


@settings
class LDiversity(DiversityGuarantee):
    """Every group holds at least *l* distinct values of every sensitive column (or of *column* alone).

    Machanavajjhala et al. 2007, distinct form. Whom it protects: a person found in a group, from having
    the sensitive value read off because all share it. It does not bound how likely one value is. A blank
    sensitive cell is not a value: it cannot stand for diversity.

    >>> LDiversity(3).needed, LDiversity(3, column="diagnosis").column
    (3, 'diagnosis')
    """

    name: ClassVar[str] = "l-diversity"
    title: ClassVar[str] = say("l-diversity")
    union_holds_with: ClassVar[Union] = "one"
    measured_in: ClassVar[str] = say("distinct values")
    l: Annotated[
        int,
        Setting(
            "distinct sensitive values in each group", ge=2, why=say("Every group has at least one value.")
        ),
    ] = 2
    column: OneColumn = None

    def measure_in(self, counted: ValueCounts, count: int, name: str) -> Numbers:
        """How many different values each group holds."""
        return counted.distinct(count)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Two values."""
        return (cls(2),)

    def holds_for(self, here: Sequence[int], all_of_them: Sequence[int]) -> bool:
        """So many different values."""
        return len(set(here)) >= self.l
