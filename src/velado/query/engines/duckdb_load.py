"""Rows from a frame or a file into DuckDB's table `kept`: cells as the layout says, units cut to their most rows.

A cell that does not read as its column's declared kind (text among numbers, an impossible date) is a missing cell: an
error that depends on a row would tell of the row. With a decimal comma, points are read as thousands marks alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from velado.data.number_text import THOUSANDS
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import EngineError, SchemaError, TableError
from velado.query.engines.grid_index import index_sql, indices_of
from velado.query.engines.layout import BLANKS, Layout, Place, missing_numbers
from velado.query.unit import Unit

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
_DAYS = ("DATE", "TIMESTAMP")
_TEXTS = ("VARCHAR", "UUID", "ENUM", "TIME", *_NUMBERS, *_DAYS)


def connect(threads: int | None, memory: str | None, spill: str, database: str = ":memory:") -> Any:
    """A fresh database that spills to *spill* (nowhere if blank) and loads no extension."""
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


def arrow_of(table: Table) -> pa.Table:
    """The table's declared columns as Arrow, named r0, r1, ...: numbers, days, or texts with missing ones null."""
    columns = {}
    for number, column in enumerate(table.schema.columns.values()):
        series = table.frame.get_column(column.name)
        typed = series.dtype.is_numeric() or series.dtype == pl.Boolean
        if column.kind == "numeric" and typed:
            series = series.cast(pl.Float64)
        elif column.kind == "numeric" and not isinstance(
            series.dtype, pl.String | pl.Categorical | pl.Enum | pl.Null
        ):
            raise wrong_type(column.name, "numeric")
        elif column.kind == "date" and isinstance(series.dtype, pl.Date | pl.Datetime):
            series = series.dt.date() if isinstance(series.dtype, pl.Datetime) else series
        else:
            series = table.text(column.name)
        columns[f"r{number}"] = series.to_arrow()
    return pa.table(columns)


def unit_numbers(table: Table, unit: Unit) -> pa.Array | None:
    """The unit's column where it holds floats but is not declared numeric: as text 0.0 and -0.0 would differ."""
    if unit.column is None or table.schema.columns[unit.column].kind == "numeric":
        return None
    series = table.frame.get_column(unit.column)
    return series.cast(pl.Float64).to_arrow() if series.dtype.is_float() else None


def load(
    connection: Any,
    source: str,
    types: Sequence[str],
    unit_cell: tuple[str, str] | None,
    layout: Layout,
    schema: Schema,
    unit: Unit,
) -> None:
    """`kept` holds the rows of *source*, whose columns are named r0, r1, ... by their places and have these types.

    *unit_cell* is the name and type of the column that tells units apart, if any. A unit keeps its first rows in the
    order of the source; rows without a unit value do not count. Which rows a unit keeps depends on its own rows and
    their order alone. O(n log n) for the window, once.
    """
    ordered = list(layout.places.values())
    missing = ", ".join(f"'{quoted(text)}'" for text in schema.missing_values)
    columns = [
        f"{_cell(place, type_, missing, schema)} AS {place.name}"
        for place, type_ in zip(ordered, types, strict=True)
    ]
    units: list[str] = []
    if unit_cell is not None and unit.column is not None:
        parts = _unit_parts(layout.places[unit.column], *unit_cell, missing, schema)
        units = [f"u{number}" for number in range(len(parts))]
        columns += [f"{part} AS {name}" for part, name in zip(parts, units, strict=True)]
    try:
        # A Parquet file's statistics leave NaN out, and DuckDB would conclude from them that no cell is one.
        connection.execute("SET disabled_optimizers = 'statistics_propagation'")
        connection.execute(f"CREATE TABLE read AS SELECT {', '.join(columns)} FROM {source}")
        connection.execute("RESET disabled_optimizers")
    except duckdb.InvalidInputException:
        raise TableError(
            "The rows cannot be read as the schema says.",
            "A row has too few or too many fields, the text is not in the declared encoding, or a date format is not known.",
            "Correct the file, or separator, encoding and format in the schema; `velado inspect` names the place.",
        ) from None
    except duckdb.Error:
        raise EngineError(
            "DuckDB could not load the rows.",
            "The file is damaged, or memory or disk ran out.",
            "Check the file, or allow more memory.",
        ) from None
    grids = [
        f"{index_sql(place.name, place.grid, 'NULL::INT8')} AS {place.index}"
        for place in ordered
        if place.grid is not None
    ]
    names = [place.name for place in ordered]
    few = ""
    if units:
        # Nobody is protected by a row that belongs to no unit, so it does not count.
        known = " OR ".join(f"{name} IS NOT NULL" for name in units)
        few = (
            f" WHERE ({known}) AND rowid NOT IN (SELECT r FROM (SELECT rowid AS r, row_number() OVER"
            f" (PARTITION BY {', '.join(units)} ORDER BY rowid) AS n FROM read) WHERE n > {unit.rows})"
        )
    connection.execute(f"CREATE TABLE kept AS SELECT {', '.join([*names, *grids])} FROM read{few}")
    connection.execute("DROP TABLE read")
    for place in ordered:
        _settle_ties(connection, place)


def _settle_ties(connection: Any, place: Place) -> None:
    # Numbers on or within a hair of a tie were left open; their distinct values are few and settled in rationals.
    if place.grid is None:
        return
    name, index = place.name, place.index
    open_ = f"{name} IS NOT NULL AND {index} IS NULL"
    values = [
        row[0] for row in connection.execute(f"SELECT DISTINCT {name} FROM kept WHERE {open_}").fetchall()
    ]
    if not values:
        return
    ties = pa.table(
        {"x": pa.array(values, pa.float64()), "i": pa.array(indices_of(values, place.grid), pa.int64())}
    )
    connection.register("ties", ties)
    connection.execute(
        f"UPDATE kept SET {index} = ties.i FROM ties WHERE kept.{name} = ties.x AND {index} IS NULL"
    )
    connection.unregister("ties")


def _cell(place: Place, type_: str, missing: str, schema: Schema) -> str:
    raw, column = f"r{place.number}", place.column
    if place.sort == "number":
        if type_ != "VARCHAR":
            if not type_.lstrip("U").startswith(_NUMBERS):
                raise wrong_type(column.name, "numeric")
            number = f"CAST({raw} AS DOUBLE)"
        else:
            number = f"TRY_CAST({_number_text(_without(raw, missing), schema.decimal)} AS DOUBLE)"
        # Minus nought is nought, so that equal numbers are equal bits wherever they are joined.
        return f"CASE WHEN isnan({number}) THEN NULL WHEN {number} = 0 THEN 0::DOUBLE ELSE {number} END"
    if place.sort == "day":
        if type_.startswith(_DAYS):
            return f"CAST({raw} AS DATE)"
        if type_ != "VARCHAR":
            raise wrong_type(column.name, "date")
        return f"CAST(TRY_STRPTIME({_without(raw, missing)}, '{quoted(column.format)}') AS DATE)"
    if not type_.lstrip("U").startswith(_TEXTS):
        raise wrong_type(column.name, column.kind)
    return _without(raw, missing) if type_ == "VARCHAR" else f"CAST({raw} AS VARCHAR)"


def _unit_parts(place: Place, raw: str, type_: str, missing: str, schema: Schema) -> list[str]:
    """What rows of one unit have in common: the number or day its cell reads as, and beside it the text of one that does not.

    1, 1.0, 01 and " 1" are one household where the column is a number, else only blanks around a text do not count.
    """
    text = ""
    if type_ == "VARCHAR":
        # To trim every text takes longer than all the rest; no blank is above a space, and few texts begin or end so.
        blank = f"left({raw}, 1) <= ' ' OR right({raw}, 1) <= ' '"
        text = _without(raw, missing, f"CASE WHEN {blank} THEN trim({raw}, '{BLANKS}') ELSE {raw} END")
    if place.sort == "number" or (not text and type_ in ("FLOAT", "DOUBLE")):
        number = (
            f"TRY_CAST({_number_text(text, schema.decimal)} AS DOUBLE)" if text else f"CAST({raw} AS DOUBLE)"
        )
        none = "".join(f" OR {number} = '{value!r}'::DOUBLE" for value in missing_numbers(schema))
        value = (
            f"CASE WHEN isnan({number}){none} THEN NULL WHEN {number} = 0 THEN 0::DOUBLE ELSE {number} END"
        )
        return [value, f"CASE WHEN {number} IS NULL THEN {text} END"] if text else [value]
    if place.sort == "day":
        day = f"TRY_STRPTIME({text}, '{quoted(place.column.format)}')" if text else raw
        day = f"CAST({day} AS DATE)"
        value = (
            f"CASE WHEN CAST({day} AS VARCHAR) IN ({missing}) THEN NULL ELSE {day} END" if missing else day
        )
        return [value, f"CASE WHEN {day} IS NULL THEN {text} END"] if text else [value]
    return [text or _without(f"CAST({raw} AS VARCHAR)", missing)]


def _number_text(text: str, decimal: str) -> str:
    # An underscore between digits is a number to DuckDB, but not to anyone who writes tables.
    text = f"CASE WHEN contains({text}, '_') THEN NULL ELSE {text} END"
    if decimal == ".":
        return text
    trimmed = f"trim({text})"
    plain = f"CASE WHEN regexp_matches({trimmed}, '{THOUSANDS}') THEN replace({trimmed}, '.', '') ELSE {trimmed} END"
    return f"CASE WHEN contains({plain}, '.') THEN NULL ELSE replace({plain}, ',', '.') END"


def _without(raw: str, missing: str, trimmed: str = "") -> str:
    if not missing:
        return trimmed or raw
    also = f" OR ({trimmed}) IN ({missing})" if trimmed else ""
    return f"CASE WHEN {raw} IN ({missing}){also} THEN NULL ELSE {trimmed or raw} END"


def quoted(text: str) -> str:
    """The inside of a SQL text literal."""
    return text.replace("'", "''")


def wrong_type(name: str, kind: str) -> SchemaError:
    """The error for a column whose stored type cannot be read as its declared kind."""
    return SchemaError(
        f"Column '{name}' is declared {kind}, but its stored type cannot be read so.",
        "What is asked about it would have no meaning.",
        "Correct its kind in the schema.",
    )
