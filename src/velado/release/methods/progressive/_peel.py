"""Peeling: boxes from cheapest to dearest become groups, and the rows in them leave.

The boxes of one band of cost are listed together, then visited in the order of their own cost; what a band
leaves goes on to the next, so few boxes are ever listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from velado.compiled import njit
from velado.data.encode import EncodedTable
from velado.data.partition import GroupCounts, IntArray, Partition
from velado.release.goal import Goal, Progress
from velado.release.methods.progressive._cover_lattice import CoverLattice
from velado.release.methods.progressive._progressive_kernel import (
    Floats,
    Ints,
    Longs,
    Scratch,
    boxes_in_band,
    scratch_for,
    take,
)

_BANDS = 16
_ANY = np.zeros(0, dtype=np.bool_)


@dataclass(repr=False)
class BoxList:
    """Room for the boxes of one band: *members* of box after box, where each starts, what each costs."""

    members: Ints
    starts: Longs
    costs: Floats
    scratch: Scratch
    count: int = 0
    work: int = 0

    @classmethod
    def of(cls, lattice: CoverLattice, most_members: int, most_boxes: int) -> BoxList:
        """Empty room for so many."""
        return cls(
            np.empty(most_members, dtype=np.int32),
            np.empty(most_boxes + 1, dtype=np.int64),
            np.empty(most_boxes),
            scratch_for(int(lattice.space.size.max())),
        )

    def list(
        self,
        lattice: CoverLattice,
        active: Ints,
        least: int,
        low: float,
        high: float,
        most_work: int,
        must: npt.NDArray[np.bool_] = _ANY,
    ) -> bool:
        """True when the list now holds every box of the band; False when there was not room or work enough."""
        space = lattice.space
        self.count, work, short = boxes_in_band(
            space=space,
            codes=space.codes,
            weight=space.weight,
            active=active,
            must=must,
            least=least,
            low=low,
            high=high,
            most_work=most_work,
            buffer=self.members,
            box_cost=self.costs,
            box_start=self.starts,
            scratch=self.scratch,
        )
        self.work += work
        return short == 0


@dataclass(repr=False)
class Peeled:
    """The group of each tuple (-1: none) and how many groups there are."""

    label: Ints
    groups: int


def peel(data: EncodedTable, lattice: CoverLattice, goal: Goal, progress: Progress, most_work: int) -> Peeled:
    """Groups of whole tuples, made from the cheapest box to the dearest; a few tuples may stay without one.

    *most_work* limits the tuples looked at. A band that takes more than an eighth of what is left, or more
    room than there is, is visited as far as it was listed and then listed again with the rows that remain.
    Where that makes no group, or all the work is used up, peeling ends and the caller must place the rest.
    """
    weight = lattice.space.weight
    least = max(goal.least_rows, 1)
    label = np.full(lattice.tuples, -1, dtype=np.int32)
    visit = _Visit(data, lattice, goal, least)
    state = Peeled(label, 0)
    visit.single_tuples(state)
    room = BoxList.of(lattice, max(1 << 22, 8 * lattice.tuples), max(1 << 20, lattice.tuples))
    top = lattice.top_cost
    edges = top * (np.arange(1, _BANDS + 1) / _BANDS) ** 1.5
    edges[-1] = np.inf
    low, at = 0.0, 0
    while at < _BANDS:
        active = np.flatnonzero(label < 0).astype(np.int32)
        if int(weight[active].sum()) < least:
            break
        allowed = max((most_work - room.work) // 8, 32 * active.size, 1 << 22)
        whole = room.list(lattice, active, least, low, float(edges[at]), allowed)
        before = state.groups
        visit.band(room, state)
        progress(1 - active.size / max(lattice.tuples, 1), "making groups from the cheapest boxes")
        if whole:
            low, at = float(edges[at]), at + 1
        elif state.groups == before or room.work > most_work:
            break
    return state


@dataclass(frozen=True, repr=False)
class _Visit:
    """How boxes are judged: by their rows alone in compiled code, or by every guarantee in batches."""

    data: EncodedTable
    lattice: CoverLattice
    goal: Goal
    least: int

    def single_tuples(self, state: Peeled) -> None:
        """Tuples that hold the goal by themselves are groups that cost nothing."""
        tuples = Partition(self.lattice.tuple_of_row, self.lattice.tuples)
        good = np.flatnonzero(self.goal.holds_in_parts(self.data, tuples))
        state.label[good] = np.arange(good.size, dtype=np.int32)
        state.groups = int(good.size)

    def band(self, room: BoxList, state: Peeled) -> None:
        """The listed boxes, cheapest first, become groups where the goal holds for their remaining rows."""
        order = np.argsort(room.costs[: room.count], kind="stable")
        if self.goal.rows_only:
            state.groups = take(
                room.members,
                room.starts,
                order,
                self.lattice.space.weight,
                state.label,
                state.groups,
                self.least,
            )
            return
        sizes = np.diff(room.starts[: room.count + 1])[order]
        starts = room.starts[:-1][order]
        while order.size:
            members, box = _gathered(room.members, starts, sizes)
            remaining = state.label[members] < 0
            members, box = members[remaining], box[remaining]
            good = self._holds(members, box, starts.size)
            chosen = np.flatnonzero(good)
            # Of boxes that hold, in order of cost, those that share no tuple with an earlier one.
            first = np.zeros(starts.size, dtype=np.bool_)
            touched = np.zeros(starts.size, dtype=np.bool_)
            keep = good[box]
            state.groups = _claim(members[keep], box[keep], state.label, state.groups, first, touched)
            # Only boxes that lost rows to one chosen now need another look: the others failed as they are.
            again = chosen[touched[chosen] & ~first[chosen]]
            order, starts, sizes = order[again], starts[again], sizes[again]

    def _holds(self, members: IntArray, box: Longs, boxes: int) -> npt.NDArray[np.bool_]:
        """For each box, whether the goal holds for the rows of its members."""
        data = self.data
        rows_of, row_start, row_count = self._rows
        out = np.zeros(boxes, dtype=np.bool_)
        weight = self.lattice.space.weight[members]
        enough = np.bincount(box, weights=weight, minlength=boxes) >= self.least
        members, box = members[enough[box]], box[enough[box]]
        if not members.size:
            return out
        # Boxes overlap, so their rows are repeated; some millions at a time to bound memory.
        cut = np.searchsorted(np.cumsum(row_count[members]), np.arange(1, 200) * (1 << 21))
        edges = np.unique(np.concatenate(([0], np.searchsorted(box, box[cut[cut < box.size]]), [box.size])))
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            rows, entry = _gathered(rows_of, row_start[members[begin:end]], row_count[members[begin:end]])
            mine = box[begin:end][entry]
            part = data.subset(rows)
            partition = Partition.of(mine, weights=part.counts)
            population = None
            if data.population is not None:
                covers = [partition.least_and_greatest(column.codes) for column in part.columns]
                population = data.matching([low for low, _ in covers], [high for _, high in covers])[0]
            counts = GroupCounts.of(
                partition, part.people, part.sensitive, data.totals, data.shapes, population
            )
            out[np.unique(mine)] = self.goal.holds_in(counts)
        return out

    @cached_property
    def _rows(self) -> tuple[Longs, Longs, Longs]:
        """Rows (entries) sorted by tuple, where each tuple's start, and how many there are."""
        partition = Partition(self.lattice.tuple_of_row, self.lattice.tuples)
        rows, starts = partition.members()
        return rows, starts, partition.entries


def _gathered(values: IntArray, starts: Longs, sizes: Longs) -> tuple[IntArray, Longs]:
    """The runs values[start : start + size] one after another, and which run each entry is of."""
    run = np.repeat(np.arange(starts.size), sizes)
    offset = np.arange(run.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return values[starts[run] + offset], run


@njit(cache=True)
def _claim(
    members: IntArray,
    box: Longs,
    label: Ints,
    groups: int,
    first: npt.NDArray[np.bool_],
    touched: npt.NDArray[np.bool_],
) -> int:
    """Boxes, in order, take all their members unless one is taken; marks who took and who came too late."""
    at = 0
    while at < box.size:
        end = at
        free = True
        while end < box.size and box[end] == box[at]:
            free = free and label[members[end]] < 0
            end += 1
        touched[box[at]] = not free
        if free:
            first[box[at]] = True
            for i in range(at, end):
                label[members[i]] = groups
            groups += 1
        at = end
    return groups
