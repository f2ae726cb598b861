"""The risk of each row; known answers from sdcMicro 5.8.1 (its tests/testthat, and a run under R 4.2.2)."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.special import gammaln

from velado.data.encode import EncodedColumn, EncodedTable, encode
from velado.data.schema import Column
from velado.errors import ParameterError
from velado.measures.risk.individual_risk import individual_risk, posterior_risk

from .conftest import make_table

WEIGHT = np.array([18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0])
A = [2, 3, 2, 2, 3, 3, 1, 2]
B = [3, 3, 3, 3, 3, 3, 4, 3]
C = [1, 3, 1, 2, 1, 1, 1, 1]


def coded(name: str, values: list) -> EncodedColumn:
    """A column as codes, its blanks last: `encode` refuses a column that is blank throughout, sdcMicro does not."""
    known = sorted({value for value in values if value is not None})
    codes = [len(known) if value is None else known.index(value) for value in values]
    missing = len(known) if None in values else -1
    return EncodedColumn(name, np.array(codes, dtype=np.int32), max(codes) + 1, missing)


def encoded(**columns) -> EncodedTable:
    return EncodedTable(
        tuple(coded(name, values) for name, values in columns.items()), len(next(iter(columns.values())))
    )


def test_frequencies_and_risks_are_those_of_sdcmicro() -> None:
    data = encoded(A=A, B=B, C=C)
    found = individual_risk(data, WEIGHT)
    assert found.class_rows.tolist() == [3, 1, 3, 1, 2, 2, 1, 3]
    assert found.class_people.tolist() == [108.0, 45.5, 108.0, 17.0, 100.0, 100.0, 123.5, 108.0]
    assert found.risk == pytest.approx(
        [0.01369863, 0.08579129, 0.01369863, 0.17707583, 0.01877883, 0.01877883, 0.03931625, 0.01369863],
        abs=5e-9,
    )
    exact = individual_risk(data, WEIGHT, formula="exact")
    assert exact.risk == pytest.approx(
        [0.01355297, 0.08579129, 0.01355297, 0.17707583, 0.01877883, 0.01877883, 0.03931625, 0.01355297],
        abs=5e-9,
    )
    alone = individual_risk(data)
    assert alone.risk == pytest.approx([1 / 3, 1, 1 / 3, 1, 1 / 2, 1 / 2, 1, 1 / 3])


@pytest.mark.parametrize(
    ("columns", "rows", "people"),
    [
        (
            {"A": A, "B": B, "C": [1, 3, None, 2, 1, 1, None, 1]},
            [3, 1, 4, 2, 2, 2, 1, 3],
            [108.0, 45.5, 125.0, 56.0, 100.0, 100.0, 123.5, 108.0],
        ),
        (
            {"A": [2, 3, None, 2, 3, 3, 1, 2], "B": [3, 3, None, 3, 3, 3, 4, 3], "C": [None] * 8},
            [4, 4, 8, 4, 4, 4, 2, 4],
            [125.0, 184.5, 394.0, 125.0, 184.5, 184.5, 162.5, 125.0],
        ),
        (
            {"A": [2, 3, None, 2, 1, None, 1, 2]},
            [5, 3, 8, 5, 4, 8, 4, 5],
            [133.0, 92.5, 394.0, 133.0, 262.5, 394.0, 262.5, 133.0],
        ),
    ],
)
def test_a_blank_matches_everything_in_both_directions_as_in_sdcmicro(columns, rows, people) -> None:
    found = individual_risk(encoded(**columns), WEIGHT, blanks="wildcard")
    assert found.class_rows.tolist() == rows
    assert found.class_people == pytest.approx(people)


def test_the_blanks_of_a_table_that_was_read_are_values_or_wildcards_as_asked() -> None:
    frame = pl.DataFrame({"A": ["2", "3", None, "2"], "N": ["1.5", None, "1.5", "4"]})
    data = encode(make_table(frame, Column("A", "quasi", "categorical"), Column("N", "quasi", "numeric")))
    assert individual_risk(data, blanks="wildcard").class_rows.tolist() == [2, 2, 3, 1]
    assert individual_risk(data).class_rows.tolist() == [1, 1, 1, 1]


def test_a_blank_read_as_a_value_is_equal_to_blanks_only() -> None:
    found = individual_risk(encoded(A=[2, 3, None, 2, 1, None, 1, 2]))
    assert found.class_rows.tolist() == [3, 1, 2, 3, 2, 2, 2, 3]


def test_francdat_is_that_of_sdcmicro(data_folder) -> None:
    frame = pl.read_csv(data_folder / "sdc" / "francdat.csv")
    names = ["Key1", "Key2", "Key3", "Key4"]
    data = encoded(**{name: frame[name].to_list() for name in names})
    found = individual_risk(data, frame["w"].to_numpy())
    assert found.class_rows.tolist() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert found.class_people.tolist() == [110, 84.5, 84.5, 17, 541, 8, 5, 110]
    assert found.risk == pytest.approx(
        [
            0.01714426159629,
            0.02204232618326,
            0.02204232618326,
            0.1770758340035,
            0.01165448014601,
            0.2970630773828,
            0.4023594781085,
            0.01714426159629,
        ],
        rel=1e-10,
    )


def test_ninety_three_unique_households_have_the_global_risk_of_sdcmicro(data_folder) -> None:
    frame = pl.read_csv(data_folder / "sdc" / "sdc_testdata2.csv", null_values=["NA"])
    names = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
    data = encoded(**{name: frame[name].to_list() for name in names})
    found = individual_risk(data, frame["sampling_weight"].to_numpy().astype(float), blanks="wildcard")
    assert found.class_people.sum() == 9300
    assert found.risk[:6] == pytest.approx([0.04651687056554] * 6, rel=1e-10)
    assert found.expected_reidentifications == pytest.approx(4.326068962595, rel=1e-10)


@pytest.mark.parametrize(("rows", "people"), [(1, 40.0), (2, 9.0), (5, 300.0), (400, 40_000.0)])
def test_the_exact_formula_is_the_expectation_of_one_over_the_population(rows, people) -> None:
    # Summed term by term from the negative binomial itself.
    p = rows / people
    size = np.arange(rows, rows + 400_000, dtype=float)
    log = (
        gammaln(size)
        - gammaln(rows)
        - gammaln(size - rows + 1)
        + rows * np.log(p)
        + (size - rows) * np.log1p(-p)
    )
    expected = float((np.exp(log) / size).sum())
    assert posterior_risk(np.array([rows]), np.array([people]), "exact")[0] == pytest.approx(
        expected, rel=1e-8
    )


def test_a_sample_that_is_the_population_has_the_prosecutors_risk() -> None:
    sizes = np.array([1, 2, 3, 50])
    for formula in ("approximate", "exact"):
        assert posterior_risk(sizes, sizes.astype(float), formula) == pytest.approx(1 / sizes)
        # Just above, the textbook formulas for one and two rows cancel; these must not.
        near = posterior_risk(sizes, sizes * (1 + 1e-9), formula)
        assert near == pytest.approx(1 / sizes, rel=1e-6)


def test_the_summary_and_the_repr_hold_no_row() -> None:
    found = individual_risk(encoded(A=A, B=B, C=C), WEIGHT)
    document = found.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["unique_rows"] == 3 and "[" not in repr(found)


@pytest.mark.parametrize("weights", [np.ones(3), np.zeros(8), np.full(8, np.nan)])
def test_weights_that_are_none_are_refused(weights) -> None:
    with pytest.raises(ParameterError, match="positive numbers"):
        individual_risk(encoded(A=A), weights)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ParameterError, match="no formula"):
        individual_risk(encoded(A=A), WEIGHT, formula="guess")
    with pytest.raises(ParameterError, match="Blanks"):
        individual_risk(encoded(A=A), blanks="never")


def test_too_many_patterns_of_blanks_are_refused_and_may_be_read_as_values() -> None:
    bits = (np.arange(1024)[:, None] >> np.arange(10)) & 1
    columns = {f"c{at}": [None if bit else 1 for bit in bits[:, at].tolist()] for at in range(10)}
    with pytest.raises(ParameterError, match="1024 different sets of blank columns; the limit is 512"):
        individual_risk(encoded(**columns), blanks="wildcard")
    assert individual_risk(encoded(**columns)).class_rows.tolist() == [1] * 1024
