"""From noisy whole numbers to a data frame of values and intervals: nothing here sees a row or an exact count.

Intervals say where the exact answer lies with at least the stated confidence, cell by cell: the answer over the rows
that count (a unit's rows beyond the most are out) and on the declared grid. They cover the noise alone, not sampling.

A COUNT is left as drawn, so it may be negative: only so are sums and averages of counts unbiased. The interval of a count
that came out at 0 or above starts at 0 at the lowest, because a count does. A negative one keeps its whole interval: cut at
0 it would not hold its own number. A histogram has one line per key and bin, with the bin in a column of its own.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from velado.query.accuracy import half_width
from velado.query.needs import Counts, Grid, GridCells, Key, cells_of
from velado.query.plan import Draw, Part, Plan, name_of
from velado.query.values import Aggregate

Floats = NDArray[np.float64]
_LIMIT = (1 << 63) - 1


def frame(plan: Plan, drawn: tuple[Counts, ...], confidence: Fraction) -> pl.DataFrame:
    """Key columns (null in the last cell of each), then value, low and high of every aggregate. O(cells)."""
    lines = cells_of(plan.keys)
    columns: dict[str, pl.Series] = {}
    first = plan.query.aggregates[0]
    bins: tuple[str, ...] = ()
    if first.kind == "histogram":
        need = plan.draws[plan.parts[0].draws[0]].need
        assert isinstance(need, GridCells)
        bins = bin_names(need)
    for key, series in zip(plan.keys, key_columns(plan.keys, max(1, len(bins))), strict=True):
        columns[key.column] = series
    if bins:
        columns[f"{name_of(first)}_bin"] = pl.Series(list(bins) * lines, dtype=pl.String)
    for aggregate, part in zip(plan.query.aggregates, plan.parts, strict=True):
        value, low, high = _estimate(aggregate, part, plan.draws, drawn, lines, confidence)
        name = name_of(aggregate)
        columns |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return pl.DataFrame(columns)


def key_columns(keys: tuple[Key, ...], repeat: int = 1) -> list[pl.Series]:
    """The key values of every cell, row-major with the last key fastest, each cell *repeat* times."""
    sizes = [len(key.domain) + 1 for key in keys]
    out = []
    for place, key in enumerate(keys):
        inner = repeat * int(np.prod(sizes[place + 1 :], dtype=np.int64))
        outer = int(np.prod(sizes[:place], dtype=np.int64))
        codes = np.tile(np.repeat(np.arange(sizes[place]), inner), outer)
        out.append(pl.Series([*key.domain, None], dtype=pl.String).gather(codes))
    return out


def bin_names(need: GridCells) -> tuple[str, ...]:
    """Each bin as the interval of values it holds: closed below, open above, the last one closed."""
    edges, step = need.edges, need.grid.step
    texts = [_text(step * edge) for edge in edges[:-1]]
    last = _text(step * (edges[-1] - 1))
    inner = (f"[{low}, {high})" for low, high in pairwise(texts))
    return (*inner, f"[{texts[-1]}, {last}]")


def _text(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else repr(float(number))


def _estimate(
    aggregate: Aggregate,
    part: Part,
    draws: tuple[Draw, ...],
    drawn: tuple[Counts, ...],
    lines: int,
    confidence: Fraction,
) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Value, low and high of one aggregate."""
    if part.bound is not None:
        # The declared bound says nothing of the rows, so there is no interval to state.
        return pl.Series([part.bound] * lines, dtype=pl.Float64), _nothing(lines), _nothing(lines)
    used = [draws[place] for place in part.draws]
    noisy = [drawn[place] for place in part.draws]
    if part.grid is None or aggregate.kind == "histogram":
        return _whole(noisy[0].ravel(), half_width(used[0].mechanism, used[0].scale, confidence))
    if aggregate.kind == "sum":
        t = half_width(used[0].mechanism, used[0].scale, confidence)
        value, low, high = (_series(_numbers(part.grid, noisy[0], shift)) for shift in (0, -t, t))
        return value, low, high
    if aggregate.kind == "avg":
        return _average(part.grid, used, noisy, confidence)
    chosen = np.array(used[0].candidates, dtype=np.int64)[noisy[0]]
    # The rank it may miss by is public and stands in the plan; the values at those ranks are not.
    return _series(_numbers(part.grid, chosen, 0)), _nothing(lines), _nothing(lines)


def _whole(noisy: Counts, t: int) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Noisy counts as drawn, and an interval that holds them; no lower than 0 where the count itself is not."""
    bounded = np.clip(noisy, t - _LIMIT, _LIMIT - t)
    low, high = np.where(noisy >= 0, np.maximum(bounded - t, 0), bounded - t), bounded + t
    return pl.Series(noisy, dtype=pl.Int64), pl.Series(low, dtype=pl.Int64), pl.Series(high, dtype=pl.Int64)


def _numbers(grid: Grid, indices: Counts, shift: int) -> Floats:
    """(index + shift) x step, rounded once from the exact product."""
    over, under = grid.step.numerator, grid.step.denominator
    return np.array([over * (index + shift) / under for index in indices.tolist()], dtype=np.float64)


def _average(
    grid: Grid, used: list[Draw], noisy: list[Counts], confidence: Fraction
) -> tuple[pl.Series, pl.Series, pl.Series]:
    """centre + noisy centred sum / noisy count, clamped to the grid; a noisy count below 1 is taken as 1.

    Both numbers lie in their intervals with confidence (1 + c)/2 each, so together with at least c, and then the exact
    average lies between the smallest and the largest quotient of the two intervals.
    """
    each = (1 + confidence) / 2
    width_sum, width_count = (half_width(draw.mechanism, draw.scale, each) for draw in used)
    total, count = (part.astype(np.float64) for part in noisy)
    value = total / np.maximum(count, 1)
    least, most = np.maximum(count - width_count, 1), np.maximum(count + width_count, 1)
    below, above = total - width_sum, total + width_sum
    low = np.where(below < 0, below / least, below / most)
    high = np.where(above > 0, above / least, above / most)
    return _series(_on_scale(grid, value)), _series(_on_scale(grid, low)), _series(_on_scale(grid, high))


def _on_scale(grid: Grid, centred: Floats) -> Floats:
    clamped = np.clip(centred, grid.low - grid.centre, grid.high - grid.centre)
    scaled = (grid.centre + clamped) * float(grid.step)
    out: Floats = np.clip(scaled, grid.value(grid.low), grid.value(grid.high))
    return out


def _series(values: Any) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64)


def _nothing(lines: int) -> pl.Series:
    return pl.Series([None] * lines, dtype=pl.Float64)
