"""Entropy l-diversity: every group's sensitive values are as mixed as l equally frequent ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from velado.data.partition import BoolArray, FloatArray, GroupCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Verdict
from velado.release.guarantees.known_values import ROUNDING, KnownValues, chosen_columns, verdict_on
from velado.release.parameter_types import check_types


@dataclass(frozen=True)
class EntropyLDiversity:
    """In every group, exp(entropy of the sensitive values) >= *l*: as mixed as l equally frequent ones.

    Machanavajjhala et al. 2007, definition 4.1: -sum_s p(s) log p(s) >= log l, on the group's own shares,
    which are what an attacker sees (Shannon's estimate; corrected ones are laxer in small groups and are not
    offered). Stronger than distinct l-diversity: a value that nearly all share no longer hides behind rare
    ones. Blanks are no values. O(entries).
    """

    name: ClassVar[str] = "entropy-l-diversity"
    is_crowd: ClassVar[bool] = False
    l: float = field(
        default=2.0, metadata={"help": "effective number of sensitive values in each group", "min": 1}
    )
    column: str | None = field(default=None, metadata={"help": "one sensitive column instead of all"})

    def __post_init__(self) -> None:
        check_types(self)
        if not self.l > 1:
            raise ParameterError(
                f"l = {self.l:g} asks for nothing.",
                "Every group has at least one value.",
                "Use a number above 1.",
            )

    @property
    def least_rows(self) -> int:
        """l, rounded up: as many rows as distinct values are needed at least."""
        return math.ceil(self.l - ROUNDING)

    def _effective(self, groups: GroupCounts) -> FloatArray:
        """exp(entropy) of the least mixed column of each group; 0 where no value is known."""
        worst = np.full(groups.count, np.inf)
        for counted in chosen_columns(groups, self.column, self.name).values():
            known = KnownValues.of(counted, groups.count)
            rows = np.maximum(known.rows, 1)
            # log N - sum n log n / N = -sum n/N log n/N
            effective = np.exp(np.log(rows) - known.sum_in(known.counts * np.log(known.counts)) / rows)
            worst = np.minimum(worst, np.where(known.rows > 0, effective, 0.0))
        return worst

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """True where every sensitive column is mixed enough."""
        return np.asarray(self._effective(groups) >= self.l * (1 - ROUNDING))

    def check(self, groups: GroupCounts) -> Verdict:
        """Compare the least mixed group with l."""
        effective = self._effective(groups)
        return verdict_on(
            self.name,
            groups,
            np.asarray(effective >= self.l * (1 - ROUNDING)),
            self.l,
            float(effective.min()) if effective.size else 0.0,
            "effective values",
            {"l": self.l, "column": self.column},
        )
