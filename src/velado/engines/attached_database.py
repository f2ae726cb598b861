"""Tables of DuckDB and SQLite files: DuckDB attaches its own kind, and gets a private copy of the other's rows.

DuckDB's extension for SQLite is not part of it and would be fetched from a network, so that SQLite is read by Python itself, in
one transaction and in batches, into a file of the private folder.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from velado.engines.duckdb_files import connect, need, quoted, stamp, threads
from velado.engines.duckdb_source import DEFAULT_MEMORY, DuckDBSource, counted_source
from velado.engines.postgres_source import relation_of
from velado.errors import ParameterError, TableError
from velado.text import say

_BATCH = 50_000
# How the cells of DuckDB's types come out; of any other type a column is refused.
_AS_THEY_ARE = {
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"),
    *("FLOAT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"),
}
_AS_TEXT = ("DECIMAL", "ENUM", "UUID", "HUGEINT", "UBIGINT", "UHUGEINT", "TIME")


def database_kind(path: Path) -> Literal["duckdb", "sqlite"] | None:
    """Which kind of database a file is by its first bytes; None if it is none.

    >>> database_kind(Path("no-such-file")) is None
    True
    """
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError:
        return None
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    return "duckdb" if head[8:12] == b"DUCK" else None


def open_database(path: Path, table: str | None, folder: Path, *, memory: str | None = None) -> DuckDBSource:
    """The rows of a table or view of a DuckDB or SQLite file; *folder* is private, and what spills lies there.

    >>> open_database(Path("no-such.duckdb"), "stays", Path("."))
    Traceback (most recent call last):
    velado.errors.TableError: 'no-such.duckdb' cannot be opened as a database. It is damaged, of a newer version, or another program is writing to it. Check the file, or take a copy of it.
    """
    need("duckdb", say("Databases in files are read by it."), "duckdb")
    kind = database_kind(path)
    if kind is None:
        raise _unopened(path)
    # Whatever another program has written beside the file is part of it.
    files = [path, *(p for p in (path.with_name(path.name + end) for end in (".wal", "-wal")) if p.exists())]
    stamps = tuple(stamp(file) for file in files)
    if kind == "sqlite":
        connection, relation, names = _copied(path, table, folder, memory)
    else:
        connection, relation, names = _attached(path, table, folder, memory)
    cells = [f"f{at}" for at in range(len(names))]
    made = DuckDBSource(
        name=table or "",
        connection=connection,
        relation=f"({relation.format(more='')}) AS file",
        types=pa.schema([(cell, pa.string()) for cell in cells]),
        rows=0,
        files=tuple(files),
        stamps=stamps,
        placed=f"({relation.format(more=', 0 AS filename, rowid AS file_row_number')}) AS file",
    )
    try:
        return counted_source(
            made if _has_places(made) else replace(made, placed="", order="numbered"), names
        )
    except BaseException:
        connection.close()
        raise


def _has_places(source: DuckDBSource) -> bool:
    import duckdb

    try:
        source.connection.execute(f"SELECT * FROM {source.placed} LIMIT 0")
    except duckdb.Error:
        return False  # a view's rows have no numbers
    return True


def _attached(path: Path, table: str | None, folder: Path, memory: str | None) -> tuple[Any, str, list[str]]:
    import duckdb

    connection = connect(threads(), memory or DEFAULT_MEMORY, str(folder / "spill"))
    try:
        try:
            connection.execute(f"ATTACH '{quoted(str(path.resolve()))}' AS attached (READ_ONLY)")
        except duckdb.Error:
            raise _unopened(path) from None
        found = connection.execute(
            "SELECT CASE schema_name WHEN 'main' THEN '' ELSE schema_name || '.' END || name FROM ("
            "SELECT schema_name, table_name AS name FROM duckdb_tables() WHERE database_name = 'attached' "
            "UNION ALL SELECT schema_name, view_name FROM duckdb_views() "
            "WHERE database_name = 'attached' AND NOT internal) ORDER BY 1"
        ).fetchall()
        own = _chosen(path, table, [name for (name,) in found])
        relation = "attached." + relation_of(own if "." in own else f"main.{own}")
        shown = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        cells = [f"{_cell(str(name), str(type_))} AS f{at}" for at, (name, type_, *_) in enumerate(shown)]
    except BaseException:
        connection.close()
        raise
    return connection, f"SELECT {', '.join(cells)}{{more}} FROM {relation}", [str(row[0]) for row in shown]


def _cell(name: str, type_: str) -> str:
    column = _quoted(name).replace("{", "{{").replace("}", "}}")
    if type_ in _AS_THEY_ARE:
        return column
    if type_.startswith("TIMESTAMP"):
        return f"CAST({column} AS TIMESTAMP)"
    if type_.startswith(_AS_TEXT) and "[" not in type_:
        return f"CAST({column} AS VARCHAR)"
    raise _odd(name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _copied(path: Path, table: str | None, folder: Path, memory: str | None) -> tuple[Any, str, list[str]]:
    """The rows of a SQLite table as one transaction sees them, in a table of a private DuckDB file."""
    spilled = folder / f"{os.urandom(4).hex()}.duckdb"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as rows:
            rows.execute("BEGIN")
            found = rows.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' "
                "ESCAPE '\\' ORDER BY name"
            ).fetchall()
            own = _quoted(_chosen(path, table, [name for (name,) in found]))
            names = [str(column[0]) for column in rows.execute(f"SELECT * FROM {own} LIMIT 0").description]
            types, asked = _sqlite_types(rows, own, names)
            connection = connect(threads(), memory or DEFAULT_MEMORY, str(folder / "spill"), str(spilled))
            made = DuckDBSource(table or "", connection, "copied", types, 0)
            try:
                for number, batch in enumerate(_batches(rows, f"SELECT {asked} FROM {own}", types)):
                    into = "INSERT INTO copied SELECT" if number else "CREATE TABLE copied AS SELECT"
                    connection.register("batch", batch)
                    made.tried(partial(connection.execute, f"{into} * FROM batch"), spilled)
                    connection.unregister("batch")
            except BaseException:
                connection.close()
                raise
    except (sqlite3.Error, UnicodeError):
        raise _unopened(path) from None
    cells = ", ".join(types.names)
    return connection, f"SELECT {cells}{{more}} FROM copied", names


def _sqlite_types(rows: sqlite3.Connection, table: str, names: Sequence[str]) -> tuple[pa.Schema, str]:
    """The Arrow type of each column and how it is asked for: a SQLite column may hold cells of several kinds."""
    quoted_names = [_quoted(name) for name in names]
    kinds = ("text", "real", "blob")
    asked = ", ".join(f"max(typeof({cell}) = '{kind}')" for cell in quoted_names for kind in kinds)
    found = rows.execute(f"SELECT {asked} FROM {table}").fetchone()
    types, cells = [], []
    for at, cell in enumerate(quoted_names):
        text, real, blob = found[len(kinds) * at : len(kinds) * (at + 1)]
        if blob:
            raise _odd(names[at])
        kind = (pa.string(), "TEXT") if text else (pa.float64(), "REAL") if real else (pa.int64(), "INTEGER")
        types.append((f"f{at}", kind[0]))
        cells.append(f"CAST({cell} AS {kind[1]})")
    return pa.schema(types), ", ".join(cells)


def _batches(rows: sqlite3.Connection, sql: str, types: pa.Schema) -> Iterator[pa.Table]:
    """The rows in tables of some at a time, the first of which is there even without any."""
    cursor = rows.execute(sql)
    batch = cursor.fetchmany(_BATCH)
    yield _table(batch, types)
    while batch := cursor.fetchmany(_BATCH):
        yield _table(batch, types)


def _table(batch: Sequence[tuple[Any, ...]], types: pa.Schema) -> pa.Table:
    columns = zip(*batch, strict=True) if batch else [()] * len(types)
    arrays = [pa.array(column, type=t) for column, t in zip(columns, types.types, strict=True)]
    return pa.Table.from_arrays(arrays, names=types.names)


def _chosen(path: Path, table: str | None, found: Sequence[str]) -> str:
    if not table:
        raise ParameterError(
            say("'{path}' is a database, and which of its tables is meant was not said.", path=path.name),
            say("It has: {tables}.", tables=", ".join(found[:10]) or say("none")),
            "Add --table NAME.",
        )
    if table not in found:
        raise TableError(
            say("There is no table '{table}' in '{path}'.", table=table, path=path.name),
            say("It has: {tables}.", tables=", ".join(found[:10]) or say("none")),
            "Check the name; a schema is written before it, as in ward.stays.",
        )
    return table


def _odd(name: str) -> TableError:
    return TableError(
        say("Column '{name}' has a type that cannot be published from a database yet.", name=name),
        "Only texts, numbers, dates and yes/no values can be compared and published.",
        "Make a view without it, or with the column as text.",
    )


def _unopened(path: Path) -> TableError:
    return TableError(
        say("'{path}' cannot be opened as a database.", path=path.name),
        "It is damaged, of a newer version, or another program is writing to it.",
        "Check the file, or take a copy of it.",
    )
