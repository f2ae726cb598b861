"""How much may be learnt in all, in exact rationals: epsilon of pure differential privacy, or rho of zCDP.

Costs add: k answers of cost c_i cost sum c_i, under either measure (Dwork et al. 2006; Bun and Steinke 2016). A budget
of (epsilon, delta) is held as the largest rho whose conversion rho + 2 sqrt(rho ln(1/delta)) stays within epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

from velado.errors import ParameterError

Measure = Literal["epsilon", "rho"]

# Smaller ones are no floats any more, and nobody could tell them from 0.
LEAST_DELTA = Fraction(1, 10**300)
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**40), Fraction(10_000)
MOST_CHARACTERS = 120
MOST_EXPONENT = 40


@dataclass(frozen=True)
class Budget:
    """A total under one measure. *delta* is only told with a rho, to say what (epsilon, delta) it implies."""

    measure: Measure
    total: Fraction
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        if not 0 < self.total <= 1000:
            raise ParameterError(
                f"A budget must be above 0 and at most 1000 ({self.measure}).",
                "Nothing can be answered for nothing, and beyond that nothing is protected.",
                "Choose for example a total epsilon of 1.",
            )
        if self.delta is not None and not LEAST_DELTA <= self.delta < 1:
            raise ParameterError(
                "Delta must be at least 1e-300 and below 1.",
                "It is the chance that the promise may fail.",
                "Choose it far below one over the number of people, for example 1e-9.",
            )

    @classmethod
    def epsilon(cls, total: Fraction | int | float | str) -> Budget:
        """Pure differential privacy with this epsilon in all."""
        return cls("epsilon", exact(total))

    @classmethod
    def rho(cls, total: Fraction | int | float | str, delta: Fraction | float | str | None = None) -> Budget:
        """Zero-concentrated differential privacy with this rho in all."""
        return cls("rho", exact(total), None if delta is None else exact(delta))

    @classmethod
    def approximate(cls, epsilon: Fraction | float | str, delta: Fraction | float | str) -> Budget:
        """The largest zCDP budget that implies (epsilon, delta), rounded down by one part in 2^43.

        With L = ln(1/delta): rho = (sqrt(L + e) - sqrt(L))^2 = (e / (sqrt(L + e) + sqrt(L)))^2, whose second form loses
        no digits. Its floats are off by less than one part in 2^48, and `epsilon_of` adds one in 2^45, so what the
        rounded rho implies is never above epsilon.
        """
        e, d = exact(epsilon), exact(delta)
        if not LEAST_DELTA <= d < 1 or not LEAST_EPSILON <= e <= MOST_EPSILON:
            raise ParameterError(
                "Epsilon must lie between 1e-40 and 10,000, and delta be at least 1e-300 and below 1.",
                "Together they are the promise the budget stands for.",
                "Choose for example epsilon 1 and delta 1e-9.",
            )
        log = _log_of_inverse(d)
        rho = (float(e) / (math.sqrt(log + float(e)) + math.sqrt(log))) ** 2
        return cls("rho", Fraction(rho * (1 - 2**-43)), d)

    def to_dict(self) -> dict[str, Any]:
        """The measure, the total as an exact fraction and as a float, and what it implies."""
        out: dict[str, Any] = {"measure": self.measure, "total": str(self.total), "about": float(self.total)}
        if self.delta is not None:
            out["implies"] = {"epsilon": epsilon_of(self.total, self.delta), "delta": float(self.delta)}
        return out


def exact(value: Fraction | int | float | str) -> Fraction:
    """A number as the fraction its decimal text names: 0.1 is one tenth, not the float beside it.

    A text has at most 120 characters and an exponent within 40: a billion digits would be computed before they are judged.
    """
    if isinstance(value, Fraction):
        return value
    try:
        text = str(value).strip()
        _, mark, power = text.lower().partition("e")
        if len(text) > MOST_CHARACTERS or (mark and abs(int(power)) > MOST_EXPONENT):
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            "A budget or cost is not a finite number of ordinary size.",
            f"It is added up exactly, so it must be a decimal number or a fraction, with an exponent within {MOST_EXPONENT}.",
            "Write for example 0.5 or 1/3.",
        ) from None


def epsilon_of(rho: Fraction, delta: Fraction) -> float:
    """The epsilon that rho-zCDP implies at delta: rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016, prop. 1.3), rounded up."""
    value = float(rho) + 2 * math.sqrt(float(rho)) * math.sqrt(_log_of_inverse(delta))
    return value * (1 + 2**-45)


def _log_of_inverse(delta: Fraction) -> float:
    """ln(1/delta) to a few last bits, also where delta is so near 1 that its float is not."""
    return -math.log1p(-float(1 - delta)) if delta > Fraction(1, 2) else -math.log(float(delta))


# What the ledger knows, and what every ledger must do; where it is kept is `velado.query.store`'s business.
#
# Order of an answer: reserve (durable) -> compute and draw -> record the answer (durable) -> reply. A crash between the
# steps loses budget, never privacy: a reservation is never given back.


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
