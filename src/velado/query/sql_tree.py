"""The parsed tree, opened only where every part of a node is known.

sqlglot keeps a clause as an argument of a node; a walk that looked only at the arguments it wants would pass over the
rest. So a node is opened by naming all arguments that may be there, and anything else in it refuses the query. What is
read is counted, and the counts must be those of the query's words: nothing the parser dropped can go unnoticed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from velado.data.schema import Column, Schema
from velado.errors import QueryRefused
from velado.query.sql_names import check_table, column_of
from velado.query.sql_reasons import BY_NODE, BY_PART, refused, unknown
from velado.query.sql_tokens import Words, dialect, parser, unreadable

MOST_DIGITS = 60
MOST_EXPONENT = 300
_SIDE = rf"([0-9]{{0,{MOST_DIGITS}}})"
_NUMBER = re.compile(rf"{_SIDE}(?:\.{_SIDE})?(?:[eE]([+-]?[0-9]{{1,3}}))?", re.ASCII)


def tree_of(text: str, words: Words) -> Any:
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
        raise refused(("A second statement", "One query is one question.", "Ask one SELECT at a time."))
    return statements[0]


def named(node: Any) -> str:
    """The class of a node; empty for no node."""
    return "" if node is None else type(node).__name__


def refuse_node(node: Any) -> QueryRefused:
    """The refusal of a node, by its construct."""
    name = named(node)
    if name in BY_NODE:
        return refused(BY_NODE[name])
    function = any(base.__name__ == "Func" for base in type(node).__mro__) and name not in ("And", "Or")
    return refused(BY_NODE["Func"]) if function else unknown("An expression")


def opened(node: Any, name: str, *parts: str, flags: tuple[str, ...] = ()) -> dict[str, Any]:
    """The arguments of a node of class *name*: *parts* may hold anything, *flags* are known and mean nothing here."""
    if named(node) != name:
        raise refuse_node(node)
    for part, value in node.args.items():
        if value is None or value is False or value == [] or part in parts or part in flags:
            continue
        raise refused(BY_PART[part]) if part in BY_PART else unknown("A clause or option")
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
            raise unknown("An empty name")
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

    def check_complete(self, words: Words) -> None:
        """Nothing, where every word that carries meaning was read as often as it was written."""
        if +self.read != +words.counts:
            raise unknown("A part of the query")


def number(text: str) -> Fraction:
    """The fraction a decimal text names: 0.1 is one tenth. At most 60 digits each side, exponent to 300."""
    found = _NUMBER.fullmatch(text)
    if found is None or not (found[1] or found[2]) or abs(int(found[3] or 0)) > MOST_EXPONENT:
        raise QueryRefused(
            "A number of the query is not a plain decimal of moderate size.",
            f"Numbers are compared exactly; they may have {MOST_DIGITS} digits on each side and an exponent up to {MOST_EXPONENT}.",
            "Write for example 12, 0.5 or 1.5e6.",
        )
    return Fraction(text if found[1] else "0" + text)
