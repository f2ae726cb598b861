"""The methods the DAS paper compares with, as its authors ran them, and the links they counted.

MDAV and Mondrian work there on the numbers as they are, without scaling: weight in kilograms counts as much as age in
years. Mondrian cuts the column of the widest range at the median row, equal values shared out in the order of the
rows, as long as a group has 2k rows. Both publish means. None of this is how velado's own methods of these names work.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from velado.anonymize.methods.mdav_kernel import mdav_labels
from velado.anonymize.recoded import Recoded
from velado.anonymize.recoders import recoder_named
from velado.data.encode import EncodedTable
from velado.data.partition import FloatArray, Partition
from velado.study.papers.das_kernel import first_nearest

Peer = Callable[[EncodedTable, int], Recoded]


def unscaled(data: EncodedTable) -> npt.NDArray[np.float64]:
    """The numbers of every row, one column per quasi-identifier."""
    columns = []
    for column in data.columns:
        assert column.points is not None
        columns.append(column.points[column.codes])
    return np.ascontiguousarray(np.stack(columns, axis=1))


def mdav(data: EncodedTable, k: int) -> Recoded:
    """MDAV on unscaled numbers, published as means. O(n^2 / k)."""
    return _means(data, Partition.of(mdav_labels(unscaled(data), k)))


def mondrian(data: EncodedTable, k: int) -> Recoded:
    """Mondrian on unscaled ranges with equal values shared out, published as means. O(n log^2 n)."""
    return _means(data, Partition.of(halves(unscaled(data), k)))


def halves(points: FloatArray, k: int) -> npt.NDArray[np.int64]:
    """Groups of k to 2k - 1 rows: the widest column is halved until a group has fewer than 2k rows."""
    labels = np.empty(points.shape[0], dtype=np.int64)
    waiting, group = [np.arange(points.shape[0])], 0
    while waiting:
        rows = waiting.pop()
        if rows.size < 2 * k:
            labels[rows] = group
            group += 1
            continue
        widest = int(np.argmax(np.ptp(points[rows], axis=0)))
        order = np.argsort(points[rows, widest], kind="stable")
        half = rows.size // 2
        # Rows stay in table order, because that is how equal values are shared out further down.
        waiting += [rows[np.sort(order[:half])], rows[np.sort(order[half:])]]
    return labels


def links_as_counted(data: EncodedTable, recoded: Recoded, from_released: bool = False) -> int:
    """How many rows find their own row first among the nearest of the other side, in floating point.

    Original rows look among the released ones, as the published counts do; *from_released* the other way, as the
    paper's text has it. Euclidean, not scaled, and the lowest row number wins. Works on distinct rows: equal rows have
    equal distances.
    """
    original = unscaled(data)
    published = np.stack(
        [np.array(part.values, dtype=np.float64)[part.codes] for part in recoded.columns], axis=1
    )
    looking, among = (published, original) if from_released else (original, published)
    queries, query_of = np.unique(looking, axis=0, return_inverse=True)
    targets, first = np.unique(among, axis=0, return_index=True)
    in_order = np.argsort(first)
    nearest = first_nearest(queries, np.ascontiguousarray(targets[in_order]))
    winner = first[in_order][nearest]
    return int((query_of.ravel()[winner] == np.arange(queries.shape[0])).sum())


def _means(data: EncodedTable, partition: Partition) -> Recoded:
    return Recoded(recoder_named("mean").publish(data, partition), partition.kept, partition)
