"""What must be decided before a table on an engine is published, judged from a stated sample and exact counts.

Up to SAMPLE_ROWS rows the sample is the whole table, and the judgement the one in memory. Beyond it, names, shapes, side
doors and columns that link rows are judged on a fixed sample (of whole people where the schema knows them), while how many rows and
different values a column has, and how many stand alone, are counted exactly. A column that settles another one does so in
every sample, so that a door of that kind is not missed; one that only narrows may be judged a little off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import polars as pl

from velado.data.schema import Schema
from velado.data.table import Table, Undeclared
from velado.engines.row_source import RowSource
from velado.errors import VeladoError
from velado.release.gate import Signed, decide_person, refuse_identifiers
from velado.release.prepare import check_roles
from velado.release.side_doors import SideDoor, find_side_doors, refuse_copies
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
