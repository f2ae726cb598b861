"""A question built as values instead of text, held to the same rules: it is written as SQL and read again.

So there is one reader, and one list of what it refuses. What cannot be written (a float, a value of another type, a number
with no last decimal) is refused here. After the reading both forms are compared, so that a slip of the writer refuses a
question and never changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from numbers import Rational
from typing import get_args

from velado.data.schema import Schema
from velado.errors import QueryRefused
from velado.query import values as asked
from velado.query.domains import decimal_text
from velado.query.sql._conditions import all_of, any_of, negated, one_of
from velado.query.sql._parse import MOST_BINS, parse
from velado.query.sql._refusals import MOST_CHARACTERS, MOST_TOKENS, refused, too_large, unknown
from velado.query.sql._tree import MOST_DIGITS, MOST_EXPONENT, wrong_type
from velado.text import say

# Above this a whole number has more digits than two sides and the exponent can write, and counting them would be slow.
_MOST_BITS = 4 * (2 * MOST_DIGITS + MOST_EXPONENT)


def checked(query: object, schema: Schema, table: str) -> asked.Query:
    """The question that the SQL of *query* asks, in normal form and with its results named, or QueryRefused.

    >>> checked(asked.Query("stays", (asked.Aggregate("count"),)), Schema({}), "stays").aggregates[0].alias
    'count'
    """
    try:
        plain = _Walk().query(query)
        for leaf in asked.leaves(plain.where):
            column = schema.columns.get(leaf.column)
            values = (
                (leaf.value,)
                if isinstance(leaf, asked.Compare)
                else leaf.values
                if isinstance(leaf, asked.In)
                else ()
            )
            # In SQL a text is read in the column's format; a value has a type of its own for days.
            if column is not None and column.kind == "date" and any(isinstance(v, str) for v in values):
                raise wrong_type(column)
        found = parse(to_sql(plain), schema, table)
        same = found.canonical() == plain.canonical()
    except RecursionError:
        raise too_large(say("The query is nested too deeply.")) from None
    if not same:
        raise unknown(say("A part of the query"))
    return found


def to_sql(query: asked.Query) -> str:
    """The SQL that asks *query*: names quoted, no bracket more than needed, numbers exact."""
    items = ", ".join(_item(aggregate) for aggregate in query.aggregates)
    where = "" if query.where is None else f" WHERE {_condition(query.where)}"
    listed = ", ".join(_name(key) for key in query.keys)
    keys = f" GROUP BY {f'ROLLUP ({listed})' if query.rollup else listed}" if query.keys else ""
    above = (
        ""
        if query.least is None
        else f" HAVING {_item(replace(query.aggregates[0], alias=''))} >= {query.least}"
    )
    return f"SELECT {items} FROM {_name(query.table)}{where}{keys}{above}"


def _item(aggregate: asked.Aggregate) -> str:
    inside = ["*" if aggregate.column is None else _name(aggregate.column)]
    inside += [] if aggregate.at is None else [number_text(aggregate.at)]
    inside += [] if aggregate.bins is None else [str(aggregate.bins)]
    alias = f" AS {_name(aggregate.alias)}" if aggregate.alias else ""
    return f"{aggregate.kind.upper()}({', '.join(inside)}){alias}"


def _condition(part: asked.Predicate) -> str:
    match part:
        case asked.Compare(column, operator, value):
            return f"{_name(column)} {operator} {_literal(value)}"
        case asked.In(column, values):
            return f"{_name(column)} IN ({', '.join(_literal(value) for value in values)})"
        case asked.Like(column, pattern):
            return f"{_name(column)} LIKE {_literal(pattern)}"
        case asked.IsNull(column):
            return f"{_name(column)} IS NULL"
        case asked.Not(inner):
            text = _condition(inner)
            return f"NOT ({text})" if isinstance(inner, asked.And | asked.Or) else f"NOT {text}"
        case asked.And(parts):
            # OR binds less than AND, so it alone needs brackets inside one.
            written = ((inner, _condition(inner)) for inner in parts)
            return " AND ".join(
                f"({text})" if isinstance(inner, asked.Or) else text for inner, text in written
            )
        case asked.Or(parts):
            return " OR ".join(_condition(inner) for inner in parts)


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _literal(value: asked.Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"DATE '{value.isoformat()}'" if isinstance(value, date) else number_text(value)


def number_text(value: Fraction) -> str:
    """A decimal that is exactly *value* and that the reader takes; QueryRefused where there is none."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        raise _no_decimal()
    try:
        with localcontext(Context(prec=_MOST_BITS, traps=[Inexact])):
            number = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
    except Inexact:
        raise _no_decimal() from None
    _, digits, power = number.as_tuple()
    # At most MOST_DIGITS on each side of the point, so many after it, and the exponent makes up for the rest.
    places = -int(power)
    low, high = (
        max(len(digits) - MOST_DIGITS, places - MOST_EXPONENT),
        min(MOST_DIGITS, places + MOST_EXPONENT),
    )
    if low > high:
        raise _no_decimal()
    exponent = min(max(places, low), high) - places
    return decimal_text(value / Fraction(10) ** exponent) + (f"e{exponent}" if exponent else "")


def _no_decimal() -> QueryRefused:
    return QueryRefused(
        "A number of the query is not a plain decimal of moderate size.",
        say(
            "Numbers are compared exactly; they may have {most_digits} digits on each side and an exponent "
            "up to {most_exponent}.",
            most_digits=MOST_DIGITS,
            most_exponent=MOST_EXPONENT,
        ),
        "Give for example Fraction(12), Fraction('0.5') or Fraction(3, 4).",
    )


def _of_another_type(what: str, wanted: str) -> QueryRefused:
    return QueryRefused(
        say("{what} is of another type than a question has there.", what=what),
        "A question that is understood by halves could be answered with too little noise.",
        say("Give {wanted}, or ask in SQL.", wanted=wanted),
    )


@dataclass
class _Walk:
    """One walk over a value that claims to be a question; *left* parts may still come.

    Parts can be shared, so that a small value in memory is endless when written out: parts are counted as they are met.
    """

    left: int = MOST_TOKENS

    def query(self, query: object) -> asked.Query:
        """A plain Query of plain values in normal form."""
        if not isinstance(query, asked.Query):
            raise _of_another_type(say("What is asked"), say("SQL as text, or a Query"))
        aggregates = tuple(
            self._aggregate(one) for one in self._parts(query.aggregates, say("The aggregates"))
        )
        if not aggregates:
            raise QueryRefused(
                "The query asks for no aggregate.",
                "Rows and lists of keys are not answers; what is answered is counted, summed or averaged.",
                "Add for example Aggregate('count').",
            )
        keys = tuple(self._text(key, say("A key")) for key in self._parts(query.keys, say("The keys")))
        where = None if query.where is None else self._predicate(query.where)
        if not isinstance(query.rollup, bool):
            raise _of_another_type(say("Whether keys are rolled up"), say("True or False"))
        if query.least is not None and (isinstance(query.least, bool) or not isinstance(query.least, int)):
            raise _of_another_type(say("The least count"), say("a whole number"))
        table = self._text(query.table, say("The table's name"))
        return asked.Query(table, aggregates, where, keys, query.rollup, query.least)

    def _parts(self, parts: object, what: str) -> tuple[object, ...]:
        if not isinstance(parts, tuple):
            raise _of_another_type(what, say("a tuple"))
        self._count(len(parts))
        return parts

    def _count(self, parts: int) -> None:
        self.left -= parts
        if self.left < 0:
            raise too_large(say("The query has more than {most:,} words.", most=MOST_TOKENS))

    def _text(self, text: object, what: str) -> str:
        if not isinstance(text, str):
            raise _of_another_type(what, say("a text"))
        self._count(1)
        if len(text) > MOST_CHARACTERS:
            raise too_large(say("The query is longer than {most:,} characters.", most=MOST_CHARACTERS))
        return str(text)

    def _number(self, number: object, what: str) -> Fraction:
        # Yes and no are numbers to Python; a float is rarely the number that was meant, and some are none at all.
        if isinstance(number, bool) or not isinstance(number, Rational):
            raise _of_another_type(what, say("a Fraction, for example Fraction('0.1')"))
        return Fraction(int(number.numerator), int(number.denominator))

    def _aggregate(self, given: object) -> asked.Aggregate:
        if not isinstance(given, asked.Aggregate):
            raise _of_another_type(say("An aggregate"), say("an Aggregate"))
        if given.kind not in get_args(asked.AggregateKind):
            raise _of_another_type(
                say("The kind of an aggregate"),
                say("one of {kinds}", kinds=", ".join(get_args(asked.AggregateKind))),
            )
        column = None if given.column is None else self._text(given.column, say("The column of an aggregate"))
        if column is None and given.kind != "count":
            raise QueryRefused(
                say("The aggregate {kind} names no column of the schema.", kind=given.kind.upper()),
                "Its bounds and step are read from there.",
                "Name a declared column.",
            )
        if (given.at is not None) != (given.kind == "quantile"):
            raise _of_another_type(
                say("The level of an aggregate"), say("one to a quantile, and to no other")
            )
        if (given.bins is not None) != (given.kind == "histogram"):
            raise _of_another_type(
                say("The number of bins"), say("one to a histogram, and to no other aggregate")
            )
        at = None if given.at is None else self._number(given.at, say("A level"))
        bins = None if given.bins is None else self._number(given.bins, say("The number of bins"))
        if bins is not None and (bins.denominator != 1 or not 0 <= bins <= MOST_BINS):
            raise QueryRefused(
                say(
                    "The bins of HISTOGRAM must be a whole number from 1 to {most_bins:,}.",
                    most_bins=MOST_BINS,
                ),
                "Bins are equal parts of the declared bounds, each at least one step wide.",
                "Choose for example 10.",
            )
        alias = self._text(given.alias, say("An alias"))
        return asked.Aggregate(given.kind, column, at, None if bins is None else int(bins), alias)

    def _predicate(self, given: object) -> asked.Predicate:
        self._count(1)
        match given:
            case asked.Compare(column, operator, value):
                if operator not in get_args(asked.Comparison):
                    raise _of_another_type(
                        say("A comparison"), say("one of {kinds}", kinds=" ".join(get_args(asked.Comparison)))
                    )
                return asked.Compare(self._text(column, say("A column")), operator, self._value(value))
            case asked.In(column, values):
                inside = [self._value(value) for value in self._parts(values, say("The values of IN"))]
                if not inside:
                    raise refused(
                        say("IN without a list of values"), say("It tests nothing."), say("Name the values.")
                    )
                return one_of(self._text(column, say("A column")), inside)
            case asked.Like(column, pattern):
                return asked.Like(self._text(column, say("A column")), self._text(pattern, say("A pattern")))
            case asked.IsNull(column):
                return asked.IsNull(self._text(column, say("A column")))
            case asked.Not(part):
                return negated(self._predicate(part))
            case asked.And(parts) | asked.Or(parts):
                tests = [self._predicate(part) for part in self._parts(parts, say("The parts of AND or OR"))]
                if not tests:
                    raise refused(say("AND or OR of nothing"), say("It tests nothing."), say("Leave it out."))
                return all_of(tests) if isinstance(given, asked.And) else any_of(tests)
        raise _of_another_type(say("A condition"), say("Compare, In, Like, IsNull, Not, And or Or"))

    def _value(self, value: object) -> asked.Value:
        self._count(1)
        if isinstance(value, str):
            return self._text(value, say("A value"))
        if isinstance(value, date) and not isinstance(value, datetime):
            return date(value.year, value.month, value.day)
        if isinstance(value, date):
            raise _of_another_type(say("A moment"), say("a date: days are compared as days"))
        number = self._number(value, say("A value"))
        # What cannot be written is refused before it is sorted by its text.
        number_text(number)
        return number
