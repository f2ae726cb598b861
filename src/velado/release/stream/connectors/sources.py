"""Sources: standard input, files, and MQTT. Each gives payloads with their arrival, and a position to go on from."""

from __future__ import annotations

import csv
import glob
import hashlib
import json
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from velado.errors import InputError
from velado.release.stream.connectors.journal import Journal
from velado.release.stream.connectors.mqtt_client import confirm, connect, mqtt_client
from velado.release.stream.stream_settings import StreamSettings
from velado.text import say

_START = 1024
"""Bytes at the beginning of a file by which it is known again."""
MOST = 10_000
"""Messages handed on at once."""
_GATHER, _PAUSE = 0.1, 0.005
"""Seconds in which messages of a broker are gathered and confirmed before they are handed on, and between two looks."""


@dataclass(frozen=True, repr=False)
class Arrived:
    """Payloads, when each arrived, the position behind the last of them, and how many more are known to be lost."""

    payloads: list[bytes]
    times: list[float]
    position: Any
    lost: int = 0


class Source(Protocol):
    """What the loop reads."""

    ended: bool

    def poll(self, seconds: float) -> Arrived:
        """What arrived, after at most so many seconds."""
        ...

    def settled(self, position: Any) -> None:
        """The state that holds *position* is on the disk: what came before is not needed again."""
        ...

    def close(self) -> None:
        """Nothing more is read."""
        ...


class StdinSource:
    """Lines of standard input. They cannot be read again: what a killed run had read since its last window is lost."""

    def __init__(self, asked: StreamSettings, separator: str) -> None:
        self.ended = False
        self._lines: queue.Queue[bytes | None] = queue.Queue(asked.source.queue)
        self._csv = _CsvLines(separator) if asked.record.format == "csv" else None
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


class FilesSource:
    """The lines of files in the order of their paths. The position has, for each, how many bytes were read, and how it begins.

    A file that comes later is read whatever its name, and one that grew is read on; a file that is shorter than what was read of it, or
    begins otherwise, is another one under its name, and an error.
    """

    def __init__(self, asked: StreamSettings, folder: Path, separator: str, position: Any) -> None:
        self.ended = False
        self._folder, self._pattern = folder, str(folder / asked.source.path)
        self._follow = asked.source.follow
        self._separator = separator if asked.record.format == "csv" else None
        files = self._files()
        self._read = self._read_before(position, files)
        if not files and not self._follow:
            raise InputError(
                say("There is no file '{path}' to read records from.", path=asked.source.path),
                "The stream would be empty.",
                "Correct path in [source]; it is looked for beside the stream file.",
            )
        for path in files:
            begun = self._read.get(self._name(path))
            if begun is not None and begun[1] and _begins(path, begun[1]) != begun[2]:
                raise _another(path)

    def _files(self) -> list[Path]:
        return [path for path in map(Path, sorted(glob.glob(self._pattern))) if path.is_file()]

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self._folder)

    def _read_before(self, position: Any, files: list[Path]) -> dict[str, list[Any]]:
        """How far each file was read. An older state has one name and one place in that file: those before it were read."""
        if not isinstance(position, list):
            return dict(position or {})
        name, offset = position
        return {
            self._name(path): [offset if path.name == name else path.stat().st_size, 0, ""]
            for path in files
            if path.name <= name
        }

    def poll(self, seconds: float) -> Arrived:
        """The next lines, all of one file."""
        files = self._files()
        for at, path in enumerate(files):
            begin, known, start = self._read.get(self._name(path), [0, 0, ""])
            size = path.stat().st_size
            if size < begin:
                raise _another(path)
            if size == begin:
                continue
            lines, end = self._some(path, begin, at + 1 == len(files))
            if end == begin:
                continue
            if known < _START:
                known = min(end, _START)
                start = _begins(path, known)
            self._read = {**self._read, self._name(path): [end, known, start]}
            if lines:
                return Arrived(lines, [time.time()] * len(lines), self._read)
        if not self._follow:
            self.ended = True
        else:
            time.sleep(seconds)
        return Arrived([], [], self._read)

    def _some(self, path: Path, begin: int, last: bool) -> tuple[list[bytes], int]:
        with path.open("rb") as file:
            header = None if self._separator is None else _CsvLines(self._separator)
            if header is not None:
                header.records([file.readline()])
            file.seek(max(begin, file.tell() if header is not None else 0))
            lines: list[bytes] = []
            end = file.tell()
            while len(lines) < MOST and (line := file.readline()):
                # Somebody may still be writing the last line of a file that is followed.
                if not line.endswith(b"\n") and last and self._follow:
                    break
                lines.append(line)
                end = file.tell()
        return (header.records(lines) if header is not None else lines), end

    def settled(self, position: Any) -> None:
        """Nothing: the files stay as they are."""

    def close(self) -> None:
        """Nothing to close."""


def _begins(path: Path, length: int) -> str:
    with path.open("rb") as file:
        return hashlib.sha256(file.read(length)).hexdigest()


def _another(path: Path) -> InputError:
    return InputError(
        say("'{file}' is not the file that was read under its name before.", file=path.name),
        "It is shorter, or begins otherwise: what was read of it says nothing of where to go on.",
        "Put the old one back, and give new records a file of a name of their own.",
    )


class MqttSource:
    """Messages of a topic with QoS 1, each confirmed when it stands in the journal; a full queue holds the broker back."""

    def __init__(self, asked: StreamSettings, folder: Path, journal: Journal, position: Any) -> None:
        self.ended = False
        self._journal, self._replay = journal, iter(journal.read(position or 0))
        self._waiting, self._most = deque[Any](), asked.source.queue
        self._arrived, self._closed = threading.Event(), False
        self._topic = asked.source.topic
        self._client = mqtt_client(asked, folder, asked.source.client)
        self._client.on_connect = self._connected
        self._client.on_message = self._take
        connect(self._client, asked)

    def _connected(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        client.subscribe(self._topic, qos=1)

    def poll(self, seconds: float) -> Arrived:
        """What the journal still holds from before, then what arrives."""
        again = _some_of(self._replay)
        if again:
            return Arrived([data for _, data, _ in again], [at for at, _, _ in again], again[-1][2])
        payloads: list[bytes] = []
        times: list[float] = []
        until = time.monotonic() + _GATHER
        while messages := self._there(seconds if not payloads else 0):
            fresh = [bytes(message.payload) for message in messages]
            payloads += fresh
            times += [time.time()] * len(fresh)
            self._journal.append(fresh, times[-len(fresh) :])
            confirm(self._client, messages)
            if len(payloads) >= MOST or time.monotonic() > until:
                break
            time.sleep(_PAUSE)  # a batch costs the same however few are in it
        return Arrived(payloads, times, self._journal.end)

    def _take(self, client: Any, userdata: Any, message: Any) -> None:
        """In the client's thread, which reads no further while the queue is full."""
        while len(self._waiting) >= self._most and not self._closed:
            time.sleep(_PAUSE)
        self._waiting.append(message)
        if not self._arrived.is_set():
            self._arrived.set()

    def _there(self, seconds: float) -> list[Any]:
        """The messages that wait, after so long for a first one; an event that is set too often only ends a wait early."""
        if not self._waiting:
            self._arrived.wait(seconds)
        self._arrived.clear()
        return [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST))]

    def settled(self, position: Any) -> None:
        """Journal files that end before *position* are removed."""
        self._journal.trim(position or 0)

    def close(self) -> None:
        """The session stays with the broker, which keeps what comes."""
        self._closed = True
        self._client.disconnect()
        self._client.loop_stop()
        self._journal.close()


class _CsvLines:
    """Lines of CSV as JSON objects, named by the header, which is the first of them."""

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._names: list[str] | None = None

    def records(self, lines: list[bytes]) -> list[bytes]:
        out = []
        for line in lines:
            cells = next(csv.reader([line.decode("utf-8", "replace")], delimiter=self._separator), [])
            if self._names is None:
                self._names = [cell.strip().lstrip("\ufeff") for cell in cells]
            elif len(cells) != len(self._names):
                out.append(b"ragged" if cells else b"")  # no JSON object: counted as broken
            else:
                out.append(json.dumps(dict(zip(self._names, cells, strict=True))).encode())
        return out


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


def _some_of(entries: Iterator[Any]) -> list[Any]:
    return [entry for _, entry in zip(range(MOST), entries, strict=False)]
