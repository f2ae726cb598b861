"""The tables of the DAS paper: every published cell again in the paper profile, and what honest measurement says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.papers.das.das_tables import (
    ADULT_SET,
    TABLE_2,
    WEF,
    first_nearest,
    halves,
    links_as_counted,
    mdav,
)
from velado.papers.paper_registry import encoded, numeric_schema, reproduction_named, truncated
from velado.release.goal import silent


@pytest.fixture(scope="module")
def table(data_folder):
    """Tables by number, each made once."""
    made = {}

    def result(number):
        if number not in made:
            made[number] = reproduction_named(f"das-table-{number}").carry_out(data_folder, silent)
        return made[number]

    return result


@pytest.mark.parametrize("number", [3, 4, 6, pytest.param(5, marks=pytest.mark.slow)])
def test_every_published_cell_comes_out_again_in_the_paper_profile(table, number) -> None:
    rows = table(number).rows
    assert [row[0] for row in rows] == ["fixed interval"] * 3 + ["MDAV"] * 3 + ["Mondrian"] * 3 + ["DAS"]
    assert [row[2] for row in rows] == [row[3] for row in rows]


@pytest.mark.parametrize("source", [WEF, ADULT_SET], ids=["wef", "adult"])
def test_what_is_called_published_is_what_the_paper_prints(source) -> None:
    # Tables III to VI of the paper, row by row: k, fixed interval, MDAV, Mondrian; and the cell of DAS.
    links, losses, das = {
        "WEF": (
            [(3, 17, 21, 13), (5, 38, 15, 13), (6, 48, 12, 8)],
            [(0.184, 0.094, 0.160), (0.107, 0.158, 0.160), (0.086, 0.185, 0.240)],
            (51, 0.101),
        ),
        "Adult": (
            [(3, 26, 3367, 2200), (5, 85, 2219, 1186), (9, 447, 1471, 683)],
            [(0.318, 0.008, 0.021), (0.195, 0.016, 0.037), (0.092, 0.028, 0.056)],
            (111, 0.033),
        ),
    }[source.title]
    assert [(k, *cells) for k, *cells in zip(source.ks, *source.links.values(), strict=True)] == links
    assert list(zip(*source.losses.values(), strict=True)) == losses
    assert source.das == das


@pytest.mark.parametrize(("number", "k", "loss"), [(4, "4/6/6", 0.16906), (6, "8/5/9", 0.1657)])
def test_the_loss_of_das_by_equation_1_is_larger_than_published(table, number, k, loss) -> None:
    row = table(number).rows[-1]
    assert row[1] == k and row[4] == pytest.approx(loss, abs=5e-5)
    assert row[4] > row[2]


def test_links_of_das_by_the_text_and_by_the_code_differ_on_adult(data_folder) -> None:
    from velado.randomness import seeded
    from velado.release.goal import Goal
    from velado.release.methods.das import DAS

    data = encoded(data_folder, ADULT_SET.file, numeric_schema(*ADULT_SET.columns))
    recoded = DAS(rounding="round").anonymize(data, Goal(()), seeded(0), silent)
    assert links_as_counted(data, recoded) == 111
    assert links_as_counted(data, recoded, from_released=True) == 170


def test_table_2_comes_from_table_1_and_needs_no_data(tmp_path) -> None:
    found = reproduction_named("das-table-2").carry_out(tmp_path, silent)
    assert [row[1] for row in found.rows] == [row[2] for row in found.rows]
    assert found.rows[3][3] == "32.33 / 171.67 / 68.43"
    assert [row[4] for row in found.rows].count(1) == 2  # IDs 1 and 4, as the paper says
    assert found.rows[0][1] == " / ".join(f"{values[0]:g}" for values in TABLE_2.values())
    assert len(reproduction_named("das-table-1").carry_out(tmp_path, silent).rows) == 9


def test_every_table_says_why_the_columns_differ_and_none_is_of_some_rows_only(table) -> None:
    assert table(6).note.startswith("Why they differ:")
    assert all(reproduction_named(f"das-table-{number}").quick is None for number in range(3, 7))


def test_printed_numbers_are_cut_not_rounded() -> None:
    assert truncated(0.0996) == 0.099
    assert truncated(0.3183) == 0.318
    assert truncated(0.185) == 0.185  # 0.185 * 1000 is 184.99999999999997


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 40)), min_size=1, max_size=60), st.integers(1, 5))
def test_halves_have_k_to_2k_minus_1_rows(rows, k) -> None:
    points = np.array(rows, dtype=float)
    sizes = np.bincount(halves(points, k))
    assert sizes.sum() == len(rows)
    assert sizes.max() < 2 * k
    assert len(rows) < k or sizes.min() >= k


def test_the_widest_column_is_halved_and_equal_values_are_shared_out_in_order() -> None:
    points = np.array([[0, 5], [0, 5], [0, 5], [1, 5]], dtype=float)
    assert halves(points, 2).tolist() == [1, 1, 0, 0]


def test_the_first_of_equally_near_targets_wins() -> None:
    queries, targets = np.array([[0.0, 0.0], [9.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [9.0, 1.0]])
    assert first_nearest(queries, targets).tolist() == [0, 2]


def test_links_are_those_of_a_plain_search_over_all_rows(data_folder) -> None:
    data = encoded(data_folder, WEF.file, numeric_schema(*WEF.columns))
    recoded = mdav(data, 3)
    original = np.stack([column.points[column.codes] for column in data.columns], axis=1)
    published = np.stack([np.array(p.values, dtype=float)[p.codes] for p in recoded.columns], axis=1)
    for from_released, (some, others) in enumerate([(original, published), (published, original)]):
        found = [int(np.argmin(((row - others) ** 2).sum(axis=1))) for row in some]
        plain = int((np.array(found) == np.arange(len(found))).sum())
        assert links_as_counted(data, recoded, from_released=bool(from_released)) == plain
