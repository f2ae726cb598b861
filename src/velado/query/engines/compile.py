"""Frozen values become SQL: every literal a bound parameter, every column a name made by us from its place.

The text is one that DuckDB and PostgreSQL both read; where they differ, a `Dialect` says how. Nothing an analyst
wrote is ever part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from math import gcd
from typing import Any

from velado.data.number_text import with_point
from velado.errors import QueryRefused
from velado.query.engines.layout import Layout, Place
from velado.query.needs import GridCells, GridSum, Key, Rows
from velado.query.values import And, Compare, In, IsNull, Like, Not, Or, Predicate, Value

# Written inline because a bound operator does not exist; anything else is refused before it is SQL.
_OPERATORS = frozenset(("=", "<>", "<", "<=", ">", ">="))
# Up to so many values of a key are told apart one after another; beyond, a join is faster.
_FEW = 32
_TYPES = {"number": "FLOAT8", "day": "DATE", "text": "TEXT"}


@dataclass(frozen=True)
class Dialect:
    """What one engine writes otherwise: LIKE without an escape character, and the quotient of two whole numbers."""

    plain_like: str
    quotient: str


DUCKDB = Dialect("LIKE {}", "//")
POSTGRES = Dialect("LIKE {} ESCAPE ''", "/")


@dataclass
class Statement:
    """SQL under construction: the parameters bound so far, and the columns that were named."""

    layout: Layout
    dialect: Dialect
    parameters: list[Any] = field(default_factory=list)
    used: dict[str, None] = field(default_factory=dict)

    def bind(self, value: Any, kind: str) -> str:
        """A placeholder of a SQL type for a value that travels beside the text."""
        self.parameters.append(value)
        return f"${len(self.parameters)}::{kind}"

    def name(self, place: Place) -> str:
        """A column by its place, remembered as used."""
        self.used[place.name] = None
        return place.name

    def index(self, place: Place) -> str:
        """A column's grid index by its place, remembered as used."""
        self.used[place.index] = None
        return place.index

    def predicate(self, part: Predicate) -> str:
        """The condition under SQL's three-valued logic."""
        match part:
            case Compare(column, operator, value):
                if operator not in _OPERATORS:
                    raise QueryRefused(
                        "The comparison is not one of =, <>, <, <=, >, >=.",
                        "It has no meaning here.",
                        "Use one.",
                    )
                place = self.layout.place(column)
                return f"({self.name(place)} {operator} {self._literal(place, value)})"
            case In(column, values):
                place = self.layout.place(column)
                if not values:
                    return "FALSE"
                listed = ", ".join(self._literal(place, value) for value in values)
                return f"({self.name(place)} IN ({listed}))"
            case Like(column, pattern):
                place = self.layout.place(column)
                if place.sort != "text":
                    raise _mismatch(column)
                like = self.dialect.plain_like.format(self._literal(place, pattern))
                return f"({self.name(place)} {like})"
            case IsNull(column):
                return f"({self.name(self.layout.place(column))} IS NULL)"
            case Not(inner):
                return f"(NOT {self.predicate(inner)})"
            case And(parts):
                return "(" + " AND ".join(self.predicate(inner) for inner in parts) + ")"
            case Or(parts):
                return "(" + " OR ".join(self.predicate(inner) for inner in parts) + ")"

    def cell(self, keys: Sequence[Key]) -> tuple[str, str]:
        """The number of a row's cell, row-major, and the joins to the declared domains it needs."""
        code, joins = "0::INT8", ""
        for number, key in enumerate(keys):
            place = self.layout.place(key.column)
            listed = _domain(place, key, self.layout.decimal)
            size = len(key.domain)
            if not listed:
                code = f"({code} * {size + 1} + {size})"
                continue
            kind = _TYPES[place.sort]
            if len(listed) <= _FEW:
                arms = " ".join(f"WHEN {self.bind(value, kind)} THEN {at}" for value, at in listed.items())
                code = f"({code} * {size + 1} + CASE {self.name(place)} {arms} ELSE {size} END)"
                continue
            values = self.bind(list(listed), f"{kind}[]")
            places = self.bind(list(listed.values()), "INT8[]")
            joins += (
                f" LEFT JOIN (SELECT unnest({values}) AS v, unnest({places}) AS i) AS d{number}"
                f" ON {self.name(place)} = d{number}.v"
            )
            code = f"({code} * {size + 1} + coalesce(d{number}.i, {size}))"
        return code, joins

    def _literal(self, place: Place, value: Value) -> str:
        if place.sort == "number" and isinstance(value, Fraction):
            return self.bind(nearest_double(value), "FLOAT8")
        if place.sort == "day" and isinstance(value, date):
            return self.bind(value.isoformat(), "DATE")
        if place.sort == "text" and isinstance(value, str):
            return self.bind(_sendable(value), "TEXT")
        raise _mismatch(place.column.name)


def sums(
    statement: Statement, where: Predicate | None, keys: Sequence[Key], needs: Sequence[Rows | GridSum]
) -> str:
    """One statement for any number of counts and sums: a row per cell that has rows, the cell first.

    After the cell stand the number of rows, then for each need its two numbers: for Rows the count twice, for GridSum
    the sum of indices and the count of values, so that an offset is subtracted outside, where nothing overflows.
    """
    columns = []
    for need in needs:
        if isinstance(need, Rows):
            counted = "*" if need.column is None else statement.name(statement.layout.place(need.column))
            columns += [f"count({counted})", "0"]
        else:
            index = statement.index(statement.layout.on_grid(need.grid))
            columns += [f"coalesce(sum({index}), 0)", f"count({index})"]
    code, joins = statement.cell(keys)
    condition = "" if where is None else f" WHERE {statement.predicate(where)}"
    if not keys:
        # Without keys there is nothing to group by: one row comes back, even from no rows.
        return f"SELECT {', '.join(['0', *columns])} FROM kept{condition}"
    return f"SELECT {', '.join([code + ' AS k', *columns])} FROM kept{joins}{condition} GROUP BY 1"


def cells(statement: Statement, where: Predicate | None, keys: Sequence[Key], need: GridCells) -> str:
    """Rows per cell and per strip of indices: a row (cell, strip, count); strips are `strip_of(need)` wide.

    Every edge lies on the border of a strip, so strips add up to bins; for bins of one width they are the bins.
    """
    index = statement.index(statement.layout.on_grid(need.grid))
    first, width = statement.bind(need.edges[0], "INT8"), statement.bind(strip_of(need), "INT8")
    code, joins = statement.cell(keys)
    inside = f"{index} >= {first} AND {index} < {statement.bind(need.edges[-1], 'INT8')}"
    condition = inside if where is None else f"{inside} AND {statement.predicate(where)}"
    strip = f"({index} - {first}) {statement.dialect.quotient} {width}"
    return f"SELECT {code} AS k, {strip} AS s, count(*) AS n FROM kept{joins} WHERE {condition} GROUP BY 1, 2"


def strip_of(need: GridCells) -> int:
    """The greatest width that every bin is a whole number of: the gcd of the bins' widths."""
    widths = [after - before for before, after in zip(need.edges, need.edges[1:], strict=False)]
    if not widths or min(widths) < 1:
        raise QueryRefused(
            "The edges of the bins do not rise.", "A bin must hold at least one index.", "Give rising edges."
        )
    return gcd(*widths)


def nearest_double(value: Fraction) -> float:
    """The double nearest to a literal, as a table's own numbers are the doubles nearest to their texts."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _domain(place: Place, key: Key, decimal: str) -> dict[Any, int]:
    # Two texts of one number must not count a row twice: the first one has the rows.
    listed: dict[Any, int] = {}
    for number, text in enumerate(key.domain):
        value = _value_of(place, text, decimal)
        if value is not None:
            listed.setdefault(value, number)
    return listed


def _value_of(place: Place, text: str, decimal: str) -> str | float | None:
    # A text that is no number or day of the column's kind can stand in no row.
    try:
        if place.sort == "number":
            return nearest_double(Fraction(with_point(text.strip(), decimal))) + 0.0
        if place.sort == "day":
            return datetime.strptime(text, place.column.format).date().isoformat()
    except (ValueError, ZeroDivisionError):
        return None
    return _sendable(text)


def _sendable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = "\0"
    if "\0" in text:
        raise QueryRefused(
            "A text in the query holds a zero byte or half a character.",
            "No table can hold such a text in every engine.",
            "Leave the character out.",
        )
    return text


def _mismatch(column: str) -> QueryRefused:
    return QueryRefused(
        f"Column '{column}' is compared with a value of another kind.",
        "Numbers compare with numbers, dates with dates, and texts with texts; LIKE is for texts.",
        "Write the value as the column's kind asks.",
    )
