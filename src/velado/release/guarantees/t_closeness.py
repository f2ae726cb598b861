"""t-closeness: in every group the sensitive values are distributed almost as in the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np

from velado.data.partition import ValueCounts
from velado.errors import ParameterError
from velado.release.guarantees._guarantee import Direction, Numbers, OneColumn, Union, ValueGuarantee
from velado.release.guarantees._known_values import KnownValues, moved_along_order, moved_along_tree
from velado.settings import Setting, settings
from velado.text import say

_UNDEFINED = say("Without it no distance between two values is defined.")


@settings
class TCloseness(ValueGuarantee):
    """The earth mover's distance between each group's sensitive values and the whole table's is at most *t*.

    Li, Li and Venkatasubramanian 2007. Moving a share from one value to another costs, by *distance*:
    "equal", 1 between any two values (half the sum of absolute differences of shares);
    "ordered", |rank i - rank j| / (m - 1) on the m values of the table (section 5.1);
    "hierarchical", height of the lowest common ancestor / height of the taxonomy (section 5.2).
    An attacker who finds a person's group learns little more about the value than the table as a whole tells.
    Blanks are no values. O(entries) for "equal", else O(groups x values).

    >>> TCloseness(0.2, "ordered").needed
    0.2
    """

    name: ClassVar[str] = "t-closeness"
    title: ClassVar[str] = say("t-closeness")
    direction: ClassVar[Direction] = "at most"
    union_holds_with: ClassVar[Union] = "all"
    limit: ClassVar[str] = "t"
    measured_in: ClassVar[str] = say("earth mover's distance (or less)")
    t: Annotated[float, Setting("largest distance from the whole table's distribution", ge=0, le=1)] = 0.2
    distance: Annotated[
        Literal["equal", "ordered", "hierarchical"], Setting("how far apart two values are")
    ] = "equal"
    column: OneColumn = None

    def measure_in(self, counted: ValueCounts, count: int, name: str) -> Numbers:
        """The distance of each group; 1 where no value is known."""
        known, shape = KnownValues.of(counted, count), counted.shape
        if self.distance == "equal":
            found = known.sum_in(np.maximum(known.share - known.overall[known.values], 0.0))
        elif self.distance == "ordered":
            if shape is None or shape.order is None:
                raise ParameterError(
                    say(
                        "t-closeness with the ordered distance needs the order of '{column}', which is not known.",
                        column=name,
                    ),
                    _UNDEFINED,
                    'Declare kind = "numeric" for the column in the schema, or use the equal distance.',
                )
            found = moved_along_order(known, shape.order)
        else:
            if shape is None or shape.levels is None:
                raise ParameterError(
                    say(
                        "t-closeness with the hierarchical distance needs the taxonomy of '{column}', which is not known.",
                        column=name,
                    ),
                    _UNDEFINED,
                    "Declare a taxonomy for the column in the schema, or use the equal distance.",
                )
            found = moved_along_tree(known, shape.levels)
        return np.where(known.rows == 0, 1.0, found)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Two fifths away."""
        return (cls(0.4),)

    def holds_for(self, here: Sequence[int], all_of_them: Sequence[int]) -> bool:
        """Half the sum of absolute differences of shares."""
        if self.distance != "equal":
            raise NotImplementedError(f"there is no plain count of the {self.distance} distance")
        apart = [
            abs(here.count(value) / len(here) - all_of_them.count(value) / len(all_of_them))
            for value in set(all_of_them)
        ]
        return sum(apart) / 2 <= self.t + 1e-6
