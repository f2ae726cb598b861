"""Entropy l-diversity: every group's sensitive values are as mixed as l equally frequent ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, log
from typing import Annotated, ClassVar, Self

import numpy as np

from velado.data.partition import ValueCounts
from velado.release.guarantees._guarantee import DiversityGuarantee, Numbers, OneColumn, Union
from velado.release.guarantees._known_values import KnownValues
from velado.settings import Setting, settings
from velado.text import say


@settings
class EntropyLDiversity(DiversityGuarantee):
    """In every group, exp(entropy of the sensitive values) >= *l*: as mixed as l equally frequent ones.

    Machanavajjhala et al. 2007, definition 4.1: -sum_s p(s) log p(s) >= log l, on the group's own shares,
    which are what an attacker sees (Shannon's estimate; corrected ones are laxer in small groups and are not
    offered). Stronger than distinct l-diversity: a value that nearly all share no longer hides behind rare
    ones. Blanks are no values. O(entries).

    >>> EntropyLDiversity(2.5).least_rows
    3
    """

    name: ClassVar[str] = "entropy-l-diversity"
    title: ClassVar[str] = say("entropy-l-diversity")
    union_holds_with: ClassVar[Union] = "all"
    measured_in: ClassVar[str] = say("effective values")
    l: Annotated[
        float,
        Setting(
            "effective number of sensitive values in each group",
            gt=1,
            why=say("Every group has at least one value."),
        ),
    ] = 2.0
    column: OneColumn = None

    def measure_in(self, counted: ValueCounts, count: int, name: str) -> Numbers:
        """exp(entropy) of each group; 0 where no value is known."""
        known = KnownValues.of(counted, count)
        rows = np.maximum(known.rows, 1)
        # log N - sum n log n / N = -sum n/N log n/N
        effective = np.exp(np.log(rows) - known.sum_in(known.counts * np.log(known.counts)) / rows)
        return np.where(known.rows > 0, effective, 0.0)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """One and a half values."""
        return (cls(1.5),)

    def holds_for(self, here: Sequence[int], all_of_them: Sequence[int]) -> bool:
        """exp(-sum p log p) of the group's shares."""
        shares = [number / len(here) for number in Counter(here).values()]
        return exp(-sum(p * log(p) for p in shares)) >= self.l - 1e-6
