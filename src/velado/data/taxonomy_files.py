"""The taxonomy files that a schema names, read from the schema's own folder and from nowhere else.

A schema or recipe may come from somebody else. What it names is read into the recipe and the report, so a path that
leads out of its folder (absolute, with `..`, or through a link) would let its author have any file copied. Such a
path is refused before anything is read, and taxonomies of columns that are never generalized are not read at all.
"""

from __future__ import annotations

import csv
import hashlib
import os
import stat
import tomllib
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from velado.data.schema import Column, Schema, TaxonomySpec
from velado.errors import SchemaError, TaxonomyError
from velado.text import say


def attach_taxonomies(schema: Schema, folder: Path) -> Schema:
    """The schema with the taxonomy files of its used columns read from *folder*; no path may lead out of it."""
    columns = []
    for column in schema.columns.values():
        spec = column.taxonomy
        if spec is not None and spec.file is not None and spec.paths is None and spec.tree is None:
            # A path that leads out is refused even where it would not be followed: nobody meant well with it.
            place = contained(spec.file, folder, column.name)
            if is_used(column):
                column = replace(column, taxonomy=_read(spec, place, column.name))
        columns.append(column)
    return schema.with_columns(columns)


def is_used(column: Column) -> bool:
    """Whether any step reads the column's taxonomy: an identifier's or a held-back column's is never looked at."""
    return column.published or column.role == "sensitive"


def contained(file: object, folder: Path, column: str) -> Path:
    """The true place of *file* below *folder*, or a SchemaError where it leads out of it."""
    if not isinstance(file, str) or not file.strip() or any(ord(c) < 32 or ord(c) == 127 for c in file):
        raise SchemaError(
            say("The taxonomy of column '{column}' is no name of a file.", column=column),
            "It is empty, no text, or has characters that no file name has.",
            "Write the path of the taxonomy file, relative to the schema file.",
        )
    for path in (PurePosixPath(file), PureWindowsPath(file)):
        # The rules of both systems hold on either: the same schema must be as safe on another machine.
        if path.root or path.drive or ".." in path.parts:
            raise _leads_out(column)
    try:
        home = folder.resolve()
        place = (home / file).resolve()
    except (OSError, RuntimeError, ValueError):
        raise _unreadable(column) from None
    if not place.is_relative_to(home):
        raise _leads_out(column)
    return place


def _leads_out(column: str) -> SchemaError:
    return SchemaError(
        say("The taxonomy file of column '{column}' lies outside the folder of the schema.", column=column),
        "A schema from elsewhere could have any file of this machine copied into the release's papers.",
        "Put the file beside the schema or in a folder below, and name it without '..', a leading slash or a link that leads out.",
    )


def _unreadable(column: str) -> TaxonomyError:
    return TaxonomyError(
        say("The taxonomy file of column '{column}' cannot be read.", column=column),
        "The column cannot be generalized without it.",
        "Check that the path names a file, and the permissions.",
    )


def _bytes_of(path: Path, column: str) -> bytes:
    try:
        # The links were followed when the place was checked; one put there since is not. A device or a pipe would
        # make the run wait for ever, so the file is opened without waiting and looked at first.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise _unreadable(column)
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        raise TaxonomyError(
            say(
                "The taxonomy file of column '{column}' is not there ('{path}').",
                column=column,
                path=path.name,
            ),
            "The column cannot be generalized without it.",
            "Paths are relative to the schema file; correct the path or add the file.",
        ) from None
    except OSError:
        raise _unreadable(column) from None


def _read(spec: TaxonomySpec, path: Path, column: str) -> TaxonomySpec:
    data = _bytes_of(path, column)
    digest = hashlib.sha256(data).hexdigest()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TaxonomyError(
            say("The taxonomy file of column '{column}' is not UTF-8 text.", column=column),
            "Its labels would not match the table.",
            "Save it as UTF-8.",
        ) from None
    if spec.builder == "tree":
        try:
            return replace(spec, tree=tomllib.loads(text), digest=digest)
        except tomllib.TOMLDecodeError as problem:
            raise TaxonomyError(
                say(
                    "The taxonomy file of column '{column}' is not valid TOML: {problem}.",
                    column=column,
                    problem=problem,
                ),
                "Nothing was read.",
                "Correct that place.",
            ) from None
    return replace(spec, paths=_paths(text, spec, column), digest=digest)


def _paths(text: str, spec: TaxonomySpec, column: str) -> tuple[tuple[str, ...], ...]:
    lines = [line for line in text.splitlines() if line.strip()]
    separator = spec.options.get("separator")
    try:
        if separator is None and lines:
            separator = max(
                (";", ",", "\t", "|"), key=lambda s: len(next(csv.reader([lines[0]], delimiter=s)))
            )
        rows = list(csv.reader(lines, delimiter=separator or ";"))
    except csv.Error:
        raise TaxonomyError(
            say("The taxonomy file of column '{column}' is not a regular CSV file.", column=column),
            "A label in it is too long or a quote is never closed.",
            "Correct the file: one value per line, narrowest label first.",
        ) from None
    return tuple(tuple(cell.strip() for cell in row) for row in rows)


__all__ = ["attach_taxonomies", "contained", "is_used"]
