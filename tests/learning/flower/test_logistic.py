"""FedAvg of a logistic regression, beside scikit-learn's on the same numbers."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the comparison needs velado[ml]")

from sklearn.linear_model import LogisticRegression

from velado.errors import ParameterError
from velado.learning.flower import Federation
from velado.learning.flower._logistic import FeatureScaling, LogisticModel, average, first_weights, improved
from velado.learning.flower._terms import make_terms
from velado.randomness import seeded


def rows(count: int, classes: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = seeded(seed, "tests", "logistic")
    features = random.uniform(-1, 1, (count, 5))
    margins = features @ random.normal(size=(5, classes)) * 2 + random.gumbel(size=(count, classes))
    return features, margins.argmax(axis=1).astype(np.int64)


@pytest.mark.parametrize("classes", [2, 4])
def test_one_client_with_enough_steps_finds_scikit_learns_solution(classes: int) -> None:
    features, labels = rows(800, classes)
    penalty = 1e-3
    weights = improved(first_weights(5, classes), features, labels, 2000, penalty)
    other = LogisticRegression(C=1 / (penalty * labels.size), tol=1e-10, max_iter=5000).fit(features, labels)
    assert np.allclose(weights[:-1].T, other.coef_, atol=2e-3)
    plain = FeatureScaling(np.zeros(5), np.ones(5))
    ours = LogisticModel(weights, plain).probabilities(features)
    assert np.allclose(ours, other.predict_proba(features), atol=1e-4)


def test_rounds_of_few_steps_come_to_the_pooled_solution_when_clients_are_alike() -> None:
    features, labels = rows(4000, 2)
    weights = first_weights(5, 2)
    parts = np.array_split(np.arange(4000), 4)
    for _ in range(30):
        weights = average(
            [(improved(weights, features[part], labels[part], 5, 1e-3), part.size) for part in parts]
        )
    pooled = improved(first_weights(5, 2), features, labels, 2000, 1e-3)
    assert np.abs(weights - pooled).max() < 0.1


def test_the_mean_is_weighted_by_rows() -> None:
    one, other = np.zeros((3, 1)), np.full((3, 1), 4.0)
    assert np.allclose(average([(one, 100), (other, 300)]), 3.0)


@pytest.mark.parametrize(
    "bad",
    [
        (np.zeros((2, 1)), 5),
        (np.full((3, 1), np.nan), 5),
        (np.full((3, 1), np.inf), 5),
        (np.zeros((3, 1)), 0),
    ],
)
def test_weights_that_do_not_fit_are_refused(bad) -> None:
    with pytest.raises(ParameterError, match="another shape, not finite, or for no rows"):
        average([(np.zeros((3, 1)), 5), bad])


def test_the_scaling_follows_from_the_schema_and_brings_declared_bounds_to_one(people) -> None:
    terms = make_terms(people.schema, "outcome", Federation(), {})
    features = terms.encoder.features(people.table.frame)
    scaled = terms.agreed.scaling(features)
    assert scaled.min() >= -1 and scaled.max() <= 1
    at = terms.encoder.names.index("age:middle")
    ages = people.table.frame.get_column("age").cast(int).to_numpy()
    assert np.allclose(scaled[:, at], (ages - 50) / 50)
