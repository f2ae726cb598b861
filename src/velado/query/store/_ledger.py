"""A ledger on any store of entries, opened and made: one account, one chain, one seal, wherever the entries are kept.

Threads that write at the same time are carried out together: whoever gets the turn takes all that wait, in one commit
and with one write of the seal, so the disk is waited for once for all of them. Processes take turns by the seal's lock
and the store's write lock. The account is held in memory and only ever advanced by entries whose hash holds, so what
is decided never rests on a row that was edited.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path

from velado.data.seals import Keeper, Mark, Seal, default_seal, missing_seal
from velado.errors import BudgetExceeded, LedgerError, ParameterError, VeladoError
from velado.query.budget import Budget, Charge, LedgerState, Reservation
from velado.query.store._chain import LONGEST_NAME, Account, Entry, broken, fold, holds, interrupted
from velado.query.store._entries import EntryStore, LedgerAddress, LedgerFile, SQLiteEntries
from velado.query.unit import Unit
from velado.text import say

PAGE = 1000
"""Entries read at a time; a verification lets others write between pages."""

NEAR = 16
"""The seal is behind by the answers since the last debit; up to so many entries are read again rather than looked up."""

Connect = Callable[[], tuple[EntryStore, Keeper]]
Write = Callable[[Account, str], Entry]


class _Step:
    """One wish to append, and what became of it."""

    def __init__(self, write: Write, sealed: bool) -> None:
        self.write, self.sealed = write, sealed
        self.entry: Entry | None = None
        self.error: VeladoError | None = None


class ChainedLedger:
    """A durable, append-only, hash-chained account of one data set's budget. Safe among threads.

    Safe among processes, forks included, when *lasting*: the account then outlives this process, at its *address*.

    >>> from fractions import Fraction
    >>> from velado.query.budget import Budget, Charge
    >>> ledger = memory_ledger("patients", Budget.epsilon(1))
    >>> held = ledger.reserve(Charge("ana", "q1", "SELECT COUNT(*) FROM patients", Fraction(1, 4)))
    >>> receipt = ledger.record(held, "q1", "[17]")
    >>> ledger.stored("q1") == ("[17]", receipt), ledger.verify().left
    (True, Fraction(3, 4))
    """

    def __init__(self, connect: Connect, lasting: bool = True, address: str = "") -> None:
        self._connect, self.lasting, self.address = connect, lasting, address
        self._turn = threading.Lock()
        self._waiting: deque[_Step] = deque()
        self._open: tuple[EntryStore, Keeper] | None = None
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

    def stored(self, question: str) -> tuple[str, str] | None:
        """The first answer recorded for this question as (JSON text, head of its entry), or None."""
        with self._turn:
            account = self._current()
            number = account.answered.get(question)
            if number is None:
                return None
            entry = self._here()[0].at(number)
        if entry is None or not holds(account.key, entry):
            raise broken(number, say("it was changed while the ledger was in use"))
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

    @property
    def name(self) -> str:
        """What this ledger was called at random when it was made; no other has the same, not even at its place."""
        with self._turn:
            return self._here()[1].ledger

    def state(self) -> LedgerState:
        """The account as it stands, other processes' entries included."""
        with self._turn:
            return self._current().state()

    def last_state(self) -> LedgerState:
        """The account as it was last seen here, own entries included; the store is asked only where nothing was seen yet."""
        with self._turn:
            self._here()
            return (self._account or self._current()).state()

    def verify(self) -> LedgerState:
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
                    at = _now()
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

    def _here(self) -> tuple[EntryStore, Keeper]:
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
        if self._open is not None and (self.lasting or self._closed):
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
        ledger._closed = ledger._closed or not ledger.lasting
    _FORKING = threading.Lock()


def _rolled_back(number: int) -> LedgerError:
    return LedgerError(
        say(
            "The ledger was rolled back, edited or replaced: entry {number}, which its seal knows, is not "
            "there.",
            number=number,
        ),
        "Budget that was spent would be spent again, so nothing is answered.",
        "Put the newest copy of the ledger back; if it is lost, treat the whole budget as spent.",
    )


def _copy(error: BaseException) -> VeladoError:
    """The same error for each thread: one raised object must not be shared among tracebacks."""
    if isinstance(error, VeladoError):
        return type(error)(error.what, error.why, error.fix)
    return LedgerError(
        say("Writing the ledger was stopped by {kind}.", kind=type(error).__name__),
        "It is unknown whether the debit was made, so nothing is answered for it.",
        "Ask again.",
    )


# Ledgers are opened and made here, and refused where ledger and seal do not belong together.

SERVERS = ("postgresql://", "postgres://")


def open_ledger(where: str | Path, seal: Path | None = None) -> ChainedLedger:
    """The ledger at *where* (a path, or postgresql://...), its whole chain checked against the seal. O(entries)."""
    place, sealed = _addresses(where, seal)

    def connect() -> tuple[EntryStore, Keeper]:
        there, known = place.present(), os.path.lexists(sealed)
        if not there and not known:
            raise LedgerError(
                say("There is no ledger at {place}.", place=place.name),
                "Without one nothing is counted, so nothing is answered.",
                "Make one first: velado ledger open.",
            )
        if not known and isinstance(place, LedgerFile) and place.foreign():
            raise LedgerError(
                say("The file {place} is no ledger.", place=place.name),
                "It holds something else, so nothing was ever counted in it.",
                "Name the ledger; `velado query` keeps it beside the table, as FILE.ledger.",
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

    return ChainedLedger(connect, address=place.identity)


def create_ledger(where: str | Path, dataset: str, budget: Budget, seal: Path | None = None) -> ChainedLedger:
    """A new ledger with *budget* for *dataset*, and its seal. Refused where either exists: a budget starts once.

    The seal comes first, so that a ledger is never without one; a making that was interrupted may be made again.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> create_ledger(folder / "a.ledger", "patients", Budget.epsilon(1), folder / "a.seal").close()
    >>> open_ledger(folder / "a.ledger", folder / "a.seal").state().dataset
    'patients'
    """
    if not dataset or len(dataset) > LONGEST_NAME:
        raise ParameterError(
            say("A data set's name must have 1 to {longest_name} characters.", longest_name=LONGEST_NAME),
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
    """A ledger that ends with this process; a fork of it is refused, for its copy would be a second budget.

    >>> memory_ledger("patients", Budget.epsilon(2)).state().left
    Fraction(2, 1)
    """
    shelf, keeper = SQLiteEntries(None), Keeper()
    account = Account(keeper.key, keeper.ledger)
    with shelf.writing():
        shelf.append([account.open(dataset, budget, _now())])
    keeper.write(Mark(account.number, account.head))
    return ChainedLedger(lambda: (shelf, keeper), lasting=False)


def ledger_exists(where: str | Path, seal: Path | None = None) -> bool:
    """Whether a ledger is there, or was: its seal is enough.

    >>> ledger_exists("no/such.ledger", Path("no/such.seal"))
    False
    """
    place, sealed = _addresses(where, seal)
    return place.present() or os.path.lexists(sealed)


def address_of(where: str | Path) -> str:
    """The ledger's own name for where it is: a real path, or a server's address without who connects.

    >>> address_of("/data/a.ledger")
    'file:/data/a.ledger'
    """
    return _addresses(where, None)[0].identity


def seal_of(where: str | Path, seal: Path | None = None) -> Path:
    """Where the seal of the ledger at *where* lies.

    >>> seal_of("/data/a.ledger", Path("/keys/a.seal"))
    PosixPath('/keys/a.seal')
    """
    return _addresses(where, seal)[1]


def _addresses(where: str | Path, seal: Path | None) -> tuple[LedgerAddress, Path]:
    place: LedgerAddress
    if isinstance(where, str) and where.startswith(SERVERS):
        from velado.query.store._postgres_entries import LedgerServer

        place = LedgerServer(where)
    else:
        place = LedgerFile(Path(where))
    return place, Path(os.path.abspath(seal)) if seal is not None else default_seal(place.identity)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _exists(place: LedgerAddress) -> LedgerError:
    return LedgerError(
        say("There is a ledger, or another file, at {place} already.", place=place.name),
        "A second ledger for the same data would be a second budget.",
        "Open the one that is there, or raise its budget (velado ledger raise).",
    )


def _deleted(place: LedgerAddress) -> LedgerError:
    return LedgerError(
        say("The ledger at {place} is gone, though its seal says that one was kept there.", place=place.name),
        "What was spent would be forgotten, and a new ledger would spend it again.",
        "Put the newest copy of the ledger back; if it is lost, treat the whole budget as spent.",
    )


# One ledger adds up costs about one unit; costs about different units have no sum.
#
# An epsilon for one record says little of a household of ten, so a ledger that mixed both would show a total that protects
# nobody it names. The first session that pays writes down its unit, as an entry that costs nothing, and every later one must
# be about the same. The most rows of a group may change: neighbouring tables still differ by that one whole group.

QUESTION = "unit"


def people_state(ledger: ChainedLedger, state: LedgerState) -> LedgerState:
    """The account as people made it: the entry about the unit is no answer, and no analyst asked for it."""
    if ledger.stored(QUESTION) is None:
        return state
    spent = {name: cost for name, cost in state.by_analyst.items() if cost > 0}
    return replace(state, by_analyst=spent, answers=state.answers - 1)


class UnitOfAccount:
    """The unit a ledger's costs are about, written once and compared ever after. Safe among threads and processes."""

    def __init__(self, ledger: ChainedLedger, unit: Unit, analyst: str) -> None:
        dependence = None if unit.dependence is None else str(unit.dependence)
        self._text = json.dumps({"column": unit.column, "dependence": dependence}, sort_keys=True)
        self._ledger = ledger
        self._analyst = analyst
        self._held = False
        self._lock = threading.Lock()

    def check(self) -> bool:
        """Whether the ledger has its unit already; refuses when it is another one."""
        found = self._ledger.stored(QUESTION)
        if found is not None and found[0] != self._text:
            raise ParameterError(
                "This ledger accounts for another unit than the session's.",
                "Costs about different units cannot be added up to one promise.",
                "Use the unit the ledger was begun with, or a ledger of its own (whose promise stands apart).",
            )
        return found is not None

    def hold(self) -> None:
        """The ledger's costs are about this unit from here on."""
        if self._held:
            return
        with self._lock:
            if not self.check():
                charge = Charge(self._analyst, QUESTION, self._text, Fraction(0))
                self._ledger.record(self._ledger.reserve(charge), QUESTION, self._text)
                # Where two processes came at once, the entry that stands first is the one that counts.
                self.check()
            self._held = True
