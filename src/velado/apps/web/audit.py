"""Who asked what, when, and how it ended: one JSON object a line, only ever appended.

No value of a row, no answer and no query text is written: a query may hold values its author typed. A question is named by
its fingerprint, under which the ledger has it. What changes a ledger has two lines with one id: "asked" before it begins, and
its outcome; an "asked" alone is one that was interrupted. How long an answer took can tell of rows, so it is written coarsely.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from velado.errors import OutputError

_COARSE = (0.1, 1.0, 10.0, 100.0)


def coarse(seconds: float) -> str:
    """The duration to a power of ten: "<0.1s", "<1s", ..."""
    return next((f"<{bound:g}s" for bound in _COARSE if seconds < bound), f">={_COARSE[-1]:g}s")


class Audit:
    """A file that is opened for appending alone; every line is one write, so that processes may share it."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._torn = False
        try:
            self._handle: int | None = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            raise OutputError(
                "The audit file cannot be opened for writing.",
                "The service answers only what it can write down.",
                "Check the folder and its rights, or name another in service.toml.",
            ) from None

    def write(
        self,
        action: str,
        outcome: str,
        *,
        analyst: str | None = None,
        token: str | None = None,
        dataset: str | None = None,
        request: str | None = None,
        question: str | None = None,
        cost: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """One line stands in the file, whole, or OutputError."""
        entry = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "action": action,
            "outcome": outcome,
            "analyst": analyst,
            "token": token,
            "dataset": dataset,
            "request": request,
            "question": question,
            "cost": cost,
            "duration": None if seconds is None else coarse(seconds),
        }
        line = json.dumps({k: v for k, v in entry.items() if v is not None}, ensure_ascii=True) + "\n"
        with self._lock:
            if self._handle is None:
                raise _not_written("it is closed")
            try:
                self._append(self._handle, line.encode())
            except OSError as error:
                raise _not_written(str(error.strerror)) from None

    def _append(self, handle: int, line: bytes) -> None:
        """The line is one write; the rest of a short one follows, and what cannot follow does not spoil the next line."""
        if self._torn:
            line = b"\n" + line
        written = os.write(handle, line)
        while written < len(line):
            self._torn = True
            written += os.write(handle, line[written:])
        self._torn = False

    def close(self) -> None:
        """The file is on disk, as far as its disk allows, and closed."""
        with self._lock:
            if self._handle is not None:
                # A pipe or a terminal cannot be synchronised, and needs not be.
                with suppress(OSError):
                    os.fsync(self._handle)
                os.close(self._handle)
                self._handle = None


def _not_written(why: str) -> OutputError:
    return OutputError(
        f"A line of the audit file could not be written ({why}).",
        "The service answers only what it can write down.",
        "Make room on its disk, or check the file's rights.",
    )
