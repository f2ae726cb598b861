"""The bundled hospital table is what its documentation says, and nobody real stands in it."""

import csv
import re
import tomllib
from collections import Counter, defaultdict
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from velado.data.io import read_schema, read_table
from velado.data.samples import (
    SAMPLE_FOLDER,
    discharges_csv,
    discharges_schema,
    hospital_csv,
    hospital_schema,
    make_discharges,
)
from velado.data.samples.make_hospital import check_digits, main
from velado.data.schema import Schema
from velado.data.taxonomy import from_paths

COLUMNS = [
    "cpf", "nome", "prontuario", "sexo", "idade", "raca_cor", "municipio", "cep", "estado_civil",
    "escolaridade", "data_internacao", "dias_internado", "cid10", "desfecho", "custo_reais", "observacao",
]  # fmt: skip
OF_THE_PERSON = [
    "nome", "prontuario", "sexo", "raca_cor", "municipio", "cep", "estado_civil", "escolaridade",
]  # fmt: skip
TAXONOMIES = ["cid10", "escolaridade", "estado_civil", "idade", "municipio", "raca_cor"]
MADE_FILES = ["hospital.csv", "hospital.schema.toml", *(f"taxonomies/{name}.csv" for name in TAXONOMIES)]
# The first CEP of each state's ranges, and the state, as the postal service divides the country.
CEP_STATES = [
    (1000, "SP"), (20000, "RJ"), (29000, "ES"), (30000, "MG"), (40000, "BA"), (49000, "SE"), (50000, "PE"),
    (57000, "AL"), (58000, "PB"), (59000, "RN"), (60000, "CE"), (64000, "PI"), (65000, "MA"), (66000, "PA"),
    (68900, "AP"), (69000, "AM"), (69300, "RR"), (69400, "AM"), (69900, "AC"), (70000, "DF"), (72800, "GO"),
    (73000, "DF"), (73700, "GO"), (76800, "RO"), (77000, "TO"), (78000, "MT"), (79000, "MS"), (80000, "PR"),
    (88000, "SC"), (90000, "RS"),
]  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with hospital_csv().open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def visits(rows: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    """The rows of each patient, in order of time."""
    by_person = defaultdict(list)
    for row in rows:
        by_person[row["cpf"]].append(row)
    return [sorted(own, key=lambda row: row["data_internacao"]) for own in by_person.values()]


def level_lines(name: str) -> list[list[str]]:
    with (SAMPLE_FOLDER / "taxonomies" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=";"))


def admitted(row: dict[str, str]) -> date:
    return date.fromisoformat(row["data_internacao"])


def check_digit(digits: list[int]) -> int:
    """The digit that makes the sum of digit times weight (2 for the last digit, rising leftwards) fit."""
    rest = sum(digit * weight for weight, digit in enumerate(reversed(digits), start=2)) % 11
    return 0 if rest < 2 else 11 - rest


def test_the_table_has_2000_rows_of_1700_patients(rows: list[dict[str, str]]) -> None:
    assert list(rows[0]) == COLUMNS
    assert len(rows) == 2000
    assert len({row["cpf"] for row in rows}) == 1700
    assert len({row["prontuario"] for row in rows}) == 1700


def test_patients_have_one_to_five_admissions(visits: list[list[dict[str, str]]]) -> None:
    assert Counter(map(len, visits)) == {1: 1494, 2: 140, 3: 45, 4: 14, 5: 7}


def test_the_rule_of_the_check_digits_is_the_real_one() -> None:
    # 111.444.777-35 is the worked example found in descriptions of the CPF's rule.
    leading = [1, 1, 1, 4, 4, 4, 7, 7, 7]
    assert [check_digit(leading), check_digit([*leading, 3])] == [3, 5]
    assert check_digits(np.array([leading])).tolist() == [3]
    assert check_digits(np.array([[*leading, 3]])).tolist() == [5]


def test_both_check_digits_of_every_cpf_are_wrong(rows: list[dict[str, str]]) -> None:
    for cpf in {row["cpf"] for row in rows}:
        assert re.fullmatch(r"\d{3}\.\d{3}\.\d{3}-\d{2}", cpf)
        digits = [int(letter) for letter in cpf if letter.isdigit()]
        right = check_digit(digits[:9])
        assert digits[9] != right
        assert digits[10] not in {check_digit([*digits[:9], right]), check_digit(digits[:10])}


def test_what_belongs_to_a_person_is_the_same_in_all_rows(visits: list[list[dict[str, str]]]) -> None:
    for own in visits:
        assert len({tuple(row[name] for name in OF_THE_PERSON) for row in own}) == 1


def test_age_advances_with_the_date_of_admission(visits: list[list[dict[str, str]]]) -> None:
    advanced = 0
    for own in visits:
        for before, after in pairwise(own):
            apart = admitted(after) - admitted(before)
            years = int(after["idade"]) - int(before["idade"])
            assert apart.days / 365.25 - 1 < years < apart.days / 365.25 + 1
            advanced += years
    assert advanced > 0


def test_a_patient_is_in_one_bed_at_a_time_and_dies_last(visits: list[list[dict[str, str]]]) -> None:
    for own in visits:
        for before, after in pairwise(own):
            assert admitted(before) + timedelta(int(before["dias_internado"])) < admitted(after)
            assert before["desfecho"] != "obito"


def test_diagnoses_fit_sex_and_age(rows: list[dict[str, str]]) -> None:
    assert 65 <= len({row["cid10"] for row in rows}) <= 80
    for row in rows:
        code, age = row["cid10"], int(row["idade"])
        if code[0] == "O":
            assert row["sexo"] == "F" and 12 <= age <= 50
        if code in {"C53", "D25", "N80"}:
            assert row["sexo"] == "F"
        if code in {"C61", "N40"}:
            assert row["sexo"] == "M" and age >= 45
        if code[0] == "P":
            assert age == 0


def test_values_have_their_documented_form(rows: list[dict[str, str]]) -> None:
    for row in rows:
        assert row["sexo"] in {"F", "M"}
        assert 0 <= int(row["idade"]) <= 99
        assert re.fullmatch(r"\d{5}-\d{3}", row["cep"])
        assert date(2023, 1, 1) <= admitted(row) <= date(2024, 12, 31)
        assert row["desfecho"] in {"alta", "transferencia", "obito"}
        assert re.fullmatch(r"\d+\.\d\d", row["custo_reais"])
        assert all(row[name] for name in COLUMNS if name not in {"escolaridade", "observacao"})
    assert 20 <= sum(not row["escolaridade"] for row in rows) <= 100
    assert 50 <= sum(bool(row["observacao"]) for row in rows) <= 200


def test_the_postcode_lies_in_the_state_of_the_municipality(rows: list[dict[str, str]]) -> None:
    state_of = {line[0]: line[1][-3:-1] for line in level_lines("municipio")}
    for row in rows:
        prefix = int(row["cep"][:5])
        assert [state for first, state in CEP_STATES if first <= prefix][-1] == state_of[row["municipio"]]


def test_municipalities_are_uneven_and_from_all_regions(rows: list[dict[str, str]]) -> None:
    count = Counter(row["municipio"] for row in rows)
    assert 55 <= len(count) <= 65
    assert max(count.values()) >= 20 * min(count.values())
    region_of = {line[0]: line[2] for line in level_lines("municipio")}
    assert {region_of[name] for name in count} == {"Norte", "Nordeste", "Sudeste", "Sul", "Centro-Oeste"}


@pytest.mark.parametrize("name", TAXONOMIES)
def test_a_taxonomy_covers_every_value_of_its_column(name: str, rows: list[dict[str, str]]) -> None:
    # A blank is no leaf: the schema's missing = "value" says what becomes of it.
    leaves = {line[0] for line in level_lines(name)}
    assert {row[name] for row in rows} - {""} <= leaves


@pytest.mark.parametrize("name", TAXONOMIES)
def test_a_taxonomy_is_a_tree_in_which_no_label_has_two_meanings(name: str) -> None:
    lines = level_lines(name)
    assert len({len(line) for line in lines}) == 1
    assert {line[-1] for line in lines} == {"*"}
    taxonomy = from_paths(lines, name)
    assert taxonomy.leaves == len(lines)
    assert len(set(taxonomy.labels)) == len(taxonomy.labels)


def test_age_bands_hold_their_ages() -> None:
    lines = level_lines("idade")
    assert [line[0] for line in lines] == [str(age) for age in range(111)]
    for age, *bands, _ in lines:
        for label, width in zip(bands, (5, 10, 20), strict=True):
            low, high = map(int, label.split("-"))
            assert low <= int(age) <= high and high - low + 1 == width


def test_the_schema_names_every_column_with_its_role(rows: list[dict[str, str]]) -> None:
    schema = Schema.from_dict(tomllib.loads(hospital_schema().read_text(encoding="utf-8")))
    assert sorted(schema.columns) == sorted(COLUMNS)
    assert schema.person is not None and schema.person.name == "cpf"
    assert [column.name for column in schema.quasi] == [
        "sexo", "idade", "raca_cor", "municipio", "estado_civil", "escolaridade",
    ]  # fmt: skip
    assert [column.name for column in schema.sensitive] == ["cid10", "desfecho"]
    hidden = [name for name, column in schema.columns.items() if not column.published]
    assert sorted(hidden) == ["cep", "cpf", "nome", "observacao", "prontuario"]
    for name, column in schema.columns.items():
        if column.taxonomy is not None and column.taxonomy.file is not None:
            assert (hospital_schema().parent / column.taxonomy.file).is_file()
        if column.bounds is not None:
            assert all(column.bounds[0] <= float(row[name]) <= column.bounds[1] for row in rows)


def test_the_script_makes_the_same_bytes_again(tmp_path: Path) -> None:
    main(["--out", str(tmp_path / "again")])
    made = {path.relative_to(tmp_path / "again").as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert made == set(MADE_FILES)
    for name in MADE_FILES:
        assert (tmp_path / "again" / name).read_bytes() == (SAMPLE_FOLDER / name).read_bytes(), name


def test_the_discharges_are_made_again_byte_for_byte(tmp_path: Path) -> None:
    make_discharges.main(["--out", str(tmp_path)])
    for name in ("discharges.csv", "discharges.schema.toml"):
        assert (tmp_path / name).read_bytes() == (SAMPLE_FOLDER / name).read_bytes()


def test_who_comes_back_can_be_learned_from_what_a_release_leaves_as_it_is() -> None:
    table = read_table(discharges_csv(), read_schema(discharges_schema()))
    frame = table.frame
    assert table.rows == 6000 and frame["registro"].n_unique() == 6000
    back = (frame["reinternado"] == "sim").to_numpy()
    assert 0.3 < back.mean() < 0.4
    earlier = frame["internacoes_previas"].cast(int).to_numpy()
    assert back[earlier >= 3].mean() > back[earlier == 0].mean() + 0.3
    urgent = (frame["urgencia"] == "sim").to_numpy()
    assert back[urgent].mean() > back[~urgent].mean() + 0.08
    # Sex, town and schooling have no part in it beyond chance and the wards.
    schooling = frame["escolaridade"].to_numpy()
    shares = [back[schooling == one].mean() for one in np.unique(schooling)]
    assert max(shares) - min(shares) < 0.1
