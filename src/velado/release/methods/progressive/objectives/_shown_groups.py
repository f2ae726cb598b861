"""ShownGroups: groups as a reader of the table sees them, for the values of objectives and for the measures of the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.partition import Int32Array, Int64Array, IntArray, Partition, group_by_codes
from velado.text import percent


class PerCell:
    """An objective whose value is a mean over cells, each counted by the weight of its column."""

    in_brief: ClassVar[bool] = True

    @staticmethod
    def unit(rows: int, weight: float) -> float:
        """What one unit of the groups' cost adds to rows x value."""
        return 1.0 / weight if weight > 0 else 0.0

    @staticmethod
    def dropped(rows: int, weight: float) -> float:
        """What a suppressed row costs in that unit: all its cells."""
        return weight

    @staticmethod
    def shown(value: float, rows: int) -> str:
        """The value as a person reads it: a share of the cells."""
        return percent(value, 2)


@dataclass(frozen=True, repr=False)
class ShownGroups:
    """Published classes over the rows of *data* (-1: suppressed), and the codes low..high that each class states.

    Groups that are published alike are one class. *rows* counts the whole table, rows that are not in *data* included.
    """

    data: EncodedTable
    classes: Partition
    low: Int32Array
    high: Int32Array
    rows: int

    @classmethod
    def of(cls, data: EncodedTable, labels: IntArray) -> ShownGroups:
        """The groups of *labels* published by their covers. O(n d)."""
        groups = Partition.of(labels)
        low = np.zeros((groups.count, len(data.columns)), dtype=np.int32)
        high = np.zeros_like(low)
        for at, column in enumerate(data.columns):
            low[:, at], high[:, at] = _stated(column, *groups.least_and_greatest(column.codes))
        ends = [codes[:, at] for codes in (low, high) for at in range(low.shape[1])]
        class_of, count = group_by_codes(ends, [column.size for column in data.columns] * 2)
        first = np.zeros(count, dtype=np.int64)
        first[class_of] = np.arange(groups.count)
        shown = np.where(groups.kept, class_of[groups.codes], -1) if count else groups.labels
        return cls(data, Partition(shown.astype(np.int32), count), low[first], high[first], data.rows)

    @property
    def count(self) -> int:
        """How many classes there are."""
        return self.classes.count

    @property
    def sizes(self) -> Int64Array:
        """Rows of each class."""
        return self.classes.sizes

    @property
    def suppressed(self) -> int:
        """How many rows are in none."""
        return self.rows - int(self.sizes.sum())

    @property
    def weight(self) -> float:
        """The weights of all columns together."""
        return float(sum(column.weight for column in self.data.columns))

    def mean(self, total: float) -> float:
        """*total*, a sum over published rows of weighted columns, as a mean over all cells; a suppressed one counts 1."""
        whole = self.rows * self.weight
        return (total + self.suppressed * self.weight) / whole if whole > 0 else 0.0


def _stated(column: EncodedColumn, low: Int32Array, high: Int32Array) -> tuple[Int32Array, Int32Array]:
    """All codes that the published text of each cover is true of."""
    if column.tree is not None and low.size:
        node = column.tree.common_ancestor(low, high)
        return column.tree.first[node], column.tree.last[node]
    low, high = column.stated(low, high)
    # A blank among numbers is published as `*`, which states everything.
    return np.where((high == column.missing) & (low < high), 0, low), high
