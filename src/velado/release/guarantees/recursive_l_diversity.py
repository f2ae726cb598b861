"""Recursive (c,l)-diversity: in every group the commonest sensitive value is not too common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

import numpy as np

from velado.data.partition import BoolArray, GroupCounts, ValueCounts
from velado.release.guarantees._guarantee import Direction, DiversityGuarantee, Numbers, OneColumn, Union
from velado.release.guarantees._known_values import KnownValues
from velado.settings import Setting, settings
from velado.text import say


@settings
class RecursiveLDiversity(DiversityGuarantee):
    """In every group, r_1 < *c* (r_l + r_(l+1) + ... + r_m), where r_i is the count of its i-th commonest value.

    Machanavajjhala et al. 2007, definition 4.2. An attacker who can rule out l - 2 values of a person's group
    still finds none of the others too likely. A group with fewer than l distinct values never holds. Blanks
    are no values. O(entries log entries).

    >>> RecursiveLDiversity(c=3, l=2).needed
    3.0
    """

    name: ClassVar[str] = "recursive-l-diversity"
    title: ClassVar[str] = say("recursive-l-diversity")
    direction: ClassVar[Direction] = "at most"
    union_holds_with: ClassVar[Union] = "all"
    limit: ClassVar[str] = "c"
    measured_in: ClassVar[str] = say("times the rarer values (or less)")
    c: Annotated[float, Setting("how many times the rarer values the commonest may be", gt=0)] = 3.0
    l: Annotated[int, Setting("from which rank on values count as the rarer ones", ge=2)] = 2
    column: OneColumn = None

    def judge(self, numbers: Numbers, groups: GroupCounts) -> BoolArray:
        """Below c, as the definition has it: c itself is too much."""
        return np.asarray(numbers < self.c)

    def measure_in(self, counted: ValueCounts, count: int, name: str) -> Numbers:
        """r_1 / (r_l + ... + r_m) of each group; infinite with fewer than l values."""
        known = KnownValues.of(counted, count)
        order = np.lexsort((-known.counts, known.groups))
        of, number = known.groups[order], known.counts[order].astype(np.float64)
        rank = np.arange(of.size) - np.searchsorted(of, np.arange(count))[of]
        first = np.bincount(of, weights=number * (rank == 0), minlength=count)
        rarer = np.bincount(of, weights=number * (rank >= self.l - 1), minlength=count)
        return np.divide(first, rarer, out=np.full(count, np.inf), where=rarer > 0)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Thrice the rarer values."""
        return (cls(3.0, 2),)

    def holds_for(self, here: Sequence[int], all_of_them: Sequence[int]) -> bool:
        """r_1 < c (r_l + ... + r_m)."""
        ranked = sorted(Counter(here).values(), reverse=True)
        return len(ranked) >= self.l and ranked[0] < self.c * sum(ranked[self.l - 1 :])
