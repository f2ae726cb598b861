"""Rows are not counted as people while a column that nobody declared tells who is who."""

import random
from typing import Any

import polars as pl
import pytest

from velado.data.inspect import inspect
from velado.data.io import read_table
from velado.data.schema import Column, Schema
from velado.errors import IdentifierOpen, PersonUndecided
from velado.release.anonymize import anonymize
from velado.release.methods import Mondrian


def emergencies(people: int = 90, each: int = 8, **own: Any) -> pl.DataFrame:
    """Rows numbered by `lin`, and `q7`, a number that follows each person over *each* rows; *own* adds columns."""
    draw = random.Random(3)
    everyone = [
        {
            "q7": str(draw.randrange(100_000, 999_999)),
            "idade": str(draw.randrange(1, 90)),
            "sexo": draw.choice("FM"),
        }
        | {name: make(draw) for name, make in own.items()}
        for _ in range(people)
    ]
    rows = [person | {"espera": str(draw.randrange(300))} for person in everyone for _ in range(each)]
    draw.shuffle(rows)
    return pl.DataFrame([{"id": str(i + 1)} | row for i, row in enumerate(rows)])


def by_hand(frame: pl.DataFrame, **given: Column) -> Schema:
    known = {"idade": Column("idade", "quasi", "numeric"), "sexo": Column("sexo", "quasi")}
    return Schema({n: given.get(n) or known.get(n) or Column(n, "other") for n in frame.columns})


def test_the_number_of_the_row_is_no_person_where_another_number_repeats() -> None:
    frame = emergencies()
    found = inspect(frame)
    assert found.person is None
    assert not found.schema.columns["q7"].published and not found.schema.columns["id"].published
    with pytest.raises(PersonUndecided, match="q7"):
        anonymize(frame, found.schema, Mondrian(), k=3)


def test_a_row_number_declared_as_the_person_is_refused() -> None:
    frame = emergencies()
    schema = by_hand(frame, id=Column("id", "identifier", person=True), q7=Column("q7", publish=False))
    with pytest.raises(PersonUndecided, match="q7"):
        anonymize(frame, schema, Mondrian(), k=3)
    told = by_hand(frame, id=Column("id", "identifier"), q7=Column("q7", "identifier", person=True))
    assert anonymize(frame, told, Mondrian(), k=3).verdicts[0].unit == "people"


def test_rows_that_are_people_stay_so() -> None:
    found = inspect(emergencies(people=600, each=1, hospital=lambda draw: f"H{draw.randrange(40)}"))
    assert found.person == "id" and found.schema.columns["hospital"].published


def test_a_code_that_fixes_sex_and_age_links_rows_also_where_rows_are_people() -> None:
    frame = emergencies(code=lambda draw: "".join(draw.choice("ABCDEFGH") for _ in range(7)))
    schema = by_hand(frame, id=Column("id", "identifier"), q7=Column("q7", "identifier"))
    with pytest.raises(IdentifierOpen, match="code"):
        anonymize(frame, schema, Mondrian(), per="row", k=3)


def test_a_column_that_follows_a_held_back_number_is_refused_where_rows_are_people() -> None:
    frame = emergencies(height=lambda draw: f"{draw.uniform(150, 190):.2f}").drop("sexo", "id")
    frame = frame.with_columns(pl.Series("idade", [str(i % 60) for i in range(frame.height)]))
    schema = by_hand(frame.rename({"q7": "paciente"}), paciente=Column("paciente", "identifier"))
    with pytest.raises(IdentifierOpen, match="height"):
        anonymize(frame.rename({"q7": "paciente"}), schema, Mondrian(), per="row", k=3)


def test_chance_makes_no_person() -> None:
    draw = random.Random(9)
    rows = [
        {"idade": str(draw.randrange(90)), "sexo": draw.choice("FM"), "ward": str(draw.randrange(60))}
        for _ in range(400)
    ]
    assert inspect(read_table(pl.DataFrame(rows))).schema.columns["ward"].published


@pytest.mark.parametrize("name", ["utente", "v5"])
def test_the_ends_of_intervals_are_true_numbers_so_an_identifier_is_no_quasi_identifier(name: str) -> None:
    draw = random.Random(4)
    numbers = [str(draw.randrange(10**7, 10**8)) for _ in range(400)]
    frame = pl.DataFrame({name: numbers, "sexo": ["F", "M"] * 200})
    schema = by_hand(frame, **{name: Column(name, "quasi", "numeric")})
    with pytest.raises(IdentifierOpen, match=name):
        anonymize(frame, schema, Mondrian(), per="row", k=3)
    signed = Column(name, "quasi", "numeric", identifier="accept", reason="invented numbers")
    assert anonymize(frame, by_hand(frame, **{name: signed}), Mondrian(), per="row", k=3).signed


@pytest.mark.parametrize(
    "make",
    [
        lambda draw: "".join(draw.choice("ABCDEFGH") for _ in range(7)),
        lambda draw: (
            f"Via {draw.choice(['Verdi', 'Dante', 'Volta'])} {draw.randrange(999)}{draw.choice('abc')}"
        ),
        lambda draw: f"KA-{draw.choice('ABCD')}{draw.choice('XYZ')} {draw.randrange(9999)}",
    ],
)
def test_a_schema_by_hand_publishes_no_more_than_inspect_would(make: Any) -> None:
    frame = emergencies(people=500, each=1, x1=make).drop("id", "q7")
    assert not inspect(frame).schema.columns["x1"].published
    with pytest.raises(IdentifierOpen, match="x1"):
        anonymize(frame, by_hand(frame), Mondrian(), k=3)
    signed = Column("x1", identifier="accept", reason="invented")
    assert anonymize(frame, by_hand(frame, x1=signed), Mondrian(), k=3).signed


def test_a_row_number_that_repeats_once_is_no_person_either() -> None:
    frame = emergencies()
    ids = frame.get_column("id").to_list()
    frame = frame.with_columns(pl.Series("id", [ids[1], *ids[1:]]))
    assert inspect(frame).person is None
    schema = by_hand(frame, id=Column("id", "identifier", person=True), q7=Column("q7", publish=False))
    with pytest.raises(PersonUndecided, match="q7"):
        anonymize(frame, schema, Mondrian(), k=3)
