"""What a stranger's tables showed: names under short headers, one e-mail in a column, places in two columns, wrong people."""

import random

import polars as pl
import pytest

from velado import anonymize
from velado.data.identifiers import Identifying, identifying_columns, person_columns, repeated_identifiers
from velado.data.inspect import inspect
from velado.data.io import read_table
from velado.text import told

GIVEN = ["Hunter", "Kwame", "Nigel", "Beatrice", "Ewan", "Imogen", "Callum", "Rhys", "Aoife", "Desmond"]
FAMILY = ["Okafor", "McAllister", "Larkin", "Whitfield", "O'Brien", "Pemberton", "Doyle", "Kowalski", "Patel"]


def judged(name: str, cells: list[str], **others: list[str]) -> Identifying | None:
    table = read_table(pl.DataFrame({name: cells, **others}))
    return {found.column: found for found in identifying_columns(table)}.get(name)


def visits(people: int = 60, rows: int = 10) -> dict[str, list[str]]:
    """A table of several rows a person: sex and birth of each, and a weight for every row."""
    drawn = random.Random(5)
    sexes = [drawn.choice("FM") for _ in range(people)]
    born = [f"{1940 + drawn.randrange(60)}-0{1 + drawn.randrange(9)}-11" for _ in range(people)]
    who = [i % people for i in range(people * rows)]
    return {
        "sexo": [sexes[i] for i in who],
        "nascimento": [born[i] for i in who],
        "peso": [str(40 + drawn.randrange(80)) for _ in who],
    }


@pytest.mark.parametrize("name", ["VISIT_PROV", "prov", "gp", "doc", "med"])
@pytest.mark.parametrize("form", ["Dr {f}", "{f}, {g}"])
def test_names_under_a_short_word_for_a_professional_are_nobody_of_the_table(name: str, form: str) -> None:
    drawn = random.Random(1)
    found = judged(name, [form.format(f=drawn.choice(FAMILY), g=drawn.choice(GIVEN)) for _ in range(200)])
    assert found is not None and found.kind == "name" and found.sure and not found.person


def test_provinces_and_drugs_under_the_same_words_stay() -> None:
    assert judged("prov", ["Sevilla", "Lugo", "Huelva", "Burgos"] * 50) is None
    assert judged("med", ["metformin", "losartan", "aspirin"] * 50) is None


def test_names_that_no_list_holds_are_doubtful_by_their_comma() -> None:
    drawn = random.Random(2)
    made = [
        "".join(drawn.choice("bdfglmnrst") + drawn.choice("aeiou") for _ in range(3)).title()
        for _ in range(90)
    ]
    found = judged("c1", [f"{drawn.choice(made)}, {drawn.choice(made)}" for _ in range(200)])
    assert found is not None and not found.sure


@pytest.mark.parametrize("form", ["{}.{}", "{}_{}", "{}{}"])
def test_joined_words_that_hardly_repeat_are_doubtful_though_no_list_holds_them(form: str) -> None:
    drawn = random.Random(8)
    made = [
        "".join(drawn.choice("bdfglmnrst") + drawn.choice("aeiou") for _ in range(3)).title()
        for _ in range(90)
    ]
    found = judged("c7", [form.format(drawn.choice(made), drawn.choice(made)) for _ in range(200)])
    assert found is not None and not found.sure
    assert judged("c7", ["lab.order", "lab.result", "visit.start"] * 60) is None


def test_trades_that_are_surnames_too_stay() -> None:
    assert (
        judged(
            "v3",
            ["Carpenter", "Baker", "Cook", "Nurse", "Farmer", "Driver", "Teacher", "Clerk", "Miner", "Potter"]
            * 30,
        )
        is None
    )


def test_a_script_whose_names_are_not_known_is_doubtful() -> None:
    cells = [f"{a}{b}" for a in "王李张刘陈杨" for b in "芳伟敏静丽强"]
    found = judged("a3", cells * 5)
    assert found is not None and not found.sure
    assert judged("a3", ["男", "女"] * 90) is None


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("z1@gmail.com", "email"),
        ("529.982.247-25", "cpf"),
        ("52998224725", "cpf"),
        ("52\u20619.982.2\u206647-25", "cpf"),
        ("ligar (85) 99609-1573", "phone"),
        ("ver instagram.com/zequinha", "url"),
    ],
)
def test_one_cell_in_fifty_thousand_is_enough_for_doubt(cell: str, kind: str) -> None:
    cells = ["casa", "alta", "retorno"] * 16_667
    cells[31_111] = cell
    found = judged("canal", cells)
    assert found is not None and found.kind == kind and not found.sure and not found.person


@pytest.mark.parametrize("cell", ["2023-01-02", "120/80", "1.5-2.0", "52998224724", "10:30", "A-12"])
def test_a_cell_that_only_looks_so_is_passed(cell: str) -> None:
    assert judged("canal", ["casa", "alta", *[cell] * 2] * 50) is None


@pytest.mark.parametrize("mark", ["\u2061", "\u2066", "\ufe0f", "\u180e", "\u034f", "\u200b"])
def test_signs_that_nobody_sees_hide_no_document(mark: str) -> None:
    found = judged("v", [f"529.{mark}982.247-2{i % 10}" for i in range(100)])
    assert found is not None and found.kind == "cpf"


def test_coordinates_in_two_columns_are_doubtful_together_only() -> None:
    drawn = random.Random(3)
    x = [f"{-38.5 + drawn.random() / 9:.5f}" for _ in range(300)]
    y = [f"{-3.7 + drawn.random() / 9:.5f}" for _ in range(300)]
    found = judged("f9", x, f10=y)
    assert found is not None and found.kind == "coordinates" and not found.sure
    assert judged("f9", x) is None
    scores = [f"{drawn.gauss(0, 1):.6f}" for _ in range(300)]
    assert judged("f9", scores, f10=scores[::-1]) is None
    shares = [f"{drawn.random():.6f}" for _ in range(300)]
    assert judged("f9", shares, f10=shares[::-1]) is None


@pytest.mark.parametrize(
    "name", ["cpf_medico", "cpf_responsavel", "email_contato", "cpf_mae", "emergency_phone_id"]
)
def test_the_number_of_somebody_else_is_no_person(name: str) -> None:
    drawn = random.Random(4)
    found = judged(name, [f"a{drawn.randrange(50)}@x.com" for _ in range(600)])
    assert found is not None and not found.person


def test_last_digits_are_no_person() -> None:
    found = judged("ssn4", [f"{i % 97:04d}" for i in range(300)])
    assert found is not None and not found.person


def test_a_few_emails_among_words_make_no_person() -> None:
    cells = [f"a{i}@x.com" if i % 20 == 0 else "sim" for i in range(600)]
    found = judged("extra", cells)
    assert found is not None and not found.person
    assert person_columns(read_table(pl.DataFrame({"extra": cells}))) == ()


def test_who_changes_sex_from_row_to_row_is_no_person() -> None:
    base = visits()
    drawn = random.Random(6)
    base["login"] = [f"u{drawn.randrange(40)}" for _ in base["sexo"]]
    base["matricula"] = [f"M{i % 60}" for i in range(600)]
    table = read_table(pl.DataFrame(base))
    assert person_columns(table) == ("matricula",)
    assert inspect(table).person == "matricula"


def test_people_are_counted_by_their_normal_form() -> None:
    base = visits(people=50, rows=6)
    spelt = ["P{}", "P{} ", " p{}", "P{}\u200b", "p{}", "P{}"]
    base["patient_id"] = [spelt[i // 50].format(i % 50) for i in range(300)]
    found = inspect(pl.DataFrame(base))
    assert found.person == "patient_id" and found.people == 50 and found.rows_per_person == 6.0


def test_devices_that_repeat_are_named_unless_rows_are_people() -> None:
    base = visits()
    base["imei"] = [str(350_000_000_000_000 + (i % 60) * 7919) for i in range(600)]
    table = read_table(pl.DataFrame(base))
    assert person_columns(table) == () and repeated_identifiers(table) == ("imei",)
    base["id_paciente"] = [str(i) for i in range(600)]
    assert repeated_identifiers(read_table(pl.DataFrame(base))) == ()
    assert repeated_identifiers(read_table(pl.DataFrame(visits()))) == ()


def test_a_number_that_repeats_shows_that_the_other_one_is_a_visits() -> None:
    base = visits()
    base["cpf_paciente"] = [f"X{i % 60}" for i in range(600)]
    base["id_paciente"] = [str(i) for i in range(600)]
    assert repeated_identifiers(read_table(pl.DataFrame(base))) == ("cpf_paciente",)


@pytest.mark.parametrize(
    ("name", "form"),
    [("DT_INTER", "%Y%m%d"), ("DTOBITO", "%d%m%Y"), ("v7", "%Y%m%d"), ("Dt Nasc", "%d/%m/%y")],
)
def test_days_in_digits_are_dates_that_can_be_generalized(name: str, form: str) -> None:
    days = pl.date_range(pl.date(1971, 1, 1), pl.date(2020, 12, 31), "41d", eager=True).dt.strftime(form)
    frame = pl.DataFrame({name: days, "dx": ["A", "B"] * (days.len() // 2) + ["A"] * (days.len() % 2)})
    tables = (
        [frame]
        if "/" in form or form == "%d%m%Y"
        else [frame, frame.with_columns(pl.col(name).cast(pl.Int64))]
    )
    for cells in tables:
        found = inspect(cells)
        column = found.schema.columns[name]
        assert (column.role, column.kind, column.format) == ("quasi", "date", form)
        assert anonymize(read_table(cells).with_schema(found.schema), k=5) is not None


def test_eight_digits_that_are_no_days_stay_numbers() -> None:
    found = inspect(pl.DataFrame({"DT_X": [str(20_230_000 + i * 37) for i in range(60)]}))
    assert found.schema.columns["DT_X"].kind != "date"


def test_a_column_of_one_value_is_no_quasi_identifier() -> None:
    found = inspect(pl.DataFrame({"cidade": ["Sobral"] * 60, "idade": [str(i) for i in range(60)]}))
    column = found.columns[0]
    assert column.role == "other" and column.publish
    assert told(column.why[-1], "pt") != column.why[-1]


@pytest.mark.parametrize("name", ["sx", "pc", "BAIRES", "NM_BAIRRO", "bairro"])
def test_short_words_for_sex_and_place_are_known_outside(name: str) -> None:
    assert inspect(pl.DataFrame({name: ["A1", "B2", "C3"] * 30})).columns[0].role == "quasi"
