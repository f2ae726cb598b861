"""An encrypted score is the plain prediction, nothing of the rows is sent in the clear, and bad bytes are refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from velado.errors import (
    EncryptionError,
    InputError,
    KeyRefused,
    OutOfBounds,
    ParameterError,
    PlaintextOverflow,
    ProtocolError,
    SchemaError,
)
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.crypto.paillier_keys import PrivateKey, keygen
from velado.learning.regression.fit import Fit
from velado.learning.regression.inference import (
    Asker,
    ScoringTerms,
    answer,
    ask,
    coefficients_of,
    read,
    refuse_overflow,
)
from velado.randomness import Tape

FIT = Fit("y", ("(intercept)", "a", "b"), (1.5, -2.25, 1e-3), {}, {})
TERMS = ScoringTerms(
    (Bounded("a", (Fraction(-10), Fraction(10))), Bounded("b", (Fraction(0), Fraction(1000))))
)
ROWS = {"a": [-10.0, 0.1, 9.75], "b": [0.0, 333.3, 1000.0]}


@pytest.fixture(scope="module")
def private() -> PrivateKey:
    return keygen(2048, Tape(b"inference key for these tests..."))


def test_an_encrypted_score_is_the_plain_prediction(private: PrivateKey) -> None:
    asker = Asker(TERMS, private)
    question = asker.ask(ROWS)
    scores = asker.read(answer(TERMS, FIT, question))
    assert scores == pytest.approx(FIT.predict(ROWS), abs=1e-5)
    exact = [1.5 - 2.25 * a + 1e-3 * b for a, b in zip(*ROWS.values(), strict=True)]
    assert scores == pytest.approx(exact, abs=2**-18)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(-10, 10), st.integers(0, 1000)), min_size=1, max_size=3),
)
def test_whole_features_are_scored_exactly_as_the_encoded_model(
    private: PrivateKey, beta: list[float], rows: list[tuple[int, int]]
) -> None:
    fit = replace(FIT, coefficients=tuple(beta))
    columns = {"a": [float(a) for a, _ in rows], "b": [float(b) for _, b in rows]}
    question = ask(TERMS, private, columns)
    scores = read(TERMS, private, question, answer(TERMS, fit, question))
    (ca, cb), c0 = coefficients_of(TERMS, fit)
    unit = 1 << (TERMS.bits + TERMS.coefficient_bits)
    assert scores.tolist() == [float(Fraction(c0 + ((ca * a + cb * b) << TERMS.bits), unit)) for a, b in rows]


def test_a_model_without_an_intercept_is_scored(private: PrivateKey) -> None:
    fit = Fit("y", ("b", "a"), (2.0, -1.0), {}, {})
    question = ask(TERMS, private, {"a": [3.0], "b": [7.0]})
    assert read(TERMS, private, question, answer(TERMS, fit, question)).tolist() == [11.0]


def test_the_same_answer_is_never_the_same_bytes(private: PrivateKey) -> None:
    question = ask(TERMS, private, ROWS)
    assert answer(TERMS, FIT, question) != answer(TERMS, FIT, question)
    assert ask(TERMS, private, ROWS) != question


def test_a_score_that_could_not_be_held_is_refused_before_anything_is_computed(private: PrivateKey) -> None:
    large = replace(FIT, coefficients=(0.0, 1e308, 0.0))
    terms = replace(TERMS, coefficient_bits=512, bits=512)
    with pytest.raises(PlaintextOverflow, match="may need"):
        refuse_overflow(terms, large, private.public)
    with pytest.raises(PlaintextOverflow):
        answer(terms, large, ask(terms, private, {"a": [0.0], "b": [0.0]}))
    refuse_overflow(TERMS, large, private.public)


def test_features_outside_their_bounds_do_not_leave(private: PrivateKey) -> None:
    for bad in (10.5, float("nan"), float("inf")):
        with pytest.raises(OutOfBounds, match="'a'"):
            ask(TERMS, private, {"a": [bad], "b": [1.0]})


def test_rows_that_are_none_too_many_or_uneven_are_refused(private: PrivateKey) -> None:
    for columns in ({"a": [], "b": []}, {"a": [1.0, 2.0], "b": [1.0]}):
        with pytest.raises(InputError):
            ask(TERMS, private, {k: np.array(v) for k, v in columns.items()})
    with pytest.raises(InputError):
        ask(replace(TERMS, most_rows=2), private, ROWS)
    with pytest.raises(SchemaError, match="lack b"):
        ask(TERMS, private, {"a": [1.0]})


def test_another_model_other_terms_or_a_short_key_are_refused(private: PrivateKey) -> None:
    question = ask(TERMS, private, ROWS)
    with pytest.raises(SchemaError, match="features are not those"):
        answer(TERMS, Fit("y", ("a", "c"), (1.0, 2.0), {}, {}), question)
    with pytest.raises(ProtocolError, match="other terms"):
        answer(replace(TERMS, bits=21), FIT, question)
    strict = replace(TERMS, key_bits=3072)
    with pytest.raises(KeyRefused):
        answer(strict, FIT, ask(strict, private, ROWS))
    with pytest.raises(ParameterError):
        ScoringTerms(())


def test_an_answer_to_another_question_or_read_twice_is_refused(private: PrivateKey) -> None:
    asker = Asker(TERMS, private)
    told = answer(TERMS, FIT, asker.ask(ROWS))
    asker.read(told)
    with pytest.raises(ProtocolError, match="no question that is open"):
        asker.read(told)
    question = ask(TERMS, private, ROWS)
    with pytest.raises(ProtocolError, match="no answer to this question"):
        read(TERMS, private, question, told)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damaged_bytes_give_a_named_error_or_another_number(
    private: PrivateKey, data: st.DataObject
) -> None:
    question = ask(TERMS, private, {"a": [1.0], "b": [2.0]}, Tape(b"f" * 32))
    at = data.draw(st.integers(0, len(question) - 1))
    damaged = question[:at] + bytes([question[at] ^ data.draw(st.integers(1, 255))]) + question[at + 1 :]
    damaged = damaged[: data.draw(st.sampled_from([len(damaged), at, len(damaged) - 1]))]
    try:
        told = answer(TERMS, FIT, damaged)
    except EncryptionError:
        return
    with pytest.raises(ProtocolError):  # an answer to what was not asked is not read
        read(TERMS, private, question, told)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(junk: bytes) -> None:
    with pytest.raises(EncryptionError):
        answer(TERMS, FIT, junk)
