"""release(): nothing that breaks its promise can leave, whatever a method did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from velado.data.partition import Partition
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import (
    GuaranteeNotMet,
    ParameterError,
    SchemaError,
    SideDoorOpen,
    SuppressionLimitExceeded,
    TableError,
)
from velado.release.anonymize import anonymize
from velado.release.guarantees import KAnonymity, LDiversity
from velado.release.recoded import PublishedColumn, Recoded
from velado.release.recoders import Cover
from velado.release.verify import verify


@dataclass(frozen=True)
class Given:
    """A method that publishes the groups it is told to, right or wrong."""

    name: ClassVar[str] = "given"
    title: ClassVar[str] = "given groups"
    promise: ClassVar[str] = "guaranteed"
    cost: ClassVar[str] = "O(n)"
    source: ClassVar[str] = "test"
    takes: ClassVar[str] = "rows"
    labels: tuple[int, ...] = ()

    def anonymize(self, data, goal, random, progress):
        partition = Partition.of(np.array(self.labels))
        return Recoded(Cover().publish(data, partition), partition.kept, partition)


def people(ages=("20", "21", "30", "31", "50"), **extra):
    columns = {"age": {"role": "quasi", "kind": "numeric"}}
    frame = {"age": list(ages)}
    for name, (role, cells) in extra.items():
        columns[name] = {"role": role, "kind": "categorical", "side_door": "accept"}
        frame[name] = cells
    return Table.of(pl.DataFrame(frame), Schema.from_dict({"columns": columns}))


def run(table, labels, *guarantees, k=2, **options):
    return anonymize(table, table.schema, Given(labels), guarantees, k=k, **options)


def test_a_good_partition_is_published_as_its_covers():
    release = run(people(), (0, 0, 1, 1, 1))
    assert release.aligned["age"].to_list() == ["[20..21]", "[20..21]", "[30..50]", "[30..50]", "[30..50]"]
    assert release.promise == "guaranteed"
    assert release.verdicts[0].holds and release.verdicts[0].achieved == 2
    assert release.loss == pytest.approx((2 * 1 / 30 + 3 * 20 / 30) / 5)


def districts(rows: int, rows_of_a_person: int) -> Table:
    """Eight towns of one district each: whoever reads the district knows the town."""
    at = np.arange(8 * rows)
    frame = pl.DataFrame(
        {
            "person": [f"p{one}" for one in at // rows_of_a_person],
            "town": [f"town {one}" for one in at // rows % 4],
            "district": [f"district {one}" for one in at // rows],
        }
    )
    kinds = {
        "town": {"role": "quasi"},
        "person": {"role": "identifier", "person": True},
        "district": {"role": "other"},
    }
    return Table.of(frame, Schema.from_dict({"columns": kinds}))


@pytest.mark.parametrize(("rows", "of_a_person", "smallest"), [(3, 1, 3), (6, 2, 3)])
def test_a_door_that_leaves_fewer_than_k_is_refused_and_k_counts_people(rows, of_a_person, smallest):
    table = districts(rows, of_a_person)
    with pytest.raises(SideDoorOpen, match=f"'district'.*the smallest group has {smallest}, not 5"):
        run(table, (0,) * table.rows, k=5)


@pytest.mark.parametrize(("rows", "of_a_person"), [(5, 1), (10, 2)])
def test_a_door_that_leaves_k_people_stays_open(rows, of_a_person):
    table = districts(rows, of_a_person)
    assert [door.column for door in run(table, (0,) * table.rows, k=5).side_doors] == ["district"]


def test_a_group_of_one_never_leaves():
    with pytest.raises(GuaranteeNotMet, match=r"1 group with 1 row does not keep"):
        run(people(), (0, 0, 1, 1, 2))


def test_labels_of_a_method_are_not_trusted():
    @dataclass(frozen=True)
    class Liar(Given):
        def anonymize(self, data, goal, random, progress):
            honest = super().anonymize(data, goal, random, progress)
            column = data.columns[0]
            raw = PublishedColumn(
                column.name,
                column.codes,
                tuple(column.value_texts),
                np.arange(column.size, dtype=np.int32),
                np.arange(column.size, dtype=np.int32),
            )
            return Recoded((raw,), honest.kept, honest.partition)

    table = people()
    with pytest.raises(GuaranteeNotMet):
        anonymize(table, table.schema, Liar((0, 0, 1, 1, 1)), k=2)


def test_two_groups_published_alike_are_one_group():
    table = people(
        ("20", "20", "20", "20"),
    )
    table = table.with_schema(
        Schema.from_dict({"table": {"constant": "allow"}, "columns": table.schema.to_dict()["columns"]})
    )
    release = run(table, (0, 0, 1, 1), k=4)
    assert release.verdicts[0].achieved == 4


def test_failing_groups_are_suppressed_up_to_the_limit_and_no_further():
    release = run(people(), (0, 0, 1, 1, 2), suppression=0.2)
    assert release.suppressed == 1 and release.aligned.height == 4
    assert release.kept.tolist() == [True, True, True, True, False]
    assert release.losses["age"] == pytest.approx((2 * 1 / 30 * 2 + 1) / 5)
    with pytest.raises(SuppressionLimitExceeded, match=r"0\.2"):
        run(people(), (0, 0, 1, 1, 2), suppression=0.19)


def test_rows_a_method_suppresses_count_against_the_limit():
    with pytest.raises(SuppressionLimitExceeded, match="1 of 5"):
        run(people(), (0, 0, 1, 1, -1))
    assert run(people(), (0, 0, 1, 1, -1), suppression=0.2).suppressed == 1


def test_suppressing_everyone_is_an_error():
    with pytest.raises(GuaranteeNotMet):
        run(people(), (0, 1, 2, 3, 4), suppression=1.0)


def test_five_rows_of_one_patient_are_a_crowd_of_one():
    frame = pl.DataFrame({"patient": ["a", "a", "a", "b", "c"], "age": ["20", "21", "22", "50", "51"]})
    entries = {
        "patient": {"role": "identifier", "kind": "text", "person": True},
        "age": {"role": "quasi", "kind": "numeric"},
    }
    table = Table.of(frame, Schema.from_dict({"columns": entries}))
    with pytest.raises(GuaranteeNotMet, match="2 people, the weakest has 1"):
        run(table, (0, 0, 0, 1, 1))
    assert run(table, (0, 0, 0, 1, 1), per="row").verdicts[0].achieved == 2
    assert run(table, (0, 0, 0, 0, 0), k=3).verdicts[0].achieved == 3
    assert "patient" not in run(table, (0, 0, 0, 0, 0), k=3).frame.columns


def test_l_diversity_is_checked_on_every_sensitive_column():
    table = people(
        flu=("sensitive", ["a", "b", "a", "b", "a"]), gout=("sensitive", ["x", "x", "x", "y", "y"])
    )
    with pytest.raises(GuaranteeNotMet, match="l-diversity"):
        run(table, (0, 0, 1, 1, 1), LDiversity(2))
    assert run(table, (0, 0, 1, 1, 1), LDiversity(2, "flu")).verdicts[1].achieved == 2
    with pytest.raises(ParameterError, match="sensitive"):
        run(people(), (0, 0, 1, 1, 1), LDiversity(2))


def test_blanks_declared_as_suppressed_leave_before_the_method_runs():
    frame = pl.DataFrame({"age": ["20", None, "21", "22"], "note": ["a", "b", "c", "d"]})
    document = {
        "table": {"missing": "suppress"},
        "columns": {"age": {"role": "quasi", "kind": "numeric"}, "note": {"role": "other"}},
    }
    table = Table.of(frame, Schema.from_dict(document))
    release = run(table, (0, 0, 0), suppression=0.25)
    assert release.aligned["note"].to_list() == ["a", "c", "d"]
    assert release.kept.tolist() == [True, False, True, True]
    with pytest.raises(SuppressionLimitExceeded, match="blank"):
        run(table, (0, 0, 0))


@pytest.mark.parametrize("k", [1, 0, -3])
def test_k_below_two_hides_nobody(k):
    with pytest.raises(ParameterError, match="hides nobody"):
        run(people(), (0, 0, 1, 1, 1), k=k)


def test_more_than_there_are_rows_cannot_be_asked():
    with pytest.raises(ParameterError, match="cannot be made from 5"):
        run(people(), (0, 0, 0, 0, 0), k=6)


def test_a_constant_quasi_identifier_is_refused_unless_allowed():
    table = people(("20",) * 5)
    with pytest.raises(TableError, match="same value"):
        run(table, (0, 0, 0, 0, 0))


def test_without_a_quasi_identifier_there_is_no_promise_to_make():
    table = Table.of(pl.DataFrame({"a": ["1"]}), Schema.from_dict({"columns": {"a": {"role": "other"}}}))
    with pytest.raises(SchemaError, match="no published quasi"):
        run(table, (0,))


def test_untouched_columns_and_types_leave_exactly_as_they_came():
    frame = pl.DataFrame(
        {"n": [1, 2, 3, 4], "age": [20, 21, 30, 31], "d": [0.1, None, 0.3, 0.4], "s": ["007", "", None, "x"]}
    )
    entries = {name: {"role": "other", "kind": "text"} for name in ("n", "d", "s")}
    table = Table.of(
        frame, Schema.from_dict({"columns": {**entries, "age": {"role": "quasi", "kind": "numeric"}}})
    )
    release = run(table, (0, 0, 1, 1))
    assert release.aligned.columns == ["n", "age", "d", "s"]
    assert release.aligned.drop("age").equals(frame.drop("age"))
    assert release.aligned.schema["n"] == pl.Int64


def test_the_outcome_tells_result_promise_cost_and_how_without_a_cell():
    table = people(("20", "20", "35", "35"), name=("identifier", ["Ana", "Bia", "Caio", "Davi"]))
    release = run(table, (0, 0, 1, 1))
    text = str(release.facts()) + repr(release) + release._repr_html_()
    assert set(release.facts()) == {"result", "promise", "cost", "how"}
    assert "Ana" not in text and "35" not in text


def test_verify_trusts_the_file_alone():
    table = people(flu=("sensitive", ["a", "b", "a", "b", "a"]))
    frame = run(table, (0, 0, 1, 1, 1)).aligned
    good = verify(frame, table.schema, (KAnonymity(2), LDiversity(2)))
    assert good.holds and good.facts()["groups"] == 2
    assert not verify(frame, table.schema, (KAnonymity(3),)).holds
    assert not verify(table.frame, table.schema, (KAnonymity(2),)).holds


def test_verify_finds_an_identifier_that_was_left_in():
    frame = pl.DataFrame({"age": ["[1..9]"] * 4, "cpf": ["1", "2", "3", "4"]})
    entries = {
        "age": {"role": "quasi", "kind": "numeric"},
        "cpf": {"role": "identifier", "kind": "text", "person": True},
    }
    found = verify(frame, Schema.from_dict({"columns": entries}), (KAnonymity(2),))
    assert not found.holds and found.exposed == ("cpf",) and "cpf" in str(found.broken)
    clean = verify(frame.drop("cpf"), Schema.from_dict({"columns": entries}), (KAnonymity(2),))
    assert clean.holds and clean.people_unseen
