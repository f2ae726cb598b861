"""Substitutions: each group is published as one of its members, or value by value as the most common.

They come from the GFKMC thesis (section 4.3). The published value may be false of a member, so the share of
false cells is reported beside the loss, and the loss is charged for the cover of the group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from velado.data.encode import EncodedTable
from velado.data.numbers import number_text
from velado.data.partition import Partition, ValueCounts, group_by_codes
from velado.release.recoded import Cell, PublishedColumn, true_codes
from velado.release.recoders._recoder import View, ViewColumn, plain_view


def _publish(
    data: EncodedTable, partition: Partition, view: View, chosen: list[npt.NDArray[np.integer[Any]]]
) -> tuple[PublishedColumn, ...]:
    """Each group published as its *chosen* view codes, charged for its cover and for what the text itself covers."""
    of_row = partition.codes
    out = []
    for column, seen, codes in zip(data.columns, view, chosen, strict=True):
        low, high = partition.least_and_greatest(column.codes)
        true_low, true_high = seen.low[codes], seen.high[codes]
        said = true_low <= true_high
        low = np.where(said, np.minimum(low, true_low), low).astype(np.int32)
        high = np.where(said, np.maximum(high, true_high), high).astype(np.int32)
        values = tuple(seen.values[code] for code in codes.tolist())
        out.append(
            PublishedColumn(
                name=column.name,
                codes=of_row,
                values=values,
                low=low,
                high=high,
                states_cover=False,
                true_low=true_low,
                true_high=true_high,
            )
        )
    return tuple(out)


def _most_common(
    codes: npt.NDArray[np.integer[Any]], size: int, partition: Partition
) -> npt.NDArray[np.int64]:
    """The most frequent code of each group; ties go to the smallest code, so row order does not matter."""
    counts = ValueCounts.of_values(partition, (codes, size))
    order = np.lexsort((counts.values, -counts.counts, counts.groups))
    groups = counts.groups[order]
    first = np.concatenate(([True], groups[1:] != groups[:-1]))
    return np.asarray(counts.values[order][first], dtype=np.int64)


def _means(
    values: npt.NDArray[np.float64], codes: npt.NDArray[np.integer[Any]], partition: Partition
) -> npt.NDArray[np.float64]:
    """The mean of each group, *values* being the number of each code; added up in the order of codes, not of rows."""
    counts = ValueCounts.of_values(partition, (codes, values.size))
    starts = np.searchsorted(counts.groups, np.arange(partition.count))
    sums = np.add.reduceat(counts.counts * values[counts.values], starts)
    return np.asarray(sums / partition.sizes, dtype=np.float64)


@dataclass(frozen=True)
class Centroid:
    """Each group is published as its centre: the row the method named, else the member nearest the mean.

    >>> from velado.testing.examples import encoded
    >>> Centroid().publish(encoded(age=[20, 20, 30, 60]), Partition.of(np.array([0, 0, 0, 0])))[0].values
    ('30',)
    """

    name: ClassVar[str] = "centroid"
    states_cover: ClassVar[bool] = False

    def publish(
        self, data: EncodedTable, partition: Partition, view: View | None = None
    ) -> tuple[PublishedColumn, ...]:
        """Every member gets the centre's values."""
        view = view or plain_view(data)
        centres = partition.centres if partition.centres is not None else self._medoids(data, partition)
        return _publish(data, partition, view, [seen.codes[centres] for seen in view])

    @staticmethod
    def _medoids(data: EncodedTable, partition: Partition) -> npt.NDArray[np.int64]:
        order, starts = partition.members()
        weights = (
            np.ones(order.size, dtype=np.int64) if partition.weights is None else partition.weights[order]
        )
        distance = np.zeros(order.size)
        for column in data.columns:
            place = column.positions[column.codes[order]]
            mean = np.add.reduceat(place * weights, starts) / partition.sizes
            distance += np.abs(place - np.repeat(mean, partition.entries))
        rank = np.lexsort((order, distance, partition.labels[order]))
        return np.asarray(order[rank[starts]], dtype=np.int64)


@dataclass(frozen=True)
class MostCommonRecord:
    """Each group is published as its most frequent combination of quasi-identifier values.

    >>> from velado.testing.examples import encoded
    >>> ages = encoded(age=[20, 20, 30, 60])
    >>> MostCommonRecord().publish(ages, Partition.of(np.zeros(4, dtype=np.int32)))[0].values
    ('20',)
    """

    name: ClassVar[str] = "most-common-record"
    states_cover: ClassVar[bool] = False

    def publish(
        self, data: EncodedTable, partition: Partition, view: View | None = None
    ) -> tuple[PublishedColumn, ...]:
        """Every member gets the values of the most common record."""
        view = view or plain_view(data)
        record, count = group_by_codes([seen.codes for seen in view], [_size(seen) for seen in view])
        common = _most_common(record, count, partition)
        example = np.zeros(count, dtype=np.int64)
        example[record[::-1]] = np.arange(record.size - 1, -1, -1)
        return _publish(data, partition, view, [seen.codes[example[common]] for seen in view])


@dataclass(frozen=True)
class MostCommonValue:
    """Each group is published, column by column, as the most frequent value among its members.

    >>> from velado.testing.examples import encoded
    >>> ages = encoded(age=[20, 20, 30, 60])
    >>> MostCommonValue().publish(ages, Partition.of(np.zeros(4, dtype=np.int32)))[0].values
    ('20',)
    """

    name: ClassVar[str] = "most-common-value"
    states_cover: ClassVar[bool] = False

    def publish(
        self, data: EncodedTable, partition: Partition, view: View | None = None
    ) -> tuple[PublishedColumn, ...]:
        """Every member gets the group's most common value in each column."""
        view = view or plain_view(data)
        return _publish(
            data, partition, view, [_most_common(seen.codes, _size(seen), partition) for seen in view]
        )


@dataclass(frozen=True)
class Mean:
    """Each group is published as its mean, numbers by the average and categories by the most common value.

    >>> from velado.testing.examples import encoded
    >>> Mean().publish(encoded(age=[20, 20, 30, 60]), Partition.of(np.array([0, 0, 0, 0])))[0].values
    (32.5,)
    """

    name: ClassVar[str] = "mean"
    states_cover: ClassVar[bool] = False

    def publish(
        self, data: EncodedTable, partition: Partition, view: View | None = None
    ) -> tuple[PublishedColumn, ...]:
        """Every member gets the group's average; a group with a blank number is published as a blank."""
        of_row = partition.codes
        out: list[PublishedColumn] = []
        for column, seen in zip(data.columns, view or plain_view(data), strict=True):
            low, high = partition.least_and_greatest(column.codes)
            if column.points is None:
                common = _most_common(seen.codes, _size(seen), partition)
                out += _publish(replace(data, columns=(column,)), partition, (seen,), [common])
                continue
            means = _means(column.points, column.codes, partition)
            blank = (high == column.missing) if column.missing >= 0 else np.zeros(means.size, dtype=bool)
            # A decimal comma exists in text only.
            comma = column.decimal != "."
            values: tuple[Cell, ...] = tuple(
                None if gone else number_text(float(m), False, column.decimal) if comma else float(m)
                for m, gone in zip(means, blank, strict=True)
            )
            out.append(
                PublishedColumn(column.name, of_row, values, low, high, False, *true_codes(column, values))
            )
        return tuple(out)


def _size(seen: ViewColumn) -> int:
    return len(seen.values)
