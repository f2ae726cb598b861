"""Every registered model learns, repeats itself from its seed, and says what it cannot do."""

import builtins
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="models need velado[ml]")

from velado.errors import MissingExtra, ParameterError
from velado.measures.models import _model, model_registry
from velado.measures.models._model import require
from velado.measures.models.encoder import Ranges
from velado.measures.models.model_registry import MODELS, Majority, model_named
from velado.measures.models.quality import fit_and_predict
from velado.settings import entry_of, settings

CLASSIFIERS = [kind for kind in MODELS if kind.predicts == "class"]


def lessons(rows: int = 300, classes: int = 2):
    rng = np.random.default_rng(5)
    labels = rng.integers(0, classes, rows)
    features = rng.normal(size=(rows, 6)).astype(np.float32)
    features[:, 0] += 3 * labels
    return features, labels.astype(np.int64)


def usable(kind) -> None:
    if find_spec(kind.needs) is None:
        pytest.skip(f"{kind.needs} is not installed: this model needs velado[ml].")


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.name)
def test_a_model_learns_what_is_plain_and_repeats_itself(kind) -> None:
    usable(kind)
    features, labels = lessons()
    first = fit_and_predict(kind(), features[:200], labels[:200], features[200:], 2, 7)
    again = fit_and_predict(kind(), features[:200], labels[:200], features[200:], 2, 7)
    right = float((first.labels == labels[200:]).mean())
    assert (right > 0.85) == (kind is not Majority)
    assert (first.labels == again.labels).all() and (first.scores == again.scores).all()
    assert first.scores.shape == (100, 2)
    if first.probabilities:
        assert np.allclose(first.scores.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.name)
def test_a_class_without_training_rows_keeps_its_number(kind) -> None:
    usable(kind)
    features, labels = lessons(classes=3)
    seen = labels != 1
    answers = fit_and_predict(kind(), features[seen], labels[seen], features, 4, 0)
    assert answers.scores.shape[1] == 4
    assert set(answers.labels.tolist()) <= {0, 2}
    if answers.probabilities:
        assert (answers.scores[:, [1, 3]] == 0).all()


def test_a_training_part_of_one_class_is_refused_but_for_the_majority() -> None:
    features, labels = lessons()
    alone = np.zeros_like(labels)
    with pytest.raises(ParameterError, match="1 of 2 classes"):
        fit_and_predict(model_named("decision-tree")(), features, alone, features, 2, 0)
    assert fit_and_predict(Majority(), features, alone, features, 2, 0).labels.sum() == 0


def test_more_neighbours_than_rows_are_refused() -> None:
    features, labels = lessons(10)
    with pytest.raises(ParameterError, match="15 neighbours"):
        fit_and_predict(model_named("knn")(), features, labels, features, 2, 0)


def test_an_unknown_model_is_answered_with_the_nearest() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'random-forest'"):
        model_named("randomforest")


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_model, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"velado\[ml\]"):
        require(Majority)
    with pytest.raises(MissingExtra, match="scikit-learn"):
        Majority().estimator(0)


def test_every_model_is_registered_once_and_states_its_parameters() -> None:
    names = [kind.name for kind in MODELS]
    assert len(set(names)) == len(MODELS)
    for kind in MODELS:
        stated = entry_of(kind())
        assert stated.pop("name") == kind.name
        assert all(isinstance(value, builtins.int | builtins.float | None) for value in stated.values())
        assert (kind.__doc__ or "").strip() and kind.pace > 0


@pytest.mark.parametrize("name", ["knn", "svm", "logistic-regression", "mlp", "gaussian-nb"])
def test_a_true_row_is_not_strange_to_a_model_that_learned_from_a_release(name: str) -> None:
    # A release says "some of eight" of everybody, but for a trace; a true row says which one. Only the number teaches.
    rng = np.random.default_rng(3)
    number = rng.uniform(0, 0.01, 600)
    labels = (number > 0.005).astype(np.int64)
    blurred = 1 / 8 + rng.normal(0, 1e-4, (400, 8))
    plain = np.eye(8)[rng.integers(0, 8, 200)]
    taught = np.column_stack([number[:400], blurred]).astype(np.float32)
    asked = np.column_stack([number[400:], plain]).astype(np.float32)
    ranges = Ranges(np.zeros(9), np.array([0.01] + [1.0] * 8), 2)
    model = model_named(name)()
    by_what_can_be = fit_and_predict(model, taught, labels[:400], asked, 2, 0, ranges)
    by_what_varies = fit_and_predict(model, taught, labels[:400], asked, 2, 0)
    right = [float((one.labels == labels[400:]).mean()) for one in (by_what_can_be, by_what_varies)]
    assert right[0] > 0.9 and right[0] > right[1] + 0.1


def test_trees_do_not_care_about_ranges() -> None:
    features, labels = lessons()
    ranges = Ranges(np.full(6, -5.0), np.full(6, 10.0), 6)
    model = model_named("decision-tree")()
    assert not model.scaled
    plain = fit_and_predict(model, features[:200], labels[:200], features[200:], 2, 7)
    ranged = fit_and_predict(model, features[:200], labels[:200], features[200:], 2, 7, ranges)
    assert (plain.scores == ranged.scores).all()


def test_a_model_of_a_file_of_its_own_needs_one_line_in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    @settings
    class Discriminant(_model.Model):
        """Linear boundaries between normal classes."""

        name: ClassVar[str] = "discriminant"
        title: ClassVar[str] = "Linear discriminant"
        pace: ClassVar[float] = 0.01

        def estimator(self, seed: int, columns: int | None = None) -> Any:
            return _model.scaled_first(
                columns, _model.built("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis")
            )

    monkeypatch.setattr(model_registry, "MODELS", (*MODELS, Discriminant))
    features, labels = lessons(60)
    found = fit_and_predict(model_named("discriminant")(), features, labels, features, 2, 0)
    assert (found.labels == labels).mean() > 0.7
