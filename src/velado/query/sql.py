"""The accepted SQL, from text to a frozen query, or the reason why not. `docs/reference/sql.md` describes it.

    SELECT [keys,] aggregates FROM table [WHERE predicate] [GROUP BY keys]

Everything is decided from the text and the schema, so that neither a refusal nor its wording depends on a row. Three
checks stand behind one another, and each must pass: every word is known (`sql_tokens`), every node and argument of
the tree is known (`sql_tree`), and every word that carries meaning was read exactly as often as it was written.
"""

from __future__ import annotations

from typing import Any

from velado.data.schema import Schema
from velado.errors import QueryRefused
from velado.query.domains import key_of
from velado.query.needs import cells_of
from velado.query.sql_aggregates import aggregate_of, with_names
from velado.query.sql_names import check_table
from velado.query.sql_predicates import predicate_of
from velado.query.sql_reasons import refused
from velado.query.sql_tokens import Words, read, too_large
from velado.query.sql_tree import Reader, named, opened, refuse_node, tree_of
from velado.query.values import Aggregate, Predicate, Query

MOST_AGGREGATES = 20
MOST_CELLS = 100_000


def parse(text: str, schema: Schema, table: str) -> Query:
    """What *text* asks of *table*, wholly understood and answerable, or QueryRefused. Cost: about a millisecond.

    Keys come in the order of GROUP BY, and each is returned whether it is selected or not. An aggregate without an
    alias is named after what it is: `count`, `avg_age`.
    """
    words = read(text, (table, *schema.columns))
    try:
        query, reader = _query(text, words, schema, table)
    except RecursionError:
        raise too_large("The query is nested too deeply.") from None
    reader.check_complete(words)
    return query


def _query(text: str, words: Words, schema: Schema, table: str) -> tuple[Query, Reader]:
    tree = tree_of(text, words)
    if named(tree) != "Select":
        raise refuse_node(tree)
    reader = Reader(schema, table)
    # The argument that holds FROM is called from_ since sqlglot 28.
    parts = opened(tree, "Select", "expressions", "from", "from_", "where", "group")
    _check_from(reader, parts["from_"] or parts["from"])
    keys = _keys(reader, parts["group"])
    aggregates = _selected(reader, parts["expressions"] or [], keys)
    where: Predicate | None = None
    if parts["where"] is not None:
        where = predicate_of(reader, opened(parts["where"], "Where", "this")["this"])
    _check_cells(schema, keys, aggregates)
    return Query(table, aggregates, where, keys), reader


def _check_from(reader: Reader, node: Any) -> None:
    if node is None:
        raise QueryRefused(
            "The query has no FROM.", "It must say which table it asks.", f'Add FROM "{reader.table}".'
        )
    source = opened(node, "From", "this")["this"]
    name = opened(source, "Table", "this")["this"]
    if named(name) != "Identifier":
        raise refuse_node(name)
    check_table(reader.table, *reader.identifier(name))


def _keys(reader: Reader, group: Any) -> tuple[str, ...]:
    if group is None:
        return ()
    keys: list[str] = []
    for node in opened(group, "Group", "expressions")["expressions"] or []:
        if named(node) != "Column":
            raise refused(
                ("GROUP BY anything but a column", "Keys are declared for columns alone.", "Name a column.")
            )
        keys.append(reader.column(node).name)
    if not keys or len(set(keys)) != len(keys):
        raise refused(
            ("GROUP BY without a column, or with one twice", "Each key is answered once.", "Name each once.")
        )
    return tuple(keys)


def _selected(reader: Reader, nodes: list[Any], keys: tuple[str, ...]) -> tuple[Aggregate, ...]:
    aggregates: list[Aggregate] = []
    shown: set[str] = set()
    for node in nodes:
        if named(node) == "Column":
            name = reader.column(node).name
            if name not in keys:
                raise QueryRefused(
                    f"Column '{name}' is selected but not grouped by.",
                    "Rows are never shown; a column is selected as a key or inside an aggregate.",
                    f'Add GROUP BY "{name}", or write for example COUNT("{name}").',
                )
            if name in shown:
                raise refused(("A key selected twice", "Each key is answered once.", "Name each once."))
            shown.add(name)
            continue
        aggregates.append(aggregate_of(reader, node))
        if len(aggregates) > MOST_AGGREGATES:
            raise too_large(f"The query asks for more than {MOST_AGGREGATES} aggregates.")
    if not aggregates:
        raise QueryRefused(
            "The query asks for no aggregate.",
            "Rows and lists of keys are not answers; what is answered is counted, summed or averaged.",
            "Add for example COUNT(*).",
        )
    return with_names(reader.schema, tuple(aggregates), keys)


def _check_cells(schema: Schema, keys: tuple[str, ...], aggregates: tuple[Aggregate, ...]) -> None:
    cells = cells_of(tuple(key_of(schema, key) for key in keys))
    bins = max((aggregate.bins or 1 for aggregate in aggregates), default=1)
    if cells * bins > MOST_CELLS:
        raise QueryRefused(
            f"The declared keys make {cells * bins:,} cells together.",
            f"Every cell is answered, and at most {MOST_CELLS:,} are.",
            "Group by fewer or coarser columns, or ask for fewer bins.",
        )
