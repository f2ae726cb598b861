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

from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import EngineError, SchemaError, TableError
from velado.query.engines.duckdb_units import SPELLED, number_text_sql, quoted, units_of
from velado.query.engines.grid_index import index_sql, indices_of
from velado.query.engines.layout import Layout, Place
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
    if unit_cell is not None:
        columns.append(f"{unit_cell[0]} AS u")
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
    if unit_cell is not None and unit.column is not None:
        told_apart = units_of(connection, layout.places[unit.column], unit_cell[1], schema)
        # Nobody is protected by a row that belongs to no unit, so it does not count.
        few = (
            f" WHERE rowid NOT IN (SELECT r FROM (SELECT r, u0, u1, row_number() OVER"
            f" (PARTITION BY u0, u1 ORDER BY r) AS n FROM ({told_apart})) WHERE n > {unit.rows}"
            " OR (u0 IS NULL AND u1 IS NULL))"
        )
    connection.execute(f"CREATE TABLE kept AS SELECT {', '.join([*names, *grids])} FROM read{few}")
    connection.execute("DROP TABLE read")
    connection.unregister(SPELLED)
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
            number = f"TRY_CAST({number_text_sql(_without(raw, missing), schema.decimal)} AS DOUBLE)"
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


def _without(raw: str, missing: str) -> str:
    return f"CASE WHEN {raw} IN ({missing}) THEN NULL ELSE {raw} END" if missing else raw


def wrong_type(name: str, kind: str) -> SchemaError:
    """The error for a column whose stored type cannot be read as its declared kind."""
    return SchemaError(
        f"Column '{name}' is declared {kind}, but its stored type cannot be read so.",
        "What is asked about it would have no meaning.",
        "Correct its kind in the schema.",
    )
