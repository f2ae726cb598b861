"""What is checked of a table on an engine: what must be decided before it is published, and what was written.

Before, it is judged from a stated sample and exact counts. Up to SAMPLE_ROWS rows the sample is the whole table, and the
judgement the one in memory. Beyond it, names, shapes, side doors and columns that link rows are judged on a fixed sample (of
whole people where the schema knows them), while how many rows and different values a column has, and how many stand alone,
are counted exactly. A column that settles another one does so in every sample, so that a door of that kind is not missed;
one that only narrows may be judged a little off. Afterwards what was written is counted anew: the published columns grouped
where they lie, and the guarantees read those counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import polars as pl

from velado.data.encode import sensitive_values, text_codes
from velado.data.normal import value_codes
from velado.data.partition import Int32Array, Int64Array, ValueEntries, ValueShape
from velado.data.schema import Schema
from velado.data.table import Table, Undeclared
from velado.engines.row_source import Coding, RowSource, TupleKeys
from velado.engines.spark_source import SparkSource
from velado.errors import ParameterError, VeladoError
from velado.release.gate import Signed, decide_person, refuse_identifiers
from velado.release.goal import Checked, check_published
from velado.release.guarantees._guarantee import Guarantee
from velado.release.prepare import check_roles
from velado.release.side_doors import SideDoor, find_side_doors, refuse_copies
from velado.release.sources.source_tuples import coding_of, counted_entries, listed_values, table_of
from velado.text import join, say

T = TypeVar("T")

SAMPLE_ROWS = 200_000
"""Up to so many rows a table is judged whole; of a larger one about so many are looked at."""


@dataclass(frozen=True, repr=False)
class SampledTable(Table):
    """Some rows of a source, which answers itself how many rows and values a column has.

    >>> from velado.testing.examples import table
    >>> whole = table(age=[20, 30])
    >>> SampledTable(whole.frame, whole.schema).rows
    2
    """

    source_rows: RowSource | None = None

    def once(self, asked: tuple[object, ...], make: Callable[[], T]) -> T:
        """What the source counts exactly, or else what *make* works out of the sample, once."""
        source = self.source_rows
        if source is not None and len(asked) == 2 and asked[0] in ("counts", "lone"):
            return super().once(asked, lambda: cast(T, _counted(source, str(asked[0]), str(asked[1]))))
        return super().once(asked, make)


def _counted(source: RowSource, what: str, column: str) -> tuple[int, int]:
    return source.distinct(column) if what == "counts" else (source.lone(column), source.rows)


@dataclass(frozen=True, repr=False)
class Judged:
    """A source that may be published once its quasi-identifiers are recoded, and what it was judged by.

    *sample* are the rows that were looked at, *whole* whether these are all; its schema has every column of the source.

    >>> from velado.testing.examples import table
    >>> Judged(table(age=[20, 30]), True).said
    'Identifiers, people and side doors were judged on all rows.'
    """

    sample: Table
    whole: bool
    side_doors: tuple[SideDoor, ...] = ()
    signed: tuple[Signed, ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema with every column that is kept."""
        return self.sample.schema

    @property
    def said(self) -> str:
        """What the judgement rests on, in a sentence."""
        if self.whole:
            return say("Identifiers, people and side doors were judged on all rows.")
        return say(
            "Identifiers, people and side doors were judged on a sample of {rows:,} rows; how many rows and different "
            "values a column has was counted exactly.",
            rows=self.sample.rows,
        )


def judge(
    source: RowSource, schema: Schema, per: str | None = None, undeclared: Undeclared = "refuse"
) -> Judged:
    """The source judged, or an error: nothing that identifies would be published, people are settled.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> judge(of_arrow(pa.table({"age": [20, 30]})), table(age=[20, 30]).schema).whole
    True
    """
    whole = source.rows <= SAMPLE_ROWS
    person = schema.person
    known = person is not None and person.name in source.types.names
    sample = source.sample(SAMPLE_ROWS, person.name if known and person is not None else None)
    frame = cast(pl.DataFrame, pl.from_arrow(sample))
    table = Table.of(frame, schema, source.name, undeclared=undeclared)
    everything = Table.of(frame, schema, source.name, undeclared="keep")
    check_roles(table.schema)
    if not whole:
        table, everything = sampled(table, source), sampled(everything, source)
    try:
        decide_person(everything, per)
        signed = refuse_identifiers(table)
        doors = find_side_doors(table)
        refuse_copies(doors)
    except VeladoError as error:
        if whole:
            raise
        seen = say("(Judged on a sample of {rows:,} of {all:,} rows.)", rows=table.rows, all=source.rows)
        raise type(error)(join((error.what, seen)), error.why, error.fix) from None
    return Judged(table, whole, doors, signed)


def sampled(table: Table, source: RowSource) -> SampledTable:
    """A table of some rows of *source*, which answers for all of them.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> sampled(table(age=[20]), of_arrow(pa.table({"age": [20, 30]}))).source_rows.rows
    2
    """
    made = SampledTable(table.frame, table.schema, table.source, table.fingerprint, table.separator)
    return replace(made, dropped=table.dropped, source_rows=source)


@dataclass(frozen=True, repr=False)
class PublishedGroups:
    """The visible groups of a published table where it lies: their texts, their rows, and how the engine knows them.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> found = published_groups(of_arrow(pa.table({"age": ["20", "*", "20"]})), ["age"])
    >>> found.frame["age"].to_list(), found.rows
    (['*', '20'], array([1, 2]))
    """

    source: RowSource
    keys: TupleKeys
    entries: tuple[Int64Array, ...]
    frame: pl.DataFrame
    rows: Int64Array

    def values_of(self, table: Table, name: str, codes: Int32Array, size: int) -> ValueEntries:
        """What the rows of each group hold of another column, whose distinct values are *table* with these codes."""
        return listed_values(self.source, self.keys, self.entries, coding_of(table, name, codes, size))


def published_groups(source: RowSource, columns: Sequence[str]) -> PublishedGroups:
    """The groups of rows that show the same texts in *columns*, counted where they lie, in order of their texts.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> published_groups(of_arrow(pa.table({"age": [20, 20]})), ["age"]).rows
    array([2])
    """
    codings, texts = [], []
    for name in columns:
        values = cast(pl.DataFrame, pl.from_arrow(source.domain(name))).get_column("value")
        shown = values.cast(pl.String)
        codes, size = text_codes(shown)
        null = values.is_null().to_numpy()
        known = values.filter(~pl.Series(null))
        codings.append(Coding(name, known.to_arrow(), codes[~null], 0, size))
        texts.append(pl.concat([pl.Series([None], dtype=pl.String), shown.unique().drop_nulls().sort()]))
    keys = TupleKeys(tuple(codings))
    entries, rows = counted_entries(source, keys)
    frame = pl.DataFrame(
        [
            text.gather(pl.Series(codes)).alias(name)
            for name, text, codes in zip(columns, texts, keys.unpack(entries), strict=True)
        ]
    )
    return PublishedGroups(source, keys, entries, frame, rows)


def counted_values(
    groups: PublishedGroups, schema: Schema
) -> tuple[dict[str, ValueEntries], dict[str, ValueShape]]:
    """The values of every sensitive column that is published, listed for each group, and how they lie to one another.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import small_table
    >>> meaning = small_table(age=("quasi", "numeric", "20 30"), ill=("sensitive", "categorical", "a b")).schema
    >>> written = of_arrow(pa.table({"age": ["20", "20"], "ill": ["a", "b"]}))
    >>> counted_values(published_groups(written, ["age"]), meaning)[0]["ill"].counts
    array([1, 1])
    """
    source = groups.source
    sensitive: dict[str, ValueEntries] = {}
    shapes: dict[str, ValueShape] = {}
    for column in schema.sensitive:
        if column.name in source.types.names:
            table = table_of(source.domain(column.name), schema, column)
            found, shape = sensitive_values(table)
            shapes |= shape
            sensitive[column.name] = groups.values_of(table, column.name, *found[column.name])
    return sensitive, shapes


def check_source(
    groups: PublishedGroups,
    schema: Schema,
    guarantees: Sequence[Guarantee],
    *,
    people: ValueEntries | None = None,
    counted: tuple[Mapping[str, ValueEntries], Mapping[str, ValueShape]] | None = None,
) -> Checked:
    """Every guarantee checked on the visible groups of a published table where it lies.

    Sensitive values, where a promise speaks of them, are those the table shows. *people* are listed for each group where somebody knows them; else they are
    the table's own, where it has a person column. *counted* are the `counted_values` where somebody has them.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import table
    >>> written = published_groups(of_arrow(pa.table({"age": ["20", "20", "30"]})), ["age"])
    >>> check_source(written, table(age=[20, 30]).schema, [KAnonymity(2)]).verdicts[0].achieved
    1
    """
    source = groups.source
    if counted is None:
        asked = any(guarantee.reads == "values" for guarantee in guarantees)
        counted = counted_values(groups, schema) if asked else ({}, {})
    sensitive, shapes = counted
    person = schema.person
    crowds = any(one.reads == "crowd" and not one.rows_decide for one in guarantees)
    if people is None and crowds and person is not None and person.name in source.types.names:
        table = table_of(source.domain(person.name), schema, person)
        people = groups.values_of(table, person.name, *value_codes(table, person))
    return check_published(
        frame=groups.frame,
        quasi=groups.frame.columns,
        guarantees=guarantees,
        people=people,
        sensitive=sensitive,
        shapes=shapes,
        weights=groups.rows,
    )


def smallest_group(source: RowSource, columns: Sequence[str]) -> int:
    """The smallest group of a published table for who reads *columns*, as texts.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> smallest_group(of_arrow(pa.table({"age": ["20", "*", "20"]})), ["age"])
    1
    """
    columns = list(dict.fromkeys(columns))
    if isinstance(
        source, SparkSource
    ):  # whose driver would not hold what a column of lone values makes of the groups
        return source.smallest(columns)
    return int(published_groups(source, columns).rows.min())


def refuse_not_yet(schema: Schema) -> None:
    """Nothing, unless the schema asks for what engines cannot do yet.

    >>> from velado.testing.examples import table
    >>> refuse_not_yet(table(age=[20, 30]).schema)
    """
    person = schema.person
    if person is not None and person.published:
        raise ParameterError(
            say("The person column '{column}' would be published by an engine.", column=person.name),
            "Whoever links the rows of a person must be checked for, which engines cannot do yet.",
            say("Set publish = false in [columns.{column}], or use --engine memory.", column=person.name),
        )
    if schema.dataset.population_file is not None:
        raise ParameterError(
            "The schema names a population, and an engine cannot match one yet.",
            "k-map and delta-presence count people outside the table.",
            "Use --engine memory, or leave the population out.",
        )
