"""Whoever edits, restores, deletes or swaps a ledger is told so, and nothing is answered."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from velado.data.seals import SECTOR
from velado.errors import LedgerError
from velado.query.budget import Budget, Charge
from velado.query.store import ChainedLedger, create_ledger, open_ledger, seal_of
from velado.query.store._chain import START, make_entry
from velado.query.store._ledger import NEAR

COLUMNS = ("number", "kind", "payload", "previous", "hash")


def ask(ledger: ChainedLedger, question: str, cost: str = "0.1") -> str:
    held = ledger.reserve(Charge("ana", question, "SELECT COUNT(*)", Fraction(cost)))
    return ledger.record(held, question, json.dumps({"n": question}))


@pytest.fixture
def path(tmp_path: Path, state: Path) -> Path:
    """A closed ledger with three answers, a cap and a raise: nine entries."""
    ledger = create_ledger(tmp_path / "a.ledger", "patients", Budget.epsilon(1))
    for question in "xyz":
        ask(ledger, question)
    ledger.set_cap("rui", Fraction(1, 2))
    ledger.raise_budget(Fraction(2), "second study")
    ledger.close()
    return tmp_path / "a.ledger"


def run(path: Path, *statements: str) -> None:
    base = sqlite3.connect(path)
    with base:
        for statement in statements:
            base.execute(statement)
    base.close()


def refused(path: Path, pattern: str) -> None:
    with pytest.raises(LedgerError, match=pattern) as caught:
        open_ledger(path)
    error = caught.value
    assert error.what and error.why and error.fix


@pytest.mark.parametrize("number", range(1, 10))
@pytest.mark.parametrize("column", COLUMNS[1:])
def test_an_edited_cell_of_any_entry_is_refused_by_its_number(path: Path, number: int, column: str) -> None:
    base = sqlite3.connect(path)
    (value,) = base.execute(f"SELECT {column} FROM entries WHERE number = {number}").fetchone()
    base.close()
    middle = len(value) // 2
    for edited in (value[:-1] + chr(ord(value[-1]) ^ 1), value[:middle] + "~" + value[middle + 1 :], ""):
        base = sqlite3.connect(path)
        with base:
            base.execute(f"UPDATE entries SET {column} = ? WHERE number = {number}", (edited,))
        base.close()
        refused(path, f"Entry {number} of the ledger")
    for edited in (1, b"\xff\x00"):
        base = sqlite3.connect(path)
        with base:
            base.execute(f"UPDATE entries SET {column} = ? WHERE number = {number}", (edited,))
        base.close()
        refused(path, f"Entry {number} of the ledger")
    base = sqlite3.connect(path)
    with base:
        base.execute(f"UPDATE entries SET {column} = ? WHERE number = {number}", (value,))
    base.close()
    open_ledger(path).close()


@pytest.mark.parametrize("number", range(1, 10))
def test_a_deleted_entry_is_refused(path: Path, number: int) -> None:
    run(path, f"DELETE FROM entries WHERE number = {number}")
    refused(path, f"Entry {number} of the ledger|rolled back")


def test_entries_cut_off_the_end_are_a_roll_back(path: Path) -> None:
    run(path, "DELETE FROM entries WHERE number > 5")
    refused(path, "rolled back, edited or replaced: entry 9")


def test_an_answer_taken_away_beneath_an_open_ledger_is_a_roll_back(tmp_path: Path, state: Path) -> None:
    # The seal stands at the debit before it, so only the ledger's own memory of its last entry can tell.
    with closing(create_ledger(tmp_path / "b.ledger", "patients", Budget.epsilon(1))) as ledger:
        ask(ledger, "x")
        run(tmp_path / "b.ledger", "DELETE FROM entries WHERE number = (SELECT MAX(number) FROM entries)")
        with pytest.raises(LedgerError, match="rolled back, edited or replaced"):
            ledger.state()


@pytest.mark.parametrize("pair", [(2, 4), (3, 5), (6, 7), (8, 9)])
def test_reordered_entries_are_refused(path: Path, pair: tuple[int, int]) -> None:
    one, other = pair
    run(
        path,
        f"UPDATE entries SET number = -1 WHERE number = {one}",
        f"UPDATE entries SET number = {one} WHERE number = {other}",
        f"UPDATE entries SET number = {other} WHERE number = -1",
    )
    refused(path, f"Entry {one} of the ledger")


@pytest.mark.parametrize("behind", [1, NEAR - 1, NEAR, NEAR + 1, NEAR + 9])
def test_the_entry_that_the_seal_knows_is_compared_however_far_behind_it_is(
    tmp_path: Path, state: Path, behind: int
) -> None:
    place = tmp_path / "b.ledger"
    ledger = create_ledger(place, "patients", Budget.epsilon(1))
    held = [ledger.reserve(Charge("ana", str(n), "SELECT COUNT(*)", Fraction(1, 100))) for n in range(behind)]
    for n, one in enumerate(held):
        ledger.record(one, str(n), "{}")
    sealed = 1 + behind
    assert ledger.state().entries == sealed + behind
    run(place, f"UPDATE entries SET hash = '{START}' WHERE number = {sealed}")
    with pytest.raises(LedgerError, match=f"entry {sealed}, which its seal knows"):
        ledger.state()
    ledger.close()


def test_entries_renumbered_to_close_a_gap_are_refused(path: Path) -> None:
    run(
        path,
        "DELETE FROM entries WHERE number IN (4, 5)",
        *[f"UPDATE entries SET number = {n - 2} WHERE number = {n}" for n in range(6, 10)],
    )
    refused(path, "Entry 4 of the ledger")


def test_an_older_copy_put_back_is_refused_and_the_newest_goes_on(tmp_path: Path, state: Path) -> None:
    path = tmp_path / "a.ledger"
    ledger = create_ledger(path, "patients", Budget.epsilon(1))
    for n in range(8):
        ask(ledger, f"q{n}")
        ledger.close()
        shutil.copy(path, tmp_path / f"copy{n}")
        ledger = open_ledger(path)
    ledger.close()
    for n in range(7):
        shutil.copy(tmp_path / f"copy{n}", path)
        refused(path, "rolled back, edited or replaced")
    shutil.copy(tmp_path / "copy7", path)
    ledger = open_ledger(path)
    ask(ledger, "one more")
    assert ledger.verify().spent == Fraction("0.9")
    ledger.close()


def test_a_copy_made_between_the_debit_and_the_answer_cannot_give_the_debit_back(
    tmp_path: Path, state: Path
) -> None:
    path = tmp_path / "a.ledger"
    create_ledger(path, "patients", Budget.epsilon(1)).close()
    shutil.copy(path, tmp_path / "before")
    ledger = open_ledger(path)
    ledger.reserve(Charge("ana", "q", "", Fraction(1)))
    ledger.close()
    shutil.copy(tmp_path / "before", path)
    refused(path, "rolled back, edited or replaced: entry 2")


def test_a_ledger_rolled_back_under_a_running_process_is_refused(path: Path) -> None:
    ledger = open_ledger(path)
    run(path, "DELETE FROM entries WHERE number > 3")
    with pytest.raises(LedgerError, match="rolled back"):
        ask(ledger, "w")
    with pytest.raises(LedgerError, match="rolled back"):
        ledger.state()
    ledger.close()


def test_an_old_entry_edited_under_a_running_process_is_found_by_verify_and_never_served(path: Path) -> None:
    ledger = open_ledger(path)
    run(path, "UPDATE entries SET payload = replace(payload, 'x', 'X') WHERE number = 3")
    with pytest.raises(LedgerError, match=r"Entry 3 .*changed while"):
        ledger.stored("x")
    with pytest.raises(LedgerError, match=r"Entry 3 .*not the one that was signed"):
        ledger.verify()
    ledger.close()


@pytest.mark.parametrize("change", ["moved", "replaced", "deleted"])
def test_a_file_taken_away_under_a_running_process_is_refused(path: Path, change: str) -> None:
    ledger = open_ledger(path)
    if change == "replaced":
        shutil.copy(path, path.with_name("copy"))
        path.with_name("copy").replace(path)
    elif change == "moved":
        path.rename(path.with_name("elsewhere"))
    else:
        path.unlink()
    with pytest.raises(LedgerError, match="moved, replaced or deleted while in use"):
        ask(ledger, "w")
    ledger.close()


def test_a_deleted_ledger_is_refused_and_cannot_be_made_anew(path: Path) -> None:
    path.unlink()
    refused(path, "is gone, though its seal says")
    with pytest.raises(LedgerError, match="is gone, though its seal says"):
        create_ledger(path, "patients", Budget.epsilon(1))
    assert not path.exists()


def test_a_deleted_seal_is_refused_with_what_to_do(path: Path) -> None:
    ledger = open_ledger(path)
    seal_of(path).unlink()
    with pytest.raises(LedgerError, match="seal of the ledger is missing"):
        ask(ledger, "w")
    ledger.close()
    refused(path, "seal of the ledger is missing.*--seal.*whole budget as spent")


def test_two_swapped_ledgers_are_refused(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.ledger"
    create_ledger(other, "staff", Budget.epsilon(1)).close()
    path.rename(tmp_path / "c")
    other.rename(path)
    (tmp_path / "c").rename(other)
    refused(path, "Entry 1 of the ledger")
    refused(other, "Entry 1 of the ledger")


def test_two_swapped_seals_are_refused(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.ledger"
    create_ledger(other, "staff", Budget.epsilon(1)).close()
    seal_of(path).rename(tmp_path / "c")
    seal_of(other).rename(seal_of(path))
    refused(path, "Entry 1 of the ledger")


def test_a_seal_used_with_a_copy_refuses_the_original_from_then_on(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ledger"
    shutil.copy(path, copy)
    refused(copy, "seal of the ledger is missing")
    ledger = open_ledger(copy, seal=seal_of(path))
    ask(ledger, "w")
    ledger.close()
    refused(path, "rolled back")


@pytest.mark.parametrize("key", [b"", b"\0" * 32, b"velado"])
def test_a_chain_made_again_without_the_key_is_refused(path: Path, key: bytes) -> None:
    base = sqlite3.connect(path)
    previous = START
    with base:
        for number, kind, payload in base.execute("SELECT number, kind, payload FROM entries").fetchall():
            said = json.loads(payload)
            said |= {"cost": "0", "analyst_spent": "0"} if kind == "reserve" else {}
            made = make_entry(key, number, previous, kind, said | {"spent": "0"})
            base.execute(
                "UPDATE entries SET payload = ?, previous = ?, hash = ? WHERE number = ?",
                (made.payload, previous, made.hash, number),
            )
            previous = made.hash
    base.close()
    refused(path, "Entry 1 of the ledger")


def test_a_chain_of_plain_hashes_is_refused(path: Path) -> None:
    base = sqlite3.connect(path)
    with base:
        for number, payload in base.execute("SELECT number, payload FROM entries").fetchall():
            plain = hashlib.sha256(payload.encode()).hexdigest()
            base.execute("UPDATE entries SET hash = ? WHERE number = ?", (plain, number))
    base.close()
    refused(path, "Entry 1 of the ledger")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(path: Path, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    refused(path, "cannot be used|Entry|rolled back")


def test_any_flipped_byte_of_an_entry_is_refused_and_of_the_rest_changes_nothing(path: Path) -> None:
    ledger = open_ledger(path)
    true, entries = ledger.state(), list(ledger.entries())
    ledger.close()
    whole = path.read_bytes()
    inside = set()
    for entry in entries:
        # SQLite keeps the cells of a row side by side.
        row = (entry.kind + entry.payload + entry.previous + entry.hash).encode()
        assert whole.count(row) == 1
        inside.update(range(whole.index(row), whole.index(row) + len(row)))
    for at in [*sorted(inside)[::11], *range(0, len(whole), 97)]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        if at in inside:
            refused(path, "Entry|cannot be used")
            continue
        try:
            ledger = open_ledger(path)
        except LedgerError:
            continue
        assert ledger.state() == true
        ledger.close()


def test_a_planted_trigger_or_view_does_not_help(path: Path) -> None:
    run(
        path,
        "CREATE TRIGGER forget AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE number = new.number; END",
    )
    ledger = open_ledger(path)
    ledger.reserve(Charge("ana", "w", "", Fraction(1, 10)))
    with pytest.raises(LedgerError, match="rolled back"):
        ledger.state()
    ledger.close()
    refused(path, "rolled back")


def damage(seal: Path, at: int) -> None:
    data = bytearray(seal.read_bytes())
    data[at] ^= 1
    seal.write_bytes(bytes(data))


def test_a_damaged_seal_is_refused_and_a_torn_slot_is_not(path: Path) -> None:
    seal = seal_of(path)
    whole = seal.read_bytes()
    for at in (3, 20, 50, 70):
        damage(seal, at)
        refused(path, "seal of the ledger cannot be used")
        seal.write_bytes(whole)
    for slot in (1, 2):
        damage(seal, slot * SECTOR + 9)
        open_ledger(path).close()
        seal.write_bytes(whole)
    damage(seal, SECTOR)
    damage(seal, 2 * SECTOR + 71)
    refused(path, "both of its marks are damaged")
    seal.write_bytes(whole[:40])
    refused(path, "cut short")


def on_server(url: str, statement: Callable[[str], str], name: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as base:
        base.execute(statement(f'"velado_ledger_{name}".entries'))


@pytest.mark.parametrize(
    ("statement", "pattern"),
    [
        ("UPDATE {} SET payload = replace(payload, '1/10', '1/11') WHERE number = 2", "Entry 2"),
        ("DELETE FROM {} WHERE number = 3", "Entry 3"),
        ("DELETE FROM {} WHERE number > 3", "rolled back"),
        ("DELETE FROM {}", "rolled back|no entry"),
        ("DROP TABLE {}", "is gone"),
        ("UPDATE {} SET hash = '' WHERE number = 5", "Entry 5"),
        ("UPDATE {} SET number = 90 WHERE number = 5", "Entry 5"),
    ],
)
def test_a_ledger_on_a_server_is_guarded_alike(
    postgres_url: str, state: Path, statement: str, pattern: str
) -> None:
    name = "t" + hashlib.sha256(statement.encode()).hexdigest()[:12]
    where = f"{postgres_url}{'&' if '?' in postgres_url else '?'}ledger={name}"
    ledger = create_ledger(where, "patients", Budget.epsilon(1))
    for question in "xy":
        ask(ledger, question)
    ledger.close()
    on_server(postgres_url, lambda table: statement.format(table), name)
    with pytest.raises(LedgerError, match=pattern):
        open_ledger(where)
