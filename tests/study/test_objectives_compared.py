"""`compare` with objectives: the default searches for each of them, and every release is measured in all four."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Schema
from velado.errors import ParameterError
from velado.release.methods import Progressive
from velado.study.compare import compare
from velado.study.recipe import Recipe

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric"},
            "income": {"role": "quasi", "kind": "numeric"},
            "sex": {"role": "quasi", "kind": "categorical"},
        }
    }
)


def frame(rows: int = 80) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "income": draw.lognormal(3, 1, rows).round(1),
            "sex": draw.choice(["f", "m"], rows),
        }
    )


def test_each_objective_is_least_in_its_own_measure() -> None:
    found = compare(frame(), SCHEMA, 4, ["progressive", "mdav"], objectives=["sse", "marginals"])
    assert [one.method for one in found.results].count("progressive") == 3
    rows = {one.objective or one.method: one for one in found.results}
    assert set(rows) == {"progressive", "mdav", "sse", "marginals"}
    assert {one.objective for one in found.purposes} == {"", "sse", "marginals"}
    assert all(one.value("discernibility") is not None for one in found.results)
    assert rows["sse"].value("sse") == min(one.value("sse") for one in found.results)
    assert rows["marginals"].value("marginals") == min(one.value("marginals") for one in found.results)
    plain = {one["objective"] or one["method"]: one for one in found.facts()["results"]}
    assert plain["mdav"]["sse"] == rows["mdav"].value("sse") and "measured" not in plain["mdav"]
    assert rows["progressive"].loss == min(one.loss for one in found.results)


def test_an_unknown_objective_is_refused_before_anything_runs() -> None:
    with pytest.raises(ParameterError, match="marginals"):
        compare(frame(), SCHEMA, 4, ["mdav"], objectives=["variance"])


def test_a_recipe_says_the_objective_and_gives_it_back() -> None:
    recipe = Recipe(SCHEMA, Progressive(objective="ncp=1, sse=0.5"), k=4)
    assert recipe.to_dict()["method"]["objective"] == "ncp=1, sse=0.5"
    assert Recipe.from_dict(recipe.to_dict()) == recipe
