"""Writing: files and folders that are either whole or not there at all."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from velado.data.formulas import Formulas as Formulas
from velado.data.formulas import count_formulas as count_formulas
from velado.data.formulas import escape_formulas, refuse_formulas
from velado.data.staging import PRIVATE as PRIVATE
from velado.data.staging import fill, put_file, put_in_place, staging_folder, sweep, sync_folder
from velado.errors import OutputError

PUBLIC = "release"
"""The sub-folder that leaves the house; the other one, `private`, stays."""

MANIFEST = "manifest.json"
PUBLIC_FILES = frozenset({"table.csv", "table.parquet", MANIFEST, "about.html"})
"""What `release/` may hold beside the tables its manifest lists."""

PRIVATE_FILES = frozenset(
    {"report.html", "report.md", "report.json", "recipe.toml", "schema.toml"} | {"owner.key", "rows.csv"}
)
"""What `private/` may hold."""

FLAT_FILES = frozenset(
    {"table.csv", "table.parquet", MANIFEST}
    | {"report.html", "report.md", "report.json", "recipe.toml", "schema.toml"}
)
"""What a release without sub-folders may hold beside the tables its manifest lists."""


def csv_bytes(frame: pl.DataFrame, separator: str = ",", formulas: Formulas = "keep") -> bytes:
    """The frame as UTF-8 CSV. Headers and text cells like formulas are kept, escaped with `'`, or refused."""
    if formulas == "refuse":
        refuse_formulas(frame)
    elif formulas == "escape":
        frame = escape_formulas(frame)
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

    A name is a file's, or a sub-folder's and a file's (`release/table.csv`); what is in `private/` can be read
    by its owner alone, from the first moment. Everything is written to a private folder beside the target, brought
    to the disk, and put in place in one step. An existing folder is an error unless *force*; then it is replaced as
    a whole, and on Linux there is no moment without a whole release under the name. Only a release is ever
    replaced: see `refuse_folder`. Where *folder* is a link, what it points to is replaced and the link stays.
    What a killed run for the same folder has left is removed first.
    """
    folder = Path(os.path.abspath(folder))
    reads = list(reads)
    _refuse_names(files)
    target = Path(os.path.realpath(folder))
    sweep(target)
    refuse_folder(folder, force, reads)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staging_folder(target) as staging:
            new = fill(staging, files)
            refuse_folder(folder, force, reads)  # writing took time, and somebody may have put a file there
            put_in_place(new, target, replace=force)
            _settle(target)
    except OSError as error:
        raise OutputError(
            f"The folder '{folder.name}' cannot be written ({error.strerror or 'system error'}).",
            "Nothing was written.",
            "Check the path, the permissions and the space left.",
        ) from None
    return folder


def _refuse_names(names: Iterable[str]) -> None:
    for name in names:
        parts = name.split("/")
        odd = any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts)
        if odd or len(parts) > 2:
            raise OutputError(
                f"{name!r} is no name for a file of a release.",
                "A file stands in the release folder or in one sub-folder of it.",
                "Give a plain name, or one like 'release/table.csv'.",
            )


def _settle(target: Path) -> None:
    """The name of *target* is on the disk."""
    try:
        sync_folder(target.parent)
    except OSError as error:
        raise OutputError(
            f"'{target.name}' was written, but the disk did not confirm it ({error.strerror or 'system error'}).",
            "It may be gone after a loss of power.",
            "Check the disk, and write it again with --force.",
        ) from None


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
    try:
        replaceable = not any(target.iterdir()) or _is_release(target)
    except OSError as error:
        raise OutputError(
            f"The output folder '{name}' cannot be looked into ({error.strerror or 'system error'}).",
            "What it holds may not be a release.",
            "Choose another folder, or check its permissions.",
        ) from None
    if not replaceable:
        raise OutputError(
            f"'{name}' holds other files than a release.",
            "Replacing it would delete them.",
            "Choose another folder, or empty this one first.",
        )


def _is_release(folder: Path) -> bool:
    nested = any(entry.name in (PUBLIC, PRIVATE) for entry in folder.iterdir())
    found: list[Path] = []
    for entry in folder.iterdir():
        inside = nested and entry.name in (PUBLIC, PRIVATE) and entry.is_dir() and not entry.is_symlink()
        found += entry.iterdir() if inside else [entry]
    if not all(path.is_file() and not path.is_symlink() for path in found):
        return False
    public = folder / PUBLIC if nested else folder
    listed = _listed(public / MANIFEST)
    if listed is None:
        return False
    known = {public / name for name in listed | (PUBLIC_FILES if nested else FLAT_FILES)}
    known |= {folder / PRIVATE / name for name in PRIVATE_FILES if nested}
    return known.issuperset(found)


def _listed(manifest: Path) -> set[str] | None:
    """The tables that a manifest of ours lists; None where it is not ours."""
    # A manifest.json alone proves nothing: many programs write one.
    try:
        document = json.loads(manifest.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("manifest_version"), int):
        return None
    tables = document.get("tables")
    entries = [document, *tables.values()] if isinstance(tables, dict) else [document]
    outputs = [entry.get("output") for entry in entries if isinstance(entry, dict)]
    files = {str(output["file"]) for output in outputs if isinstance(output, dict) and "file" in output}
    return {Path(file).name for file in files if file in (Path(file).name, f"{PUBLIC}/{Path(file).name}")}


def write_file(path: Path, data: bytes, force: bool = False, private: bool = False) -> Path:
    """*data* stands in *path* whole and on the disk, or nothing was written.

    *private*: only its owner could ever read it, and what a killed run has left of it is removed.
    """
    path = Path(path)
    if path.exists() and not force:
        raise OutputError(
            f"'{path.name}' exists already.",
            "It would be overwritten.",
            "Choose another name, or pass --force.",
        )
    if private:
        sweep(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        put_file(path, data, private)
        _settle(path)
    except OSError as error:
        raise OutputError(
            f"'{path.name}' cannot be written ({error.strerror or 'system error'}).",
            "Nothing was written.",
            "Check the path, the permissions and the space left.",
        ) from None
    return path
