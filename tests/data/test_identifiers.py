"""One judgement of what identifies: by header whatever the spread, by shape whatever the header, in doubt held back."""

import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from velado.data.identifiers import Identifying, identifying_columns, person_columns, read_header
from velado.data.inspect import inspect
from velado.data.io import read_table
from velado.data.samples import hospital_csv

from ..covering import one_in

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the labelled corpus stands beside its benchmark

from benchmarks import identifier_columns  # noqa: E402
from benchmarks.identifiers import (  # noqa: E402
    Judged,
    column_corpus,
    header_corpus,
    precision,
    recall,
)


def judged(name: str, cells: list[str | None], **others: list[str | None]) -> Identifying | None:
    frame = pl.DataFrame({name: cells, **others}, schema={key: pl.String for key in (name, *others)})
    return next(iter(identifying_columns(read_table(frame), [name])), None)


def made(maker: str, people: int, rows: int) -> list[str | None]:
    """Values of *people* people, repeated over *rows* rows."""
    import random

    drawn = random.Random(7)
    make: Callable[[random.Random, int], str] = identifier_columns.MAKERS[maker]
    values = [make(drawn, i) for i in range(people)]
    return [values[i % people] for i in range(rows)]


def test_the_labelled_headers_are_caught_and_little_else_is() -> None:
    parts = header_corpus()
    assert sum(len(part) for part in parts.values()) >= 200
    check(parts)


@pytest.mark.slow
def test_the_labelled_columns_are_caught_and_little_else_is() -> None:
    parts = column_corpus()
    assert sum(len(part) for part in parts.values()) >= 200
    check(parts)


def check(parts: dict[str, list[Judged]]) -> None:
    for title, part in parts.items():
        missed = [j.name for j in part if j.kind != "none" and not j.caught]
        assert recall(part) >= 0.98, (title, missed)
        assert precision(part) >= 0.9, title


@pytest.mark.parametrize("people", [2, 5, 50, 600])
@pytest.mark.parametrize(
    "name", ["patient_name", "cartao_sus", "nr_prontuario", "endereco", "IP", "placa", "member_no", "email"]
)
def test_a_header_counts_whatever_the_spread(name: str, people: int) -> None:
    found = judged(name, [f"k{i % people}" for i in range(600)])
    assert found is not None and found.sure


@pytest.mark.parametrize("people", [6, 50, 600])
@pytest.mark.parametrize(
    ("maker", "kind"),
    [
        ("cpf", "cpf"), ("cpf digits", "cpf"), ("cns", "cns"), ("rg", "rg"), ("ssn", "ssn"), ("dni", "document"),
        ("iban", "account"), ("card", "card"), ("email", "email"), ("phone br", "phone"), ("phone us", "phone"),
        ("phone es", "phone"), ("phone +", "phone"), ("url", "url"), ("ipv4", "ip"), ("ipv6", "ip"), ("mac", "mac"),
        ("uuid", "uuid"), ("point", "coordinates"), ("full", "name"), ("full caps", "name"), ("full turned", "name"),
        ("full lower", "name"), ("given", "name"), ("street", "address"), ("street en", "address"),
    ],
)  # fmt: skip
def test_a_shape_counts_whatever_the_header(maker: str, kind: str, people: int) -> None:
    found = judged("v7", made(maker, people, 600))
    assert found is not None and found.kind == kind and found.sure


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("v1", [f"ward {i % 9}" if i % 50 else f"mail ana{i}@x.org" for i in range(600)]),
        ("v1", ["ok" if i % 60 else "fone (31) 98888-7777" for i in range(600)]),
        ("v1", ["sem queixa" if i % 40 else "mora na Rua das Flores, 12" for i in range(600)]),
        ("v1", [f"{7 * i % 997 + 31900000000}" for i in range(600)]),
        ("study_id", [f"{i % 40}" for i in range(600)]),
        ("device", [f"d{i % 3}" for i in range(600)]),
        ("name", ["alpha", "beta", "gamma"] * 200),
        (
            "nome_municipio",
            [f"{n} {f}" for n in ("Ana", "Rui", "Eva") for f in ("Silva", "Souza", "Lima")] * 60,
        ),
    ],
)
def test_what_is_in_doubt_is_held_back_and_asked(name: str, cells: list[str | None]) -> None:
    found = judged(name, cells)
    assert found is not None and not found.sure
    frame = pl.DataFrame({name: cells, "sexo": ["F", "M"] * (len(cells) // 2)})
    column = inspect(read_table(frame)).columns[0]
    assert column.role != "identifier" and not column.publish and column.suspected == found.kind
    assert any("held back" in why for why in column.why)


@pytest.mark.parametrize(
    ("name", "maker"),
    [
        ("v1", "decimal"), ("v1", "icd"), ("v1", "count"), ("v1", "money"), ("cep", "cep"), ("v1", "date"),
        ("v1", "date digits"), ("v1", "time"), ("v1", "pressure"), ("v1", "blood"), ("v1", "town en"), ("v1", "drug"),
        ("v1", "job"), ("v1", "likert"), ("v1", "colour"), ("v1", "month"), ("v1", "gene"), ("v1", "big money"),
        ("v1", "test code"), ("v1", "loinc"), ("v1", "zip"), ("email", "yes"), ("telefone", "sim"), ("photo", "01"),
        ("latitude", "degrees coarse"), ("patient_name", "star"), ("cpf", "interval"), ("contact", "date"),
    ],
)  # fmt: skip
def test_what_only_looks_like_an_identifier_is_let_through(name: str, maker: str) -> None:
    assert judged(name, made(maker, 600, 600)) is None


def test_coordinates_count_from_three_decimals_on() -> None:
    fine = judged("longitude", made("degrees", 60, 600))
    assert fine is not None and fine.kind == "coordinates" and fine.sure and not fine.person
    assert judged("longitude", made("degrees coarse", 60, 600)) is None
    assert judged("longitude", ["-43.10", "-22.90", "-19.50"] * 20) is None


@pytest.mark.parametrize("star", ["*", "", None, "[20..29]", "[1..5)"])
def test_a_column_that_says_nothing_identifies_nobody(star: str | None) -> None:
    assert judged("nome_paciente", [star] * 50) is None
    mixed = judged("nome_paciente", [star] * 50 + ["Ana Souza"])
    assert mixed is not None and mixed.sure


def test_rare_cells_of_a_long_blank_column_are_seen() -> None:
    cells: list[str | None] = [None] * 200_000
    for i in range(40):
        cells[5_000 * i] = f"ana{i}@x.org"
    found = judged("v1", cells)
    assert found is not None and found.kind == "email"


@pytest.mark.parametrize("cell", ["ana\u200b@x.org", "ａｎａ@x.org", " ana@x.org\u00a0"])
def test_odd_spellings_hide_no_shape(cell: str) -> None:
    found = judged("v1", [cell, "rui@y.org"] * 10)
    assert found is not None and found.kind == "email" and found.sure


def test_a_period_of_the_rows_hides_nobody() -> None:
    # An evenly spaced sample of every tenth row would see the same blank-like word each time.
    cells = ["none" if i % 10 == 0 else f"user{i}@x.org" for i in range(50_000)]
    found = judged("v1", [*cells])
    assert found is not None and found.kind == "email"


@pytest.mark.parametrize(
    ("name", "person"),
    [
        ("patient_id", True), ("subject", True), ("cod_cliente", True), ("matricula", True), ("cpf", True),
        ("nome_paciente", True), ("member_id", True), ("id", True), ("student_no", True),
        ("visit_id", False), ("nr_internacao", False), ("session_id", False), ("doctor_id", False),
        ("nurse_name", False), ("device_id", False), ("household_id", False), ("mother_name", False),
        ("first_name", False), ("endereco", False), ("ip", False), ("placa", False), ("cpf_mae", False),
    ],
)  # fmt: skip
def test_who_is_a_person_is_told_by_the_header(name: str, person: bool) -> None:
    found = read_header(name)
    assert found is not None and found.person == person


def people(**columns: list[str]) -> tuple[str, ...]:
    return person_columns(read_table(pl.DataFrame(columns)))


def test_persons_are_the_columns_that_repeat_numbers_first() -> None:
    names = [str(name) for name in made("full", 50, 600)]
    ids = [f"P{i % 50:03d}" for i in range(600)]
    visits = [f"{90000 + i}" for i in range(600)]
    assert people(visit_id=visits, nome=names, patient_id=ids) == ("patient_id", "nome")
    assert people(visit_id=visits) == ()
    assert people(visit_id=[f"{90000 + i % 200}" for i in range(600)], device_id=ids, doctor_id=ids) == ()
    assert people(patient_id=[f"P{i}" for i in range(600)]) == ()
    assert people(patient_id=["P1", *(f"P{i}" for i in range(599))]) == ("patient_id",)


def test_two_people_may_share_a_name() -> None:
    shared = [f"Ana Souza{'abcdefghij'[i % 10]}" for i in range(8)] + ["Ana Souza", "Ana Souza"]
    assert people(nome=shared) == ()
    twice = [str(name) for name in made("full", 20, 60)]
    numbers = [f"P{i}" for i in range(60)]
    assert people(nome=twice) == ("nome",)
    assert people(nome=twice, patient_id=numbers) == ()  # everybody has a number of their own


def test_the_person_proposed_is_the_one_that_repeats() -> None:
    ids = [f"P{i % 50:03d}" for i in range(600)]
    found = inspect(
        pl.DataFrame({"visit_id": [str(i) for i in range(600)], "patient_id": ids, "sexo": ["F", "M"] * 300})
    )
    assert found.person == "patient_id" and found.rows_per_person == 12.0


HARMLESS = {
    "uci/cahousing.csv": {"ID"},
    "uci/cmc.csv": {"ID"},
    "uci/mgm.csv": {"ID"},
    "uci/credit_card_clients.csv": {"ID"},
    "adult/adult_arx.csv": set(),
    "adult/adult_clean.csv": set(),
    "adult/adult_subset.csv": set(),
    "regression/winequality-white.csv": set(),
    "regression/forestfires.csv": set(),
    "regression/bike_hour.csv": {"instant"},
    "regression/auto-mpg.csv": {"name"},
    "sdc/casc_census.csv": set(),
    "sdc/tarragona.csv": set(),
    "sdc/sdc_testdata2.csv": {"ori_hid"},
    "wef/wef.csv": {"ID"},
}


@pytest.mark.slow
@pytest.mark.parametrize("file", one_in(3, HARMLESS))
def test_no_harmless_column_of_a_known_table_is_lost(data_folder: Path, file: str) -> None:
    table = read_table(data_folder / file)
    assert {found.column for found in identifying_columns(table)} == HARMLESS[file]
    lost = {c.name for c in inspect(table).columns if not c.publish and "repeats" not in " ".join(c.why)}
    assert lost <= HARMLESS[file]


def test_the_bundled_sample_loses_only_what_identifies() -> None:
    found = {f.column: f for f in identifying_columns(read_table(hospital_csv()))}
    assert set(found) == {"cpf", "nome", "prontuario", "observacao"}
    assert not found["observacao"].sure and found["observacao"].kind == "free text"
