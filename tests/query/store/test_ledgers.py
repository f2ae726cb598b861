"""What every ledger must do, in a file, on a server and in memory."""

import json
import os
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from velado.errors import BudgetExceeded, LedgerError, ParameterError
from velado.query.budget import Budget, Charge, Reservation
from velado.query.store import (
    ChainedLedger,
    create_ledger,
    ledger_exists,
    memory_ledger,
    open_ledger,
    seal_of,
)


def charge(cost: str, question: str = "q", analyst: str = "ana") -> Charge:
    return Charge(analyst, question, "SELECT COUNT(*)", Fraction(cost))


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def ledger(request: pytest.FixtureRequest, state: Path, tmp_path: Path) -> Iterator[ChainedLedger]:
    """A new ledger for one epsilon."""
    if request.param == "memory":
        made = memory_ledger("patients", Budget.epsilon(1))
    elif request.param == "sqlite":
        made = create_ledger(tmp_path / "patients.ledger", "patients", Budget.epsilon(1))
    else:
        url = request.getfixturevalue("postgres_url")
        made = create_ledger(
            f"{url}{'&' if '?' in url else '?'}ledger=u{os.urandom(6).hex()}", "patients", Budget.epsilon(1)
        )
    yield made
    made.close()


def test_the_whole_budget_is_spent_exactly_and_then_nothing(ledger: ChainedLedger) -> None:
    for n in range(3):
        ledger.reserve(charge("1/3", f"q{n}"))
    with pytest.raises(BudgetExceeded, match="0 of 1 is left"):
        ledger.reserve(charge("1/1000000"))
    state = ledger.verify()
    assert state.spent == 1 and state.left == 0 and state.entries == 4
    assert state == ledger.state()


def test_a_refused_charge_leaves_no_trace(ledger: ChainedLedger) -> None:
    before = ledger.state()
    with pytest.raises(BudgetExceeded):
        ledger.reserve(charge("1.1"))
    with pytest.raises(ParameterError, match="below zero"):
        ledger.reserve(charge("-0.5"))
    with pytest.raises(ParameterError, match="name"):
        ledger.reserve(charge("0.1", analyst=""))
    assert ledger.state() == before
    ledger.reserve(charge("1"))


def test_the_stored_answer_of_a_question_is_the_first_one_with_its_receipt(ledger: ChainedLedger) -> None:
    assert ledger.stored("q") is None
    first, second = ledger.reserve(charge("0.1")), ledger.reserve(charge("0.1"))
    assert ledger.stored("q") is None
    answer = json.dumps({"n": 41, "name": "São \u0000 \ud800"})
    receipt = ledger.record(second, "q", answer)
    ledger.record(first, "q", '{"n": 43}')
    assert ledger.stored("q") == (answer, receipt)
    found = ledger.find(receipt)
    assert found is not None and found.kind == "answer"
    assert ledger.find("0" * 64) is None and ledger.find("é") is None
    assert ledger.verify().answers == 2


def test_an_answer_needs_its_own_reservation_and_is_recorded_once(ledger: ChainedLedger) -> None:
    held = ledger.reserve(charge("0.1"))
    for wrong in (Reservation(held.number + 1, held.head), Reservation(held.number, "0" * 64)):
        with pytest.raises(LedgerError, match="not a reservation that waits"):
            ledger.record(wrong, "q", "{}")
    ledger.record(held, "q", "{}")
    with pytest.raises(LedgerError, match="not a reservation that waits"):
        ledger.record(held, "q", "{}")
    ledger.verify()


def test_a_cap_binds_one_analyst_and_may_change_both_ways(ledger: ChainedLedger) -> None:
    ledger.set_cap("ana", Fraction("0.2"))
    ledger.reserve(charge("0.2"))
    with pytest.raises(BudgetExceeded, match=r"0 of this analyst's share of 0\.2"):
        ledger.reserve(charge("0.01"))
    ledger.reserve(charge("0.3", analyst="rui"))
    ledger.set_cap("ana", Fraction("0.25"))
    ledger.reserve(charge("0.05"))
    ledger.set_cap("ana", Fraction(0))
    with pytest.raises(BudgetExceeded, match="0 of this analyst's share"):
        ledger.reserve(charge("0.001"))
    with pytest.raises(ParameterError):
        ledger.set_cap("ana", Fraction(-1))
    state = ledger.verify()
    assert dict(state.caps) == {"ana": 0}
    assert dict(state.by_analyst) == {"ana": Fraction("0.25"), "rui": Fraction("0.3")}


def test_a_budget_is_raised_with_a_reason_and_never_lowered(ledger: ChainedLedger) -> None:
    for total, reason in (("0.5", "less"), ("1", "the same"), ("2", " "), ("1001", "too much")):
        with pytest.raises(ParameterError):
            ledger.raise_budget(Fraction(total), reason)
    assert ledger.state().entries == 1
    ledger.raise_budget(Fraction(2), "second study")
    ledger.reserve(charge("2"))
    assert ledger.verify().budget.total == 2


def test_threads_that_ask_at_once_spend_exactly_the_budget(ledger: ChainedLedger) -> None:
    answered, refused, lost = [], [], []

    def ask(worker: int) -> None:
        for n in range(12):
            question = f"{worker}-{n}"
            try:
                held = ledger.reserve(charge("0.01", question, f"a{worker}"))
            except BudgetExceeded:
                refused.append(question)
                continue
            except BaseException as error:
                lost.append(error)
                raise
            answered.append((question, ledger.record(held, question, f'"{question}"')))

    threads = [threading.Thread(target=ask, args=(worker,)) for worker in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not lost
    assert (len(answered), len(refused)) == (100, 92)
    assert ledger.verify().spent == 1
    for question, receipt in answered:
        assert ledger.stored(question) == (f'"{question}"', receipt)


def test_a_closed_ledger_refuses_everything(ledger: ChainedLedger) -> None:
    ledger.close()
    for ask in (
        ledger.state,
        ledger.last_state,
        ledger.verify,
        lambda: ledger.stored("q"),
        lambda: ledger.reserve(charge("0.1")),
    ):
        with pytest.raises(LedgerError, match="closed"):
            ask()
    ledger.close()


def test_what_was_spent_outlives_the_process_and_its_caps_and_answers_too(where: str) -> None:
    assert not ledger_exists(where)
    ledger = create_ledger(where, "patients", Budget.rho("1/2", "1e-9"))
    ledger.set_cap("ana", Fraction(1, 4))
    held = ledger.reserve(charge("1/8"))
    receipt = ledger.record(held, "q", "{}")
    before = ledger.state()
    ledger.close()
    assert ledger_exists(where)
    again = open_ledger(where)
    assert again.state() == before == again.verify()
    assert again.state().budget == Budget.rho("1/2", "1e-9")
    assert again.stored("q") == ("{}", receipt)
    again.close()


def test_two_who_hold_one_ledger_see_one_another(where: str) -> None:
    one = create_ledger(where, "patients", Budget.epsilon(1))
    other = open_ledger(where)
    held = one.reserve(charge("0.6"))
    with pytest.raises(BudgetExceeded, match=r"0\.4 of 1 is left"):
        other.reserve(charge("0.6"))
    receipt = one.record(held, "q", "{}")
    # Each knows its own entries without looking, and the other's as soon as it looks.
    assert one.last_state() == one.state() and other.last_state().answers == 0
    assert other.stored("q") == ("{}", receipt)
    assert other.last_state() == one.last_state()
    other.set_cap("ana", Fraction("0.6"))
    with pytest.raises(BudgetExceeded, match="share"):
        one.reserve(charge("0.1"))
    assert one.verify() == other.verify()
    one.close()
    other.close()


def test_a_reservation_may_be_answered_after_a_restart(where: str) -> None:
    ledger = create_ledger(where, "patients", Budget.epsilon(1))
    held = ledger.reserve(charge("0.1"))
    ledger.close()
    again = open_ledger(where)
    again.record(held, "q", "{}")
    assert again.verify().answers == 1
    again.close()


def test_a_ledger_is_made_once(where: str, state: Path) -> None:
    create_ledger(where, "patients", Budget.epsilon(1)).close()
    with pytest.raises(LedgerError, match="already"):
        create_ledger(where, "patients", Budget.epsilon(1))
    with pytest.raises(LedgerError, match="already"):
        create_ledger(where, "patients", Budget.epsilon(1), seal=state / "another.seal")
    assert not (state / "another.seal").exists()
    with pytest.raises(ParameterError):
        create_ledger(where + "x", "", Budget.epsilon(1))


def test_a_ledger_without_its_seal_is_refused_with_the_place_it_belongs(where: str) -> None:
    create_ledger(where, "patients", Budget.epsilon(1)).close()
    seal_of(where).rename(seal_of(where).with_suffix(".away"))
    with pytest.raises(LedgerError, match=r"seal of the ledger is missing.*--seal"):
        open_ledger(where)
    with pytest.raises(LedgerError, match="already"):
        create_ledger(where, "patients", Budget.epsilon(1))
    open_ledger(where, seal=seal_of(where).with_suffix(".away")).close()


def test_an_absent_ledger_is_named_and_nothing_is_made(where: str, state: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger at"):
        open_ledger(where)
    assert not ledger_exists(where) and not state.exists()


def test_a_making_that_was_interrupted_is_made_again(where: str) -> None:
    from velado.data.seals import Seal

    Seal.create(seal_of(where)).close()
    with pytest.raises(LedgerError, match="making was interrupted"):
        open_ledger(where)
    ledger = create_ledger(where, "patients", Budget.epsilon(1))
    ledger.reserve(charge("0.1"))
    ledger.close()
    open_ledger(where).close()
