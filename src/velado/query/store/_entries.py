"""Where a ledger's entries are kept: what every store of them does, and the SQLite file that is the usual one.

The file has a write-ahead log, synced at every commit, and one writer at a time. Not for network file systems: SQLite's
locks and its shared memory need a local disk.
"""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from velado.data.seals import sync_folder
from velado.errors import LedgerError
from velado.query.store._chain import Entry, entry_of
from velado.text import say

_COLUMNS = "number, kind, payload, previous, hash"


class EntryStore(ABC):
    """An open place that keeps entries in order, for one thread at a time. Every failure of it is a LedgerError."""

    table: str
    mark: str  # how a statement names a value that travels beside it

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Nobody else appends meanwhile; what was appended is durable afterwards, or nothing of it is there."""

    @abstractmethod
    def close(self) -> None:
        """Give the place back."""

    @abstractmethod
    def _rows(self, sql: str, values: tuple[int, ...]) -> list[Any]: ...

    @abstractmethod
    def _many(self, sql: str, rows: list[tuple[Any, ...]]) -> None: ...

    def at(self, number: int) -> Entry | None:
        """The entry with this number."""
        found = self._read(f"WHERE number = {self.mark}", number)
        return found[0] if found else None

    def after(self, number: int, limit: int) -> list[Entry]:
        """Up to *limit* entries above *number*, in order."""
        return self._read(f"WHERE number > {self.mark} ORDER BY number LIMIT {self.mark}", number, limit)

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries, inside `writing`."""
        marks = ", ".join([self.mark] * 5)
        rows = [(e.number, e.kind, e.payload, e.previous, e.hash) for e in entries]
        self._many(f"INSERT INTO {self.table} ({_COLUMNS}) VALUES ({marks})", rows)

    def _read(self, where: str, *values: int) -> list[Entry]:
        return [entry_of(row) for row in self._rows(f"SELECT {_COLUMNS} FROM {self.table} {where}", values)]


class LedgerAddress(Protocol):
    """Where a ledger is or may be made; *identity* is one text per ledger, however spelled, and no secret."""

    identity: str
    name: str  # as a person may read it

    def present(self) -> bool:
        """Whether anything is there."""

    def open(self) -> EntryStore:
        """The ledger that is there."""

    def create(self) -> EntryStore:
        """A new empty ledger, or the empty one whose making was interrupted."""


def unusable(name: str, reason: str, fix: str) -> LedgerError:
    """The error for a store that does not do what it must."""
    return LedgerError(
        say("The ledger cannot be used: {name}: {reason}.", name=name, reason=reason),
        "Every answer must be paid for durably before it is drawn, so nothing is answered.",
        fix,
    )


APPLICATION = 0x56454C4C  # "VELL", SQLite's application_id
_TABLE = (
    "CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, "
    "payload TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL)"
)
MEMORY = ":memory:"
_HEAD = b"SQLite format 3\0"  # how every database of SQLite begins, and so every ledger


class LedgerFile:
    """The address of a ledger in a file."""

    def __init__(self, path: Path) -> None:
        # One file has one seal, by whichever link it is reached.
        self.path = Path(os.path.realpath(path))
        self.identity, self.name = f"file:{self.path}", str(self.path)

    def present(self) -> bool:
        """Whether anything has that name; its log without it is a deleted ledger."""
        return os.path.lexists(self.path) or os.path.lexists(f"{self.path}-wal")

    def foreign(self) -> bool:
        """Whether the file holds something else than a database: a table named by mistake, not a lost seal."""
        try:
            with self.path.open("rb") as file:
                head = file.read(len(_HEAD))
        except OSError:
            return False
        return bool(head) and head != _HEAD

    def open(self) -> SQLiteEntries:
        """The ledger in the file."""
        return SQLiteEntries(self.path)

    def create(self) -> SQLiteEntries:
        """A new file that the user alone may read."""
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            shelf = SQLiteEntries(self.path, new=True)
            sync_folder(self.path.parent)
        except OSError as error:
            raise _unusable(self.name, str(error.strerror)) from None
        return shelf


class SQLiteEntries(EntryStore):
    """An open ledger file, or with *path* None a ledger in memory."""

    table, mark = "entries", "?"

    def __init__(self, path: Path | None, new: bool = False) -> None:
        self._path = path
        self._name = MEMORY if path is None else str(path)
        if path is not None and not path.is_file():
            raise _unusable(
                self._name, say("it is not a file") if os.path.lexists(path) else say("it is not there")
            )
        address = MEMORY if path is None else f"{path.as_uri()}?mode=rw"
        with _told(self._name):
            self._base = sqlite3.connect(
                address, uri=path is not None, isolation_level=None, check_same_thread=False, timeout=30.0
            )
        self._file = None if path is None else _which(path)
        try:
            self._prepare(new or path is None)
        except BaseException:
            self._base.close()
            raise

    def _prepare(self, new: bool) -> None:
        with _told(self._name):
            run = self._base.execute
            run("PRAGMA trusted_schema = OFF")
            run("PRAGMA cell_size_check = ON")
            mark = run("PRAGMA application_id").fetchone()[0]
            tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if mark != APPLICATION and not (new and mark == 0 and tables == 0):
                raise _unusable(self._name, say("it is not a ledger"))
            if self._path is not None and run("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                raise _unusable(self._name, say("its disk does not allow a write-ahead log"))
            run("PRAGMA synchronous = FULL")
            # Elsewhere the system's sync is enough; on macOS only this one reaches the disk.
            run("PRAGMA fullfsync = ON")
            if new:
                with self.writing():
                    run(f"PRAGMA application_id = {APPLICATION}")
                    run(_TABLE)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The write lock from here to the commit, so that reading, checking and appending are one step."""
        with _told(self._name):
            if self._path is not None and self._file != _which(self._path):
                raise _unusable(self._name, say("it was moved, replaced or deleted while in use"))
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._base.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._base.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._base.close()

    def _rows(self, sql: str, values: tuple[int, ...]) -> list[Any]:
        with _told(self._name):
            return self._base.execute(sql, values).fetchall()

    def _many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        with _told(self._name):
            self._base.executemany(sql, rows)


def _which(path: Path) -> tuple[int, int]:
    """Which file a name stands for now."""
    try:
        found = os.stat(path)
    except OSError:
        return (-1, -1)
    return (found.st_dev, found.st_ino)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """SQLite's errors as a LedgerError that names SQLite's reason; SQLite's own text may repeat a cell."""
    try:
        yield
    except (sqlite3.Error, UnicodeError, OverflowError) as error:
        code = getattr(error, "sqlite_errorname", None) or type(error).__name__
        raise _unusable(name, _REASONS.get(code.split("_")[1] if "_" in code else "", code)) from None


_REASONS = {
    **dict.fromkeys(("NOTADB", "ERROR"), say("it is not a ledger, or was damaged")),
    **dict.fromkeys(("BUSY", "LOCKED"), say("another program holds it")),
    "CORRUPT": say("it is damaged"),
    "READONLY": say("it is read-only"),
    "CANTOPEN": say("it cannot be opened"),
    "PERM": say("its permissions do not allow it"),
    "FULL": say("the disk is full"),
    "IOERR": say("the disk does not write or read"),
}


def _unusable(name: str, reason: str) -> LedgerError:
    fix = say("Mend the file's place, space and permissions, or put its newest copy back; never delete it.")
    return unusable(name, reason, fix)
