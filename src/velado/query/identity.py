"""By what a table is known, so that it has one budget: where it lies, and what its rows say in whatever order and format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class TableIdentity:
    """Marks of a table: texts that are equal for the same place, or for the same content. One mark in common is the same table.

    A mark that begins with `rows:` or `content:` is made from cells, so it is kept under a key alone and shown to nobody.

    >>> TableIdentity(("path:/a.csv",)).with_marks(["rows:2:7:9"])
    TableIdentity(2 marks)
    """

    marks: tuple[str, ...]

    def with_marks(self, marks: Iterable[str]) -> TableIdentity:
        """The same table, known by these marks too."""
        return TableIdentity(tuple(dict.fromkeys((*self.marks, *marks))))

    def __repr__(self) -> str:
        return f"TableIdentity({len(self.marks)} marks)"
