"""A transformed table passes the gate of every release, promises nothing, and is the same again under its key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import velado
from velado.data.keys import Key
from velado.data.schema import Column, Schema
from velado.errors import GuaranteeNotMet, IdentifierOpen, ParameterError, PersonUndecided, SchemaError
from velado.release.operations import (
    PRAM,
    Generalize,
    Impute,
    LocalSuppression,
    Mask,
    Permute,
    RoundNumbers,
    Suppress,
)

KEY, OTHER = Key(bytes(range(32))), Key(bytes(range(1, 33)))
ROWS = 60


def people(**more: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "cpf": [f"p{at:03d}" for at in range(ROWS)],
            "age": [str(20 + at) for at in range(ROWS)],
            "sex": ["FM"[at % 2] for at in range(ROWS)],
            "ill": [["flu", "gout", "cold"][at % 3] for at in range(ROWS)],
            **more,
        }
    )


def schema(**more: Column) -> Schema:
    columns = {
        "cpf": Column("cpf", "identifier", "text", person=True),
        "age": Column("age", "quasi", "numeric"),
        "sex": Column("sex", "quasi"),
        "ill": Column("ill", "sensitive"),
        **more,
    }
    return Schema(columns)


def test_identifiers_are_left_out_and_nothing_is_promised() -> None:
    made = velado.transform(people(), schema(), [Generalize("age", width=10)], key=KEY)
    assert made.frame.columns == ["age", "sex", "ill"]
    assert made.promise == "measured" and made.verdicts == ()
    assert set(made.frame["age"]) == {f"[{low}..{low + 9}]" for low in range(20, 80, 10)}


def test_an_identifier_that_nobody_declared_stops_the_run() -> None:
    mails = [f"ana{at}@hospital.br" for at in range(ROWS)]
    with pytest.raises(IdentifierOpen, match="contact"):
        velado.transform(
            people(contact=mails),
            schema(contact=Column("contact", "other")),
            [RoundNumbers("age", to=10)],
            key=KEY,
        )
    with pytest.raises(SchemaError):  # a column that the schema does not name is refused before
        velado.transform(people(contact=mails), schema(), [RoundNumbers("age", to=10)], key=KEY)


def _cpf(number: int) -> str:
    digits = [int(one) for one in f"{number:09d}"]
    for _ in range(2):
        weights = range(len(digits) + 1, 1, -1)
        digits.append(sum(a * b for a, b in zip(digits, weights, strict=True)) * 10 % 11 % 10)
    return "".join(map(str, digits))


NAMES = [
    f"{first} {last}"
    for first in ("Ana", "Bruno", "Carla", "Diego", "Elisa", "Fabio", "Gabriela", "Helena", "Igor", "Julia")
    for last in ("Lima", "Souza", "Ferreira", "Oliveira", "Carvalho", "Nascimento")
]
NUMBERS = [_cpf(785_476_131 - 7_919 * (37 * at % ROWS) ** 2) for at in range(ROWS)]


@pytest.mark.parametrize(
    ("cells", "column", "operation"),
    [
        (NAMES, Column("x7", "quasi", "text"), Mask("x7", keep=8)),
        (NAMES, Column("x7", "quasi", "categorical"), Permute("x7")),
        (NUMBERS, Column("x7", "quasi", "text"), Mask("x7", keep=9)),
        (NUMBERS, Column("x7", "quasi", "numeric"), Generalize("x7", width=10)),
    ],
    ids=["names", "names dealt out", "cpf", "numeric cpf"],
)
def test_what_identifies_people_does_not_slip_out_through_an_operation(
    cells: list[str], column: Column, operation: Mask | Permute | Generalize
) -> None:
    frame, meaning = people(x7=cells), schema(x7=column)
    with pytest.raises(IdentifierOpen, match="x7"):
        velado.transform(frame, meaning, [operation], key=KEY)
    with pytest.raises(IdentifierOpen, match="x7"):
        velado.anonymize(frame, meaning, "mondrian", k=2, operations=[operation], key=KEY)
    assert velado.transform(frame, meaning, [Suppress("x7")], key=KEY).aligned["x7"].unique().to_list() == [
        "*"
    ]
    signed = replace(column, identifier="accept", reason="invented people")
    made = velado.transform(frame, schema(x7=signed), [operation], key=KEY)
    assert [one.column for one in made.prepared.signed] == ["x7"]


def test_no_value_leaves_whole_through_a_mask() -> None:
    places = people(place=[["MG", "Ubá", "Viçosa", "X"][at % 4] for at in range(ROWS)])
    for side, expected in (("left", {"M*", "Ub*", "Viç***", "**"}), ("right", {"*G", "*bá", "***osa", "**"})):
        made = velado.transform(
            places, schema(place=Column("place", "quasi")), [Mask("place", keep=3, side=side)], key=KEY
        )
        assert set(made.aligned["place"]) == expected


def test_rows_of_a_person_nobody_declared_stop_the_run() -> None:
    frame = people().with_columns(pl.Series("cpf", [f"{at % 20:011d}" for at in range(ROWS)]))
    plain = schema(cpf=Column("cpf", "identifier", "text"))
    with pytest.raises(PersonUndecided):
        velado.transform(frame, plain, [RoundNumbers("age", to=10)], key=KEY)
    assert (
        velado.transform(frame, plain, [RoundNumbers("age", to=10)], key=KEY, per="row").aligned.height
        == ROWS
    )


def test_a_copy_of_a_quasi_identifier_stops_the_run() -> None:
    copy = people(years=[str(20 + at) for at in range(ROWS)])
    with pytest.raises(GuaranteeNotMet, match="years"):
        velado.transform(
            copy, schema(years=Column("years", "other", "numeric")), [Generalize("age", width=20)], key=KEY
        )


def test_the_same_table_and_key_give_the_same_release_and_another_key_another() -> None:
    operations = [Permute("ill"), PRAM("sex", stay=0.5)]
    first, again, other = (
        velado.transform(people(), schema(), operations, key=key).aligned for key in (KEY, KEY, OTHER)
    )
    assert first.equals(again) and not first.equals(other)


def test_local_suppression_gives_a_table_that_keeps_k_when_it_is_verified(tmp_path: Path) -> None:
    made = velado.transform(people(), schema(), [Generalize("age", width=7), LocalSuppression(4)], key=KEY)
    assert velado.measure(made).after.class_sizes.smallest >= 4
    assert made.promise == "measured"


def test_the_risk_is_measured_against_the_table_before() -> None:
    scores = velado.measure(velado.transform(people(), schema(), [RoundNumbers("age", to=20)], key=KEY))
    assert scores.before.uniqueness.unique_rows == ROWS
    # 20 becomes 20 for ages 20..29, 40 for 30..49, 60 for 50..69, 80 for 70..79; each with two sexes.
    assert scores.after.class_sizes.classes == 8 and scores.after.class_sizes.smallest == 5
    assert scores.after.rows.marketer == pytest.approx(8 / ROWS)
    assert scores.linkage is not None and scores.linkage.share < 0.5


def test_permuting_a_quasi_identifier_hides_nobody_by_uniqueness_but_from_linkage() -> None:
    scores = velado.measure(velado.transform(people(), schema(), [Permute("age")], key=KEY))
    assert scores.after.uniqueness.unique_rows == ROWS
    assert scores.linkage is not None and scores.linkage.share < 0.2


def test_no_operation_or_no_quasi_identifier_left_is_refused() -> None:
    with pytest.raises(ParameterError, match="No operation"):
        velado.transform(people(), schema(), [], key=KEY)
    with pytest.raises(ParameterError, match="no quasi-identifier"):
        velado.transform(people(), schema(), [Suppress("age"), Suppress("sex")], key=KEY)


def test_filled_blanks_are_told_to_the_owner_and_take_the_guarantee_away() -> None:
    frame = people().with_columns(
        pl.when(pl.int_range(ROWS) % 5 > 0).then(pl.col("age")).otherwise(None).alias("age")
    )
    made = velado.transform(frame, schema(), [Impute("age"), RoundNumbers("age", to=20)], key=KEY)
    assert made.aligned["age"].null_count() == 0
    (told,) = [text for text in made.warnings if "blanks of 'age'" in text]
    assert "12 blanks" in told and "20.0%" in told and told not in made.public_warnings
    release = velado.anonymize(frame, schema(), "mondrian", k=3, operations=[Impute("age")], key=KEY)
    assert release.promise == "measured" and all(verdict.holds for verdict in release.verdicts)


def test_a_column_that_leaves_unchanged_may_be_told_by_another() -> None:
    ages = [str(20 + at // 3) for at in range(ROWS)]
    copy = people(age=ages, years=ages)
    meaning = schema(years=Column("years", "other", "numeric"))
    made = velado.transform(copy, meaning, [PRAM("sex", stay=0.5)], key=KEY)
    assert made.aligned["age"].to_list() == made.aligned["years"].to_list()
    with pytest.raises(GuaranteeNotMet, match="years"):
        velado.anonymize(copy, meaning, "mondrian", k=3, operations=[PRAM("sex", stay=0.5)], key=KEY)


def test_local_suppression_does_not_take_the_rows_of_one_person_for_a_crowd() -> None:
    frame = people().with_columns(pl.Series("cpf", [f"{at // 3:011d}" for at in range(ROWS)]))
    with pytest.raises(ParameterError, match="counts rows"):
        velado.transform(frame, schema(), [LocalSuppression(3)], key=KEY)
    by_row = [Generalize("age", width=20), LocalSuppression(3)]
    assert velado.transform(frame, schema(), by_row, key=KEY, per="row").aligned.height == ROWS


def test_what_an_operation_levelled_or_emptied_is_not_blamed_on_the_file() -> None:
    made = velado.transform(people(), schema(), [Generalize("age", width=1000)], key=KEY)
    assert set(made.aligned["age"]) == {"[0..999]"}
    assert any("operations left one single value in 'age'" in text for text in made.warnings)
    with pytest.raises(ParameterError, match="operations left no value of 'age'"):
        velado.transform(people(), schema(), [Suppress("age", rare=5)], key=KEY)


def test_an_operation_that_comes_too_late_says_so() -> None:
    tens = Generalize("age", width=10)
    for late in (Generalize("age", width=20), RoundNumbers("age", to=5)):
        with pytest.raises(ParameterError, match="operation before made intervals"):
            velado.transform(people(), schema(), [tens, late], key=KEY)
