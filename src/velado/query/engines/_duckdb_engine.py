"""DuckDB over rows in memory: loaded once, locked, and asked by compiled statements alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from velado.errors import EngineError
from velado.query.engines._coded import coded
from velado.query.engines._compile import DUCKDB, Layout, Statement
from velado.query.engines._tally import tally, too_slow
from velado.query.identity import TableIdentity
from velado.query.needs import AnyKey, Counts, Needs, Tallies
from velado.query.values import Predicate

if TYPE_CHECKING:
    from velado.query.synthetic.axes import Axis

# Time limits for calls that only another thread can stop: one thread watches all of them, however many run at once.

# An interrupt that falls between two statements is lost, so it is repeated until the call ends.
REPEAT = 0.01


@dataclass(eq=False)
class Watch:
    """One call that must end by *deadline* (monotonic); *late* is true from the first interrupt on."""

    deadline: float
    interrupt: Callable[[], None]
    late: bool = False


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

    *version* is a SHA-256 over content, schema and unit. *identify* finds out, when it is first asked, which table this is. *folder*, if any, holds what DuckDB wrote to disk and is removed with the engine.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        layout: Layout,
        version: str,
        identify: Callable[[], TableIdentity],
        folder: TemporaryDirectory[str] | None = None,
    ) -> None:
        self._connection: duckdb.DuckDBPyConnection | None = connection
        self._layout = layout
        self.version, self.unit = version, layout.unit
        self._identify, self._folder = identify, folder
        self._watchdog = Watchdog()
        self._statements: dict[str, duckdb.Statement] = {}
        (rows,) = connection.execute("SELECT count(*) FROM kept").fetchall()[0]
        self._rows = int(rows)
        if rows <= ROW_GROUP:
            # One thread scans a row group; the others would be woken at every question to find nothing to do.
            connection.execute("SET threads = 1")
        for setting in _LOCK:
            connection.execute(setting)

    def __repr__(self) -> str:
        return f"DuckDBEngine({len(self._layout.places)} columns)"

    @cached_property
    def identity(self) -> TableIdentity:
        """By what the table is known, whichever file or frame it came in."""
        return self._identify()

    def tally(
        self, where: Predicate | None, keys: Sequence[AnyKey], needs: Needs, seconds: float | None = None
    ) -> Tallies:
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

    def coded(self, axes: Sequence[Axis]) -> list[NDArray[np.int32]]:
        """One array of cells for each axis, a place for each kept row."""
        if self._connection is None:
            raise _failed()

        def fetch(statement: Statement, sql: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            found = cursor.execute(sql, statement.parameters).fetchnumpy()
            return np.asarray(found["r"], dtype=np.int64), np.asarray(found["k"], dtype=np.int64)

        try:
            cursor = self._connection.cursor()
            return coded(self._layout, axes, self._rows, fetch)
        except duckdb.Error:
            raise _failed() from None

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
