"""Distinct l-diversity: every group holds at least l different sensitive values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from velado.data.partition import BoolArray, GroupCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Verdict
from velado.release.parameter_types import check_types


@dataclass(frozen=True)
class LDiversity:
    """Every group holds at least *l* distinct values of every sensitive column (or of *column* alone).

    Machanavajjhala et al. 2007, distinct form. Whom it protects: a person found in a group, from having
    the sensitive value read off because all share it. It does not bound how likely one value is. A blank
    sensitive cell is not a value: it cannot stand for diversity.
    """

    name: ClassVar[str] = "l-diversity"
    is_crowd: ClassVar[bool] = False
    l: int = field(default=2, metadata={"help": "distinct sensitive values in each group", "min": 2})
    column: str | None = field(default=None, metadata={"help": "one sensitive column instead of all"})

    def __post_init__(self) -> None:
        check_types(self)
        if self.l < 2:
            raise ParameterError(
                f"l = {self.l} asks for nothing.", "Every group has at least one value.", "Use l = 2 or more."
            )

    @property
    def least_rows(self) -> int:
        """l: as many rows as values are needed at least."""
        return self.l

    def _fewest(self, groups: GroupCounts) -> npt.NDArray[np.int64]:
        chosen = (
            groups.sensitive
            if self.column is None
            else {name: counts for name, counts in groups.sensitive.items() if name == self.column}
        )
        if not chosen:
            raise ParameterError(
                "l-diversity was asked for, but there is no sensitive column to check it on.",
                "Without one the promise is empty.",
                'Give a column role = "sensitive" in the schema.',
            )
        fewest: npt.NDArray[np.int64] = np.min([c.distinct(groups.count) for c in chosen.values()], axis=0)
        return fewest

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """True where a group has enough distinct values in every sensitive column."""
        return np.asarray(self._fewest(groups) >= self.l)

    def check(self, groups: GroupCounts) -> Verdict:
        """Compare the least diverse group with l."""
        fewest = self._fewest(groups)
        good = fewest >= self.l
        return Verdict(
            self.name,
            bool(good.all()),
            self.l,
            int(fewest.min()) if fewest.size else 0,
            "distinct values",
            int((~good).sum()),
            int(groups.rows[~good].sum()),
            {"l": self.l, "column": self.column},
        )
