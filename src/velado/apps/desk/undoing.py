"""The last edits of hierarchies, so that each can be undone: what stood before, for as long as nothing else was done to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from velado.apps.desk.project import Project, digest_of
from velado.data.schema import Column, Schema
from velado.data.staging import put_file
from velado.errors import InputError

MOST = 30
"""So many edits of a column are kept."""


def keep(project: Project, before: Column, after: Column) -> None:
    """The edit can be undone."""
    if before != after:
        kept = [*_kept(project, before.name), {"before": _entry(before), "after": digest_of(_entry(after))}]
        put_file(_file(project, before.name), json.dumps(kept[-MOST:]).encode(), private=True)


def can_undo(project: Project, column: Column) -> bool:
    """Whether the column is as its last edit left it."""
    kept = _kept(project, column.name)
    return bool(kept) and kept[-1]["after"] == digest_of(_entry(column))


def undone(project: Project, schema: Schema, name: str) -> Schema:
    """The schema as it was before the last edit of the column's hierarchy."""
    column = schema.columns[name]
    if not can_undo(project, column):
        raise InputError(
            "There is nothing to undo.",
            "No edit of this hierarchy was kept, or the column was changed in another way since.",
            "Make the hierarchy anew, or take a level file.",
        )
    entry = _kept(project, name)[-1]["before"]
    back = Schema.from_dict({"columns": {name: entry["column"]}}).columns[name]
    if back.taxonomy is not None and entry["paths"] is not None:
        paths = tuple(tuple(path) for path in entry["paths"])
        back = replace(back, taxonomy=replace(back.taxonomy, paths=paths))
    return schema.with_columns({**schema.columns, name: back}.values())


def forget_last(project: Project, name: str) -> None:
    """The last edit was undone."""
    put_file(_file(project, name), json.dumps(_kept(project, name)[:-1]).encode(), private=True)


def _entry(column: Column) -> Mapping[str, Any]:
    paths = None if column.taxonomy is None else column.taxonomy.paths
    return {"column": column.to_dict(), "paths": None if paths is None else [list(path) for path in paths]}


def _file(project: Project, name: str) -> Path:
    return project.desk / "profiles" / f"undo-{digest_of(name)}.json"


def _kept(project: Project, name: str) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(_file(project, name).read_bytes())
    except (OSError, ValueError):
        return []  # what cannot be read cannot be undone; the hierarchy itself stands in the recipe
    return found
