"""k-map: every group matches at least k people of the population the table was drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

from velado.data.partition import GroupCounts
from velado.release.guarantees._guarantee import Numbers, PopulationGuarantee, Union
from velado.release.guarantees.k_anonymity import CROWD
from velado.settings import Setting, settings
from velado.text import say


@settings
class KMap(PopulationGuarantee):
    """Every group matches at least *k* people of a population table.

    Sweeney 2001. Whom it protects: a person of whom it is *not* known that they are in the table, so that the
    crowd is the population and not the sample. Who does know it needs k-anonymity. The population must hold
    everyone the attacker could think of, and only people who could be in the table. O(groups).

    >>> KMap(5).needed, KMap(5).measured_in
    (5, 'people of the population')
    """

    name: ClassVar[str] = "k-map"
    title: ClassVar[str] = say("k-map")
    union_holds_with: ClassVar[Union] = "one"
    limit: ClassVar[str] = "k"
    measured_in: ClassVar[str] = say("people of the population")
    k: Annotated[int, CROWD, Setting("people of the population that match each group")] = 5

    def measure(self, groups: GroupCounts) -> Numbers:
        """The people of the population that match each group."""
        return self.matches(groups)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """A crowd of the population."""
        return (cls(6),)

    def holds_for(self, here: Sequence[int], all_of_them: Sequence[int]) -> bool:
        """k people match."""
        return len(all_of_them) >= self.k
