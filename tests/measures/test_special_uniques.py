"""Minimal sample uniques and SUDA2 scores; known answers from sdcMicro 5.8.1 (R 4.2.2)."""

import json
from itertools import combinations
from math import prod

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from velado.errors import ParameterError
from velado.measures.risk.special_uniques import special_uniques


def coded(columns):
    codes = [np.unique(np.asarray(column), return_inverse=True)[1].astype(np.int32) for column in columns]
    return codes, [int(column.max()) + 1 for column in codes]


def test_contributions_are_those_of_sdcmicros_small_example() -> None:
    codes, sizes = coded([[2, 1, 1], [0, 3, 0], [0, 6, 0]])
    found = special_uniques("abc", codes, sizes)
    assert found.contributions == pytest.approx({"a": 50, "b": 37.5, "c": 37.5})
    assert found.scores.tolist() == [2, 4, 2]
    assert found.keys_by_size == {1: 3, 2: 2, 3: 0}


def test_ninety_three_unique_households_score_as_in_sdcmicro(data_folder) -> None:
    frame = pl.read_csv(data_folder / "sdc" / "sdc_testdata2.csv", null_values=["NA"])
    names = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
    codes, sizes = coded([frame[name].to_numpy() for name in names])
    found = special_uniques(names, codes, sizes, largest_key=7)
    assert found.special_rows == found.unique_rows == 93
    assert found.scores.sum() == 7321 and found.scores.max() == 744
    assert found.scores[:10].tolist() == [180, 18, 74, 60, 150, 4, 122, 16, 28, 16]
    assert found.intrusion.tolist() == [1.0] * 93
    assert found.contributions == pytest.approx(
        {
            "urbrur": 16.568774757547,
            "roof": 35.96503209944,
            "walls": 19.710422073487,
            "water": 54.883212675864,
            "electcon": 14.76574238492,
            "relat": 70.222647179347,
            "sex": 32.686791421937,
        }
    )


def searched(codes, missing, largest):
    """Minimal uniques by comparing rows with each other."""
    rows, columns = len(codes[0]), len(codes)
    found = {}
    for row in range(rows):
        unique = set()
        for size in range(1, largest + 1):
            for chosen in combinations(range(columns), size):
                if any(codes[at][row] == missing[at] for at in chosen):
                    continue
                if any(set(part) <= set(chosen) for part in unique):
                    continue
                same = [o for o in range(rows) if all(codes[at][o] == codes[at][row] for at in chosen)]
                if same == [row]:
                    unique.add(chosen)
        found[row] = unique
    return found


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=14),
    st.integers(1, 4),
    st.tuples(*[st.sampled_from([-1, 0])] * 4),
)
def test_every_minimal_unique_is_found_and_no_other(rows, largest, missing) -> None:
    codes = [np.array([row[at] for row in rows], dtype=np.int32) for at in range(4)]
    found = special_uniques("abcd", codes, [4] * 4, missing, largest_key=largest)
    expected = searched(codes, missing, largest)
    weight = {k: prod(4 - i for i in range(k, min(largest, 3) + 1)) for k in range(1, largest + 1)}
    assert found.scores.tolist() == [sum(weight[len(key)] for key in expected[row]) for row in expected]
    sizes = [len(key) for keys in expected.values() for key in keys]
    assert found.keys_by_size == {k: sizes.count(k) for k in range(1, largest + 1)}


def test_the_intrusion_score_spreads_the_tables_chance_by_score() -> None:
    # Two unique rows with equal scores beside three pairs: each has DIS itself, U f / (U f + P (1 - f)).
    codes, sizes = coded([[0, 1, 2, 2, 3, 3, 4, 4]])
    found = special_uniques("a", codes, sizes, fraction=0.2)
    assert found.pairs == 3
    chance = 2 * 0.2 / (2 * 0.2 + 3 * 0.8)
    assert found.intrusion == pytest.approx([chance, chance, 0, 0, 0, 0, 0, 0])
    # A higher score takes a higher part.
    codes, sizes = coded([[0, 1, 1, 2, 2, 2], [5, 6, 7, 7, 8, 8]])
    uneven = special_uniques("ab", codes, sizes)
    assert uneven.scores.tolist() == [2, 1, 1, 1, 0, 0]
    assert uneven.intrusion[0] > uneven.intrusion[1] == uneven.intrusion[2] > 0
    # With two columns q = 1.3; the one pair gives odds of 0.99 / 0.01.
    shares = 2**-1.3 + 3
    assert uneven.intrusion[0] == pytest.approx(1 / (1 + 99 / (2**1.3 * shares)))
    assert uneven.intrusion[1] == pytest.approx(1 / (1 + 99 / shares))


def test_the_summary_and_the_repr_hold_no_row() -> None:
    codes, sizes = coded([[0, 1, 2, 2], [1, 1, 1, 1]])
    found = special_uniques("ab", codes, sizes)
    document = found.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["special_rows"] == 2 and "[" not in repr(found)


def test_too_many_key_sets_are_refused_with_their_number() -> None:
    many = [np.zeros(4, dtype=np.int32)] * 40
    with pytest.raises(ParameterError, match="102090 key sets of up to 4; the limit is 20000"):
        special_uniques([str(i) for i in range(40)], many, [1] * 40)
    with pytest.raises(ParameterError, match="there are 2"):
        special_uniques("ab", many[:2], [1, 1], largest_key=3)
    with pytest.raises(ParameterError, match="cannot be 0"):
        special_uniques("ab", many[:2], [1, 1], fraction=0)
