"""Delta-presence: from no group can it be told that a person of the population is, or is not, in the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from velado.data.partition import BoolArray, FloatArray, GroupCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Verdict
from velado.release.guarantees.k_map import population_of
from velado.release.guarantees.known_values import ROUNDING, verdict_on
from velado.release.parameter_types import check_types


@dataclass(frozen=True)
class DeltaPresence:
    """In every group, *least* <= rows of the table / people of the population that match it <= *most*.

    Nergiz, Atzori and Clifton 2007: the likelihood that a person known to be in the population (everyone
    insured) is in the research table (everyone with the disease) stays within bounds. Where *least* is above
    0, a person of the population who matches no group is known to be absent, so that any such person breaks
    the promise in the table as a whole: no group holds then, unless *unmatched* says that they are ignored
    (as ARX does when k-anonymity or l-diversity is asked for too). The population includes the table. O(groups).
    """

    name: ClassVar[str] = "delta-presence"
    is_crowd: ClassVar[bool] = True
    least: float = field(
        default=0.0, metadata={"help": "smallest likelihood of presence", "min": 0, "max": 1}
    )
    most: float = field(default=0.5, metadata={"help": "largest likelihood of presence", "min": 0, "max": 1})

    unmatched: Literal["counted", "ignored"] = field(
        default="counted",
        metadata={
            "help": "whether people of the population who match no group break the smallest likelihood",
            "choices": ("counted", "ignored"),
        },
    )

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.least <= self.most <= 1:
            raise ParameterError(
                f"A likelihood from {self.least:g} to {self.most:g} is no range.",
                "Both are shares, and the smallest comes first.",
                "Use for example least = 0 and most = 0.5.",
            )

    @property
    def least_rows(self) -> int:
        """1: what matters is the share, not the number."""
        return 1

    def _presence(self, groups: GroupCounts) -> FloatArray:
        matches = population_of(groups, self.name)
        return np.divide(groups.rows, matches, out=np.full(groups.count, np.inf), where=matches > 0)

    def _someone_absent(self, groups: GroupCounts) -> bool:
        return self.least > 0 and groups.unmatched > 0 and self.unmatched == "counted"

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """True where presence is neither too likely nor too unlikely; nowhere if someone is known to be absent."""
        presence = self._presence(groups)
        if self._someone_absent(groups):
            return np.zeros(groups.count, dtype=bool)
        return np.asarray((presence >= self.least - ROUNDING) & (presence <= self.most + ROUNDING))

    def check(self, groups: GroupCounts) -> Verdict:
        """Compare the most telling group with the bounds: *most*, or *least* when only that is broken."""
        presence = self._presence(groups)
        good = self.holds_in(groups)
        parameters = {"least": self.least, "most": self.most, "unmatched": self.unmatched}
        low = float(presence.min()) if presence.size else 0.0
        if self._someone_absent(groups):
            low = 0.0
        high = float(presence.max()) if presence.size else 0.0
        if high <= self.most + ROUNDING and low < self.least - ROUNDING:
            return verdict_on(
                self.name, groups, good, self.least, low, "likelihood of presence (or more)", parameters
            )
        return verdict_on(
            self.name, groups, good, self.most, high, "likelihood of presence (or less)", parameters
        )
