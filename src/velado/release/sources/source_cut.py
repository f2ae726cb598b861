"""Cut first: strict Mondrian's first cuts from histograms of a source, then its parts finished here a few at a time.

A cut needs of a part how wide each column is, the counts of the codes in the column that is tried, and, for promises about
values and people, the counts of these on each side. All that an engine counts where the rows lie. Once a part is small its tuples come
here and the method goes on from there, with the whole table's totals handed down: the cells are those of the one run in memory.
Which cell a tuple is in goes back at once; here stay the cells alone, each with its least and its greatest codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from velado.data.encoded import EncodedTable
from velado.data.partition import (
    BoolArray,
    GroupCounts,
    Int32Array,
    Int64Array,
    Partition,
    ValueCounts,
    ValueEntries,
)
from velado.engines.row_source import ROWS
from velado.engines.sql_cut import CutRows, PartCuts
from velado.release.goal import Goal, Progress, silent, within
from velado.release.methods.mondrian import CutPlan, Mondrian, branches, halves
from velado.release.sources.source_plan import Cuttable
from velado.release.sources.source_tuples import SourceCodes, SourceTuples, changed_meanwhile
from velado.text import say


def cut_source(
    codes: SourceCodes,
    method: Mondrian,
    goal: Goal,
    *,
    weights: Mapping[str, float],
    part_rows: int,
    progress: Progress = silent,
) -> tuple[SourceTuples, Partition]:
    """The cells that *method* cuts a source into, two entries for each, and which entry is in which cell.

    Parts of more than *part_rows* rows are cut by histograms; the cells do not depend on it. *weights* are those of columns.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.release.sources.source_tuples import read_codes
    >>> from velado.testing.examples import table
    >>> codes = read_codes(of_arrow(pa.table({"age": [20, 21, 40, 41]})), table(age=[20]).schema)
    >>> found, cells = cut_source(codes, Mondrian(), Goal((KAnonymity(2),)), weights={}, part_rows=2)
    >>> found.data.columns[0].codes.tolist(), cells.sizes.tolist(), found.rounds
    ([0, 1, 2, 3], [2, 2], 1)
    """
    source = codes.used
    assert isinstance(source, Cuttable)
    missing = [one.encoded.missing for one in codes.columns]
    progress(0.0, say("coding the rows"))
    beside = [*codes.values.values(), *([] if codes.person is None else [codes.person])]
    rows = source.cut_rows(codes.keys, beside, missing)
    ends = [np.array([0, c.encoded.size - 1 if c.encoded.missing < 0 else c.encoded.missing], np.int32) for c in codes.columns]  # fmt: skip
    domains = codes.table(ends, np.ones(2, np.int64), {}, None).weighted(weights)
    plan = CutPlan.of(domains, method.categories == "ordered")
    judge = _Judge(codes, goal, rows)
    parts = _cut_parts(rows, plan, judge, source.rows, part_rows, within(progress, 0.05, 0.5))
    rows.lay()
    cells = _Cells(codes)
    for first, last in _batches(parts, part_rows):
        progress(0.5 + 0.5 * cells.done / source.rows, say("finishing parts of the table"))
        if parts.whole[first] and parts.rows[first] > part_rows:
            _keep_whole(rows, first, int(parts.rows[first]), cells)
        else:
            _finish(rows, first, last, cells, method, goal, weights)
    if cells.done != source.rows:
        raise changed_meanwhile(source)
    data = cells.table()
    labels = np.repeat(np.arange(cells.count, dtype=np.int32), 2)
    made = SourceTuples(None, data, rows.sizes(), rounds=parts.rounds, parts=int(parts.rows.size))
    return made, Partition(labels, cells.count, weights=data.counts)


@dataclass(frozen=True)
class _Parts:
    """The rows of each part, from left to right in the tree of cuts, and whether it is known that it cannot be cut further."""

    rows: Int64Array
    whole: BoolArray
    rounds: int


def _cut_parts(
    rows: CutRows, plan: CutPlan, judge: _Judge, total: int, most: int, progress: Progress
) -> _Parts:
    """Parts of at most *most* rows, or such as cannot be cut."""
    least = judge.goal.least_rows
    sizes = np.array([total], dtype=np.int64)
    whole = sizes < 2 * least
    rounds = 0
    while bool((open_ := ~whole & (sizes > most)).any()):
        small = float(sizes[~open_].sum()) / total
        progress(small, say("cutting the table by histograms, round {n}", n=rounds + 1))
        at = np.flatnonzero(open_)
        made = _round(rows, plan, judge, at, least)
        rounds += 1
        whole[at[made.parts == 1]] = True
        if not bool((made.parts > 1).any()):
            break
        count = np.ones(sizes.size, dtype=np.int64)
        count[at] = made.parts
        first = np.cumsum(count) - count
        rows.cut(made.cuts(at, first))
        new_sizes = np.repeat(sizes, count)
        new_whole = np.repeat(whole, count)
        for local in np.flatnonzero(made.parts > 1).tolist():
            begin = first[at[local]]
            new_sizes[begin : begin + made.parts[local]] = made.rows[local]
        was_cut = np.repeat(count > 1, count)
        sizes, whole = new_sizes, np.where(was_cut, new_sizes < 2 * least, new_whole)
    return _Parts(sizes, whole, rounds)


@dataclass
class _Round:
    """What becomes of each open part: how many *parts* it is cut into, along which *column*, where each code goes, their *rows*."""

    parts: Int64Array
    column: Int64Array
    codes: list[Int32Array]
    child: list[Int64Array]
    rows: list[Int64Array]

    @classmethod
    def of(cls, count: int) -> _Round:
        none = [np.empty(0, np.int64)] * count
        return cls(
            np.ones(count, np.int64),
            np.full(count, -1, np.int64),
            [np.empty(0, np.int32)] * count,
            list(none),
            list(none),
        )

    def cuts(self, at: Int64Array, first: Int64Array) -> PartCuts:
        """The cuts as an engine is told: every part is named, those *at* are cut as decided; *first* numbers all anew."""
        total = first.size
        column, last = np.full(total, -1, np.int64), np.zeros(total, np.int64)
        many = np.zeros(total, dtype=bool)
        column[at] = self.column
        last[at] = [self._last(local) for local in range(at.size)]
        many[at] = self.parts > 2
        return PartCuts(np.arange(total), column, last, first, many, self._branches(at))

    def proposed(self, at: Int64Array, locals_: Int64Array, first: Int64Array) -> PartCuts:
        """The cuts of some parts only, numbered by *first*."""
        last = np.array([self._last(local) for local in locals_.tolist()], dtype=np.int64)
        many = self.parts[locals_] > 2
        return PartCuts(at[locals_], self.column[locals_], last, first, many, self._branches(at, locals_))

    def _last(self, local: int) -> int:
        left = self.codes[local][self.child[local] == 0]
        return int(left.max()) if left.size else 0

    def _branches(
        self, at: Int64Array, locals_: Int64Array | None = None
    ) -> tuple[Int64Array, Int64Array, Int64Array] | None:
        chosen = range(at.size) if locals_ is None else locals_.tolist()
        many = [local for local in chosen if self.parts[local] > 2]
        if not many:
            return None
        part = np.concatenate([np.full(self.codes[local].size, at[local]) for local in many])
        codes = np.concatenate([self.codes[local] for local in many]).astype(np.int64)
        return part, codes, np.concatenate([self.child[local] for local in many])


def _round(rows: CutRows, plan: CutPlan, judge: _Judge, at: Int64Array, least: int) -> _Round:
    """Each of the parts *at* cut along the widest column that allows it, as Mondrian does with all entries at hand."""
    low, high = rows.ends(at)
    columns = low.shape[1]
    width = np.stack([plan.widths(c, low[:, c], high[:, c]) for c in range(columns)], axis=1)
    width[low == high] = 0.0
    preference = np.argsort(-width, axis=1, kind="stable")
    decided = _Round.of(at.size)
    for attempt in range(columns):
        chosen = preference[:, attempt]
        trying = np.flatnonzero((decided.parts == 1) & (width[np.arange(at.size), chosen] > 0))
        if not trying.size:
            break
        tried = _Round.of(at.size)
        part, code, count = rows.histograms(at[trying], chosen[trying])
        begins = np.searchsorted(part, at[trying])
        for local, begin, end in zip(
            trying.tolist(), begins.tolist(), [*begins[1:].tolist(), part.size], strict=True
        ):
            codes, weight, size = code[begin:end], count[begin:end], np.array([end - begin])
            column = int(chosen[local])
            if plan.trees[column] is not None:
                ends = low[local : local + 1, column], high[local : local + 1, column]
                child = branches(plan, column, codes, size, *ends)
            else:
                child = halves(codes, size, weight, relaxed=False)
            sides = np.bincount(child, weight).astype(np.int64)
            if int(sides.min()) < least:
                continue
            tried.parts[local], tried.column[local] = sides.size, column
            tried.codes[local], tried.child[local], tried.rows[local] = codes, child, sides
        for local in judge.good(at, tried).tolist():
            decided.parts[local], decided.column[local] = tried.parts[local], tried.column[local]
            decided.codes[local], decided.child[local] = tried.codes[local], tried.child[local]
            decided.rows[local] = tried.rows[local]
    return decided


@dataclass(frozen=True)
class _Judge:
    """Which proposed cuts keep the goal on every side, with the whole table's totals beside the sides' own counts."""

    codes: SourceCodes
    goal: Goal
    rows: CutRows

    def good(self, at: Int64Array, tried: _Round) -> Int64Array:
        """The numbers of the parts, among those *at*, whose proposed cut may be made."""
        proposed = np.flatnonzero(tried.parts > 1)
        if not proposed.size or self.goal.rows_only:
            return proposed
        count = tried.parts[proposed]
        first = np.cumsum(count) - count
        cuts = tried.proposed(at, proposed, first)
        sides = np.concatenate([tried.rows[local] for local in proposed.tolist()])
        groups = _group_counts(self.codes, self.rows, cuts, sides)
        return np.asarray(proposed[np.logical_and.reduceat(self.goal.holds_in(groups), first)])


def _group_counts(codes: SourceCodes, rows: CutRows, cuts: PartCuts, sides: Int64Array) -> GroupCounts:
    """What guarantees read of the parts that *cuts* would make, whose rows are *sides*."""
    sensitive = {}
    for number, name in enumerate(codes.values):
        part, value, count = rows.beside(number, cuts)
        sensitive[name] = ValueCounts(
            part, value.astype(np.int64), count, codes.totals[name], codes.shapes.get(name)
        )
    people = None
    if codes.person is not None:
        people = np.zeros(sides.size, dtype=np.int64)
        part, number_of = rows.different(len(codes.values), cuts)
        people[part] = number_of
    return GroupCounts(sides, people, sensitive)


def _batches(parts: _Parts, most: int) -> list[tuple[int, int]]:
    """The first and the last part of each lot that is finished at once: neighbours with at most *most* rows in all."""
    out: list[tuple[int, int]] = []
    first, held = 0, 0
    for at, (size, whole) in enumerate(zip(parts.rows.tolist(), parts.whole.tolist(), strict=True)):
        alone = whole and size > most
        if at > first and (alone or held + size > most):
            out.append((first, at - 1))
            first, held = at, 0
        held += size
        if alone:
            out.append((at, at))
            first, held = at + 1, 0
    if first < parts.rows.size:
        out.append((first, int(parts.rows.size) - 1))
    return out


@dataclass
class _Cells:
    """The cells found so far: their least and greatest codes, their rows, and what these hold."""

    codes: SourceCodes
    low: list[Int32Array] = field(default_factory=list)
    high: list[Int32Array] = field(default_factory=list)
    rows: list[Int64Array] = field(default_factory=list)
    held: dict[str | None, list[tuple[Int64Array, Int32Array, Int64Array]]] = field(default_factory=dict)
    count: int = 0
    done: int = 0

    def add(self, low: Int32Array, high: Int32Array, rows: Int64Array) -> None:
        """More cells, to the right of all others; *low* and *high* are cells x columns."""
        self.low.append(low)
        self.high.append(high)
        self.rows.append(rows)
        self.count += rows.size
        self.done += int(rows.sum())

    def hold(self, name: str | None, at: Int64Array, codes: Int32Array, counts: Int64Array) -> None:
        """What more cells hold of a sensitive column, or of people for None."""
        self.held.setdefault(name, []).append((at, codes, counts))

    def table(self) -> EncodedTable:
        """Two entries for each cell, its corners; rows, values and people are counted with the first."""
        low, high = np.concatenate(self.low), np.concatenate(self.high)
        corners = np.stack([low, high], axis=1).reshape(2 * self.count, low.shape[1])
        counts = np.zeros(2 * self.count, dtype=np.int64)
        counts[::2] = np.concatenate(self.rows)
        sizes = {name: coding.size for name, coding in self.codes.values.items()}
        sensitive = {name: self._entries(name, size) for name, size in sizes.items()}
        person = self.codes.person
        people = None if person is None else self._entries(None, person.size)
        columns = [np.ascontiguousarray(corners[:, at]) for at in range(corners.shape[1])]
        return self.codes.table(columns, counts, sensitive, people)

    def _entries(self, name: str | None, size: int) -> ValueEntries:
        at, codes, counts = (np.concatenate(parts) for parts in zip(*self.held[name], strict=True))
        return ValueEntries(2 * at, codes, counts, size)


def _keep_whole(rows: CutRows, part: int, size: int, cells: _Cells) -> None:
    """A part that cannot be cut and is too large to come here is a cell as it stands; the engine knows its tuples."""
    low, high = rows.ends(np.array([part]))
    width = len(cells.codes.columns)
    none, cell = np.full(1, -1, np.int64), np.array([cells.count], dtype=np.int64)
    itself = PartCuts(np.array([part]), none, none, cell, none > 0)
    names: list[str | None] = [*cells.codes.values, *([] if cells.codes.person is None else [None])]
    for number, name in enumerate(names):
        cells.hold(name, *rows.beside(number, itself))
    rows.keep_whole(part, cells.count)
    cells.add(low[:, :width], high[:, :width], np.array([size], dtype=np.int64))


def _finish(
    rows: CutRows,
    first: int,
    last: int,
    cells: _Cells,
    method: Mondrian,
    goal: Goal,
    weights: Mapping[str, float],
) -> None:
    """The tuples of parts *first*..*last* come here, are cut to the end, and go back with their cells."""
    codes = cells.codes
    found = rows.tuples(first, last)

    def column(name: str) -> Int64Array:
        return np.asarray(found.column(name).to_numpy(), dtype=np.int64)

    part, keys, number = column("part"), [column(name) for name in codes.keys.names], column(ROWS)
    new = np.ones(part.size, dtype=bool)
    new[1:] = part[1:] != part[:-1]
    begins_part = new.copy()
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    at, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    entries = tuple(key[starts] for key in keys)
    counts = np.add.reduceat(number, starts)
    listed: Callable[[int, int], ValueEntries] = lambda which, size: ValueEntries.of(  # noqa: E731
        at, column(f"v{which}"), number, size
    )
    values = {name: listed(n, one.size) for n, (name, one) in enumerate(codes.values.items())}
    person = codes.person
    people = None if person is None else listed(len(values), person.size)
    data = codes.table(codes.keys.unpack(entries), counts, values, people, part=True).weighted(weights)
    groups = method.partition_parts(data, goal, at[begins_part].astype(np.int64), silent)
    for name, held in [*values.items(), *([] if people is None else [(None, people)])]:
        of_groups = ValueEntries.regrouped(held, groups.labels, None)
        cells.hold(name, of_groups.at + cells.count, of_groups.codes, of_groups.counts)
    rows.keep(entries, groups.labels.astype(np.int64) + cells.count, counts)
    covers = [groups.least_and_greatest(one.codes) for one in data.columns]
    low, high = (np.stack([cover[end] for cover in covers], axis=1) for end in (0, 1))
    cells.add(low, high, groups.sizes)
