"""Files as Brazil writes them (decimal commas, Latin-1, no header) through every command that reads one."""

import json
from pathlib import Path

import pytest

from velado.apps.cli import run
from velado.data.inspect import inspect
from velado.text import speaking, told

from ..tables import toml

REGRESS = [
    "regress",
    "--simulate",
    "3",
    "custos.csv",
    "--target",
    "custo",
    "--protocol",
    "secure-sum",
    "-o",
    "out",
]
COMMA = '[table]\ndecimal = ","\nseparator = ";"\n[columns.idade]\nrole = "quasi"\nkind = "numeric"\nbounds = [0, 120]\n'
COMMA += '[columns.custo]\nrole = "sensitive"\nkind = "numeric"\nbounds = [0, 5000]\n'
PLACES = ["São Paulo", "Belém", "Goiânia", "São Luís"] * 5


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def costs(name: str = "custos.csv", header: str = "idade;custo") -> None:
    rows = [f"{age};{1000 + 10 * age + age % 7:,}".replace(",", ".") + ",50" for age in range(20, 60)]
    Path(name).write_text("\n".join([header, *rows]) + "\n", "utf-8")


def test_a_table_with_decimal_commas_is_regressed_and_predicted() -> None:
    costs()
    Path("s.toml").write_text(COMMA, "utf-8")
    assert run([*REGRESS, "-s", "s.toml", "--quiet"]) == 0
    fit = json.loads(Path("out/fit.json").read_text("utf-8"))
    assert fit["coefficients"]["idade"] == pytest.approx(10, abs=0.2)
    assert run(["predict", "out/fit.json", "custos.csv", "-s", "s.toml", "-o", "scores.csv", "--quiet"]) == 0
    assert len(Path("scores.csv").read_text("utf-8").splitlines()) == 41


def test_coefficients_are_written_with_a_comma_in_portuguese(capsys: pytest.CaptureFixture[str]) -> None:
    costs()
    Path("s.toml").write_text(COMMA, "utf-8")
    assert run([*REGRESS, "-s", "s.toml", "--lang", "pt"]) == 0
    shown = capsys.readouterr().out
    assert "(constante)" in shown and "avaliador" in shown and "(intercept)" not in shown
    assert "(intercept)" not in Path("out/report.md").read_text("utf-8")


def test_no_cell_of_a_file_without_a_header_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    Path("custos.csv").write_text("Maria Segredo,Goiânia,A90\nJoão Oculto,Belém,B20\n", "utf-8")
    assert run([*REGRESS, "--bounds-from-data"]) == 3
    shown = capsys.readouterr().err
    assert "3 columns" in shown
    assert not any(cell in shown for cell in ("Maria", "Segredo", "Goiânia", "A90"))


def test_the_columns_of_a_true_header_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    costs()
    assert run([*REGRESS, "--features", "idad", "--bounds-from-data"]) == 3
    shown = capsys.readouterr().err
    assert "no column 'idad'" in shown and "'idade', 'custo'" in shown


def test_simulating_no_client_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    costs()
    assert run(["regress", "--simulate", "0", "custos.csv", "--target", "custo"]) == 2
    assert "--simulate cannot be 0" in capsys.readouterr().err


def test_an_existing_folder_of_results_is_refused_without_force(capsys: pytest.CaptureFixture[str]) -> None:
    costs()
    Path("out").mkdir()
    assert run([*REGRESS, "--bounds-from-data"]) == 5
    shown = capsys.readouterr().err
    assert "--force" not in shown and "releases" not in shown


SCHEMA = toml(cidade="quasi", sexo="quasi")


def cities(encoding: str) -> None:
    rows = [f"{place},{'F' if at % 2 else 'M'}" for at, place in enumerate(PLACES)]
    Path("t.csv").write_bytes("\n".join(["cidade,sexo", *rows, ""]).encode(encoding))
    Path("s.toml").write_text(SCHEMA, "utf-8")
    assert run(["pseudonymize", "--new-key", "--key-file", "key", "--quiet"]) == 0


def anonymize(*more: str) -> int:
    return run(["anonymize", "t.csv", "-s", "s.toml", "-k", "2", "-m", "mondrian", "--key", "key", *more])


def test_an_encoding_that_does_not_decode_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    cities("latin-1")
    assert anonymize("--encoding", "utf-8") == 3
    assert "not utf-8 text" in capsys.readouterr().err


def test_a_found_encoding_is_told_as_it_is_in_both_languages(capsys: pytest.CaptureFixture[str]) -> None:
    cities("latin-1")
    assert anonymize("--lang", "pt") == 0
    shown = capsys.readouterr()
    assert "não é texto UTF-8 e foi lido como cp1252" in shown.out + shown.err


def test_a_value_that_is_not_listed_is_refused_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    cities("utf-8")
    Path("s.toml").write_text(SCHEMA.replace("[columns.sexo]", '[columns.sexo]\nvalues = ["f"]'), "utf-8")
    assert anonymize() == 3
    shown = capsys.readouterr().err
    assert "10 rows" in shown and "'M'" not in shown


def test_thousands_points_are_numbers_where_the_comma_is_decimal() -> None:
    rows = [f"{at};{at}.587,50" for at in range(10, 40)]
    Path("t.csv").write_text("\n".join(["idade;renda", *rows, ""]), "utf-8")
    found = inspect("t.csv")
    assert found.schema.decimal == "," and found.schema.columns["renda"].kind == "numeric"
    with speaking("pt"):
        assert "vírgula" in told(found.columns[1].why[0])


def test_points_that_mark_no_thousands_are_no_numbers_there() -> None:
    rows = [f"{at},5" if at % 3 else f"{at}.25" for at in range(10, 40)]
    Path("t.csv").write_text("\n".join(["renda;x", *(f"{one};a" for one in rows), ""]), "utf-8")
    assert inspect("t.csv").schema.columns["renda"].kind == "categorical"


def test_a_folder_and_an_empty_name_are_told_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    cities("utf-8")
    Path("empty").mkdir()
    assert run(["inspect", "empty"]) == 3
    assert "'empty'" in capsys.readouterr().err
    assert anonymize("-o", "") == 5
    assert "--force" not in capsys.readouterr().err
