"""CSV and Parquet files as DuckDB scans them: header read by us, cells as text, names by place, nothing guessed."""

from __future__ import annotations

import codecs
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from velado.data.csv_reading import as_utf8, check_header, header_of
from velado.data.numbers import THOUSANDS
from velado.data.schema import Schema
from velado.engines.places import CSV, PARQUET
from velado.errors import EngineError, MissingExtra, TableError
from velado.settings import no_file
from velado.text import say

_HEAD = 1 << 20
_GLOB = frozenset("*?[]{}")

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Scan:
    """A relation DuckDB can read, whose columns are f0, f1, ... in the file's order, and their true names.

    *placed* is the same with `filename` and `file_row_number` behind them, where the format can tell a row's place. *places*
    are the files as they are read: in UTF-8, and named without anything that would be taken for a pattern.

    >>> Scan("read_csv('stays.csv')", ("home",)).names
    ('home',)
    """

    relation: str
    names: tuple[str, ...]
    separator: str = ","
    placed: str = ""
    places: tuple[Path, ...] = ()


def scan(path: Path, schema: Schema, folder: Path) -> Scan:
    """How DuckDB reads the file; *folder* is private and may receive a copy in UTF-8.

    >>> scan(Path("no-such.csv"), Schema({}), Path("."))
    Traceback (most recent call last):
    velado.errors.TableError: There is no file 'no-such.csv'. Nothing was read. Check the path and the spelling.
    """
    return scan_files([path], schema, folder)


def scan_files(paths: Sequence[Path], schema: Schema, folder: Path) -> Scan:
    """How DuckDB reads all *paths* as one table; columns that a folder's name tells (`year=2024/`) come last, as text.

    Every file must have the same columns, in any order for Parquet, with the same types.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [Path(folder, f"{n}.csv") for n in range(2)]
    ...     _ = [file.write_text("age,sex\\n31,F\\n") for file in files]
    ...     scan_files(files, Schema({}), Path(folder)).names
    ('age', 'sex')
    """
    for path in paths:
        if not path.is_file():
            raise TableError(*no_file(path.name))
    endings = {path.suffix.lower() for path in paths}
    if endings <= set(PARQUET):
        return _parquet(paths, folder)
    if not endings <= set(CSV):
        odd = next((path for path in paths if path.suffix.lower() not in (*PARQUET, *CSV)), None)
        if odd is None:
            raise TableError(
                "CSV and Parquet files lie side by side.",
                "They would have to be one table, and their cells are of different types.",
                "Give one kind of file, e.g. 'lake/*.parquet'.",
            )
        raise TableError(
            say("'{path}' is neither a CSV nor a Parquet file by its ending.", path=odd.name),
            "DuckDB is asked to scan those two.",
            "Rename it, or read it with velado.read_table and query the table.",
        )
    return _csv(paths, schema, folder)


def _csv(paths: Sequence[Path], schema: Schema, folder: Path) -> Scan:
    utf8 = schema.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
    first: tuple[list[str], str] | None = None
    places = []
    for number, path in enumerate(paths):
        source = path if utf8 else _recoded(path, schema.encoding, folder, number)
        found = _header(path, source, schema)
        if first is not None and found != first:
            raise _mixed(path, paths[0], found[0], first[0])
        first = found
        places.append(_plain(source, folder, number))
    assert first is not None
    header, separator = first
    columns = ", ".join(f"'f{number}': 'VARCHAR'" for number in range(len(header)))
    relation = (
        f"read_csv([{_listed(places)}], columns = {{{columns}}}, auto_detect = false, header = true, "
        f"delim = '{quoted(separator)}', quote = '\"', escape = '\"', nullstr = '', strict_mode = true)"
    )
    return Scan(relation, tuple(header), separator, places=tuple(places))


def _header(path: Path, source: Path, schema: Schema) -> tuple[list[str], str]:
    with source.open("rb") as file:
        head = file.read(_HEAD)
    if not head.strip():
        raise TableError(
            say("'{path}' is empty.", path=path.name),
            "It has no header and no rows.",
            "Check that the right file was given.",
        )
    # A block may end inside a character; the header is checked up to the last whole line.
    whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
    data = as_utf8(whole, path.name, "utf-8").removeprefix(codecs.BOM_UTF8)
    header, separator = header_of(data, path.name, schema.separator)
    check_header(header, path.name, tuple(schema.columns))
    return header, separator


def _parquet(paths: Sequence[Path], folder: Path) -> Scan:
    first: pa.Schema | None = None
    for path in paths:
        try:
            own = pq.read_schema(path)
        except (pa.ArrowException, OSError):
            raise TableError(
                say("'{path}' is not a readable Parquet file.", path=path.name),
                "Its content does not have that format.",
                "Check the file, or give it the ending of its true format.",
            ) from None
        if first is None:
            first = own
        elif {f.name: f.type for f in own} != {f.name: f.type for f in first}:
            raise _mixed(path, paths[0], own.names, first.names, first)
    assert first is not None
    names = [*first.names, *_folder_columns(paths, first.names)]
    places = [_plain(path, folder, at) for at, path in enumerate(paths)]
    options = "hive_partitioning = false"
    if len(names) > len(first.names):
        options = "hive_partitioning = true, hive_types_autocast = false"
    if len(paths) > 1:
        options += ", union_by_name = true"
    columns = ", ".join(f"f{number}" for number in range(len(names)))
    relation = f"read_parquet([{_listed(places)}], {options}) AS file({columns})"
    placed = ""
    if not {"filename", "file_row_number"} & set(names):
        own, told = (
            [f"f{number}" for number in numbers]
            for numbers in (range(len(first.names)), range(len(first.names), len(names)))
        )
        options += ", file_row_number = true, filename = true"
        placed = f"read_parquet([{_listed(places)}], {options}) AS file({', '.join([*own, 'file_row_number', 'filename', *told])})"
    return Scan(relation, tuple(names), placed=placed, places=tuple(places))


def _listed(places: Sequence[Path]) -> str:
    return ", ".join(f"'{quoted(str(place))}'" for place in places)


def _folder_columns(paths: Sequence[Path], names: Sequence[str]) -> list[str]:
    """The columns that the folders above the files tell, as `year` in `lake/year=2024/part.parquet`."""
    told = [[part.split("=")[0] for part in path.parts[:-1] if "=" in part[1:]] for path in paths]
    if any(own != told[0] for own in told):
        raise TableError(
            "Some of the files lie in folders that name a value (as in year=2024), and others do not.",
            "A column would be missing in part of the table.",
            "Give the files of one level.",
        )
    return [name for name in told[0] if name not in names]


def _mixed(
    path: Path,
    other: Path,
    names: Sequence[str],
    expected: Sequence[str],
    types: pa.Schema | None = None,
) -> TableError:
    absent = [name for name in expected if name not in names]
    more = [name for name in names if name not in expected]
    if absent:
        what = say("'{path}' lacks the column '{column}'.", path=path.name, column=absent[0])
    elif more:
        what = say(
            "'{path}' has the column '{column}', which '{other}' does not have.",
            path=path.name,
            column=more[0],
            other=other.name,
        )
    elif types is not None:
        what = say(
            "A column of '{path}' has another type than in '{other}'.", path=path.name, other=other.name
        )
    else:
        what = say(
            "The columns of '{path}' stand in another order than in '{other}'.",
            path=path.name,
            other=other.name,
        )
    return TableError(
        what,
        "Files that are read as one table must have the same columns.",
        "Leave the file out, or write it again like the others.",
    )


def _recoded(path: Path, encoding: str, folder: Path, number: int) -> Path:
    out = folder / f"utf8-{number}.csv"
    try:
        with (
            path.open("r", encoding=encoding, newline="") as file,
            out.open("w", encoding="utf-8", newline="") as copy,
        ):
            while block := file.read(1 << 22):
                copy.write(block)
    except (UnicodeError, LookupError, ValueError):
        raise TableError(
            say("'{path}' is not {encoding} text.", path=path.name, encoding=encoding),
            "Accented letters would be garbled or lost.",
            "Save it as UTF-8, or name its true encoding in [table] of the schema.",
        ) from None
    return out


def _plain(path: Path, folder: Path, number: int = 0) -> Path:
    # DuckDB reads *, ? and brackets in a path as patterns, so such a file is reached through a link without them.
    path = path.resolve()
    if not _GLOB & set(str(path)):
        return path
    link = folder / f"rows-{number}{path.suffix.lower()}"
    link.symlink_to(path)
    return link


def stamp(path: Path) -> Stamp | None:
    """What changes when a file is written or replaced; a file that is not there is refused by whoever reads it.

    >>> stamp(Path("no-such-file")) is None
    True
    """
    try:
        now = path.stat()
    except OSError:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns


def bytes_digest(files: Sequence[Path]) -> bytes:
    """A digest of the bytes of all files, in their order.

    >>> bytes_digest([]).hex()[:8]
    'e3b0c442'
    """
    whole = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.digest()


def refuse_changed(files: Sequence[Path], stamps: Sequence[Stamp | None]) -> None:
    """Nothing, if every file has the stamp it had; else an error.

    >>> refuse_changed([Path("no-such-file")], [None])
    """
    for path, before in zip(files, stamps, strict=True):
        if stamp(path) != before:
            raise TableError(
                say("'{path}' changed while it was read.", path=path.name),
                "What was counted and what would be published could be different rows.",
                "Try again when nobody writes to the files, or take a copy of them.",
            )


def need(library: str, why: str, extra: str) -> None:
    """Nothing, if an optional library is installed; else the error names the extra that brings it.

    >>> need("polars", "Tables are read by it.", "all")
    """
    if find_spec(library) is None:
        raise MissingExtra(
            say("The library {library} is not installed.", library=library),
            why,
            say("Install velado[{extra}].", extra=extra),
        )


def threads() -> int:
    """How many threads an engine uses where nobody says.

    >>> 1 <= threads() <= 8
    True
    """
    return max(1, min(8, os.cpu_count() or 1))


def connect(threads: int | None, memory: str | None, spill: str, database: str = ":memory:") -> Any:
    """A fresh database that spills to *spill* (nowhere if blank) and loads no extension.

    >>> connect(1, None, "").execute("SELECT 1").fetchone()
    (1,)
    """
    import duckdb

    config: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": spill,
    }
    if threads is not None:
        config["threads"] = threads
    if memory is not None:
        config["memory_limit"] = memory
    try:
        connection = duckdb.connect(database, config=config)
        connection.execute("SET TimeZone = 'UTC'")
    except duckdb.Error:
        raise EngineError(
            "DuckDB could not be opened with these settings.",
            "The limit of threads or memory is not one it understands, or the disk is full.",
            "Use for example threads = 2 and memory = '4GB'.",
        ) from None
    return connection


def number_text_sql(text: str, decimal: str) -> str:
    """An expression for the number in a text as DuckDB casts it, NULL for what only DuckDB takes for one.

    >>> number_text_sql("t", ".")
    "CASE WHEN contains(t, '_') THEN NULL ELSE t END"
    """
    # An underscore between digits is a number to DuckDB, but not to anyone who writes tables.
    text = f"CASE WHEN contains({text}, '_') THEN NULL ELSE {text} END"
    if decimal == ".":
        return text
    trimmed = f"trim({text})"
    plain = f"CASE WHEN regexp_matches({trimmed}, '{THOUSANDS}') THEN replace({trimmed}, '.', '') ELSE {trimmed} END"
    return f"CASE WHEN contains({plain}, '.') THEN NULL ELSE replace({plain}, ',', '.') END"


def quoted(text: str) -> str:
    """The inside of a SQL text literal.

    >>> quoted("O'Hara")
    "O''Hara"
    """
    return text.replace("'", "''")
