"""How well columns tell rows apart: distinction, separation, and who is unique on a set of columns.

R. Motwani and Y. Xu, Efficient algorithms for masking and finding quasi-identifiers (2007): the *distinction* of a set of
columns is the share of different rows among all, its *separation* the share of pairs of rows that differ in at least one of
the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from velado.data.normal import row_codes, spellings, value_codes
from velado.data.partition import GroupCounts, Int32Array, Int64Array, Partition
from velado.data.schema import Column
from velado.data.table import Table

Codes = tuple[Int32Array, int]


@dataclass(frozen=True)
class ColumnSet:
    """A set of columns and how well it tells rows apart (on an evenly spaced sample of large tables).

    >>> ColumnSet(("age", "sex"), distinction=0.5, separation=0.9).columns
    ('age', 'sex')
    """

    columns: tuple[str, ...]
    distinction: float
    separation: float


@dataclass(frozen=True)
class PresentExposure:
    """Who can be picked out by *columns* as the table stands, all rows counted.

    *unique_rows* are alone in their group. *people* and *unique_people* count by the person column where
    there is one (else every row is a person): a person is unique in a group that holds nobody else.
    *smallest* is the size of the smallest group, in rows.

    >>> from velado.testing.examples import small_table
    >>> exposure(small_table(age=("quasi", "numeric", "31 31 35")), ["age"], None).smallest
    1
    """

    columns: tuple[str, ...]
    rows: int
    unique_rows: int
    people: int
    unique_people: int
    smallest: int


def exposure(table: Table, columns: Sequence[str], person: str | None) -> PresentExposure:
    """Who is unique on *columns* of *table*, spellings of a value being one; so is a blank. O(n log n).

    >>> from velado.testing.examples import small_table
    >>> exposure(small_table(age=("quasi", "numeric", "31 31 35")), ["age"], None).unique_rows
    1
    """
    coded = [visible_codes(table, table.schema.columns[name]) for name in columns]
    partition = Partition.by_codes([codes for codes, _ in coded], [size for _, size in coded])
    alone = int((partition.sizes == 1).sum())
    people, unique_people = table.rows, alone
    if person is not None:
        owner = value_codes(table, table.schema.columns[person])[0]
        people = np.count_nonzero(np.bincount(owner))
        counts = GroupCounts.of(partition, owner)
        assert counts.people is not None
        unique_people = np.count_nonzero(np.bincount(owner[(counts.people == 1)[partition.labels]]))
    return PresentExposure(
        tuple(columns), table.rows, alone, people, unique_people, int(partition.sizes.min())
    )


def separation(counts: Int64Array) -> float:
    """1 - sum c (c - 1) / (n (n - 1)): the share of pairs of rows in different groups of sizes *counts*.

    >>> separation(np.array([2, 1, 1]))
    0.8333333333333334
    """
    sizes = counts.astype(np.float64)
    n = float(sizes.sum())
    return 1.0 - float((sizes * (sizes - 1.0)).sum()) / (n * (n - 1.0)) if n > 1 else 0.0


def visible_codes(table: Table, column: Column) -> Codes:
    """A code for each row of a column, as a release codes its categories: a text of blanks is seen, so it is a value.

    >>> from velado.testing.examples import small_table
    >>> ages = small_table(age=("quasi", "numeric", "31 31 35"))
    >>> visible_codes(ages, ages.schema.quasi[0])
    (array([1, 1, 2], dtype=int32), 3)
    """
    found = spellings(table, column, blanks=False)
    return row_codes(table, column, found), len(found.values) + 1


def best_sets(coded: Mapping[str, Codes], largest: int = 3) -> tuple[ColumnSet, ...]:
    """The column that separates best, then the best pair and triple that grow from it, greedily.

    Ends early when all rows are told apart. Columns with a different value in most rows would win always and
    tell nothing new, so they are left out as long as two others are there. A blank is a value of its own. Greedy
    choice separates within the logarithmic factor of the best set of its size (set cover over pairs).

    >>> codes = {"age": (np.array([1, 2, 3, 3]), 4), "sex": (np.array([1, 1, 2, 1]), 3)}
    >>> [best.columns for best in best_sets(codes)]
    [('age',), ('age', 'sex')]
    """
    telling = {name: column for name, column in coded.items() if 2 * column[1] <= column[0].size}
    coded = telling if len(telling) >= 2 else coded
    chosen: list[str] = []
    out: list[ColumnSet] = []
    while len(chosen) < min(largest, len(coded)) and not (out and out[-1].separation == 1.0):
        best: ColumnSet | None = None
        for name in coded:
            if name in chosen:
                continue
            names = [*chosen, name]
            sizes = Partition.by_codes([coded[n][0] for n in names], [coded[n][1] for n in names]).sizes
            share = separation(sizes)
            if best is None or share > best.separation:
                best = ColumnSet(tuple(names), sizes.size / float(sizes.sum()), share)
        assert best is not None
        out.append(best)
        chosen = list(best.columns)
    return tuple(out)


def repeats(column: Codes, other: Codes) -> bool:
    """Whether two columns match one to one on the rows given, with values that do repeat.

    >>> one = np.array([1, 1, 2, 2], np.int32), 3
    >>> repeats(one, (3 - one[0], 3)), repeats(one, (np.array([1, 2, 1, 2], np.int32), 3))
    (True, False)
    """
    pairs = Partition.by_codes([column[0], other[0]], [column[1], other[1]]).count
    own, theirs = np.unique(column[0]).size, np.unique(other[0]).size
    return pairs == own == theirs and own >= 2 and 2 * own <= column[0].size
