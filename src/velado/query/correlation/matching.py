"""Which rows a query asks about, over the frame in memory. Unknown (a missing cell) is not true, as in SQL."""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction

import numpy as np
import polars as pl

from velado.data.numbers import parse_numbers
from velado.data.table import Table
from velado.errors import QueryRefused
from velado.query.correlation.influence import Mask
from velado.query.correlation.records import Floats
from velado.query.values import And, Compare, In, IsNull, Like, Not, Or, Predicate, Value, leaves


def matching_rows(table: Table, where: Predicate | None) -> Mask:
    """True for every row where the predicate is true. O(n) per test."""
    if where is None:
        return np.ones(table.rows, dtype=np.bool_)
    frame = pl.DataFrame(
        [typed_column(table, name) for name in sorted({leaf.column for leaf in leaves(where)})]
    )
    kept = frame.select(_expression(where, frame).fill_null(False).alias("kept")).get_column("kept")
    return kept.to_numpy().astype(np.bool_)


def numbers_or_nan(table: Table, name: str) -> Floats:
    """A numeric column, NaN where a cell is missing."""
    column = table.schema.columns.get(name)
    if column is None or column.kind != "numeric":
        raise QueryRefused(
            f"Column '{name}' is not a numeric column of the schema.",
            "Only numbers can be added up or compared by size.",
            "Name a numeric column.",
        )
    blank = table.is_missing(name).to_numpy()
    values, _ = parse_numbers(table, column, blank)
    return np.where(blank, np.nan, values)


def typed_column(table: Table, name: str) -> pl.Series:
    """A column as numbers, days or text, as the schema has it; null where a cell is missing."""
    column = table.schema.columns.get(name)
    if column is None:
        raise QueryRefused(
            f"There is no column '{name}'.", "The schema names every column.", "Check the spelling."
        )
    if column.kind == "numeric":
        return pl.Series(name, numbers_or_nan(table, name)).fill_nan(None)
    if column.kind == "date":
        return table.text(name).str.to_date(column.format, strict=False)
    return table.text(name)


def _expression(part: Predicate, frame: pl.DataFrame) -> pl.Expr:
    match part:
        case And(parts):
            return pl.all_horizontal([_expression(inner, frame) for inner in parts])
        case Or(parts):
            return pl.any_horizontal([_expression(inner, frame) for inner in parts])
        case Not(inner):
            return ~_expression(inner, frame)
        case IsNull(column):
            return pl.col(column).is_null()
        case Like(column, pattern):
            _same_type(frame, column, "")
            return pl.col(column).str.contains(_regular(pattern))
        case In(column, values):
            for value in values:
                _same_type(frame, column, value)
            return pl.any_horizontal([pl.col(column) == _literal(value) for value in values])
        case Compare(column, operator, value):
            _same_type(frame, column, value)
            cell, literal = pl.col(column), _literal(value)
            return {
                "=": cell == literal,
                "<>": cell != literal,
                "<": cell < literal,
                "<=": cell <= literal,
                ">": cell > literal,
                ">=": cell >= literal,
            }[operator]


def _literal(value: Value) -> pl.Expr:
    return pl.lit(float(value) if isinstance(value, Fraction) else value)


def _same_type(frame: pl.DataFrame, column: str, value: Value) -> None:
    kind = frame.schema[column]
    fits = (
        isinstance(value, Fraction)
        if kind == pl.Float64
        else isinstance(value, date)
        if kind == pl.Date
        else isinstance(value, str)
    )
    if not fits:
        raise QueryRefused(
            f"Column '{column}' is compared with a value of another type.",
            "A number, a day and a text are never equal.",
            "Write the value as the schema's kind of the column has it.",
        )


def _regular(pattern: str) -> str:
    """LIKE as a regular expression: % is any text, _ one character."""
    parts = [".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern]
    return "(?s)^" + "".join(parts) + "$"
