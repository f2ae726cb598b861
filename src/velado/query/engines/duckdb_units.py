"""Whose row is whose in DuckDB: rows of one unit are those whose cells have one normal form.

To count one person as two would let them move an answer twice as far as the noise hides. DuckDB knows no NFKC and only
simple case, so what is not plain goes through velado's own normal form: each distinct text once, joined back by its
spelling. Plain texts (ASCII without blanks, and surely no number but one without a leading zero) DuckDB settles itself.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from velado.data.normal import case_of, normal_texts, tidy_texts
from velado.data.numbers import THOUSANDS
from velado.data.schema import Schema
from velado.query.engines.compile import Place, missing_numbers

SPELLED = "spelled"
"""The name under which the texts that are not plain stand with their normal form, while rows are loaded."""
# Without a blank, and with a character that no number has; or a whole number as everybody writes it.
_PLAIN = "regexp_full_match(u, '[!-~]*[!-*/:-DF-df-~][!-~]*|[1-9][0-9]*')"


def units_of(connection: Any, place: Place, type_: str, schema: Schema) -> str:
    """A query over the table `read`, whose column u holds the unit's cell: a row's number r and what tells units apart.

    Rows of one unit have u0 and u1 in common: the number or day the cell reads as, or else its normal form; both are
    NULL in a row without a unit.
    """
    missing = _list(schema.missing_values)
    if type_ != "VARCHAR" and not type_.startswith("ENUM"):
        return f"SELECT rowid AS r, {_typed(place, type_, missing, schema)} AS u0, NULL AS u1 FROM read"
    _spell_out(connection, place, schema)
    none = _list(_normal(pl.Series([*schema.missing_values, ""]), place, schema).unique().to_list())
    plain = "u" if case_of(place.column) == "distinct" else "upper(u)"
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


def _spell_out(connection: Any, place: Place, schema: Schema) -> None:
    found = connection.sql(
        f"SELECT DISTINCT u FROM (SELECT u::VARCHAR AS u FROM read) WHERE u IS NOT NULL AND NOT {_PLAIN}"
    )
    raw = pl.Series("raw", found.to_arrow_table().column(0).to_pylist(), dtype=pl.String)
    spelled = pl.DataFrame([raw, tidy_texts(raw).alias("tidy"), _normal(raw, place, schema).alias("normal")])
    connection.register(SPELLED, spelled.to_arrow())


def _normal(texts: pl.Series, place: Place, schema: Schema) -> pl.Series:
    number = place.sort == "number"
    return normal_texts(texts, case=case_of(place.column), decimal=schema.decimal, exponents=number)


def _value(text: str, place: Place, missing: str, schema: Schema) -> str:
    if place.sort == "number":
        return _number(f"TRY_CAST({number_text_sql(text, schema.decimal)} AS DOUBLE)", schema)
    if place.sort == "day":
        return _day(f"CAST(TRY_STRPTIME({text}, '{quoted(place.column.format)}') AS DATE)", missing)
    return "NULL"


def _reads(text: str, place: Place, schema: Schema) -> str:
    """Whether a text is known by the number or day it reads as."""
    if place.sort == "number":
        return f"TRY_CAST({number_text_sql(text, schema.decimal)} AS DOUBLE) IS NOT NULL"
    if place.sort == "day":
        return f"TRY_STRPTIME({text}, '{quoted(place.column.format)}') IS NOT NULL"
    return "FALSE"


def _typed(place: Place, type_: str, missing: str, schema: Schema) -> str:
    if place.sort == "number" or type_ in ("FLOAT", "DOUBLE"):
        return _number("CAST(u AS DOUBLE)", schema)
    if place.sort == "day":
        return _day("CAST(u AS DATE)", missing)
    text = "CAST(u AS VARCHAR)"
    return f"CASE WHEN {text} IN ({missing}) THEN NULL ELSE {text} END" if missing else text


def _number(number: str, schema: Schema) -> str:
    none = "".join(f" OR {number} = '{value!r}'::DOUBLE" for value in missing_numbers(schema))
    return f"CASE WHEN isnan({number}){none} THEN NULL WHEN {number} = 0 THEN 0::DOUBLE ELSE {number} END"


def _day(day: str, missing: str) -> str:
    return f"CASE WHEN CAST({day} AS VARCHAR) IN ({missing}) THEN NULL ELSE {day} END" if missing else day


def number_text_sql(text: str, decimal: str) -> str:
    """An expression for the number in a text as DuckDB casts it, NULL for what only DuckDB takes for one."""
    # An underscore between digits is a number to DuckDB, but not to anyone who writes tables.
    text = f"CASE WHEN contains({text}, '_') THEN NULL ELSE {text} END"
    if decimal == ".":
        return text
    trimmed = f"trim({text})"
    plain = f"CASE WHEN regexp_matches({trimmed}, '{THOUSANDS}') THEN replace({trimmed}, '.', '') ELSE {trimmed} END"
    return f"CASE WHEN contains({plain}, '.') THEN NULL ELSE replace({plain}, ',', '.') END"


def quoted(text: str) -> str:
    """The inside of a SQL text literal."""
    return text.replace("'", "''")


def _list(texts: Any) -> str:
    return ", ".join(f"'{quoted(text)}'" for text in texts)
