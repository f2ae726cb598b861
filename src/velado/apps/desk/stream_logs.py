"""What a stream writes for its owner beside its state: the last windows of every stream in the project's folder."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from velado.apps.desk.project import Project

_MOST_STREAMS, _MOST_WINDOWS, _TAIL = 20, 60, 1 << 16
LOG = "windows.jsonl"


def logs(project: Project) -> list[Path]:
    """The logs of the streams in the project's folder, at most two folders deep, the last one written first."""
    found = [*project.folder.glob(f"*/{LOG}"), *project.folder.glob(f"*/*/{LOG}")]
    inside = [one for one in found if one.is_file() and not one.is_symlink() and project.holds(one)]
    return sorted(inside, key=lambda one: -one.stat().st_mtime)[:_MOST_STREAMS]


def told(log: Path, project: Project) -> dict[str, Any]:
    """The stream of one log: where it lies, how many windows it had, and the last ones, newest first."""
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        lines = file.read().splitlines()[1 if size > _TAIL else 0 :]
    windows = [found for line in lines[-_MOST_WINDOWS:] if (found := _window(line)) is not None]
    name = log.parent.relative_to(project.folder).as_posix()
    return {"name": name, "windows": windows[::-1], "count": windows[-1]["window"] if windows else 0}


def _window(line: bytes) -> dict[str, Any] | None:
    """One window as the page shows it; None where somebody is still writing the line.

    >>> found = _window(b'{"window": 3, "end": 60.0, "records": 7, "delay": 0.2}')
    >>> found["window"], found["totals"], found["at"][-3:]
    (3, True, ':00')
    """
    try:
        found: dict[str, Any] = json.loads(line)
        at = datetime.fromtimestamp(found["end"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        out = found.get("people_given_up", 0) + found.get("people_expired", 0)
        return {**found, "at": at, "totals": "people" not in found, "left_out": out}
    except (ValueError, KeyError, TypeError, OSError, OverflowError):
        return None
