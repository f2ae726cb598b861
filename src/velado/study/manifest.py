"""The manifest of a release: what was made from what, with which promise, and how; never a cell value."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from velado.anonymize.release import Release
from velado.data.schema import Schema
from velado.data.table import Table

VERSION = 1
LIBRARIES = ("numpy", "numba", "scipy", "polars")


def manifest(
    release: Release,
    source: Table,
    fingerprint: str,
    scores: Mapping[str, Any],
    table_file: str,
    table_sha256: str,
    population: Table | None = None,
    formulas: int = 0,
) -> dict[str, Any]:
    """Everything an auditor needs to know of a release, without values, times or durations.

    *source* is the input as read, *fingerprint* its SHA-256, *scores* what `Scores.to_dict` gives (it holds no
    cell value). The same run gives the same manifest.
    """
    facts = release.to_dict()
    return {
        "manifest_version": VERSION,
        "velado": package_version("velado"),
        "libraries": {"python": platform.python_version(), **{n: package_version(n) for n in LIBRARIES}},
        "input": {
            "sha256": fingerprint,
            "rows": source.rows,
            "columns": source.frame.columns,
        },
        "population": None
        if population is None
        else {"sha256": population.fingerprint, "rows": population.rows},
        "schema": public_schema(release.table.schema),
        "promise": {
            "type": release.promise,
            "verdicts": facts["promise"]["verdicts"],
            "readings_of_blanks": facts["promise"]["readings_of_blanks"],
        },
        "side_doors": facts["promise"]["side_doors"],
        "warnings": facts["promise"]["warnings"],
        "cells_like_formulas": formulas,
        "how": facts["how"],
        "metrics": dict(scores),
        "output": {
            "file": table_file,
            "sha256": table_sha256,
            "rows": release.frame.height,
            "columns": release.frame.columns,
            "suppressed_rows": release.suppressed,
        },
    }


def manifest_json(document: Mapping[str, Any]) -> bytes:
    """The manifest as it stands in the folder."""
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def package_version(name: str) -> str:
    """The installed version, or "not installed" where the package runs from its source tree."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def public_schema(schema: Schema) -> dict[str, Any]:
    """The schema with each taxonomy replaced by its builder, options and digest: its labels are values."""
    document = schema.to_dict()
    for name, column in schema.columns.items():
        spec = column.taxonomy
        if spec is None:
            continue
        entry: dict[str, Any] = {"builder": spec.builder, **spec.options}
        if spec.digest is not None:
            entry["sha256"] = spec.digest
        elif spec.tree is not None:
            text = json.dumps(spec.tree, ensure_ascii=False, sort_keys=True)
            entry["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        document["columns"][name]["taxonomy"] = entry
    return document
