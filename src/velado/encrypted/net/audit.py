"""What a party did and refused, one JSON object a line, without any content."""

from __future__ import annotations

import datetime
import json
import os
import threading
from pathlib import Path
from typing import Any

MOST_REFUSALS = 1000


class Audit:
    """The audit log of one party: time, event, peer, kind, number, bytes. Lines are added, never changed.

    Strangers can cause refusals as often as they like, so only the first thousand of a process are written.
    """

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file = os.fdopen(handle, "a", encoding="utf-8")
        self._lock = threading.Lock()
        self._refusals = 0

    def write(self, event: str, **facts: Any) -> None:
        """One line, given to the operating system before this returns."""
        with self._lock:
            if event == "refused":
                self._refusals += 1
                if self._refusals > MOST_REFUSALS:
                    return
                if self._refusals == MOST_REFUSALS:
                    facts = {"reason": "further refusals are not listed"}
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            line = {"time": now, "event": event, **{k: v for k, v in facts.items() if v is not None}}
            if not self._file.closed:
                self._file.write(json.dumps(line, ensure_ascii=True) + "\n")
                self._file.flush()

    def close(self) -> None:
        """No line is written any more."""
        with self._lock:
            self._file.close()
