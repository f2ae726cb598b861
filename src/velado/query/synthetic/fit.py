"""The distribution that agrees best with noisy counts: non-negative, and every two of its tables agree where they overlap.

Minimises sum_i |n_i - y_i|^2 / (2 s_i^2) over all tables n of a junction tree, where y_i are noisy counts with standard deviation
s_i, by mirror descent on the potentials (McKenna, Sheldon, Miklau 2019). Free post-processing: no row is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from velado.query.needs import Counts
from velado.query.synthetic.junction_tree import Clique, Floats, JunctionTree, cells, marginal

WORK = 100_000_000
"""Cells times steps of one fit: a model of many cells is fitted in fewer steps, but never in less than twenty."""


@dataclass(frozen=True, repr=False)
class Measured:
    """Noisy counts of the cells that some columns make together, and the standard deviation of their noise.

    >>> Measured((0, 1), np.array([[3, -1], [0, 9]]), 2.0)
    Measured((0, 1), 4 cells, sd 2.0)
    """

    columns: Clique
    counts: Counts
    deviation: float

    def __repr__(self) -> str:
        return f"Measured({self.columns}, {self.counts.size} cells, sd {self.deviation:.1f})"


@dataclass(frozen=True, repr=False)
class Fitted:
    """A junction tree with its potentials, and the counts of every clique under them.

    >>> fitted = fit((2, 2), [Measured((0, 1), np.array([[5, 0], [0, 5]]), 0.1)], 10.0)
    >>> fitted.counts[0].round(1).tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """

    tree: JunctionTree
    potentials: tuple[Floats, ...]
    counts: tuple[Floats, ...]
    total: float

    def __repr__(self) -> str:
        return f"Fitted({len(self.tree.cliques)} cliques)"

    def of(self, columns: Clique) -> Floats:
        """The fitted counts of columns that one clique holds."""
        at = self.tree.home(columns)
        return marginal(self.counts[at], self.tree.cliques[at], columns)


def total_of(measured: Sequence[Measured]) -> float:
    """How many rows there are, from the sums of all noisy counts, each weighted by how exact it is; at least 1.

    >>> total_of([Measured((0,), np.array([5, 7]), 1.0), Measured((1,), np.array([10, 0]), 1.0)])
    11.0
    """
    weights = np.array([1 / (one.deviation**2 * one.counts.size) for one in measured])
    sums = np.array([float(one.counts.sum()) for one in measured])
    return max(1.0, float((weights * sums).sum() / weights.sum()))


def fit(
    sizes: Sequence[int],
    measured: Sequence[Measured],
    total: float,
    *,
    before: Fitted | None = None,
    rounds: int = 200,
) -> Fitted:
    """The fitted distribution over columns of these *sizes*, *total* rows in all; begins where *before* ended.

    Ends after *rounds* steps, or when a step gains less than one part in 10^5. O(rounds x cells).
    """
    tree = JunctionTree.of(sizes, [one.columns for one in measured])
    potentials = _begin(tree, measured, before)
    rounds = min(rounds, max(20, WORK // cells(sizes, tree.cliques)))
    homes = [tree.home(one.columns) for one in measured]
    aims = [one.counts.astype(np.float64) for one in measured]
    weights = [1 / one.deviation**2 for one in measured]
    places = [
        tuple(at for at, column in enumerate(tree.cliques[home]) if column not in one.columns)
        for one, home in zip(measured, homes, strict=True)
    ]

    def loss_and_slope(counts: Sequence[Floats]) -> tuple[float, list[Floats]]:
        slope = [np.zeros_like(part) for part in counts]
        loss = 0.0
        for aim, weight, home, away in zip(aims, weights, homes, places, strict=True):
            left = (counts[home].sum(axis=away) if away else counts[home]) - aim
            loss += weight * _dot(left, left) / 2
            slope[home] += weight * (np.expand_dims(left, away) if away else left)
        return loss, slope

    counts = tree.marginals(potentials, total)
    loss, slope = loss_and_slope(counts)
    step = 1.0 / max(total * max(weights), 1e-300)
    for _ in range(rounds):
        step *= 2.0
        for _ in range(30):
            tried = [theta - step * part for theta, part in zip(potentials, slope, strict=True)]
            found = tree.marginals(tried, total)
            new, turn = loss_and_slope(found)
            moved = sum(_dot(part, old - now) for part, old, now in zip(slope, counts, found, strict=True))
            if loss - new >= moved / 2 >= 0:
                break
            step /= 2.0
        else:
            break
        gained, potentials, counts, slope = loss - new, tried, found, turn
        loss = new
        if gained <= 1e-5 * loss:
            break
    return Fitted(tree, tuple(potentials), tuple(counts), total)


def _dot(one: Floats, other: Floats) -> float:
    """The sum of products. A BLAS would wake all of its threads for each of these short sums and burn more time waiting than adding."""
    return float((one * other).sum())


def _begin(tree: JunctionTree, measured: Sequence[Measured], before: Fitted | None) -> list[Floats]:
    """Potentials to begin with: those of the distribution before, or of independent columns."""
    out = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    if before is not None:
        for clique, part in zip(before.tree.cliques, before.potentials, strict=True):
            home = tree.home(clique)
            if home < 0:
                return _begin(tree, measured, None)
            away = tuple(at for at, column in enumerate(tree.cliques[home]) if column not in clique)
            out[home] += np.expand_dims(part, away) if away else part
        return out
    for one in measured:
        if len(one.columns) == 1:
            home = tree.home(one.columns)
            start = np.log(np.maximum(one.counts.astype(np.float64), max(one.deviation, 0.5) / 4))
            away = tuple(at for at, column in enumerate(tree.cliques[home]) if column not in one.columns)
            out[home] += np.expand_dims(start, away) if away else start
    return out
