"""The ledger beside a file: made once, found again, never replaced by a second budget."""

from pathlib import Path

import pytest

from velado.errors import LedgerError
from velado.query.budget import Budget
from velado.query.store import account_of, has_ledger, ledger_path


@pytest.fixture(autouse=True)
def seals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    for name in ("patients.csv", "t.csv"):
        (tmp_path / name).write_text(f"name\n{name}\n", "utf-8")


def test_the_first_question_makes_the_ledger_and_the_next_one_finds_it(tmp_path: Path) -> None:
    file = tmp_path / "patients.csv"
    assert not has_ledger(file) and ledger_path(file) == tmp_path / "patients.csv.ledger"
    first = account_of(file, Budget.epsilon("0.5"))
    assert first.made and first.only_this and first.ledger.state().budget == Budget.epsilon("0.5")
    first.ledger.close()
    assert has_ledger(file)
    again = account_of(file, Budget.epsilon("0.1"), budget=Budget.epsilon(9))
    assert not again.made and again.ledger.state().budget == Budget.epsilon("0.5")
    again.ledger.close()


def test_a_budget_is_set_when_the_ledger_is_made(tmp_path: Path) -> None:
    made = account_of(tmp_path / "t.csv", Budget.epsilon("0.5"), budget=Budget.epsilon(2))
    assert made.made and not made.only_this and made.ledger.state().left == 2
    made.ledger.close()


def test_a_deleted_ledger_is_not_made_again(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    account_of(file, Budget.epsilon(1)).ledger.close()
    for part in tmp_path.glob("t.csv.ledger*"):
        part.unlink()
    assert has_ledger(file), "the seal remembers it"
    with pytest.raises(LedgerError):
        account_of(file, Budget.epsilon(1))
