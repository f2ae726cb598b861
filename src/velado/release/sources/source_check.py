"""What was written, counted anew: the published columns grouped where they lie, and the guarantees read those counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import polars as pl

from velado.data.encode import sensitive_values, text_codes
from velado.data.normal import value_codes
from velado.data.partition import Int32Array, Int64Array, ValueEntries, ValueShape
from velado.data.schema import Schema
from velado.data.table import Table
from velado.engines.row_source import Coding, RowSource, TupleKeys
from velado.engines.spark_source import SparkSource
from velado.release.goal import Checked, check_published
from velado.release.guarantees._guarantee import Guarantee
from velado.release.sources.source_tuples import coding_of, counted_entries, listed_values, table_of


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


def check_source(
    groups: PublishedGroups,
    schema: Schema,
    guarantees: Sequence[Guarantee],
    *,
    people: ValueEntries | None = None,
) -> Checked:
    """Every guarantee checked on the visible groups of a published table where it lies.

    Sensitive values, where a promise speaks of them, are those the table shows. *people* are listed for each group where somebody knows them; else they are
    the table's own, where it has a person column.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import table
    >>> written = published_groups(of_arrow(pa.table({"age": ["20", "20", "30"]})), ["age"])
    >>> check_source(written, table(age=[20, 30]).schema, [KAnonymity(2)]).verdicts[0].achieved
    1
    """
    source = groups.source
    sensitive: dict[str, ValueEntries] = {}
    shapes: dict[str, ValueShape] = {}
    asked = any(guarantee.reads == "values" for guarantee in guarantees)
    for column in schema.sensitive if asked else ():
        if column.name in source.types.names:
            table = table_of(source.domain(column.name), schema, column)
            found, shape = sensitive_values(table)
            shapes |= shape
            sensitive[column.name] = groups.values_of(table, column.name, *found[column.name])
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
