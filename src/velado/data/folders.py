"""Writing: files and folders that are either whole or not there at all."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import polars as pl

from velado.errors import OutputError

Formulas = Literal["keep", "escape", "refuse"]

_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+\-]?\d+([.,]\d+)?([eE][+\-]?\d+)?$"


def count_formulas(frame: pl.DataFrame) -> int:
    """How many text cells a spreadsheet program would run as a formula."""
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    if not texts:
        return 0
    risky = frame.select((pl.col(texts).str.contains(_FORMULA) & ~pl.col(texts).str.contains(_NUMBER)).sum())
    return int(sum(value or 0 for value in risky.row(0)))


def csv_bytes(frame: pl.DataFrame, separator: str = ",", formulas: Formulas = "keep") -> bytes:
    """The frame as UTF-8 CSV. Text cells that look like formulas are kept, escaped with `'`, or refused."""
    if formulas != "keep":
        count = count_formulas(frame)
        if count and formulas == "refuse":
            raise OutputError(
                f"{count} cell(s) begin like a spreadsheet formula.",
                "A spreadsheet program would run them when the file is opened.",
                "Use --formulas escape to put an apostrophe before them, or --formulas keep.",
            )
        if count:
            texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
            risky = pl.col(texts).str.contains(_FORMULA) & ~pl.col(texts).str.contains(_NUMBER)
            frame = frame.with_columns(
                pl.when(risky).then("'" + pl.col(texts)).otherwise(pl.col(texts)).name.keep()
            )
    buffer = io.BytesIO()
    frame.write_csv(buffer, separator=separator)
    return buffer.getvalue()


def parquet_bytes(frame: pl.DataFrame) -> bytes:
    """The frame as Parquet."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def write_folder(folder: Path, files: Mapping[str, bytes], force: bool = False) -> Path:
    """All *files* stand in *folder*, or nothing was written.

    Written to a temporary folder beside the target, then renamed. An existing folder is an error unless
    *force*; then it is replaced as a whole, and put back if the replacement fails.
    """
    folder = Path(os.path.abspath(folder))
    if folder.exists() and not force:
        raise OutputError(
            f"The output folder '{folder.name}' exists already.",
            "Writing into it would mix two releases.",
            "Choose another folder, or pass --force to replace it.",
        )
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"'{folder.name}' is a file.", "A release is a folder.", "Choose another name.")
    if folder.is_dir() and any(folder.iterdir()) and not _is_release(folder):
        raise OutputError(
            f"'{folder.name}' holds other files than a release.",
            "Replacing it would delete them.",
            "Choose another folder, or empty this one first.",
        )
    scratch = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        scratch.chmod(0o755)
        for name, data in files.items():
            (scratch / name).write_bytes(data)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent)) / "release"
            folder.rename(old)
            try:
                scratch.rename(folder)
            except OSError:
                old.rename(folder)
                raise
            finally:
                shutil.rmtree(old.parent, ignore_errors=True)
        else:
            scratch.rename(folder)
    except OSError as error:
        raise OutputError(
            f"The folder '{folder.name}' cannot be written ({error.strerror or 'system error'}).",
            "Nothing was written.",
            "Check the path, the permissions and the space left.",
        ) from None
    finally:
        if scratch is not None and scratch.exists():
            shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _is_release(folder: Path) -> bool:
    return (folder / "manifest.json").exists()


def write_file(path: Path, data: bytes, force: bool = False) -> Path:
    """*data* stands in *path* whole, or nothing was written."""
    path = Path(path)
    if path.exists() and not force:
        raise OutputError(
            f"'{path.name}' exists already.",
            "It would be overwritten.",
            "Choose another name, or pass --force.",
        )
    scratch = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        scratch = Path(name)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        scratch.chmod(0o644)
        scratch.rename(path)
    except OSError as error:
        raise OutputError(
            f"'{path.name}' cannot be written ({error.strerror or 'system error'}).",
            "Nothing was written.",
            "Check the path, the permissions and the space left.",
        ) from None
    finally:
        if scratch is not None and scratch.exists():
            scratch.unlink()
    return path
