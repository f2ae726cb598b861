"""measure_sources(): what a release cost and bought where both tables lie, from their counted tuples and distinct values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import polars as pl

from velado.data.encode import VisibleTexts
from velado.data.frames import SparkFrame
from velado.data.io import schema_from
from velado.data.normal import value_codes
from velado.data.partition import ValueEntries
from velado.data.published_column import read_texts
from velado.data.schema import Schema
from velado.data.table import Table, Undeclared
from velado.engines.row_source import RowSource
from velado.engines.spark_source import as_source
from velado.errors import TableError
from velado.measures.measured import MeasureSettings, Scores, measure_published
from velado.measures.recoded_columns import PublishedTable, refuse_absent
from velado.release.sources import source_check
from velado.release.sources.source_check import published_groups
from velado.release.sources.source_tuples import count_tuples, read_codes, table_of
from velado.text import say


def measure_sources(
    original: RowSource | SparkFrame,
    release: RowSource | SparkFrame,
    schema: Schema | str | Path,
    *,
    undeclared: Undeclared = "refuse",
    k: int | None = None,
    settings: MeasureSettings | None = None,
) -> Scores:
    """Everything that counts tell of a release beside its original, neither of which is read row by row.

    Both are Spark data frames, or what an engine holds. Loss, risks by row, class sizes, distributions and guesses of sensitive values are counted on all rows, as are risks by person before
    the release. What compares row by row, and what is worked out of single rows, is left out with the reason. Identifiers are looked for
    in at most some 200,000 published rows.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> before, after = of_arrow(pa.table({"age": [20, 30]})), of_arrow(pa.table({"age": ["*", "*"]}))
    >>> measure_sources(before, after, table(age=[20, 30]).schema).ncp.overall
    1.0
    """
    schema = schema_from(schema)
    original, release = as_source(original, schema), as_source(release, schema)
    most = source_check.SAMPLE_ROWS
    some = cast(pl.DataFrame, pl.from_arrow(original.sample(most)))
    known = Table.of(some, schema, original.name, undeclared=undeclared).schema
    if release.rows > original.rows:
        raise TableError(
            say(
                "The published table has {published} rows, the original only {rows}.",
                published=release.rows,
                rows=original.rows,
            ),
            "A release never has more rows than the table it was made from.",
            "Check that the two files belong together.",
        )
    # Rows that a blank takes out are part of the original: what was not published of it counts as lost.
    whole = known.with_columns(
        replace(column, missing="value") if known.missing_policy(column) == "suppress" else column
        for column in known.columns.values()
    )
    data = count_tuples(read_codes(original, whole)).data
    data = replace(data, columns=tuple(column.unrounded for column in data.columns))
    quasi = [column.name for column in data.columns]
    refuse_absent(quasi, release.types.names)
    groups = published_groups(release, quasi)
    seen = VisibleTexts.of(groups.frame, quasi, groups.rows)
    values: dict[str, ValueEntries] = {}
    for column in known.sensitive:
        if column.name in release.types.names:
            table = table_of(release.domain(column.name), known, column)
            values[column.name] = groups.values_of(table, column.name, *value_codes(table, column))
    published = PublishedTable(
        data=data,
        columns=tuple(
            read_texts(
                column,
                groups.frame.get_column(column.name),
                known.missing_texts(column.name),
                seen=seen.columns[column.name],
            )
            for column in data.columns
        ),
        classes=seen.groups,
        true_rows=None,
        schema=known,
        seen=seen,
        values=values,
    )
    shown = cast(pl.DataFrame, pl.from_arrow(release.sample(most)))
    scores = measure_published(published, known, groups.frame, shown=shown, k=k, settings=settings)
    original.unchanged()
    release.unchanged()
    notes, reasons = _said(scores, known, shown, release)
    return replace(scores, notes=notes, not_measured=reasons)


def _said(
    scores: Scores, schema: Schema, shown: pl.DataFrame, release: RowSource
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The notes and the reasons, with what rests on a sample and what the schema declares in vain."""
    notes = [*scores.notes]
    if shown.height < release.rows:
        notes.append(
            say(
                "Everything was counted on all rows, but identifiers were looked for in a sample of {rows:,} published rows.",
                rows=shown.height,
            )
        )
    reasons = dict(scores.not_measured)
    if schema.sampling_weight is not None or schema.group is not None:
        reasons["risk of the sample"] = say("It is measured on single rows: use --engine memory.")
    return tuple(notes), reasons
