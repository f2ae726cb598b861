"""Progressive generalization: generalize first, but no further than each record needs, then search."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from velado.data.encode import EncodedTable
from velado.data.partition import IntArray, Partition
from velado.errors import ParameterError
from velado.randomness import seeded
from velado.release.goal import Goal, Progress, Promise, silent, within
from velado.release.methods._method import RecoderName, Takes, published
from velado.release.methods._row_covers import RowCovers
from velado.release.methods.progressive._annealing import (
    Schedule,
    Stopped,
    annealed,
    records_of,
    spared,
    world_for,
)
from velado.release.methods.progressive._cover_lattice import CoverLattice, lattice
from velado.release.methods.progressive._every_grouping import MOST_ROWS, best_grouping
from velado.release.methods.progressive._neighbourhood_search import search, start
from velado.release.methods.progressive._peel import BoxList
from velado.release.methods.progressive._progressive_kernel import Floats, scratch_for
from velado.release.methods.progressive._starts import (
    BOXES,
    Start,
    StartLimits,
    grouping_cost,
    starts_for,
)
from velado.release.methods.progressive._tuple_moves import MOST_SEARCHED, searched_tuples
from velado.release.methods.progressive._whole_tuples import whole_tuples_start
from velado.release.methods.progressive.objective_search import (
    OBJECTIVE,
    OBJECTIVE_AFTER,
    OBJECTIVE_BEFORE,
    ObjectiveSetting,
    searched_for,
)
from velado.release.methods.progressive.objectives.mixture import ObjectiveMixture
from velado.release.recoded import NoteName, Recoded
from velado.settings import Setting, settings
from velado.text import say
from velado.text.writing import few_digits, number

# Large groups of categories: made better by listing the boxes of neighbouring groups, in steps that report progress.

_SEARCH = NoteName("search", say("search for better groups"))
_IN_VIEW = say(
    "left out, since the promise reads sensitive values and groups searched for with these in view would tell of them; "
    "--blind makes the groups without them"
)
_NONE = np.zeros(0, dtype=np.int64)
_WHOLE_TUPLES = say("in whole tuples, since rows with the same values are counted together")

_WORK = 65_000_000
"""About a second of one core."""
_WORK_A_ROW = 100_000
"""Small tables stop sooner: by then every few neighbours have been tried many times."""
_LONG = 10.0
"""Seconds from which small tables too are searched longer."""
_ROUNDS = 40
_HEAT = 0.005
"""Times the least rows of a group: how much worse a step may be at first, in rows x cost."""


def improved(
    lattice: CoverLattice,
    labels: IntArray,
    least: int,
    seconds: float,
    random: np.random.Generator,
    progress: Progress,
) -> IntArray:
    """Labels of a grouping that costs no more than the given one, groups of *least* rows or more.

    Boxes are listed anew over a few neighbouring groups. *seconds* is about how long one core needs: a count of work.

    >>> from velado.testing.examples import encoded
    >>> space = lattice(encoded(age=[20, 30, 21, 31]))
    >>> improved(space, np.array([0, 0, 1, 1]), 2, 1.0, np.random.default_rng(0), silent).tolist()
    [1, 0, 1, 0]
    """
    space = lattice.space
    state, count = start(space, lattice.tuple_of_row, labels.astype(np.int32), least)
    work = int(min(_WORK * seconds, _WORK_A_ROW * labels.size * max(seconds / _LONG, 1.0)))
    need = _need(lattice, np.where(labels >= 0, state.price[labels], lattice.top_cost), least, work)
    scratch = scratch_for(int(space.size.max()))
    before = float((state.price * state.size).sum())
    for part in range(_ROUNDS):
        progress(part / _ROUNDS, "searching for better groups")
        heat = _HEAT * least * (1 - (part + 1) / _ROUNDS)
        count, _ = search(
            space=space,
            tuple_of_row=lattice.tuple_of_row,
            need=need,
            state=state,
            count=count,
            least=least,
            most_work=work // _ROUNDS,
            heat=heat,
            random=random,
            scratch=scratch,
        )
    after = float((state.price[:count] * state.size[:count]).sum())
    return np.asarray(state.label) if after <= before else labels


def _need(lattice: CoverLattice, price: Floats, least: int, work: int) -> Floats:
    """What each tuple costs at least: the cheapest box with *least* rows, or what its rows' groups cost if unknown."""
    need = np.full(lattice.tuples, lattice.top_cost)
    np.minimum.at(need, lattice.tuple_of_row, price)
    room = BoxList.of(lattice, 1 << 23, 1 << 20)
    everyone = np.arange(lattice.tuples, dtype=np.int32)
    low = 0.0
    for share in (0.02, 0.05, 0.1, 0.15, 0.2):
        high = lattice.top_cost * share
        if not room.list(lattice, everyone, least, low, high, work // 8):
            break
        sizes = np.diff(room.starts[: room.count + 1])
        filled = int(room.starts[room.count])
        np.minimum.at(need, room.members[:filled], np.repeat(room.costs[: room.count], sizes))
        low = high
    return need


@settings
class Progressive:
    """Every group is a box that was the cheapest one left with enough rows in it.

    A *box* is one generalized tuple: a node per column, from the levels of its taxonomy, or for numbers from
    DAS's bins and their unions. It costs the sum of its nodes' normalized certainty penalties. Boxes are
    visited from the cheapest to the dearest; one in which the goal holds for the rows that are still there
    becomes a group, and its rows leave. The few rows left at the end join the group they widen least. Each
    group is published as the tight cover of its members, which is never wider than its box.

    That is one start of three; clusters around seeds (k-member) and cuts at medians (relaxed Mondrian) are the others, and
    the best cuts of the sorted rows where one column alone varies. The cheapest is kept: boxes win on categories, clusters on numbers. Then the groups are annealed: in rounds,
    rows move to a neighbouring group or change places with one of its rows, and a few neighbouring groups at a time are
    made anew. Early rounds keep some steps for the worse, the last none; the best grouping seen is published, never a
    dearer one than the start. Rounds are counted, not timed: the same seed gives the same release on any machine. Where
    the goal counts more than rows, steps are tried in small separate parts and kept where every group holds it. Where it
    reads sensitive values the start is published as it is: a search with them in view would tell of them.
    Interrupted once from the keyboard, the search ends with the best so far.

    Another *objective* than the loss is searched for in the same way, by `velado.release.methods.progressive.objectives`.

    Effort *fast* searches a twelfth as long, and on large tables whose best start is boxes not at all; *high* some twelve times as long.
    `lower_bound` proves how little *any* release of the same table in groups of the same size must lose.

    Cost: near O(n log n) for the tuples and their neighbours, O(n^2 d / k) for the clusters in blocks of at most 40,000
    rows, then a number of rounds of O(n k d) that falls as the table grows. Protects rows (or people, under a per-person goal) against being singled out among the
    quasi-identifiers; against nothing that other guarantees are needed for.

    >>> from velado.testing.examples import shown
    >>> shown(Progressive(), [20, 21, 30, 31])
    ['[20..21]', '[20..21]', '[30..31]', '[30..31]']
    """

    name: ClassVar[str] = "progressive"
    title: ClassVar[str] = say("Progressive generalization")
    promise: ClassVar[Promise] = "guaranteed"
    cost: ClassVar[str] = say("O(n log n) plus a counted number of search rounds")
    source: ClassVar[str] = "velado; boxes chosen per record, then annealing along a neighbour graph"

    effort: Annotated[
        Literal["fast", "default", "high"], Setting("how long to search for a better release")
    ] = "default"
    objective: ObjectiveSetting = "ncp"
    work: Annotated[int, Setting("tuples looked at before the listing of boxes ends; 0: by effort", ge=0)] = 0
    recoder: RecoderName = "cover"

    @property
    def takes(self) -> Takes:
        """Rows up to some number and tuples beyond, but for other objectives and centroids, which need rows."""
        return (
            "either"
            if ObjectiveMixture.of(self.objective).is_usual and self.recoder != "centroid"
            else "rows"
        )

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        """The table in groups in which the goal holds, each published by the recoder."""
        if data.counts is not None:
            return self._of_tuples(data, goal, int(random.integers(1 << 31)), progress)
        seed = int(random.integers(1 << 31))
        rows = records_of(data)
        if not ObjectiveMixture.of(self.objective).is_usual:
            limits = self._limits(data, rows)
            starts = starts_for(data, rows, goal, limits, seed, within(progress, 0.0, 0.3))
            return self._for_purpose(data, rows, goal, starts, seed, progress)
        begun = self.start(data, rows, goal, seed, within(progress, 0.0, 0.3))
        stopped = Stopped()
        labels = self.searched(data, rows, goal, begun, seed, within(progress, 0.3, 0.95), stopped)
        # Columns that count more than others do so here: what is published is told for each column alike.
        weighted, cells = _weighed(data)
        before, after = (_WEIGHTED_START, _WEIGHTED_SEARCHED) if weighted else (_START, _SEARCHED)
        notes: dict[str, object] = {
            NoteName("start", say("start of the search")): begun.name,
            before: begun.cost / cells,
        }
        if goal.reads_sensitive:
            notes[_SEARCH] = _IN_VIEW
        else:
            notes[after] = grouping_cost(rows, labels) / cells
        groups = Partition.of(labels)
        made = published(data, groups, goal, self.recoder, within(progress, 0.95, 0.96), notes)
        progress(1.0, "done")
        return replace(made, warnings=(*made.warnings, *stopped.warnings))

    def _of_tuples(self, data: EncodedTable, goal: Goal, seed: int, progress: Progress) -> Recoded:
        """Groups of whole tuples: steps that part equal rows are left out, since a table of counts cannot tell them apart."""
        if not ObjectiveMixture.of(self.objective).is_usual:
            raise ParameterError(
                "Another objective than ncp needs the rows, and an engine counts those with the same values together.",
                "Only boxes are made of counted rows, and they are chosen by ncp.",
                "Leave --objective out, or use --engine memory.",
            )
        lines = any(column.is_numeric for column in data.columns)
        begun = whole_tuples_start(data, goal, self._work(data, lines), within(progress, 0.0, 0.5))
        weighted, cells = _weighed(data)
        notes: dict[str, object] = {
            NoteName("start", say("start of the search")): begun.name,
            (_WEIGHTED_START if weighted else _START): begun.cost / cells,
        }
        groups = Partition.of(begun.labels)
        # A tuple that is a group by itself costs nothing: nothing it could do would pay.
        joined = np.flatnonzero(groups.kept & (groups.entries[groups.codes] > 1)) if groups.count else _NONE
        if goal.reads_sensitive:
            notes[_SEARCH] = _IN_VIEW
        elif not goal.rows_only or joined.size > MOST_SEARCHED or self.effort == "fast":
            notes[_SEARCH] = say("left out, since rows with the same values are counted together")
        else:
            notes[_SEARCH] = _WHOLE_TUPLES
            if begun.cost > 0.0 and joined.size:
                groups = self._searched_part(data, groups, joined, goal, seed, within(progress, 0.5, 0.95))
        return published(data, groups, goal, self.recoder, within(progress, 0.95, 1.0), notes)

    def _searched_part(
        self,
        data: EncodedTable,
        groups: Partition,
        joined: IntArray,
        goal: Goal,
        seed: int,
        progress: Progress,
    ) -> Partition:
        """The groups with those of the tuples *joined*, which are whole ones, made cheaper."""
        part = data.subset(joined)
        assert part.counts is not None
        begun = Partition.of(groups.labels[joined]).labels
        least, effort = max(goal.least_rows, 1), EFFORT[self.effort]
        found = searched_tuples(
            RowCovers.of(part), part.counts, begun, least, effort, seed=seed, progress=progress
        )
        labels = groups.labels.astype(np.int64)
        labels[joined] = groups.count + found
        return Partition.of(labels)

    def _work(self, data: EncodedTable, lines: bool) -> int:
        return self.work or min(max(20_000_000, (1500 if lines else 3000) * data.total), 300_000_000)

    def start(
        self,
        data: EncodedTable,
        rows: RowCovers,
        goal: Goal,
        seed: int,
        progress: Progress,
        only: str = "",
    ) -> Start:
        """Where the search begins: the cheapest of three or four groupings that keep the goal.

        With *only*, the name of one kind, that one where it can be made.

        >>> from velado.release.guarantees.k_anonymity import KAnonymity
        >>> from velado.testing.examples import encoded
        >>> data = encoded(age=[20, 21, 30, 31])
        >>> round(Progressive().start(data, RowCovers.of(data), Goal((KAnonymity(2),)), 0, silent).cost, 2)
        0.36
        """
        limits = self._limits(data, rows)
        found = []
        if only and goal.rows_only:
            found = starts_for(data, rows, goal, replace(limits, kinds=(only,)), seed, progress)
        found = found or starts_for(data, rows, goal, limits, seed, progress)
        best, *others = sorted(found, key=lambda start: start.cost)
        return replace(best, others=tuple(other.labels for other in others))

    def _limits(self, data: EncodedTable, rows: RowCovers) -> StartLimits:
        work = self._work(data, bool(rows.measure.lines))
        return StartLimits(work=work, few=4_000 if self.effort == "fast" else data.rows)

    def _for_purpose(
        self,
        data: EncodedTable,
        rows: RowCovers,
        goal: Goal,
        starts: list[Start],
        seed: int,
        progress: Progress,
    ) -> Recoded:
        """The groups that another objective than the loss asks for."""

        def told(share: float, value: float) -> None:
            within(progress, 0.3, 0.95)(
                share, say("searching for better groups: objective {value}", value=few_digits(value))
            )

        mixture = ObjectiveMixture.of(self.objective)
        effort = EFFORT[self.effort]
        stopped = Stopped()
        found = searched_for(data, rows, goal, mixture, starts, effort, seed=seed, told=told, stopped=stopped)
        notes: dict[str, object] = {
            NoteName("start", say("start of the search")): found.start.name,
            OBJECTIVE: mixture.title,
            OBJECTIVE_BEFORE: found.before,
            **({_SEARCH: _IN_VIEW} if goal.reads_sensitive else {OBJECTIVE_AFTER: found.after}),
        }
        groups = Partition.of(found.labels)
        made = published(data, groups, goal, self.recoder, within(progress, 0.95, 0.96), notes)
        progress(1.0, "done")
        return replace(made, warnings=(*made.warnings, *stopped.warnings))

    def searched(
        self,
        data: EncodedTable,
        rows: RowCovers,
        goal: Goal,
        begun: Start,
        seed: int,
        progress: Progress,
        stopped: Stopped | None = None,
    ) -> IntArray:
        """The groups of the start made cheaper, within the steps that the effort allows.

        *stopped* is told where somebody ended the search from the keyboard.

        >>> from velado.release.guarantees.k_anonymity import KAnonymity
        >>> from velado.testing.examples import encoded
        >>> data = encoded(age=[20, 30, 21, 31])
        >>> begun = Start(say("some groups"), np.array([0, 0, 1, 1], dtype=np.int32), 4.0)
        >>> groups = Progressive().searched(data, RowCovers.of(data), Goal((KAnonymity(2),)), begun, 0, silent)
        >>> bool(groups[0] == groups[2] != groups[1] == groups[3])
        True
        """
        least = max(goal.least_rows, 1)
        cells = data.rows * len(data.columns)
        _, most = _weighed(data)
        # Boxes alone are near the best on categories, and not far from it where they are the best start: a fast answer
        # on a large table stops there.
        boxed = not rows.measure.lines or begun.name == BOXES
        enough = self.effort == "fast" and boxed and goal.rows_only and cells > _SMALL
        # Groups that were searched for with sensitive values in view tell who knows the method more of these values
        # than groups that were merely made (`tests/attacks/test_minimality.py`): there the start is published.
        if enough or goal.reads_sensitive or not begun.cost > 0.0:
            return begun.labels
        if data.rows <= MOST_ROWS and goal.rows_only and not goal.suppressible(data.rows):
            tried = best_grouping(rows, least)
            return tried if grouping_cost(rows, tried) < begun.cost else begun.labels

        def told(share: float, cost: float) -> None:
            progress(share, say("searching for better groups: loss {loss}", loss=number(cost / most, 4)))

        # On categories alone, where rows are often equal or groups large, the exchange of single rows finds little that
        # whole boxes would not: much of the work is theirs.
        alike = rows.records < _DISTINCT * data.rows or least >= _LARGE_K
        boxes = goal.rows_only and not rows.measure.lines and alike and self.effort != "fast"
        effort = EFFORT[self.effort] * (0.65 if boxes else 1.0)
        schedule = Schedule.of(data.rows, len(data.columns), least, goal.suppressible(data.rows), effort)
        world = world_for(data, rows)
        judge = None if goal.rows_only else lambda groups: goal.holds_in_parts(data, groups)
        labels: IntArray = annealed(
            world, begun.labels, least, schedule, seed, told, judge, stopped=stopped, others=begun.others
        )
        if boxes:
            random = seeded(seed, self.name)
            found = Partition.of(labels).labels
            seconds = _BOXES[self.effort] * (2 if self.effort == "high" and least >= _LARGE_K else 1)
            if self.effort == "default":
                seconds -= _LESS_BOXES * spared(data.rows)
            labels = improved(lattice(data), found, least, seconds, random, silent)
        return labels


def _weighed(data: EncodedTable) -> tuple[bool, float]:
    """Whether columns have weights of their own, and what all cells together can cost."""
    weights = [column.weight for column in data.columns]
    return any(weight != 1.0 for weight in weights), max(data.total * float(sum(weights)), 1e-12)


_START = NoteName("start_loss", say("loss of the start"), share=True)
_SEARCHED = NoteName("searched_loss", say("loss after the search"), share=True)
_WEIGHTED_START = NoteName("start_loss", say("loss of the start, each column by its weight"), share=True)
_WEIGHTED_SEARCHED = NoteName(
    "searched_loss", say("loss after the search, each column by its weight"), share=True
)
_LARGE_K = 20
_DISTINCT = 0.9
_SMALL = 20_000
EFFORT = {"fast": 0.08, "default": 1.0, "high": 11.5}
"""About how many times the work of the default is done."""
_BOXES = {"default": 1.5, "high": 30.0}
"""About how many seconds of one core the listing of boxes has; twice that for large groups at high effort."""
_LESS_BOXES = 0.5
"""So many fewer by default where a table is so large that searches are cut short: the last third gained 0.0001 there."""
