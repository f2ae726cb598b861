"""Work on rows is done by a process of its own: begun, watched through files, cancelled, found again after a restart.

    job.json        what was asked            process.json   which process does it: pid and the moment it began
    progress.json   how far it is             result.json or error.json   how it ended

A job that has neither result nor error and whose process is gone was killed. Nothing is kept in the server's memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from velado.apps.desk.project import now
from velado.data.staging import put_file
from velado.errors import InputError, OutputError
from velado.randomness import secure

State = Literal["running", "done", "failed", "cancelled", "killed"]
_WORKER = "velado.apps.desk.worker"
_NAME = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{8}")
"""What runs are called: the moment they were begun, and a number."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job as its files tell it."""

    name: str
    folder: Path
    asked: Mapping[str, Any]
    state: State
    share: float = 0.0
    doing: str = ""
    error: Mapping[str, Any] | None = None
    """What, why and fix, each in every language."""

    def result(self) -> dict[str, Any]:
        """What came out, as plain values."""
        found: dict[str, Any] = json.loads((self.folder / "result.json").read_bytes())
        return found


def start(runs: Path, asked: Mapping[str, object]) -> str:
    """A process works on what is *asked*; its name is that of the job's folder."""
    name = f"{now().replace(':', '').replace('+0000', '').replace('-', '')}-{secure().randbytes(4).hex()}"
    folder = runs / name
    try:
        folder.mkdir(mode=0o700, parents=True)
        put_file(folder / "job.json", json.dumps(dict(asked), ensure_ascii=False).encode(), private=True)
        with (folder / "worker.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", _WORKER, str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # closing the terminal of the server does not end the work
            )
        mark = {"pid": process.pid, "began": _began(process.pid)}
        put_file(folder / "process.json", json.dumps(mark).encode(), private=True)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise OutputError(
            "The work could not be begun.",
            "There is no room on the disk, or no further process is allowed.",
            "Make room and try again; nothing was changed.",
        ) from error
    # Somebody must ask how a process ended, or the system keeps its number for ever.
    threading.Thread(target=process.wait, daemon=True).start()
    return name


def look(runs: Path, name: str) -> Job:
    """How the job *name* stands."""
    folder = _folder(runs, name)
    asked = _json(folder / "job.json") or {}
    progress = _json(folder / "progress.json") or {}
    share, doing = float(progress.get("share", 0.0)), str(progress.get("doing", ""))
    error = _json(folder / "error.json")
    state: State
    if (folder / "result.json").exists():
        state, share = "done", 1.0
    elif (folder / "cancelled").exists():
        state = "cancelled"
    elif error is not None:
        state = "failed"
    else:
        state = "running" if _alive(folder) else "killed"
        if state == "killed" and (folder / "result.json").exists():  # it ended while we looked
            state = "done"
    return Job(name=name, folder=folder, asked=asked, state=state, share=share, doing=doing, error=error)


def listed(runs: Path) -> list[Job]:
    """Every job, the newest first."""
    names = sorted((path.name for path in runs.iterdir() if (path / "job.json").exists()), reverse=True)
    return [look(runs, name) for name in names]


def cancel(runs: Path, name: str) -> None:
    """The process of the job is gone, and the job says that somebody cancelled it."""
    folder = _folder(runs, name)
    mark = _json(folder / "process.json")
    if mark is None or not _alive(folder):
        return
    put_file(folder / "cancelled", now().encode(), private=True)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(int(mark["pid"]), signal.SIGKILL)


def _folder(runs: Path, name: str) -> Path:
    if _NAME.fullmatch(name) is None or not (runs / name / "job.json").exists():
        raise InputError("There is no such run.", "Nothing was done.", "Choose one of the project's runs.")
    return runs / name


def _alive(folder: Path) -> bool:
    mark = _json(folder / "process.json")
    if mark is None:
        return False
    began = _began(int(mark["pid"]))
    return began != "" and began == mark["began"]


def _began(pid: int) -> str:
    """When a live process began; "" for one that is gone. Another process of the same number began at another time."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in ("Z", "X") else fields[19]
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
    try:  # systems without /proc
        told = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=False)
        return told.stdout.decode().strip()
    except OSError:
        return ""


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found
    except (OSError, ValueError):
        return None
