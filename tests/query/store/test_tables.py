"""One table, one ledger: by its place, by its content, and through every door."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from velado.errors import LedgerError, ParameterError
from velado.query.budget import Budget
from velado.query.store import (
    TableIdentity,
    account_of,
    address_of,
    agree_version,
    claim,
    has_ledger,
    ledger_known,
)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    path = tmp_path / "people.csv"
    path.write_text("a,b\n1,2\n", "utf-8")
    return path


def ask(table: Path, **more: object) -> str:
    account = account_of(table, Budget.epsilon(1), **more)  # type: ignore[arg-type]
    account.ledger.close()
    return account.where


def test_a_second_ledger_for_one_file_is_refused(table: Path, tmp_path: Path) -> None:
    first = ask(table, where=tmp_path / "elsewhere.ledger")
    with pytest.raises(LedgerError, match="another ledger"):
        ask(table)
    with pytest.raises(LedgerError, match="another ledger"):
        ask(table, where=tmp_path / "third.ledger")
    assert ask(table, where=first) == first
    assert not (tmp_path / "people.csv.ledger").exists()


def test_a_copy_a_link_and_a_changed_file_belong_to_the_same_ledger(table: Path, tmp_path: Path) -> None:
    first = ask(table)
    copy = tmp_path / "copy.csv"
    shutil.copy(table, copy)
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for other in (copy, link):
        assert has_ledger(other)
        with pytest.raises(LedgerError, match="another ledger"):
            ask(other)
        assert ask(other, where=first) == first
    table.write_text("a,b\n1,2\n3,4\n", "utf-8")
    assert has_ledger(table)
    with pytest.raises(LedgerError, match="another ledger"):
        ask(table, where=tmp_path / "new.ledger")


def test_a_table_nobody_asked_about_has_no_ledger(table: Path, tmp_path: Path) -> None:
    assert not has_ledger(table)
    other = tmp_path / "other.csv"
    other.write_text("a,b\n5,6\n", "utf-8")
    ask(other)
    assert not has_ledger(table) and has_ledger(other)


def test_a_note_that_was_damaged_stops_the_asking(table: Path, tmp_path: Path) -> None:
    first = ask(table)
    for note in (tmp_path / "state" / "tables").iterdir():
        assert note.stat().st_mode & 0o077 == 0
        note.write_text("{", "utf-8")
    with pytest.raises(LedgerError, match="cannot be read"):
        ask(table, where=first)


def test_a_relation_is_the_same_whoever_connects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path))
    one = TableIdentity.of_relation("postgresql://ana:secret@host/base", "admissions")
    two = TableIdentity.of_relation("postgresql://bia:other@host:5432/base", "admissions")
    assert one == two and "secret" not in str(one)
    assert one != TableIdentity.of_relation("postgresql://ana@host/base", "visits")
    claim(one, address_of(tmp_path / "a.ledger"))
    assert ledger_known(two) == address_of(tmp_path / "a.ledger")


def test_first_questions_at_once_share_one_ledger(table: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        places = list(pool.map(lambda _: ask(table), range(16)))
    assert len(set(places)) == 1


def test_a_changed_table_needs_a_new_declared_version(table: Path, tmp_path: Path) -> None:
    ledger = address_of(tmp_path / "a.ledger")
    agree_version(ledger, "1", "content a")
    agree_version(ledger, "1", "content a")
    with pytest.raises(ParameterError, match="new version"):
        agree_version(ledger, "1", "content b")
    agree_version(ledger, "2", "content b")
    agree_version(address_of(tmp_path / "other.ledger"), "1", "content b")
