"""How far one record moves an answer, alone (s_j) and with every record correlated to it (CS_i), and which columns count.

Spearman's rho is taken over ranks within a record, for all pairs, in tiles that are forgotten at once: the baseline of
the source (definitions 2-8). At the end stands approach 3's choice of columns. Everything here is computed from the
private records and leaks with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from velado.compiled import njit
from velado.errors import MissingExtra, ParameterError, QueryRefused
from velado.papers.correlated.correlated_records import Floats, Integers, Records
from velado.text import say

# The one place that says what to install where scikit-learn is missing.


def scikit_learn(what: str) -> None:
    """Raise unless scikit-learn can be imported.

    >>> scikit_learn("Clustering")
    """
    if find_spec("sklearn") is None:
        raise MissingExtra(
            say("{what} needs scikit-learn, which is not installed.", what=what),
            "The source's clustering, mixtures and choice of columns are scikit-learn's.",
            "Install velado with its extra: velado[ml].",
        )


# Ranks within a record across its attributes, as whole numbers, each distinct vector once.
#
# Spearman's rho of two records is the correlation of their ranks (average ranks for ties). With d attributes let
# c = 2 rank - (d + 1), a vector of whole numbers whose sum is 0; then rho_ij = c_i . c_j / (|c_i| |c_j|), and a record
# whose values are all equal (|c| = 0) has rho 0 with everything. Whole numbers make the products exact, in single
# precision too while d (d^2 - 1) / 3 < 2^24 (d <= 369), which is twice as fast. Many records share a vector
# (Adult: 30,162 rows, 14,963 vectors), and whoever shares one has the same rho with everybody.

Vectors = npt.NDArray[Any]  # single or double precision, whichever holds the products exactly
_EXACT_SINGLE = 2**24


@dataclass(frozen=True, repr=False)
class Ranks:
    """The distinct *vectors* (u x d), their *norms* (0 for a constant record), and which one each row has.

    >>> ranks_within(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    Ranks(2 rows, 1 distinct)
    """

    vectors: Vectors
    norms: Floats
    of_row: Integers

    def __repr__(self) -> str:
        return f"Ranks({self.of_row.size} rows, {self.norms.size} distinct)"

    def take(self, which: Integers) -> tuple[Vectors, Floats]:
        """Vectors and norms at these positions, contiguous."""
        return np.ascontiguousarray(self.vectors[which]), self.norms[which]

    def unit(self) -> Floats:
        """The unit-norm centred ranks of every row, so that rho = R R^T (constant records: zeros)."""
        safe = np.where(self.norms > 0, self.norms, 1.0)
        return np.asarray((self.vectors / safe[:, None])[self.of_row], dtype=np.float64)


def ranks_within(values: Floats) -> Ranks:
    """The ranks of every row of *values*. O(n d log d + n log n).

    >>> ranks_within(np.array([[3.0, 1.0, 2.0]])).vectors
    array([[ 2., -2.,  0.]], dtype=float32)
    """
    width = values.shape[1]
    centred = np.rint(2.0 * rankdata(values, axis=1) - (width + 1)).astype(np.int16)
    vectors, of_row = np.unique(centred, axis=0, return_inverse=True)
    squares = np.square(vectors, dtype=np.int64).sum(axis=1)
    single = width * (width * width - 1) // 3 < _EXACT_SINGLE
    return Ranks(
        np.ascontiguousarray(vectors, dtype=np.float32 if single else np.float64),
        np.sqrt(squares.astype(np.float64)),
        np.asarray(of_row, dtype=np.int64).ravel(),
    )


def centred_within(values: Floats) -> Ranks:
    """The values of every row less their mean, so that rho is Pearson's coefficient of two records. O(n d + n log n).

    >>> centred_within(np.array([[0.0, 0.5, 1.0]])).vectors
    array([[-0.5,  0. ,  0.5]])
    """
    vectors, of_row = np.unique(values - values.mean(axis=1, keepdims=True), axis=0, return_inverse=True)
    norms = np.sqrt(np.square(vectors).sum(axis=1))
    norms[norms < 1e-12] = 0.0  # all values equal, but for the rounding of their mean
    return Ranks(np.ascontiguousarray(vectors), norms, np.asarray(of_row, dtype=np.int64).ravel())


# The baseline: CS_i = sum_j |rho_ij| s_j over all pairs of records, without the n x n matrix (definitions 5-8).
#
# Rows with equal ranks have equal rho, so the sum runs over distinct rank vectors with the s of their rows added up:
# y = |P| W with P the u x u matrix of rho between distinct vectors. P is made in tiles that stay in the cache and is
# forgotten at once; for one query each tile serves both of its triangles. Cost O(u^2 d) multiplications, O(u) memory.

TILE = 512  # 512 x 512 single-precision products are 1 MB: they stay in a core's second cache.
TOGETHER = 128  # queries of one pass: their record sensitivities take 8 bytes x rows each.
_SUMS = {"reassoc", "contract", "nsz"}  # a sum may be taken in lanes; nothing else is relaxed


class Correlation(Protocol):
    """What an approach has learnt of a table: how far one record, with its correlated ones, moves an answer.

    >>> learnt: Correlation = Spearman(ranks_within(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])))
    >>> learnt.of_records(np.ones((2, 1)), np.ones((2, 1), dtype=bool)).round(6).tolist()
    [[2.0], [2.0]]
    """

    def of_records(self, influence: Floats, inside: Mask) -> Floats:
        """CS_i for every row (n) and query (q): shape (n, q). Rows outside the answer may hold anything."""


def sensitivity(correlation: Correlation, influence: Floats, inside: Mask) -> Floats:
    """CS_f = max of CS_i over the rows i of the answer (definition 8), for each of q queries.

    *influence* and *inside* are (n, q), or (n,) for one query.

    >>> spearman = Spearman(ranks_within(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])))
    >>> sensitivity(spearman, np.ones(2), np.ones(2, dtype=bool))
    array([2.])
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
    """Every pair of records is correlated, by the absolute value of Spearman's rho where that exceeds *threshold*.

    >>> Spearman(ranks_within(np.array([[1.0, 2.0], [2.0, 1.0]]))).of_records(np.ones((2, 1)), np.ones((2, 1), bool)).ravel()
    array([2., 2.])
    """

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
    """The sums of the rows of *values* by group: shape (groups, q).

    >>> summed(np.array([0, 1, 0]), np.array([[1.0], [2.0], [3.0]]), 2)
    array([[4.],
           [2.]])
    """
    return np.stack([np.bincount(group, column, minlength=groups) for column in values.T], axis=1)


def spread_over(ranks: Ranks, weights: Floats, wanted: Mask, threshold: float = 0.0) -> Floats:
    """y = |P| W at the *wanted* vectors (0 elsewhere), entries of |P| at or below *threshold* taken as 0.

    >>> ranks = ranks_within(np.array([[1.0, 2.0], [2.0, 1.0]]))
    >>> spread_over(ranks, np.ones((2, 1)), np.ones(2, dtype=bool)).ravel()
    array([2., 2.])
    """
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
    left: tuple[Vectors, Floats], right: tuple[Vectors, Floats], weights: Floats, threshold: float
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


# s_j = |f(D) - f(D without j)| for the five aggregates, for every row at once (definitions 2, 3 and 7).
#
# =======  ==========================================================================
# COUNT    1
# SUM      |x_j|
# AVG      |x_j - mean| / (m - 1); with one row there is no mean without it
# MIN/MAX  the gap to the next value where j alone holds the extreme, else 0
# =======  ==========================================================================
#
# for the m rows of the answer, and 0 for every other row. A row whose value is missing (NaN) is not in the answer.

Aggregation = Literal["count", "sum", "avg", "min", "max"]
AGGREGATIONS: tuple[Aggregation, ...] = ("count", "sum", "avg", "min", "max")
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class Influence:
    """The true answer, s_j per row, and which rows are in the answer.

    >>> influence("count", np.array([True, False]))
    Influence(1 of 2 rows)
    """

    answer: float
    of_row: Floats
    inside: Mask

    def __repr__(self) -> str:
        return f"Influence({int(self.inside.sum())} of {self.inside.size} rows)"


def influence(kind: Aggregation, inside: Mask, values: Floats | None = None) -> Influence:
    """What every row does to the answer of *kind* over the rows *inside*. O(n).

    Refuses an answer that does not exist: no row at all, or the mean of a single row, whose influence is undefined.

    >>> influence("max", np.ones(3, dtype=bool), np.array([1.0, 5.0, 9.0])).of_row
    array([0., 0., 4.])
    """
    if values is not None:
        inside = inside & ~np.isnan(values)
    matching = int(np.count_nonzero(inside))
    if matching == 0 or (kind == "avg" and matching == 1):
        raise QueryRefused(
            say("{kind} has too few rows to be answered as in the source.", kind=kind.upper()),
            "Without a row, or for the mean of one, the source's sensitivity is not defined.",
            "Ask about more rows; or use a promise that does not depend on the rows.",
        )
    out = np.zeros(inside.size)
    if kind == "count":
        out[inside] = 1.0
        return Influence(float(matching), out, inside)
    if values is None:
        raise QueryRefused(
            say("{kind} needs a numeric column.", kind=kind.upper()),
            "Only rows can be counted without one.",
            "Name the column.",
        )
    x = values[inside]
    if kind == "sum":
        out[inside] = np.abs(x)
        return Influence(float(x.sum()), out, inside)
    if kind == "avg":
        mean = float(x.mean())
        out[inside] = np.abs(x - mean) / (matching - 1)
        return Influence(mean, out, inside)
    answer, gap = _extreme(x if kind == "max" else -x)
    if gap > 0.0:
        out[np.flatnonzero(inside)[int(np.argmax(x) if kind == "max" else np.argmin(x))]] = gap
    return Influence(answer if kind == "max" else -answer, out, inside)


def _extreme(x: Floats) -> tuple[float, float]:
    """The greatest value, and its gap to the next one (0 for ties).

    Of a single row the gap to nothing is nothing: the source names no answer for the empty set, so none is charged.
    """
    if x.size == 1:
        return float(x[0]), 0.0
    two = np.partition(x, x.size - 2)[-2:]
    return float(two[1]), float(two[1] - two[0])


# Approach 3's choice of columns: recursive feature elimination by a random forest on the target (Guyon et al. 2002).
#
# Column after column the least important is dropped and the forest grown anew, until *keep* are left. Forests of ten
# trees are what scikit-learn 0.18, which the source names, grew by default; we grow more, so that the choice hangs
# less on the seed.

TREES = 50


def chosen_columns(
    records: Records, keep: int, rng: np.random.Generator, trees: int = TREES
) -> tuple[int, ...]:
    """The positions of the *keep* columns that are left, in the order of the table.

    >>> records = Records(np.array([[0.0, 0.3], [0.1, 0.2], [1.0, 0.3], [0.9, 0.2]]), ("a", "b"), np.array([0, 0, 1, 1]), (0, 1))
    >>> chosen_columns(records, 1, np.random.default_rng(0))
    (0,)
    """
    if records.target is None:
        raise ParameterError(
            "Recursive feature elimination needs a target column.",
            "Columns are kept by how well they predict it.",
            "Name the target, for example income.",
        )
    if not 1 <= keep <= len(records.features):
        raise ParameterError(
            say("Of {features} columns {keep} cannot be kept.", keep=keep, features=len(records.features)),
            "Elimination keeps at least one column and at most all of them.",
            "Lower the number of columns to keep.",
        )
    scikit_learn(say("Recursive feature elimination"))
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_selection import RFE

    forest = RandomForestClassifier(n_estimators=trees, random_state=int(rng.integers(2**31)))
    positions = np.array(records.features)
    found = RFE(forest, n_features_to_select=keep, step=1).fit(records.values[:, positions], records.target)
    return tuple(int(at) for at in positions[found.support_])
