"""Which ledger goes with which table: one table has one budget, wherever its ledger was put.

A small file in the state folder for every table ever asked about, found by the table's place and by its content, names
its ledger. A second ledger for the same file, for a copy of it, or for a file that was changed in place is refused. What it
cannot see: a copy that was moved *and* changed, another user's state folder, another machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from velado.data.keys import state_folder
from velado.errors import LedgerError, ParameterError, TableError
from velado.query.budget import Budget
from velado.query.store._chain import interrupted
from velado.query.store._ledger import ChainedLedger, address_of, create_ledger, ledger_exists, open_ledger
from velado.query.store._seal import appear
from velado.settings import no_file
from velado.text import say


@dataclass(frozen=True)
class TableIdentity:
    """What a table is found by: texts that are equal for the same place, or for the same content.

    >>> TableIdentity.of_relation("postgresql://ana@db/clinic", "stays").marks
    ('relation:db:5432/clinic#stays?',)
    """

    marks: tuple[str, ...]

    @classmethod
    def of_file(cls, path: Path) -> TableIdentity:
        """A file by its real path and by the SHA-256 of its bytes."""
        try:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256")
        except FileNotFoundError:
            raise TableError(*no_file(path.name)) from None
        except OSError as error:
            raise TableError(
                say("The file '{path}' cannot be read ({reason}).", path=path.name, reason=error.strerror),
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
            say(
                "The table, its schema or its unit has changed since version '{version}' was declared.",
                version=version,
            ),
            "Stored answers would be given for rows they are not about, or their absence would tell that a row changed.",
            'Declare a new version in the service file, for example version = "2".',
        )


def _refuse_other(place: Path, ledger: str) -> None:
    found = _read(place)
    if found is not None and found != ledger:
        raise LedgerError(
            say(
                "This table is accounted for in another ledger: {ledger}.", ledger=found.removeprefix("file:")
            ),
            "Two ledgers for one table are two budgets, and nobody would see their sum.",
            say(
                "Use that ledger (--ledger). If it was moved on purpose, remove {place} and ask again.",
                place=place,
            ),
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
            say("The note {place} of which ledger a table has cannot be read.", place=place),
            "Without it a second budget could be opened for the same table.",
            "Put it back from a copy; if it is lost, name the ledger in a new note.",
        ) from None


def _write(place: Path, ledger: str) -> None:
    """A whole note appears at *place*, or somebody else's stays there."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            appear(place, json.dumps({"ledger": ledger}).encode())
    except OSError as error:
        raise LedgerError(
            say("The note of which ledger a table has cannot be written ({reason}).", reason=error.strerror),
            "Without it a second budget could be opened for the same table.",
            "Make the state folder writable, or set VELADO_STATE to one that is.",
        ) from None


# The ledger that goes with a file, so that asking from the command line is accounted for like any other asking.
#
# It lies beside the file as `<file>.ledger`, is made with the first question, and is found again by the next one. Without a budget
# of its own it holds exactly what the first question asks for: then nothing is left, and the owner must raise it on purpose.

ENDING = ".ledger"


@dataclass(frozen=True)
class FileLedger:
    """An open ledger, where it is, whether this call made it, and whether its budget is the first question's alone."""

    ledger: ChainedLedger
    where: str
    made: bool
    only_this: bool


def ledger_path(file: str | Path) -> Path:
    """Where the ledger of a file lies unless another place is named: beside it.

    >>> ledger_path("data/stays.csv").as_posix()
    'data/stays.csv.ledger'
    """
    path = Path(file)
    return path.with_name(path.name + ENDING)


def has_ledger(file: str | Path, named: Path | None = None) -> bool:
    """Whether questions about this file, or one with its content, are or ever were accounted for, in whatever ledger.

    *named* is the ledger that the schema names, which may be open before the first question.
    """
    if named is not None and ledger_exists(named):
        return True
    return ledger_exists(ledger_path(file)) or ledger_known(TableIdentity.of_file(Path(file))) is not None


def account_of(
    file: str | Path,
    asked: Budget,
    *,
    where: str | Path | None = None,
    seal: Path | None = None,
    budget: Budget | None = None,
    table: TableIdentity | None = None,
) -> FileLedger:
    """The file's ledger, opened, or made with *budget* (else with exactly what is *asked*).

    *where* is another path or a PostgreSQL address. *table* tells the rows apart where they are not in *file*; a table that
    is accounted for in another ledger is refused. A budget given for a ledger that exists is not applied: its total
    changes only by `velado ledger raise`, which leaves an entry in the chain.
    """
    place = str(ledger_path(file) if where is None else where)
    # Where only the seal is left, opening says that the ledger is gone; a new one would be a second budget.
    claim(table or TableIdentity.of_file(Path(file)), address_of(place))
    if ledger_exists(place, seal):
        return FileLedger(_opened(place, seal), place, made=False, only_this=False)
    try:
        ledger = create_ledger(place, Path(file).name or "table", budget or asked, seal)
    except LedgerError:
        # Two first questions at once: one makes the ledger, the other finds it.
        if not ledger_exists(place, seal):
            raise
        return FileLedger(_opened(place, seal), place, made=False, only_this=False)
    return FileLedger(ledger, place, made=True, only_this=budget is None)


def _opened(place: str, seal: Path | None) -> ChainedLedger:
    """The ledger, waiting a little for somebody who is just making it."""
    for _ in range(20):
        try:
            return open_ledger(place, seal)
        except LedgerError as error:
            if error.what != interrupted().what:
                raise
            time.sleep(0.1)
    return open_ledger(place, seal)
