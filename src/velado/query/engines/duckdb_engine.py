"""DuckDB over rows in memory: loaded once, locked, and asked by compiled statements alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np

from velado.errors import EngineError
from velado.query.engines.answers import tally, too_slow
from velado.query.engines.compile import DUCKDB, Statement
from velado.query.engines.layout import Layout
from velado.query.needs import Counts, Key, Need
from velado.query.unit import Unit
from velado.query.values import Predicate

# What the engine may do after loading: compute. No file, no network, no extension, and no way to change that.
_LOCK = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


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
        watch = _Watch(cursor.interrupt)
        timer = None if seconds is None else threading.Timer(seconds, watch.stop)

        def checked(statement: Statement, sql: str) -> duckdb.DuckDBPyConnection:
            if watch.late:
                raise too_slow(seconds)
            return cursor.execute(sql, statement.parameters)

        def run(statement: Statement, sql: str) -> Iterable[Sequence[Any]]:
            return checked(statement, sql).fetchall()

        def run_arrays(statement: Statement, sql: str) -> tuple[Counts, Counts, Counts]:
            found = checked(statement, sql).fetchnumpy()
            k, s, n = (np.asarray(found[name], dtype=np.int64) for name in ("k", "s", "n"))
            return k, s, n

        try:
            if timer is not None:
                timer.daemon = True
                timer.start()
            return tally(self._layout, DUCKDB, where, keys, needs, run, run_arrays)
        except duckdb.InterruptException:
            raise too_slow(seconds) from None
        except duckdb.Error:
            # DuckDB's own messages may quote values.
            raise _failed() from None
        finally:
            if timer is not None:
                timer.cancel()
            watch.end()
            cursor.close()

    def close(self) -> None:
        """Give back memory and what was written to disk; a later tally is an EngineError."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._folder is not None:
            self._folder.cleanup()


class _Watch:
    """Interrupts one call from another thread, and never after the call has ended."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self.late = False
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def stop(self) -> None:
        """Interrupt what runs; repeated, because an interrupt that falls between two statements is lost."""
        self.late = True
        while not self._ended.wait(0.01):
            with self._lock:
                if not self._ended.is_set():
                    self._interrupt()

    def end(self) -> None:
        """From now on nothing is interrupted."""
        with self._lock:
            self._ended.set()


def _failed() -> EngineError:
    return EngineError(
        "The engine could not compute the answer.",
        "It was closed, or ran out of memory.",
        "Open the table again, or ask for fewer keys.",
    )
