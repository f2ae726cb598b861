"""Studies whose target is a number: models of numbers learn it, and the page speaks of explained variance and errors."""

import numpy as np
import polars as pl
import pytest

from velado.errors import ParameterError, SchemaError
from velado.measures.models.linear_regression import LinearRegression
from velado.measures.models.number_quality import fit_and_estimate, number_quality
from velado.measures.models.regression_forest import RegressionForest
from velado.study.evaluate.load import load
from velado.study.evaluate.page import to_html, to_markdown
from velado.study.evaluate.study_run import evaluate

from .conftest import people

NUMBERS = (
    ('target = "ill"\npositive = "yes"', 'target = "dose"'),
    ('use = ["decision-tree", "logistic-regression"]', 'use = ["linear-regression", "regression-forest"]'),
    ("seeds = [0, 1]", "seeds = [0, 1, 2]"),
    ('"mondrian", "progressive"', '"mondrian"'),
)


def rows_with_a_dose() -> pl.DataFrame:
    frame = people(200)
    noise = np.random.default_rng(2).normal(0, 2, frame.height)
    return frame.with_columns(dose=(pl.col("age") * 0.5 + pl.Series(noise)).round(1))


@pytest.mark.parametrize("kind", [LinearRegression, RegressionForest])
def test_a_model_of_numbers_learns_what_is_plain_and_repeats_itself(kind) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 3)).astype(np.float32)
    values = 10 + 3 * features[:, 0] + rng.normal(0, 0.3, 300)
    first, again = (
        fit_and_estimate(kind(), features[:200], values[:200], features[200:], 7) for _ in range(2)
    )
    assert number_quality(values[200:], first.values).r2 > 0.8
    assert (first.values == again.values).all()
    with pytest.raises(ParameterError, match="same value"):
        fit_and_estimate(kind(), features[:200], np.ones(200), features[200:], 7)


def test_the_scores_of_numbers_by_hand() -> None:
    found = number_quality(np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 4.0]))
    # Squares 1 + 0 + 4 = 5 against (2^2 + 1^2 + 3^2) = 14; absolute 1 + 0 + 2.
    assert found.r2 == pytest.approx(1 - 5 / 14) and found.mae == pytest.approx(1)
    assert found.rmse == pytest.approx((5 / 3) ** 0.5)
    flat = number_quality(np.array([2.0, 2.0]), np.array([1.0, 3.0]))
    assert flat.r2 is None and "r2" in flat.reasons


@pytest.mark.slow
def test_a_study_of_a_number_is_run_and_told(example, tmp_path) -> None:
    rows_with_a_dose().write_csv(example.folder / "people.csv")
    study = evaluate(example.change(*NUMBERS), tmp_path / "out", jobs=1)
    assert not study.gaps.height
    before = [row for row in study.quality if row.setting.is_original]
    assert {row.model for row in before} == {"linear-regression", "regression-forest"}
    assert all(row["r2"].mean > 0.8 and 1 < row["mae"].mean < row["rmse"].mean < 5 for row in before)
    assert all(row["accuracy"].mean is None for row in study.quality)
    # Against itself nothing is lost, in any seed: a number without an interval.
    original = next(row for row in study.tradeoff if row.setting.is_original)
    assert original["drop"].ends == (0.0, None, None)
    assert all(row["drop_r2"].ends == (0.0, None, None) and row["r2"].low is not None for row in before)
    assert any(row["drop"].low is not None for row in study.tradeoff if not row.setting.is_original)
    facts = study.facts()
    assert facts.main == "r2" and facts.majority is None
    page = to_markdown(facts)
    assert "target dose (a number)" in page and "points of explained variance (R2)" in page
    assert "commonest class" not in page and "classes" not in page.split("## What was not tested")[0]
    assert "variância explicada (R2)" in to_html(facts, "pt")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"regression-forest"]', '"knn"]'), "'knn', which tells classes apart"),
        (("[models]", '[metrics]\nquality = ["auc"]\n[models]'), "have no 'auc'"),
        (("[models]", "[federated]\nclients = 2\n[models]"), "the target is a number"),
        (('target = "dose"', 'target = "ill"'), "not declared as a number"),
        (('target = "dose"', 'target = "dose"\npositive = "3"'), "names a class"),
    ],
)
def test_what_does_not_go_with_a_number_is_refused(example, change, words) -> None:
    text = example.change(*NUMBERS).read_text("utf-8")
    assert change[0] in text
    with pytest.raises((SchemaError, ParameterError), match=words):
        load(example.write(text.replace(*change)))


def test_a_quality_of_numbers_is_refused_for_classes(example) -> None:
    with pytest.raises(SchemaError, match="have no 'r2'"):
        load(example.change(("[models]", '[metrics]\nquality = ["r2"]\n[models]')))
