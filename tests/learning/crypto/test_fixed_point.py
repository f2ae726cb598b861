"""Fixed point: the exact rational, rounded half to even, within public bounds; nothing else is let in."""

import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.errors import OutOfBounds, ParameterError
from velado.learning.crypto.fixed_point import Bounded, FixedPoint

bits = st.integers(0, 120)
floats = st.floats(allow_nan=False, allow_infinity=False)


def encoding(low, high, q, name="x"):
    return FixedPoint((Bounded(name, (Fraction(low), Fraction(high))),), q)


@given(st.lists(floats, min_size=1, max_size=20), bits)
def test_floats_are_rounded_as_the_exact_fractions_they_are(values, q):
    reach = max(1, math.ceil(max(abs(Fraction(v)) for v in values)))
    found = encoding(-reach, reach, q).encode("x", np.array(values))
    assert [int(v) for v in found] == [round(Fraction(v) * 2**q) for v in values]


@given(st.lists(st.floats(-4000, 4000), min_size=1, max_size=30))
def test_the_array_of_machine_integers_agrees_too(values):
    found = encoding(-4000, 4000, 50).encode("x", np.array(values))
    assert found.dtype == np.int64
    assert found.tolist() == [round(Fraction(v) * 2**50) for v in values]


@given(st.lists(st.decimals(-(10**9), 10**9, places=7), min_size=1, max_size=20), bits)
def test_texts_and_decimals_are_the_decimals_they_write(values, q):
    grid = encoding(-(10**9), 10**9, q)
    expected = [round(Fraction(v) * 2**q) for v in values]
    assert [int(v) for v in grid.encode("x", [str(v) for v in values])] == expected
    assert [int(v) for v in grid.encode("x", np.array(values, dtype=object))] == expected


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20), bits)
def test_whole_numbers_are_shifted(values, q):
    found = encoding(-(2**62), 2**62, q).encode("x", np.array(values, dtype=np.int64))
    assert [int(v) for v in found] == [v << q for v in values]


def test_halves_go_to_the_even_side():
    texts = ["0.5", "1.5", "2.5", "-0.5", "-1.5", "-2.5"]
    assert encoding(-3, 3, 0).encode("x", texts).tolist() == [0, 2, 2, 0, -2, -2]
    assert encoding(-3, 3, 0).encode("x", [float(t) for t in texts]).tolist() == [0, 2, 2, 0, -2, -2]
    quarter = [Fraction(1, 8), Fraction(3, 8), Fraction(-1, 8)]
    assert encoding(-3, 3, 2).encode("x", np.array(quarter, dtype=object)).tolist() == [0, 2, 0]


def test_a_text_and_its_float_differ_where_the_float_is_not_the_decimal():
    grid = encoding(0, 1, 80)
    assert int(grid.encode("x", ["0.1"])[0]) == round(Fraction(1, 10) * 2**80)
    assert int(grid.encode("x", [0.1])[0]) == round(Fraction(0.1) * 2**80)
    assert int(grid.encode("x", ["0.1"])[0]) != int(grid.encode("x", [0.1])[0])
    for text in ("1e-1", "+.1", "0.10", " 0.1 ", "10E-2"):
        assert int(grid.encode("x", [text])[0]) == round(Fraction(1, 10) * 2**80)


@given(st.fractions(-1000, 1000), bits)
def test_decoding_is_exact_and_within_half_a_step(value, q):
    grid = encoding(-1000, 1000, q)
    whole = int(grid.encode("x", np.array([value], dtype=object))[0])
    assert abs(grid.decode(whole) - value) <= Fraction(1, 2 ** (q + 1))
    assert grid.decode(whole * whole, factors=2) == grid.decode(whole) ** 2
    assert grid.decode(grid.one) == 1


@given(st.fractions(-100, 100), st.fractions(0, 100), st.floats(-200, 200), bits)
def test_what_is_encoded_stays_within_the_public_reach(low, span, value, q):
    high = low + span
    grid = encoding(low, high, q)
    candidates = [float(low), float(high), *([value] if low <= Fraction(value) <= high else [])]
    # A float next to a bound counts as the bound, so the encoded value never leaves the limits either.
    found = [int(v) for v in grid.encode("x", np.array(candidates))]
    least, most = grid.limits("x")
    assert all(least <= v <= most and abs(v) <= grid.reach("x") for v in found)
    assert grid.reach("x") <= math.ceil(max(abs(low), abs(high)) * 2**q)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        10.000001,
        -0.001,
        1e300,
        "nan",
        "inf",
        "",
        " ",
        ".",
        "-",
        "1e",
        "0x3",
        "1_0",
        "ten",
        None,
        "1e999999999",
        "1e9999",
        "9" * 5000,
        "١",
        11,
        -1,
        Decimal("nan"),
        Decimal("10.0001"),
        Fraction(-1, 9),
        3j,
        b"3",
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_value_outside_its_bounds_or_missing_names_the_column_alone(value):
    grid = encoding(0, 10, 20, name="age")
    values = [1.0, value] if isinstance(value, float) else np.array(["1", value], dtype=object)
    with pytest.raises(OutOfBounds, match="'age' has 1 ") as caught:
        grid.encode("age", values)
    if value not in (None, "", " ", ".", "-", 11, -1, "nan"):
        assert str(value) not in str(caught.value)


def test_missing_values_of_a_data_frame_are_refused():
    grid = encoding(0, 10, 20)
    with pytest.raises(OutOfBounds):
        grid.encode("x", pl.Series([1.0, None]))
    with pytest.raises(OutOfBounds):
        grid.encode("x", np.array([1, 11, 12]))
    assert grid.encode("x", np.array([], dtype=float)).size == 0
    assert grid.encode("x", np.array([True, False])).tolist() == [1 << 20, 0]


def test_bounds_and_bits_that_make_no_sense_are_refused():
    with pytest.raises(ParameterError, match="do not rise"):
        encoding(2, 1, 20)
    for q in (-1, 513):
        with pytest.raises(ParameterError, match="fractional bits"):
            encoding(0, 1, q)


def test_the_bike_table_is_converted_in_half_a_second(data_folder):
    path = data_folder / "regression" / "bike_hour.csv"
    if not path.is_file():
        pytest.skip("the Bike table is not in the folder of reference tables")
    frame = pl.read_csv(path).drop("instant", "dteday", "casual", "registered")
    names = frame.columns
    columns = {name: frame[name].to_numpy() for name in names}
    grid = FixedPoint(
        tuple(Bounded(n, (Fraction(float(v.min())), Fraction(float(v.max())))) for n, v in columns.items()),
        50,
    )
    start = time.process_time()
    found = [grid.encode(name, columns[name]) for name in names]
    assert time.process_time() - start < 0.5
    assert len(names) == 13 and len(found[0]) == 17379
    for name, encoded in zip(names, found, strict=True):
        some = range(0, 17379, 997)
        assert [int(encoded[i]) for i in some] == [
            round(Fraction(float(columns[name][i])) * 2**50) for i in some
        ]


def test_columns_may_have_bits_of_their_own() -> None:
    columns = (Bounded("a", (-4, 4)), Bounded("b", (-4, 4)))
    grid = FixedPoint(columns, 3, (0, 70))
    for values in (np.array([0.5, 1.5, -3.0]), np.array(["0.5", "1.5", "-3"], dtype=object)):
        assert grid.encode("a", values).tolist() == [0, 2, -3]
        assert grid.encode("b", values).tolist() == [1 << 69, 3 << 69, -3 << 70]
    assert grid.encode("b", np.array([1, -3])).tolist() == [1 << 70, -3 << 70]
    assert (grid.reach("a"), grid.reach("b"), grid.one) == (4, 4 << 70, 8)
    for wrong in ((0,), (0, 513), (-1, 0)):
        with pytest.raises(ParameterError):
            FixedPoint(columns, 3, wrong)
