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

_MOST_PAIRS = 1_000_000
"""Pairs of texts that are counted one by one; of more, those that are met."""


def correlation_change(published: PublishedTable) -> float | None:
    """Mean over pairs of columns of |association after - association before|: 0 nothing moved, 1 everything.

    The association of two columns is the root of Escoufier's RV coefficient (1973),
    |S_xy|^2 / (|S_xx| |S_yy|) with Frobenius norms of covariances: for two numbers the absolute value of Pearson's correlation, for
    categories the same of their indicators. A published range counts by its middle, a published label as an equal share of
    each value below it. None where there are fewer than two columns. O(rows + texts x values) for each pair of columns.

    >>> from velado.testing.examples import four_published
    >>> correlation_change(four_published()) is None
    True
    """
    rows = published.true_rows
    if rows is None:
        raise ParameterError(*published.unpaired)
    pairs = list(zip(published.data.columns, published.columns, strict=True))
    before = [_Placed.of(column.codes, _as_it_was(column)) for column, _ in pairs]
    # Rows of a class show the same texts: one of them stands for all.
    order, starts = published.classes.members()
    first, sizes = order[starts], published.classes.sizes.astype(np.float64)
    after = [_Placed.of(read.codes[first], _as_published(column, read), sizes) for column, read in pairs]
    moved = [
        abs(_association(after[one], after[two]) - _association(before[one], before[two]))
        for one, two in combinations(range(len(pairs)), 2)
    ]
    return float(np.mean(moved)) if moved else None


def _as_it_was(column: EncodedColumn) -> FloatArray:
    if column.tree is None or column.size > WIDEST:
        return column.positions[:, None]
    return np.eye(column.size)


def _as_published(column: EncodedColumn, read: PublishedColumn) -> FloatArray:
    low, high = np.maximum(read.low, 0), np.maximum(read.high, 0)
    if column.tree is None or column.size > WIDEST:
        middle = (column.positions[low] + column.positions[high]) / 2
        return np.asarray(middle[:, None], dtype=np.float64)
    leaves = np.arange(column.size)
    below = (leaves >= low[:, None]) & (leaves <= high[:, None])
    return np.asarray(below / np.maximum(below.sum(axis=1, keepdims=True), 1), dtype=np.float64)


@dataclass(frozen=True, repr=False)
class _Placed:
    """A column as points: entry e, which stands for ``weights[e]`` rows, lies at ``places[codes[e]]``, the mean at 0."""

    codes: IntArray
    places: FloatArray
    weights: FloatArray | None
    within: float  # the norm of the covariance with itself

    @classmethod
    def of(cls, codes: IntArray, places: FloatArray, weights: FloatArray | None = None) -> _Placed:
        """The points moved so that their mean lies at 0."""
        rows = np.bincount(codes, weights, minlength=len(places)).astype(np.float64)
        centred = places - (rows @ places) / max(rows.sum(), 1.0)
        return cls(codes, centred, weights, float(np.linalg.norm(centred.T @ (rows[:, None] * centred))))

    @property
    def is_line(self) -> bool:
        """Whether the points lie on a line, as those of numbers do."""
        return self.places.shape[1] == 1

    @cached_property
    def line(self) -> FloatArray:
        """Of points on a line, where each entry lies."""
        return np.asarray(self.places[:, 0][self.codes], dtype=np.float64)

    @property
    def weighted(self) -> FloatArray:
        """The same, times the rows of each."""
        return np.asarray(self.line if self.weights is None else self.line * self.weights, dtype=np.float64)


def _association(one: _Placed, two: _Placed) -> float:
    """0 where a column no longer varies: nothing goes with what is the same everywhere."""
    whole = one.within * two.within
    return float(np.sqrt(np.linalg.norm(_covariance(one, two)) ** 2 / whole)) if whole > 1e-18 else 0.0


def _covariance(one: _Placed, two: _Placed) -> FloatArray:
    """Sum over rows of the products of the coordinates: codes that meet are counted, no row becomes a vector."""
    if not one.is_line:
        if two.is_line:
            one, two = two, one
        else:
            rows = np.ones(one.codes.size) if one.weights is None else one.weights
            shape = len(one.places), len(two.places)
            if shape[0] * shape[1] > _MOST_PAIRS:
                # Loaded where it is wanted: it takes a third of a second.
                from scipy.sparse import coo_array

                met = coo_array((rows, (one.codes, two.codes)), shape=shape).tocsr()
            else:
                pairs = one.codes.astype(np.int64) * shape[1] + two.codes
                met = np.bincount(pairs, rows, minlength=shape[0] * shape[1]).reshape(shape)
            return np.asarray(one.places.T @ (met @ two.places), dtype=np.float64)
    if two.is_line:
        return np.asarray([one.weighted @ two.line], dtype=np.float64)
    return np.asarray(
        np.bincount(two.codes, one.weighted, minlength=len(two.places)) @ two.places, dtype=np.float64
    )


CORRELATION_CHANGE = Measure(
    name="correlation_change",
    title=say("change of correlations"),
    of=lambda published, scores: correlation_change(published),
)
