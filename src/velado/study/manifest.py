"""The manifest of a release: what was made from what, with which promise, and how; never a cell value."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean
from typing import Any

from velado.data.keys import Key, content_of
from velado.data.schema import Schema
from velado.data.table import Table
from velado.release.release import Release

VERSION = 2
DECIMALS = 3
LIBRARIES = ("numpy", "numba", "scipy", "polars")


def manifest(
    release: Release,
    source: Table,
    key: Key,
    table_file: str,
    table_sha256: str,
    population: Table | None = None,
    formulas: int = 0,
    escaped: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Everything an auditor needs to know of a release, without values, times or durations.

    It leaves with the table, so it holds nothing of the original but its size and the names of its columns: the
    input and the taxonomies are named by fingerprints under the owner's *key*, which nobody else can test guesses
    with, and the loss is the one that the published table shows. The same run gives the same manifest.
    """
    facts = release.to_dict()
    doors = ("column", "columns", "reveals", "kind", "accepted")
    losses = release.public_losses
    return {
        "manifest_version": VERSION,
        "velado": package_version("velado"),
        "libraries": {"python": platform.python_version(), **{n: package_version(n) for n in LIBRARIES}},
        "input": {
            "keyed_sha256": input_digest(source, key),
            "key": key.fingerprint,
            "rows": source.rows,
            "columns": source.frame.columns,
        },
        "population": None
        if population is None
        else {"keyed_sha256": input_digest(population, key), "rows": population.rows},
        "schema": public_schema(release.table.schema, key),
        "promise": {
            "type": release.promise,
            "verdicts": facts["promise"]["verdicts"],
            "readings_of_blanks": facts["promise"]["readings_of_blanks"],
        },
        "side_doors": [
            {name: door[name] for name in doors if name in door} for door in facts["promise"]["side_doors"]
        ],
        "signed_columns": facts["promise"]["signed_columns"],
        "warnings": list(release.prepared.warnings),
        "cells_like_formulas": formulas,
        "how": {name: value for name, value in facts["how"].items() if name != "notes"},
        "metrics": {
            "rows": release.aligned.height,
            "ncp": coarse({"overall": fmean(losses.values()), "by_column": losses}),
            "domain": "declared bounds, else the range of the published rows; suppressed rows count 1",
        },
        "output": {
            "file": table_file,
            "sha256": table_sha256,
            "rows": release.aligned.height,
            "columns": release.aligned.columns,
            "escaped_names": dict(escaped or {}),
            "row_order": facts["result"]["row_order"],
            "suppressed_rows": release.suppressed,
        },
    }


def coarse(figures: Any) -> Any:
    """Numbers to three decimals: a loss in full precision depends on withheld rows, and guesses of them could be tried."""
    if isinstance(figures, Mapping):
        return {name: coarse(value) for name, value in figures.items()}
    return round(figures, DECIMALS) if isinstance(figures, float) else figures


def input_digest(table: Table, key: Key) -> str:
    """The table's fingerprint under the owner's key: that of its file's bytes, or of its cells where it had none."""
    return key.digest(bytes.fromhex(table.fingerprint) if table.fingerprint else content_of(table.frame))


def manifest_json(document: Mapping[str, Any]) -> bytes:
    """The manifest as it stands in the folder."""
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def package_version(name: str) -> str:
    """The installed version, or "not installed" where the package runs from its source tree."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def public_schema(schema: Schema, key: Key) -> dict[str, Any]:
    """The schema with each taxonomy replaced by its builder, options and keyed digest: its labels are values."""
    document = schema.to_dict()
    for name, column in schema.columns.items():
        spec = column.taxonomy
        if spec is None:
            continue
        entry: dict[str, Any] = {"builder": spec.builder, **spec.options}
        content = spec.tree if spec.tree is not None else spec.paths
        if content is not None:
            text = json.dumps(content, ensure_ascii=False, sort_keys=True)
            entry["keyed_sha256"] = key.digest(text.encode())
        document["columns"][name]["taxonomy"] = entry
    return document
