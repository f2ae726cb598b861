"""What a table looks like, as a worker found it once and every page shows it: `.desk/profiles/KEY/`.

    profile.json       columns with their findings and bars, who a person may be, the first rows
    codes-N.npy        a code for every cell of column N, for the live counter     people-N.npy   the same of who is who
    values-N.parquet   the different values of column N, for its hierarchy          sample-N.parquet   some rows, whole people

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

from velado.apps.desk.wording import at_the_desk
from velado.data.inspect import inspect
from velado.data.io import read_table
from velado.data.kinds import MissingCode
from velado.data.normal import distinct_texts, value_codes
from velado.data.partition import Int32Array
from velado.data.profile import ColumnProfile, PersonCandidate
from velado.data.profile import Profile as Shown
from velado.data.profile import profile as profile_of
from velado.data.schema import Schema
from velado.data.separation import PresentExposure, visible_codes
from velado.data.staging import put_file
from velado.data.table import Table
from velado.data.told_apart import ToldApart
from velado.study.preview import draw_sample
from velado.text import LANGUAGES, Sentence, told

FIRST_ROWS = 12
MOST_VALUES = 50_000
"""Columns with more different values have no hierarchy that a person could edit."""
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
    of_recipe = set(reading.get("columns", table.frame.columns))
    said = reading if of_recipe == set(table.frame.columns) else {}
    found = inspect(
        table, missing_values=said.get("missing"), missing_in=_known(table, said.get("missing_in", {}))
    )
    schema = found.schema
    if "decimal" in reading:
        schema = replace(schema, decimal=reading["decimal"])
    if "separator" in reading:
        schema = replace(schema, separator=reading["separator"])
    if "encoding" in reading:
        schema = replace(schema, encoding=reading["encoding"])
    table = table.with_schema(schema).blanked()
    found = replace(found, schema=schema)
    shown = profile_of(table, found)
    columns = schema.columns
    numbers = {name: at for at, name in enumerate(columns)}
    sizes = {}
    for name, column in columns.items():
        codes, sizes[name] = visible_codes(table, column)
        np.save(folder / f"codes-{numbers[name]}.npy", _narrow(codes, sizes[name]))
    people = [candidate.column for candidate in shown.candidates]
    for name in people:
        np.save(folder / f"people-{numbers[name]}.npy", value_codes(table, columns[name])[0])
    for person in (None, *people):
        marked = [replace(one, person=one.name == person) for one in columns.values()]
        sample = draw_sample(table.with_schema(schema.with_columns(marked)))
        mark = "rows" if person is None else numbers[person]
        sample.table.frame.write_parquet(folder / f"sample-{mark}.parquet")
    for card in shown.columns:
        if card.found.identifier is None and card.found.distinct <= MOST_VALUES:
            distinct_texts(table, card.name).write_parquet(folder / f"values-{numbers[card.name]}.parquet")
    document = {
        "rows": table.rows,
        "schema": schema.to_dict(),
        "encoding": table.encoding,
        "separator": table.separator,
        "sizes": sizes,
        "columns": [_column(card) for card in shown.columns],
        "candidates": [_candidate(table, one, shown) for one in shown.candidates],
        "alike": shown.alike,
        "missing_codes": _codes_found(found.missing_codes),
        "first": [[_cell(value) for value in row] for row in table.frame.head(FIRST_ROWS).iter_rows()],
        "judged": _both(found.judged),
    }
    put_file(folder / "profile.json", json.dumps(document, ensure_ascii=False).encode(), private=True)


def _known(table: Table, said: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """What was said of columns that the table has: read with another separator, it may have others."""
    return {name: codes for name, codes in said.items() if name in table.frame.columns}


def _codes_found(found: Sequence[MissingCode]) -> list[dict[str, object]]:
    """Each code that may mean no value and was not said to, with the columns it may mean that in."""
    by_code: dict[str, list[MissingCode]] = {}
    for one in found:
        if not one.applied:
            by_code.setdefault(one.code, []).append(one)
    return [
        {"code": code, "rows": sum(one.rows for one in ones), "columns": [one.column for one in ones]}
        for code, ones in sorted(by_code.items(), key=lambda pair: -len(pair[1]))
    ]


def _narrow(codes: Int32Array, size: int) -> npt.NDArray[Any]:
    """The codes in as few bytes as hold them."""
    return codes.astype(np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.int32)


def _column(card: ColumnProfile) -> dict[str, object]:
    found = card.found
    return {
        "name": found.name,
        "role": found.role,
        "kind": found.kind,
        "publish": found.publish,
        "why": [_both(at_the_desk(why)) for why in found.why],
        "identifier": found.identifier,
        "suspected": found.suspected,
        "missing": found.missing,
        "distinct": found.distinct,
        "unique": card.unique,
        "bars": [[_labels(bar.label), bar.rows] for bar in card.bars],
    }


def _candidate(table: Table, one: PersonCandidate, shown: Shown) -> dict[str, object]:
    found = next(card.found for card in shown.columns if card.name == one.column)
    rows = distinct_texts(table, one.column).get_column("n")
    return {
        "column": one.column,
        "people": one.people,
        "mean": one.mean,
        "most": one.most,
        "several": int((rows > 1).sum()),
        "blank": int(table.rows - rows.sum()),
        "proposed": one.proposed,
        "why": [_both(at_the_desk(why)) for why in found.why],
    }


def _both(sentence: str) -> dict[str, str]:
    return {tongue: told(sentence, tongue) for tongue in LANGUAGES}


def _labels(label: str) -> dict[str, str]:
    # A range is told in each language; a value stands as it is.
    return _both(label) if isinstance(label, Sentence) else dict.fromkeys(LANGUAGES, _cell(label))


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

    def sample(self, person: str | None) -> pl.DataFrame:
        """Some rows, whole people where a candidate says who one is."""
        place = self.folder / f"sample-{'rows' if person is None else self._number(person)}.parquet"
        return pl.read_parquet(place if place.exists() else self.folder / "sample-rows.parquet")

    def values(self, column: str) -> pl.DataFrame | None:
        """The different texts of a column and their rows; None where they are too many, or name people."""
        place = self.folder / f"values-{self._number(column)}.parquet"
        return pl.read_parquet(place) if place.exists() else None

    def told_apart(self, columns: Sequence[str], person: str | None) -> PresentExposure:
        """Who can be picked out by *columns*."""
        names = [*columns, *([] if person is None else [person])]
        folder, sizes = str(self.folder), self.document["sizes"]
        codes = {name: (_codes(folder, f"codes-{self._number(name)}"), sizes[name]) for name in names}
        owners = {}
        if person is not None and (self.folder / f"people-{self._number(person)}.npy").exists():
            owners[person] = _codes(folder, f"people-{self._number(person)}")
        return ToldApart(self.document["rows"], codes, owners).count(columns, person)

    def _number(self, name: str) -> int:
        return list(self.document["schema"]["columns"]).index(name)


def load(folder: Path) -> Profile | None:
    """The profile in *folder*, if one was finished there."""
    try:
        return _loaded(str(folder), (folder / "profile.json").stat().st_mtime_ns)
    except FileNotFoundError:
        return None


@lru_cache(maxsize=2)
def _loaded(folder: str, moment: int) -> Profile:
    return Profile(Path(folder), json.loads(Path(folder, "profile.json").read_bytes()))


def _codes(folder: str, name: str) -> Int32Array:
    return _narrow_codes(folder, name).astype(np.int32)


@lru_cache(maxsize=16)
def _narrow_codes(folder: str, name: str) -> npt.NDArray[Any]:
    # Kept as narrow as they lie on the disk: a server of a large table holds a quarter of it between two counts.
    found: npt.NDArray[Any] = np.load(Path(folder, f"{name}.npy"))
    return found
