"""Who can be told apart by a choice of columns, counted again and again while the choice changes.

The columns are coded once (four bytes a cell); each count then sorts one number a row. Publishing one more column never
lowers the count: groups only fall apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from velado.data.normal import value_codes
from velado.data.partition import Int32Array, group_by_codes
from velado.data.separation import Codes, PresentExposure, visible_codes
from velado.data.table import Table
from velado.errors import ParameterError
from velado.settings import nearest
from velado.text import say


@dataclass(frozen=True, repr=False)
class ToldApart:
    """The columns of a table as codes, and how many rows and people are unique on some of them.

    >>> from velado.testing.examples import small_table
    >>> ages = small_table(age=("other", "text", "31 31 35"), sex=("other", "text", "F M F"))
    >>> counter = ToldApart.of(ages)
    >>> counter.count(["age"]).unique_rows, counter.count(["age", "sex"]).unique_rows
    (1, 3)
    """

    rows: int
    columns: Mapping[str, Codes]
    owners: Mapping[str, Int32Array] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, people: Sequence[str] = ()) -> ToldApart:
        """All columns of *table* coded; *people* are the columns that may say who a person is."""
        meant = table.schema.columns
        named = dict.fromkeys([*people, *(name for name, column in meant.items() if column.person)])
        return cls(
            table.rows,
            {name: visible_codes(table, meant[name]) for name in table.frame.columns},
            {name: value_codes(table, meant[name])[0] for name in named},
        )

    def __repr__(self) -> str:
        return f"ToldApart({self.rows} rows, {len(self.columns)} columns)"

    def count(self, columns: Sequence[str], person: str | None = None) -> PresentExposure:
        """Who is unique on *columns*, in rows and in people of the column *person*; without columns all are alike.

        A person is unique who has a row in a group that holds nobody else's. O(n log n).
        """
        names = tuple(dict.fromkeys(columns))
        for name in (*names, *(() if person is None else (person,))):
            if name not in self.columns:
                raise ParameterError(
                    say("There is no column '{name}' to count by.", name=name),
                    "Who can be told apart would be counted without it.",
                    nearest(name, self.columns) or say("Name columns of the table."),
                )
        if names:
            labels, count = group_by_codes(
                [self.columns[name][0] for name in names], [self.columns[name][1] for name in names]
            )
        else:
            labels, count = np.zeros(self.rows, dtype=np.int32), 1
        sizes = np.bincount(labels, minlength=count)
        alone = int(np.count_nonzero(sizes == 1))
        if person is None:
            return PresentExposure(names, self.rows, alone, self.rows, alone, int(sizes.min()))
        owner = self.owners.get(person, self.columns[person][0])
        people = int(np.count_nonzero(np.bincount(owner)))
        # A group is one person's where the smallest and the largest of its owners are one.
        least, most = np.full(count, np.iinfo(np.int32).max, np.int32), np.full(count, -1, np.int32)
        np.minimum.at(least, labels, owner)
        np.maximum.at(most, labels, owner)
        own = (least == most)[labels]
        unique = int(np.count_nonzero(np.bincount(owner[own]))) if own.any() else 0
        return PresentExposure(names, self.rows, alone, people, unique, int(sizes.min()))
