"""Literals of a query as exact values of the kind the schema declares for the column they are compared with."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from fractions import Fraction
from typing import Any

from velado.data.schema import Column
from velado.errors import QueryRefused
from velado.query.sql_tree import Reader, named, opened, refuse_node
from velado.query.values import Value

_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def value_of(reader: Reader, column: Column, node: Any) -> Value:
    """A literal of the column's kind: numbers with numbers, text with text, days with days."""
    name = named(node)
    if name == "Cast":
        day = _date_literal(reader, node)
        if column.kind != "date":
            raise wrong_type(column)
        return day
    if name not in ("Literal", "Neg"):
        raise refuse_node(node)
    value = reader.literal(node)
    if column.kind == "numeric":
        if isinstance(value, Fraction):
            return value
    elif isinstance(value, str):
        return _day(value, column) if column.kind == "date" else value
    raise wrong_type(column)


def _date_literal(reader: Reader, node: Any) -> date:
    # DATE '...' is a cast in the tree; CAST(...) and :: never come here, their words are refused before.
    parts = opened(node, "Cast", "this", "to", flags=("_type",))
    to = opened(parts["to"], "DataType", "this")["this"]
    if getattr(to, "name", "") != "DATE" or named(parts["this"]) != "Literal":
        raise refuse_node(node)
    reader.use("NAME")
    text = str(reader.literal(parts["this"]))
    # strptime also takes 2020-1-5; the full form alone is accepted.
    day = _parsed(text, "%Y-%m-%d") if _ISO.fullmatch(text) else None
    if day is None:
        raise QueryRefused(
            "A DATE of the query is not a day.", "Days are compared as days.", "Write DATE 'YYYY-MM-DD'."
        )
    return day


def _day(text: str, column: Column) -> date:
    day = _parsed(text, column.format)
    if day is None:
        raise QueryRefused(
            f"A text compared with column '{column.name}' is not a day in the declared format.",
            "Dates are compared as days, and text is read in the schema's format alone.",
            "Write DATE 'YYYY-MM-DD'.",
        )
    return day


def _parsed(text: str, form: str) -> date | None:
    try:
        moment = datetime.strptime(text, form)
    except (ValueError, re.error, LookupError, OverflowError):
        return None
    # A day has no hour: a text with one is no day, and would be cut silently.
    return moment.date() if moment.time() == time() and moment.tzinfo is None else None


def wrong_type(column: Column) -> QueryRefused:
    """The refusal of a literal that is not of the column's kind."""
    wanted = {"numeric": "numbers", "date": "dates"}.get(column.kind, "text in single quotes")
    return QueryRefused(
        f"Column '{column.name}' is declared {column.kind} and is compared with something else.",
        "A comparison across types is read differently by different engines.",
        f"Compare it with {wanted}.",
    )
