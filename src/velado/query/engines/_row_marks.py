"""What the rows of a table say, as one mark that neither their order, nor that of the columns, nor the file's format changes.

Every cell has a plain form: blanks around it, capital letters and how an accent is composed do not count, a number is its value however it is written
(`07`, `7.0`, `7,0`; of 32 bits as it reads), true is 1, a moment at midnight is its day, and what commonly stands for no value is none. A row is the MD5 of its cells'
forms in the order of the columns' names, and the table is the number of its rows and the sums of both halves of those, which
no order changes. Where texts are declared as days in another form (`31/12/2024`), or as numbers with a decimal comma (`1.234,5`), a second mark has each
as the day or number it says. Coarse on purpose: two tables that this takes for one share a budget, which protects; two that it tells
apart have two. It is the owner's carelessness it guards against; an owner who wants a second budget can change a row.
DuckDB does all of it, in O(cells).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from velado.data.io import read_table
from velado.data.schema import Schema
from velado.data.table import Table
from velado.engines.duckdb_files import connect, number_text_sql, quoted, scan, threads
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
        return known.with_marks(_marks_of_file(path, schema or Schema({})))
    except TableError:
        # Whoever reads it without its schema reads it to see whether it is known, not to count its rows.
        if schema is not None:
            raise
        return known


def identity_of_table(table: Table) -> TableIdentity:
    """A table in memory by its rows, and by the bytes of the file it was read from; columns left out of it count too."""
    frame = table.frame if table.dropped is None else table.frame.hstack(table.dropped.get_columns())
    marks = [f"content:{table.fingerprint}"] if table.fingerprint else []
    return TableIdentity((*marks, *marks_of_frame(frame, table.schema)))


def marks_of_frame(frame: pl.DataFrame, schema: Schema) -> list[str]:
    """The marks of a frame's rows: as they are written, and with the days that the schema declares, where those are written in another way.

    >>> one = pl.DataFrame({"age": ["31", "07"], "sex": ["F", ""]})
    >>> two = pl.DataFrame({"sex": [None, " f"], "age": [7.0, 31.0]})
    >>> plain = Schema({})
    >>> marks_of_frame(one, plain) == marks_of_frame(two, plain), marks_of_frame(one, plain) == marks_of_frame(one.head(1), plain)
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
        return _marks(connection, "frame", frame.columns, schema)
    finally:
        connection.close()


def _marks_of_file(path: Path, schema: Schema) -> list[str]:
    if path.suffix.lower() not in (*CSV, *PARQUET, *ARROW):
        read = read_table(path, encoding=schema.encoding, known=tuple(schema.columns))
        return marks_of_frame(read.frame, schema)
    with TemporaryDirectory(prefix="velado-") as folder:
        found = scan(path, schema, Path(folder))
        connection = connect(threads(), None, str(Path(folder) / "spill"))
        try:
            if found.handed is not None:
                connection.register("arrow_files", found.handed)
            return _marks(connection, found.relation, found.names, schema)
        except duckdb.Error:
            if path.suffix.lower() in CSV:
                # DuckDB refuses line ends of two kinds and lines with nothing in them; what reads them otherwise reads them here too.
                return marks_of_frame(read_leniently(path, schema), schema)
            raise TableError(
                "The file cannot be scanned.",
                "Its content does not have the format of its ending.",
                "Check the file.",
            ) from None
        finally:
            connection.close()


def read_leniently(path: Path, schema: Schema) -> pl.DataFrame:
    """All columns of a CSV file as `read_table` reads them, declared or not."""
    declared = replace(Schema({}), separator=schema.separator, encoding=schema.encoding)
    known = tuple(schema.columns)
    return read_table(path, declared, "keep", encoding=schema.encoding, known=known).frame


def _marks(connection: Any, relation: str, names: Sequence[str], schema: Schema) -> list[str]:
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    types = {str(row[0]): str(row[1]) for row in described}
    spelled = [name.strip().casefold() for name in names]
    order = sorted(range(len(names)), key=lambda at: (spelled[at], at))
    cells = ", ".join(f"{_cell(f'f{at}', types[f'f{at}'])} AS x{at}" for at in order)
    forms = {at: _form(f"x{at}", types[f"f{at}"]) for at in order}
    declared = dict(forms)
    for at in order:
        column = schema.columns.get(names[at])
        if column is None or types[f"f{at}"] != "VARCHAR":
            continue
        if column.kind == "date":
            declared[at] = _day_form(f"x{at}", column.format, forms[at])
        elif column.kind == "numeric" and schema.decimal != ".":
            number = f"TRY_CAST({number_text_sql(f'x{at}', schema.decimal)} AS DOUBLE)"
            declared[at] = _number_form(number, forms[at])
    rows = [" || chr(31) || ".join(one[at] for at in order) for one in (forms, declared)]
    rows = rows if declared != forms else rows[:1]
    texts = ", ".join(f"{row} AS t{number}" for number, row in enumerate(rows))
    sums = ", ".join(
        f"sum(md5_number_lower(t{number})::HUGEINT), sum(md5_number_upper(t{number})::HUGEINT)"
        for number in range(len(rows))
    )
    count, *halves = connection.execute(
        f"SELECT count(*), {sums} "
        # A line with nothing in it is no row: a file may end in several.
        f"FROM (SELECT {texts} FROM (SELECT {cells} FROM {relation})) WHERE t0 <> repeat(chr(31), {len(names) - 1})"
    ).fetchone()
    header = hashlib.sha256(json.dumps([spelled[at] for at in order]).encode()).hexdigest()
    pairs = zip(halves[::2], halves[1::2], strict=True)
    return list(dict.fromkeys(f"rows:{header}:{count}:{lower}:{upper}" for lower, upper in pairs))


def _day_form(x: str, written: str, other: str) -> str:
    """A text in the declared form of a day as the day, or moment, it says; *other* where it says none."""
    day = f"strftime(TRY_STRPTIME({x}, '{quoted(written)}'), '%Y-%m-%d %H:%M:%S')"
    return f"coalesce(replace({day}, ' 00:00:00', ''), {other})"


def _cell(cell: str, type_: str) -> str:
    """An expression for what the form of a cell is made of: a number, a moment, or a text in small letters."""
    if type_.lstrip("U").startswith(_NUMBERS):
        # A number of 32 bits is the decimal it reads as, not the double that is nearest to its bits.
        return f"CAST(CAST({cell} AS VARCHAR) AS DOUBLE)" if type_ == "FLOAT" else f"CAST({cell} AS DOUBLE)"
    if type_ == "DATE" or type_.startswith("TIMESTAMP"):
        return cell
    return f"nfc_normalize(lower(trim(CAST({cell} AS VARCHAR), {_BLANKS})))"


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
        f"CASE WHEN {x} IS NULL OR {x} IN ({nothing}) THEN '' WHEN {x} = 'true' THEN '1' WHEN {x} = 'false' THEN '0' WHEN {x}[1] NOT BETWEEN '+' AND '9' THEN {x} "
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
