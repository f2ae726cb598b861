"""Rows from a fitted distribution: column after column down the tree, as evenly as counts allow.

Free post-processing of noisy counts; the source is the caller's, and its seed may be known to everybody.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from velado.query.synthetic.fit import Fitted

Codes = NDArray[np.int32]


def sample(fitted: Fitted, rows: int, random: np.random.Generator) -> list[Codes]:
    """One array of codes for each column, *rows* long, whose cliques have the fitted shares.

    Among rows that are alike in what a clique shares with its parent, the rest is dealt out in proportion: the k-th of m such
    rows, in a random order, takes the value at (k + u) / m of the cumulative shares. Each row alone is an exact draw, and counts are
    off by about 1 instead of a root. O(rows log rows) for each clique.

    >>> from velado.query.synthetic.fit import Measured, fit
    >>> found = fit((2,), [Measured((0,), np.array([30, 10]), 0.1)], 40.0)
    >>> np.bincount(sample(found, 40, np.random.Generator(np.random.PCG64(0)))[0]).tolist()
    [30, 10]
    """
    tree = fitted.tree
    out: list[Codes] = [np.zeros(rows, dtype=np.int32) for _ in tree.sizes]
    for clique, separator, counts in zip(tree.cliques, tree.separators, fitted.counts, strict=True):
        new = tuple(column for column in clique if column not in separator)
        order = [clique.index(column) for column in (*separator, *new)]
        shares = np.maximum(counts.transpose(order), 0.0)
        shares = shares.reshape(-1, int(np.prod([tree.sizes[c] for c in new], dtype=np.int64)))
        # A state that has no share at all can still be met by rounding: all values are then alike.
        shares = np.where(shares.sum(axis=1, keepdims=True) > 0, shares, 1.0)
        cumulative = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
        state = np.zeros(rows, dtype=np.int64)
        for column in separator:
            state = state * tree.sizes[column] + out[column]
        chosen = _dealt(cumulative, state, random)
        for column in reversed(new):
            chosen, code = np.divmod(chosen, tree.sizes[column])
            out[column] = code.astype(np.int32)
    return out


def _dealt(
    cumulative: NDArray[np.float64], state: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """For every row a value by the cumulative shares of its state."""
    states, values = cumulative.shape
    shuffled = random.permutation(state.size)
    order = shuffled[np.argsort(state[shuffled], kind="stable")]
    met = np.bincount(state, minlength=states)
    rank = np.arange(state.size) - np.repeat(np.cumsum(met) - met, met)
    within = (rank + random.random(states)[state[order]]) / met[state[order]]
    # One rising list of all states, each a unit long, answers for all rows at once.
    cumulative[:, -1] = 1.0
    ladder = (cumulative + np.arange(states)[:, None]).ravel()
    place = np.searchsorted(ladder, state[order] + within, side="right")
    chosen = np.empty(state.size, dtype=np.int64)
    chosen[order] = np.minimum(place - state[order] * values, values - 1)
    return np.maximum(chosen, 0)
