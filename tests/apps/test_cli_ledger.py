"""`velado ledger` as the owner of a data set runs it: words, JSON, exit codes and refusals."""

import json
import re
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from velado.apps.cli import run
from velado.query.budget import Charge
from velado.query.store import UnitOfAccount, open_ledger
from velado.query.unit import Unit


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a ledger for one epsilon and one answer in it."""
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("VELADO_LANG", raising=False)
    monkeypatch.chdir(tmp_path)
    assert run(["ledger", "open", "a.ledger", "--dataset", "patients", "--epsilon", "1", "--quiet"]) == 0
    return tmp_path


def ask(path: str = "a.ledger", question: str = "secret question", cost: str = "1/3") -> str:
    ledger = open_ledger(path)
    held = ledger.reserve(Charge("maria", question, "SELECT secret", Fraction(cost)))
    receipt = ledger.record(held, question, '{"secret": 4}')
    ledger.close()
    return receipt


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict:
    assert run(["ledger", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_show_tells_exactly_what_is_spent_and_left(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask()
    assert run(["ledger", "cap", "a.ledger", "rui", "0.25"]) == 0
    state = told(capsys, "show", "a.ledger") if not capsys.readouterr().err else {}
    assert (state["spent"], state["left"], state["answers"]) == ("1/3", "2/3", 1)
    assert state["by_analyst"] == {"maria": "1/3"} and state["caps"] == {"rui": "1/4"}
    assert run(["ledger", "show", "a.ledger", "--entries", "10"]) == 0
    text = capsys.readouterr().out
    for part in ("patients", "0.333333", "0.666667", "0.25", "maria", "rui", "reserve", "answer", "Seal:"):
        assert part in text
    # Fractions are for programs; a person is given decimals.
    assert "secret" not in text and "1/3" not in text and "1/4" not in text


def test_the_entry_about_the_unit_is_neither_an_answer_nor_an_analysts(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = open_ledger("a.ledger")
    UnitOfAccount(ledger, Unit(), "owner").hold()
    ledger.close()
    ask()
    for verb in ("show", "verify"):
        state = told(capsys, verb, "a.ledger")
        assert state["answers"] == 1 and state["by_analyst"] == {"maria": "1/3"}
    assert run(["ledger", "show", "a.ledger", "--entries", "9", "--lang", "pt"]) == 0
    text = capsys.readouterr().out
    assert "1 respostas" in text and "owner" not in text
    assert all(kind in text for kind in ("abertura", "unidade", "reserva", "resposta"))


def test_everything_is_said_in_portuguese_too(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask()
    assert run(["ledger", "show", "a.ledger", "--lang", "pt"]) == 0
    assert run(["ledger", "verify", "a.ledger", "--lang", "pt"]) == 0
    assert run(["ledger", "raise", "a.ledger", "2", "--reason", "x", "--lang", "pt"]) == 0
    text = capsys.readouterr().out
    for part in ("Livro-razão de 'patients'", "resta", "0,666667", "conferem", "O orçamento passa a ser 2"):
        assert part in text


def test_verify_knows_its_receipts_and_no_others(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    receipt = ask()
    found = told(capsys, "verify", "a.ledger", "--receipt", receipt)
    assert found["holds"] and found["receipts"] == {receipt: 3}
    strange = "ab" * 32
    lost = told(capsys, "verify", "a.ledger", "--receipt", receipt, "--receipt", strange, code=8)
    assert lost["receipts"] == {receipt: 3, strange: None}
    assert run(["ledger", "verify", "a.ledger", "--receipt", strange]) == 8
    assert "does not have it" in capsys.readouterr().out
    assert run(["ledger", "verify", "a.ledger", "--receipt", "abc"]) == 2


def test_a_ledger_restored_with_its_seal_lacks_the_receipt(place: Path) -> None:
    shutil.copytree(place, place.with_name("image"))
    receipt = ask()
    shutil.copy(place.with_name("image") / "a.ledger", place / "a.ledger")
    assert run(["ledger", "verify", "a.ledger"]) == 8
    shutil.rmtree(place / "state")
    shutil.copytree(place.with_name("image") / "state", place / "state")
    assert run(["ledger", "verify", "a.ledger", "--quiet"]) == 0
    assert run(["ledger", "verify", "a.ledger", "--receipt", receipt, "--quiet"]) == 8


def test_a_tampered_ledger_is_refused_by_every_command(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import sqlite3

    ask()
    base = sqlite3.connect("a.ledger")
    with base:
        base.execute("UPDATE entries SET payload = replace(payload, '1/3', '1/4') WHERE number = 2")
    base.close()
    for arguments in (
        ["show", "a.ledger"],
        ["verify", "a.ledger"],
        ["cap", "a.ledger", "rui", "1"],
        ["raise", "a.ledger", "3", "--reason", "more"],
    ):
        assert run(["ledger", *arguments]) == 8
        printed = capsys.readouterr()
        assert "Entry 2 of the ledger does not hold" in printed.err
        assert printed.out == ""


def test_a_budget_is_opened_once_and_in_one_measure(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "open", "a.ledger", "--dataset", "patients", "--epsilon", "9"]) == 8
    for wrong in (
        [],
        ["--epsilon", "1", "--rho", "1"],
        ["--epsilon", "0"],
        ["--epsilon", "nan"],
        ["--rho", "1", "--delta", "2"],
    ):
        assert run(["ledger", "open", "b.ledger", "--dataset", "x", *wrong]) == 2
        assert not Path("b.ledger").exists()
    capsys.readouterr()
    opened = told(capsys, "open", "b.ledger", "--dataset", "x", "--epsilon", "1", "--delta", "1e-9")
    assert opened["budget"]["measure"] == "rho"
    assert 0.999 < opened["budget"]["implies"]["epsilon"] <= 1
    assert run(["ledger", "show", "b.ledger"]) == 0
    assert re.search(r"delta 1e-09 .* epsilon of (1\.0|0\.99)", capsys.readouterr().out)
    assert Path(opened["seal"]).is_file()


def test_raise_needs_a_reason_and_more(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "raise", "a.ledger", "2"]) == 2
    assert run(["ledger", "raise", "a.ledger", "2", "--reason", " "]) == 2
    assert run(["ledger", "raise", "a.ledger", "1", "--reason", "x"]) == 2
    assert run(["ledger", "cap", "a.ledger", "rui", "--", "-1"]) == 2
    capsys.readouterr()
    assert told(capsys, "raise", "a.ledger", "3/2", "--reason", "second study")["budget"]["total"] == "3/2"


def test_an_absent_ledger_is_named_with_what_to_do(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("show", "verify"):
        assert run(["ledger", verb, "absent.ledger"]) == 8
        assert "velado ledger open" in capsys.readouterr().err
    assert not Path("absent.ledger").exists()
    assert told(capsys, "show", "absent.ledger", code=8)["error"]["type"] == "LedgerError"


def test_a_password_in_an_address_is_never_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("psycopg")
    assert run(["ledger", "show", "postgresql://ana:hunter2@127.0.0.1:1/base", "--json"]) == 8
    printed = capsys.readouterr()
    assert "hunter2" not in printed.out + printed.err and "ana" not in printed.out + printed.err
