"""The baseline: CS_i = sum_j |rho_ij| s_j over all pairs of records, without the n x n matrix (definitions 5-8).

Rows with equal ranks have equal rho, so the sum runs over distinct rank vectors with the s of their rows added up:
y = |P| W with P the u x u matrix of rho between distinct vectors. P is made in tiles that stay in the cache and is
forgotten at once; for one query each tile serves both of its triangles. Cost O(u^2 d) multiplications, O(u) memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit

from velado.query.correlation.influence import Mask
from velado.query.correlation.ranks import Ranks, Vectors
from velado.query.correlation.records import Floats, Integers

TILE = 512  # 512 x 512 single-precision products are 1 MB: they stay in a core's second cache.
TOGETHER = 128  # queries of one pass: their record sensitivities take 8 bytes x rows each.
_SUMS = {"reassoc", "contract", "nsz"}  # a sum may be taken in lanes; nothing else is relaxed


class Correlation(Protocol):
    """What an approach has learnt of a table: how far one record, with its correlated ones, moves an answer."""

    def of_records(self, influence: Floats, inside: Mask) -> Floats:
        """CS_i for every row (n) and query (q): shape (n, q). Rows outside the answer may hold anything."""


def sensitivity(correlation: Correlation, influence: Floats, inside: Mask) -> Floats:
    """CS_f = max of CS_i over the rows i of the answer (definition 8), for each of q queries.

    *influence* and *inside* are (n, q), or (n,) for one query.
    """
    influence = influence.reshape(influence.shape[0], -1)
    inside = inside.reshape(influence.shape)
    out = np.zeros(influence.shape[1])
    for start in range(0, out.size, TOGETHER):
        part = slice(start, start + TOGETHER)
        found = correlation.of_records(influence[:, part], inside[:, part])
        out[part] = np.max(found, axis=0, where=inside[:, part], initial=0.0)
    return out


@dataclass(frozen=True, repr=False)
class Spearman:
    """Every pair of records is correlated, by the absolute value of Spearman's rho where that exceeds *threshold*."""

    ranks: Ranks
    threshold: float = 0.0

    def of_records(self, influence: Floats, inside: Mask) -> Floats:
        """CS_i = sum_j |rho_ij| s_j, rho_ii = 1."""
        ranks = self.ranks
        weights = summed(ranks.of_row, influence, ranks.norms.size)
        wanted = np.bincount(ranks.of_row, inside.any(axis=1), minlength=ranks.norms.size) > 0
        spread = spread_over(ranks, weights, wanted, self.threshold)
        alone = ranks.norms[ranks.of_row] == 0.0  # rho of a constant record is 0, but it is itself
        return np.asarray(spread[ranks.of_row] + np.where(alone[:, None], influence, 0.0))


def summed(group: Integers, values: Floats, groups: int) -> Floats:
    """The sums of the rows of *values* by group: shape (groups, q)."""
    return np.stack([np.bincount(group, column, minlength=groups) for column in values.T], axis=1)


def spread_over(ranks: Ranks, weights: Floats, wanted: Mask, threshold: float = 0.0) -> Floats:
    """y = |P| W at the *wanted* vectors (0 elsewhere), entries of |P| at or below *threshold* taken as 0."""
    used = np.flatnonzero(np.any(weights != 0.0, axis=1))
    rows = np.flatnonzero(wanted)
    out = np.zeros_like(weights)
    if not used.size or not rows.size:
        return out
    if weights.shape[1] == 1 and np.array_equal(rows, used):
        out[rows, 0] = _one_query(*ranks.take(rows), weights[rows, 0], threshold)
    else:
        out[rows] = _many_queries(ranks.take(rows), ranks.take(used), weights[used], threshold)
    return out


def _one_query(vectors: Vectors, norms: Floats, weights: Floats, threshold: float) -> Floats:
    safe = np.where(norms > 0.0, norms, np.inf)  # a constant record's products are 0: 0 / inf stays 0
    share = weights / safe
    out = np.zeros(norms.size)
    for a in range(0, norms.size, TILE):
        first = slice(a, a + TILE)
        for b in range(a, norms.size, TILE):
            second = slice(b, b + TILE)
            tile = np.dot(vectors[first], vectors[second].T)
            if threshold > 0.0:
                _cut(tile, norms[first], norms[second], threshold)
            if a == b:
                _add_one(tile, share[second], out[first])
            else:
                _add_both(tile, share[first], share[second], out[first], out[second])
    return np.asarray(out / safe)


def _many_queries(
    left: tuple[Vectors, Floats],
    right: tuple[Vectors, Floats],
    weights: Floats,
    threshold: float,
) -> Floats:
    (rows, row_norms), (columns, column_norms) = left, right
    safe = np.where(row_norms > 0.0, row_norms, np.inf)
    share = weights / np.where(column_norms > 0.0, column_norms, np.inf)[:, None]
    out = np.zeros((row_norms.size, weights.shape[1]))
    for a in range(0, row_norms.size, TILE):
        first = slice(a, a + TILE)
        for b in range(0, column_norms.size, TILE):
            second = slice(b, b + TILE)
            tile = np.dot(rows[first], columns[second].T)
            if threshold > 0.0:
                _cut(tile, row_norms[first], column_norms[second], threshold)
            out[first] += np.abs(tile, dtype=np.float64) @ share[second]
    return np.asarray(out / safe[:, None])


@njit(cache=True, fastmath=_SUMS)
def _add_one(tile, weights, out):  # type: ignore[no-untyped-def]
    """out += |tile| weights."""
    for i in range(tile.shape[0]):
        total = 0.0
        for j in range(tile.shape[1]):
            total += abs(np.float64(tile[i, j])) * weights[j]
        out[i] += total


@njit(cache=True, fastmath=_SUMS)
def _add_both(tile, left, right, out, transposed):  # type: ignore[no-untyped-def]
    """out += |tile| right and transposed += |tile|^T left, reading the tile once."""
    for i in range(tile.shape[0]):
        total = 0.0
        weight = left[i]
        for j in range(tile.shape[1]):
            value = abs(np.float64(tile[i, j]))
            total += value * right[j]
            transposed[j] += value * weight
        out[i] += total


@njit(cache=True)
def _cut(tile, left, right, threshold):  # type: ignore[no-untyped-def]
    """Products whose rho does not exceed the threshold become 0."""
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            if abs(np.float64(tile[i, j])) <= threshold * left[i] * right[j]:
                tile[i, j] = 0
