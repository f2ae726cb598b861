"""inspect() proposes roles and kinds a person would, counts who is unique, and never repeats a cell."""

import json
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.identifiers import header_says, header_words, valid_cns_share, valid_cpf_share
from velado.data.inspect import ColumnFinding, Inspection, best_sets, inspect, separation
from velado.data.io import parse_csv, read_schema, read_table
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Schema
from velado.data.schema_draft import schema_toml
from velado.data.table import Table

NAMES = ["Ana", "Bruno", "Célia", "Davi", "Eva", "Fábio", "Gil"]
FAMILIES = ["Souza", "da Silva", "dos Santos", "Lima", "Reis"]


def look(cells: dict[str, list[str | None]]) -> Inspection:
    return inspect(read_table(pl.DataFrame(cells, schema={name: pl.String for name in cells})))


def column(name: str, cells: list[str | None]) -> ColumnFinding:
    """The finding about one column that stands beside a plain one."""
    filler: list[str | None] = ["x" if i % 3 else "y" for i in range(len(cells))]
    return look({name: cells, "filler": filler}).columns[0]


def with_check_digits(body: str) -> str:
    """A number with the two check digits of a CPF, worked out one digit at a time."""
    for _ in range(2):
        rest = sum(int(d) * w for d, w in zip(body, range(len(body) + 1, 1, -1), strict=True)) % 11
        body += "0" if rest < 2 else str(11 - rest)
    return body


CPFS = [with_check_digits(f"{123456789 + 7919 * i:09d}") for i in range(40)]


def test_the_rule_of_the_cpf_knows_right_from_wrong() -> None:
    # 529.982.247-25 and 111.444.777-35 are the usual worked examples of the rule.
    assert valid_cpf_share(pl.Series(["52998224725", "11144477735"])) == 1.0
    assert valid_cpf_share(pl.Series(["52998224724", "11144477753", "11111111111", "123"])) == 0.0
    assert valid_cpf_share(pl.Series(CPFS)) == 1.0


def test_the_rule_of_the_cns_knows_right_from_wrong() -> None:
    bodies = [f"7{i:013d}" for i in range(1, 60)]
    weighed = [(b, sum(int(d) * w for d, w in zip(b, range(15, 1, -1), strict=True)) % 11) for b in bodies]
    right = [b + str(11 - rest if rest else 0) for b, rest in weighed if rest != 1]
    wrong = [number[:-1] + str((int(number[-1]) + 1) % 10) for number in right]
    assert valid_cns_share(pl.Series(right)) == 1.0
    assert valid_cns_share(pl.Series(wrong)) == 0.0
    assert column("carteira", [*right]).identifier == "cns"


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("a", [f"{c[:3]}.{c[3:6]}.{c[6:9]}-{c[9:]}" for c in CPFS], "cpf"),
        ("a", [f"{c[:3]}.{c[3:6]}.{c[6:9]}-00" for c in CPFS], "cpf"),
        ("a", CPFS, "cpf"),
        ("CPF do paciente", [c[:9] + "00" for c in CPFS], "cpf"),
        ("a", [f"user{i}@example.org" for i in range(40)], "email"),
        ("a", [f"(31) 9{8000 + i}-1234" for i in range(40)], "phone"),
        ("a", [f"+44 20 7946 {1000 + i}" for i in range(40)], "phone"),
        ("celular", [f"3198{1000000 + 997 * i}" for i in range(40)], "phone"),
        ("a", [f"{n} {f}" for n in NAMES for f in FAMILIES], "name"),
        ("Nome", [f"{n.lower()} {f.lower()}" for n in NAMES for f in FAMILIES], "name"),
        ("prontuário", [str(90000 + 37 * i) for i in range(40)], "record"),
        ("patient_id", [f"P-{i % 30}" for i in range(40)], "record"),
        ("a", [str(i + 1) for i in range(40)], "record"),
        ("a", [f"{i:08x}-0000-4000-8000-{i:012x}" for i in range(40)], "uuid"),
        ("passaporte", [f"FX{100000 + i}" for i in range(40)], "document"),
        ("endereço", [f"Rua das Flores, {i}" for i in range(40)], "address"),
    ],
)
def test_a_direct_identifier_is_recognised(name: str, cells: list[str | None], kind: str) -> None:
    finding = column(name, cells)
    assert finding.identifier == kind
    assert finding.role == "identifier"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("idade", [str(20 + i) for i in range(40)]),
        ("capacidade", [str(100 * i * i) for i in range(40)]),
        ("race_id", [str(i % 4) for i in range(40)]),
        ("nome_municipio", [f"{n} {f}" for n in NAMES for f in FAMILIES]),
        ("cep", [f"{36570 + i}-000" for i in range(40)]),
        ("custo", [f"{i * i}.75" for i in range(40)]),
        ("data", [f"2024-01-{1 + i % 28:02d}" for i in range(40)]),
        ("number", [str(10_000_000_000 + 1_234_567 * i) for i in range(40)]),
    ],
)
def test_what_only_looks_like_an_identifier_is_none(name: str, cells: list[str | None]) -> None:
    assert column(name, cells).identifier is None


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("x", ["1", "2.5", "-3e2", "7"], "numeric"),
        ("x", ["1,5", "2", "-3,25", "7"], "numeric"),
        ("x", ["007", "012", "100", "3"], "categorical"),
        ("x", ["0", "1", "0", "1"], "categorical"),
        ("zip", ["36570000", "36571000", "36572000", "36573000"], "categorical"),
        ("x", ["1", "2", "inf", "4"], "categorical"),
        ("x", ["1", "2", "three", "4"], "categorical"),
        ("x", ["2024-01-31", "2023-12-01", None, "2020-02-29"], "date"),
        ("x", ["31/01/2024", "01/12/2023", None, "29/02/2020"], "date"),
        ("x", ["31/01/2024", "01/32/2023", "01/01/2020", "02/02/2020"], "categorical"),
        ("x", ["red", "green", "red", "blue"], "categorical"),
        ("observação", ["seen on Monday", "came with mother", None, None], "text"),
        ("x", [None, None, None, None], "text"),
    ],
)
def test_the_kind_of_a_column_is_found_from_its_cells(name: str, cells: list[str | None], kind: str) -> None:
    assert column(name, cells).kind == kind


def test_the_form_of_dates_and_the_decimal_comma_enter_the_schema() -> None:
    found = look({"visit": ["31/01/2024", "01/12/2023"], "cost": ["1,5", "2,25"], "sexo": ["F", "M"]})
    assert found.schema.columns["visit"].format == "%d/%m/%Y"
    three = look({"cost": ["1,5", "2,25", "3"], "sexo": ["F", "M", "F"]})
    assert three.schema.decimal == ","
    assert look({"cost": ["1.5", "2.25", "3"], "sexo": ["F", "M", "F"]}).schema.decimal == "."


def test_texts_that_mean_no_value_are_proposed_as_they_stand() -> None:
    found = look({"age": ["1", "NA", "3", " ?", "5"], "sex": ["F", "M", "-", "F", None]})
    assert set(found.schema.missing_values) == {"", "NA", " ?", "-"}
    age, sex = found.columns
    assert (age.kind, age.missing, age.distinct) == ("numeric", 2, 3)
    assert (sex.missing, sex.distinct) == (2, 2)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Sexo", "quasi"), ("dataNascimento", "quasi"), ("CODMUNRES", "quasi"), ("Raça/Cor", "quasi"),
        ("birth date", "quasi"), ("diagnóstico", "sensitive"), ("DIAG_PRINC", "sensitive"), ("salary", "sensitive"),
        ("velocidade", "other"), ("average", "other"),
    ],
)  # fmt: skip
def test_a_header_hints_at_the_role_in_both_languages(name: str, role: str) -> None:
    found = look({name: ["a", "b", "a", "c"], "sex": ["F", "M", "M", "F"]})
    assert found.columns[0].role == role


def test_headers_are_read_without_case_accents_and_joints() -> None:
    assert header_words("dataNascimento") == {"data", "nascimento"}
    assert header_words("Município_Residência") == {"municipio", "residencia"}
    assert not header_says("velocidade", "quasi")


def test_the_person_column_is_the_identifier_that_repeats() -> None:
    twice = [*CPFS, *CPFS]
    record: list[str | None] = [str(5000 + i) for i in range(80)]
    found = look({"prontuario": record, "cpf": [*twice], "sexo": ["F", "M"] * 40})
    assert found.person == "cpf"
    once = look({"prontuario": record[:40], "cpf": [*CPFS], "sexo": ["F", "M"] * 20})
    assert once.person == "cpf"


def test_people_are_unique_when_their_group_holds_nobody_else() -> None:
    ids: list[str | None] = ["a1", "a1", "b2", "c3", "d4"]
    found = look({"mrn": ids, "sexo": ["F", "F", "M", "M", "X"]})
    assert found.person == "mrn" and found.exposure is not None
    counts = found.exposure
    assert (counts.rows, counts.unique_rows, counts.people, counts.unique_people) == (5, 1, 4, 2)
    assert counts.smallest == 1


def test_a_copy_of_a_quasi_identifier_is_not_published() -> None:
    level = ["low", "mid", "top", "mid"] * 10
    found = look({"education": [*level], "grade": [str(len(set(level[:i]))) for i in range(40)], "code": [
        {"low": "1", "mid": "2", "top": "3"}[v] for v in level]})  # fmt: skip
    assert found.schema.columns["education"].publish and found.schema.columns["grade"].publish
    assert not found.schema.columns["code"].publish


def test_without_a_hint_the_most_telling_columns_are_proposed() -> None:
    rng = np.random.default_rng(0)
    cells = {f"v{size}": [f"v{v}" for v in rng.integers(0, size, 400)] for size in (2, 3, 5, 20)}
    found = look(cells)
    assert {c.name for c in found.schema.quasi} == {"v20", "v5", "v3"}
    assert found.ranking == ("v20", "v5", "v3", "v2")


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40))
def test_separation_is_the_share_of_pairs_that_differ(values: list[int]) -> None:
    n = len(values)
    told = sum(values[i] != values[j] for i in range(n) for j in range(i)) / (n * (n - 1) / 2)
    assert separation(np.bincount(values)) == pytest.approx(told)


def test_the_best_sets_grow_from_the_best_column() -> None:
    a = np.array([0, 0, 1, 1, 2, 2, 3, 3], dtype=np.int32)
    b = np.array([0, 1, 0, 1, 0, 1, 0, 1], dtype=np.int32)
    c = np.array([0, 0, 0, 0, 1, 1, 1, 1], dtype=np.int32)
    first, second = best_sets({"c": (c, 2), "b": (b, 2), "a": (a, 4)})
    assert first.columns == ("a",) and first.separation == pytest.approx(1 - 8 / 56)
    assert second.columns == ("a", "b") and second.separation == second.distinction == 1.0


def test_the_hospital_sample_is_read_as_its_schema_has_it() -> None:
    found = inspect(read_table(hospital_csv()))
    known = read_schema(hospital_schema())
    for name in (
        "cpf",
        "nome",
        "prontuario",
        "sexo",
        "idade",
        "municipio",
        "cid10",
        "desfecho",
        "custo_reais",
    ):
        assert found.schema.columns[name].role == known.columns[name].role, name
        assert found.schema.columns[name].kind == known.columns[name].kind, name
    assert found.person == "cpf"
    assert not found.schema.columns["observacao"].publish
    cpf = found.columns[0]
    assert cpf.identifier == "cpf" and cpf.valid == 0.0  # the sample's check digits are wrong on purpose
    assert found.exposure is not None and found.exposure.people == 1700


@pytest.mark.slow
def test_adult_is_read_as_the_literature_has_it(data_folder: Path) -> None:
    found = inspect(read_table(data_folder / "adult" / "adult_clean.csv"))
    quasi = {c.name for c in found.schema.quasi}
    assert quasi >= {"sex", "age", "race", "marital_status", "education", "native_country", "workclass"}
    assert not found.schema.columns["education_num"].publish
    assert found.schema.columns["income"].role == "sensitive"
    arx = inspect(read_table(data_folder / "adult" / "adult_arx.csv"))
    assert arx.exposure is not None
    frame = read_table(data_folder / "adult" / "adult_arx.csv").frame.drop("salary-class")
    assert arx.exposure.unique_rows == int(frame.is_unique().sum())


def test_the_schema_file_parses_to_the_proposed_schema_whatever_the_headers() -> None:
    names = [
        "a b",
        "ação",
        'quo"te',
        "do.t",
        "new\nline",
        "back\\slash",
        "tab\t",
        "#",
        "\x7f",
        "sexo",
        "'",
        "x=1",
    ]
    found = look({name: ["F", "M", "NA", "F"] for name in names})
    text = schema_toml(found)
    assert Schema.from_dict(tomllib.loads(text)) == found.schema
    assert list(found.schema.columns) == names
    assert text.count("\n# ") >= len(names)


def test_the_proposed_schema_fits_the_table_it_came_from(tmp_path: Path) -> None:
    found = inspect(read_table(hospital_csv()))
    file = tmp_path / "schema.toml"
    file.write_text(schema_toml(found), encoding="utf-8")
    assert read_table(hospital_csv(), read_schema(file)).rows == 2000


def test_a_semicolon_file_is_proposed_with_its_separator() -> None:
    frame, separator = parse_csv(b"sexo;idade\nF;1\nM;2\nF;3\n", "t.csv")
    schema = Schema({name: c for name, c in read_table(frame).schema.columns.items()})
    assert inspect(Table.of(frame, schema, separator=separator)).schema.separator == ";"


def test_no_cell_stands_in_what_is_found() -> None:
    cells = {
        "nome": [f"Zyx{chr(97 + i)} Quorra{chr(97 + i)}" for i in range(20)],
        "idade": [str(777000 + 13 * i) for i in range(20)],
        "cidade": ["Zyxburg", "Zyxham"] * 10,
        "nota": [f"{i} zyx words that nobody should ever read" for i in range(20)],
    }
    found = look({name: [*values] for name, values in cells.items()})
    shown = json.dumps(found.to_dict(), ensure_ascii=False) + schema_toml(found) + repr(found)
    assert "yx" not in shown and "777" not in shown


def test_domains_to_confirm_hold_what_many_have_and_rounded_numbers() -> None:
    people = [f"p{at // 2}" for at in range(2000)]  # two rows each, so a value needs forty rows
    found = look({
        "paciente": people,
        "sexo": ["F" if at % 2 else "M" for at in range(2000)],
        "cor": ["rara" if at < 39 else "comum" for at in range(2000)],
        "cidade": [f"cidade-{at % 51}" for at in range(2000)],
        "idade": [str(3 + at % 95) for at in range(2000)],
        "custo": [f"{1234 + at},5" for at in range(2000)],
        "nota": [f"palavras livres de {at} que ninguém lê" for at in range(2000)],
    })  # fmt: skip
    text = schema_toml(found)
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("# values = [")] == [
        '# values = ["F", "M"]  # the public list of its values, needed for GROUP BY in private answers',
        '# values = ["comum"]  # the public list of its values, needed for GROUP BY in private answers',
        '# values = ["VALUE", ...]  # the public list of its values, needed for GROUP BY in private answers',
    ]
    bounds = [line.partition("]")[0] for line in lines if line.startswith("# bounds")]
    assert bounds == ["# bounds = [0, 100", "# bounds = [0, 3500"]
    assert "1234" not in text and "3233" not in text and "rara" not in text and "cidade-" not in text
    # Nothing of it holds before it was confirmed, and once it is, the file is read.
    assert all(column.bounds is None and column.values is None for column in found.schema.columns.values())
    confirmed = text.replace("# bounds", "bounds").replace('# values = ["F"', 'values = ["F"')
    read = Schema.from_dict(tomllib.loads(confirmed)).columns
    assert read["idade"].bounds == (0, 100) and read["sexo"].values == ("F", "M")
    shown = json.dumps(found.to_dict()) + repr(found)
    assert "comum" not in shown and "domains" not in shown


def test_columns_that_are_not_text_are_inspected_too() -> None:
    frame = pl.DataFrame(
        {
            "idade": [1, 2, 3, None],
            "peso": [1.5, float("nan"), 2.5, 4.0],
            "nascimento": pl.Series(["2020-01-01", "2020-01-02", None, "2020-01-03"]).str.to_date(),
            "vivo": [True, False, True, None],
        }
    )
    found = inspect(read_table(frame))
    assert [c.kind for c in found.columns] == ["numeric", "numeric", "date", "categorical"]
    assert [c.missing for c in found.columns] == [1, 1, 1, 1]


def test_one_row_is_enough() -> None:
    found = look({"sexo": ["F"]})
    assert found.rows == 1 and tomllib.loads(schema_toml(found))


def test_codes_that_may_mean_no_value_are_suggested_with_counts() -> None:
    found = look({
        "q1": [str(1 + i % 5) if i % 10 else "99" for i in range(100)],
        "idade": [str(20 + i % 60) if i % 20 else "999" for i in range(100)],
        "exames": [str(i % 4) if i % 25 else "-1" for i in range(100)],
        "anos": [str(90 + i % 15) for i in range(100)],
        "sexo": ["F" if i % 3 else "Ignorado" for i in range(100)],
        "peso": [f"{50 + i}.5" if i % 5 else "não informado" for i in range(100)],
        "pay": [str(i % 6 - 2) for i in range(100)],
    })  # fmt: skip
    suggested = {(code.column, code.code, code.rows, code.applied) for code in found.missing_codes}
    assert suggested == {
        ("q1", "99", 10, False),
        ("idade", "999", 5, False),
        ("exames", "-1", 4, False),
        ("sexo", "Ignorado", 34, False),
        ("peso", "não informado", 20, True),
    }
    assert found.schema.missing_values == ("", "não informado")
    by_name = {column.name: column for column in found.columns}
    assert (
        by_name["peso"].kind == "numeric" and by_name["q1"].kind == "numeric" and by_name["q1"].missing == 0
    )
    text = schema_toml(found)
    assert '# "99" in 10 rows may mean no value' in text
    assert Schema.from_dict(tomllib.loads(text)) == found.schema


def test_a_frame_or_a_path_is_inspected_as_a_table_is(tmp_path: Path) -> None:
    frame = pl.DataFrame({"nome": ["Ana Souza", "Rui Lima"], "sexo": ["F", "M"]})
    file = tmp_path / "t.csv"
    file.write_text("nome,sexo\nAna Souza,F\nRui Lima,M\n", "utf-8")
    for source in (frame, frame.to_arrow(), file, str(file)):
        assert inspect(source).schema.columns == inspect(read_table(frame)).schema.columns


def test_words_that_nobody_else_has_are_held_back() -> None:
    cells: list[str | None] = [f"thing-{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(60)]
    found = column("remark_code", cells)
    assert found.role == "other" and not found.publish
    assert column("lab", [f"{i / 7:.3f}" for i in range(60)]).publish
    assert column("level", ["a", "b", "c"] * 20).publish


def test_the_schema_file_asks_about_what_is_held_back() -> None:
    found = look({"device": ["d1", "d2", "d3"] * 10, "nome": ["Ana Souza"] * 30, "sexo": ["F", "M"] * 15})
    text = schema_toml(found)
    assert "remove publish = false" in text and 'identifier = "accept"' in text
    assert Schema.from_dict(tomllib.loads(text)) == found.schema


def test_spellings_of_one_value_are_counted_as_the_release_counts_them() -> None:
    ages = [str(30 + at % 5) for at in range(40)]
    written = [f"0{age}" if at % 3 else f"{age}.0" for at, age in enumerate(ages)]
    cities = [("Recife", "RECIFE", "recife ", "Olinda")[at % 4] for at in range(40)]
    found = look({"age": written, "city": cities})
    plain = look({"age": ages, "city": ["Olinda" if at % 4 == 3 else "Recife" for at in range(40)]})
    by_name = {one.name: one for one in found.columns}
    assert (by_name["age"].distinct, by_name["city"].distinct) == (5, 2)
    assert found.exposure is not None and found.exposure == plain.exposure
    assert found.exposure.smallest == 2 and found.exposure.unique_rows == 0  # 5 ages x 2 cities
    assert [one.separation for one in found.sets] == [one.separation for one in plain.sets]


def test_numbers_with_a_decimal_comma_are_counted_as_numbers() -> None:
    found = look({"weight": ["70,5", "70,50", "81,25"] * 10, "sex": ["F", "M", "F"] * 10})
    assert found.schema.decimal == "," and found.columns[0].distinct == 2


@pytest.mark.parametrize("header", ["home", "id_domicilio", "HHID"])
def test_a_household_is_held_back_and_a_weight_is_asked_about(header: str) -> None:
    rows = range(400)
    frame = pl.DataFrame(
        {
            header: [f"h{at // 3}" for at in rows],
            "age": [str(20 + at * 37 % 60) for at in rows],
            "peso": [f"{10 + at % 23}.5" for at in rows],
            "home_type": ["owned" if at % 3 else "rented" for at in rows],
        }
    )
    found = {column.name: column for column in inspect(frame).columns}
    home, weight = found[header], found["peso"]
    assert not home.publish or home.role == "identifier"
    assert any("group = true" in why for why in home.why)
    assert any("sampling_weight = true" in why for why in weight.why)
    assert found["home_type"].publish  # two kinds of homes are no households


@pytest.mark.parametrize(("header", "asked"), [("peso", True), ("peso (kg)", False), ("weight_kg", False)])
def test_a_weight_of_bodies_is_no_weight_of_a_sample(header: str, asked: bool) -> None:
    frame = pl.DataFrame({"sex": ["F", "M"] * 20, header: [f"{45 + n * 1.5:.1f}" for n in range(40)]})
    (found,) = (one for one in inspect(frame).columns if one.name == header)
    assert any("sampling_weight = true" in why for why in found.why) is asked
