"""False cells, discernibility, average group size and distributions on cases worked out by hand."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.errors import ParameterError
from velado.measures.recoded_columns import read_published
from velado.measures.utility.average_group_size import average_group_size
from velado.measures.utility.discernibility import discernibility
from velado.measures.utility.distribution import distributions, spread
from velado.measures.utility.false_cells import false_cells


def numeric(values: list[str | None]) -> Table:
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.String)})
    return Table.of(frame, Schema({"x": Column("x", "quasi", "numeric")}))


def categorical(values: list[str | None]) -> Table:
    frame = pl.DataFrame({"c": pl.Series(values, dtype=pl.String)})
    column = Column("c", "quasi", "categorical", taxonomy=TaxonomySpec("flat"))
    return Table.of(frame, Schema({"c": column}))


def column(name: str, texts: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame({name: pl.Series(texts, dtype=pl.String)})


def test_a_cover_is_true_and_a_substitution_is_false_where_it_differs(thesis_table, thesis_release) -> None:
    assert false_cells(read_published(thesis_table, thesis_release)).share == 0.0
    changed = thesis_release.with_columns(pl.Series("idade", ["29", "29", "29", "42", "42", "41.5"]))
    found = false_cells(read_published(thesis_table, changed))
    assert found.by_column == {"idade": pytest.approx(3 / 6), "cep": 0.0}
    assert found.cells == 3 and found.share == pytest.approx(3 / 12)


def test_a_blank_published_for_a_value_and_an_interval_for_a_blank_are_false() -> None:
    table = numeric(["1", "2", None])
    assert false_cells(read_published(table, column("x", [None, "[1..2]", "[1..2]"]))).cells == 2
    assert false_cells(read_published(table, column("x", ["*", "*", "*"]))).cells == 0


def test_false_cells_are_refused_when_it_is_not_known_which_rows_are_missing() -> None:
    table = numeric(["1", "2", "3"])
    with pytest.raises(ParameterError, match="which rows were suppressed is not known"):
        false_cells(read_published(table, column("x", ["1", "3"])))
    kept = np.array([True, False, True])
    assert false_cells(read_published(table, column("x", ["1", "2"]), kept)).cells == 1


def test_discernibility_charges_the_class_and_for_suppressed_rows_the_table() -> None:
    found = discernibility(np.array([3, 2]), suppressed=1)
    assert found.value == 9 + 4 + 6
    assert found.normalized == pytest.approx(19 / 36)
    assert discernibility(np.array([6])).normalized == 1.0


def test_average_group_size_is_one_when_every_class_has_exactly_k_rows() -> None:
    assert average_group_size(np.array([5, 5, 5]), 5).normalized == 1.0
    assert average_group_size(np.array([5, 10]), 5).normalized == pytest.approx(1.5)
    assert average_group_size(np.array([5, 10])).to_dict() == {"mean": 7.5, "k": None, "c_avg": None}


def test_a_published_interval_is_spread_evenly_over_the_values_it_covers() -> None:
    table = numeric(["0", "1", "2", "2"])
    (found,) = distributions(read_published(table, column("x", ["[0..1]", "[0..1]", "2", "2"])))
    assert found.labels == ("0", "1", "2")
    assert found.before == found.after == (0.25, 0.25, 0.5)
    (moved,) = distributions(read_published(table, column("x", ["2", "2", "2", "2"])))
    assert moved.total_variation == pytest.approx(0.5)
    # A quarter moves the whole domain, a quarter half of it.
    assert moved.earth_mover == pytest.approx(0.25 * 1 + 0.25 * 0.5)


def test_a_mean_that_is_no_value_counts_at_the_nearest_one() -> None:
    table = numeric(["0", "1", "4", "5"])
    (found,) = distributions(read_published(table, column("x", ["0.4", "0.4", "4.7", "4.7"])))
    assert found.after == (0.5, 0.0, 0.0, 0.0, 0.0, 0.5)


def test_blanks_have_a_bin_of_their_own_and_suppressed_rows_are_absent_after() -> None:
    table = numeric(["1", "2", None, None])
    (found,) = distributions(read_published(table, column("x", ["1", None])))
    assert found.blank == 2 and found.before == (0.25, 0.25, 0.5) and found.after == (0.5, 0.0, 0.5)


def test_numbers_have_at_most_thirty_bins_and_all_rows_are_in_them() -> None:
    for values in ([str(n * n) for n in range(200)], [str(n / 7) for n in range(200)]):
        table = numeric(values)
        (found,) = distributions(read_published(table, column("x", ["*"] * 200)))
        assert 2 <= len(found.labels) <= 30
        assert sum(found.before) == pytest.approx(1) and sum(found.after) == pytest.approx(1)


def test_rare_categories_are_gathered_and_a_star_is_spread_over_all() -> None:
    values = [f"v{i:02}" for i in range(40) for _ in range(40 - i)]
    table = categorical(values)
    (found,) = distributions(read_published(table, column("c", ["*"] * len(values))))
    assert len(found.labels) == 20 and found.other == 19 and found.labels[0] == "v00"
    assert found.before[0] == pytest.approx(40 / 820)
    assert found.after[0] == pytest.approx(1 / 40) and found.after[19] == pytest.approx(21 / 40)
    assert found.earth_mover == found.total_variation > 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=20))
def test_spreading_keeps_all_weight_within_the_covers(covers) -> None:
    low = np.array([min(a, b) for a, b, _ in covers])
    high = np.array([max(a, b) for a, b, _ in covers])
    weight = np.array([float(w) for _, _, w in covers])
    slow = np.zeros(10)
    for a, b, w in zip(low, high, weight, strict=True):
        slow[a : b + 1] += w / (b - a + 1)
    assert np.allclose(spread(low, high, weight, 10), slow)
