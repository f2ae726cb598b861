"""Products of powers agree with Python's own, whatever the exponents."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from velado.learning.crypto.modular import SharedBases, powers, product, shared_products, uniform
from velado.randomness import Tape, secure

MODULUS = 2**127 - 1
bases = st.integers(2, MODULUS - 1)


@given(st.lists(st.tuples(bases, st.integers(-(2**90), 2**90)), max_size=6), st.integers(1, 40))
def test_a_product_of_powers_is_pythons(pairs, uses):
    expected = 1
    for base, exponent in pairs:
        expected = expected * pow(base, exponent, MODULUS) % MODULUS
    shared = SharedBases([base for base, _ in pairs], MODULUS, 90, uses)
    assert shared.product([exponent for _, exponent in pairs]) == expected


@given(st.lists(bases, min_size=1, max_size=4), st.data())
def test_columns_share_their_bases(values, data):
    size = len(values)
    columns = data.draw(st.lists(st.lists(st.integers(-999, 999), min_size=size, max_size=size), max_size=4))
    found = shared_products(values, columns, MODULUS)
    alone = [
        product([pow(v, e, MODULUS) for v, e in zip(values, column, strict=True)], MODULUS)
        for column in columns
    ]
    assert found == alone


@given(st.lists(bases, max_size=9), st.integers(0, 2**70), st.integers(1, 4))
def test_powers_keep_their_order_over_any_number_of_threads(values, exponent, threads):
    assert powers(values, exponent, MODULUS, threads) == [pow(v, exponent, MODULUS) for v in values]


def test_draws_are_uniform_from_every_kind_of_source():
    for source in (Random(3), Tape(bytes(32)), secure()):
        seen = Counter(uniform(source, 5) for _ in range(5000))
        assert set(seen) == set(range(5))
        # Chi-square with 4 degrees of freedom: beyond 30 once in 200,000 runs.
        assert sum((k - 1000) ** 2 / 1000 for k in seen.values()) < 30
        assert uniform(source, 1) == 0
