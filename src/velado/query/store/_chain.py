"""The chain of a ledger, entries tied to one another by a key, and the account they add up to. Pure.

hash_n = HMAC-SHA256(key, hash_{n-1} || canonical(n, kind_n, payload_n)), hash_0 = 64 zeros. Without the key nobody can
make an entry that holds, and with it nobody can change one without changing every hash after it. Costs are exact
fractions written as text; each entry carries the running total, which the account recomputes and compares.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from velado.data.seals import START
from velado.errors import BudgetExceeded, LedgerError, ParameterError
from velado.query.budget import Budget, Charge, LedgerState, Reservation, measure_word, short
from velado.text import say

Kind = Literal["open", "reserve", "answer", "cap", "raise"]
Payload = Mapping[str, Any]  # what an entry says, as JSON has it

VERSION = 1

# Made once: an encoder for every entry would cost as much as the entry. One ASCII text for one payload: keys sorted, no spaces.
canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode
_packed = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. *payload* is canonical JSON, kept as the text that was signed."""

    number: int
    kind: str
    payload: str
    previous: str
    hash: str

    def fields(self) -> Payload:
        """What the payload says, or a LedgerError that repeats nothing of it."""
        try:
            found = json.loads(self.payload)
        except (ValueError, RecursionError):
            raise broken(self.number, say("its text cannot be read")) from None
        if not isinstance(found, dict):
            raise broken(self.number, say("its text cannot be read"))
        return found


def signature(key: bytes, number: int, kind: str, payload: str, previous: str) -> str:
    """The hash of an entry. The fields are JSON texts of one list, so no two entries have the same bytes."""
    message = previous + _packed([number, kind, payload])
    return hmac.digest(key, message.encode("utf-8", "surrogatepass"), "sha256").hex()


def make_entry(key: bytes, number: int, previous: str, kind: Kind, payload: Payload) -> Entry:
    """The entry that follows *previous*."""
    text = canonical(payload)
    return Entry(number, kind, text, previous, signature(key, number, kind, text, previous))


def check_link(key: bytes, entry: Entry, number: int, previous: str) -> None:
    """The entry stands at its place, follows the one before it, and was made with the key."""
    if entry.number != number:
        raise broken(number, say("it is missing, or stands at another place"))
    if entry.previous != previous:
        raise broken(
            number, say("it does not follow the entry before it: entries were removed, moved or replaced")
        )
    if not holds(key, entry):
        raise broken(number, say("its text is not the one that was signed"))


def holds(key: bytes, entry: Entry) -> bool:
    """Whether the entry's own hash was made with the key from what it says."""
    expected = signature(key, entry.number, entry.kind, entry.payload, entry.previous)
    return hmac.compare_digest(expected.encode(), entry.hash.encode("utf-8", "surrogatepass"))


def entry_of(row: Sequence[Any]) -> Entry:
    """An entry from a row of a store, whose types nobody vouches for."""
    number = row[0] if type(row[0]) is int else 0
    if not all(isinstance(cell, str) for cell in row[1:]):
        raise broken(number, say("a part of it has the wrong type"))
    return Entry(number, *row[1:])


def broken(number: int, reason: str) -> LedgerError:
    """The error for an entry that does not hold."""
    return LedgerError(
        say("Entry {number} of the ledger does not hold: {reason}.", number=number, reason=reason),
        "What was spent can no longer be proven, so nothing is answered.",
        "Put back the newest untouched copy of the ledger, or treat the whole budget as spent.",
    )


def fraction(text: Any, number: int) -> Fraction:
    """A fraction from its one spelling, n or n/d in lowest terms, never negative."""
    if not isinstance(text, str) or not text.isascii() or not text.replace("/", "", 1).isdigit():
        raise broken(number, say("an amount in it is not a fraction"))
    try:
        over, _, under = text.partition("/")
        value = Fraction(int(over), int(under or 1))
    except (ValueError, ZeroDivisionError):
        raise broken(number, say("an amount in it is not a fraction")) from None
    if str(value) != text:
        raise broken(number, say("an amount in it is not in lowest terms"))
    return value


# The account a chain adds up to: every rule of the budget, checked entry by entry, in memory.

# Sums of odd fractions grow without end; beyond this many bits they are refused rather than added ever more slowly.
MOST_BITS = 8192
LONGEST_NAME = 200


@dataclass
class Account:
    """What the entries up to *number* say. `take` folds one more entry in and raises at the first broken rule.

    Cost: O(1) an entry; memory grows with the questions answered and the reservations that wait.
    """

    key: bytes
    ledger: str
    number: int = 0
    head: str = START
    dataset: str = ""
    budget: Budget | None = None
    spent: Fraction = Fraction(0)
    by_analyst: dict[str, Fraction] = field(default_factory=dict)
    caps: dict[str, Fraction] = field(default_factory=dict)
    waiting: dict[int, tuple[str, str]] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    answers: int = 0

    def state(self) -> LedgerState:
        """The account as a frozen value."""
        return LedgerState(
            dataset=self.dataset, budget=self._budget(), spent=self.spent,
            by_analyst=dict(sorted(self.by_analyst.items())), caps=dict(sorted(self.caps.items())),
            entries=self.number, answers=self.answers, head=self.head,
        )  # fmt: skip

    def take(self, entry: Entry) -> None:
        """Fold *entry* in, or raise LedgerError; after an error the account is of no more use."""
        check_link(self.key, entry, self.number + 1, self.head)
        self._fold(entry, entry.fields())

    def _fold(self, entry: Entry, said: Payload) -> None:
        number = self.number + 1
        if (entry.kind == "open") != (number == 1):
            raise broken(number, say("a ledger is opened once, by its first entry"))
        rule = _RULES.get(entry.kind)
        if rule is None:
            raise broken(number, say("it is of an unknown kind"))
        try:
            rule(self, entry, said)
            if fraction(said["spent"], number) != self.spent:
                raise broken(number, say("its running total is not the sum of the costs"))
        except (KeyError, TypeError, ParameterError):
            raise broken(number, say("a part of it is missing or has the wrong type")) from None
        self.number, self.head = entry.number, entry.hash

    def _budget(self) -> Budget:
        self.check_open()
        assert self.budget is not None
        return self.budget

    def check_open(self) -> None:
        """Nothing, where a first entry has set a budget."""
        if self.budget is None:
            raise interrupted()

    def _entry(self, kind: Kind, **payload: Any) -> Entry:
        """The next entry, under the same rules as one that was read; only what was just signed is not read back."""
        entry = make_entry(self.key, self.number + 1, self.head, kind, payload)
        self._fold(entry, payload)
        return entry

    def open(self, dataset: str, budget: Budget, at: str) -> Entry:
        """The first entry: whose budget this is, and how much."""
        delta = None if budget.delta is None else str(budget.delta)
        held = {"measure": budget.measure, "total": str(budget.total), "delta": delta}
        return self._entry(
            "open", version=VERSION, ledger=self.ledger, dataset=dataset, budget=held, spent="0", at=at
        )

    def reserve(self, charge: Charge, at: str) -> Entry:
        """Debit *charge*, or raise BudgetExceeded (total, then cap) and change nothing."""
        budget = self._budget()
        _check_name(charge.analyst)
        if charge.cost < 0:
            raise ParameterError(
                "A cost is below zero.",
                "It would give budget back, and what was learnt cannot be unlearnt.",
                "Ask with a cost of zero or more.",
            )
        spent = self.spent + charge.cost
        own = self.by_analyst.get(charge.analyst, Fraction(0)) + charge.cost
        cap = self.caps.get(charge.analyst)
        if spent > budget.total:
            raise BudgetExceeded(
                say(
                    "The answer would cost {cost} of {measure}; {left} of {budget} is left.",
                    cost=short(charge.cost),
                    measure=measure_word(budget.measure),
                    left=short(budget.total - self.spent),
                    budget=short(budget.total),
                ),
                "All answers together would tell more than the owner of the data allowed.",
                "Ask with a smaller cost, or ask the owner to raise the budget (velado ledger raise).",
            )
        if cap is not None and own > cap:
            left = max(cap - own + charge.cost, Fraction(0))
            raise BudgetExceeded(
                say(
                    "The answer would cost {cost} of {measure}; {left} of this analyst's share of {cap} is "
                    "left.",
                    cost=short(charge.cost),
                    measure=measure_word(budget.measure),
                    left=short(left),
                    cap=short(cap),
                ),
                "The owner of the data set a most for each analyst.",
                "Ask with a smaller cost, or ask the owner for a larger share (velado ledger cap).",
            )
        if max(spent.denominator.bit_length(), own.denominator.bit_length()) > MOST_BITS:
            raise ParameterError(
                "The cost cannot be added up exactly in reasonable space.",
                "Its denominator has too little in common with those of the costs before it.",
                "Choose a cost with fewer digits, for example 0.1 or 1/8.",
            )
        totals = {"cost": str(charge.cost), "spent": str(spent), "analyst_spent": str(own)}
        return self._entry(
            "reserve", analyst=charge.analyst, question=charge.question, text=charge.text, at=at, **totals
        )

    def answer(self, reservation: Reservation, question: str, answer: str, at: str) -> Entry:
        """The answer of a reservation that waits for it."""
        if self.waiting.get(reservation.number) != (question, reservation.head):
            raise LedgerError(
                say(
                    "Entry {number} is not a reservation that waits for an answer to this question.",
                    number=reservation.number,
                ),
                "An answer without its debit would be unpaid, and a second one would be noise to average away.",
                "Reserve first, and record each answer once.",
            )
        said = {"reservation": reservation.number, "question": question, "answer": answer}
        return self._entry("answer", **said, spent=str(self.spent), at=at)

    def cap(self, analyst: str, cap: Fraction, at: str) -> Entry:
        """From here on *analyst* may have spent at most *cap* in all."""
        _check_name(analyst)
        if cap < 0 or cap.denominator.bit_length() > MOST_BITS:
            raise ParameterError(
                "A cap must be zero or a positive number.",
                "It is the most one analyst may spend in all.",
                "Write for example 0.5; zero lets the analyst ask nothing more.",
            )
        return self._entry("cap", analyst=analyst, cap=str(cap), spent=str(self.spent), at=at)

    def raise_budget(self, total: Fraction, reason: str, at: str) -> Entry:
        """A larger total from here on, with the owner's reason."""
        budget = self._budget()
        if total <= budget.total:
            raise ParameterError(
                say("The new total is not above the present one of {total}.", total=short(budget.total)),
                "A budget only ever grows, so that what was promised when an answer was given stays true.",
                "Name a larger total, or give the analysts caps.",
            )
        if not reason.strip():
            raise ParameterError(
                "The budget is raised without a reason.",
                "Whoever reads the ledger later must be able to see why more was allowed.",
                "Give one, for example 'second study approved'.",
            )
        replace(budget, total=total)
        return self._entry("raise", total=str(total), reason=reason, spent=str(self.spent), at=at)


def fold(key: bytes, ledger: str, entries: Iterable[Entry]) -> Account:
    """The account of a whole chain, every hash and rule checked. LedgerError names the first entry that does not hold."""
    account = Account(key, ledger)
    for entry in entries:
        account.take(entry)
    return account


def interrupted() -> LedgerError:
    """The error for a ledger without a first entry."""
    return LedgerError(
        "The ledger has no entry.",
        "Its making was interrupted, so no budget was ever set.",
        "Make it again: velado ledger open.",
    )


def _open(account: Account, entry: Entry, said: Payload) -> None:
    if said["version"] != VERSION:
        raise broken(entry.number, say("it was written by another version of velado"))
    if said["ledger"] != account.ledger:
        raise broken(entry.number, say("it opens another ledger"))
    held = said["budget"]
    delta = None if held["delta"] is None else fraction(held["delta"], entry.number)
    if held["measure"] not in ("epsilon", "rho"):
        raise broken(entry.number, say("its measure is unknown"))
    account.budget = Budget(held["measure"], fraction(held["total"], entry.number), delta)
    account.dataset = _text(said["dataset"])


def _reserve(account: Account, entry: Entry, said: Payload) -> None:
    cost, analyst = fraction(said["cost"], entry.number), _text(said["analyst"])
    spent = account.spent + cost
    own = account.by_analyst.get(analyst, Fraction(0)) + cost
    if spent > account._budget().total:
        raise broken(entry.number, say("it spends more than the budget"))
    if own > account.caps.get(analyst, own):
        raise broken(entry.number, say("it spends more than the analyst's cap"))
    if fraction(said["analyst_spent"], entry.number) != own:
        raise broken(entry.number, say("its running total of the analyst is not the sum of the costs"))
    if fraction(said["spent"], entry.number) != spent:
        raise broken(entry.number, say("its running total is not the sum of the costs"))
    question = _text(said["question"])
    account.spent = spent
    account.by_analyst[analyst] = own
    account.waiting[entry.number] = (question, entry.hash)


def _answer(account: Account, entry: Entry, said: Payload) -> None:
    question = _text(said["question"])
    _text(said["answer"])
    if account.waiting.get(said["reservation"], (None,))[0] != question:
        raise broken(entry.number, say("it answers no reservation that waits"))
    del account.waiting[said["reservation"]]
    # Two people may ask the same at once and both pay; from then on everybody is given the first answer.
    account.answered.setdefault(question, entry.number)
    account.answers += 1


def _cap(account: Account, entry: Entry, said: Payload) -> None:
    account.caps[_text(said["analyst"])] = fraction(said["cap"], entry.number)


def _raise(account: Account, entry: Entry, said: Payload) -> None:
    budget, total = account._budget(), fraction(said["total"], entry.number)
    if total <= budget.total:
        raise broken(entry.number, say("it lowers the budget"))
    account.budget = replace(budget, total=total)


_RULES = {"open": _open, "reserve": _reserve, "answer": _answer, "cap": _cap, "raise": _raise}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _check_name(analyst: str) -> None:
    if not analyst or len(analyst) > LONGEST_NAME:
        raise ParameterError(
            say("An analyst's name must have 1 to {longest_name} characters.", longest_name=LONGEST_NAME),
            "What each analyst spent is kept under that name.",
            "Name who asks, for example --analyst maria.",
        )
