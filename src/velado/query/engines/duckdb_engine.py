"""DuckDB over rows in memory: loaded once, locked, and asked by compiled statements alone."""

from __future__ import annotations

import codecs
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from velado.data.csv_reading import as_utf8, check_header, header_of
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import EngineError, SchemaError, TableError
from velado.query.engines.compile import DUCKDB, Layout, Place, Statement, index_sql, indices_of
from velado.query.engines.duckdb_units import SPELLED, number_text_sql, quoted, units_of
from velado.query.engines.exact_answers import tally, too_slow
from velado.query.needs import Counts, Key, Need
from velado.query.unit import Unit
from velado.query.values import Predicate

# Time limits for calls that only another thread can stop: one thread watches all of them, however many run at once.

# An interrupt that falls between two statements is lost, so it is repeated until the call ends.
REPEAT = 0.01


class Watch:
    """One call that must end by *deadline* (monotonic); *late* is true from the first interrupt on."""

    def __init__(self, deadline: float, interrupt: Callable[[], None]) -> None:
        self.deadline = deadline
        self.interrupt = interrupt
        self.late = False


class Watchdog:
    """Interrupts each watched call from its deadline on, and never after it has ended.

    The thread is a daemon that sleeps until the earliest deadline it knows of, so a call that ends in time costs two looks at a
    set and wakes nobody. It ends when it wakes and nothing is watched, and the next call starts it again.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: set[Watch] = set()
        self._wakes: float | None = None

    def watch(self, seconds: float, interrupt: Callable[[], None]) -> Watch:
        """From here on *interrupt* is called once *seconds* have passed, and again until `end`."""
        watch = Watch(time.monotonic() + seconds, interrupt)
        with self._changed:
            self._watched.add(watch)
            if self._wakes is None:
                self._wakes = watch.deadline
                threading.Thread(target=self._work, name="velado-watchdog", daemon=True).start()
            elif watch.deadline < self._wakes:
                self._wakes = watch.deadline
                self._changed.notify()
        return watch

    def end(self, watch: Watch) -> None:
        """From here on the call is not interrupted."""
        with self._changed:
            self._watched.discard(watch)

    def _work(self) -> None:
        with self._changed:
            try:
                while self._watched:
                    self._wakes = self._interrupt_late()
                    self._changed.wait(max(0.0, self._wakes - time.monotonic()))
            finally:
                # Whatever ended this thread, the next call must find that there is none.
                self._wakes = None

    def _interrupt_late(self) -> float:
        """When to look again. A function of its own, so that a sleeping thread holds on to no call that has ended."""
        now = time.monotonic()
        for watch in self._watched:
            if watch.deadline <= now:
                watch.late = True
                watch.interrupt()
        return min(max(watch.deadline, now + REPEAT) for watch in self._watched)


# CSV and Parquet files as DuckDB scans them: header read by us, cells as text, names by place, nothing guessed.

_HEAD = 1 << 20
_GLOB = frozenset("*?[]{}")


@dataclass(frozen=True)
class Scan:
    """A relation DuckDB can read, whose columns are f0, f1, ... in the file's order, and their true names."""

    relation: str
    names: tuple[str, ...]


def scan(path: Path, schema: Schema, folder: Path) -> Scan:
    """How DuckDB reads the file; *folder* is private and may receive a copy in UTF-8."""
    if not path.is_file():
        raise TableError(
            f"There is no file '{path.name}'.", "Nothing was read.", "Check the path and the spelling."
        )
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return _parquet(_plain(path, folder))
    if suffix not in (".csv", ".tsv", ".txt"):
        raise TableError(
            f"'{path.name}' is neither a CSV nor a Parquet file by its ending.",
            "DuckDB is asked to scan those two.",
            "Rename it, or read it with velado.read_table and query the table.",
        )
    return _csv(path, schema, folder)


def pick(found: Scan, schema: Schema, connection: Any) -> tuple[str, Sequence[str]]:
    """The declared columns alone, as r0, r1, ... by their places, and their types; undeclared ones cannot be asked about."""
    absent = [name for name in schema.columns if name not in found.names]
    if absent:
        raise SchemaError(
            f"The schema names {len(absent)} column(s) the file does not have: {', '.join(absent[:5])}.",
            "A question about a column that is not there has no answer.",
            "Correct the name in the schema or the header of the file.",
        )
    at = {name: number for number, name in enumerate(found.names)}
    chosen = ", ".join(f"f{at[name]} AS r{number}" for number, name in enumerate(schema.columns))
    relation = f"(SELECT {chosen} FROM {found.relation})"
    try:
        types = [str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
    except duckdb.Error:
        raise TableError(
            "The file cannot be scanned.",
            "Its content does not have the format of its ending.",
            "Check the file.",
        ) from None
    return relation, types


def _csv(path: Path, schema: Schema, folder: Path) -> Scan:
    utf8 = schema.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
    source = path if utf8 else _recoded(path, schema.encoding, folder)
    with source.open("rb") as file:
        head = file.read(_HEAD)
    if not head.strip():
        raise TableError(
            f"'{path.name}' is empty.",
            "It has no header and no rows.",
            "Check that the right file was given.",
        )
    # A block may end inside a character; the header is checked up to the last whole line.
    whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
    data = as_utf8(whole, path.name, "utf-8").removeprefix(codecs.BOM_UTF8)
    header, separator = header_of(data, path.name, schema.separator)
    check_header(header, path.name, tuple(schema.columns))
    columns = ", ".join(f"'f{number}': 'VARCHAR'" for number in range(len(header)))
    place = quoted(str(_plain(source, folder)))
    relation = (
        f"read_csv('{place}', columns = {{{columns}}}, auto_detect = false, header = true, "
        f"delim = '{quoted(separator)}', quote = '\"', escape = '\"', nullstr = '', strict_mode = true)"
    )
    return Scan(relation, tuple(header))


def _parquet(path: Path) -> Scan:
    try:
        names = tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        raise TableError(
            f"'{path.name}' is not a readable Parquet file.",
            "Its content does not have that format.",
            "Check the file, or give it the ending of its true format.",
        ) from None
    places = ", ".join(f"f{number}" for number in range(len(names)))
    relation = f"read_parquet('{quoted(str(path))}', hive_partitioning = false) AS file({places})"
    return Scan(relation, names)


def _recoded(path: Path, encoding: str, folder: Path) -> Path:
    out = folder / "utf8.csv"
    try:
        with (
            path.open("r", encoding=encoding, newline="") as file,
            out.open("w", encoding="utf-8", newline="") as copy,
        ):
            while block := file.read(1 << 22):
                copy.write(block)
    except (UnicodeError, LookupError, ValueError):
        raise TableError(
            f"'{path.name}' is not {encoding} text.",
            "Accented letters would be garbled or lost.",
            "Save it as UTF-8, or name its true encoding in [table] of the schema.",
        ) from None
    return out


def _plain(path: Path, folder: Path) -> Path:
    # DuckDB reads *, ? and brackets in a path as patterns, so such a file is reached through a link without them.
    path = path.resolve()
    if not _GLOB & set(str(path)):
        return path
    link = folder / f"rows{path.suffix.lower()}"
    link.symlink_to(path)
    return link


# Rows from a frame or a file into DuckDB's table `kept`: cells as the layout says, units cut to their most rows.
#
# A cell that does not read as its column's declared kind (text among numbers, an impossible date) is a missing cell: an
# error that depends on a row would tell of the row. With a decimal comma, points are read as thousands marks alone.

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
_DAYS = ("DATE", "TIMESTAMP")
_TEXTS = ("VARCHAR", "UUID", "ENUM", "TIME", *_NUMBERS, *_DAYS)


def connect(threads: int | None, memory: str | None, spill: str, database: str = ":memory:") -> Any:
    """A fresh database that spills to *spill* (nowhere if blank) and loads no extension."""
    config: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": spill,
    }
    if threads is not None:
        config["threads"] = threads
    if memory is not None:
        config["memory_limit"] = memory
    try:
        connection = duckdb.connect(database, config=config)
        connection.execute("SET TimeZone = 'UTC'")
    except duckdb.Error:
        raise EngineError(
            "DuckDB could not be opened with these settings.",
            "The limit of threads or memory is not one it understands, or the disk is full.",
            "Use for example threads = 2 and memory = '4GB'.",
        ) from None
    return connection


def arrow_of(table: Table) -> pa.Table:
    """The table's declared columns as Arrow, named r0, r1, ...: numbers, days, or texts with missing ones null."""
    columns = {}
    for number, column in enumerate(table.schema.columns.values()):
        series = table.frame.get_column(column.name)
        typed = series.dtype.is_numeric() or series.dtype == pl.Boolean
        if column.kind == "numeric" and typed:
            series = series.cast(pl.Float64)
        elif column.kind == "numeric" and not isinstance(
            series.dtype, pl.String | pl.Categorical | pl.Enum | pl.Null
        ):
            raise wrong_type(column.name, "numeric")
        elif column.kind == "date" and isinstance(series.dtype, pl.Date | pl.Datetime):
            series = series.dt.date() if isinstance(series.dtype, pl.Datetime) else series
        else:
            series = table.text(column.name)
        columns[f"r{number}"] = series.to_arrow()
    return pa.table(columns)


def unit_numbers(table: Table, unit: Unit) -> pa.Array | None:
    """The unit's column where it holds floats but is not declared numeric: as text 0.0 and -0.0 would differ."""
    if unit.column is None or table.schema.columns[unit.column].kind == "numeric":
        return None
    series = table.frame.get_column(unit.column)
    return series.cast(pl.Float64).to_arrow() if series.dtype.is_float() else None


def load(
    connection: Any,
    source: str,
    types: Sequence[str],
    unit_cell: tuple[str, str] | None,
    layout: Layout,
    schema: Schema,
    unit: Unit,
) -> None:
    """`kept` holds the rows of *source*, whose columns are named r0, r1, ... by their places and have these types.

    *unit_cell* is the name and type of the column that tells units apart, if any. A unit keeps its first rows in the
    order of the source; rows without a unit value do not count. Which rows a unit keeps depends on its own rows and
    their order alone. O(n log n) for the window, once.
    """
    ordered = list(layout.places.values())
    missing = ", ".join(f"'{quoted(text)}'" for text in schema.missing_values)
    columns = [
        f"{_cell(place, type_, missing, schema)} AS {place.name}"
        for place, type_ in zip(ordered, types, strict=True)
    ]
    if unit_cell is not None:
        columns.append(f"{unit_cell[0]} AS u")
    try:
        # A Parquet file's statistics leave NaN out, and DuckDB would conclude from them that no cell is one.
        connection.execute("SET disabled_optimizers = 'statistics_propagation'")
        connection.execute(f"CREATE TABLE read AS SELECT {', '.join(columns)} FROM {source}")
        connection.execute("RESET disabled_optimizers")
    except duckdb.InvalidInputException:
        raise TableError(
            "The rows cannot be read as the schema says.",
            "A row has too few or too many fields, the text is not in the declared encoding, or a date format is not known.",
            "Correct the file, or separator, encoding and format in the schema; `velado inspect` names the place.",
        ) from None
    except duckdb.Error:
        raise EngineError(
            "DuckDB could not load the rows.",
            "The file is damaged, or memory or disk ran out.",
            "Check the file, or allow more memory.",
        ) from None
    grids = [
        f"{index_sql(place.name, place.grid, 'NULL::INT8')} AS {place.index}"
        for place in ordered
        if place.grid is not None
    ]
    names = [place.name for place in ordered]
    few = ""
    if unit_cell is not None and unit.column is not None:
        told_apart = units_of(connection, layout.places[unit.column], unit_cell[1], schema)
        # Nobody is protected by a row that belongs to no unit, so it does not count.
        few = (
            f" WHERE rowid NOT IN (SELECT r FROM (SELECT r, u0, u1, row_number() OVER"
            f" (PARTITION BY u0, u1 ORDER BY r) AS n FROM ({told_apart})) WHERE n > {unit.rows}"
            " OR (u0 IS NULL AND u1 IS NULL))"
        )
    connection.execute(f"CREATE TABLE kept AS SELECT {', '.join([*names, *grids])} FROM read{few}")
    connection.execute("DROP TABLE read")
    connection.unregister(SPELLED)
    for place in ordered:
        _settle_ties(connection, place)


def _settle_ties(connection: Any, place: Place) -> None:
    # Numbers on or within a hair of a tie were left open; their distinct values are few and settled in rationals.
    if place.grid is None:
        return
    name, index = place.name, place.index
    open_ = f"{name} IS NOT NULL AND {index} IS NULL"
    values = [
        row[0] for row in connection.execute(f"SELECT DISTINCT {name} FROM kept WHERE {open_}").fetchall()
    ]
    if not values:
        return
    ties = pa.table(
        {"x": pa.array(values, pa.float64()), "i": pa.array(indices_of(values, place.grid), pa.int64())}
    )
    connection.register("ties", ties)
    connection.execute(
        f"UPDATE kept SET {index} = ties.i FROM ties WHERE kept.{name} = ties.x AND {index} IS NULL"
    )
    connection.unregister("ties")


def _cell(place: Place, type_: str, missing: str, schema: Schema) -> str:
    raw, column = f"r{place.number}", place.column
    if place.sort == "number":
        if type_ != "VARCHAR":
            if not type_.lstrip("U").startswith(_NUMBERS):
                raise wrong_type(column.name, "numeric")
            number = f"CAST({raw} AS DOUBLE)"
        else:
            number = f"TRY_CAST({number_text_sql(_without(raw, missing), schema.decimal)} AS DOUBLE)"
        # Minus nought is nought, so that equal numbers are equal bits wherever they are joined.
        return f"CASE WHEN isnan({number}) THEN NULL WHEN {number} = 0 THEN 0::DOUBLE ELSE {number} END"
    if place.sort == "day":
        if type_.startswith(_DAYS):
            return f"CAST({raw} AS DATE)"
        if type_ != "VARCHAR":
            raise wrong_type(column.name, "date")
        return f"CAST(TRY_STRPTIME({_without(raw, missing)}, '{quoted(column.format)}') AS DATE)"
    if not type_.lstrip("U").startswith(_TEXTS):
        raise wrong_type(column.name, column.kind)
    return _without(raw, missing) if type_ == "VARCHAR" else f"CAST({raw} AS VARCHAR)"


def _without(raw: str, missing: str) -> str:
    return f"CASE WHEN {raw} IN ({missing}) THEN NULL ELSE {raw} END" if missing else raw


def wrong_type(name: str, kind: str) -> SchemaError:
    """The error for a column whose stored type cannot be read as its declared kind."""
    return SchemaError(
        f"Column '{name}' is declared {kind}, but its stored type cannot be read so.",
        "What is asked about it would have no meaning.",
        "Correct its kind in the schema.",
    )


# What the engine may do after loading: compute. No file, no network, no extension, and no way to change that.
_LOCK = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)

ROW_GROUP = 122_880
"""The rows DuckDB keeps and scans together."""

# DuckDB takes half a millisecond to read a statement's text; so many that were read are kept, if they are short.
KEPT_STATEMENTS = 256
LONGEST_KEPT = 4_000


class DuckDBEngine:
    """Counts and sums over the table `kept`, whose rows are the ones the unit allows. Safe among threads.

    *folder*, if any, holds what DuckDB wrote to disk and is removed with the engine.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        layout: Layout,
        version: str,
        folder: TemporaryDirectory[str] | None = None,
    ) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = connection
        self._layout = layout
        self._version = version
        self._folder = folder
        self._watchdog = Watchdog()
        self._statements: dict[str, duckdb.Statement] = {}
        (rows,) = connection.execute("SELECT count(*) FROM kept").fetchall()[0]
        if rows <= ROW_GROUP:
            # One thread scans a row group; the others would be woken at every question to find nothing to do.
            connection.execute("SET threads = 1")
        for setting in _LOCK:
            connection.execute(setting)

    def __repr__(self) -> str:
        return f"DuckDBEngine({len(self._layout.places)} columns)"

    @property
    def version(self) -> str:
        """SHA-256 over content, schema and unit."""
        return self._version

    @property
    def unit(self) -> Unit:
        """Whose rows were cut to their most."""
        return self._layout.unit

    def tally(
        self,
        where: Predicate | None,
        keys: tuple[Key, ...],
        needs: tuple[Need, ...],
        seconds: float | None = None,
    ) -> tuple[Counts, ...]:
        """One array per need; EngineError after *seconds*, with a text that says nothing of the rows."""
        if self._connection is None:
            raise _failed()
        try:
            cursor = self._connection.cursor()
        except duckdb.Error:
            raise _failed() from None
        watch = None if seconds is None else self._watchdog.watch(seconds, cursor.interrupt)

        def checked(statement: Statement, sql: str) -> duckdb.DuckDBPyConnection:
            if watch is not None and watch.late:
                raise too_slow(seconds)
            return cursor.execute(self._parsed(cursor, sql), statement.parameters)

        def run(statement: Statement, sql: str) -> Iterable[Sequence[Any]]:
            return checked(statement, sql).fetchall()

        def run_arrays(statement: Statement, sql: str) -> tuple[Counts, Counts, Counts]:
            found = checked(statement, sql).fetchnumpy()
            k, s, n = (np.asarray(found[name], dtype=np.int64) for name in ("k", "s", "n"))
            return k, s, n

        try:
            return tally(self._layout, DUCKDB, where, keys, needs, run, run_arrays)
        except duckdb.InterruptException:
            raise too_slow(seconds) from None
        except duckdb.Error:
            # DuckDB's own messages may quote values.
            raise _failed() from None
        finally:
            if watch is not None:
                self._watchdog.end(watch)
            cursor.close()

    def close(self) -> None:
        """Give back memory and what was written to disk; a later tally is an EngineError."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _parsed(self, cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement | str:
        """The statement without its values, read once: questions of one shape differ in what is bound alone."""
        found = self._statements.get(sql)
        if found is None:
            if len(sql) > LONGEST_KEPT:
                return sql
            if len(self._statements) >= KEPT_STATEMENTS:
                self._statements.clear()
            found = self._statements[sql] = cursor.extract_statements(sql)[0]
        return found


def _failed() -> EngineError:
    return EngineError(
        "The engine could not compute the answer.",
        "It was closed, or ran out of memory.",
        "Open the table again, or ask for fewer keys.",
    )
