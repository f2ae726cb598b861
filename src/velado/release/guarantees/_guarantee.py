"""What a guarantee is: it reads GroupCounts and gives a Verdict. It never sees a row."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol

from velado.data.partition import BoolArray, GroupCounts


@dataclass(frozen=True)
class Verdict:
    """What was asked, what was found, and where it failed.

    *achieved* is the worst value over all groups in the guarantee's own unit (the smallest class, the fewest
    distinct values); *failing_groups* and *failing_rows* say how far from holding a broken promise is.
    """

    guarantee: str
    holds: bool
    needed: float
    achieved: float
    unit: str
    failing_groups: int = 0
    failing_rows: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain values for manifest and report."""
        return asdict(self)

    def sentence(self) -> str:
        """The verdict in words, without any value of the table."""
        what = f"{self.guarantee}: needs {self.needed:g} {self.unit}, the weakest group has {self.achieved:g}"
        if self.holds:
            return f"{what}; holds."
        return f"{what}; broken in {self.failing_groups} group(s), {self.failing_rows} row(s)."


class Guarantee(Protocol):
    """A promise about groups that can be checked from counts alone.

    Implementations are frozen dataclasses; their fields are flags, form and recipe. `holds_in` serves
    partitioners, which ask about many candidate groups at once; `check` serves `release` and `verify`.
    """

    name: ClassVar[str]
    is_crowd: ClassVar[bool]
    """Whether it hides people in a crowd, of the table or of a population; others speak of sensitive values."""

    @property
    def least_rows(self) -> int:
        """No group with fewer rows can hold; lets methods prune before counting anything else."""
        ...

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """For each group, whether the promise holds there."""
        ...

    def check(self, groups: GroupCounts) -> Verdict:
        """The verdict over all groups."""
        ...
