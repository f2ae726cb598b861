"""The lower bound is one: on tiny tables of every kind the best grouping, found by trying all, is never below it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from velado.data.encode import EncodedColumn, EncodedTable
from velado.data.taxonomy import from_paths
from velado.release.methods.progressive._pair_prices import pair_bound
from velado.release.methods.progressive.lower_bound import lower_bound


def tiny_table(seed: int) -> EncodedTable:
    """Four to eight rows; numbers with ties and blanks, uneven trees, and declared domains wider than the values."""
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(4, 9))
    columns = []
    for c in range(int(draw.integers(1, 5))):
        if draw.random() < 0.6:
            values = draw.integers(0, int(draw.choice([2, 5, 50])), rows).astype(float) ** int(
                draw.integers(1, 4)
            )
            points, codes = np.unique(values, return_inverse=True)
            span = float(points[-1] - points[0]) * float(draw.choice([1.0, 1.0, 1.7]))
            missing = -1
            if draw.random() < 0.4:
                missing = points.size
                codes = np.where(draw.random(rows) < 0.3, missing, codes)
                points = np.append(points, points[-1] + 1)
            column = EncodedColumn(
                f"n{c}", codes.astype(np.int32), points.size, missing, points=points, span=span
            )
        else:
            leaves = int(draw.integers(2, 8))
            paths = [[f"v{n}", f"b{n // 3}", f"h{n // 6}"] for n in range(leaves)]
            tree = from_paths(paths if draw.random() < 0.7 else [[f"v{n}"] for n in range(leaves)])
            column = EncodedColumn(
                f"t{c}", draw.integers(0, leaves, rows).astype(np.int32), leaves, tree=tree
            )
        columns.append(column)
    return EncodedTable(tuple(columns), rows)


def best_cost(data: EncodedTable, k: int) -> float:
    """Rows x cost of the best grouping into groups of k or more in which any row may be dropped at full cost."""
    rows = data.rows
    subsets = np.arange(1 << rows)
    inside = (subsets[:, None] >> np.arange(rows)) & 1 == 1
    size = inside.sum(axis=1)
    cost = np.zeros(1 << rows)
    for column in data.columns:
        low = np.where(inside, column.codes, column.size - 1).min(axis=1)
        high = np.where(inside, column.codes, 0).max(axis=1)
        cost += np.where(size > 0, column.loss(np.minimum(low, high), high), 0.0)
    cost = np.where(size >= k, cost * size, np.inf)
    full = sum(column.weight for column in data.columns)
    best = np.full(1 << rows, np.inf)
    best[0] = 0.0
    for subset in range(1, 1 << rows):
        first = subset & -subset
        best[subset] = best[subset ^ first] + full
        part = subset
        while part:
            if part & first and cost[part] < np.inf:
                best[subset] = min(best[subset], best[subset ^ part] + cost[part])
            part = (part - 1) & subset
    return float(best[-1])


def violations(seeds: range) -> list[int]:
    """The seeds of tables on which a bound is above the best possible."""
    out = []
    for seed in seeds:
        data = tiny_table(seed)
        k = 2 + seed % 4
        best = best_cost(data, k)
        if lower_bound(data, k) * data.rows * len(data.columns) > best + 1e-9:
            out.append(seed)
        weights = {column.name: 0.5 + n for n, column in enumerate(data.columns)}
        heavy = data.weighted(weights)
        if pair_bound(heavy, k, 10**9) > best_cost(heavy, k) + 1e-9:
            out.append(seed)
    return out


def test_no_grouping_of_a_tiny_table_is_below_the_bound():
    assert violations(range(150)) == []


@pytest.mark.slow
def test_no_grouping_of_many_tiny_tables_is_below_the_bound():
    assert violations(range(1_000, 11_000)) == []


def test_the_bound_says_something_on_numbers():
    draw = np.random.default_rng(0)
    columns = []
    for n in range(6):
        points, codes = np.unique(draw.normal(size=300), return_inverse=True)
        span = float(points[-1] - points[0])
        columns.append(EncodedColumn(f"n{n}", codes.astype(np.int32), points.size, points=points, span=span))
    data = EncodedTable(tuple(columns), 300)
    assert lower_bound(data, 3) > 0.08
    # With the pairs left out nothing is known of them.
    assert pair_bound(data, 3, 1) == 0.0


def test_pairs_are_exact_where_they_are_all_there_is():
    points = np.array([0.0, 1.0, 10.0, 11.0])
    column = EncodedColumn("n", np.arange(4, dtype=np.int32), 4, points=points, span=11.0)
    data = EncodedTable((column,), 4)
    assert pair_bound(data, 2, 10**6) == pytest.approx(4 / 11)
    assert pair_bound(EncodedTable((replace(column, weight=0.5),), 4), 2, 10**6) == pytest.approx(2 / 11)
