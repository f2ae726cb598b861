"""Who asked what, when, and how it ended: one JSON object a line, only ever appended.

No value of a row, no answer and no query text is written: a query may hold values its author typed. A question is named by
its fingerprint, under which the ledger has it. How long an answer took can tell of rows, so it is written coarsely.
"""

from __future__ import annotations

import json
import os
import threading
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
        question: str | None = None,
        cost: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """One line stands in the file."""
        entry = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "action": action,
            "outcome": outcome,
            "analyst": analyst,
            "token": token,
            "dataset": dataset,
            "question": question,
            "cost": cost,
            "duration": None if seconds is None else coarse(seconds),
        }
        line = json.dumps({k: v for k, v in entry.items() if v is not None}, ensure_ascii=True) + "\n"
        with self._lock:
            if self._handle is not None:
                os.write(self._handle, line.encode())

    def close(self) -> None:
        """The file is on disk and closed."""
        with self._lock:
            if self._handle is not None:
                os.fsync(self._handle)
                os.close(self._handle)
                self._handle = None
