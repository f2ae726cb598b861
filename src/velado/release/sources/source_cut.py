"""Cut first: strict Mondrian's first cuts from histograms of a source, then its parts finished here a few at a time.

A cut needs of a part how wide each column is, the counts of the codes in the column that is tried, and, for promises about
values and people, the counts of these on each side. All that an engine counts where the rows lie. Once a part is small its tuples come
here and the method goes on from there, with the whole table's totals handed down: the cells are those of the one run in memory.
Which cell a tuple is in goes back at once; here stay the cells alone, each with its least and its greatest codes. Spark's parts
are finished on its workers by the same code, and only their cells come here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from velado.data.encoded import EncodedColumn, EncodedTable
from velado.data.partition import (
    BoolArray,
    GroupCounts,
    Int32Array,
    Int64Array,
    Partition,
    ValueCounts,
    ValueEntries,
    ValueShape,
)
from velado.engines.row_source import ROWS
from velado.engines.sql_cut import CutHere, CutRows, CutThere, PartCuts
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
    cells = _Cells(codes)
    work = LotWork.of(codes, method, goal, weights)
    if isinstance(rows, CutThere):
        progress(0.5, say("finishing parts of the table"))
        _finish_there(rows, parts, part_rows, cells, work)
    else:
        rows.lay()
        for first, last in _batches(parts, part_rows):
            progress(0.5 + 0.5 * cells.done / source.rows, say("finishing parts of the table"))
            if parts.whole[first] and parts.rows[first] > part_rows:
                _keep_whole(rows, first, int(parts.rows[first]), cells)
            else:
                _finish(rows, first, last, cells, work)
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

    @property
    def names(self) -> list[str | None]:
        """What is counted beside the tuples: the sensitive columns, and None for people."""
        return [*self.codes.values, *([] if self.codes.person is None else [None])]

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


def _keep_whole(rows: CutHere, part: int, size: int, cells: _Cells) -> None:
    """A part that cannot be cut and is too large to come here is a cell as it stands; the engine knows its tuples."""
    low, high = rows.ends(np.array([part]))
    width = len(cells.codes.columns)
    none, cell = np.full(1, -1, np.int64), np.array([cells.count], dtype=np.int64)
    itself = PartCuts(np.array([part]), none, none, cell, none > 0)
    for number, name in enumerate(cells.names):
        cells.hold(name, *rows.beside(number, itself))
    rows.keep_whole(part, cells.count)
    cells.add(low[:, :width], high[:, :width], np.array([size], dtype=np.int64))


@dataclass(frozen=True, repr=False)
class LotWork:
    """Parts of a table cut to the end: all that this takes beside their tuples, so that it can be sent to where these are.

    *columns* have no codes; *values* are the sizes of sensitive columns, *people* that of the people, *totals* the whole table's counts.

    >>> LotWork.__name__
    'LotWork'
    """

    columns: tuple[EncodedColumn, ...]
    values: Mapping[str, int]
    people: int | None
    totals: Mapping[str, Int64Array]
    shapes: Mapping[str, ValueShape]
    method: Mondrian
    goal: Goal

    @classmethod
    def of(cls, codes: SourceCodes, method: Mondrian, goal: Goal, weights: Mapping[str, float]) -> LotWork:
        """The work on parts of a coded source, whose columns have *weights*."""
        none = [np.empty(0, np.int32)] * len(codes.columns)
        empty = codes.table(none, np.empty(0, np.int64), {}, None).weighted(weights)
        return cls(
            empty.columns,
            {name: coding.size for name, coding in codes.values.items()},
            None if codes.person is None else codes.person.size,
            dict(codes.totals),
            dict(codes.shapes),
            method,
            goal,
        )

    def groups(
        self,
        part: Int64Array,
        codes: Sequence[Int32Array],
        counts: Int64Array,
        held: Sequence[ValueEntries],
    ) -> tuple[EncodedTable, Partition]:
        """Distinct tuples, their parts one after the other, as a table and in the groups they are cut into, from left to right."""
        columns = tuple(replace(one, codes=own) for one, own in zip(self.columns, codes, strict=True))
        sensitive = dict(zip(self.values, held, strict=False))
        people = None if self.people is None else held[-1]
        data = EncodedTable(
            columns, int(counts.size), people, sensitive, self.shapes, counts=counts, whole=self.totals
        )
        begins = np.flatnonzero(np.diff(part, prepend=-1)).astype(np.int64)
        return data, self.method.partition_parts(data, self.goal, begins, silent)

    @property
    def sizes(self) -> list[int]:
        """The numbers of codes of every column that is counted beside the tuples."""
        return [*self.values.values(), *([] if self.people is None else [self.people])]

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Rows of some parts (`part`, `c0`, ..., `v0`, ...): the distinct ones with `rows` and their `cell` within the part."""
        names = rows.column_names
        frame = cast(pl.DataFrame, pl.from_arrow(rows))
        found = frame.group_by(names).len(ROWS).sort(names)
        codes = [f"c{at}" for at in range(len(self.columns))]
        number = found.get_column(ROWS).to_numpy().astype(np.int64)
        columns = {name: found.get_column(name).to_numpy().astype(np.int32) for name in names}
        at, starts = _entries([columns[name] for name in ("part", *codes)])
        held = [
            ValueEntries.of(at, columns[f"v{which}"].astype(np.int64), number, size)
            for which, size in enumerate(self.sizes)
        ]
        part = columns["part"][starts].astype(np.int64)
        counts = np.add.reduceat(number, starts)
        _, groups = self.groups(part, [columns[name][starts] for name in codes], counts, held)
        labels = groups.labels.astype(np.int64)
        begins = np.flatnonzero(np.diff(part, prepend=-1))
        first = np.repeat(np.minimum.reduceat(labels, begins), np.diff(begins, append=part.size))
        cell = (labels - first)[at].astype(np.int32)
        return found.with_columns(pl.Series("cell", cell)).to_arrow()


def _entries(columns: Sequence[npt.NDArray[Any]]) -> tuple[Int64Array, Int64Array]:
    """Which of the distinct combinations each of the sorted rows of *columns* has, and where each of these begins."""
    new = np.ones(columns[0].size, dtype=bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.cumsum(new) - 1, np.flatnonzero(new)


def _finish(rows: CutHere, first: int, last: int, cells: _Cells, work: LotWork) -> None:
    """The tuples of parts *first*..*last* come here, are cut to the end, and go back with their cells."""
    codes = cells.codes
    found = rows.tuples(first, last)

    def column(name: str) -> Int64Array:
        return np.asarray(found.column(name).to_numpy(), dtype=np.int64)

    part, keys, number = column("part"), [column(name) for name in codes.keys.names], column(ROWS)
    at, starts = _entries([part, *keys])
    entries = tuple(key[starts] for key in keys)
    counts = np.add.reduceat(number, starts)
    held = [ValueEntries.of(at, column(f"v{which}"), number, size) for which, size in enumerate(work.sizes)]
    data, groups = work.groups(part[starts], codes.keys.unpack(entries), counts, held)
    for name, one in zip(cells.names, held, strict=True):
        of_groups = ValueEntries.regrouped(one, groups.labels, None)
        cells.hold(name, of_groups.at + cells.count, of_groups.codes, of_groups.counts)
    rows.keep(entries, groups.labels.astype(np.int64) + cells.count, counts)
    covers = [groups.least_and_greatest(one.codes) for one in data.columns]
    low, high = (np.stack([cover[end] for cover in covers], axis=1) for end in (0, 1))
    cells.add(low, high, groups.sizes)


def _finish_there(rows: CutThere, parts: _Parts, most: int, cells: _Cells, work: LotWork) -> None:
    """All parts are cut to the end where they lie, and their cells come here."""
    lots = _batches(parts, most)
    alone = [first for first, _ in lots if parts.whole[first] and parts.rows[first] > most]
    rows.finish(work, [lot for lot in lots if lot[0] not in set(alone)], alone)
    found = rows.cells()

    def column(table: pa.Table, name: str) -> Int64Array:
        return np.asarray(table.column(name).to_numpy(), dtype=np.int64)

    part, cell = column(found, "part"), column(found, "cell")
    # Cells are numbered from left to right: by their part, and within it.
    first = np.searchsorted(part, np.arange(parts.rows.size))
    low, high = (
        np.stack([column(found, f"{end}{at}") for at in range(len(cells.codes.columns))], axis=1).astype(
            np.int32
        )
        for end in ("low", "high")
    )
    assert np.array_equal(first[part] + cell, np.arange(part.size))
    cells.add(low, high, column(found, ROWS))
    for number, name in enumerate(cells.names):
        held = rows.held(number)
        at = first[column(held, "part")] + column(held, "cell")
        cells.hold(name, at, column(held, "code").astype(np.int32), column(held, ROWS))
