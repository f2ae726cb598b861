"""Results that survive an interruption: one small file per cell, each whole or not there at all.

A cell is found again by its id, whatever study it was computed for. Its file is the SHA-256 of what follows, a line end, and
one row of Parquet: a byte that changed on the disk is seen before anything reads the row. Only one process at a time works
in a folder; when that process dies, by whatever means, the next one may.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from velado.data.staging import locked, reason_of, write_file
from velado.data.table_bytes import parquet_bytes
from velado.errors import OutputError
from velado.text import say, say_n

CELLS = "cells"
LOCK = ".lock"
STUDY_FILES = frozenset({CELLS, LOCK, "results.parquet", "study.json", "study.md", "study.html"})
"""What the folder of a study may hold; anything else means that it is somebody's, and is left alone."""

SUFFIX = ".cell"
_CELL = re.compile(rf"[0-9a-f]{{24}}{re.escape(SUFFIX)}")


@dataclass(frozen=True, repr=False)
class KnownCells:
    """What a folder holds of the cells it was asked for; *damaged* ones have a file that is not what was written.

    >>> KnownCells(pl.DataFrame({"cell": ["a", "b"], "again": [False, True]}), damaged=0).settled
    {'a'}
    """

    frame: pl.DataFrame
    damaged: int

    @property
    def settled(self) -> set[str]:
        """The cells that need not be tried again."""
        return set(self.frame.filter(~self.frame.get_column("again")).get_column("cell").to_list())


@dataclass(frozen=True)
class CellStore:
    """The cells of studies in *folder*, of the columns *schema*.

    >>> CellStore(Path("no such folder"), {"cell": pl.String}).known()
    set()
    """

    folder: Path
    schema: Mapping[str, pl.DataType | type[pl.DataType]]

    def check(self) -> None:
        """The folder is free or holds nothing but a study, or an error says what is wrong; nothing is written."""
        try:
            above = next(path for path in (self.folder, *self.folder.absolute().parents) if path.exists())
            if not above.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            if self.folder.exists():
                odd = [path.name for path in self.folder.iterdir() if not _belongs(path.name)]
                if odd:
                    raise OutputError(
                        say_n(
                            "The folder '{folder}' holds {n} file that is not of a study.",
                            "The folder '{folder}' holds {n} files that are not of a study.",
                            len(odd),
                            folder=_name(self.folder),
                        ),
                        "A study keeps its results in a folder of its own.",
                        "Choose another folder, or an empty one.",
                    )
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def begin(self) -> None:
        """The folder stands there and holds nothing but a study, or an error says what is wrong."""
        self.check()
        try:
            (self.folder / CELLS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process works in the folder meanwhile, or an error; a dead process holds nothing."""
        try:
            handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        try:
            if not locked(handle):
                raise OutputError(
                    say("Another process works on the study in '{folder}'.", folder=_name(self.folder)),
                    "Both would compute the same cells.",
                    "Wait until it has finished, or choose another folder.",
                )
            self._clear()
            yield
        finally:
            os.close(handle)  # which also gives the lock back

    def _clear(self) -> None:
        """Halves of cells, left by a process that was killed, are gone; another's would be in the making."""
        try:
            for path in (self.folder / CELLS).glob(".*"):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def put(self, row: Mapping[str, object]) -> None:
        """The cell stands in its file."""
        frame = pl.DataFrame([row], schema=self.schema)
        data = parquet_bytes(frame)
        write_file(self._path(str(row["cell"])), _digest(data) + data, force=True)

    def known(self) -> set[str]:
        """The ids of all cells in the folder."""
        folder = self.folder / CELLS
        if not folder.is_dir():
            return set()
        return {path.stem for path in folder.iterdir() if _CELL.fullmatch(path.name)}

    def read(self, ids: Collection[str]) -> pl.DataFrame:
        """Those cells of *ids* that are there, in that order. A damaged file counts as not there."""
        return self.look(ids).frame

    def look(self, ids: Collection[str]) -> KnownCells:
        """Those cells of *ids* that are there, in that order, and how many have a damaged file instead."""
        known = self.known()
        frames = [self._one(name) for name in ids if name in known]
        whole = [frame for frame in frames if frame is not None]
        frame = pl.concat(whole) if whole else pl.DataFrame(schema=self.schema)
        return KnownCells(frame, len(frames) - len(whole))

    def settled(self, ids: Collection[str]) -> set[str]:
        """Those cells of *ids* that are there and need not be tried again."""
        return self.look(ids).settled

    def _path(self, name: str) -> Path:
        return self.folder / CELLS / f"{name}{SUFFIX}"

    def _one(self, name: str) -> pl.DataFrame | None:
        try:
            digest, line, data = self._path(name).read_bytes().partition(b"\n")
        except OSError:
            return None
        if digest + line != _digest(data):  # Polars may panic, or misread, what it did not write
            return None
        try:
            frame = pl.read_parquet(io.BytesIO(data))
        except pl.exceptions.PolarsError:
            return None
        fits = dict(frame.schema) == dict(self.schema) and frame.height == 1 and frame.item(0, "cell") == name
        return frame if fits else None

    def write(self, files: Mapping[str, bytes]) -> None:
        """The summaries of the study stand beside its cells; each is replaced whole."""
        for name, data in files.items():
            write_file(self.folder / name, data, force=True)


def _digest(data: bytes) -> bytes:
    """The line before the data of a cell."""
    return hashlib.sha256(data).hexdigest().encode() + b"\n"


def _name(folder: Path) -> str:
    """What a person calls the folder; "." has no name of its own."""
    return folder.absolute().name or str(folder)


def _belongs(name: str) -> bool:
    return name in STUDY_FILES or any(name.startswith(f".{own}.") for own in STUDY_FILES)


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(
        say(
            "The folder '{folder}' cannot be used ({reason}).", folder=_name(folder), reason=reason_of(error)
        ),
        "A study writes each result as soon as it is known.",
        "Check the path, the permissions and the space left.",
    )
