"""Copies: whether one column repeats another, however its cells are written.

`1950-03-07` and `07/03/1950`, `34` and ` 34.0`, `Recife` and `RECIFE ` tell the same. A column that repeats
another in all but a few rows undoes a generalization as well as one that repeats it everywhere, so that an
altered cell or a blank one must not hide it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.encode import text_codes
from velado.data.normal import normal_texts
from velado.release._written import days_in, numbers_in, plain

Codes = tuple[npt.NDArray[np.int32], int]
Counts = npt.NDArray[np.int64]

_SHARE = 0.99
"""A copy agrees in this share of the rows where both columns have a value (one row may always differ) ..."""
GAIN = 0.9
"""... and in nine tenths of those that do not hold the commonest value, which agree without any copying."""
LEAST_ROWS = 10
_LEAST_ROWS_OF_A_RECODING = 20
"""Fewer rows than these are enough only where they are all there are."""


def folded(series: pl.Series) -> pl.Series:
    """Texts in the one normal form: what a reader takes for one value is one, whatever the case or the zeros."""
    distinct = series.drop_nulls().unique()
    if 2 * len(distinct) > len(series):
        return normal_texts(series)
    return series.replace_strict(distinct, normal_texts(distinct), default=None, return_dtype=pl.String)


def readings(series: pl.Series, date_format: str | None = None, within: bool = True) -> tuple[pl.Series, ...]:
    """Everything the texts of a column may mean: normal text, and numbers and days where nearly all are such.

    *within* lets a number stand within a text (`34 y`): not in categories, where `3a` and `3b` are two.

    Days are six digits, year (of the century), month and day, since many files leave the century out. A
    text with two readings as a date (`03/07/1950`) is given both.
    """
    text = plain(series)
    out = [folded(series), *numbers_in(text, within=within)]
    for days in days_in(text, date_format):
        years = days.dt.year() % 100
        out.append((years * 10_000 + days.dt.month().cast(pl.Int32) * 100 + days.dt.day()).cast(pl.Int32))
    return tuple(out)


def same_values(own: Sequence[pl.Series], other: Sequence[pl.Series]) -> bool:
    """Whether some reading of one column holds the values of a reading of the other, row by row."""
    both = own[0].is_not_null() & other[0].is_not_null()
    rows = int(both.sum())
    if rows < min(LEAST_ROWS, len(both)):
        return False
    for mine in own:
        for theirs in other:
            if mine.dtype != theirs.dtype:
                continue
            agreeing = int((mine == theirs).sum())
            if rows - agreeing > max(1, (1 - _SHARE) * rows):
                continue
            commonest = int(theirs.filter(both).unique_counts().to_numpy().max())
            if _beyond_chance(rows, agreeing, commonest):
                return True
    return False


def one_to_one(column: Counts, quasi: Counts, counts: Counts) -> bool:
    """Whether values go together in pairs, in all but a few rows. Takes the occurring pairs and their counts.

    Blanks (code 0) are tried as a value like others, and left out.
    """
    if _paired(column, quasi, counts):
        return True
    both = (column > 0) & (quasi > 0)
    if bool(both.all()) or int(counts[both].sum()) < _LEAST_ROWS_OF_A_RECODING:
        return False
    return _paired(column[both], quasi[both], counts[both])


def _paired(column: Counts, quasi: Counts, counts: Counts) -> bool:
    # Each value's commonest partner; adding the position makes every count its own, so that ties have one winner.
    rank = counts * counts.size + np.arange(counts.size)
    best_of_column = np.zeros(int(column.max()) + 1, dtype=np.int64)
    best_of_quasi = np.zeros(int(quasi.max()) + 1, dtype=np.int64)
    np.maximum.at(best_of_column, column, rank)
    np.maximum.at(best_of_quasi, quasi, rank)
    mutual = (rank == best_of_column[column]) & (rank == best_of_quasi[quasi])
    rows, agreeing = int(counts.sum()), int(counts[mutual].sum())
    commonest = int(np.bincount(quasi, weights=counts).max())
    return rows - agreeing <= max(1, (1 - _SHARE) * rows) and _beyond_chance(rows, agreeing, commonest)


def _beyond_chance(rows: int, agreeing: int, commonest: int) -> bool:
    rest = rows - commonest
    return rest > 0 and rows - agreeing <= (1 - GAIN) * rest


def count_pairs(column: Codes, quasi: Codes) -> tuple[Counts, Counts, Counts]:
    """Occurring pairs of codes, ordered by the column's code, and how often each occurs."""
    space = column[1] * quasi[1]
    key = column[0].astype(np.int64) * quasi[1] + quasi[0]
    if space <= 4 * key.size:
        dense = np.bincount(key, minlength=space)
        pairs = np.flatnonzero(dense)
        counts = dense[pairs]
    else:
        pairs, counts = np.unique(key, return_counts=True)
    return pairs // quasi[1], pairs % quasi[1], counts.astype(np.int64)


def repeats(own: Sequence[pl.Series], other: Sequence[pl.Series]) -> bool:
    """Whether one column repeats another in its values or one to one, from the readings of all rows."""
    if same_values(own, other):
        return True
    return one_to_one(*count_pairs(text_codes(own[0]), text_codes(other[0])))
