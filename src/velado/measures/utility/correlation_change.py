"""Correlation change: how far the associations between quasi-identifiers moved."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from velado.data.encode import EncodedColumn
from velado.data.partition import FloatArray
from velado.data.published_column import PublishedColumn
from velado.errors import ParameterError
from velado.measures.declared import Measure
from velado.measures.recoded_columns import PublishedTable
from velado.text import say

WIDEST = 200
"""A category with more values than this counts by its place in the tree."""


def correlation_change(published: PublishedTable) -> float | None:
    """Mean over pairs of columns of |association after - association before|: 0 nothing moved, 1 everything.

    The association of two columns is the root of Escoufier's RV coefficient (1973),
    |S_xy|^2 / (|S_xx| |S_yy|) with Frobenius norms of covariances: for two numbers the absolute value of Pearson's correlation, for
    categories the same of their indicators. A published range counts by its middle, a published label as an equal share of
    each value below it. None where there are fewer than two columns. O(rows x values^2) for each pair.

    >>> from velado.testing.examples import four_published
    >>> correlation_change(four_published()) is None
    True
    """
    rows = published.true_rows
    if rows is None:
        raise ParameterError(*published.unpaired)
    pairs = list(zip(published.data.columns, published.columns, strict=True))
    before = [_centred(_as_it_was(column)) for column, _ in pairs]
    after = [_centred(_as_published(column, read)) for column, read in pairs]
    moved = [
        abs(_association(after[one], after[two]) - _association(before[one], before[two]))
        for one, two in combinations(range(len(pairs)), 2)
    ]
    return float(np.mean(moved)) if moved else None


def _as_it_was(column: EncodedColumn) -> FloatArray:
    if column.tree is None or column.size > WIDEST:
        return column.positions[column.codes][:, None]
    return np.eye(column.size)[column.codes]


def _as_published(column: EncodedColumn, read: PublishedColumn) -> FloatArray:
    low, high = np.maximum(read.low, 0), np.maximum(read.high, 0)
    if column.tree is None or column.size > WIDEST:
        middle = (column.positions[low] + column.positions[high]) / 2
        return np.asarray(middle[read.codes][:, None], dtype=np.float64)
    leaves = np.arange(column.size)
    below = (leaves >= low[:, None]) & (leaves <= high[:, None])
    return np.asarray((below / np.maximum(below.sum(axis=1, keepdims=True), 1))[read.codes], dtype=np.float64)


def _centred(values: FloatArray) -> FloatArray:
    return np.asarray(values - values.mean(axis=0), dtype=np.float64)


def _association(one: FloatArray, two: FloatArray) -> float:
    """0 where a column no longer varies: nothing goes with what is the same everywhere."""
    whole = np.linalg.norm(one.T @ one) * np.linalg.norm(two.T @ two)
    return float(np.sqrt(np.linalg.norm(one.T @ two) ** 2 / whole)) if whole > 1e-18 else 0.0


CORRELATION_CHANGE = Measure(
    name="correlation_change",
    title=say("change of correlations"),
    of=lambda published, scores: correlation_change(published),
)
