"""What a table looks like, as a worker found it once and every page shows it: `.desk/profiles/KEY/`.

    profile.json   columns with their findings and bars, who a person may be, the first rows    sample.parquet   evenly spaced rows
    codes.npz      a code for every cell, for the live counter

The server holds none of the table's rows but the few it shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.inspect import Inspection, inspect
from velado.data.io import read_table
from velado.data.normal import value_codes
from velado.data.schema import Schema
from velado.data.separation import PresentExposure, exposure_of, visible_codes
from velado.data.staging import put_file
from velado.data.table import Table
from velado.text import LANGUAGES, told

FIRST_ROWS = 12
SAMPLE_ROWS = 5_000
_BARS = 8
_LONGEST_CELL = 120


def read(path: Path, reading: Mapping[str, Any]) -> Table:
    """The table of a file, read as a person said it is, and as it shows otherwise."""
    encoding, separator = reading.get("encoding"), reading.get("separator")
    if separator is None:
        return read_table(path, encoding=encoding, sheet=reading.get("sheet"))
    asked = Schema({}, separator=separator, encoding=encoding or "utf-8")
    return read_table(path, asked, "keep", encoding=encoding, sheet=reading.get("sheet"))


def make(path: Path, reading: Mapping[str, Any], folder: Path) -> None:
    """The profile of a file stands in *folder*."""
    table = read(path, reading)
    found = inspect(table)
    schema = found.schema
    if "decimal" in reading:
        schema = replace(schema, decimal=reading["decimal"])
    if "missing" in reading:
        schema = replace(schema, missing_values=tuple(reading["missing"]))
    if "separator" in reading:
        schema = replace(schema, separator=reading["separator"])
    if "encoding" in reading:
        schema = replace(schema, encoding=reading["encoding"])
    table = table.with_schema(schema)
    document = {
        "rows": table.rows,
        "schema": schema.to_dict(),
        "encoding": table.encoding,
        "separator": table.separator,
        "columns": _columns(table, found),
        "candidates": _candidates(table, found),
        "alike": [],
        "missing_codes": [
            {"column": one.column, "code": one.code, "rows": one.rows, "applied": one.applied}
            for one in found.missing_codes
        ],
        "first": [[_cell(value) for value in row] for row in table.frame.head(FIRST_ROWS).iter_rows()],
        "judged": _both(found.judged),
    }
    every = max(1, -(-table.rows // SAMPLE_ROWS))
    table.frame.gather_every(every).write_parquet(folder / "sample.parquet")
    codes = {f"v{at}": visible_codes(table, column)[0] for at, column in enumerate(schema.columns.values())}
    people = {f"p{at}": value_codes(table, column)[0] for at, column in enumerate(schema.columns.values())}
    with (folder / "codes.npz").open("wb") as file:
        np.savez(file, **codes, **people)
    put_file(folder / "profile.json", json.dumps(document, ensure_ascii=False).encode(), private=True)


def _columns(table: Table, found: Inspection) -> list[dict[str, object]]:
    out = []
    for finding in found.columns:
        unique, bars = _bars(table, finding.name, finding.kind)
        out.append(
            {
                "name": finding.name,
                "role": finding.role,
                "kind": finding.kind,
                "publish": finding.publish,
                "why": [_both(why) for why in finding.why],
                "identifier": finding.identifier,
                "suspected": finding.suspected,
                "missing": finding.missing,
                "distinct": finding.distinct,
                "separation": finding.separation,
                "unique": unique,
                "bars": bars,
                "danger": _danger(finding.role, finding.identifier, finding.publish, finding.separation),
            }
        )
    return sorted(out, key=lambda one: -float(one["danger"]))  # type: ignore[arg-type]


def _danger(role: str, identifier: str | None, publish: bool, separation: float) -> float:
    base = {"identifier": 3.0, "quasi": 2.0, "sensitive": 1.0, "other": 0.0}[role]
    return base + (0.5 if not publish else 0.0) + (0.0 if identifier is None else 0.2) + separation / 10


def _bars(table: Table, name: str, kind: str) -> tuple[float, list[list[object]]]:
    counts = table.text(name).drop_nulls().alias("value").value_counts(sort=True, name="rows")
    unique = float((counts["rows"] == 1).sum()) / max(table.rows, 1)
    if kind == "numeric":
        numbers = counts.with_columns(
            pl.col("value").str.replace(",", ".").cast(pl.Float64, strict=False)
        ).drop_nulls()
        if numbers.height > _BARS:
            edges = np.histogram_bin_edges(numbers["value"].to_numpy(), _BARS)
            rows = np.histogram(numbers["value"].to_numpy(), edges, weights=numbers["rows"].to_numpy())[0]
            return unique, [
                [f"{low:g} – {high:g}", int(n)] for low, high, n in zip(edges, edges[1:], rows, strict=False)
            ]
        counts = numbers.sort("value").with_columns(pl.col("value").cast(pl.String))
    return unique, [[_cell(value), int(rows)] for value, rows in counts.head(_BARS).iter_rows()]


def _candidates(table: Table, found: Inspection) -> list[dict[str, object]]:
    out = []
    for finding in found.columns:
        if finding.distinct < 2 or (
            finding.identifier is None and finding.suspected is None and not finding.person
        ):
            continue
        sizes = np.bincount(value_codes(table, table.schema.columns[finding.name])[0])[1:]
        sizes = sizes[sizes > 0]
        out.append(
            {
                "column": finding.name,
                "people": int(sizes.size),
                "blank": int(table.rows - sizes.sum()),
                "mean": float(sizes.mean()) if sizes.size else 0.0,
                "most": int(sizes.max()) if sizes.size else 0,
                "several": int((sizes > 1).sum()),
                "proposed": finding.person,
            }
        )
    return sorted(out, key=lambda one: (not one["proposed"], -float(one["mean"])))  # type: ignore[arg-type]


def _both(sentence: str) -> dict[str, str]:
    return {tongue: told(sentence, tongue) for tongue in LANGUAGES}


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "…"


@dataclass(frozen=True)
class Profile:
    """A profile as it was kept."""

    folder: Path
    document: Mapping[str, Any]

    @property
    def columns(self) -> Sequence[Mapping[str, Any]]:
        """The columns, the most dangerous first."""
        found: Sequence[Mapping[str, Any]] = self.document["columns"]
        return found

    def schema(self) -> Schema:
        """The schema that was proposed."""
        return Schema.from_dict(self.document["schema"])

    def column(self, name: str) -> Mapping[str, Any]:
        """What was found about one column."""
        return next(column for column in self.columns if column["name"] == name)

    def sample(self) -> pl.DataFrame:
        """Evenly spaced rows."""
        return pl.read_parquet(self.folder / "sample.parquet")

    def told_apart(self, columns: Sequence[str], person: str | None) -> PresentExposure | None:
        """Who can be picked out by *columns*; None where no column is named."""
        names = list(self.schema().columns)
        if not columns:
            return None
        codes = [_codes(str(self.folder), f"v{names.index(name)}") for name in columns]
        owner = None if person is None else _codes(str(self.folder), f"p{names.index(person)}")
        return exposure_of(tuple(columns), [(one, int(one.max()) + 1) for one in codes], owner)


def load(folder: Path) -> Profile | None:
    """The profile in *folder*, if one was finished there."""
    try:
        return _loaded(str(folder), (folder / "profile.json").stat().st_mtime_ns)
    except FileNotFoundError:
        return None


@lru_cache(maxsize=2)
def _loaded(folder: str, moment: int) -> Profile:
    return Profile(Path(folder), json.loads(Path(folder, "profile.json").read_bytes()))


@lru_cache(maxsize=2)
def _archive(folder: str) -> Any:
    return np.load(Path(folder, "codes.npz"))


@lru_cache(maxsize=64)
def _codes(folder: str, name: str) -> npt.NDArray[np.int32]:
    found: npt.NDArray[np.int32] = _archive(folder)[name]
    return found
