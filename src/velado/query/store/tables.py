"""Which ledger goes with which table: one table has one budget, wherever its ledger was put.

A small file in the state folder for every table ever asked about, found by the table's place and by its content, names
its ledger. A second ledger for the same file, for a copy of it, or for a file that was changed in place is refused. What it
cannot see: a copy that was moved *and* changed, another user's state folder, another machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from velado.data.keys import state_folder
from velado.errors import LedgerError, ParameterError, TableError
from velado.query.store.seal import sync_folder

_CHUNK = 1 << 20


@dataclass(frozen=True)
class TableIdentity:
    """What a table is found by: texts that are equal for the same place, or for the same content."""

    marks: tuple[str, ...]

    @classmethod
    def of_file(cls, path: Path) -> TableIdentity:
        """A file by its real path and by the SHA-256 of its bytes."""
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        except OSError as error:
            raise TableError(
                f"The file '{path.name}' cannot be read ({error.strerror}).",
                "Which ledger it belongs to is found by its content.",
                "Check its name and permissions.",
            ) from None
        return cls((f"path:{os.path.realpath(path)}", f"content:{digest.hexdigest()}"))

    @classmethod
    def of_relation(cls, url: str, relation: str) -> TableIdentity:
        """A server's relation by host, port, base and name; who connects makes no difference."""
        parts = urlsplit(url)
        return cls(
            (f"relation:{parts.hostname or ''}:{parts.port or 5432}{parts.path}#{relation}?{parts.query}",)
        )


def ledger_known(table: TableIdentity) -> str | None:
    """The ledger this table is, or was ever, accounted for in."""
    for mark in table.marks:
        found = _read(_place(mark))
        if found is not None:
            return found
    return None


def claim(table: TableIdentity, ledger: str) -> None:
    """The table belongs to this ledger from here on; LedgerError where it belongs to another."""
    for mark in table.marks:
        _refuse_other(_place(mark), ledger)
    for mark in table.marks:
        _write(_place(mark), ledger)
        # Where two came at once, the note that stands is the one that counts.
        _refuse_other(_place(mark), ledger)


def agree_version(ledger: str, version: str, content: str) -> None:
    """This content goes under this declared version from here on; ParameterError where the version stood for another.

    A version that followed the rows by itself would tell whoever repeats a question, for nothing, whether any row has
    changed. So the owner declares it, and a changed table under an old name is not served.
    """
    place = _place(f"version:{ledger}:{version}")
    _write(place, content)
    if _read(place) != content:
        raise ParameterError(
            f"The table, its schema or its unit has changed since version '{version}' was declared.",
            "Stored answers would be given for rows they are not about, or their absence would tell that a row changed.",
            'Declare a new version in the service file, for example version = "2".',
        )


def _refuse_other(place: Path, ledger: str) -> None:
    found = _read(place)
    if found is not None and found != ledger:
        raise LedgerError(
            f"This table is accounted for in another ledger: {found.removeprefix('file:')}.",
            "Two ledgers for one table are two budgets, and nobody would see their sum.",
            f"Use that ledger (--ledger). If it was moved on purpose, remove {place} and ask again.",
        )


def _place(mark: str) -> Path:
    name = hashlib.sha256(mark.encode("utf-8", "surrogateescape")).hexdigest()
    return state_folder() / "tables" / (name + ".json")


def _read(place: Path) -> str | None:
    try:
        return str(json.loads(place.read_text("utf-8"))["ledger"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise LedgerError(
            f"The note {place} of which ledger a table has cannot be read.",
            "Without it a second budget could be opened for the same table.",
            "Put it back from a copy; if it is lost, name the ledger in a new note.",
        ) from None


def _write(place: Path, ledger: str) -> None:
    """A whole note appears at *place*, or somebody else's stays there."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, draft = tempfile.mkstemp(prefix=".table-", dir=place.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"ledger": ledger}, file)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, place)
        finally:
            os.unlink(draft)
        sync_folder(place.parent)
    except OSError as error:
        raise LedgerError(
            f"The note of which ledger a table has cannot be written ({error.strerror}).",
            "Without it a second budget could be opened for the same table.",
            "Make the state folder writable, or set VELADO_STATE to one that is.",
        ) from None
