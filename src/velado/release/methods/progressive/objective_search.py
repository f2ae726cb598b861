"""The search of `progressive` for another purpose than the least loss: starts, then annealing, by the objectives chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np

from velado.data.encode import EncodedTable
from velado.data.partition import Int32Array, Partition
from velado.release.goal import Goal, silent
from velado.release.methods._cover_tables import in_blocks
from velado.release.methods._method import repair
from velado.release.methods._row_covers import CoverMeasure, RowCovers
from velado.release.methods.mdav import mdav_labels, standardized
from velado.release.methods.progressive._annealing import (
    Judge,
    Schedule,
    Steps,
    Stopped,
    Told,
    annealed,
    world_for,
    world_of,
)
from velado.release.methods.progressive._objective_kernel import (
    fill_groups,
    lower_block,
    lower_small_blocks,
    total_of,
)
from velado.release.methods.progressive._ordered_cuts import cut_in_order
from velado.release.methods.progressive._starts import IN_ORDER, Start, grouping_cost
from velado.release.methods.progressive.objectives._ingredients import (
    GroupTallies,
    Ingredients,
    RecordMoments,
)
from velado.release.methods.progressive.objectives.faithful_margins import margins_of
from velado.release.methods.progressive.objectives.least_variance import moments_of
from velado.release.methods.progressive.objectives.mixture import (
    DISCERNIBILITY,
    MARGINALS,
    NCP,
    OBJECTIVES,
    SSE,
    ObjectiveMixture,
    readable,
)
from velado.release.recoded import NoteName
from velado.settings import Setting
from velado.text import say

ObjectiveSetting = Annotated[
    str,
    Setting(
        "what the search makes small: one objective, or several with weights",
        test=readable,
        takes=say("{names}, or several with a weight each", names=", ".join(one.name for one in OBJECTIVES)),
        example='"ncp=1, sse=0.5"',
    ),
]
OBJECTIVE = NoteName("objective", say("objective of the search"))
OBJECTIVE_BEFORE = NoteName("objective_of_start", say("objective of the best start"))
OBJECTIVE_AFTER = NoteName("objective_after_search", say("objective after the search"))

_MOST_MDAV = 50_000
"""Rows up to which MDAV groups the whole table, as the method of that name does; more are cut into blocks."""
_BLOCK_MDAV = 10_000
_TABLED = 512
_TRIES = 2
_SMALL, _FEWEST = 1_000, 34
"""A table of fewer rows is searched that many rounds at least: what half of them reach is a matter of luck."""


@dataclass(frozen=True, repr=False)
class Searched:
    """The groups that were found, where the search began, and the value of the objectives before and after.

    *start* is the best of the starts by these objectives; *after* is never above it.

    >>> labels = np.zeros(4, np.int32)
    >>> Searched(labels, Start("all rows", labels, 4.0), 0.5, 0.4).after
    0.4
    """

    labels: Int32Array
    start: Start
    before: float
    after: float


def searched_for(
    data: EncodedTable,
    covers: RowCovers,
    goal: Goal,
    mixture: ObjectiveMixture,
    starts: list[Start],
    effort: float,
    *,
    seed: int,
    told: Told,
    stopped: Stopped | None = None,
) -> Searched:
    """The groups of least *mixture* that the search finds from the best of *starts*, of MDAV's groups and of the default's.

    Never worse by the mixture than any of them, on the groups as they are published. Under a goal that reads
    sensitive values there is one start, which is published: a search would tell of the values.

    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import encoded
    >>> data, two = encoded(age=[20, 31, 21, 30]), Goal((KAnonymity(2),))
    >>> covers, start = RowCovers.of(data), Start("by two", np.array([0, 0, 1, 1], np.int32), 3.6)
    >>> by = ObjectiveMixture.of("sse")
    >>> found = searched_for(data, covers, two, by, [start], 0.01, seed=0, told=lambda *_: None)
    >>> found.labels.tolist(), found.after < found.before or found.start.name
    ([0, 1, 0, 1], 'groups far from the average')
    """
    least = max(goal.least_rows, 1)
    limit = goal.suppressible(data.rows)
    offered, ended = list(starts), goal.reads_sensitive
    stopped = Stopped() if stopped is None else stopped
    if "sse" in mixture.weights and not ended:
        offered.append(_mdav_start(data, covers, goal))
        offered += _cut_by_variance(data, covers, goal)
    if not ended:
        schedule = Schedule.of(data.rows, len(data.columns), least, limit, effort)
        offered.append(_searched_by_loss(data, covers, goal, starts, schedule, seed, stopped))
        ended = stopped.by_key
    values = [mixture.value(data, one.labels) for one in offered]
    # Of equal ones the cheaper by loss: the squared sizes of groups are often the same.
    order = sorted(range(len(values)), key=lambda at: (round(values[at], 12), offered[at].cost))
    begun, before = offered[order[0]], values[order[0]]
    if ended or not before > 0.0:
        return Searched(begun.labels, begun, before, before)
    world = ingredients(data, covers, mixture, least, seed)
    scale = _scale(data, mixture)
    steps = replace(
        _STEPS, drop=lambda _: mixture.dropped(data.rows, world.mix, float(world.measure.most.sum()))
    )
    # Groups may cost less by themselves and not as they are published: then the next start is tried. A small table, which is
    # searched with several seeds, is searched from every start: the best one does not always lead lowest.
    fewest = {"fewest": _FEWEST} if data.rows <= _SMALL else {}
    schedule = Schedule.of(data.rows, len(data.columns), least, limit, effort * mixture.pace, **fewest)
    small = schedule.seeds > 1
    tried = order if small else order[:_TRIES]
    schedule = replace(schedule, seeds=max(schedule.seeds // len(tried), 1))
    found, after = begun.labels, before
    for number, at in enumerate(tried):
        labels = annealed(
            world,  # type: ignore[arg-type]  # the fields of a World and more
            offered[at].labels,
            least,
            schedule,
            seed,
            lambda share, cost, number=number: told((number + share) / len(tried), cost / scale),  # type: ignore[misc]
            judge=None if goal.rows_only else partial(goal.holds_in_parts, data),
            steps=steps,
            stopped=stopped,
        )
        value = mixture.value(data, labels)
        if value < after:
            found, after = labels, value
        if stopped.by_key or (after < before and not small):
            break
    return Searched(found, begun, before, after)


def _scale(data: EncodedTable, mixture: ObjectiveMixture) -> float:
    return float(data.rows) ** (3 if "discernibility" in mixture.weights else 1)


def _searched_by_loss(
    data: EncodedTable,
    covers: RowCovers,
    goal: Goal,
    starts: list[Start],
    schedule: Schedule,
    seed: int,
    stopped: Stopped,
) -> Start:
    """The cheapest start after as many rounds of the search for the loss, the far faster one."""
    begun = min(starts, key=lambda start: start.cost)
    world = world_for(data, covers)
    judge: Judge | None = None if goal.rows_only else partial(goal.holds_in_parts, data)
    labels = annealed(
        world,
        begun.labels,
        max(goal.least_rows, 1),
        schedule,
        seed,
        lambda share, cost: None,
        judge,
        stopped=stopped,
    )
    return Start(say("groups of low loss"), labels, grouping_cost(covers, labels))


def _mdav_start(data: EncodedTable, covers: RowCovers, goal: Goal) -> Start:
    k = max(goal.least_rows, 1)
    work: Callable[[EncodedTable], Partition] = lambda part: Partition.of(mdav_labels(standardized(part), k))  # noqa: E731
    block = data.rows if data.rows <= _MOST_MDAV else _BLOCK_MDAV
    groups = repair(data, in_blocks(data, block, k, work, silent, ""), goal, silent)
    return Start(say("groups far from the average"), groups.labels, grouping_cost(covers, groups.labels))


def _cut_by_variance(data: EncodedTable, covers: RowCovers, goal: Goal) -> list[Start]:
    """Of one column of numbers the groups of least variance: nothing is better. Nothing for other tables."""
    labels = cut_in_order(covers, max(goal.least_rows, 1), squares=True)
    if labels is None:
        return []
    groups = repair(data, Partition.of(labels), goal, silent)
    return [Start(IN_ORDER, groups.labels, grouping_cost(covers, groups.labels))]


def ingredients(
    data: EncodedTable, covers: RowCovers, mixture: ObjectiveMixture, least: int, seed: int
) -> Ingredients:
    """What compiled steps read, with nothing in it that the mixture does not need.

    >>> from velado.testing.examples import encoded
    >>> data = encoded(age=[20, 31, 21, 30])
    >>> ingredients(data, RowCovers.of(data), ObjectiveMixture.of("sse"), 2, 0).moments.numbers.shape
    (4, 1)
    """
    mix = mixture.mix(data.rows, float(covers.measure.most.sum()))
    example = np.zeros(covers.records, dtype=np.int64)
    example[covers.record_of] = np.arange(data.rows)
    room = data.rows // least + 2
    moments, margins = moments_of(data, example, room), margins_of(data, example)
    random = np.array([2 * seed + 1], dtype=np.int64)
    by_variance = mix[SSE] > 0 and mix[NCP] == mix[MARGINALS] == mix[DISCERNIBILITY] == 0
    world = world_of(_spaced(covers, moments) if by_variance else covers, random)
    if not mix[SSE] > 0:
        moments = moments._replace(
            numbers=np.zeros((covers.records, 0)), values=np.zeros((covers.records, 0), dtype=np.int32)
        )
    if not mix[MARGINALS] > 0:
        margins = margins._replace(codes=np.zeros((covers.records, 0), dtype=np.int32))
    weight = float(covers.measure.most.sum())
    return Ingredients(
        measure=covers.measure,
        points=covers.points,
        near=world.near,
        record=world.record,
        rows_of=world.rows_of,
        row_at=world.row_at,
        route=world.route,
        moments=moments,
        margins=margins,
        mix=mix,
        tie=1.0 / max(data.rows * weight, 1e-300),
    )


def _spaced(covers: RowCovers, moments: RecordMoments) -> RowCovers:
    """The same records with the distances that variance is made of: standardized numbers, other values as far as any.

    Half a category's weight is what a pair of rows that differ in it adds to the sum of squares of the two. Categories
    with too many values for a table of pairs are left out of the distance, not of the cost.
    """
    size = np.diff(moments.begin)
    short = np.flatnonzero(size <= _TABLED)
    lines = moments.numbers.shape[1]
    points = np.ascontiguousarray(np.concatenate((moments.numbers, moments.values[:, short]), axis=1))
    if not points.shape[1]:
        return covers
    half = 0.5 * moments.weight[short]
    tables = [(half[j] * (1.0 - np.eye(size[at]))).ravel() for j, at in enumerate(short)]
    nothing = np.full(lines, -1, dtype=np.int64)
    none = np.zeros(0, dtype=np.int32)
    measure = CoverMeasure(
        lines=lines,
        most=np.concatenate((np.full(lines, np.inf), half)),
        size=np.concatenate((nothing + 1, size[short])),
        table=np.concatenate((np.zeros(0), *tables)),
        table_at=np.concatenate((nothing, np.cumsum([0, *(size[short] ** 2)])[: short.size])),
        node_at=np.full(points.shape[1], -1, dtype=np.int64),
        parent=none,
        first=none,
        last=none,
        loss=np.zeros(0),
        widest=int(size[short].max(initial=0)),
    )
    return replace(covers, points=points, across=np.ascontiguousarray(points.T), measure=measure)


def _warmth(world: Ingredients, groups: GroupTallies, cost: float) -> float:
    """The cost without what sizes make of it: a share of that would let any loss pass."""
    if not world.mix[DISCERNIBILITY] > 0:
        return cost
    tie = world.mix[DISCERNIBILITY] * world.tie
    penalty = float((groups.size * groups.price).sum())
    others = cost if world.mix.sum() > world.mix[DISCERNIBILITY] else 0.0
    if others:
        squares = float((groups.size.astype(np.float64) ** 2).sum())
        others = max(cost - world.mix[DISCERNIBILITY] * squares, 0.0)
    return float(max(others, tie * penalty))


_STEPS = Steps(
    fill=fill_groups,
    total=total_of,
    block=lower_block,
    small_blocks=lower_small_blocks,
    drop=lambda world: 0.0,
    warmth=_warmth,
)
