"""A ledger's entries in a table of a PostgreSQL server, for services of many processes and hosts.

The address is `postgresql://user@host/base?ledger=NAME`; the table stands in the schema `velado_ledger_NAME` (without a
name, `velado_ledger`), which nothing else uses. The seal lies on the service's own host; a second host needs a copy of it.
A standby that took over without the newest commits shows as a ledger that was rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from velado.errors import LedgerError, MissingExtra, ParameterError
from velado.query.store.chain import Entry, entry_of

try:
    import psycopg
    from psycopg import conninfo
except ImportError:  # pragma: no cover - the error below says which extra holds it
    psycopg = None  # type: ignore[assignment]

_COLUMNS = "number, kind, payload, previous, hash"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class PostgresPlace:
    """The address of a ledger on a server."""

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
            raise _unusable("postgresql://...", "the address cannot be understood") from None
        host = parts.get("host") or parts.get("hostaddr") or ""
        # Who connects and with which password changes; whose ledger it is does not.
        self._name = (
            f"postgresql://{host}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}#{self._schema}"
        )

    @property
    def identity(self) -> str:
        """Host, port, base and schema."""
        return self._name

    @property
    def name(self) -> str:
        """The address without user and password."""
        return self._name

    def present(self) -> bool:
        """Whether the ledger's table is there."""
        base = _connect(self._url, self._name)
        try:
            with _told(self._name):
                return _has_table(base, self._schema)
        finally:
            base.close()

    def open(self) -> PostgresShelf:
        """The ledger in the table."""
        return PostgresShelf(self._url, self._name, self._schema, new=False)

    def create(self) -> PostgresShelf:
        """A new table in its own schema."""
        return PostgresShelf(self._url, self._name, self._schema, new=True)


class PostgresShelf:
    """A connection to the ledger's table. Callers see to it that one thread uses it at a time."""

    def __init__(self, url: str, name: str, schema: str, new: bool) -> None:
        self._name, self._table = name, f'"{schema}".entries'
        self._base = _connect(url, name)
        try:
            with _told(name):
                run = self._base.execute
                fsync = run("SHOW fsync").fetchone()
                if fsync is None or fsync[0] != "on":
                    raise _unusable(
                        name, "the server runs with fsync = off and may forget what it has committed"
                    )
                run("SET synchronous_commit = on")
                run("SET lock_timeout = '30s'")
                # A reader waits for the lock and then sees what the holder committed, whatever the server's default.
                run("SET default_transaction_isolation = 'read committed'")
                if new:
                    with self._base.transaction():
                        # Two makers at once would both find nothing there; the lock ends with the transaction.
                        run("SELECT pg_advisory_xact_lock(hashtext(%s))", (self._table,))
                        run(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
                        run(
                            f"CREATE TABLE IF NOT EXISTS {self._table} (number bigint PRIMARY KEY, kind text NOT NULL, "
                            "payload text NOT NULL, previous text NOT NULL, hash text NOT NULL)"
                        )
                elif not _has_table(self._base, schema):
                    raise _unusable(name, "the table is not there")
        except BaseException:
            self._base.close()
            raise

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The table's write lock from here to the commit; readers go on."""
        with _told(self._name), self._base.transaction():
            self._base.execute(f"LOCK TABLE {self._table} IN EXCLUSIVE MODE")
            yield

    def at(self, number: int) -> Entry | None:
        """The entry with this number."""
        found = self._read("WHERE number = %s", (number,))
        return found[0] if found else None

    def after(self, number: int, limit: int) -> list[Entry]:
        """Up to *limit* entries above *number*, in order."""
        return self._read("WHERE number > %s ORDER BY number LIMIT %s", (number, limit))

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries, inside `writing`."""
        with _told(self._name), self._base.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {self._table} ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s)",
                [(e.number, e.kind, e.payload, e.previous, e.hash) for e in entries],
            )

    def close(self) -> None:
        """Give the connection back."""
        with suppress(psycopg.Error):
            self._base.close()

    def _read(self, where: str, values: tuple[int, ...]) -> list[Entry]:
        with _told(self._name):
            rows = self._base.execute(f"SELECT {_COLUMNS} FROM {self._table} {where}", values).fetchall()
        return [entry_of(row) for row in rows]


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
    with _told(name):
        return psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=10,
            client_encoding="utf8",
            application_name="velado ledger",
        )


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
    return LedgerError(
        f"The ledger cannot be used: {name}: {reason}.",
        "Every answer must be paid for durably before it is drawn, so nothing is answered.",
        "See that the server runs, that the user may use the ledger's schema, and that nothing was restored.",
    )
