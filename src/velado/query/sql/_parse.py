"""The accepted SQL, from text to a frozen query, or the reason why not. `docs/reference/sql.md` describes it.

    SELECT [keys,] aggregates FROM table [WHERE predicate] [GROUP BY keys [HAVING count >= n] | GROUP BY ROLLUP (keys)]

Everything is decided from the text and the schema, so that neither a refusal nor its wording depends on a row. Three
checks stand behind one another, and each must pass: every word is known (`_refusals`), every node and argument of
the tree is known (`_tree`), and every word that carries meaning was read exactly as often as it was written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from velado.data.schema import Column, Schema
from velado.errors import QueryRefused
from velado.query import values as asked
from velado.query.domains import MOST_SPARSE, check_above, check_rolled_up, decimal_text, key_of, most_values
from velado.query.needs import Grid, cells_of
from velado.query.sql._conditions import bare, predicate_of
from velado.query.sql._refusals import REFUSED, QueryTokens, read, refused, too_large
from velado.query.sql._tree import (
    Reader,
    check_table,
    named,
    opened,
    refuse_node,
    tree_of,
)
from velado.text import say

# One item of the SELECT list as an aggregate whose column has what it needs, and the names of the answer's columns.

MOST_BINS = 1_000
# A level finer than this tells no table apart from another, and scores of quantiles stay small whole numbers.
FINEST_LEVEL = 10**6
LONGEST_ALIAS = 63
# What the answer puts after an aggregate's name for the ends of its interval and for a bin.
ENDS = ("", "_low", "_high", "_bin")

_PLAIN: dict[str, asked.AggregateKind] = {"Sum": "sum", "Avg": "avg", "Min": "min", "Max": "max"}


def aggregate_of(reader: Reader, node: Any) -> asked.Aggregate:
    """What one item of the SELECT list asks for; its alias is empty where none is written."""
    if named(node) != "Alias":
        return _bare_column(reader, node)
    parts = opened(node, "Alias", "this", "alias")
    if named(parts["this"]) == "Column":
        raise refused(
            say("A key with an alias"), say("A key keeps its column's name."), say("Leave the alias out.")
        )
    alias, _ = reader.identifier(parts["alias"])
    found = _bare_column(reader, parts["this"])
    if len(alias) > LONGEST_ALIAS or not alias.isprintable():
        raise refused(
            say("An alias that is long or not printable"),
            say("It heads a column."),
            say("Choose a short name."),
        )
    if any(name.casefold() == alias.casefold() for name in reader.schema.columns):
        raise refused(
            say("An alias that is also a column"),
            say("One name would mean two things."),
            say("Choose another name, for example with the aggregate's before it."),
        )
    return replace(found, alias=alias)


def with_names(
    schema: Schema, aggregates: tuple[asked.Aggregate, ...], keys: tuple[str, ...]
) -> tuple[asked.Aggregate, ...]:
    """The aggregates, each with a name of its own: no two of the answer's columns, ends of intervals included, are alike."""
    wanted = [(a.kind, a.column, a.at, a.bins) for a in aggregates]
    if len(set(wanted)) != len(wanted):
        raise refused(
            say("The same aggregate twice in one query"),
            say("Each would get a share of the budget, and both would be noisier than one."),
            say("Ask for it once."),
        )
    if len(wanted) > 1 and any(aggregate.bins is not None for aggregate in aggregates):
        raise refused(
            say("HISTOGRAM together with another aggregate"),
            say("Its answer has one line per bin, the others one line per key."),
            say("Ask for the histogram in a query of its own."),
        )
    taken = {name.casefold() for name in (*keys, *schema.columns)}
    for aggregate in aggregates:
        if aggregate.alias and not _take(aggregate.alias, taken):
            raise refused(
                say("One name for two results"),
                say(
                    "Beside each result its interval stands as name_low and name_high, and all names must differ."
                ),
                say("Choose different aliases."),
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


def _default_name(aggregate: asked.Aggregate) -> str:
    if aggregate.column is None:
        return "count"
    if aggregate.at is None:
        return f"{aggregate.kind}_{aggregate.column}"
    if aggregate.at == Fraction(1, 2):
        return f"median_{aggregate.column}"
    return f"p{decimal_text(aggregate.at * 100).replace('.', '_')}_{aggregate.column}"


def _bare_column(reader: Reader, node: Any) -> asked.Aggregate:
    name = named(node)
    reading: Callable[[Reader, Any], asked.Aggregate] | None = {
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
                say("A SELECT item that is no aggregate"),
                say("There is nothing to answer."),
                say("Leave it out."),
            )
        raise refuse_node(node)
    reader.use("NAME")
    return reading(reader, node)


def _count(reader: Reader, node: Any) -> asked.Aggregate:
    inner = opened(node, "Count", "this", flags=("big_int",))["this"]
    if named(inner) == "Star":
        opened(inner, "Star")
        return asked.Aggregate("count")
    if named(inner) == "Literal":
        raise refused(
            say("COUNT of a literal"), say("It counts rows in a roundabout way."), say("Write COUNT(*).")
        )
    return asked.Aggregate("count", reader.column(inner).name)


def _plain(reader: Reader, node: Any) -> asked.Aggregate:
    name = named(node)
    return asked.Aggregate(_PLAIN[name], _gridded(reader, opened(node, name, "this")["this"]).name)


def _median(reader: Reader, node: Any) -> asked.Aggregate:
    column = _gridded(reader, opened(node, "Median", "this")["this"])
    return asked.Aggregate("quantile", column.name, at=Fraction(1, 2))


def _quantile(reader: Reader, node: Any) -> asked.Aggregate:
    parts = opened(node, "Quantile", "this", "quantile")
    return asked.Aggregate(
        "quantile", _gridded(reader, parts["this"]).name, at=_level(reader, parts["quantile"])
    )


def _within(reader: Reader, node: Any) -> asked.Aggregate:
    parts = opened(node, "WithinGroup", "this", "expression")
    reader.use("NAME", 2)
    function = named(parts["this"])
    if function not in ("PercentileCont", "PercentileDisc"):
        raise refused(*REFUSED["Func"])
    at = _level(reader, opened(parts["this"], function, "this")["this"])
    ordered = opened(parts["expression"], "Order", "expressions")["expressions"] or []
    if len(ordered) != 1:
        raise refused(
            say("WITHIN GROUP with several columns"), say("A quantile is of one column."), say("Name one.")
        )
    # Missing values are left out, so where they would be sorted does not matter.
    column = _gridded(reader, opened(ordered[0], "Ordered", "this", flags=("nulls_first",))["this"])
    return asked.Aggregate("quantile", column.name, at=at)


def _histogram(reader: Reader, node: Any) -> asked.Aggregate:
    parts = opened(node, "Anonymous", "this", "expressions")
    arguments = parts["expressions"] or []
    if not isinstance(parts["this"], str) or parts["this"].upper() != "HISTOGRAM":
        raise refused(*REFUSED["Func"])
    if len(arguments) != 2:
        raise refused(
            say("HISTOGRAM without a column and a number of bins"),
            say("Both are needed."),
            say("Write HISTOGRAM(column, 10)."),
        )
    column = _gridded(reader, arguments[0])
    grid = Grid.of(column)
    most = min(MOST_BINS, grid.high - grid.low + 1)
    bins = reader.literal(arguments[1])
    if not isinstance(bins, Fraction) or bins.denominator != 1 or not 1 <= bins <= most:
        raise QueryRefused(
            say(
                "The bins of HISTOGRAM must be a whole number from 1 to {most:,} for column '{column}'.",
                most=most,
                column=column.name,
            ),
            "Bins are equal parts of the declared bounds, each at least one step wide.",
            "Choose for example 10.",
        )
    return asked.Aggregate("histogram", column.name, bins=int(bins))


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


MOST_AGGREGATES = 20
MOST_CELLS = 100_000
MOST_LEAST = 10**9


def parse(text: str, schema: Schema, table: str) -> asked.Query:
    """What *text* asks of *table*, wholly understood and answerable, or QueryRefused. Cost: about a millisecond.

    Keys come in the order of GROUP BY, and each is returned whether it is selected or not. An aggregate without an
    alias is named after what it is: `count`, `avg_age`.

    >>> schema = Schema({"age": Column("age", kind="numeric", bounds=(0, 120))})
    >>> parse("select avg(AGE) from stays where age between 18 and 65", schema, "stays").aggregates[0].alias
    'avg_age'
    """
    words = read(text, (table, *schema.columns))
    try:
        query, reader = _query(text, words, schema, table)
    except RecursionError:
        raise too_large(say("The query is nested too deeply.")) from None
    reader.check_complete(words)
    return query


def _query(text: str, words: QueryTokens, schema: Schema, table: str) -> tuple[asked.Query, Reader]:
    tree = tree_of(text, words)
    if named(tree) != "Select":
        raise refuse_node(tree)
    reader = Reader(schema, table)
    # The argument that holds FROM is called from_ since sqlglot 28.
    parts = opened(tree, "Select", "expressions", "from", "from_", "where", "group", "having")
    _check_from(reader, parts["from_"] or parts["from"])
    keys, rollup = _keys(reader, parts["group"])
    aggregates = _selected(reader, parts["expressions"] or [], keys)
    where: asked.Predicate | None = None
    if parts["where"] is not None:
        where = predicate_of(reader, opened(parts["where"], "Where", "this")["this"])
    if rollup:
        check_rolled_up(aggregates)
    least = None if parts["having"] is None else _least(reader, parts["having"], aggregates, keys)
    if least is not None and rollup:
        raise refused(*REFUSED["Having"])
    _check_cells(schema, keys, aggregates, least)
    return asked.Query(table, aggregates, where, keys, rollup, least), reader


def _check_from(reader: Reader, node: Any) -> None:
    if node is None:
        raise QueryRefused(
            "The query has no FROM.",
            "It must say which table it asks.",
            say('Add FROM "{table}".', table=reader.table),
        )
    source = opened(node, "From", "this")["this"]
    name = opened(source, "Table", "this")["this"]
    if named(name) != "Identifier":
        raise refuse_node(name)
    check_table(reader.table, *reader.identifier(name))


def _least(reader: Reader, node: Any, aggregates: tuple[asked.Aggregate, ...], keys: tuple[str, ...]) -> int:
    """The noisy count that HAVING asks for: `COUNT(*) >= n`, or the count by its name."""
    check_above(aggregates, keys)
    test = bare(opened(node, "Having", "this")["this"])
    if named(test) not in ("GTE", "GT"):
        raise refused(*REFUSED["Having"])
    reader.use("NAME")
    reader.use(named(test))
    parts = opened(test, named(test), "this", "expression")
    (counted,) = aggregates
    if named(parts["this"]) == "Column":
        name, _ = reader.identifier(opened(parts["this"], "Column", "this")["this"])
        same = name.casefold() == counted.alias.casefold()
    else:
        same = replace(aggregate_of(reader, parts["this"]), alias=counted.alias) == counted
    number = reader.literal(parts["expression"]) if named(parts["expression"]) == "Literal" else None
    if (
        not same
        or not isinstance(number, Fraction)
        or number.denominator != 1
        or not 1 <= number <= MOST_LEAST
    ):
        raise refused(*REFUSED["Having"])
    return int(number) + (named(test) == "GT")


def _keys(reader: Reader, group: Any) -> tuple[tuple[str, ...], bool]:
    if group is None:
        return (), False
    keys: list[str] = []
    nodes = opened(group, "Group", "expressions")["expressions"] or []
    rollup = len(nodes) == 1 and named(nodes[0]) == "Rollup"
    if rollup:
        reader.use("NAME")
        nodes = opened(nodes[0], "Rollup", "expressions")["expressions"] or []
    elif any(named(node) == "Rollup" for node in nodes):
        raise refused(*REFUSED["Rollup"])
    for node in nodes:
        if named(node) != "Column":
            raise refused(
                say("GROUP BY anything but a column"),
                say("Keys are declared for columns alone."),
                say("Name a column."),
            )
        keys.append(reader.column(node).name)
    if not keys or len(set(keys)) != len(keys):
        raise refused(
            say("GROUP BY without a column, or with one twice"),
            say("Each key is answered once."),
            say("Name each once."),
        )
    return tuple(keys), rollup


def _selected(reader: Reader, nodes: list[Any], keys: tuple[str, ...]) -> tuple[asked.Aggregate, ...]:
    aggregates: list[asked.Aggregate] = []
    shown: set[str] = set()
    for node in nodes:
        if named(node) == "Column":
            name = reader.column(node).name
            if name not in keys:
                raise QueryRefused(
                    say("Column '{name}' is selected but not grouped by.", name=name),
                    "Rows are never shown; a column is selected as a key or inside an aggregate.",
                    say('Add GROUP BY "{name}", or write for example COUNT("{name}").', name=name),
                )
            if name in shown:
                raise refused(
                    say("A key selected twice"), say("Each key is answered once."), say("Name each once.")
                )
            shown.add(name)
            continue
        aggregates.append(aggregate_of(reader, node))
        if len(aggregates) > MOST_AGGREGATES:
            raise too_large(say("The query asks for more than {most} aggregates.", most=MOST_AGGREGATES))
    if not aggregates:
        raise QueryRefused(
            "The query asks for no aggregate.",
            "Rows and lists of keys are not answers; what is answered is counted, summed or averaged.",
            "Add for example COUNT(*).",
        )
    return with_names(reader.schema, tuple(aggregates), keys)


def _check_cells(
    schema: Schema, keys: tuple[str, ...], aggregates: tuple[asked.Aggregate, ...], least: int | None
) -> None:
    most = MOST_CELLS if least is None else MOST_SPARSE
    cells = cells_of(tuple(key_of(schema, key, most_values(least)) for key in keys))
    bins = max((aggregate.bins or 1 for aggregate in aggregates), default=1)
    if cells * bins > most:
        raise QueryRefused(
            say("The declared keys make {cells:,} cells together.", cells=cells * bins),
            say("Every cell is answered, and at most {most_cells:,} are.", most_cells=most),
            "Group by fewer or coarser columns, or ask for fewer bins.",
        )
