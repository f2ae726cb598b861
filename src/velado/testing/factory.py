"""Small tables in one line, for examples and tests."""

from __future__ import annotations

import polars as pl

from velado.data.schema import Column, Kind, Role, Schema
from velado.data.table import Table


def small_table(**columns: tuple[Role, Kind, str]) -> Table:
    """A table whose cells are parted by blanks; a lone `_` is a blank cell. An identifier says who is a person.

    >>> small_table(age=("quasi", "numeric", "31 _ 33"), who=("identifier", "text", "a a b"))
    Table(3 rows; 1 identifier, 1 quasi)
    """
    meaning = {
        name: Column(name, role, kind, person=role == "identifier")
        for name, (role, kind, _) in columns.items()
    }
    cells = {name: [None if c == "_" else c for c in text.split()] for name, (_, _, text) in columns.items()}
    return Table.of(pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String)), Schema(meaning))
