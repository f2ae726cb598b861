"""Which ledger goes with which table: one table has one budget, wherever its ledger was put.

Small files in the state folder for every table ever asked about, found by the table's place, its bytes and its rows (`identity`),
name its ledger. A second ledger is refused for the same file, a copy, a file changed in place, the same rows in another order,
format or folder, and the same relation of a PostgreSQL server however it is reached; and for a table whose ledger was lost.
What it cannot see: a copy that was moved *and* changed, be it by one row or column; a copied database; a view of a relation;
another user's state folder, another machine.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from velado.data.keys import state_folder
from velado.data.schema import Schema
from velado.data.seals import appear
from velado.errors import LedgerError, ParameterError
from velado.query.budget import Budget
from velado.query.engines import identity_of
from velado.query.identity import TableIdentity
from velado.query.store._chain import interrupted
from velado.query.store._ledger import ChainedLedger, address_of, create_ledger, ledger_exists, open_ledger
from velado.randomness import secure
from velado.text import say

_NOTE = ".json"
_OF_CELLS = ("rows:", "content:")


def ledger_known(table: TableIdentity) -> str | None:
    """The ledger this table is, or was ever, accounted for in."""
    for place in _places(table):
        found = _read(place)
        if found is not None:
            return found
    return None


def claim(table: TableIdentity, ledger: str) -> None:
    """The table belongs to this ledger from here on; LedgerError where it belongs to another."""
    _note_key(make=True)
    places = _places(table)
    for place in places:
        _refuse_other(place, ledger)
    for place in places:
        _write(place, {"ledger": ledger})
        # Where two came at once, the note that stands is the one that counts.
        _refuse_other(place, ledger)


def settle(table: TableIdentity, ledger: ChainedLedger) -> None:
    """The table belongs to this very ledger from here on; LedgerError where it was accounted for in another or an earlier one.

    A note names the ledger by its place and, beside it, by the name that was drawn when it was made. A new ledger that was
    put where a lost one had been has another name, and is refused: it would be a second budget.
    """
    claim(table, ledger.address)
    for place in _places(table):
        made = place.with_suffix(".made")
        _write(made, {"ledger": ledger.name})
        if _read(made) != ledger.name:
            raise LedgerError(
                say(
                    "The ledger {ledger} is not the one this table was accounted for in, but a newer one at its place.",
                    ledger=ledger.address.removeprefix("file:"),
                ),
                "What was spent is not in it, so it would be a second budget for the same table.",
                _put_back(place),
            )


def refuse_lost(table: TableIdentity, where: str | Path, seal: Path | None = None) -> None:
    """Nothing, or LedgerError where the table had a ledger there, and neither that nor its seal is left."""
    if ledger_exists(where, seal):
        return
    for place in _places(table):
        if place.with_suffix(".made").exists():
            raise LedgerError(
                say(
                    "The ledger of this table is gone, and its seal too: {ledger}.",
                    ledger=address_of(where).removeprefix("file:"),
                ),
                "How much of its budget was spent nobody knows any more, so a new one would be a second budget.",
                _put_back(place),
            )


def refuse_second(table: TableIdentity) -> None:
    """Nothing, or LedgerError where the table has a ledger, and is about to be asked on an account of its own."""
    found = ledger_known(table)
    if found is not None:
        raise LedgerError(
            say("This table is accounted for in a ledger: {ledger}.", ledger=found.removeprefix("file:")),
            "A budget of this session's own beside it would be a second one, and nobody would see their sum.",
            "Open that ledger and pass it: Session(table, budget=velado.open_ledger(...)).",
        )


def _put_back(place: Path) -> str:
    return say(
        "Put the newest copy of ledger and seal back. If they are lost, the budget counts as spent; an owner who decides "
        "otherwise removes {notes} and begins anew.",
        notes=place.with_suffix(".*"),
    )


def agree_version(ledger: str, version: str, content: str) -> None:
    """This content goes under this declared version from here on; ParameterError where the version stood for another.

    A version that followed the rows by itself would tell whoever repeats a question, for nothing, whether any row has
    changed. So the owner declares it, and a changed table under an old name is not served.
    """
    place = _plain(f"version:{ledger}:{version}")
    _write(place, {"ledger": content})
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


def _places(table: TableIdentity) -> list[Path]:
    """Where notes about the table lie or would lie, one for each mark."""
    key = _note_key(make=False)
    out = []
    for mark in table.marks:
        if mark.startswith(_OF_CELLS):
            # A plain hash of cells would let whoever reads the folder test a guess of them.
            out += (
                [] if key is None else [_folder() / (hmac.digest(key, mark.encode(), "sha256").hex() + _NOTE)]
            )
        else:
            out.append(_plain(mark))
    # Notes of earlier versions are found too.
    return out + [
        old for mark in table.marks if mark.startswith("content:") if (old := _plain(mark)).exists()
    ]


def _plain(mark: str) -> Path:
    name = hashlib.sha256(mark.encode("utf-8", "surrogateescape")).hexdigest()
    return _folder() / (name + _NOTE)


def _folder() -> Path:
    return state_folder() / "tables"


def _note_key(make: bool) -> bytes | None:
    """The key that notes made from cells are named under; it lies among them and is made with the first."""
    place = _folder() / "key"
    try:
        if make and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with suppress(FileExistsError):
                appear(place, secure().randbytes(32))
        return place.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unwritable(str(error.strerror)) from None


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


def _write(place: Path, note: dict[str, str]) -> None:
    """A whole note appears at *place*, or somebody else's stays there."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            appear(place, json.dumps(note).encode())
    except OSError as error:
        raise _unwritable(str(error.strerror)) from None


def _unwritable(reason: str) -> LedgerError:
    return LedgerError(
        say("The note of which ledger a table has cannot be written ({reason}).", reason=reason),
        "Without it a second budget could be opened for the same table.",
        "Make the state folder writable, or set VELADO_STATE to one that is.",
    )


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


def has_ledger(file: str | Path, named: Path | None = None, schema: Schema | None = None) -> bool:
    """Whether questions about this file, or one with its content, are or ever were accounted for, in whatever ledger.

    *named* is the ledger that the schema names, which may be open before the first question.
    """
    if named is not None and ledger_exists(named):
        return True
    return ledger_exists(ledger_path(file)) or ledger_known(identity_of(Path(file), schema)) is not None


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
    known = table or identity_of(Path(file))
    # Where only the seal is left, opening says that the ledger is gone; a new one would be a second budget.
    claim(known, address_of(place))
    refuse_lost(known, place, seal)
    made = False
    if ledger_exists(place, seal):
        ledger = open_soon(place, seal)
    else:
        try:
            ledger = create_ledger(place, Path(file).name or "table", budget or asked, seal)
            made = True
        except LedgerError:
            # Two first questions at once: one makes the ledger, the other finds it.
            if not ledger_exists(place, seal):
                raise
            ledger = open_soon(place, seal)
    try:
        settle(known, ledger)
    except BaseException:
        ledger.close()
        raise
    return FileLedger(ledger, place, made=made, only_this=made and budget is None)


def open_soon(place: str | Path, seal: Path | None = None) -> ChainedLedger:
    """The ledger, waiting up to ten seconds for somebody who is just making it."""
    for _ in range(100):
        try:
            return open_ledger(place, seal)
        except LedgerError as error:
            if error.what != interrupted().what:
                raise
            time.sleep(0.1)
    return open_ledger(place, seal)
