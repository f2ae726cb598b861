"""One item of the SELECT list as an aggregate whose column has what it needs, and the names of the answer's columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from velado.data.schema import Column, Schema
from velado.errors import QueryRefused
from velado.query.domains import decimal_text
from velado.query.grid import Grid
from velado.query.sql_reasons import BY_NODE, refused
from velado.query.sql_tree import Reader, named, opened, refuse_node
from velado.query.values import Aggregate, AggregateKind

MOST_BINS = 1_000
# A level finer than this tells no table apart from another, and scores of quantiles stay small whole numbers.
FINEST_LEVEL = 10**6
LONGEST_ALIAS = 63
# What the answer puts after an aggregate's name for the ends of its interval and for a bin.
ENDS = ("", "_low", "_high", "_bin")

_PLAIN: dict[str, AggregateKind] = {"Sum": "sum", "Avg": "avg", "Min": "min", "Max": "max"}


def aggregate_of(reader: Reader, node: Any) -> Aggregate:
    """What one item of the SELECT list asks for; its alias is empty where none is written."""
    if named(node) != "Alias":
        return _bare(reader, node)
    parts = opened(node, "Alias", "this", "alias")
    if named(parts["this"]) == "Column":
        raise refused(("A key with an alias", "A key keeps its column's name.", "Leave the alias out."))
    alias, _ = reader.identifier(parts["alias"])
    found = _bare(reader, parts["this"])
    if len(alias) > LONGEST_ALIAS or not alias.isprintable():
        raise refused(
            ("An alias that is long or not printable", "It heads a column.", "Choose a short name.")
        )
    if any(name.casefold() == alias.casefold() for name in reader.schema.columns):
        raise refused(
            (
                "An alias that is also a column",
                "One name would mean two things.",
                "Choose another name, for example with the aggregate's before it.",
            )
        )
    return replace(found, alias=alias)


def with_names(
    schema: Schema, aggregates: tuple[Aggregate, ...], keys: tuple[str, ...]
) -> tuple[Aggregate, ...]:
    """The aggregates, each with a name of its own: no two of the answer's columns, ends of intervals included, are alike."""
    asked = [(a.kind, a.column, a.at, a.bins) for a in aggregates]
    if len(set(asked)) != len(asked):
        raise refused(
            (
                "The same aggregate twice in one query",
                "Each would get a share of the budget, and both would be noisier than one.",
                "Ask for it once.",
            )
        )
    if len(asked) > 1 and any(aggregate.bins is not None for aggregate in aggregates):
        raise refused(
            (
                "HISTOGRAM together with another aggregate",
                "Its answer has one line per bin, the others one line per key.",
                "Ask for the histogram in a query of its own.",
            )
        )
    taken = {name.casefold() for name in (*keys, *schema.columns)}
    for aggregate in aggregates:
        if aggregate.alias and not _take(aggregate.alias, taken):
            raise refused(
                (
                    "One name for two results",
                    "Beside each result its interval stands as name_low and name_high, and all names must differ.",
                    "Choose different aliases.",
                )
            )
    named_all = []
    for aggregate in aggregates:
        alias, number = aggregate.alias, 1
        while not alias:
            tried = _default_name(aggregate) + ("" if number == 1 else f"_{number}")
            alias, number = (tried if _take(tried, taken) else ""), number + 1
        named_all.append(replace(aggregate, alias=alias))
    return tuple(named_all)


def _take(name: str, taken: set[str]) -> bool:
    heads = {(name + end).casefold() for end in ENDS}
    if heads & taken:
        return False
    taken |= heads
    return True


def _default_name(aggregate: Aggregate) -> str:
    if aggregate.column is None:
        return "count"
    if aggregate.at is None:
        return f"{aggregate.kind}_{aggregate.column}"
    if aggregate.at == Fraction(1, 2):
        return f"median_{aggregate.column}"
    return f"p{decimal_text(aggregate.at * 100).replace('.', '_')}_{aggregate.column}"


def _bare(reader: Reader, node: Any) -> Aggregate:
    name = named(node)
    reading: Callable[[Reader, Any], Aggregate] | None = {
        "Count": _count,
        "Median": _median,
        "Quantile": _quantile,
        "WithinGroup": _within,
        "Anonymous": _histogram,
        **dict.fromkeys(_PLAIN, _plain),
    }.get(name)
    if reading is None:
        if name in ("Literal", "Paren", "Neg"):
            raise refused(
                ("A SELECT item that is no aggregate", "There is nothing to answer.", "Leave it out.")
            )
        raise refuse_node(node)
    reader.use("NAME")
    return reading(reader, node)


def _count(reader: Reader, node: Any) -> Aggregate:
    inner = opened(node, "Count", "this", flags=("big_int",))["this"]
    if named(inner) == "Star":
        opened(inner, "Star")
        return Aggregate("count")
    if named(inner) == "Literal":
        raise refused(("COUNT of a literal", "It counts rows in a roundabout way.", "Write COUNT(*)."))
    return Aggregate("count", reader.column(inner).name)


def _plain(reader: Reader, node: Any) -> Aggregate:
    name = named(node)
    return Aggregate(_PLAIN[name], _gridded(reader, opened(node, name, "this")["this"]).name)


def _median(reader: Reader, node: Any) -> Aggregate:
    column = _gridded(reader, opened(node, "Median", "this")["this"])
    return Aggregate("quantile", column.name, at=Fraction(1, 2))


def _quantile(reader: Reader, node: Any) -> Aggregate:
    parts = opened(node, "Quantile", "this", "quantile")
    return Aggregate("quantile", _gridded(reader, parts["this"]).name, at=_level(reader, parts["quantile"]))


def _within(reader: Reader, node: Any) -> Aggregate:
    parts = opened(node, "WithinGroup", "this", "expression")
    reader.use("NAME", 2)
    function = named(parts["this"])
    if function not in ("PercentileCont", "PercentileDisc"):
        raise refused(BY_NODE["Func"])
    at = _level(reader, opened(parts["this"], function, "this")["this"])
    ordered = opened(parts["expression"], "Order", "expressions")["expressions"] or []
    if len(ordered) != 1:
        raise refused(("WITHIN GROUP with several columns", "A quantile is of one column.", "Name one."))
    # Missing values are left out, so where they would be sorted does not matter.
    column = _gridded(reader, opened(ordered[0], "Ordered", "this", flags=("nulls_first",))["this"])
    return Aggregate("quantile", column.name, at=at)


def _histogram(reader: Reader, node: Any) -> Aggregate:
    parts = opened(node, "Anonymous", "this", "expressions")
    arguments = parts["expressions"] or []
    if not isinstance(parts["this"], str) or parts["this"].upper() != "HISTOGRAM":
        raise refused(BY_NODE["Func"])
    if len(arguments) != 2:
        raise refused(
            (
                "HISTOGRAM without a column and a number of bins",
                "Both are needed.",
                "Write HISTOGRAM(column, 10).",
            )
        )
    column = _gridded(reader, arguments[0])
    grid = Grid.of(column)
    most = min(MOST_BINS, grid.high - grid.low + 1)
    bins = reader.literal(arguments[1])
    if not isinstance(bins, Fraction) or bins.denominator != 1 or not 1 <= bins <= most:
        raise QueryRefused(
            f"The bins of HISTOGRAM must be a whole number from 1 to {most:,} for column '{column.name}'.",
            "Bins are equal parts of the declared bounds, each at least one step wide.",
            "Choose for example 10.",
        )
    return Aggregate("histogram", column.name, bins=int(bins))


def _gridded(reader: Reader, node: Any) -> Column:
    if named(node) != "Column":
        raise refuse_node(node)
    column = reader.column(node)
    Grid.of(column)
    return column


def _level(reader: Reader, node: Any) -> Fraction:
    at = reader.literal(node) if named(node) in ("Literal", "Neg") else None
    if not isinstance(at, Fraction) or not 0 < at < 1 or FINEST_LEVEL % at.denominator:
        raise QueryRefused(
            "The level of a quantile must lie strictly between 0 and 1, with at most six decimals.",
            "At 0 and 1 stand the extremes, which single rows decide.",
            "Write for example QUANTILE(column, 0.25); for extremes use MIN and MAX.",
        )
    return at
