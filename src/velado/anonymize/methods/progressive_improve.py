"""High effort: the grouping made better by freeing neighbouring classes, in steps that report progress."""

from __future__ import annotations

import numpy as np

from velado.anonymize.goal import Progress
from velado.anonymize.methods.progressive_cover import covers
from velado.anonymize.methods.progressive_kernel import Floats, scratch_for
from velado.anonymize.methods.progressive_lattice import Lattice
from velado.anonymize.methods.progressive_peel import BoxList
from velado.anonymize.methods.progressive_pool import start
from velado.anonymize.methods.progressive_search import search
from velado.data.partition import IntArray

_WORK = 2_600_000_000
"""About 40 s of one core."""
_WORK_A_ROW = 100_000
"""Small tables stop sooner: by then every few neighbours have been tried many times."""
_ROUNDS = 40
_HEAT = 0.005
"""Times the least rows of a group: how much worse a step may be at first, in rows x cost."""


def improved(
    lattice: Lattice, labels: IntArray, least: int, random: np.random.Generator, progress: Progress
) -> IntArray:
    """Labels of a grouping that costs no more than the given one, groups of *least* rows or more."""
    space = lattice.space
    state, count = start(space, lattice.tuple_of_row, labels.astype(np.int32), least)
    need = _need(lattice, labels, least, count)
    scratch = scratch_for(int(space.size.max()))
    work = min(_WORK, _WORK_A_ROW * labels.size)
    before = float((state.price * state.size).sum())
    for part in range(_ROUNDS):
        progress(part / _ROUNDS, "searching for better groups")
        heat = _HEAT * least * (1 - (part + 1) / _ROUNDS)
        count, _ = search(
            space, lattice.tuple_of_row, need, state, count, least, work // _ROUNDS, heat, random, scratch
        )
    after = float((state.price[:count] * state.size[:count]).sum())
    return np.asarray(state.label) if after <= before else labels


def _need(lattice: Lattice, labels: IntArray, least: int, count: int) -> Floats:
    """What each tuple costs at least: the cheapest box with *least* rows, or its own class where unknown."""
    of_tuple = np.full(lattice.tuples, -1, dtype=np.int32)
    of_tuple[lattice.tuple_of_row] = labels
    _, _, _, price = covers(lattice.space, of_tuple, count)
    need = np.where(of_tuple >= 0, price[np.maximum(of_tuple, 0)], lattice.top_cost)
    room = BoxList.of(lattice, 1 << 23, 1 << 20)
    everyone = np.arange(lattice.tuples, dtype=np.int32)
    low = 0.0
    for share in (0.02, 0.05, 0.1, 0.15, 0.2):
        high = lattice.top_cost * share
        if not room.list(lattice, everyone, least, low, high, 200_000_000):
            break
        sizes = np.diff(room.starts[: room.count + 1])
        filled = int(room.starts[room.count])
        np.minimum.at(need, room.members[:filled], np.repeat(room.costs[: room.count], sizes))
        low = high
    return need
