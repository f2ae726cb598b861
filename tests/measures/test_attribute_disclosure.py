"""Guessing a sensitive value from the class a person is in."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.data.partition import Partition
from velado.errors import ParameterError
from velado.measures.risk.attribute_disclosure import attribute_disclosure, wilson


def one_by_one(labels, codes):
    """The same guess made row by row, as the attacker would."""
    hits = blind = 0.0

    def guess(others, truth):
        names, counts = np.unique(others, return_counts=True)
        best = names[counts == counts.max()]
        return 1 / best.size if truth in best else 0.0

    known = [row for row in range(len(codes)) if labels[row] >= 0 and codes[row] > 0]
    for row in known:
        everyone = np.array([codes[other] for other in known])
        classmates = np.array([codes[o] for o in known if o != row and labels[o] == labels[row]])
        base = guess(everyone, codes[row])
        blind += base
        hits += guess(classmates, codes[row]) if classmates.size else base
    return hits, blind, len(known)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 4)), min_size=1, max_size=30))
def test_the_counted_guess_is_the_guess_made_row_by_row(rows) -> None:
    labels = np.array([label for label, _ in rows])
    codes = np.array([code for _, code in rows], dtype=np.int32)
    classes = Partition.of(labels)
    found = attribute_disclosure("ill", classes, codes, 5)
    hits, blind, known = one_by_one(classes.labels, codes)
    assert found.rows == known
    assert found.guessed.share * known == pytest.approx(hits)
    assert found.baseline.share * known == pytest.approx(blind)


def test_values_that_are_equally_common_are_guessed_by_chance() -> None:
    # Thirty rows of three values in one class: the table tells nothing that a blind guess does not.
    codes = np.repeat(np.array([1, 2, 3], dtype=np.int32), 10)
    found = attribute_disclosure("ill", Partition.of(np.zeros(30, dtype=np.int64)), codes, 4)
    assert found.baseline.share == pytest.approx(1 / 3)
    assert found.gain <= 0 and not found.beats_baseline


def test_a_worked_example() -> None:
    # Class 0 holds a a a a b, class 1 holds b b, class 2 holds one a: nine values, one blank in class 1.
    labels = Partition.of(np.array([0, 0, 0, 0, 0, 1, 1, 1, 2]))
    codes = np.array([1, 1, 1, 1, 2, 2, 2, 0, 1], dtype=np.int32)
    found = attribute_disclosure("ill", labels, codes, 3)
    assert found.rows == 8
    # Four a's and two b's are guessed from their class; the lone a from the table's majority, which is a.
    assert found.guessed.share == pytest.approx(7 / 8)
    assert found.baseline.share == pytest.approx(5 / 8)
    assert found.gain == pytest.approx(2 / 8)
    assert found.with_own_row == pytest.approx((4 + 2 + 1) / 8)
    assert found.alone == pytest.approx(1 / 8)
    # Class 0 is 4/5 pure, the others wholly.
    assert found.homogeneous == pytest.approx({0.8: 1.0, 0.9: 3 / 8, 1.0: 3 / 8})


def test_a_class_that_tells_nothing_gains_nothing_and_one_that_tells_all_is_noticed() -> None:
    random = np.random.default_rng(5)
    codes = random.choice([1, 1, 1, 2], 4000).astype(np.int32)
    blind = attribute_disclosure("x", Partition.of(random.integers(0, 20, 4000)), codes, 3)
    assert abs(blind.gain) < 0.01 and not blind.beats_baseline
    told = attribute_disclosure("x", Partition.of(codes.astype(np.int64)), codes, 3)
    assert told.guessed.share == 1.0 and told.beats_baseline and told.homogeneous[1.0] == 1.0


def test_the_interval_is_wilsons() -> None:
    # Brown, Cai and DasGupta (2001) style check by the defining equation: |p - limit| = z sqrt(limit (1-limit)/n).
    found = wilson(7, 20)
    for limit in (found.low, found.high):
        assert abs(0.35 - limit) == pytest.approx(1.959963984540054 * np.sqrt(limit * (1 - limit) / 20))
    assert wilson(0, 20).low == 0.0 and wilson(20, 20).high == 1.0
    assert wilson(0, 20).high == pytest.approx(0.1611, abs=1e-4)


def test_nothing_to_guess_is_nothing_guessed_and_no_value_is_named() -> None:
    found = attribute_disclosure("ill", Partition.of(np.array([0, 0, -1])), np.array([0, 0, 2]), 3)
    assert found.rows == 0 and found.guessed.share == 0.0
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert "Wilson" in text


def test_values_of_other_rows_are_refused() -> None:
    with pytest.raises(ParameterError, match="2 values for 3 published rows"):
        attribute_disclosure("ill", Partition.of(np.array([0, 0, 0])), np.array([1, 1]), 2)
