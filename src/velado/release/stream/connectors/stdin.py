"""Standard input as a source. It cannot be read again: what a killed run had read since its last window is lost."""

from __future__ import annotations

import queue
import sys
import threading
import time
from typing import Any, ClassVar

from velado.release.stream.connectors.connector import MOST, Arrived, Place, Queue, SourceKind
from velado.release.stream.connectors.csv_lines import CsvLines
from velado.settings import settings


@settings(section="source")
class Stdin(SourceKind):
    """Lines of standard input.

    >>> Stdin().queue
    20000
    """

    name: ClassVar[str] = "stdin"
    again: ClassVar[bool] = False
    queue: Queue = 20_000

    @property
    def whole(self) -> bool:
        """It ends when its writer closes it."""
        return True

    def open(self, place: Place, position: Any) -> StdinSource:
        """There is no way back in it, whatever the position."""
        return StdinSource(self, place.separator if place.asked.record.format == "csv" else None)


class StdinSource:
    """The lines, read in a thread, at most `queue` of them ahead; those of a CSV file are named by its header."""

    def __init__(self, asked: Stdin, separator: str | None) -> None:
        self.ended = False
        self._lines: queue.Queue[bytes | None] = queue.Queue(asked.queue)
        self._csv = CsvLines(separator) if separator is not None else None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._lines.put(line)
        self._lines.put(None)

    def poll(self, seconds: float) -> Arrived:
        """The lines that are there."""
        taken = _drained(self._lines, seconds)
        self.ended = bool(taken) and taken[-1] is None
        lines = [line for line in taken if line is not None]
        lines = self._csv.records(lines) if self._csv else lines
        return Arrived(lines, [time.time()] * len(lines), None)

    def settled(self, position: Any) -> None:
        """Nothing: there is no way back in standard input."""

    def close(self) -> None:
        """Nothing to close."""


def _drained(waiting: queue.Queue[Any], seconds: float) -> list[Any]:
    """What is in the queue, after waiting so long for a first one."""
    try:
        out = [waiting.get(timeout=seconds)]
    except queue.Empty:
        return []
    while len(out) < MOST and out[-1] is not None:
        try:
            out.append(waiting.get_nowait())
        except queue.Empty:
            break
    return out
