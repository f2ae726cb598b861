"""How well columns tell rows apart: distinction, separation, and who is unique on a set of columns.

R. Motwani and Y. Xu, Efficient algorithms for masking and finding quasi-identifiers (2007): the
*distinction* of a set of columns is the share of different rows among all, its *separation* the share of
pairs of rows that differ in at least one of the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from velado.data.encode import text_codes
from velado.data.normal import value_codes
from velado.data.partition import GroupCounts, Partition
from velado.data.table import Table

Codes = tuple[npt.NDArray[np.int32], int]

SAMPLE_ROWS = 100_000


@dataclass(frozen=True)
class ColumnSet:
    """A set of columns and how well it tells rows apart (on an evenly spaced sample of large tables)."""

    columns: tuple[str, ...]
    distinction: float
    separation: float

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self) | {"columns": list(self.columns)}


@dataclass(frozen=True)
class Exposure:
    """Who can be picked out by *columns* as the table stands, all rows counted.

    *unique_rows* are alone in their group. *people* and *unique_people* count by the person column where
    there is one (else every row is a person): a person is unique in a group that holds nobody else.
    *smallest* is the size of the smallest group, in rows.
    """

    columns: tuple[str, ...]
    rows: int
    unique_rows: int
    people: int
    unique_people: int
    smallest: int

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self) | {"columns": list(self.columns)}


def exposure(table: Table, columns: Sequence[str], person: str | None) -> Exposure:
    """Who is unique on *columns* of *table*; blanks are a value of their own. O(n log n)."""
    coded = [text_codes(table.text(name)) for name in columns]
    partition = Partition.by_codes([codes for codes, _ in coded], [size for _, size in coded])
    alone = int((partition.sizes == 1).sum())
    people, unique_people = table.rows, alone
    if person is not None:
        owner = value_codes(table, table.schema.columns[person])[0]
        people = np.count_nonzero(np.bincount(owner))
        counts = GroupCounts.of(partition, owner)
        assert counts.people is not None
        unique_people = np.count_nonzero(np.bincount(owner[(counts.people == 1)[partition.labels]]))
    return Exposure(tuple(columns), table.rows, alone, people, unique_people, int(partition.sizes.min()))


def separation(counts: npt.NDArray[np.int64]) -> float:
    """1 - sum c (c - 1) / (n (n - 1)): the share of pairs of rows in different groups of sizes *counts*."""
    sizes = counts.astype(np.float64)
    n = float(sizes.sum())
    return 1.0 - float((sizes * (sizes - 1.0)).sum()) / (n * (n - 1.0)) if n > 1 else 0.0


def sample_codes(table: Table, names: Sequence[str]) -> Mapping[str, Codes]:
    """Codes of the columns *names* in at most 100,000 evenly spaced rows."""
    rows = min(table.rows, SAMPLE_ROWS)
    at = np.arange(rows, dtype=np.int64) * table.rows // rows
    part = table if rows == table.rows else table.with_frame(table.frame[at])
    return {name: text_codes(part.text(name)) for name in names}


def best_sets(coded: Mapping[str, Codes], largest: int = 3) -> tuple[ColumnSet, ...]:
    """The column that separates best, then the best pair and triple that grow from it, greedily.

    Ends early when all rows are told apart. Columns with a different value in most rows would win always and
    tell nothing new, so they are left out as long as two others are there. A blank is a value of its own. Greedy
    choice separates within the logarithmic factor of the best set of its size (set cover over pairs).
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
    """Whether two columns match one to one on the rows given, with values that do repeat."""
    pairs = Partition.by_codes([column[0], other[0]], [column[1], other[1]]).count
    own, theirs = np.unique(column[0]).size, np.unique(other[0]).size
    return pairs == own == theirs and own >= 2 and 2 * own <= column[0].size
