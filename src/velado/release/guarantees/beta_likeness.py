"""Beta-likeness: in no group is a sensitive value much more likely than in the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Annotated, ClassVar, Literal, Self

import numpy as np

from velado.data.partition import ValueCounts
from velado.release.guarantees._guarantee import (
    ROUNDING,
    Direction,
    Numbers,
    OneColumn,
    Union,
    ValueGuarantee,
)
from velado.release.guarantees._known_values import KnownValues
from velado.settings import Setting, settings
from velado.text import say


@settings
class BetaLikeness(ValueGuarantee):
    """For every value more frequent in a group (share q) than in the table (share p): (q - p) / p <= *beta*.

    Cao and Karras 2012. *form* "basic" is their definition 2; "enhanced" (definition 3) asks for
    (q - p) / p <= min(beta, -ln p), which also keeps frequent values from becoming certain. Unlike
    t-closeness the bound is relative, so that a rare and grave value is protected as strictly as a common
    one. Only gains count: a value that is rarer in a group than elsewhere is no disclosure here. Blanks are
    no values. Best with --blind, as every promise about values: `docs/explanation/promises.md`. O(entries).

    >>> BetaLikeness(2).form, BetaLikeness(2).needed
    ('enhanced', 1.0)
    """

    name: ClassVar[str] = "beta-likeness"
    title: ClassVar[str] = say("beta-likeness")
    direction: ClassVar[Direction] = "at most"
    union_holds_with: ClassVar[Union] = "all"
    measured_in: ClassVar[str] = say("of the allowed gain (or less)")
    beta: Annotated[
        float,
        Setting(
            "largest relative gain in the likelihood of a value",
            gt=0,
            why=say("At 0 every group would have to mirror the table exactly."),
        ),
    ] = 2.0
    form: Annotated[Literal["basic", "enhanced"], Setting("which definition")] = "enhanced"
    column: OneColumn = None

    @property
    def needed(self) -> float:
        """1: gains are measured in units of what each value may gain."""
        return 1.0

    def measure_in(self, counted: ValueCounts, count: int, name: str) -> Numbers:
        """The worst gain of each group in units of what its value may gain; above 1 is broken."""
        known = KnownValues.of(counted, count)
        p = known.overall[known.values]
        gain = np.divide(known.share - p, p, out=np.full(p.size, np.inf), where=p > 0)
        allowed = np.full(p.size, self.beta)
        if self.form == "enhanced":
            allowed = np.minimum(allowed, -np.log(np.where(p > 0, p, 1.0)))
        # A value that everyone has may gain nothing, and cannot.
        ratio = np.divide(gain, allowed, out=np.where(gain > ROUNDING, np.inf, 0.0), where=allowed > 0)
        return np.where(known.rows == 0, np.inf, known.most_in(ratio))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Both definitions."""
        return cls(1.0, "basic"), cls(2.0, "enhanced")

    def holds_for(self, here: Sequence[int], all_of_them: Sequence[int]) -> bool:
        """No value gains more than it may: (q - p) / p <= beta, or <= min(beta, -ln p)."""
        for value in set(here):
            q, p = here.count(value) / len(here), all_of_them.count(value) / len(all_of_them)
            allowed = min(self.beta, -log(p)) if self.form == "enhanced" else self.beta
            if (q - p) / p > allowed + 1e-6:
                return False
        return True
