"""What a way of putting clients' answers together says of itself; everything else reads it here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from velado.learning.flower.federation import Federation

Floats = npt.NDArray[np.float64]


class Aggregation(ABC):
    """How answers become one: *says* it in a fit. Of a *hidden* one the coordinator sees sums alone. *fewest* answers it needs to mean anything.

    *trees*: clients' trees can be collected under it too, weighted by rows.
    """

    name: ClassVar[str]
    says: ClassVar[str]
    hidden: ClassVar[bool] = False
    trees: ClassVar[bool] = False
    fewest: ClassVar[int] = 1

    @abstractmethod
    def centre(self, updates: Floats, rows: Floats, federation: Federation) -> Floats:
        """The one update that stands for all, of clients that have so many *rows*; *updates* has one in each row."""
