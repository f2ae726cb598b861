"""PostgreSQL by URL: each tally is one read-only snapshot, aggregated by the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import psycopg
from psycopg.conninfo import conninfo_to_dict

from velado.data.schema import Schema
from velado.errors import EngineError
from velado.query.engines import fingerprint
from velado.query.engines.answers import tally, too_slow
from velado.query.engines.compile import POSTGRES, Statement
from velado.query.engines.postgres_source import Source, find
from velado.query.engines.postgres_units import refuse_split_units
from velado.query.needs import Counts, Key, Need
from velado.query.unit import Unit
from velado.query.values import Predicate

T = TypeVar("T")
_IDLE = 4
_SETTINGS = (
    "SET search_path = pg_catalog",
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
    "SET extra_float_digits = 1",
    "SET client_encoding = 'UTF8'",
    "SET standard_conforming_strings = on",
)
_CONTENT = (
    "SELECT count(*)::text, sum(('x' || substr(h, 1, 16))::bit(64)::int8::numeric)::text,"
    " sum(('x' || substr(h, 17, 16))::bit(64)::int8::numeric)::text FROM (SELECT md5({row}) AS h FROM {relation}) AS hashed"
)


class PostgresEngine:
    """Counts and sums over a relation that stays where it is. Safe among threads: each call has its own connection.

    Without a declared *version* the content is hashed once: the number of rows and the sums of both halves of their
    MD5, which no order changes. A table that changes afterwards keeps the version it was opened with; the owner who
    changes tables declares versions.
    """

    def __init__(
        self, url: str, relation: str, schema: Schema, unit: Unit, version: str | None = None
    ) -> None:
        self._url = url
        self._unit = unit
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        self._closed = False
        # The owner's search path finds the relation; afterwards it is named in full.
        self._source: Source = self._read(lambda ask: find(ask, relation, schema, unit), settings=False)
        if self._source.spelled:
            # Once, for the owner who opens the table: an error that came with an answer would tell of the rows.
            try:
                self._read(self._refuse_split_units)
            except BaseException:
                self.close()
                raise
        said = f"declared:{version}" if version is not None else self._read(self._content)
        self._version = fingerprint.of_text(f"{self._source.relation}\0{said}", schema, unit)

    def __repr__(self) -> str:
        return f"PostgresEngine({len(self._source.types)} columns)"

    @property
    def version(self) -> str:
        """SHA-256 over what stands for the content, with schema and unit."""
        return self._version

    @property
    def unit(self) -> Unit:
        """Whose rows are cut to their most."""
        return self._unit

    def tally(
        self,
        where: Predicate | None,
        keys: tuple[Key, ...],
        needs: tuple[Need, ...],
        seconds: float | None = None,
    ) -> tuple[Counts, ...]:
        """One array per need, all from one snapshot; EngineError after *seconds*."""

        def work(ask: Callable[[str, Sequence[Any]], list[Sequence[Any]]]) -> tuple[Counts, ...]:
            def run(statement: Statement, sql: str) -> Iterable[Sequence[Any]]:
                kept, more = self._source.kept(statement.used, len(statement.parameters) + 1)
                return ask(kept + sql, [*statement.parameters, *more])

            def run_arrays(statement: Statement, sql: str) -> tuple[Counts, Counts, Counts]:
                rows = np.asarray(list(run(statement, sql)), dtype=np.int64).reshape(-1, 3)
                return rows[:, 0], rows[:, 1], rows[:, 2]

            return tally(self._source.layout, POSTGRES, where, keys, needs, run, run_arrays)

        return self._read(work, seconds)

    def close(self) -> None:
        """Give back the connections; a later tally is an EngineError."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _refuse_split_units(self, ask: Callable[[str, Sequence[Any]], list[Sequence[Any]]]) -> None:
        refuse_split_units(ask, self._source.spelling, *self._source.units(), str(self._unit.column))

    def _content(self, ask: Callable[[str, Sequence[Any]], list[Sequence[Any]]]) -> str:
        sql = _CONTENT.format(row=self._source.row_text(), relation=self._source.relation)
        return "hashed:" + ":".join(str(part) for part in ask(sql, [])[0])

    def _read(self, work: Callable[[Any], T], seconds: float | None = None, settings: bool = True) -> T:
        """What *work* returns, inside one read-only transaction. A connection the server has dropped is replaced once."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            connection, reused = self._connection(settings)
            try:
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

                    def ask(sql: str, parameters: Sequence[Any], cursor: Any = cursor) -> list[Sequence[Any]]:
                        if deadline is not None:
                            left = max(1, int(1000 * (deadline - time.monotonic())))
                            cursor.execute(
                                "SELECT set_config('statement_timeout', $1::text, true)", [str(left)]
                            )
                        found: list[Sequence[Any]] = cursor.execute(sql, parameters).fetchall()
                        return found

                    result = work(ask)
            except psycopg.errors.QueryCanceled:
                self._give_back(connection, settings)
                raise too_slow(seconds) from None
            except psycopg.Error as error:
                gone = connection.closed or isinstance(error, psycopg.OperationalError)
                connection.close()
                if reused and gone:
                    continue
                # The server's message may quote a value, and the driver's the address.
                raise _failed() from None
            except BaseException:
                self._give_back(connection, settings)
                raise
            self._give_back(connection, settings)
            return result

    def _connection(self, settings: bool) -> tuple[Any, bool]:
        with self._lock:
            if self._closed:
                raise _failed()
            if settings and self._idle:
                return self._idle.pop(), True
        try:
            address: dict[str, Any] = {"connect_timeout": 10, **conninfo_to_dict(self._url)}
            connection = psycopg.connect(**address, autocommit=True, cursor_factory=psycopg.RawCursor)
            for setting in _SETTINGS if settings else ():
                connection.execute(setting)
        except (psycopg.Error, UnicodeError, ValueError):
            raise EngineError(
                "The PostgreSQL server could not be reached.",
                "The address, name or password is wrong, or the server is not running.",
                "Check the URL and try again; it is not repeated here because it may hold a password.",
            ) from None
        return connection, False

    def _give_back(self, connection: Any, settings: bool) -> None:
        with self._lock:
            if settings and not self._closed and not connection.closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _failed() -> EngineError:
    return EngineError(
        "The PostgreSQL server did not compute the answer.",
        "The engine was closed, the server is gone, or it may not read the relation.",
        "Check the server and the rights of the role, then open the table again.",
    )
