"""inspect_source(): what a table on an engine seems to hold, from its distinct values, counted tuples and a stated sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import numpy as np
import polars as pl

from velado.data.frames import SparkFrame
from velado.data.inspect import Inspection, SeenColumn, inspect
from velado.data.kinds import infer_kind, missing_tokens
from velado.data.normal import value_codes
from velado.data.partition import GroupCounts, Partition
from velado.data.schema import Column, Schema
from velado.data.separation import PresentExposure, visible_codes
from velado.data.table import Table
from velado.engines.row_source import ROWS, RowSource, TupleKeys
from velado.engines.spark_source import as_source
from velado.release.sources import source_check
from velado.release.sources.source_check import SampledTable
from velado.release.sources.source_tuples import (
    MOST_TUPLES,
    coding_of,
    counted_entries,
    listed_values,
    table_of,
)
from velado.text import Sentence, join, say

T = TypeVar("T")

MOST_LISTED = 5_000_000
"""Up to so many different values of a column are brought here to be read one by one."""


def inspect_source(source: RowSource | SparkFrame, separator: str = ",") -> Inspection:
    """What a table on an engine seems to hold, and a schema for it: what `inspect` says of it where 200,000 rows are all.

    *source* is a Spark data frame, or what an engine holds. Beyond, names, shapes, sets of columns and columns that follow people are judged on a fixed sample of about so many rows.
    Rows, blanks, different values, and whether every value is a number or a day, are read off the distinct values of each column
    as far as 5 million of them differ; who is unique is counted on all tuples of the proposed quasi-identifiers. What was
    judged how is said. A bound of a person's rows is proposed only where all rows were looked at.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> [c.role for c in inspect_source(of_arrow(pa.table({"idade": [31, 35, 31, 40]}))).columns]
    ['quasi']
    """
    source = as_source(source)
    most = source_check.SAMPLE_ROWS
    frame = cast(pl.DataFrame, pl.from_arrow(source.sample(most)))
    columns = {name: Column(name, "other", "text") for name in frame.columns}
    table = Table.of(frame, Schema(columns), source.name, separator=separator)
    if source.rows <= most:
        found = inspect(table)
        source.unchanged()
        return replace(found, judged=say("All rows were looked at."))
    sampled = InspectedSource(frame, table.schema, source.name, separator=separator, source_rows=source)
    found = inspect(sampled)
    source.unchanged()
    return replace(found, judged=_said(found, sampled))


def _said(found: Inspection, sampled: InspectedSource) -> Sentence:
    parts = [
        say(
            "Judged on a sample of {rows:,} of {all:,} rows: names, shapes, who is a person, sets of columns.",
            rows=sampled.rows,
            all=found.rows,
        ),
        say("Rows, blanks and different values were counted on all rows."),
    ]
    if found.exposure is not None and found.exposure.rows < found.rows:
        parts.append(say("Who is unique was counted on the sample, because too many combinations differ."))
    many = [name for name, listed in sampled.domains.items() if listed is None]
    if many:
        parts.append(
            say(
                "Of {columns} more values differ than are listed: how well it tells rows apart is the sample's.",
                columns=", ".join(f"'{name}'" for name in many),
            )
        )
    return join(parts)


@dataclass(frozen=True, repr=False)
class InspectedSource(SampledTable):
    """Some rows of a source whose columns have no meaning yet; the source itself answers what can be counted.

    *domains* are the distinct values that were brought here, None for a column of too many.

    >>> from velado.testing.examples import table
    >>> InspectedSource(table(age=[20]).frame, table(age=[20]).schema).domains
    {}
    """

    domains: dict[str, pl.DataFrame | None] = field(default_factory=dict)

    def once(self, asked: tuple[object, ...], make: Callable[[], T]) -> T:
        """What the source counts, or else what *make* works out of the sample, once."""
        source = self.source_rows
        if source is None:
            return super().once(asked, make)
        counted: Callable[[], object] = make
        match asked:
            case ("rows",):
                return cast(T, source.rows)
            case ("tokens",):
                counted = self._tokens
            case ("seen", str(name)):
                counted = lambda: self._seen(source, name, cast(SeenColumn, make()))  # noqa: E731
            case ("people", str(name)):
                counted = lambda: self._people(source, name)  # noqa: E731
            case ("exposure", person, *quasi):
                names = [str(one) for one in quasi]
                owner = None if person is None else str(person)
                counted = lambda: self._exposure(source, names, owner) or make()  # noqa: E731
        return super().once(asked, cast(Callable[[], T], counted))

    def _domain(self, name: str) -> pl.DataFrame | None:
        source = self.source_rows
        assert source is not None
        if name not in self.domains:
            few = source.distinct(name)[1] <= MOST_LISTED
            self.domains[name] = cast(pl.DataFrame, pl.from_arrow(source.domain(name))) if few else None
        return self.domains[name]

    def _listed(self, name: str) -> Table | None:
        """The distinct values of a column as a table of one, each row standing for those that hold it."""
        found = self._domain(name)
        if found is None:
            return None
        return table_of(found.to_arrow(), self.schema, self.schema.columns[name], self.source)

    def _tokens(self) -> tuple[str, ...]:
        found = set(missing_tokens(self.frame))
        for name in self.frame.columns:
            listed = self._domain(name)
            if listed is not None:
                found |= set(missing_tokens(listed.select("value")))
        return tuple(sorted(found))

    def _seen(self, source: RowSource, name: str, sample: SeenColumn) -> SeenColumn:
        listed = self._listed(name)
        if listed is None:
            filled = source.filled([name], self.schema.missing_texts(name))
            return replace(
                sample, missing=source.rows - filled.rows, written=None, distinct=filled.distinct(name)[1]
            )
        assert listed.behind is not None
        counted = pl.DataFrame({"value": listed.text(name), ROWS: listed.behind})
        sizes = counted.group_by("value").agg(pl.col(ROWS).sum())
        missing = int(sizes.filter(pl.col("value").is_null()).get_column(ROWS).sum())
        inferred, texts = sample.inferred, sizes.get_column("value").drop_nulls()
        if inferred.kind in ("numeric", "date"):
            # A schema that declares numbers or days refuses whatever is none, also what no sample shows.
            inferred = infer_kind(name, texts, self.frame.schema[name], texts.len(), texts)
        written = pl.DataFrame({"value": listed.frame.get_column(name).cast(pl.String), ROWS: listed.behind})
        written = written.drop_nulls().group_by("value").agg(pl.col(ROWS).sum())
        return SeenColumn(sizes, missing, inferred, written)

    def _people(self, source: RowSource, name: str) -> int:
        listed = self._listed(name)
        if listed is None:
            return source.distinct(name)[1]
        return value_codes(listed, self.schema.columns[name])[1] - 1

    def _exposure(
        self, source: RowSource, quasi: Sequence[str], person: str | None
    ) -> PresentExposure | None:
        """Who is unique on all rows; None where that would bring too many tuples or people here."""
        columns = [self.schema.columns[name] for name in quasi]
        tables = [self._listed(name) for name in quasi]
        owners = None if person is None else self._listed(person)
        if any(table is None for table in tables) or (person is not None and owners is None):
            return None
        own = [visible_codes(self, column) for column in columns]
        seen = Partition.by_codes([codes for codes, _ in own], [size for _, size in own]).count
        # A sample repeats less than the table does, so that this is more than there are.
        if min(source.rows, seen / self.rows * source.rows) > MOST_TUPLES:
            return None
        codings = []
        for column, table in zip(columns, tables, strict=True):
            assert table is not None
            codings.append(coding_of(table, column.name, *visible_codes(table, column)))
        keys = TupleKeys(tuple(codings))
        entries, counts = counted_entries(source, keys)
        alone = int((counts == 1).sum())
        people, unique_people = source.rows, alone
        if owners is not None and person is not None:
            coding = coding_of(owners, person, *value_codes(owners, self.schema.columns[person]))
            held = listed_values(source, keys, entries, coding)
            groups = Partition(np.arange(counts.size, dtype=np.int32), int(counts.size), weights=counts)
            in_group = GroupCounts.of(groups, held).people
            assert in_group is not None
            people = int(np.unique(held.codes).size)
            unique_people = int(np.unique(held.codes[(in_group == 1)[held.at]]).size)
        return PresentExposure(tuple(quasi), source.rows, alone, people, unique_people, int(counts.min()))
