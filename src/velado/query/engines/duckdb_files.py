"""CSV and Parquet files as DuckDB scans them: header read by us, cells as text, names by place, nothing guessed."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from velado.data.csv_reading import as_utf8, check_header, header_of
from velado.data.schema import Schema
from velado.errors import SchemaError, TableError
from velado.query.engines.duckdb_units import quoted

_HEAD = 1 << 20
_GLOB = frozenset("*?[]{}")


@dataclass(frozen=True)
class Scan:
    """A relation DuckDB can read, whose columns are f0, f1, ... in the file's order, and their true names."""

    relation: str
    names: tuple[str, ...]


def scan(path: Path, schema: Schema, folder: Path) -> Scan:
    """How DuckDB reads the file; *folder* is private and may receive a copy in UTF-8."""
    if not path.is_file():
        raise TableError(
            f"There is no file '{path.name}'.", "Nothing was read.", "Check the path and the spelling."
        )
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return _parquet(_plain(path, folder))
    if suffix not in (".csv", ".tsv", ".txt"):
        raise TableError(
            f"'{path.name}' is neither a CSV nor a Parquet file by its ending.",
            "DuckDB is asked to scan those two.",
            "Rename it, or read it with velado.read_table and query the table.",
        )
    return _csv(path, schema, folder)


def pick(found: Scan, schema: Schema, connection: Any) -> tuple[str, Sequence[str]]:
    """The declared columns alone, as r0, r1, ... by their places, and their types; undeclared ones cannot be asked about."""
    absent = [name for name in schema.columns if name not in found.names]
    if absent:
        raise SchemaError(
            f"The schema names {len(absent)} column(s) the file does not have: {', '.join(absent[:5])}.",
            "A question about a column that is not there has no answer.",
            "Correct the name in the schema or the header of the file.",
        )
    at = {name: number for number, name in enumerate(found.names)}
    chosen = ", ".join(f"f{at[name]} AS r{number}" for number, name in enumerate(schema.columns))
    relation = f"(SELECT {chosen} FROM {found.relation})"
    try:
        types = [str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
    except duckdb.Error:
        raise TableError(
            "The file cannot be scanned.",
            "Its content does not have the format of its ending.",
            "Check the file.",
        ) from None
    return relation, types


def _csv(path: Path, schema: Schema, folder: Path) -> Scan:
    utf8 = schema.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
    source = path if utf8 else _recoded(path, schema.encoding, folder)
    with source.open("rb") as file:
        head = file.read(_HEAD)
    if not head.strip():
        raise TableError(
            f"'{path.name}' is empty.",
            "It has no header and no rows.",
            "Check that the right file was given.",
        )
    # A block may end inside a character; the header is checked up to the last whole line.
    whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
    data = as_utf8(whole, path.name, "utf-8").removeprefix(codecs.BOM_UTF8)
    header, separator = header_of(data, path.name, schema.separator)
    check_header(header, path.name, tuple(schema.columns))
    columns = ", ".join(f"'f{number}': 'VARCHAR'" for number in range(len(header)))
    place = quoted(str(_plain(source, folder)))
    relation = (
        f"read_csv('{place}', columns = {{{columns}}}, auto_detect = false, header = true, "
        f"delim = '{quoted(separator)}', quote = '\"', escape = '\"', nullstr = '', strict_mode = true)"
    )
    return Scan(relation, tuple(header))


def _parquet(path: Path) -> Scan:
    try:
        names = tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        raise TableError(
            f"'{path.name}' is not a readable Parquet file.",
            "Its content does not have that format.",
            "Check the file, or give it the ending of its true format.",
        ) from None
    places = ", ".join(f"f{number}" for number in range(len(names)))
    relation = f"read_parquet('{quoted(str(path))}', hive_partitioning = false) AS file({places})"
    return Scan(relation, names)


def _recoded(path: Path, encoding: str, folder: Path) -> Path:
    out = folder / "utf8.csv"
    try:
        with (
            path.open("r", encoding=encoding, newline="") as file,
            out.open("w", encoding="utf-8", newline="") as copy,
        ):
            while block := file.read(1 << 22):
                copy.write(block)
    except (UnicodeError, LookupError, ValueError):
        raise TableError(
            f"'{path.name}' is not {encoding} text.",
            "Accented letters would be garbled or lost.",
            "Save it as UTF-8, or name its true encoding in [table] of the schema.",
        ) from None
    return out


def _plain(path: Path, folder: Path) -> Path:
    # DuckDB reads *, ? and brackets in a path as patterns, so such a file is reached through a link without them.
    path = path.resolve()
    if not _GLOB & set(str(path)):
        return path
    link = folder / f"rows{path.suffix.lower()}"
    link.symlink_to(path)
    return link
