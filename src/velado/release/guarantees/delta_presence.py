"""Delta-presence: from no group can it be told that a person of the population is, or is not, in the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np

from velado.data.partition import BoolArray, GroupCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import ROUNDING, Direction, Numbers, PopulationGuarantee, Union
from velado.settings import Setting, settings
from velado.text import say


@settings
class DeltaPresence(PopulationGuarantee):
    """In every group, *least* <= rows of the table / people of the population that match it <= *most*.

    Nergiz, Atzori and Clifton 2007: the likelihood that a person known to be in the population (everyone
    insured) is in the research table (everyone with the disease) stays within bounds. Where *least* is above
    0, a person of the population who matches no group is known to be absent, so that any such person breaks
    the promise in the table as a whole: no group holds then, unless *unmatched* says that they are ignored
    (as ARX does when k-anonymity or l-diversity is asked for too). The population includes the table. O(groups).

    >>> DeltaPresence(0.1, 0.5).needed, DeltaPresence(0.1, 0.5).is_crowd
    (0.5, True)
    """

    name: ClassVar[str] = "delta-presence"
    title: ClassVar[str] = say("delta-presence")
    direction: ClassVar[Direction] = "at most"
    union_holds_with: ClassVar[Union] = "all"
    limit: ClassVar[str] = "most"
    measured_in: ClassVar[str] = say("likelihood of presence (or less)")
    least: Annotated[float, Setting("smallest likelihood of presence", ge=0, le=1)] = 0.0
    most: Annotated[float, Setting("largest likelihood of presence", ge=0, le=1)] = 0.5
    unmatched: Annotated[
        Literal["counted", "ignored"],
        Setting("whether people of the population who match no group break the smallest likelihood"),
    ] = "counted"

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ParameterError(
                say("A likelihood from {least:g} to {most:g} is no range.", least=self.least, most=self.most),
                "Both are shares, and the smallest comes first.",
                "Use for example least = 0 and most = 0.5.",
            )

    def measure(self, groups: GroupCounts) -> Numbers:
        """How likely a matching person of the population is to be in the table; infinite where none matches."""
        matches = self.matches(groups)
        return np.divide(groups.rows, matches, out=np.full(groups.count, np.inf), where=matches > 0)

    def _someone_absent(self, groups: GroupCounts) -> bool:
        return self.least > 0 and groups.unmatched > 0 and self.unmatched == "counted"

    def judge(self, numbers: Numbers, groups: GroupCounts) -> BoolArray:
        """Presence is neither too likely nor too unlikely; nowhere good if someone is known to be absent."""
        within = (numbers >= self.least - ROUNDING) & (numbers <= self.most + ROUNDING)
        return np.asarray(within & (not self._someone_absent(groups)))

    def worst(self, numbers: Numbers, groups: GroupCounts) -> tuple[float, float, str]:
        """The most telling group beside *most*, or beside *least* when only that is broken."""
        low = float(numbers.min(initial=np.inf)) if numbers.size and not self._someone_absent(groups) else 0.0
        high = float(numbers.max()) if numbers.size else 0.0
        if high <= self.most + ROUNDING and low < self.least - ROUNDING:
            return self.least, low, say("likelihood of presence (or more)")
        return self.most, high, self.measured_in

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """No likely presence."""
        return (cls(0.0, 0.6),)

    def holds_for(self, here: Sequence[int], all_of_them: Sequence[int]) -> bool:
        """Rows per matching person, between the two bounds."""
        return self.least - 1e-6 <= len(here) / len(all_of_them) <= self.most + 1e-6
