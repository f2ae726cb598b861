"""PostgreSQL answers for its own table: every question is one snapshot, and what is written stands there in one step.

Reading is one transaction at repeatable read, so that the rows cannot change under a run; lists that are handed to the server
stand in temporary tables that go with it, and so do the coded rows of a table that is cut first. Writing is one transaction on the target's server: the new table is
made, filled, counted and checked before anybody else can see it, and a run that is killed has written nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import polars as pl
import pyarrow as pa

from velado.data.blanks import NoValue
from velado.engines.postgres_connection import connected
from velado.engines.room import room_of
from velado.engines.row_source import (
    PLACE,
    ROWS,
    Coding,
    Order,
    Recoding,
    Sink,
    TableSink,
    TupleKeys,
    coded_cells,
    coding_list,
    tuple_statement,
    without_values,
)
from velado.engines.sql_cut import SqlLots, cut_columns
from velado.errors import EngineError, OutputError, ParameterError, TableError
from velado.text import say

_NAME_BYTES = 63
# Two servers do not start within the same microsecond; an address would not do, because one server may have several.
_SERVER = "pg_postmaster_start_time()::text, current_database()::text"
# What a cell becomes on its way here, by the server's type: the Arrow type, the SQL type, and how it is cast.
_WHOLE, _REAL = (pa.int64(), "int8", "{}::int8"), (pa.float64(), "float8", "{}::float8")
_TEXT = (pa.string(), "text", '{}::text COLLATE "C"')
KINDS = {
    **dict.fromkeys((20, 21, 23), _WHOLE),
    **dict.fromkeys((700, 701), _REAL),
    **dict.fromkeys((18, 19, 25, 1042, 1043, 1700, 2950), _TEXT),
    16: (pa.bool_(), "bool", "{}"),
    1082: (pa.date32(), "date", "{}"),
    1114: (pa.timestamp("us"), "timestamp", "{}"),
    1184: (pa.timestamp("us"), "timestamp", "({} AT TIME ZONE 'UTC')"),
}
"""By the server's number of a type."""


def cell_of(column: str, kind: int) -> str:
    """The SQL of a column of a relation `r` on its way here, whose type has that number.

    >>> cell_of("age", 23)
    'r."age"::int8'
    """
    return KINDS[kind][2].format(f"r.{_quoted(column)}")


def no_table(table: str) -> TableError:
    """The error that a server does not have a table.

    >>> no_table("stays").what
    "There is no table 'stays' on the server."
    """
    return TableError(
        say("There is no table '{table}' on the server.", table=table),
        "Nothing was read.",
        "Check the name; a schema is written before it, as in ward.stays.",
    )


def odd_type(column: str) -> TableError:
    """The error that a column of a server cannot be published.

    >>> odd_type("place").what
    "Column 'place' has a type that cannot be published from a server yet."
    """
    return TableError(
        say("Column '{name}' has a type that cannot be published from a server yet.", name=column),
        "Only texts, numbers, dates and yes/no values can be compared and published.",
        "Make a view without it, or with the column as text.",
    )


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Whatever the server or the driver says becomes one sentence: their own may quote a cell or the address."""
    import psycopg

    try:
        yield
    except psycopg.errors.InsufficientPrivilege:
        raise EngineError(
            say("The role may not do what a release of '{name}' needs.", name=name),
            "It must read the source, make temporary tables there, and make the target. Nothing was published.",
            "Ask for these rights, or use another role.",
        ) from None
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory):
        raise EngineError(
            "The PostgreSQL server ran out of room.",
            "Nothing was published.",
            "Make room there and run it again.",
        ) from None
    except psycopg.Error as error:
        raise EngineError(
            say("The PostgreSQL server did not finish the work ({kind}).", kind=type(error).__name__),
            "The connection was lost, or the server refused a step. Nothing was published.",
            "Check the server, then run it again.",
        ) from None


def relation_of(table: str) -> str:
    """The quoted name of a table, which may have its schema before a point.

    >>> relation_of("stays"), relation_of("ward.stays")
    ('"stays"', '"ward"."stays"')
    """
    return ".".join(_quoted(part) for part in table.split("."))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, repr=False)
class PostgresSource:
    """A server's table or view within one transaction; make one with `open_table`.

    *cells* are the columns as SQL, by their places, *kinds* the SQL types they have here. *memory* is what may be held on
    this side of the connection, e.g. "3GB".

    >>> PostgresSource("stays", None, '"stays"', pa.schema([("age", pa.int64())]), ('r."age"',), ("int8",), 3)
    PostgresSource('stays', 3 rows, 1 columns)
    """

    name: str
    connection: Any
    relation: str
    types: pa.Schema
    cells: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: int = 0
    where: tuple[str, ...] = ()
    memory: str | None = None
    engine: str = "PostgreSQL"
    order: Order = "numbered"
    libraries: tuple[str, ...] = ("psycopg", "pyarrow")

    def __repr__(self) -> str:
        return f"PostgresSource({self.name!r}, {self.rows:,} rows, {len(self.types)} columns)"

    def blanked(self, none: Mapping[str, NoValue]) -> PostgresSource:
        """The same rows with nothing in the cells that mean no value, which *none* says by column."""
        cells = list(self.cells)
        for at, field in enumerate(self.types):
            if field.name in none:
                made = without_values(cells[at], field.type, none[field.name], _literal) or cells[at]
                if self.kinds[at] == "float8" and none[field.name].nan:
                    made = f"CASE WHEN {cells[at]} = 'NaN' THEN NULL ELSE {made} END"
                cells[at] = made if made == cells[at] else f"({made})"
        return replace(self, cells=tuple(cells))

    def filled(self, columns: Sequence[str], blanks: Sequence[str]) -> PostgresSource:
        """The rows that have a value in each of *columns*; *blanks* are texts that mean none."""
        conditions = []
        for name in columns:
            cell, kind = self._cell(name), self.kinds[self._at(name)]
            conditions.append(f"{cell} IS NOT NULL")
            if kind == "text" and blanks:
                listed = ", ".join(_literal(text) for text in blanks)
                conditions.append(f"{cell} NOT IN ({listed})")
            elif kind == "float8" and any(text.lower() == "nan" for text in blanks):
                conditions.append(f"{cell} <> 'NaN'")
        kept = replace(self, where=(*self.where, *conditions))
        return replace(kept, rows=kept._one("SELECT count(*) FROM {rows}"))

    def sample(self, most: int, whole: str | None = None) -> pa.Table:
        """All rows where there are at most *most*, else about so many; with *whole*, all rows of some of its values."""
        chosen = ""
        if self.rows > most:
            share = most / self.rows
            self._run("SELECT setseed(0.5)")
            chosen = f" WHERE random() < {share}"
            if whole is not None:
                bound = int(share * (1 << 63))
                chosen = f" WHERE abs(hashtextextended({self._cell(whole)}::text, 0) / 2) * 2 < {bound}"
        shown = ", ".join(self.cells)
        with self._as_they_lie():
            return self._table(f"SELECT {shown} FROM {{rows}}{chosen}", self.types)

    def domain(self, column: str) -> pa.Table:
        """The distinct values of a column (`value`, null among them) and their `rows`."""
        return self.counts([column]).rename_columns(["value", ROWS])

    def extremes(self, column: str) -> pa.Table:
        """The least and the greatest `value` of a column of numbers."""
        cell = self._cell(column)
        type_ = pa.schema([pa.field("value", self.types.field(column).type)])
        return self._table(f"SELECT unnest(ARRAY[min({cell}), max({cell})]) FROM {{rows}}", type_)

    def distinct(self, column: str) -> tuple[int, int]:
        """How many rows have a value in a column, and how many different values they are."""
        cell = self._cell(column)
        (found,) = self._ask(f"SELECT count({cell}), count(DISTINCT {cell}) FROM {{rows}}")
        return int(found[0]), int(found[1])

    def lone(self, column: str) -> int:
        """How many values of a column stand in one row only."""
        cell = self._cell(column)
        once = f"SELECT 1 FROM {{rows}} WHERE {cell} IS NOT NULL GROUP BY {cell} HAVING count(*) = 1"
        return self._one(f"SELECT count(*) FROM ({once}) AS once")

    def tuples(self, keys: TupleKeys, beside: Coding | None = None) -> pa.Table:
        """The distinct tuples of codes as keys, with the `code` of another column *beside* them, and their `rows`."""
        codes, joins = self._coded([*keys.codings, *([] if beside is None else [beside])])
        names, sql = tuple_statement(keys, codes, joins)
        return self._table(sql, pa.schema([(name, pa.int64()) for name in names]))

    def about_tuples(self, columns: Sequence[str]) -> int:
        """About how many different combinations of cells *columns* have: those whose hash falls in a slice, many times."""
        slices = 64 if self.rows > 1_000_000 else 1
        row = f"hashtextextended(ROW({', '.join(self._cell(name) for name in columns)})::text, 0)"
        found = self._one(
            f"SELECT count(DISTINCT h) FROM (SELECT {row} AS h FROM {{rows}}) AS hashed WHERE h & {slices - 1} = 0"
        )
        return min(found * slices, self.rows)

    def numbered(self) -> PostgresSource:
        """The same rows set aside, each with its number in a further column, in the order they lie in."""
        number = f"row_number() OVER () - 1 AS {_quoted(PLACE)}"
        with self._as_they_lie():
            PostgresTables(self).make("numbered_rows", f"SELECT r.*, {number} FROM {self._rows()}")
        return self._with_numbers()

    @contextmanager
    def _as_they_lie(self) -> Iterator[None]:
        """Within, rows come in the order they lie in: no scan begins in the middle, where another one is, or is shared by workers."""
        ways = (("synchronize_seqscans", "off"), ("max_parallel_workers_per_gather", "0"))
        for name, value in ways:
            self._run(f"SET LOCAL {name} = {value}")
        yield
        for name, _ in ways:
            self._run(f"SET LOCAL {name} TO DEFAULT")

    def _with_numbers(self) -> PostgresSource:
        return replace(
            self,
            relation="pg_temp.numbered_rows",
            types=self.types.append(pa.field(PLACE, pa.int64())),
            cells=(*self.cells, f"r.{_quoted(PLACE)}"),
            kinds=(*self.kinds, "int8"),
            where=(),
        )

    def room(self) -> int:
        """How many bytes may be held on this side."""
        return room_of(self.memory)

    def cut_rows(self, keys: TupleKeys, beside: Sequence[Coding], blanks: Sequence[int]) -> SqlLots:
        """The coded rows, to be cut into parts; *blanks* has each key column's code of "no value", -1 for none."""
        codes, joins = self._coded([*keys.codings, *beside])
        made = SqlLots(PostgresTables(self), keys, cut_columns(len(keys.codings), blanks), len(beside))
        made.begin(f"{self._rows()}{joins}", codes, beside)
        return made

    def counts(self, columns: Sequence[str]) -> pa.Table:
        """The distinct combinations of cells of *columns*, as they stand, and their `rows`."""
        cells = ", ".join(self._cell(name) for name in columns)
        types = pa.schema([*(self.types.field(name) for name in columns), pa.field(ROWS, pa.int64())])
        return self._table(f"SELECT {cells}, count(*) FROM {{rows}} GROUP BY {cells}", types)

    def write(self, recoding: Recoding, sink: Sink) -> int:
        """The recoded rows stand in the table of *sink*, whose transaction is still open; how many they are."""
        if not isinstance(sink, TableSink):
            raise ParameterError(
                "A table of PostgreSQL is published into a table of PostgreSQL.",
                "Writing it to a file would take it from the server's own care.",
                "Give --to and --to-table.",
            )
        if recoding.keys.placed and PLACE not in self.types.names:
            return self._with_numbers().write(recoding, sink)
        codes, joins = self._coded(recoding.keys.codings)
        keys = recoding.keys.expressions(codes)
        tuples = "tuple_groups"
        if recoding.entries is None:
            self._hold("tuple_groups", recoding.mapping, ["int4", "int4"])
            tuples = "(SELECT t.*, g.grp FROM cut_tuples AS t JOIN tuple_groups AS g ON g.cell = t.cell)"
        else:
            self._hold("tuple_groups", recoding.mapping, ["int8"] * len(recoding.keys.names) + ["int4"])
        texts = recoding.texts
        kinds = ["int4", *("float8" if pa.types.is_floating(t) else "text" for t in texts.schema.types[1:])]
        self._hold("group_texts", texts, kinds)
        match = " AND ".join(f"{key} = m.{name}" for key, name in zip(keys, recoding.keys.names, strict=True))
        labels = {name: f"t{at}" for at, name in enumerate(recoding.labels)}
        own = {name: f"o{at}" for at, name in enumerate(recoding.columns) if name not in labels}
        alike = ", ".join(["grp", *own.values()])
        made = ", ".join(["m.grp", *(f"{self._cell(name)} AS {short}" for name, short in own.items())])
        body = (
            f"SELECT {alike}, count(*) AS n FROM (SELECT {made} FROM {self._rows()}{joins} "
            f"JOIN {tuples} AS m ON {match}) AS told GROUP BY {alike}"
        )
        wanted = ", ".join(f"g.{labels[n]}" if n in labels else f"a.{own[n]}" for n in recoding.columns)
        placed = ", ".join([f"a.{part}" for part in alike.split(", ")] + ["copy"])
        signed = recoding.order - (1 << 64 if recoding.order >= 1 << 63 else 0)
        select = (
            f"SELECT {wanted} FROM ({body}) AS a JOIN group_texts AS g ON g.grp = a.grp "
            f"CROSS JOIN LATERAL generate_series(1, a.n) AS copy "
            f"ORDER BY hashtextextended(ROW({placed})::text, ({signed})::int8)"
        )
        text_kinds = dict(zip(labels, kinds[1:], strict=True))
        columns = [(n, text_kinds[n] if n in labels else self.kinds[self._at(n)]) for n in recoding.columns]
        sink.make(columns)
        with _told(self.name):
            return sink.fill(self.connection, select)

    def fingerprint(self) -> bytes:
        """A digest of the rows, whatever their order."""
        row = f"ROW({', '.join(self.cells)})::text"
        (found,) = self._ask(
            "SELECT count(*)::text, sum(('x' || substr(h, 1, 16))::bit(64)::int8::numeric)::text, "
            "sum(('x' || substr(h, 17, 16))::bit(64)::int8::numeric)::text "
            f"FROM (SELECT md5({row}) AS h FROM {{rows}}) AS hashed"
        )
        return hashlib.sha256("\0".join(str(part) for part in found).encode()).digest()

    def unchanged(self) -> None:
        """Nothing: within its transaction a snapshot cannot change."""

    def reads(self, other: Any, table: str) -> bool:
        """Whether the rows come, directly or through a view, from *table* as another connection finds it."""
        with _told(self.name):
            held = self.connection.execute(
                f"SELECT {_SERVER}, l.relation::int8 FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database "
                "WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND d.datname = current_database()"
            ).fetchall()
        with _told(table):
            asked = f"SELECT {_SERVER}, to_regclass(%s)::oid::int8"
            return other.execute(asked, [relation_of(table)]).fetchone() in held

    def close(self) -> None:
        """Give the connection back; temporary tables go with it."""
        self.connection.close()

    def _at(self, name: str) -> int:
        return int(self.types.get_field_index(name))

    def _cell(self, name: str) -> str:
        return self.cells[self._at(name)]

    def _rows(self) -> str:
        condition = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"(SELECT r.* FROM {self.relation} AS r{condition}) AS r"

    def _coded(self, codings: Sequence[Coding]) -> tuple[list[str], str]:
        for at, coding in enumerate(codings):
            kinds = [self.kinds[self._at(coding.column)], "int4"]
            self._hold(f"coding{at}", coding_list(coding), kinds)
        return coded_cells(codings, [self._cell(coding.column) for coding in codings])

    def _hold(self, name: str, table: pa.Table, kinds: Sequence[str]) -> None:
        types = ['text COLLATE "C"' if kind == "text" else kind for kind in kinds]
        columns = [f"{column} {type_}" for column, type_ in zip(table.column_names, types, strict=True)]
        self._run(f"DROP TABLE IF EXISTS pg_temp.{name}")
        self._run(f"CREATE TEMP TABLE {name} ({', '.join(columns)})")
        self._fill(name, table)
        self._run(f"ANALYZE {name}")

    def _fill(self, name: str, table: pa.Table) -> None:
        numbers = all(pa.types.is_integer(t) or pa.types.is_boolean(t) for t in table.schema.types)
        how = " (FORMAT csv)" if numbers else ""
        with (
            _told(self.name),
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY pg_temp.{name} FROM STDIN{how}") as copy,
        ):
            for batch in table.to_batches(max_chunksize=65_536):
                if numbers:  # whose texts need no care, and whose rows may be many
                    frame = cast(pl.DataFrame, pl.from_arrow(batch))
                    copy.write(frame.write_csv(include_header=False))
                    continue
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    copy.write_row(row)

    def _run(self, sql: str) -> None:
        with _told(self.name):
            self.connection.execute(sql)

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        with _told(self.name):
            found: list[tuple[Any, ...]] = self.connection.execute(
                sql.replace("{rows}", self._rows())
            ).fetchall()
            return found

    def _one(self, sql: str) -> int:
        return int(self._ask(sql)[0][0])

    def _table(self, sql: str, types: pa.Schema) -> pa.Table:
        found = self._ask(sql)
        columns: Iterable[Sequence[Any]] = zip(*found, strict=True) if found else [()] * len(types)
        arrays = [pa.array(list(column), type=t) for column, t in zip(columns, types.types, strict=True)]
        return pa.Table.from_arrays(arrays, names=types.names)


@dataclass(frozen=True, repr=False)
class PostgresTables:
    """Temporary tables of a source's own transaction, for `SqlLots`.

    >>> PostgresTables.__name__
    'PostgresTables'
    """

    source: PostgresSource

    def make(self, name: str, select: str) -> None:
        """A table *name* holds the rows of *select*, which may read the one that has the name now."""
        self.source._run(f"CREATE TEMP TABLE {name}_next AS {select}")
        self.drop(name)
        self.source._run(f"ALTER TABLE pg_temp.{name}_next RENAME TO {name}")
        self.source._run(f"ANALYZE pg_temp.{name}")

    def drop(self, name: str) -> None:
        """There is no table *name* of the run; one of somebody else's stays."""
        self.source._run(f"DROP TABLE IF EXISTS pg_temp.{name}")

    def hold(self, name: str, table: pa.Table) -> None:
        """A table *name* holds what is handed over."""
        self.source._hold(name, table, [_NUMBERS[type_] for type_ in table.schema.types])

    def append(self, name: str, table: pa.Table) -> None:
        """More rows of whole numbers stand in table *name*."""
        kinds = [_NUMBERS[type_] for type_ in table.schema.types]
        columns = [f"{column} {kind}" for column, kind in zip(table.column_names, kinds, strict=True)]
        self.source._run(f"CREATE TEMP TABLE IF NOT EXISTS {name} ({', '.join(columns)})")
        self.source._fill(name, table)

    def append_select(self, name: str, select: str) -> None:
        """The rows of *select* stand in table *name* too."""
        empty = f"SELECT * FROM ({select}) AS empty LIMIT 0"
        self.source._run(f"CREATE TEMP TABLE IF NOT EXISTS {name} AS {empty}")
        self.source._run(f"INSERT INTO pg_temp.{name} {select}")

    def ask(self, sql: str, names: Sequence[str]) -> pa.Table:
        """The answer, columns of whole numbers called *names*."""
        return self.source._table(sql, pa.schema([(name, pa.int64()) for name in names]))

    def lay(self, name: str) -> None:
        """Rows of table *name* with the same `part` are quickly found."""
        self.source._run(f"CREATE INDEX ON pg_temp.{name} (part)")


_NUMBERS = {pa.int32(): "int4", pa.int64(): "int8", pa.bool_(): "bool"}


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def open_table(url: str, table: str, *, memory: str | None = None) -> PostgresSource:
    """The rows of a server's table or view, in one snapshot; *memory* is what may be held here of what it answers.

    >>> open_table("postgresql://127.0.0.1:1/x", "stays")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.EngineError: The PostgreSQL server could not be reached. ...
    """
    room_of(memory)
    connection = connected(url)
    try:
        with _told(table):
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return replace(within(connection, table), memory=memory)
    except BaseException:
        connection.close()
        raise


def within(connection: Any, table: str) -> PostgresSource:
    """A table as an open transaction sees it.

    >>> within.__name__
    'within'
    """
    import psycopg

    relation = relation_of(table)
    try:
        shown = connection.execute(f"SELECT * FROM {relation} LIMIT 0").description
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        raise no_table(table) from None
    except psycopg.Error:
        with _told(table):
            raise
    odd = [
        column.name
        for column in shown
        if column.type_code not in KINDS and not _is_listed(connection, column)
    ]
    if odd:
        raise odd_type(odd[0])
    kinds = [KINDS.get(column.type_code, _TEXT) for column in shown]
    names = [f"r.{_quoted(column.name)}" for column in shown]
    source = PostgresSource(
        table,
        connection,
        relation,
        pa.schema([(column.name, kind[0]) for column, kind in zip(shown, kinds, strict=True)]),
        tuple(f"({kind[2].format(name)})" for name, kind in zip(names, kinds, strict=True)),
        tuple(kind[1] for kind in kinds),
    )
    return replace(source, rows=source._one("SELECT count(*) FROM {rows}"))


def _is_listed(connection: Any, column: Any) -> bool:
    """Whether a column's type is a list of words (an enum) or a text under another name."""
    found = connection.execute("SELECT typtype, typcategory FROM pg_type WHERE oid = %s", [column.type_code])
    return any(kind == "e" or category == "S" for kind, category in found.fetchall())


@contextmanager
def new_table(
    url: str, table: str, force: bool = False, source: PostgresSource | None = None
) -> Iterator[TableSink]:
    """A table that is made in one transaction: nobody sees it before the end, and after an error it was never there.

    One that the rows of *source* come from is refused: it would have to be gone before they are read.

    >>> with new_table("postgresql://127.0.0.1:1/x", "a" * 64) as sink:
    ...     pass
    Traceback (most recent call last):
    velado.errors.ParameterError: The name of the published table is longer than 63 bytes. PostgreSQL would cut it, and the table would stand under another name. Choose a shorter one.
    """
    if any(len(part.encode()) > _NAME_BYTES for part in table.split(".")):
        raise ParameterError(
            say("The name of the published table is longer than {most} bytes.", most=_NAME_BYTES),
            "PostgreSQL would cut it, and the table would stand under another name.",
            "Choose a shorter one.",
        )
    connection = connected(url)
    try:
        with _told(table):
            taken = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [relation_of(table)]).fetchone()[
                0
            ]
        if taken and not force:
            raise OutputError(
                say("The table '{table}' exists already on the server.", table=table),
                "Writing into it would mix two releases.",
                "Choose another name, or pass --force to replace it.",
            )
        if taken and source is not None and source.reads(connection, table):
            raise OutputError(
                say("The table '{table}' is the one that the rows are read from.", table=table),
                "It would have to be removed before its rows are read.",
                "Choose another name with --to-table.",
            )

        def run(sql: str) -> None:
            with _told(table):
                connection.execute(sql)

        def fill(source: Any, select: str) -> int:
            with (
                source.cursor() as reading,
                reading.copy(f"COPY ({select}) TO STDOUT") as out,
                connection.cursor() as writing,
            ):
                with writing.copy(f"COPY {relation_of(table)} FROM STDIN") as copy:
                    for block in out:
                        copy.write(block)
                return int(writing.rowcount)

        def make(columns: Sequence[tuple[str, str]]) -> None:
            if taken:
                run(f"DROP TABLE {relation_of(table)}")
            listed = ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns)
            run(f"CREATE TABLE {relation_of(table)} ({listed})")

        yield TableSink(table, make, fill, connection)
        with _told(table):
            connection.commit()
    finally:
        connection.close()
