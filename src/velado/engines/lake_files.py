"""Which files are a table's, by a path, a folder or a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePath

from velado.engines.places import ARROW, CSV, PARQUET
from velado.errors import TableError
from velado.text import say

_BESIDE = (
    *(".md", ".rst", ".html", ".pdf", ".crc", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".log", ".sql"),
    *(".py", ".r", ".sh", ".ipynb", ".png", ".svg", ".jpg"),
)
_PAPERS = ("README", "LICENSE", "LICENCE", "CHANGELOG", "NOTICE", "MAKEFILE")
"""What lies beside tables and holds no rows: anything else that a folder does not stand for is refused by name."""


def lake_files(place: str | Path) -> list[Path]:
    """The files that a path, a folder or a pattern names, sorted; a folder stands for all CSV, Parquet or Arrow files below it.

    >>> lake_files("no/such/*.parquet")
    Traceback (most recent call last):
    velado.errors.TableError: No file matches 'no/such/*.parquet'. Nothing was read. Check the path; quote a pattern so that the shell leaves it alone.
    """
    text = str(place)
    if os.path.isfile(text):
        return [Path(text)]
    root = lake_root(text)
    if os.path.isdir(text):
        below = [Path(folder, name) for folder, _, names in os.walk(text) for name in names]
        found = [path for path in below if _is_table(path, root)]
        _refuse_tables_not_read(below, root)
    else:
        rest = Path(text).parts[len(root.parts) :]
        # A link that leads nowhere is a part that cannot be read, and is refused by whoever reads it.
        below = [root / name for name in glob.glob(os.path.join("", *rest), root_dir=root, recursive=True)]
        found = [path for path in below if not path.is_dir() and not is_hidden(path, root, rest)]
    if not found and os.path.isdir(text):
        raise TableError(
            say("The folder '{place}' holds no table.", place=root.name),
            "A folder stands for the CSV, Parquet and Arrow files below it; those whose names begin with _ or . are left out.",
            "Check the path.",
        )
    if not found:
        raise TableError(
            say("No file matches '{place}'.", place=text),
            "Nothing was read.",
            "Check the path; quote a pattern so that the shell leaves it alone.",
        )
    return sorted(found)


def lake_root(place: str | Path) -> Path:
    """The folder that a path, a folder or a pattern begins at; folders below it may tell columns.

    >>> lake_root("lake/year=*/*.parquet").name, lake_root("lake/year=2024/*.parquet").name
    ('lake', 'year=2024')
    """
    text = str(place)
    if os.path.isdir(text):
        return Path(text)
    root = Path()
    for part in Path(text).parts[:-1]:
        # A folder that is called so is no pattern.
        if glob.has_magic(part) and not (root / part).is_dir():
            break
        root /= part
    return root


def _refuse_tables_not_read(below: Sequence[Path], root: Path) -> None:
    """Nothing, unless files lie in the folder that may hold rows and are not read: these would be missing without a word."""
    rest = [
        path
        for path in below
        if not is_hidden(path, root, ()) and not _is_table(path, root) and _may_hold_rows(path.name)
    ]
    if rest:
        raise TableError(
            say(
                "'{name}' is not read as a part of a folder ({count:,} such files).",
                name=min(rest).relative_to(root),
                count=len(rest),
            ),
            "A folder stands for its CSV, Parquet and Arrow files; the rows of others would be missing.",
            "Unpack or convert them, move them away, or name the files by a pattern.",
        )


def _may_hold_rows(name: str) -> bool:
    # Whatever its ending, or without one: Hadoop calls a part of a table part-00001.
    return PurePath(name).suffix.lower() not in _BESIDE and PurePath(name).stem.upper() not in _PAPERS


def _is_table(path: Path, root: Path) -> bool:
    return not is_hidden(path, root, ()) and path.suffix.lower() in (*PARQUET, *CSV, *ARROW)


def is_hidden(path: PurePath, root: PurePath, asked: Sequence[str]) -> bool:
    """Whether a file below *root* is none of the table's, by its name or that of a folder, unless a part of the pattern *asked* for it.

    >>> is_hidden(Path("lake/_temporary/0/a.parquet"), Path("lake"), ["**", "*.parquet"])
    True
    """
    # Writers of lakes leave _SUCCESS, .crc and folders of unfinished work beside the data; who asks for them gets them.
    named = [part for part in asked if part[:1] in ("_", ".")]
    return any(
        part[:1] in ("_", ".") and not any(fnmatch(part, own) for own in named)
        for part in path.relative_to(root).parts
    )
