"""Minimal distortion, change of correlations and weighted information loss, worked out by hand on the thesis's table."""

import numpy as np
import polars as pl
import pytest

from velado.errors import ParameterError
from velado.measures.recoded_columns import read_published
from velado.measures.utility.correlation_change import correlation_change
from velado.measures.utility.minimal_distortion import minimal_distortion
from velado.measures.utility.weighted_loss import weight_scores, weighted_loss

ALL = (minimal_distortion, correlation_change, weighted_loss)


@pytest.mark.parametrize("measure", ALL)
def test_an_unchanged_table_lost_nothing(thesis_table, measure) -> None:
    assert measure(read_published(thesis_table, thesis_table.frame)) == pytest.approx(0, abs=1e-12)


def test_each_cell_that_was_generalized_is_one_unit(thesis_table, thesis_release) -> None:
    assert minimal_distortion(read_published(thesis_table, thesis_release)) == 1
    half = thesis_release.with_columns(thesis_table.frame.get_column("cep"))
    assert minimal_distortion(read_published(thesis_table, half)) == 0.5
    # A most common value is another value, even where it looks exact.
    replaced = thesis_table.frame.with_columns(pl.Series("idade", ["29", "29", "29", "40", "42", "43"]))
    assert minimal_distortion(read_published(thesis_table, replaced)) == pytest.approx(1 / 12)


def test_correlations_move_where_groups_are_all_that_is_left(thesis_table, thesis_release) -> None:
    # Before, a number beside six different places: RV = 1 / sqrt(5). After, two groups that say the same: RV = 1.
    found = correlation_change(read_published(thesis_table, thesis_release))
    assert found == pytest.approx(1 - 5**-0.25)
    flat = thesis_table.frame.with_columns(pl.lit("*").alias("cep"))
    assert correlation_change(read_published(thesis_table, flat)) == pytest.approx(5**-0.25)


def test_the_weighted_loss_is_that_of_equation_2_10(thesis_table, thesis_release) -> None:
    published = read_published(thesis_table, thesis_release)
    # Distances from the mean age 35.5: 6.5 5.5 6.5 4.5 6.5 7.5, ranked from the largest; every place is as rare as another.
    assert weight_scores(published.data).tolist() == [4.5, 4.0, 4.5, 3.5, 4.5, 5.0]
    first, second = np.sqrt(56.5), np.sqrt(57.5)
    lost = first * 3 * (1 / 14 + 1 / 2) + second * 3 * (3 / 14 + 1 / 2)
    assert weighted_loss(published) == pytest.approx(lost / ((first + second) * 3 * 2))


def test_rows_that_are_left_out_lost_everything(thesis_table, thesis_release) -> None:
    published = read_published(thesis_table, thesis_release[:3], kept=np.array([True] * 3 + [False] * 3))
    assert minimal_distortion(published) == 1
    alone, first = 3.5 + 4.5 + 5.0, np.sqrt(56.5) * 3
    wanted = (first * (1 / 14 + 1 / 2) + alone * 2) / ((first + alone) * 2)
    assert weighted_loss(published) == pytest.approx(wanted)
    for measure in ALL:
        with pytest.raises(ParameterError, match="which rows were suppressed"):
            measure(read_published(thesis_table, thesis_release[:3]))
