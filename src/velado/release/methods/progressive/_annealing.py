"""Annealing: a grouping made cheaper by rounds of moves, exchanges and rebuilds along the neighbour graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from velado.data.encode import EncodedTable
from velado.data.partition import BoolArray, FloatArray, Int32Array, Int64Array, IntArray, Partition
from velado.release.methods._row_covers import RowCovers
from velado.release.methods.progressive._annealing_kernel import anneal_block, anneal_small_blocks
from velado.release.methods.progressive._group_state import State, World, fill_state, total_cost
from velado.release.methods.progressive._neighbour_graph import gathered, kd_blocks, neighbour_graph, scaled
from velado.release.methods.progressive._regroup_kernel import Plan, Stock
from velado.text import say

_BLOCK = 10_000
"""Rows of a larger table are searched in blocks of about so many: what their steps touch fits the cache of one core."""
_FEW_ROUNDS = 40_000
"""Above so many rows a search has few rounds."""
_MANY, _MANY_MORE = 22_000, 30_000
"""From the first to the second of these numbers of rows a search becomes shorter: the rest of a run takes longer there."""
_HEAT = 0.1
_COOLEST = 0.2
"""What is left of the heat before the last round, which has none."""
_THREADS = 2
_TOGETHER = 64
"""Rows are visited by such heaps of near ones."""
_SWEEPS = 2
_JUDGED = 4
"""Rounds that are judged do a part of the steps of others."""
_REBUILDS = 0.75
"""Rebuilds of a round for each group."""


@dataclass
class Stopped:
    """Whether a search was ended from the keyboard: then its result cannot be had again from the settings.

    >>> Stopped().warnings
    ()
    """

    by_key: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the release must know of it."""
        said = say(
            "The search was stopped from the keyboard and the best so far is published: the same settings do not give "
            "this table again."
        )
        return (said,) if self.by_key else ()


Judge = Callable[[Partition], BoolArray]
"""For each group of a partition, whether it may be published."""
Told = Callable[[float, float], None]
"""Called with the share of the search that is done and the rows x price reached."""


def records_of(data: EncodedTable) -> RowCovers:
    """The records of *data* in the order in which a search has them: of a large table, near ones together.

    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 30, 20])
    >>> records_of(data).records, records_of(data) is records_of(data)
    (2, True)
    """

    def made() -> RowCovers:
        covers = RowCovers.of(data)
        return gathered(covers, _first_random()) if covers.records > _FEW_ROUNDS else covers

    return data.once("records", made)


def world_for(data: EncodedTable, records: RowCovers) -> World:
    """The world of a search in *data*, whose *records* are those of `records_of`: the same for every goal."""
    return data.once("world", lambda: world_of(records, _first_random()))


def _first_random() -> Int64Array:
    return np.array([1], dtype=np.int64)


def world_of(covers: RowCovers, random: Int64Array) -> World:
    """Records, neighbours and rows as the compiled steps read them."""
    order = np.argsort(covers.record_of, kind="stable").astype(np.int32)
    starts = np.concatenate(([0], np.cumsum(covers.weight))).astype(np.int64)
    near = neighbour_graph(covers, random)
    ones = np.ones(covers.records, dtype=np.int64)
    place = np.empty(covers.records, dtype=np.int64)
    place[kd_blocks(scaled(covers), ones, _TOGETHER, random)[0]] = np.arange(covers.records)
    route = np.argsort(place[covers.record_of], kind="stable").astype(np.int32)
    return World(covers.measure, covers.points, near, covers.record_of, order, starts, route)


@dataclass(frozen=True)
class Steps:
    """What a search is made of: the state of a grouping, what it costs, the steps inside one block or many.

    *drop* is what a row costs that is in no group, *warmth* that part of a cost which the heat is a share of.
    """

    fill: Callable[[Any, Int32Array, int, int], Any]
    total: Callable[[Any], float]
    block: Callable[..., None]
    small_blocks: Callable[..., None]
    drop: Callable[[Any], float]
    warmth: Callable[[Any, Any, float], float]


COVER_STEPS = Steps(
    fill=fill_state,
    total=total_cost,
    block=anneal_block,
    small_blocks=anneal_small_blocks,
    drop=lambda world: float(world.measure.most.sum()),
    warmth=lambda world, state, cost: cost,
)
"""Those that lower rows x price of the covers."""


def spared(rows: int) -> float:
    """How far, between 0 and 1, a search of so many rows is cut short because the rest of a run takes longer.

    >>> spared(20_000), spared(26_000), spared(30_162)
    (0.0, 0.5, 1.0)
    """
    return min(max(rows - _MANY, 0) / (_MANY_MORE - _MANY), 1.0)


@dataclass(frozen=True)
class Schedule:
    """How many rounds there are, how often all of them are done with another seed, how many rows may be dropped."""

    rounds: int
    seeds: int = 1
    droppable: int = 0
    heat: float = _HEAT

    @classmethod
    def of(
        cls, rows: int, columns: int, least: int, droppable: int, effort: float, fewest: int = 4
    ) -> Schedule:
        """As many rounds as *effort* allows on a table of that size, *fewest* at least: a count of steps, never a clock.

        >>> Schedule.of(rows=8, columns=2, least=2, droppable=0, effort=1.0)
        Schedule(rounds=28, seeds=6, droppable=0, heat=0.1)
        """
        # In microseconds of one core, measured; what counts is how it grows.
        sweep = _SWEEPS * rows * (0.7 + 0.006 * min(least, 40) * columns)
        rebuild = 6 + 0.0125 * least * least * columns
        rebuilds = _REBUILDS * min(1.0, 10 / least) * rows / least
        allowed = effort * 1e6 * (2.45 - 0.95 * spared(rows) + 0.4e-5 * max(rows - _FEW_ROUNDS, 0))
        seeds = 6 if rows <= 500 else 1
        rounds = int(allowed / (sweep + rebuild * rebuilds + 50) / seeds)
        most = int((20 + rows) * max(effort, 1.0))
        # Where rounds are few, heat that the first of them must give up is a round lost.
        return cls(max(min(rounds, most), fewest), seeds, droppable, _HEAT if rows <= _MANY else _HEAT / 2)


def annealed(
    world: World,
    labels: IntArray,
    least: int,
    schedule: Schedule,
    seed: int,
    told: Told,
    judge: Judge | None = None,
    steps: Steps = COVER_STEPS,
    stopped: Stopped | None = None,
    others: Sequence[IntArray] = (),
) -> Int32Array:
    """Labels that cost no more than the given ones: groups of *least* rows or more, label -1 for rows left out.

    Where it is done with several seeds, they begin in turn from *labels* and from the *others*: what is cheapest before a
    search need not be after it.

    With a *judge* only groups it lets pass are made. Interrupted from the keyboard, the best so far is kept, and *stopped*
    knows of it. The
    result depends on *seed* and the arguments alone: blocks have seeds of their own, so that threads change nothing.
    """
    best = np.ascontiguousarray(labels, dtype=np.int32)
    begun = [best, *(np.ascontiguousarray(other, dtype=np.int32) for other in others)]
    rounds = schedule.rounds if judge is None else _JUDGED * schedule.rounds
    first = _Search(world, best, least, schedule.droppable, seed, steps)
    least_cost = first.cost
    if least_cost <= 0.0 or (first.groups < 2 and first.rows.size < 2 * least):
        return best
    try:
        for number in range(schedule.seeds):
            start = begun[number % len(begun)]
            search = first
            if number:
                search = _Search(world, start, least, schedule.droppable, seed + 7919 * number, steps)
            heat = schedule.heat
            r = 0
            while r < rounds:
                cool = _COOLEST ** (r / max(rounds - 1, 1)) if r < rounds - 1 else 0.0
                if judge is None:
                    search.round(heat * cool)
                    if r == 0 and search.cost > search.first and heat > 1e-3:
                        search.restart()
                        heat /= 2
                        continue
                else:
                    search.judged_round(judge, r, heat * cool)
                r += 1
                if search.least < least_cost:
                    best, least_cost = search.best, search.least
                told((number + r / rounds) / schedule.seeds, least_cost)
    except (KeyboardInterrupt, SystemError) as stop:
        # Compiled code that is interrupted reports an error of the system, caused by the key.
        if isinstance(stop, SystemError) and not isinstance(stop.__cause__, KeyboardInterrupt):
            raise
        if stopped is not None:
            stopped.by_key = True
        told(1.0, least_cost)
    return best


class _Search:
    """The state of one annealing and the best it has seen."""

    def __init__(
        self, world: World, labels: Int32Array, least: int, droppable: int, seed: int, steps: Steps
    ) -> None:
        self.steps = steps
        self.world, self.least_rows, self.seed, self.start = world, least, seed, labels
        self.rows = world.route[labels[world.route] >= 0]
        self.droppable, self.drop = droppable, steps.drop(world)
        self.drawn = 0
        self.restart()
        self.first = self.least = self.cost
        self.best = labels

    def restart(self) -> None:
        self._fill(self.start)

    def _fill(self, labels: Int32Array) -> None:
        count = int(labels.max()) + 1
        self.room = max(self.rows.size // self.least_rows, count) + 1
        self.state: State = self.steps.fill(self.world, labels, count, self.room)
        self._weigh()

    def _weigh(self) -> None:
        self.dropped = int((self.state.label < 0).sum())
        self.cost = float(self.steps.total(self.state)) + self.drop * self.dropped

    @property
    def groups(self) -> int:
        return int((self.state.block >= 0).sum())

    def round(self, heat: float) -> None:
        """One round of every step, no worse than *heat* times a mean group at a step."""
        self.drawn += 1
        heat *= self.steps.warmth(self.world, self.state, self.cost) / self.groups
        if self.rows.size <= _BLOCK:
            self.state.block[self.state.block >= 0] = 0
            jobs = [self._job(self.rows, 0, self.groups, np.flatnonzero(self.state.block < 0), heat)]
            self.steps.block(self.world, self.state, *jobs[0])
        else:
            jobs = self._jobs(heat)
            with ThreadPoolExecutor(_THREADS) as pool:
                list(pool.map(lambda job: self.steps.block(self.world, self.state, *job), jobs))
        self._weigh()
        self._note()

    def _note(self) -> None:
        if self.cost < self.least - 1e-9:
            self.least, self.best = self.cost, self.state.label.copy()

    def _job(
        self, rows: Int32Array, block: int, groups: int, free: Int64Array, heat: float
    ) -> tuple[Int32Array, int, Plan, int, Stock]:
        spare = np.zeros(groups + free.size + 1, dtype=np.int64)
        spare[0] = free.size
        spare[1 : free.size + 1] = free
        left = (self.droppable - self.dropped) * rows.size // max(self.rows.size, 1)
        rebuilds = max(round(_REBUILDS * min(1.0, 10 / self.least_rows) * groups), 1)
        plan = Plan(self.least_rows, heat, _SWEEPS, rebuilds, self.drop)
        seed = ((self.seed * 1_000_003 + self.drawn) * 100_003 + block) & ((1 << 61) - 1)
        return rows, block, plan, seed, Stock(spare, np.array([max(left, 0)], dtype=np.int64))

    def _jobs(self, heat: float) -> list[tuple[Int32Array, int, Plan, int, Stock]]:
        """Blocks of about 10,000 rows, cut elsewhere every round: each with its rows and the numbers it may need."""
        rows, edges, groups, spare, given = self._blocks(_BLOCK)
        return [
            self._job(rows[edges[b] : edges[b + 1]], b, int(groups[b]), spare[given[b] : given[b + 1]], heat)
            for b in range(groups.size)
        ]

    def _blocks(self, most: int) -> tuple[Int32Array, Int64Array, Int64Array, Int64Array, Int64Array]:
        """Groups in blocks of about *most* rows by where their middles lie.

        Returns the rows in order of blocks and where each block's begin, the number of groups in each, the group
        numbers not in use and where those that each block may take begin.
        """
        state = self.state
        alive = np.flatnonzero(state.block >= 0)
        random = np.array([2 * (self.seed * 1_000_003 + self.drawn) + 1], dtype=np.int64)
        order, begins = kd_blocks(_middles(self.world, state, alive), state.size[alive], most, random)
        of = np.empty(alive.size, dtype=np.int32)
        of[order] = np.repeat(np.arange(begins.size - 1, dtype=np.int32), np.diff(begins))
        state.block[alive] = of
        kept = self.rows[state.label[self.rows] >= 0]
        block = state.block[state.label[kept]]
        by_block = np.argsort(block, kind="stable")
        edges = np.searchsorted(block[by_block], np.arange(begins.size))
        groups = np.diff(begins)
        need = np.maximum(np.diff(edges) // self.least_rows - groups, 0)
        given = np.concatenate(([0], np.cumsum(need)))
        return kept[by_block], edges, groups, np.flatnonzero(state.block < 0), given

    def judged_round(self, judge: Judge, number: int, heat: float) -> None:
        """Steps inside small disjoint blocks; a block in which a group does not pass is as it was before."""
        self.drawn += 1
        heat *= self.steps.warmth(self.world, self.state, self.cost) / self.groups
        before = self.state.label.copy()
        mean = self.rows.size / self.groups
        rows, edges, _, spare, given = self._blocks(int((2.5 + 3 * (number % 3)) * mean))
        # Groups that the goal has made large are made anew at about their size as well as at the least size.
        least = self.least_rows if number % 2 else max(self.least_rows, int(0.8 * mean))
        plan = Plan(least, heat, int(number % 4 < 2), int(number % 4 >= 2), self.drop)
        self.steps.small_blocks(
            world=self.world,
            state=self.state,
            rows=rows,
            edges=edges,
            plan=plan,
            seed=(self.seed * 1_000_003 + self.drawn) * 100_003 & ((1 << 61) - 1),
            spare=spare,
            spare_edges=given,
        )
        label = self.state.label
        changed = np.flatnonzero(label != before)
        if changed.size:
            # A partition of the groups that are there, each known by its number.
            alive = np.flatnonzero(self.state.block >= 0)
            rank = np.full(self.room, -1, dtype=np.int32)
            rank[alive] = np.arange(alive.size, dtype=np.int32)
            dense = np.where(label >= 0, rank[np.maximum(label, 0)], -1).astype(np.int32)
            good = judge(Partition(dense, int(alive.size)))
            bad = np.unique(self.state.block[alive[~good]])
            if bad.size:
                undo = np.isin(self.state.block[label[rows]], bad)
                # Numbers are given to one block only, so the old ones of an undone block are nobody else's.
                label = label.copy()
                label[rows[undo]] = before[rows[undo]]
                self._fill(Partition.of(label).labels)
            else:
                self._weigh()
            self._note()


def _middles(world: World, state: State, groups: Int64Array) -> FloatArray:
    """Column x group: the middle of each cover, every column as long as its weight."""
    measure = world.measure
    middles = (state.low[groups] + state.high[groups]).T / 2
    factor = np.ones(middles.shape[0])
    factor[measure.lines :] = measure.most[measure.lines :] / np.maximum(measure.size[measure.lines :] - 1, 1)
    return np.ascontiguousarray(middles * factor[:, None])
