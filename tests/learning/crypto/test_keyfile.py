"""Key files: the passphrase opens them, and nothing else does."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from velado.errors import KeyRefused
from velado.learning.crypto.paillier_keys import open_sealed, seal

PASSPHRASE = "coração aberto, porta fechada"


@pytest.fixture(scope="module")
def sealed(private) -> bytes:
    return seal(private, PASSPHRASE, log2_n=15)


def test_the_passphrase_opens_what_it_closed(private, sealed):
    opened = open_sealed(sealed, PASSPHRASE, minimum_bits=2048)
    assert (opened.p, opened.q) == (private.p, private.q)
    # The same word typed where accents are separate characters.
    decomposed = "corac\u0327a\u0303o aberto, porta fechada"
    assert decomposed != PASSPHRASE
    assert open_sealed(sealed, decomposed) == private


def test_the_default_cost_is_written_and_honoured(private):
    data = seal(private, "x")
    assert data[9] == 17
    assert open_sealed(data, "x") == private


def test_another_passphrase_is_refused_without_a_word_of_either(sealed):
    for wrong in ("coração", "", PASSPHRASE + " ", PASSPHRASE.upper(), "\ud800"):
        with pytest.raises(KeyRefused, match="does not open") as caught:
            open_sealed(sealed, wrong)
        assert not wrong or wrong not in str(caught.value)


def test_the_factors_are_not_in_the_bytes_and_two_seals_differ(private, sealed):
    for factor in (private.p, private.q):
        raw = int(factor).to_bytes(128, "big")
        assert raw[:16] not in sealed and raw[-16:] not in sealed
    again = seal(private, PASSPHRASE, log2_n=15)
    assert again[12:40] != sealed[12:40] and again[72:] != sealed[72:]
    repeated = [seal(private, "x", Random(3), log2_n=15) for _ in range(2)]
    assert repeated[0] == repeated[1]


def test_an_empty_passphrase_or_a_cheap_guess_is_refused(private):
    with pytest.raises(KeyRefused, match="empty"):
        seal(private, "")
    for log2_n in (9, 11, 14, 19):
        with pytest.raises(KeyRefused, match="guessing"):
            seal(private, "x", log2_n=log2_n)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (0, 0, "not a key file"),
        (8, 2, "version"),
        (9, 14, "parameters"),
        (9, 11, "parameters"),
        (9, 31, "parameters"),
        (10, 255, "parameters"),
        (11, 2, "parameters"),
    ],
    ids=["magic", "version", "cheap", "cheaper", "all memory", "r", "p"],
)
def test_a_head_of_another_form_is_refused_before_any_work(sealed, place, value, said):
    changed = bytearray(sealed)
    changed[place] = value
    with pytest.raises(KeyRefused, match=said):
        open_sealed(bytes(changed), PASSPHRASE)


def test_a_key_that_is_too_short_for_the_job_is_refused(sealed):
    with pytest.raises(KeyRefused, match="3072"):
        open_sealed(sealed, PASSPHRASE, minimum_bits=3072)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_changed_byte_goes_unseen(sealed, data):
    # Byte 9 is the cost of guessing: larger accepted values only make the refusal slower.
    place = data.draw(st.sampled_from([i for i in range(len(sealed)) if i != 9]))
    changed = bytearray(sealed)
    changed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(KeyRefused):
        open_sealed(bytes(changed), PASSPHRASE)


@given(st.binary(max_size=400))
def test_random_bytes_are_no_key_file(data):
    with pytest.raises(KeyRefused):
        open_sealed(data, PASSPHRASE)


@pytest.mark.parametrize("length", [0, 8, 12, 71, 72, 73, 88, 300])
def test_a_file_cut_short_is_refused(sealed, length):
    with pytest.raises(KeyRefused):
        open_sealed(sealed[:length], PASSPHRASE)


def test_a_file_grown_too_long_is_refused(sealed):
    with pytest.raises(KeyRefused):
        open_sealed(sealed + bytes(9000), PASSPHRASE)
