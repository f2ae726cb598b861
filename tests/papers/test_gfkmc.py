"""The figures of the GFKMC thesis: the known losses again, by cover beside them, on one table and on ten clients."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.papers.gfkmc.gfkmc_tables import (
    PAPER_GFKMC,
    clients,
    covered_loss,
    linked,
    linked_as_coded,
    overwritten_loss,
    published_by,
)
from velado.papers.model_trials import stratified
from velado.papers.paper_registry import ADULT, adult_schema, encoded, reproduction_named, reproductions
from velado.randomness import seeded
from velado.release.goal import silent

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "gfkmc.json").read_text())


@pytest.fixture(scope="module")
def adult(data_folder):
    return encoded(data_folder, ADULT, adult_schema())


SLOW = pytest.mark.slow
SOME = [0, pytest.param(1, marks=SLOW), 2, pytest.param(3, marks=SLOW), pytest.param(4, marks=SLOW), 5]


@pytest.mark.parametrize("at", SOME, ids=lambda at: f"k={VECTORS['k'][at]}")
def test_the_paper_profile_is_within_a_point_and_a_half_of_the_authors_code(adult, at) -> None:
    k = VECTORS["k"][at]
    recoded = published_by(PAPER_GFKMC, adult, k)
    assert overwritten_loss(adult, recoded) == pytest.approx(VECTORS["overwritten"][at], abs=1.5)
    assert covered_loss(adult, recoded) == pytest.approx(VECTORS["cover"][at], abs=1.5)


# On ten clients the published loss is 21.7 to 22.0 %; by cover it was found to be as below, and the authors' own
# result files (one client for each k) have these shares of linked records.
@pytest.mark.parametrize(
    ("k", "cover", "links"), [(3, 35.0, 835 / 3028), (5, 44.5, 549 / 3035), (10, 58.9, 290 / 3035), (20, 70.0, 145 / 3028)]
)  # fmt: skip
def test_a_client_loses_and_is_linked_as_known(adult, k, cover, links) -> None:
    parts = clients(adult)[:3]
    made = [(part, published_by(PAPER_GFKMC, part, k)) for part in parts]
    assert np.mean([overwritten_loss(*one) for one in made]) == pytest.approx(21.85, abs=0.6)
    assert np.mean([covered_loss(*one) for one in made]) == pytest.approx(cover, abs=1.0)
    assert np.mean([linked_as_coded(*one) for one in made]) == pytest.approx(100 * links, abs=0.8)
    assert np.mean([linked(*one) for one in made]) == pytest.approx(100 * links, abs=0.8)


def test_clients_share_out_every_row_once(adult) -> None:
    parts = clients(adult)
    assert sum(part.rows for part in parts) == adult.rows
    assert max(part.rows for part in parts) - min(part.rows for part in parts) <= 1
    ages = np.sort(np.concatenate([part.columns[1].codes for part in parts]))
    assert np.array_equal(ages, np.sort(adult.columns[1].codes))


@pytest.fixture(scope="module")
def quick_figure(data_folder):
    """A quick figure by its number, made once for all tests."""
    return cache(
        lambda number: reproduction_named(f"gfkmc-figure-{number}").carry_out(data_folder, silent, quick=True)
    )


@pytest.mark.parametrize("figure", ["6.3", "6.4", "6.5", "6.6"])
def test_a_quick_figure_has_published_paper_and_honest_numbers(quick_figure, figure) -> None:
    found = quick_figure(figure)
    assert {"published", "ours: paper profile", "ours: measured honestly"} <= set(found.columns)
    assert "Why they differ:" in found.note and "every 10th record" in found.note
    honest = [row[found.columns.index("ours: measured honestly")] for row in found.rows]
    assert all(0 < value < 100 for value in honest)
    # Loss grows with k, links become fewer.
    assert honest == sorted(honest, reverse=figure in ("6.5", "6.6"))


def test_the_paper_profile_is_flat_and_the_cover_is_not(quick_figure) -> None:
    found = quick_figure("6.3")
    paper, cover = ([row[at] for row in found.rows] for at in (3, 4))
    assert max(paper) - min(paper) < 3
    assert cover[-1] - cover[0] > 20


@pytest.mark.slow
def test_a_quick_model_figure_compares_both_protocols(data_folder) -> None:
    pytest.importorskip("sklearn", reason="models are the extra velado[ml]")
    found = reproduction_named("gfkmc-figure-6.8").carry_out(data_folder, silent, quick=True)
    rows = {row[1]: dict(zip(found.columns, row, strict=True)) for row in found.rows}
    original = rows["original data"]
    assert original["ours: measured honestly, accuracy"] > original["majority"] + 0.05
    assert set(rows) == {"original data", "GFKMC", "GFKMC default", "Mondrian", "CB", "TDG"}
    paper = rows["GFKMC"]
    assert paper["ours: paper profile, accuracy"] > paper["ours: measured honestly, accuracy"]
    # The sentence is made of the table's own numbers.
    for column in ("ours: paper profile, accuracy", "ours: measured honestly, accuracy"):
        assert f"{paper[column]:.3f}" in found.note
    assert f"finds {paper['recall']:.0%} of the high incomes" in found.note


def test_a_test_part_has_its_share_of_every_class() -> None:
    target = pl.Series(["a"] * 50 + ["b"] * 10)
    train, test = stratified(target, 0.2, seeded(0))
    assert sorted([*train, *test]) == list(range(60))
    assert target[test].value_counts().sort("count")["count"].to_list() == [2, 10]


def test_every_figure_has_a_quick_run() -> None:
    ours = [one for one in reproductions() if one.name.startswith(("gfkmc-", "gok-", "das-"))]
    assert {f"gfkmc-figure-6.{number}" for number in range(3, 15)} <= {one.name for one in ours}
    assert all(one.quick is not None for one in ours)
