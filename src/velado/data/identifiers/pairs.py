"""Coordinates kept in two columns under headers that say nothing: two runs of decimals as places on a map have them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import polars as pl

MOST_COLUMNS = 4
"""Where more columns than these look so, they are scores or measurements."""
LEAST_ROWS = 20


def coordinate_pairs(samples: Mapping[str, pl.Series]) -> tuple[str, ...]:
    """The columns of *samples* (texts by header) that are a latitude and a longitude together.

    Four decimals or more in most cells, one sign, a spread smaller than the distance from zero: a degree is 111 km, so
    people of one country stand so. Standardised scores change sign, shares lie below one, laboratories write fewer decimals.
    """
    kept: dict[str, float] = {}
    for name, texts in samples.items():
        most = _farthest(texts)
        if most is not None:
            kept[name] = most
    names = list(kept)
    if not 2 <= len(names) <= MOST_COLUMNS or not any(most <= 90.0 for most in kept.values()):
        return ()
    places = list(samples)
    out: list[str] = []
    for one, other in itertools.pairwise(names):
        if places.index(other) - places.index(one) <= 2 and min(kept[one], kept[other]) <= 90.0:
            out += [name for name in (one, other) if name not in out]
    return tuple(out)


def _farthest(texts: pl.Series) -> float | None:
    if texts.len() < LEAST_ROWS or texts.n_unique() < 0.2 * min(texts.len(), 100):
        return None
    if (
        int(texts.head(50).str.contains(r"^[+-]?[0-9]{1,3}[.,][0-9]{3,}$").sum())
        < 25 * min(texts.len(), 50) / 50
    ):
        return None
    fine = texts.str.contains(r"^[+-]?[0-9]{1,3}[.,][0-9]{4,}$")
    plain = texts.str.contains(r"^[+-]?[0-9]{1,3}(?:[.,][0-9]+)?$")
    if int(fine.sum()) < 0.8 * texts.len() or int(plain.sum()) < 0.99 * texts.len():
        return None
    numbers = texts.filter(plain).str.replace(",", ".", literal=True).cast(pl.Float64).to_numpy()
    low, high = np.quantile(numbers, (0.005, 0.995))
    most = float(np.abs(numbers).max())
    middle = abs(float(np.median(numbers)))
    spread = float(high - low)
    anchored = low * high > 0 and middle > 1.0 and 0.0 < spread <= min(middle, 30.0)
    return most if anchored and most <= 180.0 else None
