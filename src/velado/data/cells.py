"""Results that survive an interruption: one small Parquet file per cell, each whole or not there at all.

A cell is found again by its id, whatever study it was computed for. Only one process at a time works in a folder; when
that process dies, by whatever means, the next one may.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from velado.data.folders import parquet_bytes, write_file
from velado.errors import OutputError

CELLS = "cells"
LOCK = ".lock"
STUDY_FILES = frozenset({CELLS, LOCK, "results.parquet", "study.json", "study.md", "study.html"})
"""What the folder of a study may hold; anything else means that it is somebody's, and is left alone."""

_CELL = re.compile(r"[0-9a-f]{24}\.parquet")


@dataclass(frozen=True)
class CellStore:
    """The cells of studies in *folder*, of the columns *schema*."""

    folder: Path
    schema: Mapping[str, Any]

    def begin(self) -> None:
        """The folder stands there and holds nothing but a study, or an error says what is wrong."""
        try:
            if self.folder.exists():
                odd = [path.name for path in self.folder.iterdir() if not _belongs(path.name)]
                if odd:
                    raise OutputError(
                        f"The folder '{self.folder.name}' holds {len(odd)} file(s) that are not of a study.",
                        "A study keeps its results in a folder of its own.",
                        "Choose another folder, or an empty one.",
                    )
            (self.folder / CELLS).mkdir(parents=True, exist_ok=True)
            for path in (self.folder / CELLS).iterdir():
                if path.name.startswith("."):  # half of a cell, left by a process that was killed
                    path.unlink()
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
            if not _locked(handle):
                raise OutputError(
                    f"Another process works on the study in '{self.folder.name}'.",
                    "Both would compute the same cells.",
                    "Wait until it has finished, or choose another folder.",
                )
            yield
        finally:
            os.close(handle)  # which also gives the lock back

    def put(self, row: Mapping[str, Any]) -> None:
        """The cell stands in its file."""
        frame = pl.DataFrame([row], schema=self.schema)
        write_file(self.folder / CELLS / f"{row['cell']}.parquet", parquet_bytes(frame), force=True)

    def known(self) -> set[str]:
        """The ids of all cells in the folder."""
        folder = self.folder / CELLS
        if not folder.is_dir():
            return set()
        return {path.stem for path in folder.iterdir() if _CELL.fullmatch(path.name)}

    def read(self, ids: Collection[str]) -> pl.DataFrame:
        """Those cells of *ids* that are there, in that order. A file that is none of ours counts as not there."""
        known = self.known()
        frames = [frame for name in ids if name in known and (frame := self._one(name)) is not None]
        return pl.concat(frames) if frames else pl.DataFrame(schema=self.schema)

    def settled(self, ids: Collection[str]) -> set[str]:
        """Those cells of *ids* that are there and need not be tried again."""
        found = self.read(ids)
        return set(found.filter(~found.get_column("again")).get_column("cell").to_list())

    def _one(self, name: str) -> pl.DataFrame | None:
        try:
            data = (self.folder / CELLS / f"{name}.parquet").read_bytes()
            frame = pl.read_parquet(io.BytesIO(data))
        except (OSError, pl.exceptions.PolarsError):
            return None
        fits = dict(frame.schema) == dict(self.schema) and frame.height == 1 and frame.item(0, "cell") == name
        return frame if fits else None

    def write(self, files: Mapping[str, bytes]) -> None:
        """The summaries of the study stand beside its cells; each is replaced whole."""
        for name, data in files.items():
            write_file(self.folder / name, data, force=True)


def _belongs(name: str) -> bool:
    return name in STUDY_FILES or any(name.startswith(f".{own}.") for own in STUDY_FILES)


def _locked(handle: int) -> bool:
    try:
        import fcntl
    except (
        ImportError
    ):  # Windows: an open file is not locked, and two studies in one folder compute cells twice
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(
        f"The folder '{folder.name}' cannot be used ({error.strerror or 'system error'}).",
        "A study writes each result as soon as it is known.",
        "Check the path, the permissions and the space left.",
    )
