"""The tight cover: the interval of the members' values, the lowest common ancestor of their leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from velado.data.encode import EncodedTable
from velado.data.partition import Partition, group_by_codes
from velado.release.recoded import PublishedColumn
from velado.release.recoders._recoder import View


@dataclass(frozen=True)
class Cover:
    """Each group is published as the narrowest statement that is true of all its members. O(n) per column.

    Where the schema declares ``round``, as the narrowest interval between multiples of that step.

    >>> from velado.testing.examples import encoded
    >>> Cover().publish(encoded(age=[20, 30, 60]), Partition.of(np.array([0, 0, 1])))[0].values
    ('[20..30]', '60')
    """

    name: ClassVar[str] = "cover"
    states_cover: ClassVar[bool] = True

    def publish(
        self, data: EncodedTable, partition: Partition, view: View | None = None
    ) -> tuple[PublishedColumn, ...]:
        """One published value per distinct cover of each column."""
        of_row = partition.codes
        out = []
        for column in data.columns:
            low, high = partition.least_and_greatest(column.codes)
            if column.tree is not None and low.size:
                # Two covers with the same ancestor are one published value.
                node = column.tree.common_ancestor(low, high)
                low, high = column.tree.first[node], column.tree.last[node]
            elif low.size:
                low, high = column.stated(low, high)
            if not low.size:
                out.append(
                    PublishedColumn(
                        column.name,
                        of_row,
                        ("*",),
                        np.zeros(1, np.int32),
                        np.full(1, column.size - 1, np.int32),
                    )
                )
                continue
            distinct, count = group_by_codes([low, high], [column.size, column.size])
            first = np.zeros(count, dtype=np.int64)
            first[distinct] = np.arange(low.size)
            values = tuple(column.label(low[first], high[first]))
            out.append(PublishedColumn(column.name, distinct[of_row], values, low[first], high[first]))
        return tuple(out)
