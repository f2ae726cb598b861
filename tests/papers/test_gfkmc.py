"""The figures of the GFKMC thesis: the known losses again, by cover beside them, on one table and on ten clients."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.measures.models.quality import Quality
from velado.papers.gfkmc.gfkmc_models import FIGURES, Scored, why
from velado.papers.gfkmc.gfkmc_tables import (
    COVER,
    METHODS,
    OTHERS,
    PAPER_GFKMC,
    VARIANTS,
    clients,
    covered_loss,
    linked,
    linked_as_coded,
    overwritten_loss,
    published_by,
    range_of_numbers,
    why_linked,
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
    assert 0 < range_of_numbers(adult, recoded) < 0.35


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


HONEST, PAPER = "ours: measured honestly", "ours: paper profile"


def curves(found, column: str) -> dict[str, list[float]]:
    """The numbers of a column by method, k rising; a table without methods is one curve."""
    at, method = (
        found.columns.index(column),
        found.columns.index("method") if "method" in found.columns else None,
    )
    out: dict[str, list[float]] = {}
    for row in found.rows:
        out.setdefault("" if method is None else str(row[method]), []).append(row[at])
    return out


@pytest.mark.parametrize("figure", ["6.3", "6.4", "6.5", "6.6"])
def test_a_quick_figure_has_published_paper_and_honest_numbers(quick_figure, figure) -> None:
    found = quick_figure(figure)
    assert {"published", PAPER, HONEST} <= set(found.columns)
    assert "Why they differ:" in found.note and "section 6.2.5, pp." in found.note
    for honest in curves(found, HONEST).values():
        assert all(0 < value < 100 for value in honest)
        # Loss grows with k, links become fewer.
        assert honest == sorted(honest, reverse=figure in ("6.5", "6.6"))


@pytest.mark.parametrize("figure", ["6.3", "6.5"])
def test_the_three_variants_stand_beside_the_other_methods(quick_figure, figure) -> None:
    found = quick_figure(figure)
    assert set(curves(found, HONEST)) == {
        "GFKMC, centroid",
        "GFKMC, most common record",
        "GFKMC, most common value",
        "GFKMC, cover (velado)",
        "Mondrian",
        "CB",
        "TDG",
    }


def test_the_variants_publish_the_same_classes_with_other_cells(adult) -> None:
    made = [published_by(method, adult, 10) for method in VARIANTS.values()]
    first, *others = (one.partition.labels for one in made)
    assert all(np.array_equal(first, labels) for labels in others)
    cells = [
        [np.array(column.values, dtype=object)[column.codes].astype(str) for column in one.columns]
        for one in made
    ]
    for at, one in enumerate(cells):
        for other in cells[at + 1 :]:
            assert any((left != right).any() for left, right in zip(one, other, strict=True))


def test_the_paper_profile_is_flat_and_the_cover_is_not(quick_figure) -> None:
    found = quick_figure("6.3")
    paper, cover = curves(found, PAPER), curves(found, HONEST)
    for name in VARIANTS:
        assert max(paper[name]) - min(paper[name]) < 5
        assert cover[name][-1] - cover[name][0] > 20
        # Whatever a class is overwritten with, its members are the same.
        assert cover[name] == pytest.approx(cover["GFKMC, centroid"], abs=1.5)
    assert all(value is None for name in OTHERS for value in paper[name])
    every = [value for name in VARIANTS for value in paper[name]]
    assert f"lose {min(every):.1f} to {max(every):.1f} at every k" in found.note
    # The code charges ages by their true range, which is little, and the note says how much.
    assert "at most 0.3 points here, left out of the paper profile" in found.note
    assert "does not put ages into separatrices first" in found.note
    # CB loses less than velado's GFKMC at each of these k, and the note says so.
    assert all(cb < ours for cb, ours in zip(cover["CB"], cover[COVER], strict=True))
    assert "velado's own GFKMC, which generalizes first as well, loses more" in found.note
    assert found.note.endswith("at k = 3, 10 and 100.")


def test_the_sentence_on_links_names_the_k_where_a_variant_is_linked_less() -> None:
    links = {name: {3: 10.0, 10: 5.0} for name in METHODS}
    links["GFKMC, centroid"] = {3: 9.0, 10: 6.0}
    said = why_linked(links, 30_162)
    assert "GFKMC, centroid: k = 3;" in said and "GFKMC, most common record: at no k" in said


def scored(accuracy: float) -> Quality:
    given = dict.fromkeys(("balanced_accuracy", "precision", "recall", "f1", "auc", "log_loss"), 0.5)
    return Quality(rows=100, majority=0.75, accuracy=accuracy, **given)


def test_what_is_unpleasant_is_said() -> None:
    fine = [Scored(50, name, scored(0.8), scored(0.78), scored(0.79)) for name in METHODS]
    assert "every method stays above the majority class (0.750)" in why(fine)
    poor = [
        one if one.method != COVER else Scored(50, COVER, scored(0.8), scored(0.7), scored(0.81))
        for one in fine
    ]
    said = why(poor)
    assert (
        "no better than the majority class (0.750), at worst: GFKMC, cover (velado) (0.700 at k = 50)" in said
    )
    assert "comes from 0.700 to 0.810" in said and "by +0.010 to +0.110" in said


def test_the_text_is_quoted_with_its_exception_and_its_page() -> None:
    assert "exceto o valor mais comum" in FIGURES["6.7"].said
    assert all("section 6.2.5, p" in figure.said for figure in FIGURES.values())


@pytest.mark.slow
def test_a_quick_model_figure_compares_the_protocols(data_folder) -> None:
    pytest.importorskip("sklearn", reason="models are the extra velado[ml]")
    found = reproduction_named("gfkmc-figure-6.8").carry_out(data_folder, silent, quick=True)
    rows = {row[1]: dict(zip(found.columns, row, strict=True)) for row in found.rows}
    assert set(rows) == {"original data", *METHODS}
    drawn = f"{HONEST}, values drawn"
    for protocol in (PAPER, HONEST, drawn):
        assert {f"{protocol}, {score}" for score in ("accuracy", "precision", "recall", "F1")} <= set(
            found.columns
        )
    original, cover = rows["original data"], rows[COVER]
    assert original[f"{HONEST}, accuracy"] > original["majority"] + 0.05
    # Taught with ranges as wide as k = 50 makes them, a forest is worse than a constant; with values drawn from them it is not.
    assert cover[f"{HONEST}, accuracy"] < cover["majority"] - 0.02
    assert cover[f"{drawn}, accuracy"] > cover["majority"] + 0.04
    assert f"{COVER} ({cover[f'{HONEST}, accuracy']:.3f} at k = 50)" in found.note
    assert min(row[f"{drawn}, accuracy"] for row in rows.values()) > 0.75


def test_a_test_part_has_its_share_of_every_class() -> None:
    target = pl.Series(["a"] * 50 + ["b"] * 10)
    train, test = stratified(target, 0.2, seeded(0))
    assert sorted([*train, *test]) == list(range(60))
    assert target[test].value_counts().sort("count")["count"].to_list() == [2, 10]


def test_every_figure_has_a_quick_run_and_what_decides_it() -> None:
    ours = [one for one in reproductions() if one.name.startswith("gfkmc-")]
    assert {f"gfkmc-figure-6.{number}" for number in range(3, 15)} == {one.name for one in ours}
    assert all(one.quick is not None and one.settings and one.drawn is not None for one in ours)
    # Quick runs have fewer k or rounds; a digest tells a table of other k apart.
    assert len({repr(one.settings) for one in ours}) > 6
