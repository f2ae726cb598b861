"""Which tables of counts are drawn, with which share each, and how exact every answer then is: closed forms, no row.

A drawn table A gives each column a level: 0 (all its values together), the classes themselves, or equal blocks of them between
(Hay et al. 2010). With weights w_A = 1 / variance, least squares is solved level vector by level vector (McKenna et al. 2018 for
marginals): on what is told at S and not coarser, the information is mu_S = sum of w_A / cells(A) over A >= S, so an answer q has

    variance(q) = sum over S of e_S(q) / mu_S,   e_S(q) = |P_S q|^2 / cells in all,

P_S being the projection onto that part. The weights are those of an A-optimal design, found by its multiplicative steps
(Yu 2010 for Gaussian noise; for Laplace noise, whose charge adds by 1 / scale, the same steps of power 1/3 from the first's optimum).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import ceil, prod

import numpy as np

from velado.query.needs import ClassKey
from velado.query.noise import Mechanism
from velado.query.workload.classes import Factor, Floats, Item

Levels = tuple[int, ...]
MOST_VECTORS = 1500
STEPS, ROUNDS = 200, 6
LEAST_WEIGHT = 1e-3
"""Tables with a smaller part of the largest weight are not drawn."""


@dataclass(frozen=True, eq=False)
class Space:
    """The columns, and how many cells each has at each of its levels: (1, ..., classes and padding)."""

    columns: tuple[str, ...]
    chains: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, keys: Mapping[str, ClassKey], depth: int) -> Space:
        """Up to *depth* levels above 0 for each ordered column; blocks are equal, so the last may hold classes of nothing.

        >>> Space.of({"age": ClassKey("age", (1.0,), (), (), 12)}, 2).chains
        ((1, 3, 12),)
        """
        chains = []
        for key in keys.values():
            deep = depth if key.cuts and key.size >= 4 else 1
            each = ceil(key.size ** (1 / deep) - 1e-9)
            # The coarsest level takes up what is left, so that little is padded.
            sizes = [ceil(key.size / each ** (deep - 1)) * each**step for step in range(deep)]
            chains.append((1, *sizes) if key.size > 1 else (1,))
        return cls(tuple(keys), tuple(chains))

    def cells(self, levels: Levels) -> int:
        """How many cells a table at these levels has."""
        return prod(chain[level] for chain, level in zip(self.chains, levels, strict=True))

    def below(self, columns: Sequence[str]) -> Iterator[Levels]:
        """All level vectors about these columns alone."""
        spans = [
            range(len(chain)) if column in columns else range(1)
            for column, chain in zip(self.columns, self.chains, strict=True)
        ]
        yield from product(*spans)

    def chain(self, column: str) -> tuple[int, ...]:
        """The levels' cells of one column."""
        return self.chains[self.columns.index(column)]


def averaged(array: Floats, axis: int, cells: int) -> Floats:
    """The means of equal blocks along one axis.

    >>> averaged(np.array([1.0, 3.0, 5.0, 5.0]), 0, 2).tolist()
    [2.0, 5.0]
    """
    shape = array.shape
    out: Floats = array.reshape(*shape[:axis], cells, shape[axis] // cells, *shape[axis + 1 :]).mean(
        axis=axis + 1
    )
    return out


def padded(array: Floats, axis: int, size: int) -> Floats:
    """Zeros behind the last along one axis."""
    width = [(0, 0)] * array.ndim
    width[axis] = (0, size - array.shape[axis])
    return np.pad(array, width)


def factor_parts(factor: Factor, space: Space) -> Floats:
    """e_S of one factor: an axis for the levels of each of its columns, then one for each answered key."""
    first = len(factor.outputs)
    whole = factor.matrix
    chains = [space.chain(column) for column in factor.columns]
    for at, chain in enumerate(chains):
        whole = padded(whole, first + at, chain[-1])
    inclusive = np.zeros([*map(len, chains), *whole.shape[:first]])
    for levels in product(*(range(len(chain)) for chain in chains)):
        means = whole
        for at, (chain, level) in enumerate(zip(chains, levels, strict=True)):
            means = averaged(means, first + at, chain[level])
        inclusive[levels] = (means**2).mean(axis=tuple(range(first, means.ndim)))
    for at in range(len(chains)):
        inclusive = np.diff(inclusive, axis=at, prepend=0.0)
    return np.where(inclusive < 1e-14, 0.0, inclusive)


def _joined(parts: Sequence[Floats], counts: Sequence[int]) -> Floats:
    """The outer product of factors, the levels' axes of all first; *counts* of them each."""
    out = reduce(np.multiply.outer, parts) if parts else np.array(1.0)
    starts = np.cumsum([0, *(part.ndim for part in parts)])
    levels = [int(start) + at for start, count in zip(starts, counts, strict=False) for at in range(count)]
    rest = [axis for axis in range(out.ndim) if axis not in levels]
    return np.transpose(out, [*levels, *rest])


@dataclass(frozen=True, eq=False)
class Strategy:
    """The tables to draw (level vectors) and the parts of the spend that each has."""

    space: Space
    tables: tuple[Levels, ...]
    shares: tuple[float, ...]

    def information(self, weights: Sequence[float]) -> dict[Levels, float]:
        """mu_S for each level vector that some table tells of; *weights* are the tables' 1 / variance."""
        out: dict[Levels, float] = {}
        for table, weight in zip(self.tables, weights, strict=True):
            each = weight / self.space.cells(table)
            for levels in product(*(range(level + 1) for level in table)):
                out[levels] = out.get(levels, 0.0) + each
        return out

    def variances(self, item: Item, weights: Sequence[float]) -> Floats:
        """The variance of each answer of an item, in the order of its keys."""
        known = self.information(weights)
        columns = [column for factor in item.factors for column in factor.columns]
        sizes = [len(self.space.chain(column)) for column in columns]
        inverse = np.zeros(sizes)
        for levels in product(*map(range, sizes)):
            named = dict(zip(columns, levels, strict=True))
            told = known.get(tuple(named.get(column, 0) for column in self.space.columns))
            # What no table tells of, no answer asks about: its part of them all is nothing.
            inverse[levels] = 0.0 if told is None else 1 / told
        out: Floats = inverse
        for factor in item.factors:
            part = factor_parts(factor, self.space)
            axes = list(range(len(factor.columns)))
            # The factor's own levels are the first axes left; its answers go to the end.
            out = np.tensordot(out, part, axes=(axes, axes))
        return in_order(out, item)


def in_order(answers: Floats, item: Item) -> Floats:
    """Axes that stand factor by factor, brought into the order of the question's keys."""
    places = [place for factor in item.factors for place in factor.outputs]
    return np.transpose(answers, [places.index(place) for place in range(len(places))])


def find(
    items: Sequence[Item], space: Space, mechanism: Mechanism, targets: Floats
) -> tuple[Strategy, float] | None:
    """The strategy with the least mean of variance / target, none above 1 if there is one, and its largest such quotient.

    Variances are those at a spend that gives one table alone a variance of 1. None where there are too many level vectors.
    """
    vectors: dict[Levels, int] = {}
    for columns in dict.fromkeys(item.columns for item in items):
        for levels in space.below(columns):
            vectors.setdefault(levels, len(vectors))
            if len(vectors) > MOST_VECTORS:
                return None
    matrix = np.array(list(vectors), dtype=np.int64)
    covers = (matrix[None, :, :] >= matrix[:, None, :]).all(axis=2) / np.array(
        [space.cells(v) for v in vectors]
    )
    parts = np.zeros((len(items), len(vectors)))
    for row, item in enumerate(items):
        counts = [len(factor.columns) for factor in item.factors]
        means = [
            factor_parts(factor, space).mean(axis=tuple(range(count, count + len(factor.outputs))))
            for factor, count in zip(item.factors, counts, strict=True)
        ]
        joined = _joined(means, counts)
        named_columns = [column for factor in item.factors for column in factor.columns]
        for levels in product(*map(range, joined.shape)):
            named = dict(zip(named_columns, levels, strict=True))
            parts[row, vectors[tuple(named.get(column, 0) for column in space.columns)]] = joined[levels]
    return _weighed(parts, covers, mechanism, targets, (space, tuple(vectors)))


def _weighed(
    parts: Floats,
    covers: Floats,
    mechanism: Mechanism,
    targets: Floats,
    named: tuple[Space, tuple[Levels, ...]],
) -> tuple[Strategy, float]:
    """Rounds of an optimal design; an item above its target weighs more in the next."""
    power = 2 if mechanism == "laplace" else 1
    importance = 1 / targets
    shares = np.full(covers.shape[1], 1 / covers.shape[1])
    best: tuple[tuple[bool, float], Floats, float] | None = None
    for _ in range(ROUNDS):
        shares = _design(importance @ parts, covers, np.maximum(shares, 1e-6), power)
        information = covers @ shares**power
        inverse = np.divide(1.0, information, out=np.zeros_like(information), where=information > 0)
        quotients = (parts @ inverse) / targets
        worst = float(quotients.max())
        rank = (worst > 1, worst if worst > 1 else float(quotients.mean()))
        if best is None or rank < best[0]:
            best = (rank, shares, worst)
        importance = importance * quotients**2
    assert best is not None
    kept = [at for at in range(len(best[1])) if best[1][at] > 0]
    space, vectors = named
    return Strategy(space, tuple(vectors[at] for at in kept), tuple(best[1][kept].tolist())), best[2]


def _design(wanted: Floats, covers: Floats, start: Floats, power: int) -> Floats:
    """Shares that sum to 1 and make the sum of wanted / (covers @ shares^power) small."""
    needed = wanted > 1e-12 * wanted.max()
    wanted, covers = wanted[needed], covers[needed]
    shares = start / start.sum()
    for step in range(STEPS):
        information = covers @ shares**power
        slope = ((wanted / information**2) @ covers) * shares ** (power - 1)
        shares = shares * slope ** (1 / 2 if power == 1 else 1 / 3)
        shares /= shares.sum()
        if step == STEPS - STEPS // 4:
            few = np.where(shares < LEAST_WEIGHT * shares.max(), 0.0, shares)
            if np.all(covers @ few**power > 0):
                shares = few / few.sum()
    out: Floats = shares
    return out


def estimate(
    strategy: Strategy, weights: Sequence[float], drawn: Sequence[Floats], columns: Sequence[str]
) -> Floats:
    """The least-squares table over some *columns* (in the space's order) from the drawn tables."""
    space = strategy.space
    known = strategy.information(weights)
    within = [at for at, column in enumerate(space.columns) if column in columns]
    sizes = [space.chains[at][-1] for at in within]
    out = np.zeros(sizes)
    for levels in space.below(columns):
        part: Floats | None = None
        for table, weight, counts in zip(strategy.tables, weights, drawn, strict=True):
            if all(a >= s for a, s in zip(table, levels, strict=True)):
                told = weight * _residual(counts, levels, space)
                part = told if part is None else part + told
        if part is None:
            continue
        part = part.reshape([space.chains[at][levels[at]] for at in within])
        for axis, size in enumerate(sizes):
            part = np.repeat(part, size // part.shape[axis], axis=axis)
        out += part / (prod(sizes) * known[levels])
    return out


def _residual(counts: Floats, levels: Levels, space: Space) -> Floats:
    """What a table tells at these levels and not coarser."""
    out = counts
    for axis, (chain, level) in enumerate(zip(space.chains, levels, strict=True)):
        out = averaged(out, axis, chain[level])
        if level > 0:
            coarse = averaged(out, axis, chain[level - 1])
            out = out - np.repeat(coarse, chain[level] // chain[level - 1], axis=axis)
    return out


def answers(item: Item, table: Floats, space: Space) -> Floats:
    """The item's answers from an estimated table over its columns."""
    ordered = [column for column in space.columns if column in item.columns]
    out = table
    left = list(ordered)
    for factor in item.factors:
        first = len(factor.outputs)
        matrix = factor.matrix
        for at, column in enumerate(factor.columns):
            matrix = padded(matrix, first + at, space.chain(column)[-1])
        axes = [left.index(column) for column in factor.columns]
        out = np.tensordot(out, matrix, axes=(axes, list(range(first, matrix.ndim))))
        left = [column for column in left if column not in factor.columns]
    return in_order(out, item)
