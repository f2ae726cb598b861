"""Any order of asking, answering, capping, raising and restarting agrees with a few lines of plain Python."""

import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from velado.errors import BudgetExceeded, LedgerError, ParameterError
from velado.query.budget import Budget, Charge, Reservation
from velado.query.store import create_ledger, open_ledger

ANALYSTS = st.sampled_from(["ana", "rui", "zé"])
AMOUNTS = st.fractions(min_value=0, max_value=1, max_denominator=30)
QUESTIONS = st.sampled_from([f"q{n}" for n in range(6)])


class AccountMachine(RuleBasedStateMachine):
    """The ledger in a file beside a model of dictionaries and fractions."""

    held = Bundle("held")

    @initialize(total=st.fractions(min_value=Fraction(1, 2), max_value=3, max_denominator=30))
    def start(self, total: Fraction) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.where = Path(self.folder.name) / "a.ledger"
        self.seal = Path(self.folder.name) / "a.seal"
        self.ledger = create_ledger(self.where, "patients", Budget.epsilon(total), self.seal)
        self.total, self.entries, self.answers = total, 1, 0
        self.spent: dict[str, Fraction] = {}
        self.caps: dict[str, Fraction] = {}
        self.stored: dict[str, str] = {}

    @rule(target=held, analyst=ANALYSTS, question=QUESTIONS, cost=AMOUNTS)
    def reserve(self, analyst: str, question: str, cost: Fraction) -> tuple[Reservation | None, str]:
        own = self.spent.get(analyst, Fraction(0)) + cost
        allowed = sum(self.spent.values(), cost) <= self.total and own <= self.caps.get(analyst, own)
        charge = Charge(analyst, question, "", cost)
        if not allowed:
            with pytest.raises(BudgetExceeded):
                self.ledger.reserve(charge)
            return None, question
        self.spent[analyst] = own
        self.entries += 1
        reservation = self.ledger.reserve(charge)
        assert reservation.number == self.entries
        return reservation, question

    @rule(pair=consumes(held), text=st.text(max_size=5))
    def record(self, pair: tuple[Reservation | None, str], text: str) -> None:
        reservation, question = pair
        if reservation is None:
            return
        self.ledger.record(reservation, question, text)
        self.entries += 1
        self.answers += 1
        self.stored.setdefault(question, text)
        with pytest.raises(LedgerError):
            self.ledger.record(reservation, question, text)

    @rule(analyst=ANALYSTS, cap=AMOUNTS)
    def cap(self, analyst: str, cap: Fraction) -> None:
        self.ledger.set_cap(analyst, cap)
        self.caps[analyst] = cap
        self.entries += 1

    @rule(total=st.fractions(min_value=0, max_value=5, max_denominator=30))
    def raise_budget(self, total: Fraction) -> None:
        if total > self.total:
            self.ledger.raise_budget(total, "why not")
            self.total = total
            self.entries += 1
        else:
            with pytest.raises(ParameterError):
                self.ledger.raise_budget(total, "why not")

    @rule()
    def restart(self) -> None:
        self.ledger.close()
        self.ledger = open_ledger(self.where, self.seal)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "ledger"):
            return
        state = self.ledger.state()
        assert dict(state.by_analyst) == self.spent
        assert dict(state.caps) == self.caps
        assert state.spent == sum(self.spent.values()) <= state.budget.total == self.total
        assert (state.entries, state.answers) == (self.entries, self.answers)
        for question in (f"q{n}" for n in range(6)):
            found = self.ledger.stored(question)
            assert (None if found is None else found[0]) == self.stored.get(question)

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            assert self.ledger.verify() == self.ledger.state()
            self.ledger.close()
            self.folder.cleanup()


TestAccount = AccountMachine.TestCase
TestAccount.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
