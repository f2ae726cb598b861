"""Sums under masks that cancel (`_summed`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from velado.learning.flower.aggregations._aggregation import Aggregation, Floats
from velado.text import say

if TYPE_CHECKING:
    from velado.learning.flower.federation import Federation


class SecureSum(Aggregation):
    """The sum over all clients, of which the coordinator sees nothing else.

    >>> SecureSum().hidden
    True
    """

    name: ClassVar[str] = "secure-sum"
    says: ClassVar[str] = say(
        "Put together by secure sums: the coordinator saw sums over all clients, and no client's own."
    )
    hidden: ClassVar[bool] = True

    def centre(self, updates: Floats, rows: Floats, federation: Federation) -> Floats:
        """Never asked for: no update is seen."""
        raise AssertionError("no client's update is seen")
