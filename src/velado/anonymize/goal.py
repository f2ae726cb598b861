"""Goal: what a method must reach, and how far it may go. Progress: how it says where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from velado.anonymize.guarantees.base import Guarantee
from velado.data.encode import EncodedTable
from velado.data.partition import BoolArray, GroupCounts, Partition
from velado.errors import ParameterError

Promise = Literal["guaranteed", "measured", "as in the paper"]
"""guaranteed: follows from what was checked. measured: an attack was run. as in the paper: for science."""


class Progress(Protocol):
    """Called now and then with the share done (0..1) and what is being done. Must be cheap."""

    def __call__(self, share: float, doing: str = "") -> None: ...


def silent(share: float, doing: str = "") -> None:
    """A Progress that says nothing."""


@dataclass(frozen=True)
class Goal:
    """The guarantees every published group must hold, and the share of rows that may be dropped for it."""

    guarantees: tuple[Guarantee, ...]
    suppression: float = 0.0

    def __post_init__(self) -> None:
        limit: object = self.suppression
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit <= 1:
            raise ParameterError(
                "The suppression limit is not a share.",
                "It is the part of all rows that may be dropped.",
                "Use a number from 0 to 1, for example 0.05.",
            )

    @property
    def least_rows(self) -> int:
        """No group with fewer rows can hold all guarantees."""
        return max((g.least_rows for g in self.guarantees), default=1)

    @property
    def rows_only(self) -> bool:
        """True when group sizes in rows decide everything, so that fast paths need not count more."""
        from velado.anonymize.guarantees.k_anonymity import KAnonymity

        return all(isinstance(g, KAnonymity) and g.unit == "row" for g in self.guarantees)

    @property
    def reads_sensitive(self) -> bool:
        """True when a guarantee speaks of sensitive values, so that groups are chosen with them in view."""
        # Promises about sensitive values have a field `column`: one of them, or None for all.
        return any(hasattr(guarantee, "column") for guarantee in self.guarantees)

    def suppressible(self, rows: int) -> int:
        """How many of *rows* rows may be dropped."""
        return int(np.floor(self.suppression * rows + 1e-9))

    def holds_in(self, groups: GroupCounts) -> BoolArray:
        """For each group, whether every guarantee holds there."""
        good = np.ones(groups.count, dtype=bool)
        for guarantee in self.guarantees:
            good &= guarantee.holds_in(groups)
        return good

    def holds_in_parts(self, data: EncodedTable, partition: Partition) -> BoolArray:
        """For each group of *partition*, whether every guarantee holds there."""
        if self.rows_only:
            return np.asarray(partition.sizes >= self.least_rows)
        return self.holds_in(data.counts(partition))
