"""A ledger's entries in a table of a PostgreSQL server, for services of many processes and hosts.

The address is `postgresql://user@host/base?ledger=NAME`; the table stands in the schema `velado_ledger_NAME` (without a
name, `velado_ledger`), which nothing else uses. The seal lies on the service's own host; a second host needs a copy of it.
A standby that took over without the newest commits shows as a ledger that was rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from velado.errors import LedgerError, MissingExtra, ParameterError
from velado.query.store._entries import EntryStore, unusable
from velado.text import say

try:
    import psycopg
    from psycopg import conninfo
except ImportError:  # pragma: no cover - the error below says which extra holds it
    psycopg = None  # type: ignore[assignment]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class LedgerServer:
    """The address of a ledger on a server: host, port, base and schema, without user and password."""

    def __init__(self, url: str) -> None:
        if psycopg is None:
            raise MissingExtra(
                "PostgreSQL needs the library psycopg.",
                "It is not installed with velado by default.",
                "Install it: pip install 'velado[postgres]'.",
            )
        self._url, name = _split(url)
        self._schema = f"velado_ledger_{name}" if name else "velado_ledger"
        try:
            parts = conninfo.conninfo_to_dict(self._url)
        except psycopg.Error:
            raise _unusable("postgresql://...", say("the address cannot be understood")) from None
        host = parts.get("host") or parts.get("hostaddr") or ""
        # Who connects and with which password changes; whose ledger it is does not.
        base = f"{host}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"
        self.identity = self.name = f"postgresql://{base}#{self._schema}"

    def present(self) -> bool:
        """Whether the ledger's table is there."""
        base = _connect(self._url, self.name)
        try:
            with _told(self.name):
                return _has_table(base, self._schema)
        finally:
            base.close()

    def open(self) -> PostgresEntries:
        """The ledger in the table."""
        return PostgresEntries(self._url, self.name, self._schema, new=False)

    def create(self) -> PostgresEntries:
        """A new table in its own schema."""
        return PostgresEntries(self._url, self.name, self._schema, new=True)


class PostgresEntries(EntryStore):
    """A connection to the ledger's table."""

    mark = "%s"

    def __init__(self, url: str, name: str, schema: str, new: bool) -> None:
        self._name, self.table = name, f'"{schema}".entries'
        self._base = _connect(url, name)
        try:
            with _told(name):
                run = self._base.execute
                fsync = run("SHOW fsync").fetchone()
                if fsync is None or fsync[0] != "on":
                    raise _unusable(
                        name, say("the server runs with fsync = off and may forget what it has committed")
                    )
                run("SET synchronous_commit = on")
                run("SET lock_timeout = '30s'")
                # A reader waits for the lock and then sees what the holder committed, whatever the server's default.
                run("SET default_transaction_isolation = 'read committed'")
                if new:
                    with self._base.transaction():
                        # Two makers at once would both find nothing there; the lock ends with the transaction.
                        run("SELECT pg_advisory_xact_lock(hashtext(%s))", (self.table,))
                        run(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
                        run(
                            f"CREATE TABLE IF NOT EXISTS {self.table} (number bigint PRIMARY KEY, kind text NOT NULL, "
                            "payload text NOT NULL, previous text NOT NULL, hash text NOT NULL)"
                        )
                elif not _has_table(self._base, schema):
                    raise _unusable(name, say("the table is not there"))
        except BaseException:
            self._base.close()
            raise

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The table's write lock from here to the commit; readers go on."""
        with _told(self._name), self._base.transaction():
            self._base.execute(f"LOCK TABLE {self.table} IN EXCLUSIVE MODE")
            yield

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._base.close()

    def _rows(self, sql: str, values: tuple[int, ...]) -> list[Any]:
        with _told(self._name):
            found: list[Any] = self._base.execute(sql, values).fetchall()
            return found

    def _many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        with _told(self._name), self._base.cursor() as cursor:
            cursor.executemany(sql, rows)


def _split(url: str) -> tuple[str, str]:
    """The server's own address, and the ledger's name in it."""
    parts = urlsplit(url)
    words = parse_qsl(parts.query, keep_blank_values=True)
    names = [value for word, value in words if word == "ledger"]
    if len(names) > 1 or any(not _NAME.fullmatch(name) for name in names):
        raise ParameterError(
            "The ledger's name in the address is not usable.",
            "It becomes the name of a schema: small letters, digits and _, a letter first, at most 40.",
            "Write for example postgresql://host/base?ledger=patients.",
        )
    rest = urlencode([(word, value) for word, value in words if word != "ledger"])
    return urlunsplit(parts._replace(query=rest)), names[0] if names else ""


def _connect(url: str, name: str) -> Any:
    settings: dict[str, Any] = {"connect_timeout": 10, "client_encoding": "utf8"}
    with _told(name):
        return psycopg.connect(url, autocommit=True, application_name="velado ledger", **settings)


def _has_table(base: Any, schema: str) -> bool:
    return base.execute("SELECT to_regclass(%s)", (f'"{schema}".entries',)).fetchone()[0] is not None


@contextmanager
def _told(name: str) -> Iterator[None]:
    """The server's errors as a LedgerError that names their class alone: their text may hold a password or a cell."""
    try:
        yield
    except psycopg.Error as error:
        raise _unusable(name, type(error).__name__) from None


def _unusable(name: str, reason: str) -> LedgerError:
    return unusable(
        name,
        reason,
        say(
            "See that the server runs, that the user may use the ledger's schema, and that nothing was restored."
        ),
    )
