"""Frozen values become SQL: every literal a bound parameter, every column a name made by us from its place.

The text is one that DuckDB and PostgreSQL both read; where they differ, a `Dialect` says how. Nothing an analyst
wrote is ever part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from math import gcd
from typing import Any, Literal

from velado.data.numbers import with_point
from velado.data.schema import Column, Schema
from velado.errors import QueryRefused, SchemaError
from velado.query.needs import AnyKey, ClassKey, Grid, GridCells, GridSum, GroupKey, Rows
from velado.query.unit import Unit
from velado.query.values import And, Compare, In, IsNull, Like, Not, Or, Predicate, Value
from velado.text import say

# How an engine names a schema's columns: by their place, so that no name of the owner's needs to be trusted or quoted.
#
# Column number i of the schema is `c<i>`: a number as FLOAT8 without NaN, a day as DATE, anything else as TEXT; missing
# is NULL. A number with declared bounds has its grid index beside it as `g<i>`. Names that differ only in case, hold
# quotes or are SQL's own words are therefore no special case in any query.

Sort = Literal["number", "day", "text"]

BLANKS = " \t\n\r\v\f"
"""What a server without NFKC takes away around the text of a unit: to merge two units is safe, to split one is not."""


@dataclass(frozen=True)
class ColumnPlace:
    """One column: its declaration, its number, how it is compared, and its grid if it has one."""

    column: Column
    number: int
    sort: Sort
    grid: Grid | None

    @property
    def name(self) -> str:
        """The column's name in every statement."""
        return f"c{self.number}"

    @property
    def index(self) -> str:
        """The name of the column's grid index in every statement."""
        return f"g{self.number}"


@dataclass(frozen=True)
class Layout:
    """The places of all columns a schema declares, and how its numbers are written."""

    places: Mapping[str, ColumnPlace]
    decimal: str = "."
    unit: Unit = field(default_factory=Unit)

    @classmethod
    def of(cls, schema: Schema, unit: Unit) -> Layout:
        """Every declared column has a place, in the schema's order; the unit's column must be among them."""
        if unit.column is not None and unit.column not in schema.columns:
            raise SchemaError(
                say(
                    "The unit is all rows with one value of '{column}', which the schema does not name.",
                    column=unit.column,
                ),
                "Whose rows belong together could not be told.",
                "Add the column to the schema, or name another one.",
            )
        places = {}
        for number, column in enumerate(schema.columns.values()):
            sort: Sort = {"numeric": "number", "date": "day"}.get(column.kind, "text")  # type: ignore[assignment]
            places[column.name] = ColumnPlace(column, number, sort, _grid(column))
        return cls(places, schema.decimal, unit)

    def place(self, name: str) -> ColumnPlace:
        """The place of a declared column, or QueryRefused."""
        found = self.places.get(name)
        if found is None:
            raise QueryRefused(
                say("There is no column '{name}' in the schema.", name=name),
                "Only declared columns can be asked about.",
                "Use a name the schema declares.",
            )
        return found

    def on_grid(self, grid: Grid) -> ColumnPlace:
        """The place whose declared grid this is; any other grid was not prepared and is refused."""
        place = self.place(grid.column)
        if place.grid != grid:
            raise QueryRefused(
                say("Column '{column}' is not summed on that grid.", column=grid.column),
                "The rows stand on the grid the schema declares.",
                "Build the grid with Grid.of from the table's own schema.",
            )
        return place


def _grid(column: Column) -> Grid | None:
    try:
        return Grid.of(column)
    except QueryRefused:
        return None


# The grid index of a double, exactly, in SQL and in Python: floor(x/step + 1/2) clamped to [low, high].
#
# x is the rational number the double stands for (0.15 is a little less than 15/100, so on a step of 0.1 it counts with
# 1), and the quotient is never rounded. In SQL the quotient q of two doubles is off by at most |q| 2^-52; where its
# fraction is farther than that from 1/2 the rounded answer is the true one, and only the few numbers that lie on a tie,
# or within that hair of one, are compared exactly: (2k + 1) step <= 2x in whole numbers.


def index_of(x: float, grid: Grid) -> int:
    """The index of one number, which is not NaN: what every engine must say."""
    if math.isinf(x):
        return grid.high if x > 0 else grid.low
    return min(max(math.floor(Fraction(x) / grid.step + Fraction(1, 2)), grid.low), grid.high)


def indices_of(values: list[float], grid: Grid) -> list[int]:
    """The indices of several numbers, each computed in rationals: about 3 microseconds a number."""
    return [index_of(x, grid) for x in values]


def index_sql(x: str, grid: Grid, exact: str) -> str:
    """The index of the column *x* as SQL; *exact* is the SQL for numbers on or near a tie (see `exact_sql`).

    No branch can overflow, underflow or divide by zero, whatever x holds, because an engine that reports an error
    for one row would tell of that row.
    """
    if grid.low == grid.high:
        return f"CASE WHEN {x} IS NULL THEN NULL ELSE {_whole(grid.low)} END"
    step = _double(float(grid.step))
    quotient = f"({x} / {step})"
    floor = f"floor({quotient})"
    fraction = f"({quotient} - {floor})"
    # Outside these the index is a bound; x / step is then at most 2^40 and needs no care.
    first, last = least_above(grid, grid.low), least_above(grid, grid.high - 1)
    inside = f"CAST({floor} + CASE WHEN {fraction} >= 0.5::FLOAT8 THEN 1 ELSE 0 END AS INT8)"
    near = ""
    if not _power_of_two(grid.step):
        hair = f"(abs({quotient}) * {_double(2.0**-51)} + {_double(2.0**-50)})"
        near = f"WHEN abs({fraction} - 0.5::FLOAT8) <= {hair} THEN {exact} "
    quarter = _double(math.nextafter(float(grid.step / 4), 0.0))
    zero = f"WHEN abs({x}) < {quarter} THEN {_whole(0)} " if grid.low <= 0 <= grid.high else ""
    return (
        f"CASE WHEN {x} IS NULL THEN NULL WHEN {x} >= {_double(last)} THEN {_whole(grid.high)} "
        f"WHEN {x} < {_double(first)} THEN {_whole(grid.low)} {zero}{near}ELSE {inside} END"
    )


def exact_sql(x: str, grid: Grid) -> str:
    """PostgreSQL's exact comparison for a number near a tie: its bits as a whole number times a power of two.

    With x = m 2^e, q = floor(x / step) as doubles and step = p/d: the index is q + 1 if 2 d m 2^e >= (2q + 1) p, else q.
    """
    p, d = grid.step.numerator, grid.step.denominator
    bits = f"('x' || encode(float8send(abs({x})), 'hex'))::bit(64)::int8"
    # A biased exponent of 0 marks a number without the implicit leading bit.
    raised = f"(({bits}) >> 52)"
    mantissa = (
        f"(({bits}) & 4503599627370495) + CASE WHEN {raised} = 0 THEN 0::int8 ELSE 4503599627370496::int8 END"
    )
    exponent = f"(greatest({raised}, 1) - 1075)"
    sign = f"CASE WHEN {x} < 0 THEN -1 ELSE 1 END"
    floor = f"floor({x} / {_double(float(grid.step))})::int8"
    left = f"({mantissa})::numeric * ({sign}) * {2 * d}::numeric * power(2::numeric, greatest({exponent}, 0)::numeric)"
    right = (
        f"(2 * {floor} + 1)::numeric * {p}::numeric * power(2::numeric, greatest(-{exponent}, 0)::numeric)"
    )
    return f"({floor} + CASE WHEN {left} >= {right} THEN 1 ELSE 0 END)"


def least_above(grid: Grid, index: int) -> float:
    """The smallest double whose index is above *index*: (index + 1/2) step, rounded up."""
    edge = (index + Fraction(1, 2)) * grid.step
    near = float(edge)
    return near if Fraction(near) >= edge else math.nextafter(near, math.inf)


def _power_of_two(step: Fraction) -> bool:
    return all(part & (part - 1) == 0 for part in (step.numerator, step.denominator))


def _double(value: float) -> str:
    # Seventeen digits name a double; a quoted text keeps SQL from reading it as a decimal first.
    return f"'{value!r}'::FLOAT8"


def _whole(value: int) -> str:
    return f"'{value}'::INT8"


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

    def name(self, place: ColumnPlace) -> str:
        """A column by its place, remembered as used."""
        self.used[place.name] = None
        return place.name

    def index(self, place: ColumnPlace) -> str:
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

    def cell(self, keys: Sequence[AnyKey]) -> tuple[str, str]:
        """The number of a row's cell, row-major, and the joins to the declared domains it needs."""
        code, joins = "0::INT8", ""
        for number, key in enumerate(keys):
            place = self.layout.place(key.column)
            if isinstance(key, ClassKey):
                code = f"({code} * {key.size} + {self._class(place, key)})"
                continue
            listed = domain_values(place, key, self.layout.decimal)
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

    def _class(self, place: ColumnPlace, key: ClassKey) -> str:
        """The class of a row's value; the arms are tried in order, so a number belongs to the first cut it is below."""
        name, *found = self.name(place), *key.classes
        other, missing = found[-2], found[-1]
        arms = [f"WHEN {name} IS NULL THEN {missing}"]
        for cut, at in zip(key.cuts, found, strict=False):
            bound = self.bind(cut, "FLOAT8") if isinstance(cut, float) else self.bind(cut.isoformat(), "DATE")
            arms.append(f"WHEN {name} < {bound} THEN {at}")
        by_class: dict[int, list[str]] = {}
        for text, at in zip(key.texts, found, strict=False):
            by_class.setdefault(at, []).append(text)
        for at, texts in by_class.items():
            if at != other:
                listed = ", ".join(self.bind(_sendable(text), "TEXT") for text in texts)
                arms.append(f"WHEN {name} IN ({listed}) THEN {at}")
        return f"CASE {' '.join(arms)} ELSE {other} END"

    def _literal(self, place: ColumnPlace, value: Value) -> str:
        if place.sort == "number" and isinstance(value, Fraction):
            return self.bind(nearest_double(value), "FLOAT8")
        if place.sort == "day" and isinstance(value, date):
            return self.bind(value.isoformat(), "DATE")
        if place.sort == "text" and isinstance(value, str):
            return self.bind(_sendable(value), "TEXT")
        raise _mismatch(place.column.name)


def sums(
    statement: Statement, where: Predicate | None, keys: Sequence[AnyKey], needs: Sequence[Rows | GridSum]
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


def cells(statement: Statement, where: Predicate | None, keys: Sequence[AnyKey], need: GridCells) -> str:
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


def domain_values(place: ColumnPlace, key: GroupKey, decimal: str) -> dict[Any, int]:
    """The values of a key's texts and their places; of two texts of one number the first one has the rows."""
    listed: dict[Any, int] = {}
    for number, text in enumerate(key.domain):
        value = _value_of(place, text, decimal)
        if value is not None:
            listed.setdefault(value, number)
    return listed


def _value_of(place: ColumnPlace, text: str, decimal: str) -> str | float | None:
    # A text that is no number or day of the column's kind can stand in no row.
    try:
        if place.sort == "number":
            if len(text) < 300 and text.isascii() and text.isdigit():
                return float(int(text))  # what the line below says, several times as fast
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
        say("Column '{column}' is compared with a value of another kind.", column=column),
        "Numbers compare with numbers, dates with dates, and texts with texts; LIKE is for texts.",
        "Write the value as the column's kind asks.",
    )
