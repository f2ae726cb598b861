"""Correlation change: how far the associations between quasi-identifiers moved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from velado.data.encode import EncodedColumn
from velado.data.partition import FloatArray, IntArray
from velado.data.published_column import PublishedColumn
from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.measures.recoded_columns import PublishedTable
from velado.text import say

WIDEST = 200
"""A category with more values than this counts by its place in the tree."""
_NOTHING = 1e-18
"""Of a product of norms: what rounding leaves where nothing varies."""
_MOST_PAIRS = 1 << 20


def correlation_change(published: PublishedTable) -> float | None:
    """Mean over pairs of columns of |association after - association before|: 0 nothing moved, 1 everything.

    The association of two columns is the root of Escoufier's RV coefficient (1973),
    |S_xy|^2 / (|S_xx| |S_yy|) with Frobenius norms of covariances: for two numbers the absolute value of Pearson's correlation, for
    categories the same of their indicators. A published range counts by its middle, a published label as an equal share of
    each value below it. None where there are fewer than two columns. O(rows + values^3) for each pair.

    >>> from velado.testing.examples import four_published
    >>> correlation_change(four_published()) is None
    True
    """
    rows = published.true_rows
    if rows is None:
        raise ParameterError(*published.unpaired)
    pairs = list(zip(published.data.columns, published.columns, strict=True))
    before = _associations([_as_it_was(column) for column, _ in pairs])
    after = _associations([_as_published(column, read) for column, read in pairs])
    moved = np.abs(after - before)
    return float(np.mean(moved)) if moved.size else None


@dataclass(frozen=True)
class _Features:
    """What the rows of a column count as: those with the code c as *of_code*[c], one number or several."""

    codes: IntArray
    of_code: FloatArray

    @cached_property
    def centred(self) -> FloatArray:
        """The features of each code about their means over the rows."""
        counts = np.bincount(self.codes, minlength=len(self.of_code))
        return np.asarray(self.of_code - counts @ self.of_code / max(self.codes.size, 1))

    @cached_property
    def number(self) -> FloatArray | None:
        """The one number of each row, about its mean; None for features of a category."""
        return self.centred[self.codes, 0] if self.of_code.shape[1] == 1 else None


def _associations(columns: list[_Features]) -> FloatArray:
    """The association of each pair of columns; 0 where one no longer varies: nothing goes with what is the same everywhere."""
    own = [float(np.linalg.norm(_covariance(column, column))) for column in columns]
    out = []
    for one, two in combinations(range(len(columns)), 2):
        whole = own[one] * own[two]
        joint = float(np.linalg.norm(_covariance(columns[one], columns[two]))) if whole > _NOTHING else 0.0
        out.append(np.sqrt(joint**2 / whole) if whole > _NOTHING else 0.0)
    return np.array(out, dtype=np.float64)


def _covariance(one: _Features, two: _Features) -> FloatArray:
    """The covariances of their features, times the rows: from counts of pairs of codes where these are few."""
    if one.number is not None and two.number is not None:
        return np.asarray((one.number * two.number).sum()).reshape(1, 1)
    if one.number is not None:
        sums = np.bincount(two.codes, weights=one.number, minlength=len(two.of_code))
        return np.asarray(sums @ two.centred).reshape(1, -1)
    if two.number is not None:
        return _covariance(two, one)
    shape = len(one.of_code), len(two.of_code)
    if shape[0] * shape[1] > max(_MOST_PAIRS, one.codes.size):
        return np.asarray(one.centred[one.codes].T @ two.centred[two.codes])
    counts = np.bincount(one.codes.astype(np.int64) * shape[1] + two.codes, minlength=shape[0] * shape[1])
    return np.asarray(one.centred.T @ counts.reshape(shape).astype(np.float64) @ two.centred)


def _as_it_was(column: EncodedColumn) -> _Features:
    if column.tree is None or column.size > WIDEST:
        return _Features(column.codes, column.positions[:, None])
    return _Features(column.codes, np.eye(column.size))


def _as_published(column: EncodedColumn, read: PublishedColumn) -> _Features:
    low, high = np.maximum(read.low, 0), np.maximum(read.high, 0)
    if column.tree is None or column.size > WIDEST:
        middle = (column.positions[low] + column.positions[high]) / 2
        return _Features(read.codes, np.asarray(middle[:, None], dtype=np.float64))
    leaves = np.arange(column.size)
    below = (leaves >= low[:, None]) & (leaves <= high[:, None])
    shares = below / np.maximum(below.sum(axis=1, keepdims=True), 1)
    return _Features(read.codes, np.asarray(shares, dtype=np.float64))


CORRELATION_CHANGE = Measure(
    name="correlation_change",
    title=say("change of correlations"),
    of=lambda published, scores: correlation_change(published),
)
