"""RowSource: what an engine must answer of a table it holds. Coding, TupleKeys, Recoding: what is handed to it.

Rows stay where they are. Distinct values come out with their counts, are coded by `velado.data`, and go back as a
`Coding`; the tuples of codes are counted there under one packed number each; and what was decided for every tuple goes
back as a `Recoding`, which the engine joins to its rows and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
import pyarrow as pa

from velado.data.blanks import NoValue, no_values
from velado.data.partition import Int32Array, Int64Array
from velado.data.schema import Schema

_ROOM = 1 << 62

ROWS = "rows"
"""The name of the column of counts in every answer."""
KEY = "key"
"""The name of the columns of packed tuples: key0, key1, ..."""
CODE = "code"
"""The name of the column of value codes beside them."""
PLACE = "number of the row in velado"
"""The name of the column of row numbers, where rows were set aside with one."""


@dataclass(frozen=True, repr=False)
class Coding:
    """How the cells of a column are coded: *codes* of its distinct *values*, and that of null cells, *blank*.

    A value that is not listed has no code, and -1 stands for none: rows that hold one do not take part. *size* is the
    number of codes.

    >>> Coding("sex", pa.array(["F", "M"]), np.array([0, 1], np.int32), -1, 2)
    Coding('sex', 2 values, 2 codes)
    """

    column: str
    values: pa.Array
    codes: Int32Array
    blank: int
    size: int

    def __repr__(self) -> str:
        return f"Coding({self.column!r}, {len(self.values)} values, {self.size} codes)"


@dataclass(frozen=True, repr=False)
class TupleKeys:
    """How a tuple of codes becomes as few 62-bit numbers as hold it, and comes back.

    >>> sex = Coding("sex", pa.array(["F", "M"]), np.array([0, 1], np.int32), -1, 2)
    >>> keys = TupleKeys((sex, sex))
    >>> keys.unpack([np.array([3, 1])])
    [array([1, 0], dtype=int32), array([1, 1], dtype=int32)]
    """

    codings: tuple[Coding, ...]

    @property
    def parts(self) -> list[list[int]]:
        """The numbers of the codings that share one key, in order."""
        out: list[list[int]] = []
        room = 0
        for at, coding in enumerate(self.codings):
            size = max(coding.size, 1)
            if room < size:
                out.append([])
                room = _ROOM
            out[-1].append(at)
            room //= size
        return out

    @property
    def placed(self) -> bool:
        """Whether a row's number is a part of its tuple, so that every row has one of its own."""
        return any(coding.column == PLACE for coding in self.codings)

    @property
    def names(self) -> list[str]:
        """The names of the keys: key0, key1, ..."""
        return [f"{KEY}{number}" for number in range(len(self.parts))]

    def expressions(self, code: Sequence[str]) -> list[str]:
        """Each key as SQL, from the SQL of each coding's code; NULL where a code is."""
        out = []
        for part in self.parts:
            made = f"CAST({code[part[0]]} AS BIGINT)"
            for at in part[1:]:
                made = f"({made} * {self.codings[at].size} + {code[at]})"
            out.append(made)
        return out

    def unpack(self, keys: Sequence[Int64Array]) -> list[Int32Array]:
        """The codes of each coding's column, from the keys."""
        out: list[Int32Array] = [np.empty(0, np.int32)] * len(self.codings)
        for key, part in zip(keys, self.parts, strict=True):
            left = key
            for at in reversed(part[1:]):
                left, code = np.divmod(left, self.codings[at].size)
                out[at] = code.astype(np.int32)
            out[part[0]] = left.astype(np.int32)
        return out


@dataclass(frozen=True, repr=False)
class Recoding:
    """What is published for each tuple: its group, and the group's texts.

    *entries* holds the keys of every tuple that is published, beside them the number of its *group*; *labels* has for each
    recoded column the texts by group. *columns* are the published columns in their order: a name that *labels* does not
    hold is published as it came. Rows whose tuple is not listed are left out. Without *entries* the source itself keeps the cell
    of every tuple, and *group* is that of each cell, -1 for one that is left out. *order* is the number that the order of rows is made of
    beside the published cells themselves: drawn under the owner's key from a digest of the input, so that without the key the order
    tells nothing that the table does not.

    >>> sex = Coding("sex", pa.array(["F", "M"]), np.array([0, 1], np.int32), -1, 2)
    >>> whole = {"sex": pa.array(["*"])}
    >>> Recoding(TupleKeys((sex,)), (np.array([0, 1]),), np.zeros(2, np.int32), whole, ("sex", "note"), 7)
    Recoding(2 tuples, 1 groups, columns=['sex', 'note'])
    """

    keys: TupleKeys
    entries: tuple[Int64Array, ...] | None
    group: Int32Array
    labels: dict[str, pa.Array]
    columns: tuple[str, ...]
    order: int

    def __repr__(self) -> str:
        groups = len(next(iter(self.labels.values()), ())) or int(self.group.max(initial=-1)) + 1
        return f"Recoding({self.group.size} tuples, {groups} groups, columns={list(self.columns)})"

    @property
    def mapping(self) -> pa.Table:
        """Keys and group of every published tuple, or cell and group of every published cell."""
        if self.entries is None:
            cells = np.flatnonzero(self.group >= 0)
            return pa.table({"cell": cells.astype(np.int32), "grp": self.group[cells]})
        named = dict(zip(self.keys.names, self.entries, strict=True))
        return pa.table({**named, "grp": self.group})

    @property
    def texts(self) -> pa.Table:
        """The groups' texts: grp, and one column t0, t1, ... for each recoded column."""
        count = int(self.group.max(initial=-1)) + 1
        texts = {f"t{at}": column for at, column in enumerate(self.labels.values())}
        return pa.table({"grp": np.arange(count, dtype=np.int32), **texts})


def coding_list(coding: Coding) -> pa.Table:
    """What an engine is handed of a coding: the values that have a code, `v`, and their codes, `c`.

    >>> coding_list(Coding("sex", pa.array(["F", "M"]), np.array([0, -1], np.int32), -1, 1)).to_pydict()
    {'v': ['F'], 'c': [0]}
    """
    known = coding.codes >= 0
    return pa.table({"v": coding.values.filter(pa.array(known)), "c": coding.codes[known].astype(np.int32)})


def coded_cells(codings: Sequence[Coding], cells: Sequence[str]) -> tuple[list[str], str]:
    """The SQL of each coding's code, NULL where a row has none, and the joins to the tables coding0, coding1, ... it needs.

    >>> sex = Coding("sex", pa.array(["F"]), np.array([1], np.int32), 0, 2)
    >>> coded_cells([sex], ["f0"])
    (['CASE WHEN f0 IS NULL THEN 0 ELSE d0.c END'], ' LEFT JOIN coding0 AS d0 ON f0 = d0.v')
    """
    codes, joins = [], ""
    for at, (coding, cell) in enumerate(zip(codings, cells, strict=True)):
        joins += f" LEFT JOIN coding{at} AS d{at} ON {cell} = d{at}.v"
        code = f"d{at}.c"
        codes.append(
            code if coding.blank < 0 else f"CASE WHEN {cell} IS NULL THEN {coding.blank} ELSE {code} END"
        )
    return codes, joins


def tuple_statement(keys: TupleKeys, codes: Sequence[str], joins: str) -> tuple[list[str], str]:
    """The names and the SQL of the question for distinct tuples: keys, the code beside them if there is one more, rows.

    `{rows}` stands for the source's rows.

    >>> sex = Coding("sex", pa.array(["F"]), np.array([1], np.int32), -1, 2)
    >>> tuple_statement(TupleKeys((sex,)), ["d0.c", "d1.c"], "")[0]
    ['key0', 'code', 'rows']
    """
    of_keys, beside = codes[: len(keys.codings)], codes[len(keys.codings) :]
    names = [*keys.names, *(CODE for _ in beside)]
    made = [
        f"{cell} AS {name}" for cell, name in zip([*keys.expressions(of_keys), *beside], names, strict=True)
    ]
    there = " AND ".join(f"{name} IS NOT NULL" for name in names)
    listed = ", ".join(names)
    return [*names, ROWS], (
        f"SELECT {listed}, count(*) AS {ROWS} FROM (SELECT {', '.join(made)} FROM {{rows}}{joins}) AS coded "
        f"WHERE {there} GROUP BY {listed}"
    )


def without_values(cell: str, type_: pa.DataType, none: NoValue, quoted: Callable[[str], str]) -> str | None:
    """The SQL of a cell with NULL where it means no value; None where a cell of its type never does.

    *quoted* writes a text as SQL. NaN is the engine's own to find.

    >>> none = NoValue.of(("ND", "-999"))
    >>> without_values("f0", pa.int64(), none, repr)
    'CASE WHEN f0 IN (-999) THEN NULL ELSE f0 END'
    """
    meant = [
        quoted(value)
        if isinstance(value, str)
        else f"DATE '{value}'"
        if isinstance(value, date)
        else repr(value)
        for value in none.of_type(type_)
    ]
    return f"CASE WHEN {cell} IN ({', '.join(meant)}) THEN NULL ELSE {cell} END" if meant else None


@dataclass(frozen=True)
class FileSink:
    """A file that a table is written to, and its format.

    >>> FileSink(Path("table.csv"), "csv").path.name
    'table.csv'
    """

    path: Path
    format: Literal["csv", "parquet"]


@dataclass(frozen=True, repr=False)
class TableSink:
    """A table that is being made on a server, in a transaction that nobody else sees yet.

    *make* makes it with columns and their SQL types, *fill* copies the rows of a statement of another connection into it
    and says how many; *connection* is the transaction.

    >>> TableSink("stays_k5", print, lambda source, select: 0, None)
    TableSink('stays_k5')
    """

    table: str
    make: Callable[[Sequence[tuple[str, str]]], None]
    fill: Callable[[Any, str], int]
    connection: Any

    def __repr__(self) -> str:
        return f"TableSink({self.table!r})"


Sink = FileSink | TableSink


Order = Literal["scan", "numbered", "none"]
"""Whether the rows of a source stand in an order of their own, that of memory. scan: whoever reads them meets them in it.
numbered: they have one, which an answer keeps only where it asks for it. none: they have none, and equal rows cannot be told apart."""


@runtime_checkable
class RowSource(Protocol):
    """A table that an engine holds: counted there, recoded there, its rows never collected here.

    >>> from velado.engines.duckdb_source import of_arrow
    >>> source: RowSource = of_arrow(pa.table({"sex": ["F", "F", "M"]}))
    >>> source.rows, source.distinct("sex"), source.lone("sex")
    (3, (3, 2), 1)
    """

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def engine(self) -> str:
        """Which engine answers, as a person calls it."""
        ...

    @property
    def types(self) -> pa.Schema:
        """Its columns and their Arrow types, in order."""
        ...

    @property
    def rows(self) -> int:
        """How many rows it has."""
        ...

    @property
    def libraries(self) -> tuple[str, ...]:
        """The packages of Python through which the engine is asked, for the manifest."""
        ...

    @property
    def order(self) -> Order:
        """Whether its rows stand in an order of their own: the one place that says so."""
        ...

    def numbered(self) -> RowSource:
        """The same rows set aside, each with its number, from 0 on, in a further column PLACE; the source writes them too.

        Nobody asks this of a source whose rows have no order.
        """
        ...

    def blanked(self, none: Mapping[str, NoValue]) -> RowSource:
        """The same rows with nothing in the cells that mean no value, which *none* says by column."""
        ...

    def filled(self, columns: Sequence[str], blanks: Sequence[str]) -> RowSource:
        """The rows that have a value in each of *columns*; *blanks* are texts that mean none."""
        ...

    def sample(self, most: int, whole: str | None = None) -> pa.Table:
        """All rows where there are at most *most*, else about so many; *whole*: all rows of some of its values.

        They come in their order, if they have one.
        """
        ...

    def domain(self, column: str) -> pa.Table:
        """The distinct values of a column (`value`, null among them) and their `rows`."""
        ...

    def extremes(self, column: str) -> pa.Table:
        """The least and the greatest `value` of a column of numbers."""
        ...

    def distinct(self, column: str) -> tuple[int, int]:
        """How many rows have a value in a column, and how many different values they are."""
        ...

    def lone(self, column: str) -> int:
        """How many values of a column stand in one row only."""
        ...

    def tuples(self, keys: TupleKeys, beside: Coding | None = None) -> pa.Table:
        """The distinct tuples of codes as keys, with the `code` of another column *beside* them, and their `rows`."""
        ...

    def counts(self, columns: Sequence[str]) -> pa.Table:
        """The distinct combinations of cells of *columns*, as they stand, and their `rows`."""
        ...

    def write(self, recoding: Recoding, sink: Sink) -> int:
        """The recoded rows stand in *sink*, in the order that the recoding says; how many they are."""
        ...

    def fingerprint(self) -> bytes:
        """A digest of the rows, for the owner alone: whoever has it can test guesses of them."""
        ...

    def unchanged(self) -> None:
        """Nothing, if the rows are those that were first counted; else an error."""
        ...

    def close(self) -> None:
        """Give memory, files and connections back."""
        ...


Source = TypeVar("Source", bound=RowSource)


def as_read(source: Source, schema: Schema) -> Source:
    """The source with nothing in the cells that *schema* says to mean no value: what a release counts and writes.

    >>> from velado.engines.duckdb_source import of_arrow
    >>> rows = as_read(of_arrow(pa.table({"age": [31, -9]})), Schema({}, missing_values=("", "-9")))
    >>> rows.distinct("age")
    (1, 1)
    """
    return cast(Source, source.blanked(no_values(schema, source.types.names)))
