"""verify_source(): a released table checked where it lies, its groups counted by the engine, its columns judged on a sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import polars as pl

from velado.data.frames import SparkFrame
from velado.data.io import schema_from
from velado.data.partition import Partition
from velado.data.schema import Schema
from velado.data.staging import file_digest
from velado.data.table import Table, Undeclared
from velado.engines.row_source import RowSource
from velado.engines.spark_source import as_source
from velado.errors import ParameterError
from velado.release.goal import Checked
from velado.release.guarantees._guarantee import Guarantee, Verdict
from velado.release.run_settings import Guarantees, run_settings
from velado.release.side_doors.door import SideDoor, telling_columns
from velado.release.sources import source_check
from velado.release.sources.source_check import check_source, published_groups, sampled, smallest_group
from velado.release.sources.source_release import refuse_population
from velado.release.verify import PublishedCounts, Verification, concluded, known_columns
from velado.text import join, say


def verify_source(
    source: RowSource | SparkFrame,
    schema: Schema | str | Path,
    guarantees: Guarantees,
    *,
    undeclared: Undeclared = "refuse",
    fingerprint: str = "",
) -> Verification:
    """The verdict on a released table where it lies: what `verify` gives, all groups counted by the engine.

    *source* is a Spark data frame, or what an engine holds. Identifiers, side doors and the order of rows are judged on all rows up to 200,000, beyond on a fixed sample, which the
    verdict says. What is left behind a side door is counted on all rows.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.release.guarantees import KAnonymity
    >>> from velado.testing.examples import table
    >>> verify_source(of_arrow(pa.table({"age": ["20", "20", "30"]})), table(age=[20]).schema, [KAnonymity(2)])
    Verification(3 rows, broken)
    """
    asked = run_settings(guarantees=guarantees, undeclared=undeclared)
    refuse_population(asked.guarantees)
    schema = schema_from(schema)
    source = as_source(source, schema)
    known = known_columns(schema, source.types.names, asked.guarantees)
    _refuse_person(known)
    most = source_check.SAMPLE_ROWS
    frame = cast(pl.DataFrame, pl.from_arrow(source.sample(most)))
    table = Table.of(frame, known, source.name, fingerprint, asked.undeclared)
    if source.rows > most:
        table = sampled(table, source)
    judged = _judged(source, table)
    quasi = [column.name for column in known.quasi]

    def check(columns: Sequence[str], promises: Sequence[Guarantee]) -> Checked:
        names = list(dict.fromkeys([*quasi, *columns]))
        return check_source(published_groups(source, names), known, promises)

    def linked(promises: Sequence[Guarantee], groups: Partition) -> Verdict | None:
        raise AssertionError("a published person column was refused before")

    def smallest(doors: Sequence[SideDoor]) -> int | None:
        columns = telling_columns(doors, quasi)
        return smallest_group(source, [*quasi, *columns]) if columns else None

    counts = PublishedCounts(check, linked, smallest)
    found = concluded(
        table,
        schema,
        asked.guarantees,
        counts,
        rows=source.rows,
        judged=judged,
        ordered=source.order != "none",
    )
    source.unchanged()
    return found


def published_digest(source: RowSource) -> str:
    """What a published table is known by: the digest of its file's bytes, as in its manifest, or else of its rows.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> len(published_digest(of_arrow(pa.table({"age": ["20", "30"]}))))
    64
    """
    files: tuple[Path, ...] = getattr(source, "files", ())
    return file_digest(files[0]) if len(files) == 1 else source.fingerprint().hex()


def _judged(source: RowSource, table: Table) -> str:
    """What the verdict rests on, in a sentence or two."""
    whole = table.rows == source.rows
    if source.order != "none":
        if whole:
            return say("Identifiers, side doors and the order of rows were judged on all rows.")
        return say(
            "Groups and promises were counted on all {all:,} rows; identifiers, side doors and the order of rows were judged "
            "on a sample of {rows:,}.",
            all=source.rows,
            rows=table.rows,
        )
    unseen = say(
        "Rows of {engine} stand in no order: what their order in a file may tell was not looked at.",
        engine=source.engine,
    )
    if whole:
        return join((say("Identifiers and side doors were judged on all rows."), unseen))
    seen = say(
        "Groups and promises were counted on all {all:,} rows; identifiers and side doors were judged on a sample of {rows:,}.",
        all=source.rows,
        rows=table.rows,
    )
    return join((seen, unseen))


def _refuse_person(schema: Schema) -> None:
    person = schema.person
    if person is not None and person.published:
        raise ParameterError(
            say("The published table holds the person column '{column}'.", column=person.name),
            "Whoever links the rows of a person must be checked for, which engines cannot do yet.",
            "Use --engine memory.",
        )
