"""The ledger's file and its seal on a real disk: modes, places that do not work, and what is durable when."""

import os
import resource
import sqlite3
import stat
from fractions import Fraction
from pathlib import Path

import pytest

from velado.errors import LedgerError, VeladoError
from velado.query.budget import Budget, Charge
from velado.query.store import ChainedLedger, create_ledger, open_ledger, seal_of

ONE = Budget.epsilon(1)


def reserve(ledger: ChainedLedger, question: str = "q") -> None:
    ledger.reserve(Charge("ana", question, "", Fraction(1, 100)))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def in_a_child(work) -> str:
    """What *work* raised in a forked process: its class and message, or nothing."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
        except VeladoError as error:
            os.write(writes, f"{type(error).__name__}: {error}".encode())
        except BaseException as error:
            os.write(writes, f"unexpected {type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said


forks = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def test_only_the_user_may_read_the_ledger_and_its_seal(tmp_path: Path, state: Path) -> None:
    old = os.umask(0)
    try:
        ledger = create_ledger(tmp_path / "a.ledger", "patients", ONE)
        reserve(ledger)
        assert {path.name: mode(path) for path in tmp_path.iterdir() if path.is_file()} == dict.fromkeys(
            ("a.ledger", "a.ledger-wal", "a.ledger-shm"), 0o600
        )
        assert mode(seal_of(tmp_path / "a.ledger")) == 0o600
        assert mode(state) == mode(state / "seals") == 0o700
        ledger.close()
    finally:
        os.umask(old)


def test_the_seal_lies_apart_by_the_ledgers_real_path(tmp_path: Path, state: Path) -> None:
    (tmp_path / "link.ledger").symlink_to(tmp_path / "a.ledger")
    assert seal_of(tmp_path / "link.ledger") == seal_of(tmp_path / "a.ledger")
    assert seal_of(tmp_path / "a.ledger").parent == state / "seals"
    assert seal_of(tmp_path / "a.ledger") != seal_of(tmp_path / "b.ledger")
    assert seal_of("postgresql://u:secret@h/b?ledger=x") == seal_of("postgresql://v:other@h:5432/b?ledger=x")
    assert seal_of("postgresql://h/b?ledger=x") != seal_of("postgresql://h/b?ledger=y")


def test_without_a_named_state_folder_the_users_own_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VELADO_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert seal_of("a").parent == tmp_path / ".local" / "state" / "velado" / "seals"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    assert seal_of("a").parent == tmp_path / "x" / "velado" / "seals"


@pytest.mark.parametrize("what", ["folder", "text", "empty", "another base", "pipe"])
def test_what_is_not_a_ledger_is_refused_and_left_as_it_is(tmp_path: Path, state: Path, what: str) -> None:
    path = tmp_path / "a.ledger"
    create_ledger(path, "patients", ONE).close()
    path.unlink()
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "another base":
        base = sqlite3.connect(path)
        base.execute("CREATE TABLE entries (number, kind, payload, previous, hash)")
        base.close()
    else:
        path.write_text("name,age\n" * 1000 if what == "text" else "")
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(LedgerError, match=r"not a ledger|not a file"):
        open_ledger(path)
    with pytest.raises(LedgerError, match="already"):
        create_ledger(path, "patients", ONE)
    with pytest.raises(LedgerError, match="already"):
        create_ledger(path, "patients", ONE, seal=tmp_path / "new.seal")
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert not (tmp_path / "new.seal").exists()


def test_a_folder_that_is_not_there_is_refused_and_leaves_no_seal(tmp_path: Path, state: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be used"):
        create_ledger(tmp_path / "absent" / "a.ledger", "patients", ONE)
    assert not list((state / "seals").iterdir())
    (tmp_path / "absent").mkdir()
    create_ledger(tmp_path / "absent" / "a.ledger", "patients", ONE).close()


def test_a_state_folder_that_cannot_be_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "file" / "state"))
    with pytest.raises(LedgerError, match="seal of the ledger cannot be used"):
        create_ledger(tmp_path / "a.ledger", "patients", ONE)
    assert not (tmp_path / "a.ledger").exists()


@forks
@pytest.mark.parametrize("part", ["ledger", "seal"])
def test_a_read_only_ledger_or_seal_is_refused(tmp_path: Path, state: Path, part: str) -> None:
    path = tmp_path / "a.ledger"
    create_ledger(path, "patients", ONE).close()
    everything = [tmp_path, state, state / "seals", path, seal_of(path)]
    parents = [
        folder
        for folder in tmp_path.parents
        if folder.stat().st_uid == os.getuid() and folder.parent != folder
    ]
    nobody = 65534
    if os.geteuid() == 0:
        # Permissions do not bind root, so another user tries; the files are made theirs to read, not to write.
        before = {folder: mode(folder) for folder in parents}
        for name in everything:
            os.chown(name, nobody, nobody)
        for folder in parents:
            folder.chmod(mode(folder) | 0o011)
    (path if part == "ledger" else seal_of(path)).chmod(0o400)

    def work() -> None:
        if os.geteuid() == 0:
            os.setgid(nobody)
            os.setuid(nobody)
        reserve(open_ledger(path))

    try:
        assert in_a_child(work).startswith("LedgerError: The " + ("ledger" if part == "ledger" else "seal"))
    finally:
        if os.geteuid() == 0:
            for folder, bits in before.items():
                folder.chmod(bits)


@forks
@pytest.mark.parametrize("room", [0, 3_000, 20_000])
def test_a_full_disk_is_a_refusal_and_the_ledger_goes_on_when_there_is_room(
    tmp_path: Path, state: Path, room: int
) -> None:
    path = tmp_path / "a.ledger"
    create_ledger(path, "patients", ONE).close()

    def work() -> None:
        ledger = open_ledger(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        for n in range(50):
            held = ledger.reserve(Charge("ana", f"q{n}", "", Fraction(1, 100)))
            ledger.record(held, f"q{n}", "x" * 2000)

    assert in_a_child(work).startswith("LedgerError: The ")
    ledger = open_ledger(path)
    spent = ledger.verify().spent
    reserve(ledger)
    assert ledger.verify().spent == spent + Fraction(1, 100)
    ledger.close()


def test_a_debit_is_committed_before_it_is_sealed_and_sealed_before_it_is_handed_out(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ledger"
    ledger = create_ledger(path, "patients", ONE)
    events: list[tuple[str, int]] = []
    sync = os.fdatasync

    def watched(handle: int) -> None:
        base = sqlite3.connect(path)
        events.append(("sealed", base.execute("SELECT count(*) FROM entries").fetchone()[0]))
        base.close()
        sync(handle)

    monkeypatch.setattr(os, "fdatasync", watched)
    reserve(ledger)
    assert events == [("sealed", 2)]
    ledger.close()


def test_sqlite_syncs_at_every_commit(tmp_path: Path, state: Path) -> None:
    ledger = create_ledger(tmp_path / "a.ledger", "patients", ONE)
    assert ledger._open is not None
    base = ledger._open[0]._base
    assert base.execute("PRAGMA synchronous").fetchone() == (2,)
    assert base.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    ledger.close()


def test_a_crash_between_commit_and_seal_is_accepted_and_sealed_again(tmp_path: Path, state: Path) -> None:
    path = tmp_path / "a.ledger"
    ledger = create_ledger(path, "patients", ONE)
    reserve(ledger)
    ledger.close()
    behind = seal_of(path).read_bytes()
    ledger = open_ledger(path)
    reserve(ledger, "r")
    ledger.close()
    copy = path.read_bytes()
    seal_of(path).write_bytes(behind)
    open_ledger(path).close()
    assert seal_of(path).read_bytes() != behind
    ledger = open_ledger(path)
    assert ledger.verify().spent == Fraction(2, 100)
    ledger.close()
    assert path.read_bytes() == copy


def test_another_program_that_holds_the_file_does_not_stop_readers(tmp_path: Path, state: Path) -> None:
    path = tmp_path / "a.ledger"
    ledger = create_ledger(path, "patients", ONE)
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("BEGIN IMMEDIATE")
    assert ledger.state().entries == 1
    base.execute("ROLLBACK")
    base.close()
    ledger.close()
