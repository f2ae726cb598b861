"""CoverTables: what it costs to let a cover take in each code, as one short vector per column.

A greedy method asks again and again: which record widens this group least? With ordered codes the loss of
the widened cover depends on one code per column only, so it is a vector over the column's codes, filled
once per change of the group; asking a record is then one look-up per column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from velado.compiled import njit
from velado.data.counted import refuse_counted
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.randomness import seeded
from velado.release.goal import Goal, Progress, silent
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.methods.mondrian import Mondrian

# Block processing: a quadratic method on a large table, block by block, with the promise intact.
#
# A table is cut into blocks of neighbouring rows (Mondrian's cuts, stopped early), the method runs in each, and
# the groups are put together. Every group lies inside one block, so whatever holds in the blocks holds in the
# whole; what is lost is only the groups that would have crossed a border.


def in_blocks(
    data: EncodedTable,
    size: int,
    least: int,
    work: Callable[[EncodedTable], Partition],
    progress: Progress,
    doing: str,
) -> Partition:
    """The partition *work* gives, run on blocks of about *size* rows; each block has at least *least* rows."""
    refuse_counted(data)
    if data.rows <= size:
        progress(0.0, doing)
        return work(data)
    blocks = _blocks(data, size, least)
    order, starts = blocks.members()
    labels = np.empty(data.rows, dtype=np.int64)
    offset = 0
    for number, start in enumerate(starts.tolist()):
        rows = order[start : start + int(blocks.sizes[number])]
        part = work(data.subset(rows))
        labels[rows] = np.where(part.kept, part.labels + offset, -1)
        offset += part.count
        progress((number + 1) / blocks.count, doing)
    return Partition.of(labels)


def _blocks(data: EncodedTable, size: int, least: int) -> Partition:
    smallest = max(size // 2, least, 2)
    # Mondrian draws nothing; any source will do.
    recoded = Mondrian().anonymize(data, Goal((KAnonymity(smallest),)), seeded(0, "blocks"), silent)
    assert recoded.partition is not None
    if int(recoded.partition.sizes.max()) <= 2 * size:
        return recoded.partition
    # Ties can keep a cut from being made; a block that stayed too large is cut by position.
    labels = recoded.partition.labels.astype(np.int64)
    order, starts = recoded.partition.members()
    piece = np.arange(order.size) - np.repeat(starts, recoded.partition.sizes)
    pieces = np.maximum(recoded.partition.sizes // smallest, 1)
    per = -(-recoded.partition.sizes // pieces)
    cut = np.empty(order.size, dtype=np.int64)
    cut[order] = np.minimum(
        piece // np.repeat(per, recoded.partition.sizes), np.repeat(pieces, recoded.partition.sizes) - 1
    )
    return Partition.of(labels * (int(pieces.max()) + 1) + cut)


Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Tables = tuple[
    FloatArray, Int64Array, Int64Array, FloatArray, Int64Array, Int64Array, Int32Array, Int32Array, Int32Array, FloatArray
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class CoverTables:
    """Distinct code tuples with their weights, and the columns' domains as flat arrays for kernels.

    *records* holds one row per distinct tuple, in the order of their codes, *weight* its number of table rows, *record_of*
    the tuple of each row (entry, where they are counted). *tables* are: weight of each column; first entry of each column in a vector over codes; missing code; place of each
    code (numeric columns); first node of each column, or -1 for a numeric one; leaves of each column; parent,
    first leaf, last leaf and loss of each node.
    """

    records: Int32Array
    weight: Int64Array
    record_of: Int32Array
    tables: Tables
    width: int

    @classmethod
    def of(cls, data: EncodedTable) -> CoverTables:
        """The tables of *data*. O(n log n)."""
        label, count = data.classes.labels, data.classes.count
        example = np.zeros(count, dtype=np.int64)
        example[label[::-1]] = np.arange(label.size - 1, -1, -1)
        records = np.ascontiguousarray(data.matrix[example])
        base = np.concatenate(([0], np.cumsum([c.size for c in data.columns]))).astype(np.int64)
        missing = np.array([c.missing if c.tree is None else -1 for c in data.columns], dtype=np.int64)
        places = np.concatenate([c.weight * c.positions for c in data.columns])
        trees = [(column.tree, column.weight) for column in data.columns if column.tree is not None]
        nodes = np.array([0 if c.tree is None else len(c.tree.labels) for c in data.columns], dtype=np.int64)
        none = np.empty(0, dtype=np.int32)  # a table without taxonomies has no nodes
        tables: Tables = (
            np.array([column.weight for column in data.columns]),
            base,
            missing,
            places,
            np.where(nodes > 0, np.cumsum(nodes) - nodes, -1),
            np.array([column.size for column in data.columns], dtype=np.int64),
            np.concatenate([none, *(tree.parent for tree, _ in trees)]),
            np.concatenate([none, *(tree.first for tree, _ in trees)]),
            np.concatenate([none, *(tree.last for tree, _ in trees)]),
            np.concatenate([np.empty(0), *(w * tree.loss(np.arange(len(tree.labels))) for tree, w in trees)]),
        )
        return cls(records, data.classes.sizes, label, tables, int(base[-1]))


@njit(cache=True)
def fill_costs(low: Int32Array, high: Int32Array, tables: Tables, costs: FloatArray) -> None:
    """``costs[base[c] + code]`` becomes the loss of column c's cover low..high widened to take in *code*."""
    most_of, base, missing, places, node_base, leaves, parent, first, last, loss = tables
    for column in range(low.size):
        at = base[column]
        size = leaves[column]
        least, most = low[column], high[column]
        start = node_base[column]
        if start < 0:
            gone = missing[column]
            for code in range(size):
                low_code, high_code = min(least, code), max(most, code)
                if high_code == gone and low_code != high_code:
                    costs[at + code] = most_of[column]
                else:
                    costs[at + code] = min(places[at + high_code] - places[at + low_code], most_of[column])
            continue
        node = least
        while last[start + node] < most:
            node = parent[start + node]
        left, right = first[start + node], last[start + node]
        for code in range(left, right + 1):
            costs[at + code] = loss[start + node]
        while left > 0 or right < size - 1:
            node = parent[start + node]
            wide_left, wide_right = first[start + node], last[start + node]
            for code in range(wide_left, left):
                costs[at + code] = loss[start + node]
            for code in range(right + 1, wide_right + 1):
                costs[at + code] = loss[start + node]
            left, right = wide_left, wide_right
