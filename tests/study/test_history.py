"""A release with a history is entered before it leaves, and says what all releases tell together."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from velado.apps.cli import run
from velado.data.history_file import create_history, history_held
from velado.data.keys import Key
from velado.data.schema import Schema
from velado.errors import HistoryError, SchemaError
from velado.release.history.record import Record, told_by
from velado.release.history.together import Together
from velado.study.run import publish

KEY = Key(bytes(range(40)))
COLUMNS = {
    "id": {"role": "identifier", "person": True},
    "age": {"role": "quasi", "kind": "numeric"},
    "illness": {"role": "sensitive", "kind": "categorical"},
}
SCHEMA = Schema.from_dict({"columns": COLUMNS})


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "visits.history"
    create_history(path, KEY)
    return path


def table(first: int, count: int = 8) -> pl.DataFrame:
    people = range(first, first + count)
    return pl.DataFrame(
        {
            "id": [f"person {p}" for p in people],
            "age": [20 + 3 * p for p in people],
            "illness": ["flu" if p % 3 else "asthma" for p in people],
        }
    )


def send(frame: pl.DataFrame, out: Path, history: Path) -> list[str]:
    done = publish(frame, SCHEMA, "mondrian", k=2, out=out, key=KEY, history=history, bound="off")
    return [str(text) for text in done.release.warnings]


def told(history: Path) -> tuple[int, int, str]:
    with history_held(history, KEY) as file:
        found = told_by(Record.of(file.entries), 2)
        return found.releases, found.inside.least, file.trouble


def test_two_releases_together_leave_fewer_candidates_than_each(tmp_path: Path, history: Path) -> None:
    send(table(0), tmp_path / "a", history)
    assert told(history)[:2] == (1, 2)
    said = send(table(1), tmp_path / "b", history)
    assert told(history)[:2] == (2, 1)
    assert any("have fewer than 2" in line for line in said)
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert b"person" not in history.read_bytes()


def test_an_older_copy_is_noticed(tmp_path: Path, history: Path) -> None:
    send(table(0), tmp_path / "a", history)
    copy = history.read_bytes()
    send(table(1), tmp_path / "b", history)
    history.write_bytes(copy)
    assert "older copy" in told(history)[2]
    assert any("may not be the newest" in line for line in send(table(2), tmp_path / "c", history))


def test_a_lost_history_cannot_be_begun_anew_in_silence(history: Path) -> None:
    with pytest.raises(HistoryError, match="already"):  # it is not lost yet
        create_history(history, KEY)
    history.unlink()
    with pytest.raises(HistoryError, match="stood"):
        create_history(history, KEY)


def test_an_edited_entry_is_refused(tmp_path: Path, history: Path) -> None:
    send(table(0), tmp_path / "a", history)
    raw = bytearray(history.read_bytes())
    raw[100] ^= 1
    history.write_bytes(bytes(raw))
    with pytest.raises(HistoryError, match="does not hold"):
        send(table(1), tmp_path / "b", history)
    assert not (tmp_path / "b").exists()


def test_a_second_run_on_the_same_history_is_refused(tmp_path: Path, history: Path) -> None:
    with history_held(history, KEY), pytest.raises(HistoryError, match="Another run"):
        send(table(0), tmp_path / "a", history)
    assert not (tmp_path / "a").exists()


KILLED = """
import os, sys
from pathlib import Path
import velado.study.history, velado.study.run
def die(*given, **named): os.kill(os.getpid(), 9)
if sys.argv[1] == "folder": velado.data.staging.StagedFolder.settle = die
else: velado.study.history.HistoryDraft.confirm = die
from test_history import send, table
send(table(0), Path(sys.argv[2]), Path(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed_before", ["folder", "confirmation"])
def test_a_run_killed_after_its_entry_and_done_again_is_one_release(
    tmp_path: Path, history: Path, killed_before: str
) -> None:
    out = tmp_path / "a"
    call = [sys.executable, "-c", KILLED, killed_before, str(out), str(history)]
    done = subprocess.run(call, cwd=Path(__file__).parent, env=dict(os.environ), timeout=120)
    assert done.returncode == -9
    assert told(history)[0] == 1  # entered, whether it left or not
    assert out.exists() == (killed_before == "confirmation")
    publish(table(0), SCHEMA, "mondrian", k=2, out=out, key=KEY, history=history, bound="off", force=True)
    assert told(history)[0] == 1


KILLED_AT = """
import os, sys
from pathlib import Path
import velado.study.run, velado.release.methods.mondrian
from test_history import frame_of, hold
def counting(most):
    left = [most]
    def counted(name):
        true = getattr(os, name)
        def call(*given, **named):
            left[0] -= 1
            if left[0] == 0: os.kill(os.getpid(), 9)
            return true(*given, **named)
        setattr(os, name, call)
    for name in "write fsync link unlink rename replace mkdir ftruncate open pwrite chmod rmdir".split(): counted(name)
    return left
for line in sys.stdin:  # each run is a fork of this process, which has imported everything and done nothing
    point, out, path = line.split()
    back, there = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            left = counting(int(point))
            hold(frame_of(1), Path(out), Path(path))
            said, code = str(int(point) - left[0]).encode(), 0
            left[0] = 10**9
            os.write(there, said)
        finally:
            os._exit(code)
    os.close(there)
    status = os.waitpid(child, 0)[1]
    print("killed" if os.WIFSIGNALED(status) else f"{os.WEXITSTATUS(status)} {os.read(back, 20).decode()}", flush=True)
    os.close(back)
"""


def frame_of(number: int) -> pl.DataFrame:
    return table(0, 24)[number:]


def hold(frame: pl.DataFrame, out: Path, history: Path, force: bool = False) -> None:
    together = Together(what="people", readers="exactly", start=4)
    publish(
        frame,
        SCHEMA,
        "mondrian",
        k=2,
        out=out,
        key=KEY,
        history=history,
        bound="off",
        together=together,
        suppression=0.5,
        force=force,
    )


@pytest.mark.slow
def test_a_run_killed_anywhere_leaves_no_release_without_its_entry(tmp_path: Path) -> None:
    """Killed at one in so many of its calls to the system: three of them, or as many as VELADO_KILLS says."""
    points = int(os.environ.get("VELADO_KILLS", "3"))
    create_history(tmp_path / "h", KEY)
    hold(frame_of(0), tmp_path / "first", tmp_path / "h")
    home = Path(__file__).parent
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_AT], cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runs:
        assert runs.stdin is not None and runs.stdout is not None

        def run_to(point: int, out: Path, path: Path) -> str:
            print(point, out, path, file=runs.stdin, flush=True)
            return runs.stdout.readline().strip()

        ended, calls = run_to(10**6, tmp_path / "whole", tmp_path / "h").split()
        assert ended == "0"
        entered = set[bool]()
        for number, at in enumerate(sorted({1 + int(calls) * n // points for n in range(points)})):
            home = tmp_path / f"{number}"
            home.mkdir()
            path, out = home / "h", home / "out"
            create_history(path, KEY)
            hold(frame_of(0), home / "first", path)
            assert run_to(at, out, path) == "killed"
            releases, _, trouble = told(path)
            assert not trouble and releases in (1, 2)
            assert releases == 2 or not out.exists()  # what left is known
            entered.add(releases == 2)
            hold(frame_of(1), out, path, force=out.exists())
            releases, least, trouble = told(path)
            assert releases == 2 and least >= 2 and not trouble  # nothing lost, nothing counted twice
            assert len(list(home.glob("h.rows-*"))) == 1
        print(f"killed at {number + 1} of {calls} calls")
    assert entered == {True, False}


def test_the_same_bytes_of_other_people_are_another_release(tmp_path: Path, history: Path) -> None:
    frame = table(0)
    send(frame, tmp_path / "a", history)
    send(frame, tmp_path / "b", history)
    assert told(history)[:2] == (1, 2)
    swapped = frame.with_columns(id=pl.col("id").replace({"person 0": "somebody new"}))
    send(swapped, tmp_path / "c", history)
    same = [(tmp_path / name / "release" / "table.csv").read_bytes() for name in "ac"]
    assert same[0] == same[1] and told(history)[0] == 2


def test_an_entry_of_an_unknown_kind_is_not_passed_over(tmp_path: Path, history: Path) -> None:
    with history_held(history, KEY) as file:
        file.append({"kind": "withdrawn"})
    with pytest.raises(HistoryError, match="unknown kind"):
        send(table(0), tmp_path / "a", history)
    assert not (tmp_path / "a").exists()


def test_a_torn_entry_is_cut_off(tmp_path: Path, history: Path) -> None:
    send(table(0), tmp_path / "a", history)
    whole = history.read_bytes()
    with history.open("ab") as file:
        file.write(b"vhe1" + bytes(5))
    assert told(history) == (1, 2, "")
    assert history.read_bytes() == whole


def test_a_history_needs_a_person_column(tmp_path: Path, history: Path) -> None:
    schema = Schema.from_dict({"columns": {"age": COLUMNS["age"]}})
    with pytest.raises(SchemaError, match="no person column"):
        publish(table(0).select("age"), schema, "mondrian", k=2, out=tmp_path / "a", key=KEY, history=history)


def test_a_repeated_recipe_without_a_history_says_that_nothing_was_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    send_to = tmp_path / "first"
    publish(table(0), SCHEMA, "mondrian", k=2, out=send_to, key=KEY, bound="off")
    table(0).write_csv(tmp_path / "next.csv")
    key = str(send_to / "private" / "owner.key")
    call = ["apply", str(send_to / "private" / "recipe.toml"), str(tmp_path / "next.csv"), "--key", key]
    create_history(tmp_path / "h", KEY)
    for name, further in (("a", []), ("b", ["--history", str(tmp_path / "h")])):
        assert run([*call, "-o", str(tmp_path / name), *further]) == 0
        said = " ".join("".join(capsys.readouterr()).split())
        assert ("Nothing about earlier releases was checked" in said) == (name == "a")
        assert ("together (1 in the history)" in said) == (name == "b")


def test_a_moved_history_is_sealed_anew_and_says_so_for_good(
    tmp_path: Path, history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    send(table(0), tmp_path / "a", history)
    older = history.read_bytes()
    send(table(1), tmp_path / "b", history)
    (tmp_path / "k").write_bytes(KEY.secret)
    call = ["history", "seal", str(history), "--key", str(tmp_path / "k"), "--reason", "a new machine"]
    assert run([*call, "--releases", "2"]) != 0  # it has its seal
    newest = history.read_bytes()
    history.write_bytes(older)
    assert run([*call, "--releases", "1"]) != 0  # its seal knows of a newer copy
    history.write_bytes(newest)
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "elsewhere"))
    assert "seal is missing" in told(history)[2]
    assert run([*call, "--releases", "3"]) != 0
    capsys.readouterr()
    assert run([*call, "--releases", "2"]) == 0
    assert "on your word" in " ".join("".join(capsys.readouterr()).split())
    assert told(history)[2] == ""
    assert any("sealed anew 1 time" in line for line in send(table(2), tmp_path / "c", history))
    assert told(history)[0] == 3
    history.write_bytes(newest)  # the copy of the old machine
    assert told(history)[2]


def test_a_release_from_an_older_copy_is_remembered_once_the_newest_is_back(
    tmp_path: Path, history: Path
) -> None:
    send(table(0), tmp_path / "a", history)
    older = history.read_bytes()
    send(table(1), tmp_path / "b", history)
    newest = history.read_bytes()
    history.write_bytes(older)
    send(table(2), tmp_path / "c", history)  # loud, and it leaves
    history.write_bytes(newest)
    assert "another copy of it went on" in told(history)[2]
    assert any("another copy of it went on" in line for line in send(table(3), tmp_path / "d", history))
    assert told(history)[2]


def test_a_copy_elsewhere_is_not_sealed_where_another_one_went_on(tmp_path: Path, history: Path) -> None:
    send(table(0), tmp_path / "a", history)
    copies = [tmp_path / "older", tmp_path / "moved"]
    copies[0].write_bytes(history.read_bytes())
    send(table(1), tmp_path / "b", history)
    copies[1].write_bytes(history.read_bytes())
    with history_held(copies[0], KEY) as file, pytest.raises(HistoryError, match="newer copy"):
        file.seal_anew("moved")
    with history_held(copies[1], KEY) as file:  # the newest copy may move
        file.seal_anew("moved")
    assert told(copies[1])[2] == "" and "another copy" in told(history)[2]
    # Two histories of one owner that begin with the same release are two.
    create_history(other := tmp_path / "other", KEY)
    send(table(0), tmp_path / "c", other)
    assert told(other)[2] == ""


def test_joined_tables_are_one_release_of_a_history(
    tmp_path: Path, history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k").write_bytes(KEY.secret)
    schema = 'id = {role = "identifier", person = true}\n'
    (tmp_path / "one.toml").write_text(f'[columns]\n{schema}age = {{role = "quasi", kind = "numeric"}}\n')
    (tmp_path / "two.toml").write_text(f'[columns]\n{schema}place = {{role = "quasi", kind = "numeric"}}\n')
    for number, first in enumerate((0, 1)):
        frame = table(first)
        frame.select("id", "age").write_csv(tmp_path / "one.csv")
        frame.select("id", place=pl.col("age") % 7).write_csv(tmp_path / "two.csv")
        tables = [part for n in ("one", "two") for part in ("-t", f"{tmp_path / n}.csv:{tmp_path / n}.toml")]
        call = ["joined", *tables, "-k", "2", "-m", "mondrian", "-o", str(tmp_path / f"o{number}")]
        assert run([*call, "--history", str(history), "--key", str(tmp_path / "k")]) == 0
        said = " ".join("".join(capsys.readouterr()).split())
        assert f"together ({number + 1} in the history)" in said
    releases, least, trouble = told(history)
    assert releases == 2 and least < 2 and not trouble
