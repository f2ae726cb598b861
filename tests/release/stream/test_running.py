"""A stream that is killed anywhere publishes no record twice and loses none; a real broker delivers to it and gets its windows."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.errors import InputError, OutputError, ParameterError, TableError
from velado.release.stream.connectors.runner import run_stream
from velado.release.stream.manifest import check_chain

from .brokers import BROKER, mosquitto
from .stream_trials import line

SCHEMA = """
[columns.who]
role = "identifier"
person = true
[columns.age]
role = "quasi"
kind = "numeric"
bounds = [0, 120]
[columns.sex]
role = "quasi"
[columns.tag]
role = "sensitive"
kind = "numeric"
identifier = "accept"
side_door = "accept"
reason = "the test tells records apart by it"
"""
STREAM = """
schema = "schema.toml"
key = "owner.key"
metrics = "metrics.prom"
[window]
by = "count"
size = 40
[people]
k = 3
[source]
kind = "files"
path = "records-*.jsonl"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "owner.key").write_bytes(bytes(range(40)))
    (tmp_path / "stream.toml").write_text(STREAM)
    return tmp_path


AGES = np.random.default_rng(3).integers(20, 90, 40).tolist()
TAGS = [
    [1000 * window + int(one) for one in np.random.default_rng(window).permutation(40)]
    for window in range(60)
]


def reading(window: int, one: int, **more: object) -> bytes:
    return line(f"p{one}", AGES[one], "FM"[one % 2], TAGS[window][one], **more)


def write_lines(folder: Path, windows: int, people: int = 40) -> None:
    rows = [reading(window, one) for window in range(windows) for one in range(people)]
    half = len(rows) // 2
    (folder / "records-1.jsonl").write_bytes(b"\n".join(rows[:half]) + b"\n")
    (folder / "records-2.jsonl").write_bytes(b"\n".join(rows[half:]) + b"\n")


def tags(folder: Path) -> list[float]:
    """The tags of all published rows; each record has its own."""
    return sorted(tag for path in (folder / "windows").glob("*.csv") for tag in pl.read_csv(path)["tag"])


def chain(folder: Path) -> int:
    found = sorted((folder / "windows").glob("*.json"))
    tables = {int(path.stem): path.read_bytes() for path in (folder / "windows").glob("*.csv")}
    return check_chain([path.read_bytes() for path in found], tables)


def test_files_are_published_in_windows_and_a_second_run_adds_nothing(folder: Path) -> None:
    write_lines(folder, 4)
    assert run_stream(folder / "stream.toml").windows == 4
    assert tags(folder) == sorted(1000 * w + one for w in range(4) for one in range(40))
    assert chain(folder) == 4
    assert run_stream(folder / "stream.toml").windows == 0
    assert (folder / "private").stat().st_mode & 0o777 == 0o700
    assert 'velado_stream_published{stream="stream"} 160.0' in (folder / "metrics.prom").read_text()
    assert (folder / "metrics.prom").stat().st_mode & 0o777 == 0o600


def test_metrics_are_served_to_this_machine_alone_while_the_stream_runs(folder: Path) -> None:
    import socket
    import urllib.request

    write_lines(folder, 2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    text = f"metrics_port = {port}\n" + (folder / "stream.toml").read_text().replace("metrics =", "state =")
    (folder / "stream.toml").write_text(text)
    heard: list[str] = []

    def tell(window: object, delay: float) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
            heard.append(reply.read().decode())

    run_stream(folder / "stream.toml", tell=tell)
    assert 'velado_stream_published{stream="stream"}' in heard[-1]
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2)


def test_csv_files_are_read_by_their_header(folder: Path) -> None:
    rows = [f"p{one},{AGES[one]},F,{TAGS[0][one]}" for one in range(40)] + ["p1,3", "p2,x,F,1"]
    (folder / "records-1.jsonl").write_text("\n".join(["who,age,sex,tag", *rows]) + "\n")
    text = (folder / "stream.toml").read_text() + '[record]\nformat = "csv"\n'
    (folder / "stream.toml").write_text(text)
    done = run_stream(folder / "stream.toml")
    assert tags(folder) == list(range(40)) and done.state.counts.refused == {"broken": 1, "kind": 1}


def test_what_was_on_its_way_out_is_handed_over_again(folder: Path) -> None:
    write_lines(folder, 3)
    (folder / "windows").mkdir()
    stranger = folder / "windows" / "000002.csv"
    stranger.write_text("age\n")
    with pytest.raises(OutputError, match="other content"):  # the first window is out, the others are not
        run_stream(folder / "stream.toml")
    assert len(list((folder / "windows").glob("*.json"))) == 1
    stranger.unlink()
    run_stream(folder / "stream.toml")
    assert tags(folder) == sorted(1000 * w + one for w in range(3) for one in range(40))
    assert chain(folder) == 3


def test_a_changed_state_and_a_strangers_window_are_refused(folder: Path) -> None:
    write_lines(folder, 2)
    (folder / "windows").mkdir()
    (folder / "windows" / "000001.csv").write_text("age\n")
    with pytest.raises(OutputError, match="other content"):
        run_stream(folder / "stream.toml")
    state = folder / "private" / "state.json"
    state.write_bytes(
        state.read_bytes().replace(b'"window": 1', b'"window": 0').replace(b'"window": 2', b'"window": 0')
    )
    with pytest.raises(TableError, match="not whole"):
        run_stream(folder / "stream.toml")


def test_an_older_state_that_is_put_back_is_refused(folder: Path) -> None:
    """People of the epoch would be put into classes anew, beside those that left."""
    write_lines(folder, 1)
    run_stream(folder / "stream.toml")
    state = folder / "private" / "state.json"
    older = state.read_bytes()
    (folder / "records-3.jsonl").write_bytes(b"\n".join(reading(1, one) for one in range(40)) + b"\n")
    run_stream(folder / "stream.toml")
    newest = state.read_bytes()
    for damage in (lambda: state.write_bytes(older), state.unlink):
        damage()
        with pytest.raises(TableError, match="written last"):
            run_stream(folder / "stream.toml")
    state.write_bytes(newest)
    run_stream(folder / "stream.toml")
    assert chain(folder) == 2


def test_a_state_of_another_layout_is_told_in_a_sentence(folder: Path) -> None:
    from velado.release.stream.manifest import digest

    write_lines(folder, 1)
    run_stream(folder / "stream.toml")
    state = folder / "private" / "state.json"
    body = state.read_bytes().partition(b"\n")[2].replace(b'"version": 2', b'"version": 3', 1)
    state.write_bytes(digest(body).encode() + b"\n" + body)
    with pytest.raises(TableError, match=r"layout of its own \(3\).*reads layout 2"):
        run_stream(folder / "stream.toml")


def test_a_state_of_the_layout_before_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes stood in base 85."""
    import base64

    from velado.release.stream.connectors import state_file

    write_lines(folder, 2, people=30)
    with monkeypatch.context() as older:
        older.setattr(state_file, "_VERSION", 1)
        older.setattr(base64, "b64encode", base64.b85encode)
        run_stream(folder / "stream.toml")
    assert b'"version": 1' in (folder / "private" / "state.json").read_bytes()
    (folder / "records-3.jsonl").write_bytes(b"\n".join(reading(2, one) for one in range(30)) + b"\n")
    done = run_stream(folder / "stream.toml")
    assert done.state.counts.lines == 90 and chain(folder) == done.state.window == 3


@pytest.mark.parametrize("window", ['by = "time"\nsize = 40\nclock = "record"', 'by = "count"\nsize = 40'])
def test_the_delay_of_recorded_times_is_what_the_stream_added(folder: Path, window: str) -> None:
    """Times of another year are no delay: it is counted from the reading of the record that filled the window."""
    text = (folder / "stream.toml").read_text().replace('by = "count"\nsize = 40', window)
    (folder / "stream.toml").write_text(text + '[record]\ntime = "at"\n')
    rows = [
        reading(window, one, at=1_600_000_000 + 40 * window + one) for window in range(3) for one in range(40)
    ]
    (folder / "records-1.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    heard: list[float] = []
    begun = time.time()
    run_stream(folder / "stream.toml", tell=lambda window, delay: heard.append(delay))
    took = time.time() - begun
    lines = (folder / "private" / "windows.jsonl").read_text().splitlines()
    assert [json.loads(one)["delay"] for one in lines] == heard and len(heard) == 3
    assert all(0 <= one <= took for one in heard)
    shown = next(one for one in (folder / "metrics.prom").read_text().splitlines() if "delay_seconds{" in one)
    assert 0 <= float(shown.split()[-1]) <= took


def test_a_windows_line_says_how_many_people_were_left_out(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    """Two of five stay away: their class is given up, and who of it is there is left out of the window and of its loss."""
    from velado.apps.cli import run

    text = (
        (folder / "stream.toml")
        .read_text()
        .replace('by = "count"\nsize = 40', 'by = "time"\nsize = 10\nclock = "record"')
    )
    (folder / "stream.toml").write_text(text.replace("k = 3", "k = 3\nstart = 3") + '[record]\ntime = "at"\n')
    here = [[*range(9)], [*range(7)], [9]]
    rows = [
        line(f"p{one}", 20 + one // 3 * 20, "F", one, at=1_600_000_000 + 10 * at)
        for at, part in enumerate(here)
        for one in part
    ]
    (folder / "records-1.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    assert run(["stream", str(folder / "stream.toml")]) == 0
    told = capsys.readouterr().out
    assert "Window 1: 9 people" in told and "0 left out" in told
    assert re.search(
        r"Window 2: 6 people with an information loss of 0\.0%, 1 left out, 0 waiting\.", told
    ), told
    facts = [json.loads(one) for one in (folder / "private" / "windows.jsonl").read_text().splitlines()]
    assert facts[1]["people_given_up"] + facts[1]["people_expired"] == 1


def test_a_stream_keeps_to_one_thread_and_says_so_before_polars_is_loaded(folder: Path) -> None:
    write_lines(folder, 1)
    code = (
        "import sys; from velado.apps.cli import run; assert 'polars' not in sys.modules;"
        "run(['stream', sys.argv[1], '--quiet']); import polars; print(polars.thread_pool_size())"
    )
    env = {name: value for name, value in os.environ.items() if name != "POLARS_MAX_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "stream.toml")], env=env, capture_output=True
    )
    assert done.stdout.split()[-1:] == [b"1"], done.stderr


def test_files_are_read_whatever_their_names_and_folders_and_when_they_grow(folder: Path) -> None:
    """Positions are of whole paths: two folders have a file of one name, a later file comes with a smaller name, an old one grows."""
    text = STREAM.replace("records-*.jsonl", "*/r*.jsonl")
    (folder / "stream.toml").write_text(text)

    def put(name: str, window: int) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        with (folder / name).open("ab") as file:
            file.write(b"\n".join(reading(window, one) for one in range(40)) + b"\n")

    put("day1/r.jsonl", 0)
    put("day2/r.jsonl", 1)
    assert run_stream(folder / "stream.toml").windows == 2
    put("day0/r9.jsonl", 2)
    put("day0/r10.jsonl", 3)
    put("day1/r.jsonl", 4)
    done = run_stream(folder / "stream.toml")
    assert done.windows == 3 and done.state.counts.lines == done.state.counts.published == 200
    assert tags(folder) == sorted(1000 * w + one for w in range(5) for one in range(40))
    whole = (folder / "day1/r.jsonl").read_bytes()
    for other in (whole[:-10], b" " + whole):  # cut, and another file under the name
        (folder / "day1/r.jsonl").write_bytes(other)
        with pytest.raises(InputError, match="not the file that was read"):
            run_stream(folder / "stream.toml")


@pytest.mark.parametrize(
    ("setting", "file", "before", "after"),
    [
        ("people.k", "stream.toml", "k = 3", "k = 2"),
        ("window.size", "stream.toml", "size = 40", "size = 20"),
        ("key", "stream.toml", '"owner.key"', '"other.key"'),
        ("schema", "schema.toml", "[0, 120]", "[0, 130]"),
    ],
)
def test_what_an_epochs_promise_rests_on_may_not_change_between_two_runs(
    folder: Path, setting: str, file: str, before: str, after: str
) -> None:
    (folder / "other.key").write_bytes(bytes(range(1, 41)))
    write_lines(folder, 1, people=30)
    run_stream(folder / "stream.toml")
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after))
    with pytest.raises(ParameterError, match=f"another '{setting}'"):
        run_stream(folder / "stream.toml")
    (folder / file).write_text(text.replace("[people]", "[people]\nwait = 4"))  # nothing rests on this
    run_stream(folder / "stream.toml")


def test_no_file_is_an_error(folder: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        run_stream(folder / "stream.toml")


@pytest.fixture
def port(tmp_path: Path):
    if not Path(BROKER).exists():
        pytest.skip("there is no mosquitto on this machine")
    with mosquitto(tmp_path) as number:
        yield number


def test_records_over_mqtt_reach_windows_and_survive_a_kill(folder: Path, port: int) -> None:
    mqtt = pytest.importorskip("paho.mqtt.client")
    from paho.mqtt.enums import CallbackAPIVersion

    text = STREAM.replace(
        'kind = "files"\npath = "records-*.jsonl"', f'kind = "mqtt"\nport = {port}\ntopic = "ward/#"'
    )
    (folder / "stream.toml").write_text(text + '[record]\nid = "n"\n')

    def started() -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "velado", "stream", str(folder / "stream.toml")], stdout=subprocess.DEVNULL
        )

    def until(windows: int) -> None:
        begun = time.time()
        while len(list((folder / "windows").glob("*.json"))) < windows and time.time() - begun < 40:
            time.sleep(0.05)

    device = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="device")
    device.connect("127.0.0.1", port)
    device.loop_start()

    def send(window: int) -> None:
        for one in range(40):
            said = reading(window, one, n=window)
            device.publish(f"ward/{one}", said, qos=1).wait_for_publish(10)

    first = started()
    while not (folder / "private" / "journal").exists() and first.poll() is None:
        time.sleep(0.05)
    time.sleep(1.0)  # subscribed: the session is the broker's from here on
    send(0)
    until(1)
    for one in range(20):  # half a window, then killed
        device.publish("ward/x", reading(1, one, n=1), qos=1).wait_for_publish(10)
    time.sleep(0.5)
    first.kill()
    first.wait()
    send(1)  # the first twenty of them once more: duplicates
    second = started()
    until(2)
    os.kill(second.pid, signal.SIGTERM)
    assert second.wait(20) == 0
    device.disconnect()
    device.loop_stop()
    assert tags(folder) == sorted(1000 * w + one for w in range(2) for one in range(40))
    assert chain(folder) == 2
