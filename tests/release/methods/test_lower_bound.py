"""The bounds of the loss are bounds: no way to put rows into groups costs less, on tables small enough to try them all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from velado.data.encode import encode
from velado.data.encoded import EncodedTable
from velado.data.schema import Schema
from velado.data.table import Table
from velado.release.methods.progressive.checked_prices import checked_prices
from velado.release.methods.progressive.lower_bound import lower_bound
from velado.release.methods.progressive.pair_prices import nearest, pair_prices, pair_space

_TREE = {"A": {"a": ["a1", "a2", "a3"], "b": ["b1"]}, "B": {"c": ["c1", "c2"], "d": ["d1", "d2"]}}
_LEAVES = ["a1", "a2", "a3", "b1", "c1", "c2", "d1", "d2"]


def some_table(rng: np.random.Generator, rows: int) -> EncodedTable:
    """One to four columns: numbers (ties, outliers, blanks) and a tree or a flat list of words."""
    cells: dict[str, list[str | None]] = {}
    columns: dict[str, object] = {}
    for number in range(int(rng.integers(1, 5))):
        kind = rng.choice(["few", "wide", "blank", "tree", "flat"])
        name = f"c{number}"
        columns[name] = {"role": "quasi", "kind": "numeric"}
        if kind == "few":
            values = rng.integers(0, 5, rows).astype(str).tolist()
        elif kind == "wide":
            values = np.exp(rng.normal(0, 2, rows)).round(3).astype(str).tolist()
        elif kind == "blank":
            drawn = rng.integers(0, 30, rows)
            values = [None if at and rng.random() < 0.4 else str(v) for at, v in enumerate(drawn)]
        elif kind == "tree":
            values = rng.choice(_LEAVES, rows).tolist()
            columns[name] = {
                "role": "quasi",
                "kind": "categorical",
                "taxonomy": {"builder": "tree", "nodes": _TREE},
            }
        else:
            values = rng.choice(["x", "y", "z"], rows).tolist()
            columns[name] = {"role": "quasi", "kind": "categorical"}
        cells[name] = values
    frame = pl.DataFrame({n: pl.Series(v, dtype=pl.String) for n, v in cells.items()})
    return encode(Table.of(frame, Schema.from_dict({"columns": columns})))


def cost_of(data: EncodedTable, rows: tuple[int, ...]) -> float:
    """What the cover of these rows costs in all columns."""
    at = list(rows)
    return sum(
        float(c.loss(np.array([c.codes[at].min()]), np.array([c.codes[at].max()]))[0]) for c in data.columns
    )


def best_of_all(data: EncodedTable, k: int) -> float:
    """The least NCP of all ways to put rows into groups of k or more, or to drop them."""
    rows, whole = data.rows, len(data.columns)
    least = {0: 0.0}
    costs = {}
    for size in range(k, rows + 1):
        for group in combinations(range(rows), size):
            costs[sum(1 << r for r in group)] = size * cost_of(data, group)
    for mask in range(1, 1 << rows):
        first = mask & -mask
        best = least[mask ^ first] + whole
        part = mask
        while part:
            if part & first and part in costs:
                best = min(best, costs[part] + least[mask ^ part])
            part = (part - 1) & mask
        least[mask] = best
    return least[(1 << rows) - 1] / (rows * whole)


@pytest.mark.parametrize("seed", range(12))
def test_no_grouping_of_a_tiny_table_costs_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(3):
        data, k = some_table(rng, int(rng.integers(4, 8))), int(rng.integers(2, 5))
        least = best_of_all(data, k) if data.rows >= k else 1.0
        for effort in ("fast", "tight"):
            assert lower_bound(data, k, effort=effort) <= least + 1e-9


@pytest.mark.slow
def test_no_grouping_of_many_tiny_tables_costs_less() -> None:
    rng = np.random.default_rng(7)
    near = []
    for _ in range(600):
        data, k = some_table(rng, int(rng.integers(4, 8))), int(rng.integers(2, 5))
        if data.rows < k:
            continue
        least, bound = best_of_all(data, k), lower_bound(data, k, effort="tight")
        assert bound <= least + 1e-9
        near.append(1.0 if least < 1e-12 else bound / least)
    assert np.mean(near) > 0.9


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_the_prices_of_any_k_rows_are_at_most_what_they_cost(k: int) -> None:
    """The property all of it rests on, for every set of k rows: stronger than any bound that comes out."""
    rng = np.random.default_rng(k)
    for _ in range(8):
        data = some_table(rng, 12)
        held = pair_prices(data, k)
        for prices in (held, checked_prices(data, k, held, 2_000_000)):
            for rows in combinations(range(data.rows), k):
                assert prices[list(rows)].sum() <= k * cost_of(data, rows) + 1e-9


def test_checked_prices_are_never_below_those_they_start_from() -> None:
    data = some_table(np.random.default_rng(3), 60)
    held = pair_prices(data, 3)
    for steps in (0, 500, 10_000_000):
        assert (checked_prices(data, 3, held, steps) >= held - 1e-12).all()


def test_the_nearest_rows_are_those_that_a_look_at_all_finds() -> None:
    rng = np.random.default_rng(11)
    for _ in range(5):
        data = some_table(rng, 150)
        space = pair_space(data, 3, exact=True)
        _, far = nearest(space, 7)
        for a in range(0, data.rows, 11):
            costs = sorted(cost_of(data, (a, b)) for b in range(data.rows) if b != a)
            # A leaf that is named like its group costs something alone; as a distance of equal rows that is 0.
            assert far[a] == pytest.approx(costs[:7])


def test_numbers_have_a_bound_and_a_tight_one_is_near(data_folder) -> None:
    frame = pl.read_csv(data_folder / "sdc" / "casc_census.csv", infer_schema=False)
    columns = {name: {"role": "quasi", "kind": "numeric"} for name in frame.columns}
    data = encode(Table.of(frame, Schema.from_dict({"columns": columns})))
    assert lower_bound(data, 3) == pytest.approx(0.0566, abs=0.0005)  # a release of 0.0618 is known
    assert 0.0590 < lower_bound(data, 3, effort="tight") < 0.0618
