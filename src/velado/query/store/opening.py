"""Ledgers are opened and made here, and refused where ledger and seal do not belong together."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from velado.errors import LedgerError, ParameterError
from velado.query.budget import Budget
from velado.query.store.account import LONGEST_NAME, Account, interrupted
from velado.query.store.chained import ChainedLedger, Place, Shelf
from velado.query.store.seal import Keeper, Mark, MemoryKeeper, Seal, default_seal, missing_seal
from velado.query.store.sqlite_store import SQLitePlace, SQLiteShelf

SERVERS = ("postgresql://", "postgres://")


def open_ledger(where: str | Path, seal: Path | None = None) -> ChainedLedger:
    """The ledger at *where* (a path, or postgresql://...), its whole chain checked against the seal. O(entries)."""
    place, sealed = _addresses(where, seal)

    def connect() -> tuple[Shelf, Keeper]:
        there, known = place.present(), os.path.lexists(sealed)
        if not there and not known:
            raise LedgerError(
                f"There is no ledger at {place.name}.",
                "Without one nothing is counted, so nothing is answered.",
                "Make one first: velado ledger open.",
            )
        if not known:
            raise missing_seal(sealed)
        keeper = Seal(sealed)
        try:
            if not keeper.read().number:
                # Somebody may be making the ledger at this moment, and holds its seal until it is whole.
                with keeper.held():
                    if not keeper.read().number:
                        raise interrupted()
            if not there and not place.present():
                raise _deleted(place)
            return place.open(), keeper
        except BaseException:
            keeper.close()
            raise

    return ChainedLedger(connect)


def create_ledger(where: str | Path, dataset: str, budget: Budget, seal: Path | None = None) -> ChainedLedger:
    """A new ledger with *budget* for *dataset*, and its seal. Refused where either exists: a budget starts once.

    The seal comes first, so that a ledger is never without one; a making that was interrupted may be made again.
    """
    if not dataset or len(dataset) > LONGEST_NAME:
        raise ParameterError(
            f"A data set's name must have 1 to {LONGEST_NAME} characters.",
            "The budget belongs to the data set of that name.",
            "Name it, for example patients-2024.",
        )
    place, sealed = _addresses(where, seal)
    known = os.path.lexists(sealed)
    if place.present() and not known:
        raise _exists(place)
    if not known:
        try:
            keeper = Seal.create(sealed)
        except LedgerError:
            # Somebody else began at the same moment: who comes second finds what the first one made.
            if not os.path.lexists(sealed):
                raise
            known, keeper = True, Seal(sealed)
    else:
        keeper = Seal(sealed)
    made = False
    try:
        with keeper.held():
            if keeper.read().number:
                known = True  # somebody else's seal vouches for a ledger: it stays
                raise _exists(place) if place.present() else _deleted(place)
            shelf = place.create()
            try:
                with shelf.writing():
                    if shelf.after(0, 1):
                        raise _exists(place)
                    account = Account(keeper.key, keeper.ledger)
                    shelf.append([account.open(dataset, budget, _now())])
                made = True
                keeper.write(Mark(account.number, account.head))
            finally:
                shelf.close()
            # A seal that vouches for nothing would only forbid the next attempt.
    except LedgerError:
        if not known and not made:
            sealed.unlink(missing_ok=True)
        raise
    finally:
        keeper.close()
    return open_ledger(where, seal)


def memory_ledger(dataset: str, budget: Budget) -> ChainedLedger:
    """A ledger that ends with this process; a fork of it is refused, for its copy would be a second budget."""
    shelf, keeper = SQLiteShelf(None), MemoryKeeper()
    account = Account(keeper.key, keeper.ledger)
    with shelf.writing():
        shelf.append([account.open(dataset, budget, _now())])
    keeper.write(Mark(account.number, account.head))
    return ChainedLedger(lambda: (shelf, keeper), lasting=False)


def ledger_exists(where: str | Path, seal: Path | None = None) -> bool:
    """Whether a ledger is there, or was: its seal is enough."""
    place, sealed = _addresses(where, seal)
    return place.present() or os.path.lexists(sealed)


def address_of(where: str | Path) -> str:
    """The ledger's own name for where it is: a real path, or a server's address without who connects."""
    return _addresses(where, None)[0].identity


def seal_of(where: str | Path, seal: Path | None = None) -> Path:
    """Where the seal of the ledger at *where* lies."""
    return _addresses(where, seal)[1]


def _addresses(where: str | Path, seal: Path | None) -> tuple[Place, Path]:
    place: Place
    if isinstance(where, str) and where.startswith(SERVERS):
        from velado.query.store.postgres_store import PostgresPlace

        place = PostgresPlace(where)
    else:
        place = SQLitePlace(Path(where))
    return place, Path(os.path.abspath(seal)) if seal is not None else default_seal(place.identity)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _exists(place: Place) -> LedgerError:
    return LedgerError(
        f"There is a ledger, or another file, at {place.name} already.",
        "A second ledger for the same data would be a second budget.",
        "Open the one that is there, or raise its budget (velado ledger raise).",
    )


def _deleted(place: Place) -> LedgerError:
    return LedgerError(
        f"The ledger at {place.name} is gone, though its seal says that one was kept there.",
        "What was spent would be forgotten, and a new ledger would spend it again.",
        "Put the newest copy of the ledger back; if it is lost, treat the whole budget as spent.",
    )
