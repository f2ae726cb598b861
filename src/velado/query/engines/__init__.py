"""Where the rows are: engines that turn frozen values into exact whole numbers, after cutting units to their most rows.

`engine_for_table` loads a table into DuckDB in memory, `engine_for_file` lets DuckDB scan a CSV or Parquet file, and
`engine_for_postgres` pushes everything down to a server. All three give the same numbers for the same rows: missing
texts and NaN are NULL, a cell that does not read as its declared kind is missing, an infinity compares as one and
counts with its bound, texts compare by their code points, and sums cannot overflow.

Rows are of one unit when their cells of its column mean the same, however they are spelled: the same double where it is
declared numeric (0.0 and -0.0 are one; NaN is none), the same day where it is a date, else the same normal form
(`velado.data.normal`: `P1`, ` p1` are one, `7`, `07`, `7.0` too). A cell that does not read as a number or day is known by
the normal form of its text. A text that means "no value" is none, however it is spelled, and so is the number or the day
it names. A PostgreSQL server that cannot compute the whole normal form refuses tables in which that would split a unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from velado.engines.duckdb_files import connect, need, scan, stamp
from velado.engines.duckdb_files import threads as all_threads
from velado.errors import TableError, VeladoError
from velado.query.engines import _tally
from velado.query.engines._compile import Layout
from velado.text import say

if TYPE_CHECKING:
    from velado.data.schema import Schema
    from velado.data.table import Table
    from velado.query.identity import TableIdentity
    from velado.query.needs import Engine
    from velado.query.unit import Unit

__all__ = ["engine_for_file", "engine_for_postgres", "engine_for_table", "identity_of"]

# A file beyond this is held in a private folder on disk rather than in memory.
LARGE_FILE = 4 << 30


def engine_for_table(
    table: Table, unit: Unit, *, threads: int | None = None, memory: str | None = None
) -> Engine:
    """DuckDB over the frame, in memory; nothing is written to disk. A unit keeps its first rows in the frame's order.

    >>> import polars as pl
    >>> from velado.data.schema import Column, Schema
    >>> from velado.data.table import Table
    >>> from velado.query.needs import Rows
    >>> from velado.query.unit import Unit
    >>> stays = Table.of(pl.DataFrame({"home": ["a", "a", "b"]}), Schema({"home": Column("home")}), "stays")
    >>> engine_for_table(stays, Unit("home", rows=1)).tally(None, (), (Rows(),))
    (array([2]),)
    """
    need("duckdb", say("Tables and files are queried by it."), "query")
    from velado.query.engines._row_marks import identity_of_table

    version = _tally.of_frame(table.frame, table.schema, unit)
    return _held(table, unit, (threads, memory), version, partial(identity_of_table, table))


def _held(
    table: Table,
    unit: Unit,
    room: tuple[int | None, str | None],
    version: str,
    identify: Callable[[], TableIdentity],
) -> Engine:
    from velado.query.engines._duckdb_engine import DuckDBEngine
    from velado.query.engines._duckdb_rows import arrow_of, load, unit_numbers

    layout = Layout.of(table.schema, unit)
    rows, numbers = arrow_of(table), unit_numbers(table, unit)
    if numbers is not None:
        rows = rows.append_column("ru", numbers)
    connection = connect(room[0] or all_threads(), room[1], "")
    try:
        connection.register("frame", rows)
        types = [str(row[1]) for row in connection.execute("DESCRIBE frame").fetchall()][: len(layout.places)]
        cell = ("ru", "DOUBLE") if numbers is not None else _unit_cell(layout, types)
        load(connection, "frame", types, cell, layout, table.schema)
        connection.unregister("frame")
        return DuckDBEngine(connection, layout, version, identify)
    except BaseException:
        connection.close()
        raise


def engine_for_file(
    path: Path, schema: Schema, unit: Unit, *, threads: int | None = None, memory: str | None = None
) -> Engine:
    """DuckDB scans the file once; a unit keeps its first rows in the file's order.

    What does not fit in memory spills to a private folder that is removed when the engine is closed. Columns of the
    file that the schema does not name are not read.

    >>> from velado.data.schema import Column, Schema
    >>> from velado.query.needs import Rows
    >>> from velado.query.unit import Unit
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "stays.csv").write_text("home\\na\\na\\nb\\n")
    ...     engine = engine_for_file(Path(folder, "stays.csv"), Schema({"home": Column("home")}), Unit())
    >>> engine.tally(None, (), (Rows(),)), engine.close()
    ((array([3]),), None)
    """
    need("duckdb", say("Tables and files are queried by it."), "query")
    from velado.query.engines._duckdb_engine import DuckDBEngine
    from velado.query.engines._duckdb_rows import load, pick
    from velado.query.engines._row_marks import identity_of_file

    layout = Layout.of(schema, unit)
    folder = TemporaryDirectory(prefix="velado-")
    connection = None
    try:
        private = Path(folder.name)
        before = stamp(Path(path))
        found = scan(Path(path), schema, private)
        large = Path(path).stat().st_size > LARGE_FILE
        database = str(private / "rows.duckdb") if large else ":memory:"
        connection = connect(threads or all_threads(), memory, str(private / "spill"), database)
        source, types = pick(found, schema, connection)
        version = _tally.of_file(Path(path), schema, unit)
        identify = partial(identity_of_file, Path(path), schema)
        table = None
        try:
            load(connection, source, types, _unit_cell(layout, types), layout, schema)
        except TableError as refused:
            # DuckDB refuses line ends of two kinds and lines with nothing in them; what reads a release reads them here too.
            table = _read_leniently(Path(path), schema, refused)
        if stamp(Path(path)) != before:
            raise TableError(
                say("'{path}' changed while it was read.", path=Path(path).name),
                "The rows that were counted and the ones an answer would be known by could differ.",
                "Try again when nobody writes to the file, or query a copy.",
            )
        if table is None:
            return DuckDBEngine(connection, layout, version, identify, folder)
        connection.close()
        folder.cleanup()
        return _held(table, unit, (threads, memory), version, identify)
    except BaseException:
        if connection is not None:
            connection.close()
        folder.cleanup()
        raise


def _read_leniently(path: Path, schema: Schema, refused: TableError) -> Table:
    """The table as `read_table` reads it, or the error with which DuckDB refused it."""
    from velado.data.io import read_table

    try:
        return read_table(path, schema, "drop")
    except VeladoError:
        raise refused from None


def engine_for_postgres(
    url: str, relation: str, schema: Schema, unit: Unit, *, version: str | None = None
) -> Engine:
    """A server's table, view or materialised view; every question is one read-only snapshot there.

    *version* is the owner's own name for the content; without one the content is hashed once, when the engine opens.

    >>> from velado.data.schema import Schema
    >>> from velado.query.unit import Unit
    >>> engine_for_postgres("postgresql://127.0.0.1:1/x", "stays", Schema({}), Unit())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.EngineError: The PostgreSQL server could not be reached. ...
    """
    need("psycopg", say("Tables in PostgreSQL are reached through it."), "postgres")
    from velado.query.engines._postgres_engine import PostgresEngine

    return PostgresEngine(url, relation, schema, unit, version)


def identity_of(path: Path, schema: Schema | None = None) -> TableIdentity:
    """By what the table in a file is known, wherever it lies and in whatever format; the schema says how it is read.

    Without a schema a file that cannot be read by its own signs alone is known by its place and its bytes.

    >>> identity_of(Path("no-such.csv"))
    Traceback (most recent call last):
    velado.errors.TableError: There is no file 'no-such.csv'. Nothing was read. Check the path and the spelling.
    """
    need("duckdb", say("Tables and files are queried by it."), "query")
    from velado.query.engines._row_marks import identity_of_file

    return identity_of_file(Path(path), schema)


def _unit_cell(layout: Layout, types: Sequence[str]) -> tuple[str, str] | None:
    if layout.unit.column is None:
        return None
    number = layout.places[layout.unit.column].number
    return f"r{number}", types[number]
