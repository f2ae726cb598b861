"""Which declared column or table a name of the query means, and whether it may be asked about.

A quoted name is taken exactly. An unquoted one is too if a column is called so, else it matches without regard to case
where one column alone does.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from velado.data.schema import Column, Schema
from velado.errors import QueryRefused

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
    """The columns a query may name, in the schema's order."""
    return tuple(name for name, column in schema.columns.items() if why_closed(column) is None)


def why_closed(column: Column) -> tuple[str, str] | None:
    """Why a column may not be named in a query, as (what it is, why), or None where it may."""
    if column.person or column.group:
        return (
            "says which rows belong together",
            "It is what the promise protects, and a question about one value of it is a question about one unit.",
        )
    if column.role == "identifier":
        return (
            "is declared an identifier",
            "It has no use in an aggregate, and a test of it would ask about one person: noise would drown the answer.",
        )
    if not column.publish:
        return (
            "is declared publish = false",
            "Its owner keeps it out of everything that leaves, and an answer leaves.",
        )
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
            f"Column '{found}' {what}, so it cannot be asked about.",
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
            f'Write FROM "{table}".',
        )


def _undeclared(schema: Schema, name: str) -> QueryRefused:
    # What the analyst wrote is not repeated: a misplaced quote turns a literal into a name.
    open_names = queryable(schema)
    near: list[str] = []
    if len(name) <= _LONGEST_GUESS:
        near = difflib.get_close_matches(name, open_names, n=1)
    same = sum(candidate.casefold() == name.casefold() for candidate in schema.columns)
    if same > 1:
        hint = "Several columns differ from it in upper and lower case alone; put the exact name in double quotes."
    elif near:
        hint = f'Did you mean "{near[0]}"? Text goes in single quotes, names in double quotes.'
    else:
        listed = ", ".join(f'"{candidate}"' for candidate in open_names[:20])
        hint = (
            f"Columns are {listed}{' and more' if len(open_names) > 20 else ''}; text goes in single quotes."
        )
    return QueryRefused(
        "The query names a column that is not declared.",
        "Only columns of the schema can be asked about, as they are written there.",
        hint,
    )
