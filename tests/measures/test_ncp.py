"""The normalized certainty penalty, each variant on a case worked out by hand and on published figures."""

import numpy as np
import polars as pl
import pytest

from velado.data.encode import EncodedColumn, EncodedTable, encode
from velado.data.partition import Partition
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.errors import ParameterError
from velado.measures.recoded_columns import read_published
from velado.measures.utility.ncp import Covers, normalized_certainty_penalty

CITY = TaxonomySpec("tree", tree={"north": ["a", "b"], "south": ["c", "d", "e"]})


@pytest.fixture
def data() -> EncodedTable:
    """Six rows: a number 0..10 with bounds 0..20, a two-level category with one unused leaf."""
    frame = pl.DataFrame({"x": ["0", "4", "4", "8", "10", "10"], "city": ["a", "b", "a", "c", "d", "d"]})
    schema = Schema(
        {
            "x": Column("x", "quasi", "numeric", bounds=(0, 20)),
            "city": Column("city", "quasi", "categorical", taxonomy=CITY),
        }
    )
    return encode(Table.of(frame, schema))


@pytest.fixture
def halves() -> Partition:
    return Partition.of(np.array([0, 0, 0, 1, 1, 1]))


def tight(data: EncodedTable, partition: Partition) -> list[Covers]:
    out = []
    for column in data.columns:
        low, high = partition.least_and_greatest(column.codes)
        labels = np.maximum(partition.labels, 0)
        out.append(Covers(low[labels], high[labels]))
    return out


@pytest.mark.parametrize(
    ("variant", "x", "city"),
    [
        # Widths 4 and 2 of a domain of 20; nodes with 2 and 3 of 5 leaves (e is never seen).
        ("leaves-1", (4 / 20 + 2 / 20) / 2, (1 / 4 + 2 / 4) / 2),
        ("leaves/total", (4 / 20 + 2 / 20) / 2, (2 / 5 + 3 / 5) / 2),
        ("sets", (4 / 20 + 2 / 20) / 2, (1 / 4 + 2 / 4) / 2),  # the taxonomy is not flat
        ("thesis", (4 / 10 + 2 / 10) / 2, (2 / 5 + 3 / 5) / 2),
        ("thesis-distinct", (4 / 10 + 2 / 10) / 2, (2 / 4 + 3 / 4) / 2),
    ],
)
def test_each_variant_gives_what_its_equation_says(data, halves, variant, x, city) -> None:
    found = normalized_certainty_penalty(data, tight(data, halves), variant=variant, partition=halves)
    assert found.by_column["x"] == pytest.approx(x, abs=1e-12)
    assert found.by_column["city"] == pytest.approx(city, abs=1e-12)
    assert found.overall == pytest.approx((x + city) / 2, abs=1e-12)
    assert found.to_dict()["variant"] == variant


def test_the_gok_equations_multiply_by_deviation_and_by_class_share(data, halves) -> None:
    found = normalized_certainty_penalty(data, tight(data, halves), variant="gok", partition=halves)
    whole = np.std([0, 4, 4, 8, 10, 10])
    x = (0.4 * np.std([0, 4, 4]) / whole + 0.2 * np.std([8, 10, 10]) / whole) / 2
    city = (1 / 3 * 3 / 6 + 1 / 3 * 3 / 6) / 2
    assert found.by_column["x"] == pytest.approx(x, abs=1e-12)
    assert found.by_column["city"] == pytest.approx(city, abs=1e-12)


def test_a_flat_category_is_charged_for_the_set_of_its_values() -> None:
    frame = pl.DataFrame({"c": ["a", "b", "a", "c", "d", "e"]})
    spec = TaxonomySpec("flat")
    data = encode(Table.of(frame, Schema({"c": Column("c", "quasi", "categorical", taxonomy=spec)})))
    halves = Partition.of(np.array([0, 0, 0, 1, 1, 1]))
    covers = tight(data, halves)
    sets = normalized_certainty_penalty(data, covers, variant="sets", partition=halves)
    assert sets.overall == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert normalized_certainty_penalty(data, covers).overall == 1.0


def test_suppressed_rows_and_rows_the_method_never_saw_count_one(data, halves) -> None:
    kept = np.array([True, True, True, False, False, False])
    found = normalized_certainty_penalty(data, tight(data, halves), kept, rows=8)
    assert found.by_column["x"] == pytest.approx((3 * 4 / 20 + 5) / 8)
    assert found.suppressed == 5 and found.rows == 8


def test_untouched_values_cost_nothing_and_everything_suppressed_costs_one(data) -> None:
    same = [Covers(column.codes, column.codes) for column in data.columns]
    for variant in ("leaves-1", "leaves/total", "thesis", "das-eq1"):
        assert normalized_certainty_penalty(data, same, variant=variant).overall == 0.0
        none = np.zeros(6, dtype=bool)
        assert normalized_certainty_penalty(data, same, none, variant).overall == 1.0


def test_a_stated_interval_is_charged_for_its_own_width(thesis_table, thesis_release) -> None:
    # Tables 2.1 and 2.2 of the thesis: ages 29..43 published as [20..30] and [40..50], postal codes by prefix.
    published = read_published(thesis_table, thesis_release)
    covers = published.covers()
    assert covers is not None
    found = normalized_certainty_penalty(published.data, covers)
    assert found.by_column["idade"] == pytest.approx(10 / 14)
    assert found.by_column["cep"] == pytest.approx(2 / 5)
    tight_only = [Covers(cover.low, cover.high) for cover in covers]
    assert normalized_certainty_penalty(published.data, tight_only).by_column["idade"] == pytest.approx(
        (1 / 14 + 3 / 14) / 2
    )


def test_classes_are_needed_for_variants_that_read_true_values(data, halves) -> None:
    covers = tight(data, halves)
    for variant in ("gok", "sets"):
        with pytest.raises(ParameterError, match="needs the classes"):
            normalized_certainty_penalty(data, covers, variant=variant)
    with pytest.raises(ParameterError, match="not known"):
        normalized_certainty_penalty(data, covers, variant="ncp")  # type: ignore[arg-type]


def separatrix_covers(column: EncodedColumn, bins: int) -> Covers:
    """DAS's bins, cut here by NumPy's own percentiles so that the check does not rest on our method."""
    assert column.points is not None
    values = column.points[column.codes]
    percents = [100 * i / bins for i in range(1, bins)]
    cuts = np.percentile(values, percents, method="closest_observation")
    groups = Partition.of(np.searchsorted(cuts, values, side="left"))
    low, high = groups.least_and_greatest(column.codes)
    return Covers(low[groups.labels], high[groups.labels])


@pytest.mark.parametrize(
    ("path", "bins", "divisor", "expected"),
    [
        ("adult/adult_clean.csv", {"age": 8, "education_num": 5, "hours_per_week": 9}, None, 0.1657),
        ("adult/adult_clean.csv", {"age": 8, "education_num": 5, "hours_per_week": 9}, 15, 0.0331),
        ("wef/wef.csv", {"Age": 4, "Height(cm)": 6, "Weight(kg)": 6}, None, 0.16906),
    ],
)
def test_the_das_papers_figures_follow_from_its_equation_and_its_divisor(
    data_folder, path, bins, divisor, expected
) -> None:
    frame = pl.read_csv(data_folder / path, infer_schema=False).select(list(bins))
    data = encode(Table.of(frame, Schema({name: Column(name, "quasi", "numeric") for name in bins})))
    covers = [separatrix_covers(column, bins[column.name]) for column in data.columns]
    found = normalized_certainty_penalty(data, covers, variant="das-eq1", divisor_columns=divisor)
    digits = len(str(expected)) - 2
    assert round(found.overall, digits) == expected
