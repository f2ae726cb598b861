"""A release of a table on an engine as it is planned: the method on counted tuples, and what is published for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from velado.data.counted import MOST_EXPANDED, expanded, listed
from velado.data.encoded import EncodedTable
from velado.data.keys import Key
from velado.data.partition import BoolArray, Int32Array, Int64Array, ValueEntries, group_by_codes
from velado.data.schema import Schema
from velado.data.table import Undeclared
from velado.engines.row_source import Recoding, RowSource
from velado.errors import GuaranteeNotMet, ParameterError
from velado.randomness import seeded
from velado.release.asked_goal import goal_of, refuse_blanks, refuse_few
from velado.release.goal import Checked, Goal, Progress, Promise, check_published, silent, within
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods import _method
from velado.release.methods._method import Method, repair
from velado.release.methods.mondrian import Mondrian
from velado.release.prepare import check_columns
from velado.release.recoded import Recoded
from velado.release.release import settled
from velado.release.run_settings import Plan
from velado.release.sources.source_check import Judged, judge, refuse_not_yet
from velado.release.sources.source_cut import cut_source
from velado.release.sources.source_plan import ChosenPlan, choose_plan
from velado.release.sources.source_tuples import (
    SourceCodes,
    SourceTuples,
    count_rows,
    count_tuples,
    read_codes,
    refuse_cells,
)
from velado.text import join, say


@dataclass(frozen=True, repr=False)
class PreparedSource:
    """A source judged, coded, and, where all its distinct tuples fit here, counted: ready for one method or for several.

    *counted* is None where the source is to be cut first.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> prepare_source(of_arrow(pa.table({"age": [20, 30]})), table(age=[20, 30]).schema).tuples.data.total
    2
    """

    source: RowSource
    judged: Judged
    codes: SourceCodes
    chosen: ChosenPlan
    counted: SourceTuples | None
    per: str | None
    warnings: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The schema with every column that is kept."""
        return self.judged.schema

    @property
    def tuples(self) -> SourceTuples:
        """The counted tuples, or the corners of cells."""
        if self.counted is None:
            raise ValueError("the source is not cut yet: plan_release does it")
        return self.counted

    @property
    def data(self) -> EncodedTable:
        """The same, as methods see them."""
        return self.tuples.data


def prepare_source(
    source: RowSource,
    schema: Schema,
    *,
    per: str | None = None,
    undeclared: Undeclared = "refuse",
    values: bool = True,
    people: bool = True,
    method: Method | None = None,
    plan: Plan = "auto",
    progress: Progress = silent,
) -> PreparedSource:
    """The source judged and counted, or an error: nothing that identifies would be published, people are settled.

    Sensitive *values* and *people* behind each tuple are counted only where a promise speaks of them. For one *method* the
    *plan* may be to cut first, and then no tuple is counted yet.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> prepare_source(of_arrow(pa.table({"age": [20, 30]})), table(age=[20, 30]).schema).warnings
    ()
    """
    progress(0.0, say("looking at a sample"))
    judged = judge(source, schema, per, undeclared)
    refuse_not_yet(judged.schema)
    progress(0.15, say("checking the columns that leave as they came"))
    refuse_cells(source, judged.schema)
    codes = read_codes(
        source, judged.schema, values=values, people=people, progress=within(progress, 0.2, 0.7)
    )
    if method is not None:
        _refuse_rows(method, codes.used)
    chosen = _COUNTED if method is None else choose_plan(plan, codes, method)
    progress(0.7, say("plan {plan}: {why}", plan=chosen.name, why=chosen.why))
    counted = count_tuples(codes, within(progress, 0.7, 1.0)) if chosen.name == "compress" else None
    domains = EncodedTable(tuple(replace(one.encoded, moved=None) for one in codes.columns), 0)
    warnings = (*check_columns(domains, judged.schema), *codes.warnings)
    return PreparedSource(source, judged, codes, chosen, counted, per, warnings)


_COUNTED = ChosenPlan("compress", say("Several methods may run on the same tuples."))


@dataclass(frozen=True, repr=False)
class PlannedRelease:
    """What would be published of a source, decided on its counted tuples; nothing is written yet.

    *recoded* speaks of entries of `prepared.data`; *planned* is what was found on the published texts of those. *shown* are
    the texts of each visible group, *group* the group of each entry that is published.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.examples import table
    >>> ready = prepare_source(of_arrow(pa.table({"age": [20, 30]})), table(age=[20, 30]).schema)
    >>> plan_release(ready, Mondrian(), k=2)
    PlannedRelease(2 of 2 rows by mondrian; 1 groups)
    """

    prepared: PreparedSource
    recoded: Recoded
    planned: Checked
    method: Method
    goal: Goal
    seed: int
    shown: pl.DataFrame
    group: Int32Array

    def __repr__(self) -> str:
        return (
            f"PlannedRelease({self.rows:,} of {self.prepared.source.rows:,} rows by {self.method.name}; "
            f"{self.planned.partition.count:,} groups)"
        )

    @property
    def counts(self) -> Int64Array:
        """The rows behind each entry."""
        counts = self.prepared.data.counts
        assert counts is not None
        return counts

    @property
    def rows(self) -> int:
        """How many rows would be published."""
        return int(self.counts[self.recoded.kept].sum())

    @property
    def suppressed(self) -> int:
        """How many rows of the source are left out."""
        return self.prepared.source.rows - self.rows

    @property
    def promise(self) -> Promise:
        """What kind of promise it is."""
        kept = self.goal.guarantees == () or self.method.promise == "as in the paper"
        return self.method.promise if kept else "guaranteed"

    @cached_property
    def losses(self) -> dict[str, float]:
        """Mean normalized certainty penalty of each quasi-identifier; rows left out count 1."""
        return self._losses(public=False)

    @cached_property
    def public_losses(self) -> dict[str, float]:
        """The same as far as the published table itself shows it: domains are the range of the rows that left."""
        return self._losses(public=True)

    def _losses(self, public: bool) -> dict[str, float]:
        kept, rows, out = self.recoded.kept, self.prepared.source.rows, dict[str, float]()
        for column, published in zip(self.prepared.data.columns, self.recoded.columns, strict=True):
            losses = published.losses(column)
            losses = losses if bool(kept.all()) else losses[kept]
            declared = self.prepared.schema.columns[column.name].bounds is not None
            if public and column.points is not None and not declared:
                seen = column.points[column.codes[kept & (column.codes != column.missing)]]
                span = float(seen.max() - seen.min()) if seen.size else 0.0
                if span > 0:
                    losses = np.minimum(losses * column.span / span, 1.0)
            out[column.name] = float((losses @ self.counts[kept] + self.suppressed) / rows)
        return out

    @property
    def loss(self) -> float:
        """Mean normalized certainty penalty over rows and quasi-identifiers."""
        return float(np.mean(list(self.losses.values())))

    @property
    def columns(self) -> tuple[str, ...]:
        """The published columns in the source's order."""
        known = self.prepared.schema.columns
        return tuple(n for n in self.prepared.source.types.names if n in known and known[n].published)

    def recoding(self, key: Key, content: bytes = b"") -> Recoding:
        """What the engine is told: the group of every tuple that is published, and the groups' texts.

        The order of rows is drawn under *key*, from a digest of the *content* too, so that two releases share none.
        """
        kept = self.recoded.kept
        texts = {}
        example = _examples(self.group, self.shown.height)
        for column in self.recoded.columns:
            if not self._unchanged(column.name):
                # As a series of its own kind: a mean is a number, not a text.
                cells = replace(column, codes=column.codes[kept][example])
                texts[column.name] = cells.series(np.ones(example.size, dtype=bool)).to_arrow()
        keys, entries, group = self.prepared.codes.keys, self.prepared.tuples.entries, self.group
        if entries is None:
            of_entry = np.full(kept.size, -1, dtype=np.int32)
            of_entry[kept] = group
            group = of_entry[::2]
        else:
            entries = tuple(own[kept] for own in entries)
        order = int(key.digest(b"row order of an engine" + content)[:16], 16)
        return Recoding(keys, entries, group, texts, self.columns, order)

    def _unchanged(self, name: str) -> bool:
        """Whether every published text of a column is the one its rows had: then its cells leave as they came."""
        columns, data = self.prepared.codes.columns, self.prepared.data
        at = next(n for n, one in enumerate(columns) if one.encoded.name == name)
        kept = self.recoded.kept
        texts, spellings = columns[at].single_texts()
        codes = np.unique(data.columns[at].codes[kept])
        if bool((spellings[codes] != 1).any()):
            return False
        published = self.recoded.columns[at]
        pairs, count = group_by_codes(
            [data.columns[at].codes[kept], published.codes[kept]],
            [data.columns[at].size, len(published.values)],
        )
        example = _examples(pairs, count)
        own = pl.Series(
            [texts[code] for code in data.columns[at].codes[kept][example].tolist()], dtype=pl.String
        )
        shown = replace(published, codes=published.codes[kept][example])
        return bool(own.eq_missing(shown.series(np.ones(count, dtype=bool)).cast(pl.String)).all())

    def people_of(self, groups: pl.DataFrame) -> ValueEntries | None:
        """The people behind each of *groups* (published texts), from the second count of tuples and people."""
        people = self.prepared.data.people
        if people is None:
            return None
        assert isinstance(people, ValueEntries)
        numbered = self.shown.join(
            groups.with_row_index("at"),
            on=groups.columns,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        of_group = numbered.get_column("at").cast(pl.Int64).fill_null(-1).to_numpy()
        of_entry = np.full(self.recoded.kept.size, -1, dtype=np.int64)
        of_entry[self.recoded.kept] = of_group[self.group]
        at = of_entry[people.at]
        there = at >= 0
        return ValueEntries.of(at[there], people.codes[there], people.counts[there], people.size)


def _examples(labels: Int32Array, count: int) -> Int64Array:
    """An entry of each group."""
    out = np.zeros(count, dtype=np.int64)
    out[labels] = np.arange(labels.size)
    return out


def plan_release(
    prepared: PreparedSource,
    method: Method,
    *,
    k: int | None = None,
    guarantees: Sequence[Guarantee] = (),
    suppression: float = 0.0,
    seed: int = 0,
    progress: Progress = silent,
) -> PlannedRelease:
    """What *method* would publish, checked on the texts of its counted tuples; or the error that a table in memory gets.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.examples import table
    >>> ready = prepare_source(of_arrow(pa.table({"age": [20, 30, 40, 41]})), table(age=[20]).schema)
    >>> plan_release(ready, Mondrian(), k=2).planned.verdicts[0].achieved
    2
    """
    refuse_population(guarantees)
    rows, codes = prepared.source.rows, prepared.codes
    _refuse_rows(method, codes.used)
    goal = goal_of(prepared.schema, prepared.per, method, k, guarantees, suppression)
    _refuse_uncounted(prepared, goal)
    refuse_blanks(codes.blank_rows, rows, goal)
    refuse_few(codes.used.rows, goal)
    progress(0.0, method.title)
    spare = goal.suppressible(rows) - codes.blank_rows
    weights = {column.name: column.weight for column in prepared.schema.quasi}
    cells = None
    if prepared.counted is None:
        assert isinstance(method, Mondrian)
        parts = prepared.chosen.part_rows
        counted, cells = cut_source(codes, method, goal, weights=weights, part_rows=parts, progress=progress)
        prepared = replace(prepared, counted=counted)
    elif _takes_rows(method, codes.used):
        why = say("Up to {most:,} rows are taken one by one, as in memory.", most=_most_rows(method))
        codes, counted = count_rows(codes)
        chosen = replace(prepared.chosen, why=join((prepared.chosen.why, why)))
        prepared = replace(prepared, codes=codes, counted=counted, chosen=chosen)
    elif method.takes == "either" and rows <= _most_rows(method):
        why = say(
            "Rows of {engine} stand in no order, so whole tuples are grouped; memory takes so few rows one by one.",
            engine=prepared.source.engine,
        )
        prepared = replace(prepared, chosen=replace(prepared.chosen, why=join((prepared.chosen.why, why))))
    data = prepared.data
    seen = data.weighted(weights)
    if codes.place is not None:  # every entry is a row, and told so
        seen, _ = expanded(seen)

    def recode(share: float) -> Recoded:
        if cells is not None and isinstance(method, Mondrian):  # which drops no row, whatever share it may
            return method.published(seen, repair(seen, cells, goal, progress))
        return method.anonymize(seen, replace(goal, suppression=share), seeded(seed, method.name), progress)

    def planned(share: float) -> PlannedRelease:
        recoded = recode(share)
        recoded, shown, checked = settled(
            data, recoded, goal, lambda tried: _checked(data, tried, goal), rows=rows
        )
        return PlannedRelease(
            prepared=prepared,
            recoded=recoded,
            planned=checked,
            method=method,
            goal=goal,
            seed=seed,
            shown=shown,
            group=_visible(recoded, recoded.kept)[0],
        )

    try:
        return planned(spare / data.total)
    except GuaranteeNotMet:
        # As in memory: promises about distributions compare with the published table, which dropping rows changes.
        if not spare:
            raise
        return planned(0.0)


def _most_rows(method: Method) -> int:
    """Up to so many rows of a source are numbered and taken one by one by a method that parts rows with the same values."""
    return MOST_EXPANDED if method.takes == "rows" else _method.MOST_SEARCHED_ROWS


def _takes_rows(method: Method, used: RowSource) -> bool:
    """Whether the method needs single rows, or does better with them, they are few, and the source can tell them apart: as in memory."""
    return method.takes != "tuples" and used.rows <= _most_rows(method) and used.order != "none"


def counts_people(goal: Goal) -> bool:
    """Whether a promise counts people rather than rows.

    >>> from velado.release.guarantees import KAnonymity
    >>> counts_people(Goal((KAnonymity(5, "person"),))), counts_people(Goal((KAnonymity(5),)))
    (True, False)
    """
    return any(one.reads == "crowd" and not one.rows_decide for one in goal.guarantees)


def _refuse_uncounted(prepared: PreparedSource, goal: Goal) -> None:
    unread = goal.reads_sensitive and prepared.schema.sensitive and not prepared.codes.values
    if unread or (counts_people(goal) and prepared.codes.person is None):
        raise ValueError(
            "the source was prepared without what this goal reads: prepare it with values and people"
        )


def _refuse_rows(method: Method, used: RowSource) -> None:
    if method.takes != "rows" or _takes_rows(method, used):
        return
    counted = say(
        "Rows of {engine} stand in no order, and those with the same values are counted together.",
        engine=used.engine,
    )
    many = say(
        "It needs every row by itself; an engine gives it up to {most:,}, and there are {rows:,}.",
        most=_most_rows(method),
        rows=used.rows,
    )
    raise ParameterError(
        say("'{method}' parts rows with the same values.", method=method.name),
        many if used.order != "none" else counted,
        "Use mondrian (with strict cuts), top-down-greedy, progressive (for ncp), full-domain or das, or --engine memory.",
    )


def refuse_population(guarantees: Sequence[Guarantee]) -> None:
    """Nothing, if no promise counts people outside of the table; else the error that names it.

    >>> from velado.release.guarantees import KAnonymity
    >>> refuse_population([KAnonymity(5)])
    """
    for guarantee in guarantees:
        if guarantee.reads == "population":
            raise ParameterError(
                say("{guarantee} counts people of a population.", guarantee=guarantee.name),
                "An engine cannot match one yet.",
                "Use --engine memory.",
            )


def _visible(recoded: Recoded, kept: BoolArray) -> tuple[Int32Array, int]:
    """The published combination of each entry that is kept, by the numbers of its texts."""
    return group_by_codes(
        [column.codes[kept] for column in recoded.columns], [len(c.values) for c in recoded.columns]
    )


def _checked(data: EncodedTable, recoded: Recoded, goal: Goal) -> tuple[pl.DataFrame, Checked]:
    kept: BoolArray = recoded.kept
    groups, count = _visible(recoded, kept)
    example = _examples(groups, count)
    shown = pl.DataFrame(
        [
            replace(column, codes=column.codes[kept][example])
            .series(np.ones(count, dtype=bool))
            .cast(pl.String)
            for column in recoded.columns
        ]
    )
    part = data if bool(kept.all()) else data.subset(np.flatnonzero(kept))
    assert part.counts is not None
    people, values = listed(part, groups)
    checked = check_published(
        frame=shown,
        quasi=[column.name for column in recoded.columns],
        guarantees=goal.guarantees,
        people=people,
        sensitive=values,
        shapes=data.shapes,
        weights=np.bincount(groups, part.counts, minlength=count).astype(np.int64),
    )
    of_entries = checked.partition.of_rows(groups)
    return shown, replace(checked, partition=replace(of_entries, weights=part.counts))
