"""k-map: every group matches at least k people of the population the table was drawn from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from velado.data.partition import BoolArray, GroupCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Verdict
from velado.release.guarantees.known_values import verdict_on
from velado.release.parameter_types import check_types


@dataclass(frozen=True)
class KMap:
    """Every group matches at least *k* people of a population table.

    Sweeney 2001. Whom it protects: a person of whom it is *not* known that they are in the table, so that the
    crowd is the population and not the sample. Who does know it needs k-anonymity. The population must hold
    everyone the attacker could think of, and only people who could be in the table. O(groups).
    """

    name: ClassVar[str] = "k-map"
    is_crowd: ClassVar[bool] = True
    k: int = field(default=5, metadata={"help": "people of the population that match each group", "min": 2})

    def __post_init__(self) -> None:
        check_types(self)
        if self.k < 2:
            raise ParameterError(
                f"k = {self.k} hides nobody.",
                "Each person needs at least one other to be confused with.",
                "Use k = 2 or more.",
            )

    @property
    def least_rows(self) -> int:
        """1: the crowd is in the population, one row of it may be published."""
        return 1

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """True where enough people of the population match."""
        return np.asarray(population_of(groups, self.name) >= self.k)

    def check(self, groups: GroupCounts) -> Verdict:
        """Compare the group with the fewest matches with k."""
        matches = population_of(groups, self.name)
        return verdict_on(
            self.name,
            groups,
            np.asarray(matches >= self.k),
            self.k,
            int(matches.min()) if matches.size else 0,
            "people of the population",
            {"k": self.k},
        )


def population_of(groups: GroupCounts, guarantee: str) -> npt.NDArray[np.int64]:
    """How many people of the population match each group, or an error when no population is known."""
    if groups.population is None:
        raise ParameterError(
            f"{guarantee} was asked for, but no population is known.",
            "It compares each group with the people of the population that match it.",
            "Name a table of the population, or ask for k-anonymity instead.",
        )
    return groups.population
