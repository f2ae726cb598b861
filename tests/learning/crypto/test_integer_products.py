"""Inner products of whole numbers are exact, whatever their size."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from velado.learning.crypto.modular import exact_gram


def by_hand(columns):
    return [[sum(int(x) * int(y) for x, y in zip(a, b, strict=True)) for b in columns] for a in columns]


@given(
    hnp.arrays(
        np.int64, st.tuples(st.integers(1, 4), st.integers(1, 40)), elements=st.integers(-(2**62), 2**62)
    )
)
def test_machine_integers_are_multiplied_exactly(table):
    columns = list(table)
    assert exact_gram(columns) == by_hand(columns)


@given(st.lists(st.tuples(st.integers(-(2**150), 2**150), st.integers(-9, 9)), min_size=1, max_size=30))
def test_integers_of_any_size_are_multiplied_exactly(rows):
    columns = [np.array([r[0] for r in rows], dtype=object), np.array([r[1] for r in rows], dtype=np.int64)]
    assert exact_gram(columns) == by_hand(columns)


def test_the_largest_limbs_over_many_rows_do_not_round():
    columns = [np.full(17379, 2**62 - 1), np.full(17379, -(2**62 - 1)), np.full(17379, 1 << 50)]
    most = 2**62 - 1
    assert exact_gram(columns)[0] == [17379 * most**2, -17379 * most**2, 17379 * most * 2**50]


def test_no_rows_and_no_columns_give_zeros():
    assert exact_gram([]) == []
    assert exact_gram([np.array([], dtype=np.int64)]) == [[0]]
