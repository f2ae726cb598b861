"""What a second stranger's tables showed: identifiers in lists, as floats, under foreign headers, in odd forms of names."""

import random

import polars as pl
import pytest

from velado import anonymize
from velado.data.identifiers import Identifying, identifying_columns
from velado.data.inspect import inspect
from velado.data.io import read_table

GIVEN = ["Karen", "Robert", "Sofia", "Tiago", "Miguel", "Laura", "Susan", "Joana", "Pedro", "Helen"]
FAMILY = [
    "Johnson",
    "Torres",
    "Moreira",
    "Pacheco",
    "Thompson",
    "Silva",
    "Antunes",
    "Ortega",
    "Costa",
    "Lima",
]
DRAWN = random.Random(11)


def digits(size: int) -> str:
    return str(DRAWN.randrange(1, 10)) + "".join(DRAWN.choice("0123456789") for _ in range(size - 1))


def cpf() -> str:
    own = [DRAWN.randrange(10) for _ in range(9)]
    for first in (10, 11):
        rest = sum(one * weight for one, weight in zip(own, range(first, 1, -1), strict=True)) * 10 % 11
        own.append(0 if rest == 10 else rest)
    return "".join(map(str, own))


def name() -> str:
    return f"{DRAWN.choice(GIVEN)} {DRAWN.choice(FAMILY)}"


def judged(header: str, cells: list[str]) -> Identifying | None:
    table = read_table(pl.DataFrame({header: cells}))
    return {found.column: found for found in identifying_columns(table)}.get(header)


@pytest.mark.parametrize(
    "form", ["['{}']", '["{}"]', '{{"n":"{}"}}', "{{'n': '{}', 'a': 3}}", '"{}"', "('{}')"]
)
def test_a_name_in_a_list_or_an_object_is_a_name(form: str) -> None:
    found = judged("v4", [form.format(name()) for _ in range(90)])
    assert found is not None and found.kind == "name"


@pytest.mark.parametrize("second", ["", ", 'x'"])
def test_a_list_under_a_header_of_names_is_no_blank(second: str) -> None:
    found = judged("patient_name", [f"['Qx{i}rt Vw{i}'{second}]" for i in range(90)])
    assert found is not None and found.sure


def test_documents_and_places_in_lists_are_seen() -> None:
    assert judged("v4", [f"[{digits(9)}]" for _ in range(90)]) is not None
    assert judged("v4", [f"[{digits(9)}, {digits(9)}]" for _ in range(90)]) is not None
    places = [f"[{38 + DRAWN.random():.5f}, {40 + DRAWN.random():.5f}]" for _ in range(90)]
    found = judged("v4", places)
    assert found is not None and found.kind == "coordinates"


@pytest.mark.parametrize(
    "cell",
    [
        "[20..29]",
        "[1..5)",
        "[1, 5)",
        "(3;4]",
        "[20, 29]",
        "[2020-01-01..2020-02-01]",
        "[A00..B99]",
        "***",
        "[20..*]",
    ],
)
def test_an_interval_says_nothing_of_one_row(cell: str) -> None:
    assert judged("nome_paciente", [cell] * 60) is None


def test_lists_of_diagnoses_stay() -> None:
    assert judged("dx", ["['E11', 'I10']", "['I10']", "['J45']"] * 40) is None


SURE = [
    "utente",
    "NISS",
    "abonado",
    "suscriptor",
    "staffno",
    "NINO",
    "PPSN",
    "UHID",
    "Aadhaar",
    "HICN",
    "MBI",
    "personnummer",
    "Versichertennummer",
    "Personalnummer",
    "Kundennummer",
    "Mitgliedsnummer",
    "Straße",
    "Strasse",
    "Anschrift",
    "Telefon",
    "Handy",
    "pager",
    "Kto",
]
CODED = [
    "ficha",
    "nomina",
    "contrato",
    "caso",
    "cama",
    "leito",
    "candidate",
    "roll",
    "case",
    "episode",
    "encounter",
    "accession",
    "specimen",
    "tube",
    "barcode",
    "tag",
    "RFID",
    "extension",
    "membership",
    "loyalty",
    "medicare",
    "medicaid",
    "SIN",
    "CHI",
    "PAN",
    "CC",
    "BI",
    "token",
    "hash",
    "ticket",
    "PNR",
    "booking",
    "sid",
    "key",
    "seat",
    "Roll_No",
]


@pytest.mark.parametrize("header", SURE)
@pytest.mark.parametrize("each", [1, 8])
def test_headers_of_more_countries_are_known(header: str, each: int) -> None:
    found = judged(header, [digits(7) for _ in range(60)] * each)
    assert found is not None and found.sure


@pytest.mark.parametrize("header", ["Nachname", "Vorname", "Rufname", "Zuname", "Name", "nom", "prénom"])
def test_headers_of_names_are_known_though_no_list_holds_the_names(header: str) -> None:
    cells = [
        "".join(DRAWN.choice("bdfgl") + DRAWN.choice("aeiou") for _ in range(3)).title() for _ in range(60)
    ]
    found = judged(header, cells)
    assert found is not None and found.kind == "name"


@pytest.mark.parametrize("header", CODED)
@pytest.mark.parametrize("each", [1, 8])
def test_words_that_may_be_attributes_count_where_codes_stand_below(header: str, each: int) -> None:
    assert judged(header, [digits(6) for _ in range(60)] * each) is not None
    assert judged(header, ["yes", "no", "unknown", "second"] * 60) is None
    assert judged(header, [str(i % 9) for i in range(200)]) is None or header.lower() in (
        "roll_no",
        "case_no",
    )


def test_a_birthday_is_a_date_in_german_too() -> None:
    assert judged("Geburtsdatum", [f"1{i % 9}.03.19{50 + i % 40}" for i in range(90)]) is None


@pytest.mark.parametrize("form", ["{}.0", "{}.00", "{:.10E}", "[{}.0]"])
def test_a_document_written_as_a_float_is_a_document(form: str) -> None:
    numbers = [int(cpf()) for _ in range(90)]
    found = judged("v4", [form.format(float(n) if "E" in form else n) for n in numbers])
    assert found is not None and found.kind == "cpf" and found.sure
    table = read_table(pl.DataFrame({"v4": [float(n) for n in numbers]}))
    assert [found.kind for found in identifying_columns(table)] == ["cpf"]


def test_telephones_written_as_floats_are_held_back() -> None:
    assert judged("v4", [f"9{digits(8)}.0" for _ in range(90)]) is not None
    assert judged("v4", [f"{DRAWN.randrange(10, 99)}.{DRAWN.randrange(10)}E+05" for _ in range(90)]) is None


def test_a_day_with_more_digits_behind_is_a_document_unless_they_are_a_time() -> None:
    days = [f"19{DRAWN.randrange(30, 99)}0{DRAWN.randrange(1, 9)}1{DRAWN.randrange(9)}" for _ in range(90)]
    found = judged("v4", [day + digits(4) for day in days])
    assert found is not None and found.kind == "document"
    assert judged("v4", [f"{day}{DRAWN.randrange(10, 23)}{DRAWN.randrange(10, 59)}" for day in days]) is None


def test_long_numbers_that_hardly_repeat_are_held_back_and_amounts_are_not() -> None:
    assert judged("x5", [digits(8) for _ in range(600)]) is not None
    assert judged("x5", [str(DRAWN.randrange(10**5, 10**7)) for _ in range(600)]) is None


def login() -> str:
    return (DRAWN.choice(GIVEN)[0] + DRAWN.choice(FAMILY)).lower()


FORMS = {
    "S/o": lambda: f"S/o {name()}",
    "mother": lambda: f"Mãe: {name()}",
    "turned": lambda: f"{DRAWN.choice(FAMILY)}/{DRAWN.choice(GIVEN)}",
    "directory": lambda: f"CN={name()},OU=Staff,DC=corp",
    "domain": lambda: f"corp\\{login()}",
    "folder": lambda: f"C:\\Users\\{login()}\\notes.txt",
    "intranet": lambda: f"{login()}@intranet",
    "at": lambda: f"{login()} (at) mail.org",
    "login": login,
    "at dot": lambda: f"{login()}[at]mail[dot]org",
    "pipe": lambda: f"{DRAWN.choice(FAMILY)}|{DRAWN.choice(GIVEN)}",
    "numbered": lambda: f"{name()} ({DRAWN.randrange(9999)})",
    "number first": lambda: f"{DRAWN.randrange(9999)} - {name()}",
    "aged": lambda: f"{name()} - {DRAWN.randrange(9, 99)} anos",
    "letters": lambda: "".join(DRAWN.choice("BCDFGHJKLMNPQRSTVWXAEIOU") for _ in range(7)),
    "base64": lambda: "".join(DRAWN.choice("abcdefgHIJKLMN0123456789") for _ in range(12)),
    "german street": lambda: f"{DRAWN.choice(['Linden', 'Goethe', 'Haupt'])}straße {DRAWN.randrange(1, 99)}",
    "french street": lambda: f"{DRAWN.randrange(1, 99)} rue {DRAWN.choice(FAMILY)}",
    "german plate": lambda: f"KA-{DRAWN.choice('ABCD')}{DRAWN.choice('XYZ')} {DRAWN.randrange(1000, 9999)}",
    "place": lambda: (
        f"8FVC{DRAWN.choice('2345')}{DRAWN.choice('6789')}22+{DRAWN.choice('GHJM')}{DRAWN.choice('PQRV')}"
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("each", [1, 6])
def test_other_forms_of_names_are_seen(form: str, each: int) -> None:
    assert judged("v4", [FORMS[form]() for _ in range(120)] * each) is not None


@pytest.mark.parametrize("header", ["by", "entered_by", "Updated by"])
def test_logins_under_a_header_of_who_did_it_are_held_back(header: str) -> None:
    made = ["q" + "".join(DRAWN.choice("bdfgl") + DRAWN.choice("aeiou") for _ in range(3)) for _ in range(9)]
    assert judged(header, made * 20) is not None
    assert judged(header, ["phone", "mail", "desk"] * 20) is None


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("c1", ["Иванов", "Кузнецова", "Смирнов", "Петрова", "Соколов"]),
        ("c2", ["王芳", "李伟", "张敏", "赵军"]),
        ("c3", ["高橋", "小林", "田中"]),
        ("c4", ["فاطمة علي", "سارة حسن", "محمد عمر"]),
        ("c5", ["Παπαδόπουλος", "Νικολαΐδης", "Παπαδάκης"]),
        ("фамилия", ["Щур", "Кац", "Рау"]),
        ("姓名", ["甲乙", "丙丁", "戊己"]),
    ],
)
def test_few_names_of_another_script_are_held_back(header: str, cells: list[str]) -> None:
    assert judged(header, cells * 40) is not None


@pytest.mark.parametrize(
    "cells",
    [["男", "女"], ["мужской", "женский"], ["грипп", "астма", "гастрит", "отит"], ["内科", "外科", "小児科"]],
)
def test_words_of_another_script_stay(cells: list[str]) -> None:
    assert judged("c1", cells * 40) is None


def test_headers_that_are_people_are_held_back() -> None:
    people = [
        "Karen Johnson",
        "Robert Silva",
        "Emily Radcliffe",
        "Dwayne Lockhart",
        "Mary Driscoll",
        "James Ellison",
    ]
    others = ["ana.silva@clinic.pt", "529.982.247-25", "Dr. João Souza", "+351 912 345 678", "Q1 Ana Silva"]
    plain = ["week", "shift", "Blood Pressure", "Ward Round", "Heart Rate", "Marital Status"]
    frame = pl.DataFrame({header: ["8", "0", "12"] * 20 for header in [*people, *others, *plain]})
    assert {found.column for found in identifying_columns(read_table(frame))} == {*people, *others}


TRACES = """call 0171 1234567|call 0171/7654321|call +49 171 1234567|ligar 912 345 678|ligar 912345678|tel 612 345 678
tel 612345678|ring 07700 900123|ring 07700900123|app. 06 12 34 56 78|app. 0612345678|call 98765 43210|call 9876543210
call 2025550123|ligar 11987654321|cpf 52998224725|DE89 3704 0044 0532 0130 00|DE89370400440532013000|PT50000201231234567890154
card 4111 1111 1111 1111|card 4111111111111111|123e4567-e89b-12d3-a456-426614174000|from 10.90.242.44|DNI 12345678Z
NIF 236268071|at 38.72233, -9.13934|see https://x.org/a|call 415.555.7395
ana.silva (at) gmail.com|see MRN 8954787|ask @anasilva90|see www.kerhin.org""".replace("\n", "|").split("|")


@pytest.mark.parametrize("cell", TRACES)
def test_one_trace_in_a_column_of_states_is_enough_for_doubt(cell: str) -> None:
    cells = ["open", "done", "waiting for lab", "sent home"] * 250
    cells[777] = cell
    assert judged("status", cells) is not None


@pytest.mark.parametrize(
    "cell", ["12 of 30", "2024-01-05 10:30", "lot 4711", "100 000", "v1.2.3", "1/2/2024", "1.234,50"]
)
def test_states_with_a_few_digits_stay(cell: str) -> None:
    assert judged("status", ["open", "done", cell, "sent home"] * 100) is None


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["open", "done", "call ana@x.org"])])
def test_a_trace_in_a_column_of_categories_is_seen(dtype: pl.DataType) -> None:
    cells = pl.Series("status", ["open", "done"] * 300 + ["call ana@x.org"], dtype=dtype)
    assert [found.kind for found in identifying_columns(read_table(cells.to_frame()))] == ["email"]


def test_a_trace_far_from_the_sample_of_short_codes_is_seen() -> None:
    cells = ["A1", "B2"] * 20_000
    cells[31_111] = "ana@x.org"
    found = judged("canal", cells)
    assert found is not None and found.kind == "email"


HARMLESS = {
    "credit_card": ["Visa", "Amex", "none"],
    "contact": ["cellular", "telephone", "unknown"],
    "phone_calls": [str(n) for n in range(40)],
    "mobile_os": ["iOS", "Android"],
    "mobile_use_h": [str(n) for n in range(12)],
    "ip_days": [str(n) for n in range(31)],
    "url_clicks": [str(n) for n in range(120)],
    "contact_lenses": ["hard", "soft", "none"],
    "serial_7s": [str(n) for n in range(6)],
    "photo_aging": [str(n) for n in range(5)],
    "street_lights": ["yes", "no", "some"],
    "email_domain": ["gmail.com", "hotmail.com"],
    "phone_model": ["iPhone 12", "Pixel 6"],
    "device": ["mobile", "desktop", "tablet"],
    "hurricane": ["Katrina", "Andrew", "Maria", "Irma", "Harvey", "Sandy"],
    "No. of teeth": [str(n) for n in range(32)],
    "Nr. Kinder": [str(n) for n in range(5)],
    "tooth_no": [f"{a}{b}" for a in range(1, 5) for b in range(1, 9)],
    "admitted": [f"{d:02d}-{m}-2024" for d in range(1, 29) for m in ("Jan", "Feb", "Mar")],
    "seen": [f"{d}{m}2024" for d in range(10, 29) for m in ("JAN", "FEV", "MAR")],
    "week": [f"2024-W{n:02d}" for n in range(1, 53)],
    "at_hour": [f"{h:02d}:{m:02d}" for h in range(24) for m in range(0, 60, 7)],
}


@pytest.mark.parametrize("header", HARMLESS)
def test_what_only_sounds_like_an_identifier_is_free(header: str) -> None:
    cells = HARMLESS[header] * 40
    assert judged(header, cells[:2000]) is None
    found = inspect(
        pl.DataFrame({header: cells[:900], "age": [str(20 + i % 60) for i in range(len(cells[:900]))]})
    )
    assert found.person is None and found.schema.columns[header].published


@pytest.mark.parametrize("header", ["credit_card", "telefone", "contact", "email", "ip", "serial", "foto"])
def test_the_same_headers_count_where_numbers_stand_below(header: str) -> None:
    assert judged(header, [digits(6) for _ in range(50)] * 4) is not None
    assert judged(header, [name() for _ in range(50)]) is not None


def test_a_month_by_its_name_is_a_date() -> None:
    cells = [f"{d:02d}-{m}-2024" for d in range(1, 29) for m in ("Jan", "Feb", "Mar")]
    frame = pl.DataFrame({"admitted": cells, "sexo": ["F", "M"] * 42})
    found = inspect(frame).schema.columns["admitted"]
    assert (found.role, found.kind, found.format) == ("quasi", "date", "%d-%b-%Y")
    assert "admitted" in anonymize(frame, k=3).frame.columns
