"""What the rows of a table say, as one mark that neither their order, nor that of the columns, nor the file's format changes.

Every cell has a plain form: blanks around it and capital letters do not count, a number is its value however it is written
(`07`, `7.0`, `7,0`), a moment at midnight is its day, and what commonly stands for no value is none. A row is the MD5 of its cells'
forms in the order of the columns' names, and the table is the number of its rows and the sums of both halves of those, which
no order changes. Coarse on purpose: two tables that this takes for one share a budget, which protects; two that it tells
apart have two. It is the owner's carelessness it guards against; an owner who wants a second budget can change a row.
DuckDB does all of it, in O(cells).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from velado.data.io import read_table
from velado.data.schema import Schema
from velado.data.table import Table
from velado.engines.duckdb_files import connect, scan, threads
from velado.engines.places import ARROW, CSV, PARQUET
from velado.errors import TableError
from velado.query.identity import TableIdentity
from velado.settings import no_file
from velado.text import say

_NOTHING = ("", "na", "n/a", "nan", "null", "none", "<na>", "nat")
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
_MOMENT = r"^(\d{4}-\d{2}-\d{2})[ t](\d{2}:\d{2}:\d{2})(\.0+)?(z|\+00:00)?$"
_BLANKS = "' ' || chr(9) || chr(10) || chr(13) || chr(160)"


def identity_of_file(path: Path, schema: Schema | None) -> TableIdentity:
    """A file by its real path, its bytes and its rows; the schema only says how it is read."""
    known = TableIdentity((f"path:{os.path.realpath(path)}", f"content:{_bytes_of(path)}"))
    try:
        return known.with_marks([_mark_of_file(path, schema or Schema({}))])
    except TableError:
        # Whoever reads it without its schema reads it to see whether it is known, not to count its rows.
        if schema is not None:
            raise
        return known


def identity_of_table(table: Table) -> TableIdentity:
    """A table in memory by its rows, and by the bytes of the file it was read from; columns left out of it count too."""
    frame = table.frame if table.dropped is None else table.frame.hstack(table.dropped.get_columns())
    marks = [f"content:{table.fingerprint}"] if table.fingerprint else []
    return TableIdentity((*marks, mark_of_frame(frame)))


def mark_of_frame(frame: pl.DataFrame) -> str:
    """The mark of a frame's rows.

    >>> one = pl.DataFrame({"age": ["31", "07"], "sex": ["F", ""]})
    >>> two = pl.DataFrame({"sex": [None, " f"], "age": [7.0, 31.0]})
    >>> mark_of_frame(one) == mark_of_frame(two), mark_of_frame(one) == mark_of_frame(one.head(1))
    (True, False)
    """
    connection = connect(threads(), None, "")
    try:
        plain = [
            series.cast(pl.String)
            if isinstance(series.dtype, pl.Categorical | pl.Enum) or series.dtype == pl.Null
            else series
            for series in frame.get_columns()
        ]
        cells = {f"f{at}": series.to_arrow() for at, series in enumerate(plain)}
        connection.register("frame", pa.table(cells))
        return _mark(connection, "frame", frame.columns)
    finally:
        connection.close()


def _mark_of_file(path: Path, schema: Schema) -> str:
    if path.suffix.lower() not in (*CSV, *PARQUET, *ARROW):
        return mark_of_frame(read_table(path, encoding=schema.encoding, known=tuple(schema.columns)).frame)
    with TemporaryDirectory(prefix="velado-") as folder:
        found = scan(path, schema, Path(folder))
        connection = connect(threads(), None, str(Path(folder) / "spill"))
        try:
            if found.handed is not None:
                connection.register("arrow_files", found.handed)
            return _mark(connection, found.relation, found.names)
        except duckdb.Error:
            raise TableError(
                "The file cannot be scanned.",
                "Its content does not have the format of its ending.",
                "Check the file.",
            ) from None
        finally:
            connection.close()


def _mark(connection: Any, relation: str, names: Sequence[str]) -> str:
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    types = {str(row[0]): str(row[1]) for row in described}
    spelled = [name.strip().casefold() for name in names]
    order = sorted(range(len(names)), key=lambda at: (spelled[at], at))
    cells = ", ".join(f"{_cell(f'f{at}', types[f'f{at}'])} AS x{at}" for at in order)
    row = " || chr(31) || ".join(_form(f"x{at}", types[f"f{at}"]) for at in order)
    found = connection.execute(
        "SELECT count(*), sum(md5_number_lower(t)::HUGEINT), sum(md5_number_upper(t)::HUGEINT) "
        # A line with nothing in it is no row: a file may end in several.
        f"FROM (SELECT {row} AS t FROM (SELECT {cells} FROM {relation})) WHERE t <> repeat(chr(31), {len(names) - 1})"
    ).fetchone()
    header = hashlib.sha256(json.dumps([spelled[at] for at in order]).encode()).hexdigest()
    return f"rows:{header}:{':'.join(str(part) for part in found)}"


def _cell(cell: str, type_: str) -> str:
    """An expression for what the form of a cell is made of: a number, a moment, or a text in small letters."""
    if type_.lstrip("U").startswith(_NUMBERS):
        return f"CAST({cell} AS DOUBLE)"
    if type_ == "DATE" or type_.startswith("TIMESTAMP"):
        return cell
    return f"lower(trim(CAST({cell} AS VARCHAR), {_BLANKS}))"


def _form(x: str, type_: str) -> str:
    """An expression for the plain form of what `_cell` made, a text and never NULL."""
    if type_.lstrip("U").startswith(_NUMBERS):
        return _number_form(x, "''")
    if type_ == "DATE":
        return f"coalesce(strftime({x}, '%Y-%m-%d'), '')"
    if type_.startswith("TIMESTAMP"):
        return f"replace(coalesce(strftime({x}, '%Y-%m-%d %H:%M:%S'), ''), ' 00:00:00', '')"
    nothing = ", ".join(f"'{word}'" for word in _NOTHING)
    moment = f"replace(regexp_replace({x}, '{_MOMENT}', '\\1 \\2'), ' 00:00:00', '')"
    number = f"TRY_CAST(CASE WHEN contains({x}, ',') THEN replace({x}, ',', '.') ELSE {x} END AS DOUBLE)"
    # Only what begins like a number is tried as one; a comma is then a decimal one.
    return (
        f"CASE WHEN {x} IS NULL OR {x} IN ({nothing}) THEN '' WHEN {x}[1] NOT BETWEEN '+' AND '9' THEN {x} "
        f"WHEN contains({x}, ':') THEN {moment} ELSE {_number_form(number, x)} END"
    )


def _number_form(number: str, other: str) -> str:
    """A whole number as its digits, another one to 15 of them; *other* where it is none."""
    return (
        f"CASE WHEN {number} IS NULL OR NOT isfinite({number}) THEN {other} "
        f"WHEN {number} = trunc({number}) AND abs({number}) < 9e15 THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) "
        f"ELSE format('{{:.14e}}', {number}) END"
    )


def _bytes_of(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise TableError(*no_file(path.name)) from None
    except OSError as error:
        raise TableError(
            say("The file '{path}' cannot be read ({reason}).", path=path.name, reason=error.strerror),
            "Which ledger it belongs to is found by its content.",
            "Check its name and permissions.",
        ) from None
