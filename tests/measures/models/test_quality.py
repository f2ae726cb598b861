"""Scores of answers: equal to scikit-learn's where it has them, a reason where there is no number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sklearn", reason="the peer is scikit-learn")

from sklearn import metrics

from velado.measures.models.quality import Predictions, bootstrap_interval, curve_area, interval, quality


def answers(classes: int, rows: int = 200, seed: int = 0, decimals: int = 2):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    truth[:classes] = np.arange(classes)
    scores = rng.random((rows, classes)).round(decimals) + 0.05
    scores[np.arange(rows), truth] += 0.3
    scores /= scores.sum(axis=1, keepdims=True)
    return truth, Predictions(np.argmax(scores, axis=1), scores, True, 0.0)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_macro_scores_equal_the_peers(classes: int) -> None:
    truth, given_ = answers(classes)
    found = quality(truth, given_)
    peer = metrics.precision_recall_fscore_support(truth, given_.labels, average="macro", zero_division=0)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, given_.labels))
    assert (found.precision, found.recall, found.f1) == pytest.approx(peer[:3])
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(truth, given_.labels))
    assert found.log_loss == pytest.approx(metrics.log_loss(truth, given_.scores))
    area = (
        metrics.roc_auc_score(truth, given_.scores[:, 1])
        if classes == 2
        else metrics.roc_auc_score(truth, given_.scores, multi_class="ovr")
    )
    assert found.auc == pytest.approx(area)


@pytest.mark.parametrize("positive", [0, 1])
def test_scores_of_a_positive_class_equal_the_peers(positive: int) -> None:
    truth, given_ = answers(2, seed=4)
    found = quality(truth, given_, positive)
    peer = metrics.precision_recall_fscore_support(
        truth, given_.labels, average="binary", pos_label=positive, zero_division=0
    )
    assert (found.precision, found.recall, found.f1) == pytest.approx(peer[:3])
    assert found.auc == pytest.approx(metrics.roc_auc_score(truth == positive, given_.scores[:, positive]))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=40))
def test_the_area_is_the_chance_that_a_yes_scores_above_a_no(pairs) -> None:
    truth = np.array([int(yes) for yes, _ in pairs])
    score = np.array([float(value) for _, value in pairs])
    scores = np.stack([-score, score], axis=1)
    yes, no = score[truth == 1], score[truth == 0]
    if not yes.size or not no.size:
        assert curve_area(truth, scores) is None
        return
    wins = (yes[:, None] > no).mean() + (yes[:, None] == no).mean() / 2
    assert curve_area(truth, scores) == pytest.approx(wins)


def test_a_class_that_is_never_answered_counts_zero_and_one_that_never_occurs_not_at_all() -> None:
    truth = np.array([0, 0, 1, 1])
    scores = np.tile([1.0, 0.0, 0.0], (4, 1))
    found = quality(truth, Predictions(np.zeros(4, dtype=np.int64), scores, True, 0.0))
    assert found.recall == 0.5 and found.precision == pytest.approx(0.25)
    assert found.majority == 0.5


def test_what_cannot_be_said_has_its_reason() -> None:
    truth = np.zeros(3, dtype=np.int64)
    scores = np.array([[1.0, -1.0]] * 3)
    found = quality(truth, Predictions(truth, scores, False, 0.0))
    assert found.auc is None and found.log_loss is None
    assert set(found.reasons) == {"auc", "log_loss"}


def test_one_sure_mistake_does_not_make_the_loss_infinite() -> None:
    truth, scores = np.array([0, 1]), np.array([[0.0, 1.0], [0.0, 1.0]])
    assert quality(truth, Predictions(np.array([1, 1]), scores, True, 0.0)).log_loss == pytest.approx(
        -np.log(1e-15) / 2
    )


def test_students_interval_is_the_textbooks() -> None:
    # Three values 1, 2, 3: s = 1, t(0.975; 2) = 4.302653, half width 4.302653 / sqrt(3).
    found = interval([1.0, 2.0, 3.0])
    assert (found.mean, found.count) == (2.0, 3)
    assert found.low == pytest.approx(2 - 4.302653 / 3**0.5, abs=1e-6)
    assert found.high == pytest.approx(2 + 4.302653 / 3**0.5, abs=1e-6)
    assert interval([0.5]).low is None and interval([0.5]).high is None


def test_the_bootstrap_interval_agrees_with_the_binomial() -> None:
    found = bootstrap_interval(0.8, 1000, np.random.default_rng(1), draws=20_000)
    half = 1.96 * (0.8 * 0.2 / 1000) ** 0.5
    assert found.mean == 0.8
    assert (found.low, found.high) == pytest.approx((0.8 - half, 0.8 + half), abs=2e-3)
