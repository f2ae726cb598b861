"""A ledger on any shelf: the same account, the same chain and the same seal, whether a file or a server keeps it.

Threads that write at the same time are carried out together: whoever gets the turn takes all that wait, in one commit
and with one write of the seal, so the disk is waited for once for all of them. Processes take turns by the seal's lock
and the shelf's write lock. The account is held in memory and only ever advanced by entries whose hash holds, so what
is decided never rests on a row that was edited.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from typing import Protocol

from velado.errors import BudgetExceeded, LedgerError, ParameterError, VeladoError
from velado.query.budget import Charge, Reservation, State
from velado.query.store.account import Account, fold
from velado.query.store.chain import Entry, broken, holds
from velado.query.store.seal import Keeper, Mark

# What a place for entries must do; a file and a server do it in their own ways.


class Shelf(Protocol):
    """An open place that keeps entries in order. Every failure of the place is a LedgerError."""

    def writing(self) -> AbstractContextManager[None]:
        """Nobody else appends meanwhile; what was appended is durable afterwards, or nothing of it is there."""

    def at(self, number: int) -> Entry | None:
        """The entry with this number."""

    def after(self, number: int, limit: int) -> list[Entry]:
        """Up to *limit* entries above *number*, in order."""

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries, inside `writing`."""

    def close(self) -> None:
        """Give the place back."""


class Place(Protocol):
    """An address where a ledger is or may be made."""

    @property
    def identity(self) -> str:
        """One text per ledger, whatever way its address was spelled; never a password."""

    @property
    def name(self) -> str:
        """The address as a person may read it."""

    def present(self) -> bool:
        """Whether anything is there."""

    def open(self) -> Shelf:
        """The ledger that is there."""

    def create(self) -> Shelf:
        """A new empty ledger, or the empty one whose making was interrupted."""


PAGE = 1000
"""Entries read at a time; a verification lets others write between pages."""

NEAR = 16
"""The seal is behind by the answers since the last debit; up to so many entries are read again rather than looked up."""

Connect = Callable[[], tuple[Shelf, Keeper]]
Write = Callable[[Account, str], Entry]


class _Step:
    """One wish to append, and what became of it."""

    def __init__(self, write: Write, sealed: bool) -> None:
        self.write, self.sealed = write, sealed
        self.entry: Entry | None = None
        self.error: VeladoError | None = None


class ChainedLedger:
    """A `Ledger` on a shelf. Safe among threads; safe among processes, forks included, when *lasting*."""

    def __init__(self, connect: Connect, lasting: bool = True) -> None:
        self._connect, self._lasting = connect, lasting
        self._turn = threading.Lock()
        self._waiting: deque[_Step] = deque()
        self._open: tuple[Shelf, Keeper] | None = None
        self._account: Account | None = None
        self._closed = False
        _watch_forks()
        with _FORKING:
            _LEDGERS.add(self)
        try:
            with self._turn:
                self._reseal()
        except BaseException:
            self.close()
            raise

    @property
    def lasting(self) -> bool:
        """Whether the account outlives this process."""
        return self._lasting

    def stored(self, question: str) -> tuple[str, str] | None:
        """The first answer recorded for this question as (JSON text, head of its entry), or None."""
        with self._turn:
            account = self._current()
            number = account.answered.get(question)
            if number is None:
                return None
            entry = self._here()[0].at(number)
        if entry is None or not holds(account.key, entry):
            raise broken(number, "it was changed while the ledger was in use")
        return entry.fields()["answer"], entry.hash

    def reserve(self, charge: Charge) -> Reservation:
        """Debit and make durable, in ledger and seal, or raise BudgetExceeded and debit nothing."""
        entry = self._append(lambda account, at: account.reserve(charge, at), sealed=True)
        return Reservation(entry.number, entry.hash)

    def record(self, reservation: Reservation, question: str, answer: str) -> str:
        """Append the answer, durably, and return the chain's head at it: the receipt."""
        return self._append(lambda account, at: account.answer(reservation, question, answer, at)).hash

    def set_cap(self, analyst: str, cap: Fraction) -> None:
        """The most one analyst may spend from now on, as an entry of the chain."""
        self._append(lambda account, at: account.cap(analyst, cap, at), sealed=True)

    def raise_budget(self, total: Fraction, reason: str) -> None:
        """A larger total, signed by the owner's reason; a smaller one is refused."""
        self._append(lambda account, at: account.raise_budget(total, reason, at), sealed=True)

    def state(self) -> State:
        """The account as it stands, other processes' entries included."""
        with self._turn:
            return self._current().state()

    def last_state(self) -> State:
        """The account as it was last seen here, own entries included; the store is asked only where nothing was seen yet."""
        with self._turn:
            self._here()
            return (self._account or self._current()).state()

    def verify(self) -> State:
        """Recompute the whole chain and the totals from the shelf; LedgerError names the first entry that does not hold."""
        with self._turn:
            known = self._current()
            key, ledger, mark = known.key, known.ledger, self._here()[1].read()
        sealed: list[Entry] = []

        def pages() -> Iterator[Entry]:
            for entry in self.entries():
                if entry.number == mark.number:
                    sealed.append(entry)
                yield entry

        account = fold(key, ledger, pages())
        if mark.number and (not sealed or sealed[0].hash != mark.hash):
            raise _rolled_back(mark.number)
        return account.state()

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Every entry above *after*, in order, as the shelf has them; `verify` says whether they hold."""
        while True:
            with self._turn:
                page = self._here()[0].after(after, PAGE)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].number

    def find(self, receipt: str) -> Entry | None:
        """The entry whose hash is *receipt*, if this chain has it. O(entries)."""
        return next((entry for entry in self.entries() if entry.hash == receipt), None)

    def close(self) -> None:
        """Give back files and connections; a closed ledger refuses everything."""
        with self._turn:
            self._closed = True
            self._let_go()

    def _append(self, write: Write, sealed: bool = False) -> Entry:
        """The entry is durable, by our own turn or by that of a thread that took ours along."""
        step = _Step(write, sealed)
        self._waiting.append(step)
        with self._turn:
            if step.entry is None and step.error is None:
                # Others may join the queue at any moment, so it is emptied from its front, never replaced.
                self._carry_out([self._waiting.popleft() for _ in range(len(self._waiting))])
        if step.error is not None:
            raise step.error
        assert step.entry is not None
        return step.entry

    def _carry_out(self, batch: list[_Step]) -> None:
        """All steps in one commit and one write of the seal: entries for those allowed, errors for the others."""
        made: list[tuple[_Step, Entry]] = []
        failed: BaseException | None = None
        try:
            shelf, keeper = self._here()
            with keeper.held():
                with shelf.writing():
                    account = self._current()
                    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                    for step in batch:
                        try:
                            made.append((step, step.write(account, at)))
                        except (BudgetExceeded, ParameterError, LedgerError) as error:
                            step.error = error
                    shelf.append([entry for _, entry in made])
                if any(step.sealed for step, _ in made):
                    # After the commit: a seal ahead of its ledger would call an honest ledger rolled back.
                    keeper.write(Mark(account.number, account.head))
            for step, entry in made:
                step.entry = entry
        except BaseException as error:
            failed = error
        if failed is not None:
            # Whether the commit took place is unknown: everything is read again before the next decision.
            self._account = None
            self._let_go()
            for step in batch:
                step.error = _copy(failed)
            if not isinstance(failed, VeladoError):
                raise failed

    def _current(self) -> Account:
        """The account with every entry that others added since, checked against chain and seal."""
        shelf, keeper = self._here()
        # The seal is read first: whatever it knows was committed before, so the shelf must show it.
        mark = keeper.read()
        account = self._account or Account(keeper.key, keeper.ledger)
        try:
            # One look: the last entry we know, the one the seal knows if it is near, and what others have added.
            near = max(mark.number, account.number - NEAR)
            page = shelf.after(max(min(account.number, near) - 1, 0), PAGE)
            shown = {entry.number: entry.hash for entry in page}
            if account.number and shown.get(account.number) != account.head:
                raise _rolled_back(account.number)
            while page:
                for entry in page:
                    if entry.number > account.number:
                        account.take(entry)
                page = shelf.after(account.number, PAGE) if len(page) == PAGE else []
            if mark.number:
                sealed = shelf.at(mark.number) if mark.number not in shown else None
                if mark.hash != (shown.get(mark.number) if sealed is None else sealed.hash):
                    raise _rolled_back(mark.number)
            # A ledger without its first entry is one whose making was interrupted: said, not used.
            account.check_open()
        except VeladoError:
            self._account = None
            raise
        self._account = account
        return account

    def _reseal(self) -> None:
        """The seal knows the newest entry, though a crash or an unsealed answer left it behind."""
        keeper = self._here()[1]
        with keeper.held():
            account = self._current()
            if keeper.read().number < account.number:
                keeper.write(Mark(account.number, account.head))

    def _here(self) -> tuple[Shelf, Keeper]:
        if self._closed:
            raise LedgerError(
                "The ledger was closed, or its process was forked from the one that holds it in memory.",
                "What is spent here would not be counted there.",
                "Open it again; to share a budget among processes, use a ledger in a file.",
            )
        if self._open is None:
            self._open = self._connect()
        return self._open

    def _let_go(self) -> None:
        """Connections are closed and made anew at the next use. A ledger in memory lives in its connection."""
        if self._open is not None and (self._lasting or self._closed):
            for part in self._open:
                part.close()
            self._open = None


# A connection or a lock that crosses a fork would belong to two processes, so nothing is open while one happens.
_LEDGERS: weakref.WeakSet[ChainedLedger] = weakref.WeakSet()
_FORKING = threading.Lock()
_STOPPED: list[ChainedLedger] = []


@cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
        )


def _before_fork() -> None:
    _FORKING.acquire()
    for ledger in list(_LEDGERS):
        ledger._turn.acquire()
        ledger._let_go()
        _STOPPED.append(ledger)


def _after_in_parent() -> None:
    while _STOPPED:
        _STOPPED.pop()._turn.release()
    _FORKING.release()


def _after_in_child() -> None:
    global _FORKING
    while _STOPPED:
        ledger = _STOPPED.pop()
        ledger._turn, ledger._waiting = threading.Lock(), deque()
        # A copy of a budget in memory would be a second budget.
        ledger._closed = ledger._closed or not ledger._lasting
    _FORKING = threading.Lock()


def _rolled_back(number: int) -> LedgerError:
    return LedgerError(
        f"The ledger was rolled back, edited or replaced: entry {number}, which its seal knows, is not there.",
        "Budget that was spent would be spent again, so nothing is answered.",
        "Put the newest copy of the ledger back; if it is lost, treat the whole budget as spent.",
    )


def _copy(error: BaseException) -> VeladoError:
    """The same error for each thread: one raised object must not be shared among tracebacks."""
    if isinstance(error, VeladoError):
        return type(error)(error.what, error.why, error.fix)
    return LedgerError(
        f"Writing the ledger was stopped by {type(error).__name__}.",
        "It is unknown whether the debit was made, so nothing is answered for it.",
        "Ask again.",
    )
