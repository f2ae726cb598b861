"""Literals of a query as exact values of the kind the schema declares for the column they are compared with."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time
from fractions import Fraction
from typing import Any

from velado.data.schema import Column, Schema
from velado.errors import QueryRefused
from velado.query.sql._refusals import REFUSED, QueryTokens, dialect, parser, refused, unknown, unreadable
from velado.query.values import Value
from velado.text import say

# The parsed tree, opened only where every part of a node is known.
#
# sqlglot keeps a clause as an argument of a node; a walk that looked only at the arguments it wants would pass over the
# rest. So a node is opened by naming all arguments that may be there, and anything else in it refuses the query. What is
# read is counted, and the counts must be those of the query's words: nothing the parser dropped can go unnoticed.

MOST_DIGITS = 60
MOST_EXPONENT = 300
_SIDE = rf"([0-9]{{0,{MOST_DIGITS}}})"
_NUMBER = re.compile(rf"{_SIDE}(?:\.{_SIDE})?(?:[eE]([+-]?[0-9]{{1,3}}))?", re.ASCII)


def tree_of(text: str, words: QueryTokens) -> Any:
    """The one statement of *text* as sqlglot's tree, made from the very words that were checked; its errors are refusals."""
    sqlglot = parser()
    try:
        statements = [
            tree
            for tree in dialect().parser().parse(list(words.tokens), text)
            if named(tree) not in ("", "Semicolon")
        ]
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError):
        # The parser's own slips on nonsense are refusals as well: it saw a text, and no row.
        raise unreadable() from None
    if len(statements) != 1:
        raise refused(
            say("A second statement"), say("One query is one question."), say("Ask one SELECT at a time.")
        )
    return statements[0]


def named(node: Any) -> str:
    """The class of a node; empty for no node."""
    return "" if node is None else type(node).__name__


def refuse_node(node: Any) -> QueryRefused:
    """The refusal of a node, by its construct."""
    name = named(node)
    if name in REFUSED:
        return refused(*REFUSED[name])
    function = any(base.__name__ == "Func" for base in type(node).__mro__) and name not in ("And", "Or")
    return refused(*REFUSED["Func"]) if function else unknown(say("An expression"))


def opened(node: Any, name: str, *parts: str, flags: tuple[str, ...] = ()) -> dict[str, Any]:
    """The arguments of a node of class *name*: *parts* may hold anything, *flags* are known and mean nothing here."""
    if named(node) != name:
        raise refuse_node(node)
    for part, value in node.args.items():
        if value is None or value is False or value == [] or part in parts or part in flags:
            continue
        raise refused(*REFUSED[part]) if part in REFUSED else unknown(say("A clause or option"))
    return {part: node.args.get(part) for part in parts}


@dataclass
class Reader:
    """One query being read: the schema, the table's name, and what has been read so far, by word."""

    schema: Schema
    table: str
    read: Counter[str] = field(default_factory=Counter)

    def use(self, word: str, times: int = 1) -> None:
        """Note that a word of the query has found its place."""
        self.read[word] += times

    def identifier(self, node: Any) -> tuple[str, bool]:
        """A name and whether it is quoted."""
        parts = opened(node, "Identifier", "this", "quoted")
        if not isinstance(parts["this"], str) or not parts["this"]:
            raise unknown(say("An empty name"))
        self.use("NAME")
        return parts["this"], bool(parts["quoted"])

    def column(self, node: Any) -> Column:
        """The declared column a tree's column means; it may be qualified by the table's own name."""
        parts = opened(node, "Column", "this", "table")
        if parts["table"] is not None:
            check_table(self.table, *self.identifier(parts["table"]))
        if named(parts["this"]) != "Identifier":
            raise refuse_node(parts["this"])
        return column_of(self.schema, *self.identifier(parts["this"]))

    def literal(self, node: Any) -> str | Fraction:
        """A text, or a number exactly as its digits say; a minus sign may stand before a number."""
        if named(node) == "Neg":
            inner = opened(node, "Neg", "this")["this"]
            value = self.literal(inner) if named(inner) == "Literal" else None
            if not isinstance(value, Fraction):
                raise refuse_node(node)
            self.use("DASH")
            return -value
        parts = opened(node, "Literal", "this", "is_string")
        if parts["is_string"]:
            self.use("STRING")
            return str(parts["this"])
        self.use("NUMBER")
        return number(str(parts["this"]))

    def check_complete(self, words: QueryTokens) -> None:
        """Nothing, where every word that carries meaning was read as often as it was written."""
        if +self.read != +words.counts:
            raise unknown(say("A part of the query"))


def number(text: str) -> Fraction:
    """The fraction a decimal text names: 0.1 is one tenth. At most 60 digits each side, exponent to 300."""
    found = _NUMBER.fullmatch(text)
    if found is None or not (found[1] or found[2]) or abs(int(found[3] or 0)) > MOST_EXPONENT:
        raise QueryRefused(
            "A number of the query is not a plain decimal of moderate size.",
            say(
                "Numbers are compared exactly; they may have {most_digits} digits on each side and an "
                "exponent up to {most_exponent}.",
                most_digits=MOST_DIGITS,
                most_exponent=MOST_EXPONENT,
            ),
            "Write for example 12, 0.5 or 1.5e6.",
        )
    return Fraction(text if found[1] else "0" + text)


# Which declared column or table a name of the query means, and whether it may be asked about.
#
# A quoted name is taken exactly. An unquoted one is too if a column is called so, else it matches without regard to case
# where one column alone does.

_LONGEST_GUESS = 100


def find(name: str, quoted: bool, known: Iterable[str]) -> str | None:
    """The known name that is meant, or None where there is none or more than one."""
    known = tuple(known)
    if name in known:
        return name
    if quoted:
        return None
    near = [candidate for candidate in known if candidate.casefold() == name.casefold()]
    return near[0] if len(near) == 1 else None


def queryable(schema: Schema) -> tuple[str, ...]:
    """The columns a query may name, in the schema's order.

    >>> queryable(Schema({"age": Column("age"), "name": Column("name", "identifier")}))
    ('age',)
    """
    return tuple(name for name, column in schema.columns.items() if why_closed(column) is None)


def why_closed(column: Column) -> tuple[str, str] | None:
    """Why a column may not be named in a query, as (what it is, why), or None where it may."""
    if column.person or column.group:
        return say("says which rows belong together"), say(
            "It is what the promise protects, and a question about one value of it is a question about one unit."
        )
    if column.role == "identifier":
        return say("is declared an identifier"), say(
            "It has no use in an aggregate, and a test of it would ask about one person: noise would drown the answer."
        )
    if not column.publish:
        kept = say("Its owner keeps it out of everything that leaves, and an answer leaves.")
        return say("is declared publish = false"), kept
    return None


def column_of(schema: Schema, name: str, quoted: bool) -> Column:
    """The declared column a name means; refused where there is none, or where it may not be asked about."""
    found = find(name, quoted, schema.columns)
    if found is None:
        raise _undeclared(schema, name)
    column = schema.columns[found]
    closed = why_closed(column)
    if closed is not None:
        what, why = closed
        raise QueryRefused(
            say("Column '{found}' {what}, so it cannot be asked about.", found=found, what=what),
            why,
            "Ask about other columns.",
        )
    return column


def check_table(table: str, name: str, quoted: bool) -> None:
    """Nothing, where *name* means the table; refused otherwise."""
    if find(name, quoted, (table,)) is None:
        raise QueryRefused(
            "The query names another table than the one that is served.",
            "There is one table, and nothing else can be reached.",
            say('Write FROM "{table}".', table=table),
        )


def _undeclared(schema: Schema, name: str) -> QueryRefused:
    # What the analyst wrote is not repeated: a misplaced quote turns a literal into a name.
    open_names = queryable(schema)
    near: list[str] = []
    if len(name) <= _LONGEST_GUESS:
        near = difflib.get_close_matches(name, open_names, n=1)
    same = sum(candidate.casefold() == name.casefold() for candidate in schema.columns)
    if same > 1:
        hint = say(
            "Several columns differ from it in upper and lower case alone; put the exact name in double quotes."
        )
    elif near:
        hint = say('Did you mean "{near}"? Text goes in single quotes, names in double quotes.', near=near[0])
    else:
        listed = ", ".join(f'"{candidate}"' for candidate in open_names[:20])
        more = say(" and more") if len(open_names) > 20 else ""
        hint = say("Columns are {listed}{more}; text goes in single quotes.", listed=listed, more=more)
    return QueryRefused(
        "The query names a column that is not declared.",
        "Only columns of the schema can be asked about, as they are written there.",
        hint,
    )


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
            say(
                "A text compared with column '{column}' is not a day in the declared format.",
                column=column.name,
            ),
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
    kinds = {"numeric": say("numbers"), "date": say("dates")}
    wanted = kinds.get(column.kind, say("text in single quotes"))
    return QueryRefused(
        say(
            "Column '{column}' is declared {kind} and is compared with something else.",
            column=column.name,
            kind=column.kind,
        ),
        "A comparison across types is read differently by different engines.",
        say("Compare it with {kind}.", kind=wanted),
    )
