"""All scores together, on a release and on two files."""

import json

import numpy as np
import polars as pl
import pytest

from velado.data.encode import EncodedTable
from velado.data.partition import Partition
from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table
from velado.measures import measured
from velado.measures.measured import MeasureSettings, measure, measure_files
from velado.release.anonymize import anonymize
from velado.release.goal import Goal, Progress
from velado.release.guarantees import KMap
from velado.release.methods.das import DAS
from velado.release.methods.mondrian import Mondrian
from velado.release.operations import RoundNumbers
from velado.release.recoded import Recoded
from velado.release.recoders import Centroid, Cover
from velado.release.release import Release
from velado.testing.examples import small_table


class InBlocks:
    """A method for tests: every k rows in order of the first column are a group, a rest is suppressed."""

    name = "blocks"
    title = "Blocks of rows"
    promise = "guaranteed"
    cost = "O(n log n)"
    source = "tests"
    takes = "rows"

    def __init__(self, k: int, recoder=None) -> None:
        self.k = k
        self.recoder = recoder or Cover()

    def anonymize(
        self, data: EncodedTable, goal: Goal, random: np.random.Generator, progress: Progress
    ) -> Recoded:
        order = np.argsort(data.columns[0].codes, kind="stable")
        labels = np.empty(data.rows, dtype=np.int64)
        labels[order] = np.arange(data.rows) // self.k
        labels[labels >= data.rows // self.k] = -1
        partition = Partition.of(labels)
        return Recoded(self.recoder.publish(data, partition), partition.kept, partition)


@pytest.fixture
def patients() -> Table:
    """31 rows with a blank, two rows a person at times, a flat and a levelled category."""
    ages = [str(20 + (7 * i) % 40) for i in range(31)]
    cities = [("ouro", "prata", "cobre", "ferro")[i % 4] for i in range(31)]
    frame = pl.DataFrame(
        {
            "who": [f"person-{i // 2}" for i in range(31)],
            "age": pl.Series([None if i == 5 else age for i, age in enumerate(ages)], dtype=pl.String),
            "city": cities,
            "ill": [("gripe-secreta", "asma-secreta")[i % 2] for i in range(31)],
        }
    )
    tree = TaxonomySpec("tree", tree={"nobre": ["ouro", "prata"], "comum": ["cobre", "ferro"]})
    columns = (
        Column("who", "identifier", "text", person=True),
        Column("age", "quasi", "numeric"),
        Column("city", "quasi", "categorical", taxonomy=tree),
        Column("ill", "sensitive", "categorical", side_door="accept"),
    )
    return Table.of(frame, Schema({column.name: column for column in columns}))


def blocks(table: Table, recoder=None, k: int = 4, **more) -> Release:
    return anonymize(table, table.schema, InBlocks(k, recoder), k=k, per="row", suppression=0.2, **more)


def test_a_release_is_charged_what_the_release_itself_says(patients) -> None:
    release = blocks(patients)
    scores = measure(release)
    assert scores.ncp is not None and scores.false_cells is not None
    assert scores.ncp.overall == pytest.approx(release.loss)
    assert scores.ncp.by_column == pytest.approx(release.losses)
    assert scores.published_rows == 28 and scores.ncp.suppressed == 3
    assert scores.false_cells.cells == 0
    assert scores.after.rows.prosecutor.highest == 1 / scores.after.class_sizes.smallest <= 1 / 4
    assert scores.average_group_size.k == 4


def test_rows_dropped_for_their_blanks_count_as_lost(patients) -> None:
    columns = [
        Column("age", "quasi", "numeric", missing="suppress") if column.name == "age" else column
        for column in patients.schema.columns.values()
    ]
    table = patients.with_schema(patients.schema.with_columns(columns))
    release = blocks(table)
    scores = measure(release)
    assert release.data.rows == 30 and scores.original_rows == 31
    assert scores.ncp is not None and scores.ncp.overall == pytest.approx(release.loss)
    assert scores.false_cells is not None and scores.false_cells.cells == 0


def test_the_same_release_as_two_files_gives_the_same_scores(patients) -> None:
    release = blocks(patients)
    inside = measure(release).to_dict()
    outside = measure_files(patients, release.aligned, kept=release.kept, k=4).to_dict()
    for document in (inside, outside):
        document["utility"]["ncp"].pop("charged_for")
    assert outside["utility"]["ncp"].pop("overall") == pytest.approx(inside["utility"]["ncp"].pop("overall"))
    assert outside["utility"]["ncp"].pop("by_column") == pytest.approx(
        inside["utility"]["ncp"].pop("by_column")
    )
    assert inside == outside


def test_without_knowing_the_missing_rows_only_counts_are_measured(patients) -> None:
    release = blocks(patients)
    scores = measure_files(patients, release.aligned)
    whole = measure(release)
    assert scores.ncp is not None and whole.ncp is not None
    assert scores.ncp.overall == pytest.approx(whole.ncp.overall)
    assert scores.discernibility == whole.discernibility
    assert scores.false_cells is None and scores.linkage is None and scores.after.people is None
    row_by_row = {"false cells", "record linkage", "risk by person", "variance inside groups (SSE)"}
    row_by_row |= {
        "cells changed (minimal distortion)",
        "change of correlations",
        "weighted information loss",
    }
    assert set(scores.not_measured) == row_by_row
    for reason in scores.not_measured.values():
        assert "which rows were suppressed is not known" in reason


def test_a_variant_that_needs_true_values_is_left_out_with_its_reason_when_rows_are_unknown(patients) -> None:
    scores = measure_files(patients, blocks(patients).aligned, settings=MeasureSettings(variant="gok"))
    assert scores.ncp is None and "needs the classes" in scores.not_measured["ncp"]


def test_a_substitution_has_false_cells_and_is_charged_for_its_group(patients) -> None:
    cover, centroid = measure(blocks(patients)), measure(blocks(patients, Centroid()))
    assert cover.ncp is not None and centroid.ncp is not None and centroid.false_cells is not None
    # The cover's own text may generalize further than its members, never less.
    assert centroid.ncp.overall == pytest.approx(cover.ncp.overall)
    assert centroid.false_cells.share > 0.3


def test_numbers_that_state_nothing_cannot_be_charged_when_rows_are_unknown(patients) -> None:
    frame = blocks(patients).aligned.with_columns(pl.lit("33.3").alias("age"))
    scores = measure_files(patients, frame)
    assert scores.ncp is None and "state no cover" in scores.not_measured["ncp"]


def test_no_cell_value_is_in_the_dictionary_and_it_is_plain_json(patients) -> None:
    text = json.dumps(measure(blocks(patients)).to_dict(), allow_nan=False)
    for secret in ("person-", "secreta", "ouro", "ferro", "nobre"):
        assert secret not in text
    assert '"variant": "leaves-1"' in text and "ouro" not in repr(measure(blocks(patients)))


def test_people_are_measured_before_and_after(patients) -> None:
    scores = measure(blocks(patients))
    assert scores.before.people is not None and scores.after.people is not None
    assert scores.before.people.units == 16 and scores.before.uniqueness.people == 16
    assert scores.after.people.prosecutor.highest < scores.before.people.prosecutor.highest == 1.0
    assert scores.before.uniqueness.unique_rows > scores.after.uniqueness.unique_rows == 0


def test_rows_in_another_order_are_noticed(patients) -> None:
    frame = patients.frame.drop("who")
    assert measure_files(patients, frame).notes == ()
    (note,) = measure_files(patients, frame.reverse().sort("ill")).notes
    assert "differs from the original row" in note


def test_an_operation_is_not_read_as_another_order_of_rows() -> None:
    table = small_table(age=("quasi", "numeric", "31 35 31 40"), fee=("other", "numeric", "101 202 303 404"))
    release = anonymize(table, table.schema, "mondrian", k=2, operations=[RoundNumbers(column="fee", to=100)])
    assert release.aligned["fee"].cast(str).to_list() != table.frame["fee"].cast(str).to_list()
    assert measure(release).notes == ()
    assert measure_files(table, release.aligned).notes != ()


def test_the_thesis_example_keeps_its_promise_of_three(thesis_table, thesis_release) -> None:
    scores = measure_files(thesis_table, thesis_release, k=3)
    assert scores.after.rows.prosecutor.highest == pytest.approx(1 / 3)
    assert scores.average_group_size.normalized == 1.0
    assert scores.discernibility.value == 18
    assert scores.before.uniqueness.unique_rows == 6
    assert scores.before.uniqueness.unique_rows_by_column == {"idade": 4, "cep": 6}
    assert scores.false_cells is not None and scores.false_cells.cells == 0


def test_das_read_from_its_file_is_charged_its_bins(data_folder) -> None:
    names = ["age", "education_num", "hours_per_week"]
    frame = pl.read_csv(data_folder / "adult" / "adult_clean.csv", infer_schema=False).select(names)
    table = Table.of(frame, Schema({name: Column(name, "quasi", "numeric") for name in names}))
    release = anonymize(table, table.schema, DAS())
    settings = MeasureSettings(variant="das-eq1", linkage=False)
    inside, outside = measure(release, settings), measure_files(table, release.aligned, settings=settings)
    assert inside.ncp is not None and outside.ncp is not None
    assert round(inside.ncp.overall, 4) == 0.1657
    assert outside.ncp.overall == pytest.approx(inside.ncp.overall, abs=1e-9)
    published = MeasureSettings(variant="das-eq1", divisor_columns=15, linkage=False)
    as_printed = measure(release, published).ncp
    assert as_printed is not None and round(as_printed.overall, 4) == 0.0331
    assert inside.false_cells is not None and inside.false_cells.share > 0.5
    assert inside.after.class_sizes.smallest == 1


def test_linkage_is_left_out_on_large_tables_unless_asked_for(patients, monkeypatch) -> None:
    monkeypatch.setattr(measured, "LINKAGE_ROWS", 10)
    left_out = measure(blocks(patients))
    assert left_out.linkage is None and "10" in left_out.not_measured["record linkage"]
    assert measure(blocks(patients), MeasureSettings(linkage=True)).linkage is not None
    assert measure(blocks(patients), MeasureSettings(linkage=False)).linkage is None


def test_each_person_is_looked_for_in_the_classes_of_their_own_rows(patients) -> None:
    release = blocks(patients)
    shown = release.aligned.select("age", "city").rows()
    who = patients.frame.filter(pl.Series(release.kept)).get_column("who").to_list()
    crowd: dict = {}
    for row, person in zip(shown, who, strict=True):
        crowd.setdefault(row, set()).add(person)
    worst: dict = {}
    for row, person in zip(shown, who, strict=True):
        worst[person] = max(worst.get(person, 0.0), 1 / len(crowd[row]))
    found = measure(release).after.people
    assert found is not None and found.units == len(worst)
    assert found.prosecutor.mean == pytest.approx(sum(worst.values()) / len(worst))


def test_the_journalist_looks_among_the_population_the_release_was_checked_against():
    frame = pl.DataFrame({"age": [str(20 + at % 10) for at in range(40)]})
    table = Table.of(frame, Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}}))
    everyone = pl.concat([frame, frame, frame])
    alone = measure(anonymize(table, table.schema, Mondrian(), k=4))
    among = measure(anonymize(table, table.schema, Mondrian(), (KMap(12),), population=everyone, k=4))
    assert alone.after.rows.journalist.highest == alone.after.rows.prosecutor.highest == 1 / 4
    assert among.after.rows.prosecutor.highest == 1 / 4 and among.after.rows.journalist.highest == 1 / 12
    assert among.to_dict()["risk"]["after"]["by_row"]["journalist"]["basis"] == "population class sizes"
