"""Keys: what is made is sound, what arrives is refused unless it is."""

from random import Random

import gmpy2
import pytest

from velado.errors import KeyRefused
from velado.learning.crypto.paillier_keys import PrivateKey, PublicKey, keygen
from velado.randomness import Tape


def prime(bits: int, seed: int) -> int:
    return int(gmpy2.next_prime(Random(seed).getrandbits(bits) | 3 << (bits - 2)))


@pytest.fixture(scope="module")
def made() -> PrivateKey:
    return keygen(2048, Random(1))


def test_a_made_key_has_two_distant_primes_of_one_length(made):
    assert gmpy2.is_prime(made.p) and gmpy2.is_prime(made.q)
    assert made.p.bit_length() == made.q.bit_length() == 1024
    assert made.public.bits == 2048
    assert abs(made.p - made.q) > 2**924
    assert gmpy2.gcd(made.public.n, (made.p - 1) * (made.q - 1)) == 1
    assert made.p % 4 == made.q % 4 == 3 and gmpy2.gcd(made.p - 1, made.q - 1) == 2
    assert made.validate() is made and made.public.validate() is made.public


def test_keys_are_made_of_the_source_alone_and_differ_without_one(made):
    assert keygen(2048, Random(1)) == made
    first, second = keygen(1024, least_bits=1024), keygen(1024, least_bits=1024)
    assert first != second
    seed = bytes(range(32))
    assert keygen(1024, Tape(seed), least_bits=1024) == keygen(1024, Tape(seed), least_bits=1024)


def test_a_short_key_is_made_only_for_who_asks_for_one(made):
    with pytest.raises(KeyRefused, match="1024 bits"):
        keygen(1024)
    with pytest.raises(KeyRefused):
        keygen(1022, least_bits=512)
    with pytest.raises(KeyRefused):
        keygen(2049)
    short = keygen(1024, Random(2), least_bits=1024)
    with pytest.raises(KeyRefused, match="2048"):
        short.public.validate()
    short.public.validate(1024)


@pytest.mark.parametrize(
    ("modulus", "said"),
    [
        (prime(1024, 1) * prime(1024, 2) * 2, "even"),
        (prime(2048, 3), "prime"),
        (prime(1024, 4) ** 2, "power"),
        (prime(700, 5) ** 3, "power"),
        (prime(512, 6) * prime(512, 7), "1024 bits"),
        (prime(2048, 8) * 16381, "small prime factor"),
        (1 << 16400 | 1, "16384"),
    ],
    ids=["even", "prime", "square", "cube", "short", "small factor", "too long"],
)
def test_a_modulus_that_is_not_safe_is_refused(modulus, said):
    with pytest.raises(KeyRefused, match=said):
        PublicKey(modulus).validate()


@pytest.mark.parametrize("modulus", [True, 1.5, "15", None, -15, 0, b"\x0f"])
def test_a_modulus_that_is_no_positive_whole_number_is_refused(modulus):
    with pytest.raises(KeyRefused):
        PublicKey(modulus)


@pytest.mark.parametrize(("p", "q"), [(7, 7), (3, 7), (4, 9), (11, True), (11, 2.0)])
def test_factors_that_make_no_paillier_key_are_refused(p, q):
    with pytest.raises(KeyRefused):
        PrivateKey(p, q)


def test_a_private_key_of_a_composite_or_of_uneven_or_close_factors_is_refused(made):
    close = gmpy2.next_prime(made.p + 2)
    with pytest.raises(KeyRefused, match="close"):
        PrivateKey(made.p, close).validate()
    with pytest.raises(KeyRefused, match="not a prime"):
        PrivateKey(made.p * gmpy2.next_prime(2**40), made.q).validate()
    with pytest.raises(KeyRefused, match="length"):
        PrivateKey(prime(1200, 1), prime(900, 2)).validate()


def test_fingerprints_tell_keys_apart_and_no_text_shows_a_factor(made, private):
    assert made.public.fingerprint == PublicKey(int(made.p * made.q)).fingerprint
    assert made.public.fingerprint != private.public.fingerprint
    assert len(made.public.fingerprint) == 32
    for thing in (made, made.public):
        text = repr(thing)
        assert len(text) < 100 and str(made.p) not in text and str(made.public.n) not in text
