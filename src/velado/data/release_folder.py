"""The folder of a release, read back: its table, what its manifest tells, and which original row each row is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from velado.data.io import read_table
from velado.data.staging import PRIVATE, PUBLIC, reason_of
from velado.errors import InputError, TableError
from velado.text import say

TABLES = ("table.csv", "table.parquet")
Chosen = Literal["auto", "value", "class"]


@dataclass(frozen=True, kw_only=True)
class ReleaseFolder:
    """A release as its files tell it; a table that stands alone has no manifest.

    *substitutions* says how texts were chosen, "auto" where nobody says. *drawn*: the rows were put in a drawn order,
    or, if False, stand in that of the input; None where nobody says. *rows* is the original row of each in a drawn
    order, where the private part is at hand.

    >>> ReleaseFolder(table=Path("out/release/table.csv"), drawn=True).rows is None
    True
    """

    table: Path
    substitutions: Chosen = "auto"
    drawn: bool | None = None
    rows: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class PublishedFolder:
    """A release was written to *folder*: one part of it may leave, the other stays.

    >>> PublishedFolder(folder=Path("out")).public.as_posix()
    'out/release'
    """

    folder: Path

    @property
    def public(self) -> Path:
        """The folder that may leave."""
        return self.folder / PUBLIC

    @property
    def private(self) -> Path:
        """The folder that stays."""
        return self.folder / PRIVATE


def read_folder(release: Path) -> ReleaseFolder:
    """The release of a folder that `anonymize` made, or of a published table.

    >>> read_folder(Path("alone.csv"))
    ReleaseFolder(table=PosixPath('alone.csv'), substitutions='auto', drawn=None, rows=None)
    """
    folder = release if release.is_dir() else release.parent
    tables = [place / name for place in (release / PUBLIC, release) for name in TABLES]
    # A manifest speaks of its own table; another file that lies beside it is nobody's.
    manifest = _manifest(folder) if release.is_dir() or release.name in TABLES else {}
    output = manifest.get("output")
    order = output.get("row_order") if isinstance(output, dict) else None
    drawn = None if order is None else order == "drawn"
    numbers = next((place for place in _row_files(folder) if drawn and place.is_file()), None)
    return ReleaseFolder(
        table=next((place for place in tables if place.is_file()), release),
        substitutions=_substitutions(manifest),
        drawn=drawn,
        rows=None if numbers is None else read_table(numbers).frame["row"].cast(int).to_numpy() - 1,
    )


def _row_files(folder: Path) -> tuple[Path, ...]:
    return folder / PRIVATE / "rows.csv", folder.parent / PRIVATE / "rows.csv"


def _manifest(folder: Path) -> Mapping[str, object]:
    """The manifest in a folder, or of a release; nothing where there is none that can be read."""
    path = next((one for one in (folder / PUBLIC, folder) if (one / "manifest.json").is_file()), None)
    try:
        document = {} if path is None else json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return {}
    return document if isinstance(document, dict) else {}


def _substitutions(manifest: Mapping[str, object]) -> Chosen:
    how = manifest.get("how")
    method = how.get("method") if isinstance(how, dict) else None
    if not isinstance(method, dict):
        return "auto"
    name, profile, recoder = (method.get(key) for key in ("name", "profile", "recoder"))
    if name in ("das", "fixed-interval"):
        return "value"
    recoder = recoder or ("centroid" if profile == "paper" else "cover")
    return "auto" if recoder == "cover" else "class"


@dataclass(frozen=True, kw_only=True, repr=False)
class ReleaseFiles:
    """The parts of a release folder that evidence is made from.

    >>> ReleaseFiles(manifest={}, manifest_sha256="", table=Path("t.csv"), recipe=Path("r.toml"), measured=None).table.name
    't.csv'
    """

    manifest: Mapping[str, Any]
    manifest_sha256: str
    table: Path
    recipe: Path
    measured: Mapping[str, Any] | None


def read_release_files(folder: Path) -> ReleaseFiles:
    """What stands in a folder that `publish` made, or an error: it is none, or it lacks its private part.

    >>> read_release_files(Path("no-such-folder"))
    Traceback (most recent call last):
    velado.errors.InputError: 'no-such-folder' is not the folder of a release of one table. A pack is made from its manifest, its recipe and its table. Give the folder that `velado anonymize -o` wrote, with its private part.
    """
    manifest = _manifest(folder)
    output = manifest.get("output")
    name = output.get("file") if isinstance(output, dict) else None
    recipe = folder / PRIVATE / "recipe.toml"
    table = folder / PUBLIC / str(name)
    if name not in TABLES or not table.is_file() or not recipe.is_file():
        raise InputError(
            say("'{folder}' is not the folder of a release of one table.", folder=folder.name),
            "A pack is made from its manifest, its recipe and its table.",
            "Give the folder that `velado anonymize -o` wrote, with its private part.",
        )
    measured = folder / PRIVATE / "measured.json"
    try:
        figures = json.loads(measured.read_text(encoding="utf-8")) if measured.is_file() else None
    except (ValueError, OSError, RecursionError):
        raise InputError(
            "The figures in the release's private folder (measured.json) cannot be read.",
            "They are a part of the evidence.",
            "Publish the table again, or take the file away: the pack then says that they are missing.",
        ) from None
    return ReleaseFiles(
        manifest=manifest,
        manifest_sha256=hashlib.sha256((folder / PUBLIC / "manifest.json").read_bytes()).hexdigest(),
        table=table,
        recipe=recipe,
        measured=figures,
    )


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """The bytes of a file; one larger than *most* bytes is refused unread.

    >>> read_bytes(Path("no-such-file"))
    Traceback (most recent call last):
    velado.errors.TableError: 'no-such-file' cannot be read (No such file or directory). Nothing was read. Check the path and the permissions.
    """
    try:
        with path.open("rb") as file:
            content = file.read() if most is None else file.read(most + 1)
    except (OSError, ValueError) as error:
        raise TableError(
            say("'{path}' cannot be read ({reason}).", path=path.name, reason=reason_of(error)),
            "Nothing was read.",
            "Check the path and the permissions.",
        ) from None
    if most is not None and len(content) > most:
        raise InputError(
            say("'{path}' is larger than {most:,} bytes.", path=path.name, most=most),
            "It is some other file.",
            "Check the path.",
        )
    return content
