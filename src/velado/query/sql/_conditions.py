"""WHERE as a frozen predicate in one normal form, so that equal questions have equal canonical texts.

The rules keep SQL's three-valued logic: BETWEEN is >= AND <=; NOT IN, NOT LIKE and NOT BETWEEN are NOT of the test; IN with
one value is =; a literal on the left changes sides; nested AND (OR) is one AND (OR) of different parts in canonical
order; NOT NOT is nothing. `<>` stays, as do tests that other tests imply.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from velado.data.schema import Column
from velado.errors import QueryRefused
from velado.query import values as asked
from velado.query.sql._refusals import refused, too_large
from velado.query.sql._tree import Reader, named, opened, refuse_node, value_of, wrong_type
from velado.text import say

MOST_VALUES = 1_000
MOST_TESTS = 200

_OPERATORS: dict[str, tuple[str, asked.Comparison, asked.Comparison]] = {
    "EQ": ("EQ", "=", "="),
    "NEQ": ("NEQ", "<>", "<>"),
    "LT": ("LT", "<", ">"),
    "LTE": ("LTE", "<=", ">="),
    "GT": ("GT", ">", "<"),
    "GTE": ("GTE", ">=", "<="),
}


def predicate_of(reader: Reader, node: Any) -> asked.Predicate:
    """The tree below WHERE in normal form."""
    predicate = _read(reader, node)
    if sum(1 for _ in asked.leaves(predicate)) > MOST_TESTS:
        raise too_large(say("WHERE holds more than {most} tests.", most=MOST_TESTS))
    return predicate


def all_of(parts: Iterable[asked.Predicate]) -> asked.Predicate:
    """Every part, flat, each once, in canonical order; a single part is itself."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, asked.And) else (part,))]
    kept = _ordered(flat)
    return kept[0] if len(kept) == 1 else asked.And(kept)


def any_of(parts: Iterable[asked.Predicate]) -> asked.Predicate:
    """Any part, flat, each once, in canonical order; a single part is itself."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, asked.Or) else (part,))]
    kept = _ordered(flat)
    return kept[0] if len(kept) == 1 else asked.Or(kept)


def negated(part: asked.Predicate) -> asked.Predicate:
    """NOT part; NOT NOT is nothing, for unknown as well."""
    return part.part if isinstance(part, asked.Not) else asked.Not(part)


def one_of(column: str, values: Iterable[asked.Value]) -> asked.Predicate:
    """`column IN values`, each once, in canonical order; one value is an equality."""
    different = {json.dumps(asked.value_form(value), ensure_ascii=False): value for value in values}
    kept = tuple(different[key] for key in sorted(different))
    return asked.Compare(column, "=", kept[0]) if len(kept) == 1 else asked.In(column, kept)


def _ordered(parts: list[asked.Predicate]) -> tuple[asked.Predicate, ...]:
    different = {json.dumps(asked.predicate_form(part), ensure_ascii=False): part for part in parts}
    return tuple(different[key] for key in sorted(different))


def _read(reader: Reader, node: Any) -> asked.Predicate:
    name = named(node)
    if name == "Paren":
        return _read(reader, opened(node, "Paren", "this")["this"])
    if name in ("And", "Or"):
        parts = [_read(reader, part) for part in _operands(reader, node, name)]
        return all_of(parts) if name == "And" else any_of(parts)
    if name == "Not":
        reader.use("NOT")
        return negated(_read(reader, opened(node, "Not", "this")["this"]))
    if name in _OPERATORS:
        return _comparison(reader, node, name)
    if name == "In":
        return _membership(reader, node)
    if name == "Between":
        return _between(reader, node)
    if name == "Like":
        return _like(reader, node)
    if name == "Is":
        return _is_null(reader, node)
    if name in ("Column", "Literal"):
        raise refused(
            say("A value without a comparison"),
            say("WHERE needs a test that is true or not."),
            say("Compare it."),
        )
    raise refuse_node(node)


def _operands(reader: Reader, node: Any, name: str) -> list[Any]:
    # The tree of `a AND b AND c` leans left; a loop follows it, so that long chains do not recurse.
    operands: list[Any] = []
    while named(node) == name:
        parts = opened(node, name, "this", "expression")
        reader.use(name.upper())
        operands.append(parts["expression"])
        node = parts["this"]
        if len(operands) > MOST_TESTS:
            raise too_large(say("WHERE holds more than {most} tests.", most=MOST_TESTS))
    return [node, *reversed(operands)]


def bare(node: Any) -> Any:
    """The node inside any brackets."""
    while named(node) == "Paren":
        node = opened(node, "Paren", "this")["this"]
    return node


def _tested(reader: Reader, node: Any) -> Column:
    node = bare(node)
    if named(node) != "Column":
        raise refuse_node(node)
    return reader.column(node)


def _comparison(reader: Reader, node: Any, name: str) -> asked.Predicate:
    word, operator, flipped = _OPERATORS[name]
    parts = opened(node, name, "this", "expression")
    left, right = bare(parts["this"]), bare(parts["expression"])
    if named(left) == "Column" and named(right) == "Column":
        raise refused(
            say("A comparison of two columns"),
            say("Text in double quotes is a column, and a column is compared with a literal."),
            say("Compare it with a number, a text in single quotes, or a DATE."),
        )
    if named(left) != "Column" and named(right) == "Column":
        left, right, operator = right, left, flipped
    column = _tested(reader, left)
    reader.use(word)
    value = value_of(reader, column, right)
    if isinstance(value, str) and operator not in ("=", "<>"):
        raise QueryRefused(
            say("Column '{column}' holds text, which has no order here.", column=column.name),
            "Engines sort text differently, so that < and > would mean different rows.",
            "Use =, <>, IN or LIKE.",
        )
    return asked.Compare(column.name, operator, value)


def _membership(reader: Reader, node: Any) -> asked.Predicate:
    parts = opened(node, "In", "this", "expressions", "negate")
    reader.use("IN")
    column = _tested(reader, parts["this"])
    items = parts["expressions"] or []
    if len(items) > MOST_VALUES:
        raise too_large(say("IN holds more than {most:,} values.", most=MOST_VALUES))
    if not items:
        raise refused(
            say("IN without a list of values"), say("It tests nothing."), say("Write IN ('a', 'b').")
        )
    found = one_of(column.name, [value_of(reader, column, bare(item)) for item in items])
    return _perhaps_negated(reader, found, parts["negate"])


def _between(reader: Reader, node: Any) -> asked.Predicate:
    parts = opened(node, "Between", "this", "low", "high", "negate")
    reader.use("BETWEEN")
    reader.use("AND")
    column = _tested(reader, parts["this"])
    low, high = (value_of(reader, column, bare(parts[end])) for end in ("low", "high"))
    if isinstance(low, str) or isinstance(high, str):
        raise QueryRefused(
            say(
                "Column '{column}' holds text, which has no order here, so BETWEEN cannot test it.",
                column=column.name,
            ),
            "Engines sort text differently, so that it would mean different rows.",
            "Use =, <>, IN or LIKE.",
        )
    found = all_of((asked.Compare(column.name, ">=", low), asked.Compare(column.name, "<=", high)))
    return _perhaps_negated(reader, found, parts["negate"])


def _like(reader: Reader, node: Any) -> asked.Predicate:
    parts = opened(node, "Like", "this", "expression", "negate")
    reader.use("LIKE")
    column = _tested(reader, parts["this"])
    pattern = bare(parts["expression"])
    if column.kind not in ("categorical", "text"):
        raise QueryRefused(
            say(
                "Column '{column}' is declared {kind}, and LIKE tests text alone.",
                column=column.name,
                kind=column.kind,
            ),
            "How a number or a date is written differs between engines.",
            "Use comparisons or BETWEEN.",
        )
    if named(pattern) != "Literal":
        raise refuse_node(pattern)
    text = reader.literal(pattern)
    if not isinstance(text, str):
        raise wrong_type(column)
    return _perhaps_negated(reader, asked.Like(column.name, text), parts["negate"])


def _is_null(reader: Reader, node: Any) -> asked.Predicate:
    parts = opened(node, "Is", "this", "expression", "negate")
    reader.use("IS")
    column = _tested(reader, parts["this"])
    if named(parts["expression"]) != "Null":
        raise refused(
            say("IS with anything but NULL"),
            say("It tests for a missing value alone."),
            say("Write IS NULL."),
        )
    opened(parts["expression"], "Null")
    reader.use("NULL")
    return _perhaps_negated(reader, asked.IsNull(column.name), parts["negate"])


def _perhaps_negated(reader: Reader, found: asked.Predicate, negate: Any) -> asked.Predicate:
    # Newer versions of the parser keep NOT LIKE and IS NOT NULL as a flag instead of a node around it.
    if negate:
        reader.use("NOT")
        return negated(found)
    return found
