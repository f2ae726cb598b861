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


def test_the_same_bytes_of_other_people_are_another_release(tmp_path: Path, history: Path) -> None:
    frame = table(0)
    send(frame, tmp_path / "a", history)
    send(frame, tmp_path / "b", history)
    assert told(history)[:2] == (1, 2)
    swapped = frame.with_columns(id=pl.col("id").replace({"person 0": "somebody new"}))
    send(swapped, tmp_path / "c", history)
    same = [(tmp_path / name / "release" / "table.csv").read_bytes() for name in "ac"]
    assert same[0] == same[1] and told(history)[0] == 2


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
