"""A source -> counted tuples: every column's distinct values coded as in memory, then the tuples of codes with counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar, cast

import numpy as np
import polars as pl
import pyarrow as pa

from velado.data.encode import (
    EncodedColumn,
    encode_column,
    refuse_unlisted,
    refuse_wrong_kinds,
    sensitive_values,
    spelling_notes,
)
from velado.data.encoded import EncodedTable
from velado.data.normal import value_codes
from velado.data.partition import Int32Array, Int64Array, ValueEntries, ValueShape
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.engines.row_source import CODE, PLACE, ROWS, Coding, RowSource, TupleKeys
from velado.errors import TableError
from velado.release.goal import Progress, silent
from velado.text import join, say, say_n

P = ParamSpec("P")
T = TypeVar("T")

MOST_TUPLES = 40_000_000
"""So many distinct tuples are held here at most: beyond, they would not fit in memory with what a method needs."""
MOST_PEOPLE = 60_000_000
"""So many different people, and pairs of tuple and person, are held here at most."""


@dataclass(frozen=True, repr=False)
class CodedColumn:
    """One quasi-identifier: its coding, its encoded form (codes by distinct value), and the texts of its values.

    *texts* has the text of every distinct value, null for a blank, *behind* its rows.

    >>> from velado.testing.examples import small_table
    >>> found = coded_column(small_table(sex=("quasi", "categorical", "F M")), small_table(sex=("quasi", "categorical", "F M")).schema.quasi[0])
    >>> found.coding.size
    2
    """

    coding: Coding
    encoded: EncodedColumn
    texts: pl.Series
    behind: Int64Array

    def single_texts(self) -> tuple[list[str | None], Int32Array]:
        """For each code the text of a value it stands for, and how many different values it does."""
        codes = self.encoded.codes
        texts: list[str | None] = [None] * self.encoded.size
        for code, text in zip(codes.tolist(), self.texts.to_list(), strict=True):
            texts[code] = text
        return texts, np.bincount(codes, minlength=self.encoded.size).astype(np.int32)


@dataclass(frozen=True, repr=False)
class SourceCodes:
    """The rows of a source that a method sees, and how each of their columns is coded; nothing of them is counted together yet.

    *values* and *person* are the codings of the sensitive columns and of people, where promises read them; *totals* are the rows of each sensitive value.
    *blank_rows* are rows that left before because a quasi-identifier is blank. *place* codes the rows' numbers where each row is to be
    told apart.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> found = read_codes(of_arrow(pa.table({"age": [20, 30, 20]})), table(age=[20, 30, 20]).schema)
    >>> found.keys.codings
    (Coding('age', 2 values, 2 codes),)
    """

    used: RowSource
    columns: tuple[CodedColumn, ...]
    values: Mapping[str, Coding]
    totals: Mapping[str, Int64Array]
    shapes: Mapping[str, ValueShape]
    person: Coding | None
    blank_rows: int
    warnings: tuple[str, ...] = ()
    own_warnings: tuple[str, ...] = ()
    place: Coding | None = None

    @property
    def keys(self) -> TupleKeys:
        """How a tuple of codes is packed."""
        place = () if self.place is None else (self.place,)
        return TupleKeys((*(one.coding for one in self.columns), *place))

    def table(
        self,
        codes: Sequence[Int32Array],
        counts: Int64Array,
        sensitive: Mapping[str, ValueEntries],
        people: ValueEntries | None,
        part: bool = False,
    ) -> EncodedTable:
        """Counted entries with these codes, all there are or a *part* of them, and what stands behind them."""
        columns = tuple(
            replace(one.encoded, codes=own, moved=None)
            for one, own in zip(self.columns, codes[: len(self.columns)], strict=True)
        )
        whole = self.totals if part else None
        return EncodedTable(
            columns, int(counts.size), people, sensitive, self.shapes, counts=counts, whole=whole
        )


@dataclass(frozen=True, repr=False)
class SourceTuples:
    """The counted tuples of the rows a method sees, and how the engine knows them.

    *entries* are the keys of each entry of *data*, in order. Where the source was cut first they are None: the engine keeps the cell of each tuple, and *data*
    has two entries for each cell, its least and its greatest codes, the rows counted with the first. *sizes* are the rows of a distinct tuple
    and how many tuples have so many; *rounds* and *parts* say how it was cut.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> found = count_tuples(read_codes(of_arrow(pa.table({"age": [20, 30, 20]})), table(age=[20, 30, 20]).schema))
    >>> found.data.counts, found.distinct
    (array([2, 1]), 2)
    """

    entries: tuple[Int64Array, ...] | None
    data: EncodedTable
    sizes: tuple[Int64Array, Int64Array | None]
    rounds: int = 0
    parts: int = 0

    @property
    def distinct(self) -> int:
        """How many distinct tuples there are."""
        size, times = self.sizes
        return int(size.size if times is None else times.sum())


def coded_column(table: Table, column: Column) -> CodedColumn:
    """A quasi-identifier whose distinct values are *table*, each standing for `table.behind` rows.

    >>> from velado.testing.examples import small_table
    >>> ages = small_table(age=("quasi", "numeric", "31 35 31.0"))
    >>> coded_column(ages, ages.schema.quasi[0]).coding.codes
    array([0, 1, 0], dtype=int32)
    """
    encoded = encode_column(table, column)
    behind = (
        np.ones(table.rows, dtype=np.int64)
        if table.behind is None
        else table.behind.to_numpy().astype(np.int64)
    )
    coding = coding_of(table, column.name, encoded.codes, encoded.size)
    return CodedColumn(coding, encoded, table.frame.get_column(column.name).cast(pl.String), behind)


def coding_of(table: Table, name: str, codes: Int32Array, size: int) -> Coding:
    """How an engine codes a column whose distinct values are the rows of *table*, with these *codes*.

    >>> from velado.testing.examples import small_table
    >>> coding_of(small_table(sex=("quasi", "categorical", "F _")), "sex", np.array([1, 0], np.int32), 2).blank
    0
    """
    series = table.frame.get_column(name)
    null = series.is_null().to_numpy()
    blank = int(codes[null][0]) if null.any() else -1
    return Coding(name, series.filter(~pl.Series(null)).to_arrow(), codes[~null], blank, size)


def domain_table(source: RowSource, schema: Schema, column: Column) -> Table:
    """The distinct values of a column as a table of one column, each row standing for those that hold it.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> schema = table(age=[20]).schema
    >>> domain_table(of_arrow(pa.table({"age": [20, 20]})), schema, schema.quasi[0]).behind.to_list()
    [2]
    """
    return table_of(source.domain(column.name), schema, column, source.name)


def table_of(domain: pa.Table, schema: Schema, column: Column, name: str = "table") -> Table:
    """A `domain` (columns value and rows) as a table of one column.

    >>> from velado.testing.examples import table
    >>> schema = table(age=[20]).schema
    >>> table_of(pa.table({"value": [20], "rows": [3]}), schema, schema.quasi[0])
    Table(1 rows; 1 quasi)
    """
    frame = cast(pl.DataFrame, pl.from_arrow(domain)).sort("value", nulls_last=True)
    made = Table.of(frame.select(pl.col("value").alias(column.name)), schema.with_columns([column]), name)
    return replace(made, behind=frame.get_column(ROWS))


def refuse_cells(source: RowSource, schema: Schema) -> None:
    """Every column that leaves as it came holds what its kind and its list of values say, as in memory.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> refuse_cells(of_arrow(pa.table({"age": [20, 30]})), table(age=[20, 30]).schema)
    """
    for column in schema.columns.values():
        listed = column.values is not None and (column.published or column.role == "sensitive")
        kind = column.published and column.role != "quasi" and column.kind in ("numeric", "date")
        if not (listed or kind):
            continue
        typed = source.types.field(column.name).type
        if not listed and (pa.types.is_integer(typed) or pa.types.is_floating(typed)):
            ends = source.extremes(column.name).append_column(ROWS, pa.array([1, 1]))
            table = table_of(ends, schema, column, source.name)
        elif not listed and pa.types.is_temporal(typed):
            continue
        else:
            table = domain_table(source, schema, column)
        _in_values(refuse_unlisted, table)
        _in_values(refuse_wrong_kinds, table)


def _in_values(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """*work* on a table of distinct values; what it refuses is counted in those."""
    try:
        return work(*given, **named)
    except TableError as error:
        counted = say("(Counted in distinct values, not in rows.)")
        raise type(error)(join((error.what, counted)), error.why, error.fix) from None


def read_codes(
    source: RowSource,
    schema: Schema,
    *,
    values: bool = True,
    people: bool = True,
    progress: Progress = silent,
) -> SourceCodes:
    """Domains and codes of the rows a method sees: those that no suppressed blank takes out.

    Sensitive *values* and *people* are coded only where a promise speaks of them.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> read_codes(of_arrow(pa.table({"age": [20, 30]})), table(age=[20, 30]).schema).blank_rows
    0
    """
    used = source
    for column in schema.quasi:
        if schema.missing_policy(column) == "suppress":
            used = used.filled([column.name], schema.missing_texts(column.name))
    if not used.rows:
        raise TableError(
            "Every row is blank in a quasi-identifier that the schema suppresses.",
            "There is nothing to publish.",
            'Set missing = "value", or check the file.',
        )
    person = schema.person
    steps = len(schema.quasi) + len(schema.sensitive) + (person is not None)
    done, coded, own = 0, [], list[str]()
    for column in schema.quasi:
        progress(done / steps, say("reading the values of '{column}'", column=column.name))
        table = domain_table(used, schema, column)
        coded.append(_in_values(coded_column, table, column))
        own += spelling_notes(table)
        done += 1
    codings: dict[str, Coding] = {}
    totals: dict[str, Int64Array] = {}
    shapes: dict[str, ValueShape] = {}
    for column in schema.sensitive:
        progress(done / steps, say("counting the values of '{column}'", column=column.name))
        done += 1
        table = domain_table(used, schema, column)
        found, shape = _in_values(sensitive_values, table)
        own += spelling_notes(table)
        if not values:
            continue
        value, size = found[column.name]
        shapes |= shape
        codings[column.name] = _beside(coding_of(table, column.name, value, size))
        assert table.behind is not None
        totals[column.name] = np.bincount(value, table.behind.to_numpy(), minlength=size).astype(np.int64)
    persons = None
    if person is not None and people:
        progress(done / steps, say("counting people"))
        table = domain_table(used, schema, person)
        _refuse_many(table.rows, MOST_PEOPLE, say("different people"))
        own += spelling_notes(table)
        persons = _beside(coding_of(table, person.name, *value_codes(table, person)))
    return SourceCodes(
        used=used,
        columns=tuple(coded),
        values=codings,
        totals=totals,
        shapes=shapes,
        person=persons,
        blank_rows=source.rows - used.rows,
        warnings=tuple(_moved(coded)),
        own_warnings=tuple(own),
    )


def count_tuples(codes: SourceCodes, progress: Progress = silent) -> SourceTuples:
    """All distinct tuples with their counts, and the values and people behind each.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> count_tuples(read_codes(of_arrow(pa.table({"age": [20, 30]})), table(age=[20, 30]).schema)).data.total
    2
    """
    progress(0.0, say("counting distinct tuples"))
    keys = codes.keys
    entries, counts = counted_entries(codes.used, keys)
    sensitive = {}
    for at, (name, coding) in enumerate(codes.values.items()):
        progress(
            0.5 + 0.5 * at / (len(codes.values) + 1), say("counting the values of '{column}'", column=name)
        )
        sensitive[name] = listed_values(codes.used, keys, entries, coding)
    people = None
    if codes.person is not None:
        progress(0.9, say("counting people"))
        people = listed_values(codes.used, keys, entries, codes.person)
    data = codes.table(keys.unpack(entries), counts, sensitive, people)
    return SourceTuples(entries, data, (counts, None))


def count_rows(codes: SourceCodes, progress: Progress = silent) -> tuple[SourceCodes, SourceTuples]:
    """As `count_tuples`, with an entry for every row in the order they lie in, and the codes that tell them apart.

    For methods that part rows with the same values, and for sources that can number them.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> from velado.testing.examples import table
    >>> codes = read_codes(of_arrow(pa.table({"age": [30, 20, 30]})), table(age=[20, 30, 30]).schema)
    >>> found = count_rows(codes)[1]
    >>> found.data.columns[0].codes, found.data.counts, found.distinct
    (array([1, 0, 1], dtype=int32), array([1, 1, 1]), 2)
    """
    numbers = np.arange(codes.used.rows, dtype=np.int64)
    place = Coding(PLACE, pa.array(numbers), numbers.astype(np.int32), -1, max(codes.used.rows, 1))
    codes = replace(codes, used=codes.used.numbered(), place=place)
    found = count_tuples(codes, progress)
    assert found.entries is not None
    order = np.argsort(codes.keys.unpack(found.entries)[-1])
    data = found.data.subset(order)
    entries = tuple(own[order] for own in found.entries)
    return codes, SourceTuples(entries, data, (data.classes.sizes, None))


def counted_entries(used: RowSource, keys: TupleKeys) -> tuple[tuple[Int64Array, ...], Int64Array]:
    """The keys of the distinct tuples of a source, in order of their codes, and the rows of each.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> sex = Coding("sex", pa.array(["F", "M"]), np.array([0, 1], np.int32), -1, 2)
    >>> counted_entries(of_arrow(pa.table({"sex": ["M", "F", "M"]})), TupleKeys((sex,)))
    ((array([0, 1]),), array([1, 2]))
    """
    found = cast(pl.DataFrame, pl.from_arrow(used.tuples(keys)))
    _refuse_many(found.height, MOST_TUPLES, say("distinct tuples of quasi-identifiers"))
    found = found.sort(keys.names)  # in order of their codes, whatever order the engine counted in
    counts = found.get_column(ROWS).to_numpy().astype(np.int64)
    if int(counts.sum()) != used.rows:
        raise changed_meanwhile(used)
    return tuple(found.get_column(name).to_numpy().astype(np.int64) for name in keys.names), counts


def listed_values(
    used: RowSource, keys: TupleKeys, entries: tuple[Int64Array, ...], beside: Coding
) -> ValueEntries:
    """What the rows behind each of *entries* hold of another column.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> sex = Coding("sex", pa.array(["F", "M"]), np.array([0, 1], np.int32), -1, 2)
    >>> keys, rows = TupleKeys((sex,)), of_arrow(pa.table({"sex": ["M", "F", "M"]}))
    >>> listed_values(rows, keys, (np.array([0, 1]),), sex)
    ValueEntries(2 of 2 codes, rows=3)
    """
    beside = _beside(beside)
    found = cast(pl.DataFrame, pl.from_arrow(used.tuples(keys, beside)))
    if int(found.get_column(ROWS).sum()) != used.rows:
        raise changed_meanwhile(used)
    if len(entries) == 1:
        at = np.searchsorted(entries[0], found.get_column(keys.names[0]).to_numpy())
    else:
        known = pl.DataFrame(dict(zip(keys.names, entries, strict=True))).with_row_index("at")
        joined = found.join(known, on=keys.names, how="left", maintain_order="left")
        at = joined.get_column("at").to_numpy().astype(np.int64)
    codes = found.get_column(CODE).to_numpy().astype(np.int32)
    order = np.argsort(at * beside.size + codes)  # each pair is there once: nothing has to be added up
    counts = found.get_column(ROWS).to_numpy().astype(np.int64)
    return ValueEntries(at[order], codes[order], counts[order], beside.size)


def _beside(coding: Coding) -> Coding:
    return replace(coding, blank=max(coding.blank, 0))  # a null is no value, also where no row had one


def _refuse_many(found: int, most: int, what: str) -> None:
    if found > most:
        raise TableError(
            say(
                "The table has {found:,} {what}; up to {most:,} are held at once.",
                found=found,
                what=what,
                most=most,
            ),
            "They are grouped in this machine's memory, whatever engine counted them.",
            "Round or generalize columns with many values first, or publish the table in parts.",
        )


def changed_meanwhile(source: RowSource) -> TableError:
    """The error that the rows are not those that were first counted.

    >>> import pyarrow as pa
    >>> from velado.engines.duckdb_source import of_arrow
    >>> changed_meanwhile(of_arrow(pa.table({"age": [20]}), name="stays")).what
    "'stays' changed while it was read."
    """
    source.unchanged()  # which knows the file by name
    return TableError(
        say("'{path}' changed while it was read.", path=source.name),
        "What was counted and what would be published could be different rows.",
        "Try again when nobody writes to the files, or take a copy of them.",
    )


def _moved(coded: list[CodedColumn]) -> list[str]:
    return [
        say_n(
            "{n:,} value of '{column}' lay outside its bounds and was moved onto the nearest bound: what is "
            "published for it is false.",
            "{n:,} values of '{column}' lay outside its bounds and were moved onto the nearest bound: what is "
            "published for them is false.",
            int(one.behind[one.encoded.moved].sum()),
            column=one.encoded.name,
        )
        for one in coded
        if one.encoded.moved is not None
    ]
