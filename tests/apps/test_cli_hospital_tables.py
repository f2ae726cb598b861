"""Tables as a hospital in Portugal or Brazil brings them to a regression: decimal commas, rare values, units, and sentences that fit."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gmpy2", reason="regressions need velado[encrypted]")

from velado.apps.cli import run
from velado.apps.cli.show import laid_out
from velado.errors import OutOfBounds, SchemaError, TableError
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.net.runner import read_columns
from velado.learning.protocols.parts import fit_of
from velado.learning.regression.coefficient_table import coefficient_rows, ratio_rows, step_of
from velado.learning.regression.design_matrix import encoded_columns
from velado.learning.regression.fit import Fit, Solved
from velado.learning.regression.simulate import small_job
from velado.randomness import seeded
from velado.text import speaking, told

ROWS = 300
SCHEMA = """[table]
decimal = ","
[columns.Sexo]
role = "other"
kind = "categorical"
values = ["F", "M"]
[columns."Raça"]
role = "other"
kind = "categorical"
values = ["amarela", "branca", "parda", "preta"]
[columns."Diagnóstico"]
role = "other"
kind = "categorical"
values = ["Asma", "DPOC", "Pneumonia"]
"""


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """A table with decimal commas and a schema that says so; its columns as they are written."""
    monkeypatch.chdir(tmp_path)
    draw = seeded(11, "hospital table")
    age, weight = draw.integers(18, 95, ROWS), draw.normal(72, 13, ROWS).round(1)
    race = np.array(["branca", "parda", "preta"], dtype=object)[draw.integers(0, 3, ROWS)]
    race[[5, 99, 200, 280]] = "amarela"
    dead = (draw.uniform(size=ROWS) < 1 / (1 + np.exp(4 - 0.05 * age))).astype(int)
    columns: dict[str, list[object]] = {
        "Idade (anos)": age.tolist(),
        "Peso": weight.tolist(),
        "Dez": (0.1 * age + 0.3 * weight).round(2).tolist(),
        "Libras": (weight * 2.20462 + draw.uniform(-0.02, 0.02, ROWS)).round(4).tolist(),
        "Sexo": np.array(["F", "M"])[draw.integers(0, 2, ROWS)].tolist(),
        "Raça": race.tolist(),
        "Diagnóstico": np.array(["Asma", "DPOC", "Pneumonia"])[draw.integers(0, 3, ROWS)].tolist(),
        "Troponina (g/L)": draw.uniform(1e-9, 1e-7, ROWS).tolist(),
        "Óbito": dead.tolist(),
        "Custo": (300 + 12 * age + 5 * weight + draw.normal(0, 90, ROWS)).round(2).tolist(),
    }
    written = {name: [str(value).replace(".", ",") for value in values] for name, values in columns.items()}
    lines = [";".join(written), *(";".join(row) for row in zip(*written.values(), strict=True))]
    Path("todos.csv").write_text("\n".join(lines) + "\n", "utf-8")
    Path("s.toml").write_text(SCHEMA, "utf-8")
    return written


def regress(features: str, *more: str, target: str = "Custo", schema: bool = True, clients: int = 3) -> int:
    given = ["-s", "s.toml"] if schema else []
    return run(["regress", "todos.csv", *given, "--simulate", str(clients), "--target", target, "--features", features, *more])  # fmt: skip


def spell(column: int, row: int, cell: str) -> None:
    """One cell of the file is written otherwise."""
    lines = Path("todos.csv").read_text("utf-8").splitlines()
    cells = lines[row].split(";")
    cells[column] = cell
    lines[row] = ";".join(cells)
    Path("todos.csv").write_text("\n".join(lines) + "\n", "utf-8")


def test_a_decimal_comma_is_found_as_the_separator_is(table: dict[str, list[str]]) -> None:
    assert regress("Peso", "-o", "found", "--quiet", schema=False) == 0
    assert regress("Peso", "-o", "said", "--quiet") == 0
    found, said = (json.loads(Path(f"{name}/fit.json").read_text("utf-8")) for name in ("found", "said"))
    assert found["coefficients"] == said["coefficients"]
    job = small_job(features=(Bounded("Peso", (0, 200)),), target=Bounded("Custo", (0, 9000)))
    columns = read_columns(Path("todos.csv"), job)
    assert list(np.asarray(columns["Peso"])) == [cell.replace(",", ".") for cell in table["Peso"]]


@pytest.mark.parametrize(
    "cells", [("1.5", "2,5"), ("1,234", "5,678"), ("1,5", "muito"), ("1,5", "1.234"), ("1.5", "1,234")]
)
def test_cells_that_can_be_read_in_two_ways_are_never_guessed(cells: tuple[str, str]) -> None:
    job = small_job(minimum_rows=1)
    Path("two.csv").write_text(f"x;y\n{cells[0]};1\n{cells[1]};2\n", "utf-8")
    with pytest.raises(SchemaError, match="Not a number in every row: 'x'"):
        read_columns(Path("two.csv"), job)


def test_a_client_is_told_what_its_cells_lack(capsys: pytest.CaptureFixture[str]) -> None:
    job = small_job(features=(Bounded("Peso", (0, 200)),), target=Bounded("Custo", (0, 9000)))
    spell(1, 10, "71.5")
    with pytest.raises(SchemaError) as refused:
        read_columns(Path("todos.csv"), job)
    assert f"'Peso' (1 row of {ROWS}: row 10)" in refused.value.what
    assert "write them with a comma" in refused.value.fix and "ategories" not in refused.value.fix
    assert "com vírgula" in told(refused.value.fix, "pt")
    spell(1, 10, "")
    with pytest.raises(TableError, match=r"Missing values in 'Peso' \(1\)"):
        read_columns(Path("todos.csv"), job)
    spell(1, 10, "71.5")
    assert regress("Peso", "-o", "out") == 3
    shown = capsys.readouterr().err
    assert f"'Peso' (1 row of {ROWS}: row 10)" in shown and "write them with a comma" in shown
    assert "71.5" not in shown
    Path("s.toml").write_text(SCHEMA.replace('decimal = ","', ""), "utf-8")
    assert regress("Peso", "-o", "out", "--lang", "pt") == 3
    shown = capsys.readouterr().err
    assert f"'Peso' ({ROWS - 1} linhas de {ROWS}" in shown and "diga decimal" in shown


@pytest.mark.parametrize("more", [[], ["--schema", "s.toml"]])
def test_a_value_out_of_bounds_is_found_by_its_row(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    spell(1, 10, "999,5")
    assert regress("Peso", *more, "--bounds", "Peso=0:200", "-o", "out", schema=False) == 10
    shown = capsys.readouterr().err
    assert (
        f"'Peso' has 1 row of {ROWS} with a value that is missing or outside its public bounds: row 10"
        in shown
    )
    assert "999" not in shown
    job = small_job(features=(Bounded("Peso", (0, 200)),), target=Bounded("Custo", (0, 9000)))
    with pytest.raises(OutOfBounds, match="row 10"):
        encoded_columns(read_columns(Path("todos.csv"), job), job)


def test_a_weight_of_categories_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("Peso", "--weight", "Sexo", "-o", "out") == 2
    assert "--weight 'Sexo' is a column of categories" in capsys.readouterr().err
    assert regress("Peso", "--weight", "Sexo", "-o", "out", "--lang", "pt") == 2
    assert "é uma coluna de categorias" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--protocol", "masked"]])
def test_a_rare_reference_is_named_and_no_other_value(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert regress("Peso,Raça", "-o", "out", *more) != 0
    shown = capsys.readouterr().err
    assert "Fewer than 10 rows have Raça=amarela" in shown and "branca" not in shown
    assert regress("Peso,Raça", "-o", "out", "--lang", "pt", *more) != 0
    assert "Menos de 10 linhas têm Raça=amarela: a referência" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        ("Custo", (), "Of the columns Peso, Idade (anos), Dez each follows from the others but for rounding"),
        ("Óbito", ("--family", "logistic"), "The columns Peso, Idade (anos), Dez depend linearly"),
    ],
)
def test_every_column_of_a_dependence_is_named_and_the_intercept_is_not(
    target: str, more: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regress("Peso,Idade (anos),Sexo,Dez", "-o", "out", *more, target=target) == 10
    shown = capsys.readouterr().err
    assert words in shown and "intercept" not in shown and "Sexo" not in shown


@pytest.mark.parametrize("more", [("Custo",), ("Óbito", "--family", "logistic")])
def test_near_columns_are_named_in_every_family(
    more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert regress("Idade (anos),Peso,Libras", "-o", "out", *more[1:], target=more[0]) == 0
    shown = capsys.readouterr()
    assert "Warning: Peso, Libras nearly follow from the other columns" in shown.err and "VIF" in shown.out
    assert "Peso, Libras nearly follow" in Path("out/report.md").read_text("utf-8")


def test_the_inflation_of_a_logistic_fit_is_that_of_its_weighted_columns(table: dict[str, list[str]]) -> None:
    assert regress("Idade (anos),Peso", "-o", "out", "--family", "logistic", "--quiet", target="Óbito") == 0
    fit = json.loads(Path("out/fit.json").read_text("utf-8"))
    x = np.column_stack([np.ones(ROWS), *(_numbers(table[name]) for name in ("Idade (anos)", "Peso"))])
    mean = 1 / (1 + np.exp(-x @ np.array(list(fit["coefficients"].values()))))
    weights = mean * (1 - mean)
    age, weight = (x[:, place] - np.average(x[:, place], weights=weights) for place in (1, 2))
    r = (weights * age * weight).sum() / np.sqrt((weights * age**2).sum() * (weights * weight**2).sum())
    assert fit["inflation"]["Peso"] == pytest.approx(1 / (1 - r * r), rel=1e-6)
    assert fit["facts"]["condition"] == pytest.approx((1 + abs(r)) / (1 - abs(r)), rel=1e-6)


def _numbers(cells: list[str]) -> np.ndarray:
    return np.array([float(cell.replace(",", ".")) for cell in cells])


def test_a_column_without_information_is_one_value_in_every_family(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide = ["--bounds", "Troponina (g/L)=0:1", "-o", "out"]
    assert regress("Troponina (g/L)", *wide) == 10
    assert "The bounds of Troponina (g/L) are far wider than the values" in capsys.readouterr().err
    words = "In all rows Troponina (g/L) has one value, as far as its bounds let values be told apart"
    for more in (["--family", "logistic", *wide], ["--bits", "10", *wide]):
        assert regress("Troponina (g/L)", *more, target="Óbito") == 10
        shown = capsys.readouterr().err
        assert words in shown and "narrower bounds" in shown and "lambda" not in shown


def test_a_target_of_another_kind_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    for noise in ([], ["--epsilon", "1", "--bounds", "Peso=0:200"]):
        assert regress("Peso", "-o", "out", "--family", "logistic", *noise) == 3
        shown = capsys.readouterr().err
        assert f"The target 'Custo' has values other than 0 and 1 in {ROWS} rows of {ROWS}" in shown
        assert "family logistic" in shown and "bounds" not in shown


def test_more_clients_than_the_rows_allow_are_told_to_who_simulates(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert regress("Peso", "-o", "out", clients=100) == 2
    shown = capsys.readouterr().err
    assert "--simulate 100 deals 300 rows out in parts of 3" in shown and "at most 30 clients" in shown


def test_an_interaction_with_a_category_takes_all_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("Peso,Diagnóstico", "--interactions", "Peso:Diagnóstico", "-o", "out", "--quiet") == 0
    names = json.loads(Path("out/fit.json").read_text("utf-8"))["coefficients"]
    assert {"Peso:Diagnóstico=DPOC", "Peso:Diagnóstico=Pneumonia"} <= set(names)
    assert regress("Peso,Diagnóstico", "--interactions", "Peso:Diagnostico", "-o", "other") == 2
    assert "Did you mean 'Diagnóstico'?" in capsys.readouterr().err


def test_a_proposed_schema_fits_a_model_without_editing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "todos.csv", "-w", "ins.toml"]) == 0
    proposed = Path("ins.toml").read_text("utf-8")
    assert '[columns."Troponina (g/L)"]\nrole = "other"\nkind = "numeric"' in proposed
    names = "Peso,Sexo,Diagnóstico,Troponina (g/L)"
    asked = ["--features", names, "--target", "Óbito", "--family", "logistic"]
    assert run(["regress", "todos.csv", "-s", "ins.toml", "--simulate", "3", "-o", "out", *asked]) == 0
    assert "categories of Peso, Troponina (g/L), Sexo, Diagnóstico were read off" in capsys.readouterr().err
    names = json.loads(Path("out/fit.json").read_text("utf-8"))["coefficients"]
    assert list(names)[1:] == ["Peso", "Sexo=M", "Diagnóstico=DPOC", "Diagnóstico=Pneumonia", "Troponina (g/L)"]  # fmt: skip
    declared = ["--declared-bounds", "--features", "Sexo", "--target", "Óbito", "--bounds", "Óbito=0:1"]
    assert run(["regress", "todos.csv", "-s", "ins.toml", "--simulate", "3", "-o", "no", *declared]) == 3


def logistic(beta: float, error: float, span: float) -> Fit:
    features = (Bounded("Troponina", (0, span)),)
    job = small_job(features=features, target=Bounded("y", (0, 1)), family="logistic")
    return fit_of(job, Solved(coefficients=(1.0, beta), errors=(1.0, error), rows=90))


def test_an_odds_ratio_is_told_for_a_step_that_its_row_says() -> None:
    head, rows = ratio_rows(logistic(-4909260.192, 3.6e6, 1e-7))
    assert head[:3] == ["column", "for a difference of", "odds ratio"]
    assert rows[0][:3] == ["Troponina", "1e-07", f"{np.exp(-0.4909260192):.5g}"]
    assert float(rows[0][3]) < float(rows[0][2]) < float(rows[0][4]) < 2
    assert ratio_rows(logistic(-4909260.192, 3.6e6, 1e-7), "pt")[1][0][2] == rows[0][2].replace(".", ",")


@pytest.mark.parametrize("beta", [-5000.0, 5000.0])
def test_an_odds_ratio_is_never_0_and_never_without_end(beta: float) -> None:
    cells = ratio_rows(logistic(beta, 1.0, 120))[1][0][2:]
    assert all(re.fullmatch(r"[<>]\de[+-]\d{3}", cell) for cell in cells)
    assert all(cell.startswith("<" if beta < 0 else ">") for cell in cells)


def test_steps_follow_the_public_span_alone() -> None:
    assert [step_of(span) for span in (1, 60, 1000, 10_000, 0.06, 1e-7, 1e6)] == [
        *(1, 1, 1, 100),
        *(0.01, 1e-7, 1e4),
    ]


@pytest.mark.parametrize("width", [30, 60, 80, 120, 200])
@pytest.mark.parametrize("language", ["en", "pt"])
def test_no_number_of_a_table_is_broken_at_any_width(width: int, language: str) -> None:
    names = ("Idade (anos)", "Diagnóstico=Pneumonia adquirida na comunidade", "Troponina (g/L)")
    job = small_job(
        features=tuple(Bounded(name, (0, 9)) for name in names),
        target=Bounded("y", (0, 1)),
        family="logistic",
    )
    numbers = (-4.002626387, 0.04870540867, -123456.7891, 2828264.779)
    errors, inflation = (1.902, 0.005562, 1.055, 3.597e6), (1.0, 1.02, 40.7, 1234.5)
    fit = fit_of(job, Solved(coefficients=numbers, errors=errors, rows=900, inflation=inflation))
    with speaking(language):
        for head, rows in (coefficient_rows(fit), ratio_rows(fit)):
            spoken = [told(cell) for cell in head], [[told(cell) for cell in row] for row in rows]
            parts = laid_out(*spoken, width)
            assert [place for part in parts for place in part if place] == list(range(1, len(head)))
            assert all(next(iter(part)) == 0 for part in parts)
            for part in parts:
                cells = [row[place] for row in spoken[1] for place in part if place]
                places = [place for _ in spoken[1] for place in part if place]
                assert all(len(cell) <= part[place] for cell, place in zip(cells, places, strict=True))
                if width >= 60:
                    assert sum(part.values()) + 3 * (len(part) - 1) <= width


def test_a_prediction_outside_the_bounds_is_told_as_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("Peso", "--bounds", "Peso=0:200", "-o", "out", "--quiet") == 0
    Path("own.csv").write_text("Peso;Altura\n71,5;1,7\n999,5;1,7\n", "utf-8")
    capsys.readouterr()
    assert run(["predict", "out/fit.json", "own.csv", "-o", "a.csv"]) == 0
    assert (
        "1 row of 2 lies outside the bounds that the model was fitted within: row 2"
        in capsys.readouterr().err
    )
    assert run(["predict", "out/fit.json", "own.csv", "-o", "b.csv", "--lang", "pt"]) == 0
    assert "fica fora dos limites em que o modelo foi ajustado: linha 2" in capsys.readouterr().err
    Path("own.csv").write_text("Peso;Altura\n71,5;1,7\n99,5;1,7\n", "utf-8")
    assert run(["predict", "out/fit.json", "own.csv", "-o", "c.csv"]) == 0
    assert "bounds" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cell", "words", "palavras"),
    [
        ("71,5%", "write the number alone", "escreva só o número"),
        ("R$ 71,50", "write the number alone", "escreva só o número"),
        ("7l,5", "write the number alone", "escreva só o número"),
        ("01/03/2024", "Days are no numbers", "Dias não são números"),
        ("ignorado", "Words: correct the cells", "Palavras: corrija"),
    ],
)
def test_what_a_cell_is_decides_the_advice(
    cell: str, words: str, palavras: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spell(1, 10, cell)
    for language, said in (("en", words), ("pt", palavras)):
        assert regress("Peso", "-o", "out", "--lang", language) == 3
        shown = capsys.readouterr().err
        assert said in shown and "row 10" in shown.replace("linha", "row") and cell not in shown
        assert len(shown.splitlines()) == 3 and "decimal" not in shown


def test_a_weight_is_no_feature(capsys: pytest.CaptureFixture[str]) -> None:
    """It was left out of the features without a word."""
    assert regress("Peso,Idade (anos)", "--weight", "Peso", "-o", "out") == 2
    assert "--features names the weight 'Peso'" in capsys.readouterr().err


def test_bounds_with_a_comma_are_told_how_to_write_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("Peso", "--bounds", "Peso=0,5:200", "-o", "out") == 2
    assert "with a point: 0.5:200" in capsys.readouterr().err
