"""Many processes on one ledger, and processes that die: exactly the budget is spent, and nothing is forgotten."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from velado.errors import BudgetExceeded, LedgerError
from velado.query.budget import Budget, Charge
from velado.query.store import ChainedLedger, create_ledger, memory_ledger, open_ledger

LAB = Path(__file__).with_name("lab.py")


def lab(*arguments: object) -> subprocess.Popen[str]:
    """The lab runs in a process without threads, so that it may fork."""
    return subprocess.Popen(
        [sys.executable, str(LAB), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> dict[str, object]:
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return json.loads(out)


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "asks", "budget"), [(4, 20, 37)])
def test_processes_on_a_budget_for_b_get_exactly_b_answers(
    where: str, processes: int, asks: int, budget: int
) -> None:
    create_ledger(where, "patients", Budget.epsilon(Fraction(budget, 7))).close()
    running = [lab("ask", where, f"p{n}", asks, "1/7") for n in range(processes)]
    results = [said(process) for process in running]
    assert sum(result["answered"] for result in results) == budget
    assert sum(result["refused"] for result in results) == processes * asks - budget
    ledger = open_ledger(where)
    state = ledger.verify()
    assert (state.spent, state.answers, state.left) == (Fraction(budget, 7), budget, 0)
    ledger.close()


def test_nobody_writes_while_another_one_writes(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One stops in the middle of a debit, and another, however long it has, does not finish its own before."""
    create_ledger(where, "patients", Budget.epsilon(1)).close()
    first, second = open_ledger(where), open_ledger(where)
    begun, go_on, finished = threading.Event(), threading.Event(), []
    store = first._here()[0]
    writing = store.writing

    @contextmanager
    def slowly() -> Iterator[None]:
        with writing():
            begun.set()
            assert go_on.wait(60)
            yield

    def reserve(ledger: ChainedLedger, name: str) -> None:
        ledger.reserve(Charge(name, name, "", Fraction(1, 4)))
        finished.append(name)

    monkeypatch.setattr(store, "writing", slowly)
    one = threading.Thread(target=reserve, args=(first, "ana"))
    one.start()
    assert begun.wait(60)
    two = threading.Thread(target=reserve, args=(second, "rui"))
    two.start()
    two.join(0.5)
    waited = two.is_alive()
    go_on.set()
    one.join(60)
    two.join(60)
    assert waited and finished == ["ana", "rui"]
    assert second.verify().spent == Fraction(1, 2)
    first.close()
    second.close()


@pytest.mark.slow
def test_sixteen_processes_get_exactly_their_budget(where: str) -> None:
    test_processes_on_a_budget_for_b_get_exactly_b_answers(where, 16, 60, 701)


@pytest.mark.slow
def test_what_killed_askers_were_told_was_paid_for(where: str) -> None:
    survives(where, 30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_what_hundreds_of_killed_askers_were_told_was_paid_for(where: str, seed: int) -> None:
    # Ten ways to die, each at the first, second or third time it could: every one comes about five times.
    survives(where, 150, seed)


def survives(where: str, rounds: int, seed: int = 0) -> None:
    create_ledger(where, "patients", Budget.epsilon(1000)).close()
    result = said(lab("crash", where, rounds, "1/100", "debit-first", seed))
    assert result["kills"] == rounds
    assert result["answers"] > rounds
    assert Fraction(result["spent"]) >= result["answers"] * Fraction(1, 100)
    # Only what was cut off between debit and reply may be lost: at most one answer a killed asker.
    assert Fraction(result["spent"]) <= (result["answers"] + rounds) * Fraction(1, 100)
    assert result["recorded"] >= result["answers"]
    assert result["same"]


@pytest.mark.slow
def test_processes_that_ask_one_ledger_while_others_are_killed_spend_what_was_told_and_no_more(
    where: str,
) -> None:
    """Real answers of a table come out of several processes at once; SIGKILL comes at any moment, a new asker for each that died."""
    askers, kills, cost = 3, 12, Fraction(1, 100)
    budget = Fraction(4)
    create_ledger(where, "people", Budget.epsilon(budget)).close()
    result = said(lab("contend", where, askers, kills, cost, 7))
    told, before = result["told"], result["before"]
    spent, charged = Fraction(result["spent"]), Fraction(result["charged"])
    # Answers came out of those who were killed, before the kill; after the kills the others asked until nothing was left,
    # unless the last kill came when there was nothing any more.
    left = budget - before * cost
    assert result["kills"] == kills and before > kills and (told > before or left < (kills + 1) * cost)
    # No answer without its charge; what was charged and did not come out was in the hands of somebody who was killed.
    assert result["unpaid"] == 0
    most = cost * Fraction(101, 100)
    assert charged <= spent <= charged + kills * most
    assert told <= result["recorded"] <= result["debits"] <= told + kills
    assert budget - most < spent <= budget


@pytest.mark.slow
def test_the_lab_would_see_a_reply_before_the_debit(tmp_path: Path, state: Path) -> None:
    where = tmp_path / "a.ledger"
    create_ledger(where, "patients", Budget.epsilon(1000)).close()
    result = said(lab("crash", where, 10, "1/100", "reply-first", 0))
    assert Fraction(result["spent"]) < result["answers"] * Fraction(1, 100)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="This system has no fork.")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_copies_of_an_open_ledger_spend_one_budget_with_their_parent(where: str) -> None:
    ledger = create_ledger(where, "patients", Budget.epsilon(1))
    ledger.reserve(Charge("ana", "q", "", Fraction("0.5")))
    answered = 0

    def ask(name: str) -> int:
        paid = 0
        for n in range(20):
            try:
                held = ledger.reserve(Charge(name, f"{name}{n}", "", Fraction("0.01")))
            except BudgetExceeded:
                continue
            ledger.record(held, f"{name}{n}", "{}")
            paid += 1
        return paid

    def keep_asking() -> None:
        nonlocal answered
        answered += ask("parent")

    # A thread of the parent asks while the forks happen, so that they fall into the middle of its work.
    thread = threading.Thread(target=keep_asking)
    thread.start()
    children = []
    for n in range(3):
        child = os.fork()
        if child == 0:
            try:
                os._exit(ask(f"child{n}-"))
            except BaseException:
                os._exit(99)
        children.append(child)
    thread.join(60)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert 99 not in codes
    assert answered + sum(codes) == 50
    assert ledger.verify().spent == 1
    ledger.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="This system has no fork.")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_cannot_double_a_budget_in_memory() -> None:
    ledger = memory_ledger("patients", Budget.epsilon(1))
    child = os.fork()
    if child == 0:
        try:
            ledger.reserve(Charge("ana", "q", "", Fraction(1)))
        except LedgerError:
            os._exit(0)
        os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
    ledger.reserve(Charge("ana", "q", "", Fraction(1)))
    ledger.close()
