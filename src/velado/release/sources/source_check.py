"""What was written, counted anew: the published columns grouped where they lie, and the guarantees read those counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import polars as pl

from velado.data.encode import sensitive_values
from velado.data.normal import value_codes
from velado.data.partition import Int64Array, ValueEntries, ValueShape
from velado.data.schema import Column, Schema
from velado.engines.row_source import ROWS, RowSource
from velado.release.goal import Checked, check_published
from velado.release.guarantees._guarantee import Guarantee
from velado.release.sources.source_tuples import table_of


def published_counts(source: RowSource, columns: Sequence[str]) -> tuple[pl.DataFrame, Int64Array]:
    """The distinct combinations of *columns* as texts, in order, and the rows of each.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> frame, rows = published_counts(of_arrow(pa.table({"age": ["20", "*", "20"]})), ["age"])
    >>> frame["age"].to_list(), rows
    (['*', '20'], array([1, 2]))
    """
    found = cast(pl.DataFrame, pl.from_arrow(source.counts(columns)))
    texts = found.with_columns(pl.col(list(columns)).cast(pl.String))
    # A typed column and its text are one value: rows that look alike are one.
    shown = texts.group_by(list(columns)).agg(pl.col(ROWS).sum()).sort(list(columns))
    return shown.select(columns), shown.get_column(ROWS).to_numpy().astype(np.int64)


def check_source(
    source: RowSource,
    schema: Schema,
    guarantees: Sequence[Guarantee],
    *,
    people: ValueEntries | None = None,
) -> Checked:
    """Every guarantee checked on a published table where it lies, by its visible values.

    Sensitive values are those the table shows. *people* are listed for each group in the order of `published_counts`, where
    somebody knows them; else they are the table's own, where it has a person column.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import table
    >>> written = of_arrow(pa.table({"age": ["20", "20", "30"]}))
    >>> check_source(written, table(age=[20, 30]).schema, [KAnonymity(2)]).verdicts[0].achieved
    1
    """
    quasi = [column.name for column in schema.quasi]
    frame, rows = published_counts(source, quasi)
    sensitive: dict[str, ValueEntries] = {}
    shapes: dict[str, ValueShape] = {}
    for column in schema.sensitive:
        if column.name in source.types.names:
            sensitive[column.name] = _listed(source, schema, frame, column, shapes)
    person = schema.person
    if people is None and person is not None and person.name in source.types.names:
        people = _listed(source, schema, frame, person, {})
    return check_published(
        frame=frame,
        quasi=quasi,
        guarantees=guarantees,
        people=people,
        sensitive=sensitive,
        shapes=shapes,
        weights=rows,
    )


def _listed(
    source: RowSource, schema: Schema, frame: pl.DataFrame, column: Column, shapes: dict[str, ValueShape]
) -> ValueEntries:
    """The values of a column in each of the groups of *frame*."""
    names = frame.columns
    table = table_of(source.domain(column.name), schema, column)
    if column.role == "sensitive":
        found, shape = sensitive_values(table)
        codes, size = found[column.name]
        shapes |= shape
    else:
        codes, size = value_codes(table, column)
    coded = pl.DataFrame({"value": table.frame.get_column(column.name), "code": codes})
    # A sensitive column may be a quasi-identifier's namesake nowhere: names of a table are its own.
    pairs = cast(pl.DataFrame, pl.from_arrow(source.counts([*names, column.name])))
    pairs = pairs.with_columns(pl.col(names).cast(pl.String)).rename({column.name: "value"})
    groups = frame.with_row_index("at")
    found_pairs = pairs.join(groups, on=names, how="left", nulls_equal=True).join(
        coded, on="value", how="left", nulls_equal=True
    )
    return ValueEntries.of(
        found_pairs.get_column("at").to_numpy().astype(np.int64),
        found_pairs.get_column("code").to_numpy().astype(np.int64),
        found_pairs.get_column(ROWS).to_numpy().astype(np.int64),
        size,
    )


def smallest_group(source: RowSource, columns: Sequence[str]) -> int:
    """The smallest group of a published table for who reads *columns*, as texts.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> smallest_group(of_arrow(pa.table({"age": ["20", "*", "20"]})), ["age"])
    1
    """
    return int(published_counts(source, list(dict.fromkeys(columns)))[1].min())
