"""The ledger that goes with a file, so that asking from the command line is accounted for like any other asking.

It lies beside the file as `<file>.ledger`, is made with the first question, and is found again by the next one. Without a budget
of its own it holds exactly what the first question asks for: then nothing is left, and the owner must raise it on purpose.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from velado.errors import LedgerError
from velado.query.budget import Budget
from velado.query.ledger import Ledger
from velado.query.store import (
    TableIdentity,
    address_of,
    claim,
    create_ledger,
    ledger_exists,
    ledger_known,
    open_ledger,
)
from velado.query.store.account import interrupted

ENDING = ".ledger"


@dataclass(frozen=True)
class Account:
    """An open ledger, where it is, whether this call made it, and whether its budget is the first question's alone."""

    ledger: Ledger
    where: str
    made: bool
    only_this: bool


def ledger_path(file: str | Path) -> Path:
    """Where the ledger of a file lies unless another place is named: beside it."""
    path = Path(file)
    return path.with_name(path.name + ENDING)


def has_ledger(file: str | Path) -> bool:
    """Whether questions about this file, or one with its content, are or ever were accounted for, in whatever ledger."""
    return ledger_exists(ledger_path(file)) or ledger_known(TableIdentity.of_file(Path(file))) is not None


def account_of(
    file: str | Path,
    asked: Budget,
    *,
    where: str | Path | None = None,
    seal: Path | None = None,
    budget: Budget | None = None,
    table: TableIdentity | None = None,
) -> Account:
    """The file's ledger, opened, or made with *budget* (else with exactly what is *asked*).

    *where* is another path or a PostgreSQL address. *table* tells the rows apart where they are not in *file*; a table that
    is accounted for in another ledger is refused. A budget given for a ledger that exists is not applied: its total
    changes only by `velado ledger raise`, which leaves an entry in the chain.
    """
    place = str(ledger_path(file) if where is None else where)
    # Where only the seal is left, opening says that the ledger is gone; a new one would be a second budget.
    claim(table or TableIdentity.of_file(Path(file)), address_of(place))
    if ledger_exists(place, seal):
        return Account(_opened(place, seal), place, made=False, only_this=False)
    try:
        ledger = create_ledger(place, Path(file).name or "table", budget or asked, seal)
    except LedgerError:
        # Two first questions at once: one makes the ledger, the other finds it.
        if not ledger_exists(place, seal):
            raise
        return Account(_opened(place, seal), place, made=False, only_this=False)
    return Account(ledger, place, made=True, only_this=budget is None)


def _opened(place: str, seal: Path | None) -> Ledger:
    """The ledger, waiting a little for somebody who is just making it."""
    for _ in range(20):
        try:
            return open_ledger(place, seal)
        except LedgerError as error:
            if error.what != interrupted().what:
                raise
            time.sleep(0.1)
    return open_ledger(place, seal)
