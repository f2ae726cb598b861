"""How much may be learnt in all, in exact rationals: epsilon of pure differential privacy, or rho of zCDP.

Costs add: k answers of cost c_i cost sum c_i, under either measure (Dwork et al. 2006; Bun and Steinke 2016). A budget
of (epsilon, delta) is held as the largest rho whose conversion rho + 2 sqrt(rho ln(1/delta)) stays within epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

from velado.errors import ParameterError, QueryRefused
from velado.settings import Setting, Where, comma_hint, fraction_of, read_value
from velado.text import Sentence, say

Measure = Literal["epsilon", "rho"]
Amount = Fraction | int | float | str
Facts: TypeAlias = dict[str, Any]
"""A document as JSON has it; made here from typed values, and read by whoever writes it down."""

# Smaller ones are no floats any more, and nobody could tell them from 0.
LEAST_DELTA = Fraction(1, 10**300)
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**40), Fraction(10_000)
MOST_TOTAL = 1000

Spend = Annotated[
    Fraction,
    Setting(
        gt=0,
        le=MOST_TOTAL,
        takes=say("a number above 0, at most 1000, or a text such as '1/3'"),
        why=say("Nothing can be answered for nothing, and beyond that nothing is protected."),
        example="0.5",
    ),
]
"""An epsilon or a rho that somebody grants or spends, whichever door it comes through; added up exactly."""

CapAmount = Annotated[
    Fraction,
    Setting(
        ge=0,
        takes=say("0, a number above 0, or a text such as '1/3'"),
        why=say("It is the most one analyst may spend in all; 0 lets the analyst ask nothing more."),
        example="0.5",
    ),
]
"""The most that one analyst may spend in all."""

Delta = Annotated[
    Fraction,
    Setting(
        gt=0,
        lt=1,
        takes=say("a number above 0 and below 1, or a text such as '1/1000000'"),
        why=say("It is the chance that the promise may fail."),
        example="1e-9",
    ),
]


def spend_of(value: object, name: str, where: Where) -> Fraction:
    """*value* as an exact amount to spend, or the one error that tells why it is none, under its *name* there.

    >>> spend_of("1/3", "spend", Where("flag"))
    Fraction(1, 3)
    >>> spend_of("0,5", "epsilon", Where("flag"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ParameterError: --epsilon cannot be '0,5'. It takes a number above 0, ... Write it with a point: 0.5.
    """
    found: Fraction = read_value(Spend, value, name, where)
    return found


_BUDGET = Where("python", say("the budget"))


@dataclass(frozen=True)
class Budget:
    """A total under one measure. *delta* is only told with a rho, to say what (epsilon, delta) it implies.

    >>> Budget.epsilon("0.5").total, Budget.approximate(1, "1e-9").measure
    (Fraction(1, 2), 'rho')
    """

    measure: Measure
    total: Fraction
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        if not 0 < self.total <= MOST_TOTAL:  # asked first: a ledger is opened without pydantic
            spend_of(self.total, self.measure, _BUDGET)
        if self.delta is not None and not LEAST_DELTA <= self.delta < 1:
            raise ParameterError(
                "Delta must be at least 1e-300 and below 1.",
                "It is the chance that the promise may fail.",
                "Choose it far below one over the number of people, for example 1e-9.",
            )

    @classmethod
    def epsilon(cls, total: Amount) -> Budget:
        """Pure differential privacy with this epsilon in all."""
        return cls("epsilon", spend_of(total, "epsilon", _BUDGET))

    @classmethod
    def rho(cls, total: Amount, delta: Amount | None = None) -> Budget:
        """Zero-concentrated differential privacy with this rho in all."""
        return cls("rho", spend_of(total, "rho", _BUDGET), None if delta is None else exact(delta))

    @classmethod
    def approximate(cls, epsilon: Amount, delta: Amount) -> Budget:
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

    def to_dict(self) -> Facts:
        """The measure, the total as an exact fraction and as a float, and what it implies."""
        implies = None if self.delta is None else implied(self.total, self.delta)
        out = {"measure": self.measure, "total": str(self.total), "about": float(self.total)}
        return out if implies is None else {**out, "implies": implies}


def implied(rho: Fraction, delta: Fraction) -> dict[str, float]:
    """The (epsilon, delta) that a rho stands for.

    >>> implied(Fraction(1, 2), Fraction(1, 10**9))["delta"]
    1e-09
    """
    return {"epsilon": epsilon_of(rho, delta), "delta": float(delta)}


def plain(value: Any) -> Any:
    """A value as JSON has it: fractions and dates by their exact text, dataclasses by the fields that are not None.

    >>> plain({"cost": Fraction(1, 3), "budget": (Fraction(1), 2.5)})
    {'cost': '1/3', 'budget': ['1', 2.5]}
    """
    if is_dataclass(value):
        told = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: plain(item) for name, item in told.items() if item is not None}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def exact(value: Amount) -> Fraction:
    """A number as the fraction its decimal text names: 0.1 is one tenth, not the float beside it.

    >>> exact(0.1), exact("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, Fraction):
        return value
    try:
        return fraction_of(value)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            "A budget or cost is not a finite number of ordinary size.",
            say(
                "It is added up exactly, so it must be a decimal number or a fraction, with an exponent "
                "within {most_exponent}.",
                most_exponent=40,
            ),
            comma_hint(value) or "Write for example 0.5 or 1/3.",
        ) from None


def measure_word(measure: Measure) -> Sentence:
    """What a person calls the measure.

    >>> measure_word("rho")
    'rho'
    """
    return say("epsilon") if measure == "epsilon" else say("rho")


LEAST = Fraction(1, 1_000_000)
"""Amounts below it are not told apart in what people read."""


def tiny(amount: Amount) -> bool:
    """Whether an amount is above 0 but rounds to it.

    >>> tiny("1e-9"), tiny(0)
    (True, False)
    """
    return 0 < Fraction(amount) < LEAST


def rounded(amount: Amount) -> str:
    """An amount in at most six decimals, never as a fraction or with an exponent; the exact one stands in the JSON.

    >>> rounded("1/3"), rounded(Fraction(1, 2))
    ('0.333333', '0.5')
    """
    text = f"{float(Fraction(amount)):.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def short(amount: Amount) -> Sentence:
    """An exact amount as a person reads it: its decimals where they end soon, else about as many as matter.

    >>> short("1/2"), short("1/3"), short("1e-9")
    ('0.5', 'about 0.333333', 'less than 0.000001')
    """
    if tiny(amount):
        return say("less than 0.000001")
    number = Decimal(rounded(amount))
    if Fraction(number) == Fraction(amount):
        return Sentence("{amount}", {"amount": number})
    return say("about {amount}", amount=number)


def epsilon_of(rho: Fraction, delta: Fraction) -> float:
    """The epsilon that rho-zCDP implies at delta: rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016, prop. 1.3), rounded up.

    >>> round(epsilon_of(Fraction(1, 10), Fraction(1, 10**9)), 3)
    2.979
    """
    value = float(rho) + 2 * math.sqrt(float(rho)) * math.sqrt(_log_of_inverse(delta))
    return value * (1 + 2**-45)


def _log_of_inverse(delta: Fraction) -> float:
    """ln(1/delta) to a few last bits, also where delta is so near 1 that its float is not."""
    return -math.log1p(-float(1 - delta)) if delta > Fraction(1, 2) else -math.log(float(delta))


def how_many(left: Fraction, charge: Fraction) -> int:
    """How many questions of that cost what is left still pays, costs being added exactly.

    >>> how_many(Fraction(1), Fraction(3, 10))
    3
    """
    return max(0, math.floor(left / charge))


def roomiest(budgets: Sequence[Budget], price: Callable[[Budget], Fraction]) -> Budget:
    """The one of several ways to hold the same promise that pays most questions such as the one *price* tells of; the first of equals.

    Pure epsilon keeps (epsilon, delta) too, for every delta, so an owner who declares both loses nothing by either way. For
    k counts of one half-width pure epsilon costs k times as much, the (epsilon, delta) behind rho about sqrt(k) times.
    A way in which the question may not be asked at all is passed over; where that is each of them, the first one's error is raised.

    >>> both = (Budget.epsilon(2), Budget.approximate(2, "1e-9"))
    >>> few, many = {"epsilon": "0.1", "rho": "0.01"}, {"epsilon": "0.01", "rho": "0.0001"}
    >>> [roomiest(both, lambda held: Fraction(costs[held.measure])).measure for costs in (few, many)]
    ['epsilon', 'rho']
    """
    room: list[tuple[Fraction, Budget]] = []
    refused: list[QueryRefused] = []
    for budget in budgets:
        try:
            room.append((budget.total / price(budget), budget))
        except QueryRefused as error:
            refused.append(error)
    if not room:
        raise refused[0]
    return max(room, key=lambda one: one[0])[1]


# What a ledger is asked and says of itself; where it is kept is `velado.query.store`'s business.
#
# Order of an answer: reserve (durable) -> compute and draw -> record the answer (durable) -> reply. A crash between the
# steps loses budget, never privacy: a reservation is never given back.


@dataclass(frozen=True)
class Charge:
    """One question to be paid: who asks, the question's fingerprint and canonical text, and its exact cost.

    >>> Charge("ana", "4f2a", "SELECT COUNT(*) FROM stays", Fraction(1, 10)).cost
    Fraction(1, 10)
    """

    analyst: str
    question: str
    text: str
    cost: Fraction


@dataclass(frozen=True)
class Reservation:
    """A paid question that waits for its answer; *number* is its place in the chain, *head* the chain's hash there.

    >>> Reservation(2, "9c01").number
    2
    """

    number: int
    head: str


@dataclass(frozen=True, kw_only=True)
class LedgerState:
    """What a ledger says of itself: budget, spent in all and by analyst, caps, entries and the chain's head.

    >>> state = LedgerState(dataset="stays", budget=Budget.epsilon(1), spent=Fraction(1, 4), by_analyst={},
    ...     caps={}, entries=2, answers=1, head="9c01")
    >>> state.left
    Fraction(3, 4)
    """

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

    def left_for(self, analyst: str) -> Fraction:
        """What this analyst can still spend: the cap, where there is one, or what is left for all."""
        own = self.by_analyst.get(analyst, Fraction(0))
        return min(self.left, self.caps.get(analyst, own + self.left) - own)

    def to_dict(self) -> Facts:
        """Exact fractions as text, with floats beside the totals."""
        about = {"spent": float(self.spent), "left": float(self.left)}
        out: Facts = {**plain(self), "budget": self.budget.to_dict(), "left": str(self.left), "about": about}
        return out
