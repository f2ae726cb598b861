"""Records: what arrives as bytes becomes rows of a frame, or is refused for a reason that is counted.

A device may send anything. One record that does not fit must not end the stream, nor hold back the window it came in: whatever the
table's own door would refuse a whole table for (a text among numbers, a value outside a public list, a field nobody declared) refuses
one record here. Reasons are words, never cells.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import encode_column
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import SchemaError, VeladoError
from velado.release.stream.stream_settings import StreamSettings
from velado.text import Sentence, say

AT, KEY = "_at", "_key"
"""The columns of every frame of records beside those of the schema: a record's time, and what tells it from others."""

REASONS: Mapping[str, Sentence] = {
    "broken": say("no JSON object"),
    "large": say("longer than a record may be"),
    "undeclared": say("a field that the schema does not name"),
    "incomplete": say("no person, or a quasi-identifier that is not there"),
    "kind": say("a value that is not what the schema says of its column"),
    "time": say("no time that can be read"),
    "ahead": say("a time ahead of the clock"),
    "late": say("its window has ended"),
    "duplicate": say("came before"),
    "lost": say("removed by the broker before it was read"),
}
"""Why a record is not read, for reports."""

_MOST_KNOWN = 20_000
"""Distinct texts of a column whose fit is remembered: a flood of new ones costs time, never memory."""
_LATEST = 253_402_300_800.0  # the year 10000, beyond which no date can be written


@dataclass(frozen=True, repr=False)
class Batch:
    """Records in the order of their arrival, and how many lines were refused for which reason.

    >>> Batch.none(pl.DataFrame()).lines
    0
    """

    frame: pl.DataFrame
    refused: Mapping[str, int]
    lines: int

    @staticmethod
    def none(frame: pl.DataFrame) -> Batch:
        """Nothing arrived; *frame* has the columns."""
        return Batch(frame, {}, 0)

    def and_lost(self, count: int) -> Batch:
        """The same, with so many more that will never be read."""
        if not count:
            return self
        return Batch(self.frame, {**self.refused, "lost": count}, self.lines + count)


class RecordReader:
    """Reads records as one schema and one stream.toml say. It remembers nothing but which texts fit a column.

    >>> schema = Schema.from_dict({"columns": {"who": {"role": "identifier", "person": True},
    ...                                        "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 120]}}})
    >>> reader = RecordReader(schema, StreamSettings(schema="s.toml"))
    >>> batch = reader.read([b'{"who": "a", "age": 31}', b'{"who": "b", "age": "old"}', b'{'], [0.0, 0.0, 0.0])
    >>> batch.frame["age"].to_list(), dict(batch.refused)
    ([31.0], {'kind': 1, 'broken': 1})
    """

    def __init__(self, schema: Schema, asked: StreamSettings) -> None:
        self.schema, self._asked = schema, asked
        person = schema.person
        if person is None:
            raise SchemaError(
                "The schema names no person column.",
                "A window's k counts people, and nothing says which records are one person's.",
                "Mark the column with person = true.",
            )
        self._person = person.name
        self._columns = [
            column for column in schema.columns.values() if column.published or column.name == self._person
        ]
        extra = {name for name in (asked.record.time, asked.record.id) if name}
        self._known = {*schema.columns, *extra}
        self._fits: dict[str, dict[str, bool]] = {column.name: {} for column in self._columns}
        self._casts = [(column.name, self._cast_of(column)) for column in self._columns]
        self._dtypes: dict[str, Any] = {
            column.name: pl.Float64()
            if column.kind == "numeric" and column.name != self._person
            else pl.String()
            for column in self._columns
        } | {AT: pl.Float64(), KEY: pl.UInt64()}

    def empty(self) -> pl.DataFrame:
        """A frame of no records."""
        return pl.DataFrame(schema=self._dtypes)

    def read(self, payloads: Sequence[bytes], arrived: Sequence[float]) -> Batch:
        """The records of *payloads*, each one or several lines, that *arrived* at those times."""
        cells: dict[str, list[Any]] = {name: [] for name in self._dtypes}
        refused: Counter[str] = Counter()
        lines = 0
        for payload, at in zip(payloads, arrived, strict=True):
            for line in payload.split(b"\n") if b"\n" in payload else (payload,):
                if not line or line.isspace():
                    continue
                lines += 1
                reason = self._take(line, at, cells)
                if reason:
                    refused[reason] += 1
        return Batch(pl.DataFrame(cells, schema=self._dtypes), dict(refused), lines)

    def _take(self, line: bytes, at: float, cells: dict[str, list[Any]]) -> str:
        """Why the record is refused; or nothing, and its cells are appended."""
        record = self._asked.record
        if len(line) > record.most_bytes:
            return "large"
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            return "broken"
        if not isinstance(given, dict) or not _written(line, given):
            return "broken"
        if record.undeclared == "refuse" and not given.keys() <= self._known:
            return "undeclared"
        row: list[Any] = []
        for name, cast in self._casts:
            try:
                row.append(cast(given.get(name)))
            except _Refused as refusal:
                return str(refusal)
        if record.time:
            told = _seconds(given.get(record.time))
            if told is None:
                return "time"
            at = told
        for (name, _), cell in zip(self._casts, row, strict=True):
            cells[name].append(cell)
        cells[AT].append(at)
        cells[KEY].append(self._key_of(line, given))
        return ""

    def _key_of(self, line: bytes, given: Mapping[str, Any]) -> int:
        """What a record that comes again shares with itself: its person and id, or every byte of it."""
        if self._asked.record.id:
            line = json.dumps([given.get(self._person), given.get(self._asked.record.id)]).encode()
        return int.from_bytes(hashlib.blake2b(line, digest_size=8).digest(), "little")

    def _cast_of(self, column: Column) -> Callable[[Any], Any]:
        needed = column.name == self._person or (
            column.role == "quasi" and self.schema.missing_policy(column) != "value"
        )
        missing = set(self.schema.missing_texts(column.name))
        if column.name == self._person:
            return lambda cell: _person_of(cell, missing)
        if column.kind == "numeric":
            return lambda cell: self._number(column, cell, needed, missing)
        return lambda cell: self._text(column, cell, needed, missing)

    def _number(self, column: Column, cell: Any, needed: bool, missing: set[str]) -> float | None:
        if cell is None or (isinstance(cell, str) and cell.strip() in missing):
            if needed:
                raise _Refused("incomplete")
            return None
        if isinstance(cell, bool):
            raise _Refused("kind")
        try:
            number = float(cell.replace(self.schema.decimal, ".") if isinstance(cell, str) else cell)
        except (TypeError, ValueError, OverflowError):
            raise _Refused("kind") from None
        if f"{number:g}" in missing:  # 999, where the schema says that it means no value
            return self._number(column, None, needed, missing)
        if not abs(number) < 2.0**53:  # NaN is not either
            raise _Refused("kind")
        if column.role == "quasi" and not self._fits_number(column, number):
            raise _Refused("kind")
        return number

    def _fits_number(self, column: Column, number: float) -> bool:
        outside = column.bounds is not None and not column.bounds[0] <= number <= column.bounds[1]
        if outside and not column.clamp:
            return False
        return column.taxonomy is None or self._fits_text(column, f"{number:g}", number)

    def _text(self, column: Column, cell: Any, needed: bool, missing: set[str]) -> str | None:
        if cell is None or (isinstance(cell, str) and cell in missing):
            if needed:
                raise _Refused("incomplete")
            return None
        if isinstance(cell, dict | list):
            raise _Refused("kind")
        text = cell if isinstance(cell, str) else json.dumps(cell)
        checked = column.values is not None or column.kind == "date" or column.taxonomy is not None
        if checked and not self._fits_text(column, text, text):
            raise _Refused("kind")
        return text

    def _fits_text(self, column: Column, text: str, cell: object) -> bool:
        """Whether the table's own reader takes the value; asked once for each text."""
        known = self._fits[column.name]
        found = known.get(text)
        if found is None:
            found = _taken(self.schema, column, cell)
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[text] = found
        return found


def _written(line: bytes, given: Mapping[str, Any]) -> bool:
    """Whether all texts can be written: JSON lets half of a character stand alone, which no file takes."""
    if line.isascii() and b"\\u" not in line:
        return True
    try:
        json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


class _Refused(Exception):
    """A cell does not fit; the text is the reason's word."""


def _person_of(cell: Any, missing: set[str]) -> str:
    if isinstance(cell, bool | float | dict | list) or cell is None:
        raise _Refused("incomplete")
    text = str(cell).strip()
    if not text or text in missing:
        raise _Refused("incomplete")
    return text


def _taken(schema: Schema, column: Column, cell: object) -> bool:
    """Whether a table of this one cell would be read."""
    from velado.data.encode import refuse_unlisted, refuse_wrong_kinds

    alone = schema.with_columns([column])
    try:
        table = Table.of(pl.DataFrame({column.name: [cell]}), alone)
        refuse_unlisted(table)
        refuse_wrong_kinds(table)
        if column.role == "quasi":
            encode_column(table, column)
    except VeladoError:
        return False
    return True


def _seconds(told: Any) -> float | None:
    """Unix seconds of a number or of a text in ISO 8601, which is UTC where it names no zone; None: it is neither."""
    if isinstance(told, str):
        try:
            moment = datetime.fromisoformat(told.strip())
        except ValueError:
            return None
        told = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    try:
        return float(told) if math.isfinite(told) and 0 <= told < _LATEST else None
    except OverflowError:
        return None


def new_records(
    keys: npt.NDArray[np.uint64], known: Sequence[npt.NDArray[np.uint64]]
) -> npt.NDArray[np.bool_]:
    """For each record, whether its key is the first of *keys* and in none of *known*, each of which is sorted.

    >>> new_records(np.array([3, 4, 3], np.uint64), [np.array([4], np.uint64)]).tolist()
    [True, False, False]
    """
    fresh = np.zeros(keys.size, bool)
    fresh[np.unique(keys, return_index=True)[1]] = True
    for before in known:
        if before.size:
            at = np.minimum(np.searchsorted(before, keys), before.size - 1)
            fresh &= before[at] != keys
    return fresh
