"""A grid of products of powers equals the powers multiplied one by one, whatever the shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.learning.crypto.modular import grid_products, plan


@given(st.data())
def test_a_grid_equals_its_powers_one_by_one(data: st.DataObject) -> None:
    modulus = data.draw(st.integers(2, 10**9))
    bases = data.draw(st.lists(st.integers(0, 10**9), min_size=1, max_size=6))
    inner = data.draw(st.integers(1, 5))
    rows = data.draw(
        st.lists(st.lists(st.integers(0, len(bases) - 1), min_size=inner, max_size=inner), max_size=4)
    )
    longest = data.draw(st.integers(0, 200))
    exponents = st.lists(st.integers(0, 1 << longest), min_size=inner, max_size=inner)
    columns = data.draw(st.lists(exponents, max_size=15))
    found = grid_products(bases, rows, columns, modulus)
    for row, line in zip(rows, found, strict=True):
        for column, value in zip(columns, line, strict=True):
            right = 1
            for base, exponent in zip(row, column, strict=True):
                right = right * pow(bases[base], exponent, modulus) % modulus
            assert value % modulus == right % modulus


def test_a_negative_exponent_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        grid_products([3], [[0]], [[-1]], 7)


@pytest.mark.parametrize(("width", "bits"), [(1, 8), (8, 3072), (13, 3072), (40, 2048)])
def test_every_column_lies_in_one_group_and_buckets_stay_few(width: int, bits: int) -> None:
    window, groups = plan(width, width, width + 1, bits)
    assert [column for group in groups for column in group] == list(range(width + 1))
    assert max(window * len(group) for group in groups) <= 13
