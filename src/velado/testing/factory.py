"""Small tables in one line, for examples and tests."""

from __future__ import annotations

import polars as pl

from velado.data.encode import EncodedTable, encode
from velado.data.schema import Column, Kind, Role, Schema
from velado.data.table import Table
from velado.measures.recoded_columns import PublishedTable, read_published


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


def four_people() -> Table:
    """Four people with an age, which others may know, and an illness.

    >>> four_people().frame["age"].to_list()
    ['31', '35', '31', '40']
    """
    return small_table(age=("quasi", "numeric", "31 35 31 40"), ill=("sensitive", "categorical", "a b a b"))


def four_encoded() -> EncodedTable:
    """The quasi-identifiers of `four_people` as codes.

    >>> four_encoded().columns[0].codes.tolist()
    [0, 1, 0, 2]
    """
    return encode(four_people())


def four_published() -> PublishedTable:
    """`four_people` published as they are and read back: nothing is lost, and nothing hidden.

    >>> four_published().rows
    4
    """
    return read_published(four_people(), four_people().frame)
