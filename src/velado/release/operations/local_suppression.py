"""LocalSuppression: single cells blanked until every combination of quasi-identifiers is shared by k rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.compiled import njit
from velado.data.encode import text_codes, wildcard_sizes
from velado.data.partition import Partition
from velado.data.schema import Column
from velado.data.table import Table
from velado.errors import ParameterError
from velado.randomness import Draws
from velado.release.operations._operation import changeable, with_cells
from velado.settings import Setting, settings
from velado.text import say, say_n

Codes = npt.NDArray[np.int32]
ColumnSet = npt.NDArray[np.int64]
_ALL_SETS = 12
"""Up to so many quasi-identifiers every set of columns is tried; beyond, sets of two and then ever more columns."""


@settings
class LocalSuppression:
    """Each row shares its quasi-identifiers with k rows, because cells of rows that did not are blank.

    Sets of columns are tried from the cheapest up (one column costs its *weight* in the schema; of equal ones
    the column with more values goes first), and a row is blanked in the first set that brings it into a crowd of k.
    With *blanks* "value" a blank is a value of its own, as velado's k-anonymity reads it: the crowd shows the same
    blanks. With "wildcard" a blank may be any value, as sdcMicro reads it: the crowd are the rows that agree in
    what is left, which takes far fewer blanks and promises less, since a row that shows all its values
    may still be told from those that show fewer. The fewest blanks are hard to find (Meyerson and Williams 2004);
    these are few. Rows are counted, not people. O(2^q n) for q quasi-identifiers, less as rows find their crowd.

    >>> from velado.testing.examples import table
    >>> people = table(sex=["F", "F", "F", "F"], town=["a", "a", "b", "c"])
    >>> LocalSuppression(2).apply(people, None).frame["town"].to_list()
    ['a', 'a', None, None]
    """

    name: ClassVar[str] = "suppress-locally"
    title: ClassVar[str] = say("Blank single cells until K rows share the quasi-identifiers.")
    typed: ClassVar[str] = "K"
    falsifies: ClassVar[bool] = False
    main: ClassVar[tuple[str, str]] = ("k", "k")
    column: ClassVar[None] = None
    k: Annotated[int, Setting("rows that share what is left of the quasi-identifiers", ge=2)] = 3
    blanks: Annotated[Literal["value", "wildcard"], Setting("what a blank is to who reads the table")] = (
        "value"
    )

    def apply(self, table: Table, random: Draws | None) -> Table:
        """The table with cells of its quasi-identifiers blanked; *random* is not used."""
        columns = [changeable(table, self.name, column.name) for column in table.schema.quasi]
        if table.rows < self.k:
            raise ParameterError(
                say_n(
                    "A crowd of {k} cannot be made from {n} row.",
                    "A crowd of {k} cannot be made from {n} rows.",
                    table.rows,
                    k=self.k,
                ),
                "Even with every cell blank the rows are fewer.",
                "Lower k, or gather more rows.",
            )
        coded = [text_codes(table.text(column.name)) for column in columns]
        codes = np.stack([codes for codes, _ in coded], axis=1)
        cheapest = list(_column_sets(columns, [size for _, size in coded]))
        blanked = (
            self._as_values(codes, cheapest)
            if self.blanks == "value"
            else self._as_wildcards(codes, cheapest)
        )
        for at, column in enumerate(columns):
            if blanked[:, at].any():
                cells = (
                    table.frame.get_column(column.name).cast(pl.String).set(pl.Series(blanked[:, at]), None)
                )
                # These blanks are meant: they are neither refused nor a reason to drop the row.
                table = with_cells(table, replace(column, missing="value"), cells)
        return table

    def _as_values(self, codes: Codes, cheapest: list[ColumnSet]) -> npt.NDArray[np.bool_]:
        shown = codes.copy()
        failing = _sizes(shown) < self.k
        for columns in cheapest:
            if not failing.any():
                break
            tried = shown.copy()
            tried[np.ix_(failing, columns)] = 0
            found = failing & (_sizes(tried) >= self.k)
            shown[found] = tried[found]
            failing &= ~found
        # Fewer than k rows fit nowhere: each is joined by as many others as make a crowd of it.
        for row in np.flatnonzero(failing):
            if (shown == shown[row]).all(axis=1).sum() < self.k:
                joining, columns = _cheapest_company(shown, int(row), cheapest, self.k)
                shown[np.ix_(joining, columns)] = 0
        return np.asarray((shown == 0) & (codes != 0))

    def _as_wildcards(self, codes: Codes, cheapest: list[ColumnSet]) -> npt.NDArray[np.bool_]:
        shown = codes.copy()
        failing = _matching(shown) < self.k
        size = 0
        for columns in cheapest:
            if len(columns) > size:
                # The blanks of the smaller sets match anything, and may have made a crowd for others.
                failing = _matching(shown) < self.k
                size = len(columns)
            if not failing.any():
                break
            left = [at for at in range(codes.shape[1]) if at not in columns]
            # Rows that agree in their true values agree whatever is blanked: a crowd that no later blank undoes.
            found = failing & (_sizes(codes[:, left]) >= self.k)
            shown[np.ix_(found, columns)] = 0
            failing &= ~found
        _give_back(shown, codes, _matching(shown), self.k)
        return np.asarray((shown == 0) & (codes != 0))


def _cheapest_company(
    shown: Codes, row: int, cheapest: list[ColumnSet], k: int
) -> tuple[npt.NDArray[np.int64], ColumnSet]:
    """The rows, *row* among them, and the columns whose blanking makes a crowd of it with the fewest blanks.

    Others come from crowds that can spare them, or with their whole crowd.
    """
    sizes = _sizes(shown)
    best: tuple[int, npt.NDArray[np.int64], ColumnSet] | None = None
    for columns in cheapest:
        if best is not None and len(columns) > best[0]:
            break
        left = [at for at in range(shown.shape[1]) if at not in columns]
        alike = np.flatnonzero((shown[:, left] == shown[row, left]).all(axis=1))
        if alike.size < k:  # *row* is one of them
            continue
        target = shown[row].copy()
        target[columns] = 0
        alike = alike[alike != row]
        there = (shown[alike] == target).all(axis=1)
        wanted, others = k - 1 - int(there.sum()), alike[~there]
        joining = np.array([row])
        if wanted > 0:
            spared = others[sizes[others] >= k + wanted]
            if spared.size:
                first = spared[np.argmin(sizes[spared])]
                company = others[(shown[others] == shown[first]).all(axis=1)][:wanted]
            else:
                company = _whole_crowds(shown[others], others, wanted)
            joining = np.append(joining, company)
        cells = int((shown[np.ix_(joining, columns)] != 0).sum())
        if best is None or cells < best[0]:
            best = cells, joining, columns
    assert best is not None  # all rows blank all over are a crowd
    return best[1], best[2]


def _whole_crowds(shown: Codes, rows: npt.NDArray[np.int64], wanted: int) -> npt.NDArray[np.int64]:
    """Those of *rows* that are in the smallest crowds, crowd by crowd until they are *wanted* or more."""
    groups = Partition.by_codes(list(shown.T), [int(one.max()) + 1 for one in shown.T])
    smallest = np.argsort(groups.sizes, kind="stable")
    enough = int(np.searchsorted(np.cumsum(groups.sizes[smallest]), wanted)) + 1
    return rows[np.isin(groups.labels, smallest[:enough])]


@njit(cache=True)
def _give_back(shown: Codes, codes: Codes, sizes: npt.NDArray[np.int64], k: int) -> None:
    """Every blank is undone that no crowd needs: neither that of its row nor those that match the row by it.

    Rows blanked at once may each have sufficed for the others. O(blanks x rows).
    """
    rows, columns = shown.shape
    for row in range(rows):
        for column in range(columns):
            if shown[row, column] != 0 or codes[row, column] == 0:
                continue
            needed = False
            lost = 0
            for step in range(2):  # first it is seen whether all can do without, then they do
                for other in range(rows):
                    if (
                        other == row
                        or shown[other, column] == 0
                        or shown[other, column] == codes[row, column]
                    ):
                        continue
                    agrees = True
                    for at in range(columns):
                        one, two = shown[row, at], shown[other, at]
                        if one != 0 and two != 0 and one != two:
                            agrees = False
                            break
                    if agrees and step == 0:
                        lost += 1
                        needed = needed or sizes[other] - 1 < k
                    elif agrees:
                        sizes[other] -= 1
                if step == 0:
                    needed = needed or sizes[row] - lost < k
                    if needed:
                        break
            if not needed:
                shown[row, column] = codes[row, column]
                sizes[row] -= lost


def _column_sets(columns: list[Column], sizes: list[int]) -> Iterator[ColumnSet]:
    """Sets of columns by their size and cost; the last one is all of them."""
    count = len(columns)
    by_size = sorted(range(count), key=lambda at: (columns[at].weight, -sizes[at]))
    for size in range(1, count + 1):
        if count > _ALL_SETS and size > 2:
            yield np.sort(by_size[:size])
            continue
        ordered = sorted(
            combinations(range(count), size),
            key=lambda one: (sum(columns[at].weight for at in one), -sum(sizes[at] for at in one)),
        )
        yield from (np.array(one) for one in ordered)


def _sizes(codes: Codes) -> npt.NDArray[np.int64]:
    """For each row, how many rows show the same codes."""
    if not codes.shape[1]:
        return np.full(codes.shape[0], codes.shape[0], dtype=np.int64)
    groups = Partition.by_codes(list(codes.T), [int(column.max()) + 1 for column in codes.T])
    return np.asarray(groups.sizes[groups.labels], dtype=np.int64)


def _matching(codes: Codes) -> npt.NDArray[np.int64]:
    """For each row, how many rows could be the same where code 0 is any value."""
    names = [str(at) for at in range(codes.shape[1])]
    frame = pl.DataFrame({name: codes[:, at] for at, name in enumerate(names)})
    return wildcard_sizes(
        frame.select(pl.when(pl.col(n) == 0).then(None).otherwise(pl.col(n)).alias(n) for n in names), names
    )
