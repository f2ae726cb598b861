"""Files as a source: they can be read again, so the position is all that a killed stream needs."""

from __future__ import annotations

import glob
import hashlib
import os
import time
from pathlib import Path
from typing import Annotated, Any, ClassVar

from velado.errors import InputError
from velado.release.stream.connectors.connector import MOST, Arrived, Place, SourceKind
from velado.release.stream.connectors.csv_lines import CsvLines
from velado.settings import Setting, settings
from velado.text import say

_START = 1024
"""Bytes at the beginning of a file by which it is known again."""


@settings(section="source")
class Files(SourceKind):
    """Lines of files.

    >>> Files(path="in.jsonl").whole, Files(path="in.jsonl", follow=True).whole
    (True, False)
    """

    name: ClassVar[str] = "files"
    again: ClassVar[bool] = False
    path: Annotated[str, Setting("a file, or a pattern of files read in the order of their names", items=1)]
    follow: Annotated[bool, Setting("wait for more at the end of the last file")] = False

    @property
    def whole(self) -> bool:
        """They end, unless more is waited for."""
        return not self.follow

    def open(self, place: Place, position: Any) -> FilesSource:
        """Read on from what was read of each."""
        separator = place.separator if place.asked.record.format == "csv" else None
        return FilesSource(self, place.folder, separator, position)


class FilesSource:
    """The lines of files in the order of their paths. The position has, for each, how many bytes were read, and how it begins.

    A file that comes later is read whatever its name, and one that grew is read on; a file that is shorter than what was read of it, or
    begins otherwise, is another one under its name, and an error.
    """

    def __init__(self, asked: Files, folder: Path, separator: str | None, position: Any) -> None:
        self.ended = False
        self._folder, self._pattern = folder, str(folder / asked.path)
        self._follow, self._separator = asked.follow, separator
        files = self._files()
        self._read = self._read_before(position, files)
        if not files and not self._follow:
            raise InputError(
                say("There is no file '{path}' to read records from.", path=asked.path),
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
            header = None if self._separator is None else CsvLines(self._separator)
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
