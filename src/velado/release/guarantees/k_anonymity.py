"""k-anonymity: every group holds at least k rows, or k different people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from velado.data.partition import BoolArray, GroupCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Verdict
from velado.release.parameter_types import check_types


@dataclass(frozen=True)
class KAnonymity:
    """Every group holds at least *k* rows (unit "row") or rows of at least *k* different people ("person").

    Whom it protects: a person known to be in the table whose quasi-identifiers are known; the table alone
    leaves at least k candidates. It does not hide what all k share (see l-diversity). Where a person has
    several rows only the unit "person" keeps that promise: five rows of one patient are a crowd of one.
    """

    name: ClassVar[str] = "k-anonymity"
    is_crowd: ClassVar[bool] = True
    k: int = field(default=5, metadata={"help": "rows or people in each group", "min": 2})
    unit: Literal["row", "person"] = field(default="row", metadata={"help": "what is counted"})

    def __post_init__(self) -> None:
        check_types(self)
        if self.k < 2:
            raise ParameterError(
                f"k = {self.k} hides nobody.",
                "Each person needs at least one other to be confused with.",
                "Use k = 2 or more; 5 is common, 11 for public health data.",
            )

    @property
    def least_rows(self) -> int:
        """k: as many rows as people are needed at least."""
        return self.k

    def _counted(self, groups: GroupCounts) -> npt.NDArray[np.int64]:
        if self.unit == "row" or groups.people is None:
            return groups.rows
        return groups.people

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """True where a group is large enough."""
        return np.asarray(self._counted(groups) >= self.k)

    def check(self, groups: GroupCounts) -> Verdict:
        """Compare the smallest group with k."""
        counted = self._counted(groups)
        good = self.holds_in(groups)
        return Verdict(
            self.name,
            bool(good.all()),
            self.k,
            int(counted.min()) if counted.size else 0,
            "people" if self.unit == "person" else "rows",
            int((~good).sum()),
            int(groups.rows[~good].sum()),
            {"k": self.k, "unit": self.unit},
        )
