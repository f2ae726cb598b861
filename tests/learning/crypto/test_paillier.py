"""Encryption: the standard's figures, and every operation against the same operation on plain numbers."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from velado.errors import CiphertextRefused, PlaintextOverflow
from velado.learning.crypto.obfuscators import ObfuscatorPool, OwnerPower
from velado.learning.crypto.paillier import (
    Ciphertext,
    add,
    add_plain,
    decrypt,
    decrypt_many,
    dot,
    dots,
    encrypt,
    encrypt_many,
    matrix_dots,
    multiply_plain,
    obfuscate,
    sum_ciphertexts,
)
from velado.learning.crypto.paillier_keys import PrivateKey

few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
signed = st.integers(-(2**200), 2**200)


class Given:
    """A maker that hands out the residues of a known r, to meet published ciphertexts."""

    def __init__(self, key, *roots):
        self.key = key
        self.roots = list(roots)

    def make(self, count):
        return [pow(self.roots.pop(0), int(self.key.n), int(self.key.n2)) for _ in range(count)]


def test_the_example_of_the_standard_is_met_digit_by_digit(iso, private):
    pool = ObfuscatorPool(Given(private.public, iso["r0"], iso["r1"]))
    first, second = encrypt_many(private.public, [iso["m1"], iso["m2"]], pool)
    assert first.value == iso["c1"] and second.value == iso["c2"]
    both = add(first, second)
    assert both.value == iso["c1c2"]
    assert decrypt_many(private, [first, second, both]) == [iso["m1"], iso["m2"], iso["m1m2"]]
    assert iso["m1"] + iso["m2"] == iso["m1m2"]


def test_small_keys_give_the_figures_worked_out_beside(small_cases):
    for case in small_cases:
        private = PrivateKey(case["p"], case["q"])
        made = encrypt(private.public, case["m"], ObfuscatorPool(Given(private.public, case["r"])))
        assert made.value == case["c"]
        assert decrypt(private, made) == case["m"]


def test_every_plaintext_of_a_tiny_key_comes_back_signed():
    private = PrivateKey(11, 17)
    half = int(private.public.half)
    pool = ObfuscatorPool(OwnerPower(private))
    values = list(range(-half, half + 1))
    assert len(values) == 187
    assert decrypt_many(private, encrypt_many(private.public, values, pool)) == values


@few
@given(a=signed, b=signed, k=signed)
def test_operations_on_ciphertexts_are_those_on_numbers(private, a, b, k):
    pool = ObfuscatorPool(OwnerPower(private))
    x, y = encrypt_many(private.public, [a, b], pool)
    results = [
        add(x, y),
        add_plain(x, b),
        multiply_plain(x, k),
        sum_ciphertexts([x, y, x]),
        dot([x, y], [k, -k]),
    ]
    expected = [a + b, a + b, k * a, 2 * a + b, k * a - k * b]
    assert decrypt_many(private, results) == expected
    assert decrypt_many(private, results, threads=1) == expected
    assert decrypt_many(private, obfuscate(results, pool)) == expected


@few
@given(data=st.data(), width=st.integers(1, 5), columns=st.integers(1, 3))
def test_products_with_full_length_factors_agree_modulo_the_key(private, data, width, columns):
    n = int(private.public.n)
    full = st.integers(0, n - 1)
    plain = data.draw(st.lists(signed, min_size=width, max_size=width))
    factors = [data.draw(st.lists(full, min_size=width, max_size=width)) for _ in range(columns)]
    rows = encrypt_many(private.public, plain, ObfuscatorPool(OwnerPower(private)))
    found = [m % n for m in decrypt_many(private, dots(rows, factors))]
    assert found == [sum(f * m for f, m in zip(column, plain, strict=True)) % n for column in factors]


@pytest.mark.parametrize("size", [3, 2**2040], ids=["short", "full length"])
def test_a_matrix_product_is_the_same_with_and_without_workers(private, pool, size):
    n = int(private.public.n)
    plain = [[1, -2, 3], [4, 5, -6]]
    factors = [[size, -1, 0], [-size, 7, size - 2]]
    rows = [encrypt_many(private.public, row, pool) for row in plain]
    expected = [[sum(m * f for m, f in zip(row, c, strict=True)) % n for c in factors] for row in plain]
    with ThreadPoolExecutor(2) as workers:
        for executor in (None, workers):
            found = matrix_dots(rows, factors, executor)
            assert [[m % n for m in decrypt_many(private, row)] for row in found] == expected
    assert matrix_dots([], []) == []
    with pytest.raises(ValueError, match="one factor"):
        matrix_dots(rows, [[1, 2]])


def test_factors_of_zero_one_and_minus_one_are_taken(private, pool):
    x = encrypt(private.public, 41, pool)
    assert [decrypt(private, multiply_plain(x, k)) for k in (0, 1, -1)] == [0, 41, -41]
    assert decrypt(private, dot([x, x], [0, 0])) == 0
    assert decrypt(private, dot([x], [-3])) == -123


def test_one_number_encrypted_twice_looks_different_and_shows_nothing(private, pool):
    first, second = encrypt_many(private.public, [123456789, 123456789], pool)
    assert first.value != second.value
    assert "123456789" not in repr(first) and str(first.value) not in repr(first)


def test_only_what_has_its_own_randomness_counts_as_obfuscated(private, pool):
    x = encrypt(private.public, 5, pool)
    assert x.obfuscated
    computed = [add(x, x), add_plain(x, 1), multiply_plain(x, 2), sum_ciphertexts([x]), dot([x, x], [1, 2])]
    assert not any(c.obfuscated for c in computed)
    again = obfuscate(computed, pool)
    assert all(c.obfuscated for c in again)
    assert all(a.value != b.value for a, b in zip(again, computed, strict=True))


def test_a_plaintext_beyond_the_key_is_refused(private, pool):
    half = int(private.public.half)
    assert decrypt(private, encrypt(private.public, -half, pool)) == -half
    for value in (half + 1, -half - 1):
        with pytest.raises(PlaintextOverflow, match="2047"):
            encrypt(private.public, value, pool)
        with pytest.raises(PlaintextOverflow):
            add_plain(encrypt(private.public, 0, pool), value)


def test_ciphertexts_of_two_keys_never_meet(private, other, pool):
    mine = encrypt(private.public, 1, pool)
    theirs = encrypt(other.public, 1, ObfuscatorPool(OwnerPower(other)))
    for work in (
        lambda: add(mine, theirs),
        lambda: sum_ciphertexts([mine, theirs]),
        lambda: dot([mine, theirs], [1, 1]),
        lambda: decrypt(private, theirs),
        lambda: obfuscate([theirs], pool),
        lambda: encrypt(other.public, 1, pool),
    ):
        with pytest.raises(CiphertextRefused, match="another key"):
            work()


def test_lengths_that_do_not_match_are_a_programming_error(private, pool):
    x = encrypt(private.public, 1, pool)
    with pytest.raises(ValueError, match="one factor"):
        dot([x, x], [1])
    with pytest.raises(ValueError, match="no key"):
        sum_ciphertexts([])
    assert decrypt_many(private, []) == []
    assert isinstance(x, Ciphertext)
