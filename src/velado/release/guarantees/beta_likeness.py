"""Beta-likeness: in no group is a sensitive value much more likely than in the whole table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from velado.data.partition import BoolArray, FloatArray, GroupCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Verdict
from velado.release.guarantees.known_values import ROUNDING, KnownValues, chosen_columns, verdict_on
from velado.release.parameter_types import check_types


@dataclass(frozen=True)
class BetaLikeness:
    """For every value more frequent in a group (share q) than in the table (share p): (q - p) / p <= *beta*.

    Cao and Karras 2012. *form* "basic" is their definition 2; "enhanced" (definition 3) asks for
    (q - p) / p <= min(beta, -ln p), which also keeps frequent values from becoming certain. Unlike
    t-closeness the bound is relative, so that a rare and grave value is protected as strictly as a common
    one. Only gains count: a value that is rarer in a group than elsewhere is no disclosure here. Blanks are
    no values. O(entries).
    """

    name: ClassVar[str] = "beta-likeness"
    is_crowd: ClassVar[bool] = False
    beta: float = field(
        default=2.0, metadata={"help": "largest relative gain in the likelihood of a value", "min": 0}
    )
    form: Literal["basic", "enhanced"] = field(
        default="enhanced", metadata={"help": "which definition", "choices": ("basic", "enhanced")}
    )
    column: str | None = field(default=None, metadata={"help": "one sensitive column instead of all"})

    def __post_init__(self) -> None:
        check_types(self)
        if not self.beta > 0:
            raise ParameterError(
                f"beta = {self.beta:g} is no bound on a gain.",
                "Every group would have to mirror the table exactly.",
                "Use a number above 0, for example 2.",
            )

    @property
    def least_rows(self) -> int:
        """1: a value that all share may be published about one person."""
        return 1

    def _gain(self, groups: GroupCounts) -> FloatArray:
        """The worst gain of each group in units of what its value may gain; above 1 is broken."""
        worst = np.zeros(groups.count)
        for counted in chosen_columns(groups, self.column, self.name).values():
            known = KnownValues.of(counted, groups.count)
            p = known.overall[known.values]
            gain = np.divide(known.share - p, p, out=np.full(p.size, np.inf), where=p > 0)
            allowed = np.full(p.size, self.beta)
            if self.form == "enhanced":
                allowed = np.minimum(allowed, -np.log(np.where(p > 0, p, 1.0)))
            # A value that everyone has may gain nothing, and cannot.
            ratio = np.divide(gain, allowed, out=np.where(gain > ROUNDING, np.inf, 0.0), where=allowed > 0)
            found = known.most_in(ratio)
            found[known.rows == 0] = np.inf
            worst = np.maximum(worst, found)
        return worst

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """True where no sensitive value gains too much."""
        return np.asarray(self._gain(groups) <= 1 + ROUNDING)

    def check(self, groups: GroupCounts) -> Verdict:
        """Compare the largest gain with what is allowed."""
        gain = self._gain(groups)
        return verdict_on(
            self.name,
            groups,
            np.asarray(gain <= 1 + ROUNDING),
            1.0,
            float(gain.max()) if gain.size else 0.0,
            "of the allowed gain (or less)",
            {"beta": self.beta, "form": self.form, "column": self.column},
        )
