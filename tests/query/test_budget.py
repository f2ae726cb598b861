"""Budgets are exact, are never rounded in the spender's favour, and say so when a number is out of reach."""

import time
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.errors import ParameterError
from velado.query.budget import Budget, epsilon_of, exact


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def largest_rho(epsilon: Fraction, delta: Fraction) -> Decimal:
    """(sqrt(L + e) - sqrt(L))^2 with so many digits that the difference may lose most of them."""
    log = -decimal(delta).ln()
    return ((log + decimal(epsilon)).sqrt() - log.sqrt()) ** 2


PAIRS = [
    ("1", "1e-9"),
    ("1e-8", "1e-9"),
    ("1e-10", "0.5"),
    ("1e-15", "0.5"),
    ("1e-40", "1e-40"),
    ("0.1", "1e-6"),
    ("50", "0.999"),
    ("1000", "0.99999999999999999999"),
    ("1e-3", "0.9999999999999999999999999"),
]


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_an_approximate_budget_is_the_largest_rho_rounded_down(epsilon: str, delta: str) -> None:
    began = time.process_time()
    budget = Budget.approximate(epsilon, delta)
    assert time.process_time() - began < 1
    with localcontext() as context:
        context.prec = 250
        best = largest_rho(Fraction(epsilon), Fraction(delta))
        assert best * (1 - Decimal(2) ** -42) <= decimal(budget.total) <= best
    assert epsilon_of(budget.total, Fraction(delta)) <= float(Fraction(epsilon))


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        ("1", "1e-9", "0.01178116039520141946"),
        ("1", "1e-6", "0.01746890476912337782"),
        ("1e-8", "1e-9", "1.20637356055129875434e-18"),
        ("1e-15", "0.5", "3.60673760222240591668e-31"),
    ],
)
def test_known_budgets(epsilon: str, delta: str, rho: str) -> None:
    # From Python's decimal module with 60 digits, both forms of the formula agreeing in these; cut, not rounded.
    total = Budget.approximate(epsilon, delta).total
    assert Fraction(rho) * (1 - Fraction(1, 2**42)) <= total <= Fraction(rho)


@settings(max_examples=200)
@given(
    st.fractions(Fraction(1, 10**12), 100),
    st.one_of(
        st.fractions(Fraction(1, 10**30), Fraction(1, 2)),
        st.integers(1, 38).map(lambda n: 1 - Fraction(1, 10**n)),
    ),
)
def test_no_approximate_budget_implies_more_than_it_says(epsilon: Fraction, delta: Fraction) -> None:
    budget = Budget.approximate(epsilon, delta)
    with localcontext() as context:
        context.prec = 120
        rho, log = decimal(budget.total), -decimal(delta).ln()
        implied = rho + 2 * (rho * log).sqrt()
        assert implied <= decimal(epsilon)
        # What is told to people is never less than the truth.
        assert Decimal(epsilon_of(budget.total, delta)) >= implied
    assert getcontext().prec == 28


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget.approximate(1, "1e-320"),
        lambda: Budget.approximate(1, Fraction(1, 10**301)),
        lambda: Budget.approximate(Fraction(1, 10**41), "0.5"),
        lambda: Budget.approximate(Fraction(10**400), "0.5"),
        lambda: Budget.approximate(1, 1),
        lambda: Budget.approximate(1, 0),
        lambda: Budget.rho(1, Fraction(1, 10**400)),
        lambda: Budget.rho(1, 1),
        lambda: Budget.epsilon(0),
        lambda: Budget.epsilon(1001),
        lambda: Budget.epsilon("nan"),
    ],
)
def test_a_budget_out_of_reach_is_named_so(make) -> None:
    with pytest.raises(ParameterError):
        make()


def test_the_smallest_delta_still_has_a_meaning() -> None:
    budget = Budget.rho(1, Fraction(1, 10**300))
    assert budget.to_dict()["implies"]["epsilon"] == pytest.approx(1 + 2 * (300 * 2.302585092994046) ** 0.5)


@pytest.mark.parametrize(
    "text",
    [
        "1e-99999999",
        "1e999999999",
        "1E+4_1",
        "1e41",
        "-1e-41",
        "1e",
        "True",
        "9" * 121,
        "1/0",
        "inf",
        "",
        1e300,
    ],
)
def test_numbers_of_absurd_size_are_refused_at_once(text) -> None:
    began = time.process_time()
    with pytest.raises(ParameterError):
        exact(text)
    assert time.process_time() - began < 0.1


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (" 2.5e-1 ", Fraction(1, 4)),
        ("1e-40", Fraction(1, 10**40)),
        (3, Fraction(3)),
        (Fraction(1, 10**500), Fraction(1, 10**500)),
    ],
)
def test_numbers_are_read_as_their_decimals_say(value, meant: Fraction) -> None:
    assert exact(value) == meant
