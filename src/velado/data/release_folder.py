"""The folder of a release, read back: its table, what its manifest tells, and which original row each row is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from velado.data.io import read_table
from velado.data.staging import PRIVATE, PUBLIC

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
