"""What a method or an operation makes of a few cells, so that examples in docstrings are two lines long."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from velado.data.encode import EncodedColumn, EncodedTable, encode
from velado.data.schema import Column, Kind, Role, Schema
from velado.data.table import Table
from velado.randomness import seeded
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity
from velado.release.methods._method import Method
from velado.release.operations._operation import Operation
from velado.release.recoded import Cell


def shown(method: Method, numbers: Sequence[float], k: int = 2) -> list[Cell]:
    """The numbers of one quasi-identifier as *method* publishes them.

    >>> from velado.release.methods import Mondrian
    >>> shown(Mondrian(), [20, 21, 30, 31])
    ['[20..21]', '[20..21]', '[30..31]', '[30..31]']
    """
    data = encode(_table([f"{number:g}" for number in numbers], "numeric"))
    goal = Goal(() if method.promise == "measured" else (KAnonymity(k),))
    (column,) = method.anonymize(data, goal, seeded(0, "example"), silent).columns
    return [column.values[code] for code in column.codes]


def changed(operation: Operation, cells: Sequence[str], kind: Kind = "categorical") -> list[str | None]:
    """The cells of the column `x` after *operation*.

    >>> from velado.release.operations import Mask
    >>> changed(Mask("x", keep=2), ["36570", "36"])
    ['36***', '36']
    """
    return operation.apply(_table(cells, kind), seeded(0, "example")).frame["x"].cast(pl.String).to_list()


def table(**columns: Sequence[object]) -> Table:
    """A table of quasi-identifiers, but for the columns `person`, `illness` (sensitive) and `note` (other).

    >>> table(age=[20, 30], illness=["flu", "cold"]).schema.sensitive[0].name
    'illness'
    """
    roles: dict[str, Role] = {"person": "identifier", "illness": "sensitive", "note": "other"}
    schema = {
        name: Column(
            name,
            roles.get(name, "quasi"),
            "categorical" if isinstance(cells[0], str) else "numeric",
            person=name == "person",
        )
        for name, cells in columns.items()
    }
    return Table.of(pl.DataFrame(columns), Schema(schema))


def encoded(**columns: Sequence[object]) -> EncodedTable:
    """Such a table as methods see it.

    >>> encoded(age=[30, 20, 30]).columns[0].codes.tolist()
    [1, 0, 1]
    """
    return encode(table(**columns))


def column(cells: Sequence[object]) -> EncodedColumn:
    """One encoded quasi-identifier `x` of these cells.

    >>> column(["b", "a", "b"]).codes.tolist()
    [1, 0, 1]
    """
    return encoded(x=cells).columns[0]


def _table(cells: Sequence[str], kind: Kind) -> Table:
    frame = pl.DataFrame({"x": list(cells), "y": [str(at) for at in range(len(cells))]})
    return Table.of(frame, Schema({"x": Column("x", "quasi", kind), "y": Column("y", "other")}))
