"""Block processing: a quadratic method on a large table, block by block, with the promise intact.

A table is cut into blocks of neighbouring rows (Mondrian's cuts, stopped early), the method runs in each, and
the groups are put together. Every group lies inside one block, so whatever holds in the blocks holds in the
whole; what is lost is only the groups that would have crossed a border.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from velado.anonymize.goal import Goal, Progress, silent
from velado.anonymize.guarantees.k_anonymity import KAnonymity
from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.randomness import seeded


def in_blocks(
    data: EncodedTable,
    size: int,
    least: int,
    work: Callable[[EncodedTable], Partition],
    progress: Progress,
    doing: str,
) -> Partition:
    """The partition *work* gives, run on blocks of about *size* rows; each block has at least *least* rows."""
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
    from velado.anonymize.methods.mondrian import Mondrian

    smallest = max(size // 2, least, 2)
    method = Mondrian(k=smallest)
    # Mondrian draws nothing; any source will do.
    recoded = method.anonymize(data, Goal((KAnonymity(smallest),)), seeded(0, "blocks"), silent)
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
