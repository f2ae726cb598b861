"""A writer killed at any step leaves a whole release under the name, and nothing of it that others can read.

A helper process forks a child for each order. The child counts what Python reports of its own system calls (audit events:
open, mkdir, chmod, rename, ...) and sends itself a signal at the n-th, with a umask that forbids nothing.
"""

import hashlib
import json
import os
import random
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from velado.data.staging import write_file, write_folder
from velado.errors import OutputError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and modes are those of Unix")

HELPER = """
import ctypes, hashlib, json, os, signal, sys, time
from pathlib import Path
from velado.data.staging import write_file, write_folder

WATCHED = ("open", "os.", "shutil.", "ctypes.", "fcntl.", "tempfile.")

def release(name, size):
    table = (name + "\\n").encode() * size
    digest = hashlib.sha256(table).hexdigest()
    document = {"manifest_version": 1, "output": {"file": "table.csv", "sha256": digest}}
    return {"release/table.csv": table, "release/manifest.json": json.dumps(document).encode(),
            "private/report.html": digest.encode(), "private/recipe.toml": digest.encode()}

def work(order):
    os.umask(0)
    left = order.get("event", -1)
    if not order.get("exchange", True):
        def none(*args, **more):
            raise OSError
        ctypes.CDLL = none
    def signal_myself(event, args):
        nonlocal left
        if event in ("os.rename", "ctypes.dlsym"):
            time.sleep(order.get("pause", 0))
        if event.startswith(WATCHED) and event != "os.kill":
            if left == 0:
                left = -1
                os.kill(os.getpid(), order["signal"])
            left -= 1
    sys.addaudithook(signal_myself)
    for turn in range(order.get("times", 1)):
        if order.get("file"):
            write_file(Path(order["path"]), b"secret", force=True, private=True)
        else:
            write_folder(Path(order["path"]), release(f"new {turn}", order.get("size", 10)), force=True)

for line in sys.stdin:
    order = json.loads(line)
    child = order.get("go on")
    if child:
        os.kill(child, signal.SIGCONT)
    else:
        child = os.fork()
        if child == 0:
            try:
                work(order)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
            os._exit(0)
        if "seconds" in order:
            time.sleep(order["seconds"])
            os.kill(child, signal.SIGKILL)
    if order.get("wait", True):
        _, status = os.waitpid(child, os.WUNTRACED)
        print(json.dumps([child, status]), flush=True)
"""


class Helper:
    """The helper process: `ask` gives the child's id and how it ended."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HELPER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def send(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self) -> tuple[int, int]:
        assert self.process.stdout is not None
        child, status = json.loads(self.process.stdout.readline())
        return child, status

    def ask(self, **order: Any) -> tuple[int, int]:
        self.send(**order)
        return self.answer()


@pytest.fixture(scope="module")
def helper() -> Iterator[Helper]:
    made = Helper()
    yield made
    os.killpg(made.process.pid, signal.SIGKILL)  # and a child that a failed test left standing
    made.process.communicate()


def release(name: str) -> dict[str, bytes]:
    table = name.encode()
    digest = hashlib.sha256(table).hexdigest()
    document = {"manifest_version": 1, "output": {"file": "table.csv", "sha256": digest}}
    return {
        "release/table.csv": table,
        "release/manifest.json": json.dumps(document).encode(),
        "private/report.html": digest.encode(),
        "private/recipe.toml": digest.encode(),
    }


def is_whole(folder: Path | int) -> bool:
    """Whether the table, the manifest and the private files are of one release."""

    def read(name: str) -> bytes:
        within = folder if isinstance(folder, int) else None
        path = name if within is not None else f"{folder}/{name}"
        with open(os.open(path, os.O_RDONLY, dir_fd=within), "rb") as stream:
            return stream.read()

    digest = hashlib.sha256(read("release/table.csv")).hexdigest()
    private = [read("private/report.html"), read("private/recipe.toml")]
    listed = json.loads(read("release/manifest.json"))["output"]["sha256"]
    return listed == digest and private == [digest.encode()] * 2


def leftovers(folder: Path) -> list[Path]:
    return sorted(path for path in folder.parent.iterdir() if path != folder)


def is_held(lock: Path) -> bool:
    import fcntl

    if not lock.exists():
        return False
    with open(lock, "rb+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def check_left_behind(folder: Path) -> None:
    """At most one staging folder stands beside the release, and nobody else can look into it."""
    left = leftovers(folder)
    assert len(left) <= 1
    for path in left:
        assert path.name.startswith(f".{folder.name}.velado-") and mode(path) == 0o700
        for inside in path.rglob("private"):
            assert mode(inside) == 0o700
            assert all(mode(file) == 0o600 for file in inside.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two renames"])
def test_a_replacement_killed_at_any_step_leaves_a_whole_release(
    helper: Helper, tmp_path: Path, exchange: bool
) -> None:
    if exchange and sys.platform != "linux":
        pytest.skip("names are exchanged in one step on Linux only")
    folder = tmp_path / "out"
    write_folder(folder, release("old"))
    missing = 0
    for event in range(1000):
        _, status = helper.ask(path=str(folder), event=event, signal=signal.SIGKILL, exchange=exchange)
        check_left_behind(folder)
        if not folder.exists():
            missing += 1
            with pytest.raises(OutputError, match="exists already"):  # for the old one is put back first
                write_folder(folder, release("next"))
        assert is_whole(folder)
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        write_folder(folder, release("old"), force=True)
        assert leftovers(folder) == [] and (folder / "release" / "table.csv").read_bytes() == b"old"
    assert 30 < event < 999
    assert leftovers(folder) == []
    assert (missing == 0) == exchange


def test_a_first_release_killed_at_any_step_is_whole_or_not_there(helper: Helper, tmp_path: Path) -> None:
    for event in range(1000):
        folder = tmp_path / str(event) / "out"
        folder.parent.mkdir()
        _, status = helper.ask(path=str(folder), event=event, signal=signal.SIGKILL)
        check_left_behind(folder)
        assert not folder.exists() or is_whole(folder)
        if status == 0:
            break
        write_folder(folder, release("next"), force=True)
        assert leftovers(folder) == [] and is_whole(folder)
    assert 20 < event < 999


def test_a_private_file_killed_at_any_step_is_never_open_to_others(helper: Helper, tmp_path: Path) -> None:
    path = tmp_path / "owner.key"
    for event in range(1000):
        _, status = helper.ask(path=str(path), file=True, event=event, signal=signal.SIGKILL)
        assert all(mode(file) == 0o600 for file in tmp_path.iterdir())
        assert not path.exists() or path.read_bytes() in (b"secret", b"next")
        if status == 0:
            break
        write_file(path, b"next", force=True, private=True)
        assert leftovers(path) == []
    assert 5 < event < 999


@pytest.mark.slow
def test_kills_at_random_moments_of_large_writes_leave_a_whole_release(
    helper: Helper, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    write_folder(folder, release("old"))
    moments = random.Random(11)
    for _ in range(40):
        helper.ask(path=str(folder), seconds=moments.uniform(0.001, 0.04), times=10_000, size=100_000)
        check_left_behind(folder)
        assert is_whole(folder)
        if moments.random() < 0.3:
            write_folder(folder, release("old"), force=True)
            assert leftovers(folder) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="names are exchanged in one step on Linux only")
def test_the_name_is_never_missing_or_half_while_it_is_replaced(helper: Helper, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, release("old"))
    # A pause before each rename, so that a moment between two of them would be long enough to be seen.
    helper.send(path=str(folder), times=60, pause=0.005)
    seen: set[int] = set()
    whole = 0
    while not select.select([helper.process.stdout], [], [], 0)[0]:
        for _ in range(100):
            os.stat(folder)  # raises if the name is missing
        handle = os.open(folder, os.O_RDONLY)
        try:
            seen.add(os.fstat(handle).st_mtime_ns)
            try:
                good = is_whole(handle)
            except FileNotFoundError:
                good = False
            # One that has been replaced meanwhile may be on its way out; what the name holds may not.
            assert good or os.stat(folder).st_ino != os.fstat(handle).st_ino
            whole += good
        finally:
            os.close(handle)
    assert helper.answer()[1] == 0
    assert len(seen) > 10 and whole > 100 and leftovers(folder) == []


@pytest.mark.slow
def test_what_a_live_process_is_writing_is_not_swept(helper: Helper, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, release("old"))
    held = 0
    for event in range(0, 1000, 3):
        child, status = helper.ask(path=str(folder), event=event, signal=signal.SIGSTOP)
        if os.WIFEXITED(status):
            break
        # A stopped process that has not locked its folder yet may lose it, and then makes another.
        before = {path: sorted(path.rglob("*")) for path in leftovers(folder) if is_held(path / "lock")}
        write_folder(folder, release("other"), force=True)
        for path, inside in before.items():
            held += 1
            assert sorted(path.rglob("*")) == inside
        _, status = helper.ask(**{"go on": child})
        assert status == 0 and is_whole(folder) and leftovers(folder) == []
    assert held > 5
