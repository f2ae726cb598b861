"""What a recoder is, and the view of the table it publishes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.release.recoded import Cell, PublishedColumn


@dataclass(frozen=True, repr=False)
class ViewColumn:
    """One column as a method saw it: codes per row (entry), and the text or number each code would be published as.

    *low* and *high* say which codes of the encoded column each value is true of; low > high where it is true of
    none (a mean that nobody has). A method that generalizes first (GFKMC) publishes its substitutions from the
    generalized view, not from the raw values.
    """

    codes: npt.NDArray[np.int32]
    values: tuple[Cell, ...]
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]


View = tuple[ViewColumn, ...]


def plain_view(data: EncodedTable) -> View:
    """The raw values: what a method sees that does not generalize first."""
    out = []
    for column in data.columns:
        itself = np.arange(column.size, dtype=np.int32)
        out.append(ViewColumn(column.codes, tuple(column.value_texts), itself, itself))
    return tuple(out)


class Recoder(Protocol):
    """Publishes the groups of a partition."""

    name: ClassVar[str]
    states_cover: ClassVar[bool]

    def publish(
        self, data: EncodedTable, partition: Partition, view: View | None = None
    ) -> tuple[PublishedColumn, ...]:
        """One published column per quasi-identifier; rows of one group are published alike."""
        ...
