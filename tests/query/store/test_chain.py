"""The chain and the account alone: no file, no server."""

import hashlib
import hmac
import json
from dataclasses import replace
from fractions import Fraction

import pytest

from velado.errors import BudgetExceeded, LedgerError, ParameterError
from velado.query.budget import Budget, Charge, Reservation
from velado.query.store._chain import START, Account, Entry, canonical, fold, make_entry

KEY = bytes(range(32))
NAME = "ab" * 16


def charge(cost: str, analyst: str = "ana", question: str = "q") -> Charge:
    return Charge(analyst, question, "SELECT COUNT(*)", Fraction(cost))


def chain() -> list[Entry]:
    """open, cap, two reservations with one answer, a raise."""
    account = Account(KEY, NAME)
    entries = [account.open("patients", Budget.epsilon("1/3"), "t"), account.cap("ana", Fraction(1, 4), "t")]
    entries.append(account.reserve(charge("1/7"), "t"))
    entries.append(account.reserve(charge("1/9", "rui", "r"), "t"))
    entries.append(account.answer(Reservation(3, entries[2].hash), "q", '{"n": 4}', "t"))
    entries.append(account.raise_budget(Fraction(2), "second study", "t"))
    return entries


def signed(entries: list[Entry], at: int, **changes: object) -> list[Entry]:
    """The chain with entry *at* saying something else, signed again with the right key from there on."""
    out, previous = [], START
    for entry in entries:
        said = entry.fields()
        if entry.number == at:
            said |= changes
        made = make_entry(KEY, entry.number, previous, entry.kind, said)  # type: ignore[arg-type]
        out.append(made)
        previous = made.hash
    return out


def test_a_hash_is_the_keyed_hash_of_the_entry_and_the_one_before() -> None:
    first, second = chain()[:2]
    message = first.hash + json.dumps([2, "cap", second.payload], separators=(",", ":"))
    assert second.hash == hmac.new(KEY, message.encode(), hashlib.sha256).hexdigest()
    assert second.payload == canonical(json.loads(second.payload))
    assert '"cap":"1/4"' in second.payload


def test_the_sum_is_exact_and_a_chain_folds_to_what_was_spent() -> None:
    state = fold(KEY, NAME, chain()).state()
    assert state.spent == Fraction(1, 7) + Fraction(1, 9)
    assert dict(state.by_analyst) == {"ana": Fraction(1, 7), "rui": Fraction(1, 9)}
    assert (state.budget.total, state.entries, state.answers) == (2, 6, 1)


def test_ten_tenths_fit_a_budget_of_one_and_no_more() -> None:
    account = Account(KEY, NAME)
    account.open("patients", Budget.epsilon(1), "t")
    for _ in range(10):
        account.reserve(charge("0.1"), "t")
    with pytest.raises(BudgetExceeded, match="0 of 1 is left"):
        account.reserve(charge(f"1/{10**30}"), "t")
    assert account.reserve(charge("0"), "t").number == 12
    assert account.spent == 1


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("part", ["number", "kind", "payload", "previous", "hash"])
def test_any_changed_character_of_any_part_of_any_entry_is_named(at: int, part: str) -> None:
    entries = chain()
    value = getattr(entries[at - 1], part)
    if part == "number":
        changes: list[object] = [value + 1, value - 1, -value]
    else:
        spots = range(len(value))
        changes = [value[:i] + chr(ord(value[i]) ^ 1) + value[i + 1 :] for i in spots] + [
            value + " ",
            value[:-1],
        ]
    for change in changes:
        edited = list(entries)
        edited[at - 1] = replace(entries[at - 1], **{part: change})
        with pytest.raises(LedgerError, match=f"Entry {at} of the ledger"):
            fold(KEY, NAME, edited)


@pytest.mark.parametrize("at", range(1, 6))
def test_a_removed_a_repeated_and_a_moved_entry_are_named(at: int) -> None:
    entries = chain()
    for edited in (
        entries[: at - 1] + entries[at:],
        entries[:at] + entries[at - 1 :],
        [*entries[: at - 1], entries[at], entries[at - 1], *entries[at + 1 :]],
    ):
        with pytest.raises(LedgerError, match=f"Entry {at}|Entry {at + 1}"):
            fold(KEY, NAME, edited)


def test_a_chain_made_again_with_another_key_does_not_hold() -> None:
    forged, previous = [], START
    for entry in chain():
        made = make_entry(b"x" * 32, entry.number, previous, entry.kind, entry.fields())  # type: ignore[arg-type]
        forged.append(made)
        previous = made.hash
    with pytest.raises(LedgerError, match=r"Entry 1 .* not the one that was signed"):
        fold(KEY, NAME, forged)


@pytest.mark.parametrize(
    ("at", "changes", "reason"),
    [
        (1, {"ledger": "cd" * 16}, "opens another ledger"),
        (1, {"version": 2}, "another version"),
        (1, {"budget": {"measure": "zeta", "total": "1", "delta": None}}, "measure"),
        (1, {"budget": {"measure": "epsilon", "total": "0", "delta": None}}, "missing or has the wrong type"),
        (3, {"cost": "1/8"}, "running total"),
        (3, {"spent": "0"}, "running total"),
        (3, {"analyst_spent": "0"}, "running total of the analyst"),
        (3, {"cost": "2/14"}, "lowest terms"),
        (3, {"cost": "-1/7"}, "not a fraction"),
        (3, {"cost": "1/0"}, "not a fraction"),
        (3, {"cost": 1}, "not a fraction"),
        (3, {"cost": "2", "spent": "2", "analyst_spent": "2"}, "more than the budget"),
        (3, {"cost": "2/7", "spent": "2/7", "analyst_spent": "2/7"}, "more than the analyst's cap"),
        (3, {"analyst": None}, "missing or has the wrong type"),
        (5, {"reservation": 2}, "answers no reservation"),
        (5, {"reservation": 4}, "answers no reservation"),
        (5, {"question": "other"}, "answers no reservation"),
        (5, {"spent": "0"}, "running total"),
        (6, {"total": "1/3"}, "lowers the budget"),
        (6, {"total": "1/4"}, "lowers the budget"),
    ],
)
def test_even_the_key_holder_cannot_break_the_rules(at: int, changes: dict[str, object], reason: str) -> None:
    with pytest.raises(LedgerError, match=f"Entry {at} .*{reason}"):
        fold(KEY, NAME, signed(chain(), at, **changes))


def test_an_answer_is_recorded_once_and_only_for_its_own_reservation() -> None:
    account = Account(KEY, NAME)
    account.open("patients", Budget.epsilon(1), "t")
    entry = account.reserve(charge("0.1"), "t")
    for number, head, question in ((1, entry.hash, "q"), (2, START, "q"), (2, entry.hash, "other")):
        with pytest.raises(LedgerError, match="not a reservation that waits"):
            account.answer(Reservation(number, head), question, "{}", "t")
    account.answer(Reservation(2, entry.hash), "q", "{}", "t")
    with pytest.raises(LedgerError, match="not a reservation that waits"):
        account.answer(Reservation(2, entry.hash), "q", "{}", "t")


def test_a_sum_that_would_grow_without_end_is_refused_and_costs_nothing() -> None:
    account = Account(KEY, NAME)
    account.open("patients", Budget.epsilon(1), "t")
    account.reserve(charge("1/8"), "t")
    with pytest.raises(ParameterError, match="added up exactly"):
        account.reserve(charge(f"1/{3**6000}"), "t")
    assert account.spent == Fraction(1, 8)
    account.reserve(charge("1/8"), "t")
