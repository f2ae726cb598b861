"""Writing: files and folders that are either whole or not there at all."""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import polars as pl

from velado.errors import OutputError

Formulas = Literal["keep", "escape", "refuse"]

RELEASE_FILES = frozenset(
    {
        "table.csv",
        "table.parquet",
        "report.html",
        "report.md",
        "report.json",
        "manifest.json",
        "recipe.toml",
        "schema.toml",
    }
)
"""What a release folder may hold beside the tables its manifest lists."""

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


def write_folder(
    folder: Path, files: Mapping[str, bytes], force: bool = False, reads: Iterable[Path] = ()
) -> Path:
    """All *files* stand in *folder*, or nothing was written.

    Written to a temporary folder beside the target, then renamed. An existing folder is an error unless
    *force*; then it is replaced as a whole, and put back if the replacement fails. Only a release is ever
    replaced: see `refuse_folder`. Where *folder* is a link, what it points to is replaced and the link stays.
    """
    folder = Path(os.path.abspath(folder))
    refuse_folder(folder, force, reads)
    target = Path(os.path.realpath(folder))
    scratch = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        scratch.chmod(0o755)
        for name, data in files.items():
            (scratch / name).write_bytes(data)
        if target.exists():
            _replace(target, scratch)
        else:
            scratch.rename(target)
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


def _replace(target: Path, scratch: Path) -> None:
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    old = aside / "release"
    try:
        target.rename(old)
        try:
            scratch.rename(target)
        except OSError:
            old.rename(target)
            raise
    except OSError:
        if not old.exists():  # if the old release could not be put back, it stays where it is
            aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)


def refuse_folder(folder: Path, force: bool = False, reads: Iterable[Path] = ()) -> None:
    """Nothing, if a release may be written to *folder*; else an error, before any work is done.

    An existing folder is replaced only with *force*, only if all it holds are files of a release, and only if
    none of them is a file this run *reads*: what a person put there is never deleted.
    """
    folder = Path(os.path.abspath(folder))
    name = folder.name or str(folder)
    # os.path answers False where a name cannot exist at all; writing then gives the error.
    if not os.path.exists(folder):
        return
    if not os.path.isdir(folder):
        raise OutputError(f"'{name}' is a file.", "A release is a folder.", "Choose another name.")
    if not force:
        raise OutputError(
            f"The output folder '{name}' exists already.",
            "Writing into it would mix two releases.",
            "Choose another folder, or pass --force to replace it.",
        )
    target = Path(os.path.realpath(folder))
    if Path(os.path.realpath(os.curdir)).is_relative_to(target):
        raise OutputError(
            f"The output folder '{name}' is the one the command runs in, or holds it.",
            "It cannot be replaced from inside.",
            "Choose another folder, or run the command from elsewhere.",
        )
    for path in reads:
        if Path(os.path.realpath(path)).is_relative_to(target):
            raise OutputError(
                f"The output folder '{name}' holds '{Path(path).name}', which this run reads.",
                "Replacing the folder would delete it.",
                "Choose another folder, or keep that file elsewhere.",
            )
    if any(target.iterdir()) and not _is_release(target):
        raise OutputError(
            f"'{name}' holds other files than a release.",
            "Replacing it would delete them.",
            "Choose another folder, or empty this one first.",
        )


def _is_release(folder: Path) -> bool:
    # A manifest.json alone proves nothing: many programs write one.
    try:
        document = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError):
        return False
    if not isinstance(document, dict) or not isinstance(document.get("manifest_version"), int):
        return False
    tables = document.get("tables")
    listed = [document, *tables.values()] if isinstance(tables, dict) else [document]
    outputs = [entry.get("output") for entry in listed if isinstance(entry, dict)]
    known = {str(output["file"]) for output in outputs if isinstance(output, dict) and "file" in output}
    known |= RELEASE_FILES
    return all(p.name in known and p.is_file() and not p.is_symlink() for p in folder.iterdir())


def write_file(path: Path, data: bytes, force: bool = False, private: bool = False) -> Path:
    """*data* stands in *path* whole, or nothing was written; *private*: only its owner could ever read it."""
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
        if not private:
            scratch.chmod(0o644)  # it was made with mode 0600
        scratch.replace(path)
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
