"""How often a page calls sure what is not: studies of tables on which nothing differs, and of tables on which something does.

Scores are made as resampling makes them: a table has so many rows, every model with every release is right or wrong on each
of them, and each seed asks about a quarter of the rows. Two seeds share rows, so that their scores go together: that is what
an interval which takes seeds for independent does not see.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from velado.measures.models.quality import interval
from velado.measures.models.significance import chance, holm
from velado.study.evaluate._claims import Claims, claims_of
from velado.study.evaluate._study_grid import ORIGINAL
from velado.study.evaluate._work import columns
from velado.study.evaluate.load import Material, load
from velado.study.evaluate.study_outcome import Study
from velado.study.evaluate.study_run import evaluate

from .conftest import people

METHODS = ("mondrian", "progressive", "mdav")
KS = (3, 6)
MODELS = ("decision-tree", "logistic-regression")
RIGHT = 0.7
ROWS = 600
PAGES = 100
LIMIT = 0.01
AT_MOST = 0.07

Cell = tuple[str, int | None]


class Shape(NamedTuple):
    """What differs truly: how much less often models are right with each method."""

    drops: dict[str, float]


NOTHING_DIFFERS = Shape(dict.fromkeys(METHODS, 0.0))


def scores(shape: Shape, seeds: int, rng: np.random.Generator) -> dict[tuple[Cell, str], np.ndarray]:
    """The share of right answers by setting, model and seed: on the same test rows in a seed, on shared rows over seeds."""
    asked = np.argsort(rng.random((seeds, ROWS)), axis=1)[:, : ROWS // 4]
    out = {}
    for model in MODELS:
        cells: list[Cell] = [(ORIGINAL, None), *product(METHODS, KS)]
        for method, k in cells:
            right = rng.random(ROWS) < RIGHT - shape.drops.get(method, 0.0)
            # A model taught with other rows answers a few of them otherwise.
            other = rng.random((seeds, ROWS // 4)) < 0.1
            anew = rng.random((seeds, ROWS // 4)) < RIGHT - shape.drops.get(method, 0.0)
            out[(method, k), model] = np.where(other, anew, right[asked]).mean(axis=1)
    return out


def page(material: Material, shape: Shape, seeds: int, rng: np.random.Generator) -> Claims:
    """What the page of one made-up study would claim."""
    empty = dict.fromkeys(columns())
    rows = []
    for ((method, k), model), values in scores(shape, seeds, rng).items():
        for seed, value in enumerate(values.tolist()):
            same = {"method": method, "k": k, "guarantees": "", "seed": seed, "status": "done", "reason": ""}
            same |= {"scope": "train", "again": False}
            if model == MODELS[0]:
                risk = 0.9 if k is None else 0.6 / k
                rows.append({**empty, **same, "kind": "release", "ncp": 0.1, "record_linkage": risk})
            learnt = {"kind": "model", "protocol": "split-first", "model": model, "majority": RIGHT}
            rows.append({**empty, **same, **learnt, "accuracy": value})
    return claims_of(Study(material, pl.DataFrame(rows, schema=columns()), len(rows)))


def sure(claims: Claims) -> bool:
    """Whether anything is called sure."""
    return (
        any(one.sure for found in claims.rivals.values() for one in found)
        or any(one.sure for one in claims.best)
        or any(one.sure for found in claims.above.values() for one in found)
        or any(other.sure for one in claims.leaders for other in one.beside)
    )


@pytest.mark.parametrize(
    ("asked", "unlike"), [(60, 0.02), (60, 0.05), (60, 0.15), (250, 0.01), (2500, 0.002)]
)
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_few_seeds_that_happen_to_agree_are_not_sure(seeds: int, asked: int, unlike: float) -> None:
    """Two models as good as one another, which answer unlike on a few test rows: whole rows make equal differences likely."""
    rng = np.random.default_rng(seeds)

    def wrong() -> bool:
        chances = {}
        for number in range(12):
            apart = rng.binomial(asked, unlike, seeds)
            differences = (2 * rng.binomial(apart, 0.5) - apart) / asked
            chances[number] = chance(interval(differences.tolist(), 0.95, 1 / 3, asked))
        return bool(holm(chances, 0.025))

    assert sum(wrong() for _ in range(150)) / 150 <= AT_MOST


@pytest.fixture
def material(example):
    def of(seeds: int) -> Material:
        return load(example.change(("seeds = [0, 1]", f"seeds = {list(range(seeds))}")))

    return of


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10, 30])
def test_where_nothing_differs_hardly_a_page_says_surely(material, seeds: int) -> None:
    study, rng = material(seeds), np.random.default_rng(seeds)
    wrong = sum(sure(page(study, NOTHING_DIFFERS, seeds, rng)) for _ in range(PAGES))
    assert wrong / PAGES <= AT_MOST


@pytest.mark.slow
def test_a_difference_that_is_there_is_said(material) -> None:
    study, rng = material(10), np.random.default_rng(1)
    found = [page(study, Shape({"mdav": 0.25}), 10, rng) for _ in range(20)]
    beside = [[one for one in claims.rivals[None] if one.method == "mdav"] for claims in found]
    said = sum(any(one.sure and one.gain.mean > 0 for one in others) for others in beside)
    assert said >= 18
    # Nobody is told that it is the other way round, and the method that loses is recommended on no page.
    assert not any(one.sure and one.gain.mean < 0 for others in beside for one in others)
    assert all(claims.choice.row.setting.method != "mdav" for claims in found)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [5, 10])
def test_a_setting_that_loses_more_than_the_limit_is_hardly_ever_recommended(material, seeds: int) -> None:
    study, rng = material(seeds), np.random.default_rng(seeds)
    beyond = Shape(dict.fromkeys(METHODS, LIMIT + 0.001))
    used = sum(page(study, beyond, seeds, rng).choice.decision == "use" for _ in range(PAGES))
    assert used / PAGES <= AT_MOST


@pytest.mark.slow
def test_a_true_table_with_nothing_to_learn_gives_no_sure_difference(example, tmp_path) -> None:
    rng = np.random.default_rng(4)
    rows = people(200)
    chance = pl.Series("ill", rng.choice(["yes", "no"], rows.height))
    rows.with_columns(chance).write_csv(example.folder / "people.csv")
    changed = (("seeds = [0, 1]", "seeds = [0, 1, 2, 3, 4, 5, 6, 7]"), ("k = [3, 6]", "k = [4]"))
    study = evaluate(example.change(*changed), tmp_path / "out", jobs=1)
    assert not study.gaps.height and not sure(claims_of(study))
