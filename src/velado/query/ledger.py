"""What the ledger knows, and what every ledger must do; where it is kept is `velado.query.store`'s business.

Order of an answer: reserve (durable) -> compute and draw -> record the answer (durable) -> reply. A crash between the
steps loses budget, never privacy: a reservation is never given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from velado.query.budget import Budget


@dataclass(frozen=True)
class Charge:
    """One question to be paid: who asks, the question's fingerprint and canonical text, and its exact cost."""

    analyst: str
    question: str
    text: str
    cost: Fraction


@dataclass(frozen=True)
class Reservation:
    """A paid question that waits for its answer; *number* is its place in the chain, *head* the chain's hash there."""

    number: int
    head: str


@dataclass(frozen=True)
class State:
    """What a ledger says of itself: budget, spent in all and by analyst, caps, entries and the chain's head."""

    dataset: str
    budget: Budget
    spent: Fraction
    by_analyst: Mapping[str, Fraction]
    caps: Mapping[str, Fraction]
    entries: int
    answers: int
    head: str

    @property
    def left(self) -> Fraction:
        """What can still be spent by all analysts together."""
        return self.budget.total - self.spent

    def to_dict(self) -> dict[str, Any]:
        """Exact fractions as text, with floats beside the totals."""
        return {
            "dataset": self.dataset,
            "budget": self.budget.to_dict(),
            "spent": str(self.spent),
            "left": str(self.left),
            "about": {"spent": float(self.spent), "left": float(self.left)},
            "by_analyst": {name: str(cost) for name, cost in self.by_analyst.items()},
            "caps": {name: str(cap) for name, cap in self.caps.items()},
            "entries": self.entries,
            "answers": self.answers,
            "head": self.head,
        }


class Ledger(Protocol):
    """A durable, append-only, hash-chained account of one data set's budget, safe among threads and processes."""

    @property
    def lasting(self) -> bool:
        """Whether the account outlives this process; an answer's promise says which."""

    def stored(self, question: str) -> tuple[str, str] | None:
        """The answer recorded for this question as (JSON text, head of its entry), or None."""

    def reserve(self, charge: Charge) -> Reservation:
        """Debit and make durable, or raise BudgetExceeded (total or the analyst's cap) and debit nothing."""

    def record(self, reservation: Reservation, question: str, answer: str) -> str:
        """Append the answer, durably, and return the chain's head."""

    def state(self) -> State:
        """The account as it stands."""

    def last_state(self) -> State:
        """The account at least as new as whatever was appended through this object; without looking for what others added."""

    def verify(self) -> State:
        """Recompute the whole chain and the totals; LedgerError names the first entry that does not hold."""

    def set_cap(self, analyst: str, cap: Fraction) -> None:
        """The most one analyst may spend from now on, as an entry of the chain."""

    def raise_budget(self, total: Fraction, reason: str) -> None:
        """A larger total, signed by the owner's reason, as an entry of the chain; a smaller one is refused."""

    def close(self) -> None:
        """Give back files and connections."""
