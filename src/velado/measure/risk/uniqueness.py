"""Uniqueness: who stands alone with the combination of quasi-identifiers, and with each one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from velado.data.encode import EncodedTable
from velado.data.partition import IntArray, Partition, ValueCounts


@dataclass(frozen=True)
class Uniqueness:
    """Rows, and people where a person column is declared, that no other shares a combination with."""

    rows: int
    unique_rows: int
    unique_rows_by_column: Mapping[str, int]
    people: int | None = None
    unique_people: int | None = None
    unique_people_by_column: Mapping[str, int] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values; the entries about people are None without a person column."""
        share = self.unique_rows / self.rows if self.rows else 0.0
        by_column = self.unique_people_by_column
        return {
            "rows": self.rows,
            "unique_rows": self.unique_rows,
            "unique_rows_share": share,
            "unique_rows_by_column": dict(self.unique_rows_by_column),
            "people": self.people,
            "unique_people": self.unique_people,
            "unique_people_by_column": None if by_column is None else dict(by_column),
        }


def uniqueness_of(data: EncodedTable) -> Uniqueness:
    """Who is unique in the original table, on its encoded values."""
    names = [column.name for column in data.columns]
    codes = [column.codes for column in data.columns]
    return uniqueness(names, codes, [column.size for column in data.columns], data.people)


def uniqueness(
    names: Sequence[str], codes: Sequence[IntArray], sizes: Sequence[int], people: IntArray | None = None
) -> Uniqueness:
    """Counts rows in classes of one row, and people in some class with nobody else, on all columns and on each.

    *codes* are per column and row, 0..size-1. A person with several rows is unique when any of the rows
    shows a combination that only that person has. Rows without a person count as one person.
    O(rows log rows) in the number of columns.
    """
    whole = Partition.by_codes(codes, sizes)
    alone = [Partition.by_codes([column], [size]) for column, size in zip(codes, sizes, strict=True)]
    by_column = {name: _unique_rows(part) for name, part in zip(names, alone, strict=True)}
    if people is None:
        return Uniqueness(whole.rows, _unique_rows(whole), by_column)
    people_by_column = {name: _unique_people(part, people) for name, part in zip(names, alone, strict=True)}
    return Uniqueness(
        whole.rows,
        _unique_rows(whole),
        by_column,
        int(np.count_nonzero(np.bincount(people))) if people.size else 0,
        _unique_people(whole, people),
        people_by_column,
    )


def _unique_rows(partition: Partition) -> int:
    return int((partition.sizes == 1).sum())


def _unique_people(partition: Partition, people: IntArray) -> int:
    size = int(people.max()) + 1 if people.size else 1
    counts = ValueCounts.of(partition.labels, partition.count, people, size)
    alone = counts.distinct(partition.count, blanks=True) == 1
    found = np.zeros(size, dtype=bool)
    found[counts.values[alone[counts.groups]]] = True
    return int(found.sum())
