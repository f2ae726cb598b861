"""What arrives: every bad key and ciphertext is refused with its name, and no bytes do anything else."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from velado.errors import CiphertextRefused, KeyRefused
from velado.learning.crypto.obfuscators import ObfuscatorPool, OwnerPower
from velado.learning.crypto.paillier import (
    SeenCiphertexts,
    add,
    check_values,
    ciphertext_size,
    ciphertexts_from_bytes,
    ciphertexts_size,
    ciphertexts_to_bytes,
    decrypt_many,
    encrypt,
    encrypt_many,
    key_from_bytes,
    key_to_bytes,
    obfuscate,
)
from velado.learning.crypto.paillier_keys import PrivateKey

fuzz = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def sent(private):
    pool = ObfuscatorPool(OwnerPower(private))
    return ciphertexts_to_bytes(private.public, encrypt_many(private.public, [1, -2, 3], pool))


def test_what_is_written_is_read_again(private, sent):
    key = key_from_bytes(key_to_bytes(private.public), fingerprint=private.public.fingerprint)
    assert key == private.public and key.fingerprint == private.public.fingerprint
    assert len(sent) == ciphertexts_size(key, 3) == 38 + 3 * 512
    read = ciphertexts_from_bytes(key, sent, 3)
    assert decrypt_many(private, read) == [1, -2, 3]
    assert not any(c.obfuscated for c in read)


def test_a_computed_ciphertext_does_not_leave_before_it_is_obfuscated(private, pool):
    x = encrypt(private.public, 1, pool)
    with pytest.raises(CiphertextRefused, match="not re-randomised"):
        ciphertexts_to_bytes(private.public, [add(x, x)])
    assert ciphertexts_to_bytes(private.public, obfuscate([add(x, x)], pool))


def test_a_received_ciphertext_is_not_passed_on_as_it_is(private, sent):
    read = ciphertexts_from_bytes(private.public, sent, 3)
    with pytest.raises(CiphertextRefused, match="not re-randomised"):
        ciphertexts_to_bytes(private.public, read)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda k: 0, "between"),
        (lambda k: k.public.n, "factor"),
        (lambda k: 5 * k.p, "factor"),
        (lambda k: k.q, "factor"),
        (lambda k: k.public.n2, "between"),
        (lambda k: k.public.n2 + 7, "between"),
        (lambda k: -3, "between"),
        (lambda k: 1, "no randomness"),
        (lambda k: 1 + 12345 * k.public.n, "no randomness"),
    ],
    ids=["0", "n", "5p", "q", "n2", "above n2", "negative", "1", "plain in sight"],
)
def test_a_number_that_is_no_ciphertext_is_refused(private, pool, make, said):
    good = encrypt(private.public, 4, pool).value
    check_values(private.public, [good])
    with pytest.raises(CiphertextRefused, match=said):
        check_values(private.public, [good, make(private)])


def test_ciphertexts_of_another_key_cut_short_or_of_another_count_are_refused(private, other, sent):
    for key, data, count, said in (
        (other.public, sent, 3, "another key"),
        (private.public, sent[:-1], 3, "cut short"),
        (private.public, sent + b"\0", 3, "cut short"),
        (private.public, sent, 2, "cut short"),
        (private.public, sent[:34] + b"\0\0\0\4" + sent[38:], 3, "another number"),
        (private.public, b"\2" + sent[1:], 3, "unknown version"),
        (private.public, b"", 0, "cut short"),
    ):
        with pytest.raises(CiphertextRefused, match=said):
            ciphertexts_from_bytes(key, data, count)


def test_a_ciphertext_sent_again_is_refused(private, sent, pool):
    seen = SeenCiphertexts()
    ciphertexts_from_bytes(private.public, sent, 3, seen)
    size = ciphertext_size(private.public)
    with pytest.raises(CiphertextRefused, match="sent before"):
        ciphertexts_from_bytes(private.public, sent, 3, seen)
    fresh = ciphertexts_to_bytes(private.public, encrypt_many(private.public, [1, 2, 3], pool))
    mixed = fresh[:-size] + sent[-size:]
    with pytest.raises(CiphertextRefused, match="sent before"):
        ciphertexts_from_bytes(private.public, mixed, 3, seen)
    # What was refused was not remembered in part.
    ciphertexts_from_bytes(private.public, fresh, 3, seen)
    with pytest.raises(CiphertextRefused, match="sent before"):
        ciphertexts_from_bytes(private.public, fresh[:-size] + fresh[-2 * size : -size], 3, SeenCiphertexts())


def test_bytes_that_are_no_key_or_not_the_expected_one_are_refused(private, other):
    good = key_to_bytes(private.public)
    for data, said in (
        (good[:-1], "length"),
        (good + b"\0", "length"),
        (b"\0" + good[1:], "version"),
        (b"", "cut short"),
        (good[:2] + b"\0\0\1\1" + b"\0" + good[6:], "length"),
        (b"\1\1" + b"\xff" * 4 + good[6:], "length"),
        (bytes(9999), "too many"),
    ):
        with pytest.raises(KeyRefused, match=said):
            key_from_bytes(data)
    with pytest.raises(KeyRefused, match="fingerprint"):
        key_from_bytes(good, fingerprint=other.public.fingerprint)
    with pytest.raises(KeyRefused, match="3072"):
        key_from_bytes(good, minimum_bits=3072)
    short = key_to_bytes(PrivateKey(293, 433).public)
    with pytest.raises(KeyRefused, match="17 bits"):
        key_from_bytes(short)


@fuzz
@given(st.binary(max_size=300))
def test_random_bytes_are_refused_by_every_decoder(private, data):
    with pytest.raises(KeyRefused):
        key_from_bytes(data)
    with pytest.raises(CiphertextRefused):
        ciphertexts_from_bytes(private.public, data, 3)


@fuzz
@given(data=st.data())
def test_changed_bytes_are_refused_or_read_as_what_they_say(private, sent, data):
    for original, read in (
        (key_to_bytes(private.public), lambda b: key_to_bytes(key_from_bytes(b))),
        (sent, lambda b: _again(private.public, ciphertexts_from_bytes(private.public, b, 3))),
    ):
        place = data.draw(st.integers(0, len(original) - 1))
        changed = bytearray(original)
        changed[place] ^= data.draw(st.integers(1, 255))
        changed = bytes(changed[: data.draw(st.sampled_from([len(changed), place]))])
        try:
            assert read(changed) == changed
        except (KeyRefused, CiphertextRefused) as error:
            assert len(str(error)) < 300


def _again(key, ciphertexts):
    """The bytes of ciphertexts as they came, past the rule that they must not leave so."""
    return ciphertexts_to_bytes(key, [replace(c, obfuscated=True) for c in ciphertexts])
