"""Two-way fidelity: how far the tables of every two columns are from the true ones, as a share of rows in wrong cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class TwoWay:
    """Mean total variation of one-way and of two-way tables, and that of the worst pair with its columns; 0 is exact, 1 disjoint.

    >>> TwoWay(one_way=0.0, mean=0.1, worst=0.2, pair=(0, 1)).mean
    0.1
    """

    one_way: float
    mean: float
    worst: float
    pair: tuple[int, int] | None


def two_way(true: Sequence[Codes], shown: Sequence[Codes], sizes: Sequence[int]) -> TwoWay:
    """|p - q|_1 / 2 between the shares p of the true rows and q of the shown ones, over all columns and all pairs of columns.

    Both are columns of cells below *sizes*; the numbers of rows may differ. O(pairs x (rows + cells)).

    >>> halves = np.array([0, 1], dtype=np.int32)
    >>> two_way([halves, halves], [halves, halves[::-1]], [2, 2]).mean
    1.0
    """
    alone = [
        _apart(_shares([a], [size]), _shares([b], [size]))
        for a, b, size in zip(true, shown, sizes, strict=True)
    ]
    pairs = {}
    for one, other in combinations(range(len(sizes)), 2):
        both = [sizes[one], sizes[other]]
        pairs[one, other] = _apart(
            _shares([true[one], true[other]], both), _shares([shown[one], shown[other]], both)
        )
    pair = max(pairs, key=lambda at: pairs[at], default=None)
    return TwoWay(
        one_way=float(np.mean(alone)),
        mean=float(np.mean(list(pairs.values()) or alone)),
        worst=max(alone) if pair is None else pairs[pair],
        pair=pair,
    )


def _shares(columns: Sequence[Codes], sizes: Sequence[int]) -> NDArray[np.float64]:
    cells = np.zeros(columns[0].size, dtype=np.int64)
    for codes, size in zip(columns, sizes, strict=True):
        cells = cells * size + codes
    counts = np.bincount(cells, minlength=int(np.prod(sizes, dtype=np.int64)))
    return counts / max(1, columns[0].size)


def _apart(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    return float(np.abs(p - q).sum() / 2)
