"""A table of a PostgreSQL server as DuckDB's own extension reaches it: copied once, in one question, and published into files.

`postgres_source` is the pushed-down road: there the server counts, and no row leaves it. This one is for who wants files: the server
answers one question, which is one snapshot, its rows lie in a private folder while the run lasts, and DuckDB does the rest.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from velado.engines.duckdb_files import connect, need, quoted, threads
from velado.engines.duckdb_source import DEFAULT_MEMORY, DuckDBSource, counted_source, no_room
from velado.engines.postgres_connection import unreachable
from velado.engines.postgres_source import KINDS, cell_of, no_table, odd_type, relation_of
from velado.errors import EngineError, MissingExtra
from velado.text import say

_TEXT_OID = 25
# A domain is what it is made of; lists of words and types of texts are texts.
_COLUMNS = (
    "SELECT a.attname::text, (CASE WHEN t.typtype = 'e' OR t.typcategory = 'S' THEN {text} "
    "WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END)::int8 "
    "FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid "
    "WHERE a.attrelid = to_regclass('{relation}') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)


def open_server(url: str, table: str, folder: Path, *, memory: str | None = None) -> DuckDBSource:
    """The rows of a server's table or view, copied into *folder*, which is private.

    >>> open_server.__name__
    'open_server'
    """
    need("duckdb", say("A server's rows are copied by it."), "duckdb")
    spilled = folder / f"{os.urandom(4).hex()}.duckdb"
    connection = connect(threads(), memory or DEFAULT_MEMORY, str(folder / "spill"), str(spilled))
    try:
        _attach(connection, url)
        text = {"text": _TEXT_OID, "relation": quoted(relation_of(table))}
        shown = _asked(connection, f"SELECT * FROM {_there(_COLUMNS.format(**text))}").fetchall()
        if not shown:
            raise no_table(table)
        odd = [name for name, kind in shown if kind not in KINDS]
        if odd:
            raise odd_type(odd[0])
        names = [str(name) for name, _ in shown]
        cells = [f"{cell_of(name, kind)} AS f{at}" for at, (name, kind) in enumerate(shown)]
        rows = f"SELECT {', '.join(cells)} FROM {relation_of(table)} AS r"
        _asked(connection, f"CREATE TABLE copied AS SELECT * FROM {_there(rows)}")
        connection.execute("DETACH server")
        listed = ", ".join(f"f{at}" for at in range(len(names)))
        made = DuckDBSource(
            name=table,
            connection=connection,
            relation=f"(SELECT {listed} FROM copied) AS file",
            types=pa.schema([(f"f{at}", pa.string()) for at in range(len(names))]),
            rows=0,
            placed=f"(SELECT {listed}, 0 AS filename, rowid AS file_row_number FROM copied) AS file",
        )
        return counted_source(made, names)
    except BaseException:
        connection.close()
        raise


def _there(sql: str) -> str:
    """A question that the server itself answers, as a relation."""
    return f"postgres_query('server', '{quoted(sql)}')"


def _attach(connection: Any, url: str) -> None:
    import duckdb

    try:
        connection.execute("LOAD postgres")
    except duckdb.Error:
        raise MissingExtra(
            "DuckDB's extension postgres is not installed here.",
            "With it DuckDB copies a server's rows into files, and velado fetches nothing from a network by itself.",
            "Leave --engine out and add --to-table: the server itself counts and writes. Or run `INSTALL postgres` once in your own DuckDB, with the same version.",
        ) from None
    try:
        connection.execute(f"ATTACH '{quoted(url)}' AS server (TYPE postgres, READ_ONLY)")
    except duckdb.Error:  # whose message repeats the address
        raise unreachable() from None


def _asked(connection: Any, sql: str) -> Any:
    import duckdb

    try:
        return connection.execute(sql)
    except duckdb.OutOfMemoryException:
        raise no_room() from None
    except duckdb.Error as error:
        if isinstance(error, duckdb.IOException) and "write" in str(error).lower():
            raise no_room() from None
        raise EngineError(
            say("The PostgreSQL server did not finish the work ({kind}).", kind=type(error).__name__),
            "The connection was lost, or the server refused a step. Nothing was published.",
            "Check the server, then run it again.",
        ) from None
