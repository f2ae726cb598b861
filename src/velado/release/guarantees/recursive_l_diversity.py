"""Recursive (c,l)-diversity: in every group the commonest sensitive value is not too common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from velado.data.partition import BoolArray, FloatArray, GroupCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Verdict
from velado.release.guarantees.known_values import KnownValues, chosen_columns, verdict_on
from velado.release.parameter_types import check_types


@dataclass(frozen=True)
class RecursiveLDiversity:
    """In every group, r_1 < *c* (r_l + r_(l+1) + ... + r_m), where r_i is the count of its i-th commonest value.

    Machanavajjhala et al. 2007, definition 4.2. An attacker who can rule out l - 2 values of a person's group
    still finds none of the others too likely. A group with fewer than l distinct values never holds. Blanks
    are no values. O(entries log entries).
    """

    name: ClassVar[str] = "recursive-l-diversity"
    is_crowd: ClassVar[bool] = False
    c: float = field(
        default=3.0, metadata={"help": "how many times the rarer values the commonest may be", "min": 0}
    )
    l: int = field(
        default=2, metadata={"help": "from which rank on values count as the rarer ones", "min": 2}
    )
    column: str | None = field(default=None, metadata={"help": "one sensitive column instead of all"})

    def __post_init__(self) -> None:
        check_types(self)
        if self.l < 2 or not self.c > 0:
            raise ParameterError(
                f"({self.c:g}, {self.l})-diversity cannot be checked.",
                "c must be above 0 and l at least 2.",
                "Use for example c = 3 and l = 2.",
            )

    @property
    def least_rows(self) -> int:
        """l: as many rows as distinct values are needed at least."""
        return self.l

    def _ratio(self, groups: GroupCounts) -> FloatArray:
        """r_1 / (r_l + ... + r_m) of the worst column of each group; infinite with fewer than l values."""
        worst = np.zeros(groups.count)
        for counted in chosen_columns(groups, self.column, self.name).values():
            known = KnownValues.of(counted, groups.count)
            order = np.lexsort((-known.counts, known.groups))
            of, number = known.groups[order], known.counts[order].astype(np.float64)
            start = np.searchsorted(of, np.arange(groups.count))
            rank = np.arange(of.size) - start[of]
            first = np.bincount(of, weights=number * (rank == 0), minlength=groups.count)
            rarer = np.bincount(of, weights=number * (rank >= self.l - 1), minlength=groups.count)
            ratio = np.divide(first, rarer, out=np.full(groups.count, np.inf), where=rarer > 0)
            worst = np.maximum(worst, ratio)
        return worst

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """True where no sensitive column has a value that is too common."""
        return np.asarray(self._ratio(groups) < self.c)

    def check(self, groups: GroupCounts) -> Verdict:
        """Compare the most lopsided group with c."""
        ratio = self._ratio(groups)
        return verdict_on(
            self.name,
            groups,
            np.asarray(ratio < self.c),
            self.c,
            float(ratio.max()) if ratio.size else 0.0,
            "times the rarer values (or less)",
            {"c": self.c, "l": self.l, "column": self.column},
        )
