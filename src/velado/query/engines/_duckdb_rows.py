"""Rows become DuckDB's table `kept`: from a frame or a file, cells as the layout says, units cut to their most rows.

To count one person as two would let them move an answer twice as far as the noise hides. DuckDB knows no NFKC and only
simple case, so what is not plain goes through velado's own normal form: each distinct text once, joined back by its
spelling. Plain texts (ASCII without blanks, and surely no number but one without a leading zero) DuckDB settles itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from velado.data.blanks import missing_numbers
from velado.data.normal import normal_texts, tidy_texts
from velado.data.schema import Schema
from velado.data.table import Table
from velado.engines.duckdb_files import Scan, number_text_sql, quoted
from velado.errors import EngineError, SchemaError, TableError
from velado.query.engines._compile import ColumnPlace, Layout, index_sql, indices_of
from velado.query.unit import Unit
from velado.text import say, say_n


def pick(found: Scan, schema: Schema, connection: Any) -> tuple[str, Sequence[str]]:
    """The declared columns alone, as r0, r1, ... by their places, and their types; undeclared ones cannot be asked about."""
    absent = [name for name in schema.columns if name not in found.names]
    if absent:
        raise SchemaError(
            say_n(
                "The schema names {n} column the file does not have: {names}.",
                "The schema names {n} columns the file does not have: {names}.",
                len(absent),
                names=", ".join(absent[:5]),
            ),
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


# Rows from a frame or a file into DuckDB's table `kept`: cells as the layout says, units cut to their most rows.
#
# A cell that does not read as its column's declared kind (text among numbers, an impossible date) is a missing cell: an
# error that depends on a row would tell of the row. With a decimal comma, points are read as thousands marks alone.

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
_DAYS = ("DATE", "TIMESTAMP")
_TEXTS = ("VARCHAR", "UUID", "ENUM", "TIME", *_NUMBERS, *_DAYS)


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
) -> None:
    """`kept` holds the rows of *source*, whose columns are named r0, r1, ... by their places and have these types.

    *unit_cell* is the name and type of the column that tells units apart, if any. A unit keeps its first rows in the
    order of the source; rows without a unit value do not count. Which rows a unit keeps depends on its own rows and
    their order alone. O(n log n) for the window, once.
    """
    ordered = list(layout.places.values())
    columns = [
        f"{_cell(place, type_, schema)} AS {place.name}" for place, type_ in zip(ordered, types, strict=True)
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
    if unit_cell is not None and layout.unit.column is not None:
        told_apart = units_of(connection, layout.places[layout.unit.column], unit_cell[1], schema)
        # Nobody is protected by a row that belongs to no unit, so it does not count.
        few = (
            f" WHERE rowid NOT IN (SELECT r FROM (SELECT r, u0, u1, row_number() OVER"
            f" (PARTITION BY u0, u1 ORDER BY r) AS n FROM ({told_apart})) WHERE n > {layout.unit.rows}"
            " OR (u0 IS NULL AND u1 IS NULL))"
        )
    connection.execute(f"CREATE TABLE kept AS SELECT {', '.join([*names, *grids])} FROM read{few}")
    connection.execute("DROP TABLE read")
    connection.unregister(SPELLED)
    for place in ordered:
        _settle_ties(connection, place)


def _settle_ties(connection: Any, place: ColumnPlace) -> None:
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


def _cell(place: ColumnPlace, type_: str, schema: Schema) -> str:
    raw, column = f"r{place.number}", place.column
    missing = _list(schema.missing_texts(column.name))
    if place.sort == "number":
        if type_ != "VARCHAR":
            if not type_.lstrip("U").startswith(_NUMBERS):
                raise wrong_type(column.name, "numeric")
            return _number(f"CAST({raw} AS DOUBLE)", place, schema)
        number = f"TRY_CAST({number_text_sql(_without(raw, missing), schema.decimal)} AS DOUBLE)"
        # Minus nought is nought, so that equal numbers are equal bits wherever they are joined.
        return f"CASE WHEN isnan({number}) THEN NULL WHEN {number} = 0 THEN 0::DOUBLE ELSE {number} END"
    if place.sort == "day":
        if type_.startswith(_DAYS):
            return _day(f"CAST({raw} AS DATE)", missing)
        if type_ != "VARCHAR":
            raise wrong_type(column.name, "date")
        return f"CAST(TRY_STRPTIME({_without(raw, missing)}, '{quoted(column.format)}') AS DATE)"
    if not type_.lstrip("U").startswith(_TEXTS):
        raise wrong_type(column.name, column.kind)
    return _without(raw if type_ == "VARCHAR" else f"CAST({raw} AS VARCHAR)", missing)


def _without(raw: str, missing: str) -> str:
    return f"CASE WHEN {raw} IN ({missing}) THEN NULL ELSE {raw} END" if missing else raw


def wrong_type(name: str, kind: str) -> SchemaError:
    """The error for a column whose stored type cannot be read as its declared kind."""
    return SchemaError(
        say(
            "Column '{name}' is declared {kind}, but its stored type cannot be read so.", name=name, kind=kind
        ),
        "What is asked about it would have no meaning.",
        "Correct its kind in the schema.",
    )


# Whose row is whose in DuckDB: rows of one unit are those whose cells have one normal form.

SPELLED = "spelled"
"""The name under which the texts that are not plain stand with their normal form, while rows are loaded."""
# Without a blank, and with a character that no number has; or a whole number as everybody writes it.
_PLAIN = "regexp_full_match(u, '[!-~]*[!-*/:-DF-df-~][!-~]*|[1-9][0-9]*')"


def units_of(connection: Any, place: ColumnPlace, type_: str, schema: Schema) -> str:
    """A query over the table `read`, whose column u holds the unit's cell: a row's number r and what tells units apart.

    Rows of one unit have u0 and u1 in common: the number or day the cell reads as, or else its normal form; both are
    NULL in a row without a unit.
    """
    texts_of_none = schema.missing_texts(place.column.name)
    missing = _list(texts_of_none)
    if type_ != "VARCHAR" and not type_.startswith("ENUM"):
        return f"SELECT rowid AS r, {_typed(place, type_, missing, schema)} AS u0, NULL AS u1 FROM read"
    _spell_out(connection, place, schema)
    none = _list(_normal(pl.Series([*texts_of_none, ""]), place, schema).unique().to_list())
    plain = "u" if place.column.case == "distinct" else "upper(u)"
    texts = (
        f"SELECT read.rowid AS r, u, coalesce(tidy, u) AS tidy, coalesce(normal, {plain}) AS normal"
        f" FROM (SELECT rowid, u::VARCHAR AS u FROM read) AS read LEFT JOIN {SPELLED} ON u = raw"
    )
    gone = (
        f"u IN ({missing}) OR tidy IN ({missing}) OR normal IN ({none})" if missing else f"normal IN ({none})"
    )
    value = _value("tidy", place, missing, schema)
    read = f"CASE WHEN {gone} THEN NULL ELSE {value} END"
    left = f"CASE WHEN {gone} OR {_reads('tidy', place, schema)} THEN NULL ELSE normal END"
    return f"SELECT r, {read} AS u0, {left} AS u1 FROM ({texts})"


def _spell_out(connection: Any, place: ColumnPlace, schema: Schema) -> None:
    found = connection.sql(
        f"SELECT DISTINCT u FROM (SELECT u::VARCHAR AS u FROM read) WHERE u IS NOT NULL AND NOT {_PLAIN}"
    )
    raw = pl.Series("raw", found.to_arrow_table().column(0).to_pylist(), dtype=pl.String)
    spelled = pl.DataFrame([raw, tidy_texts(raw).alias("tidy"), _normal(raw, place, schema).alias("normal")])
    connection.register(SPELLED, spelled.to_arrow())


def _normal(texts: pl.Series, place: ColumnPlace, schema: Schema) -> pl.Series:
    number = place.sort == "number"
    return normal_texts(texts, case=place.column.case, decimal=schema.decimal, exponents=number)


def _value(text: str, place: ColumnPlace, missing: str, schema: Schema) -> str:
    if place.sort == "number":
        return _number(f"TRY_CAST({number_text_sql(text, schema.decimal)} AS DOUBLE)", place, schema)
    if place.sort == "day":
        return _day(f"CAST(TRY_STRPTIME({text}, '{quoted(place.column.format)}') AS DATE)", missing)
    return "NULL"


def _reads(text: str, place: ColumnPlace, schema: Schema) -> str:
    """Whether a text is known by the number or day it reads as."""
    if place.sort == "number":
        return f"TRY_CAST({number_text_sql(text, schema.decimal)} AS DOUBLE) IS NOT NULL"
    if place.sort == "day":
        return f"TRY_STRPTIME({text}, '{quoted(place.column.format)}') IS NOT NULL"
    return "FALSE"


def _typed(place: ColumnPlace, type_: str, missing: str, schema: Schema) -> str:
    if place.sort == "number" or type_ in ("FLOAT", "DOUBLE"):
        return _number("CAST(u AS DOUBLE)", place, schema)
    if place.sort == "day":
        return _day("CAST(u AS DATE)", missing)
    text = "CAST(u AS VARCHAR)"
    return f"CASE WHEN {text} IN ({missing}) THEN NULL ELSE {text} END" if missing else text


def _number(number: str, place: ColumnPlace, schema: Schema) -> str:
    meant = missing_numbers(schema.missing_texts(place.column.name), schema.decimal)
    none = "".join(f" OR {number} = '{value!r}'::DOUBLE" for value in meant)
    return f"CASE WHEN isnan({number}){none} THEN NULL WHEN {number} = 0 THEN 0::DOUBLE ELSE {number} END"


def _day(day: str, missing: str) -> str:
    return f"CASE WHEN CAST({day} AS VARCHAR) IN ({missing}) THEN NULL ELSE {day} END" if missing else day


def _list(texts: Any) -> str:
    return ", ".join(f"'{quoted(text)}'" for text in texts)
