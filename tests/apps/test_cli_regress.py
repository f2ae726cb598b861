"""`velado regress` and `velado predict` from the shell: coefficients, what was learned, and refusals that name the column."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.apps.cli import run
from velado.apps.cli.regression_rows import public_most
from velado.learning.regression.fit import Fit
from velado.randomness import seeded

BOUNDS = ["--bounds", "age=0:120", "--bounds", "dose=-5:5", "--bounds", "days=-100:200"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    draw = seeded(3, "regress")
    age, dose = draw.integers(0, 90, 120), draw.uniform(-5, 5, 120).round(3)
    days = (0.5 * age - 3 * dose + 7 + draw.normal(0, 1, 120)).round(2)
    pl.DataFrame({"age": age, "dose": dose, "days": days}).write_csv("stays.csv")
    return tmp_path


def regress(
    *more: str, target: str = "days", protocol: str = "secure-sum", bounds: list[str] = BOUNDS
) -> int:
    return run(["regress", "--simulate", "5", "stays.csv", "--target", target, "--protocol", protocol, *bounds, "-o", "out", *more])  # fmt: skip


def least_squares(table: pl.DataFrame, *features: str) -> list[float]:
    design = np.column_stack([np.ones(table.height), *(table[name].to_numpy() for name in features)])
    return [float(x) for x in np.linalg.lstsq(design, table["days"].to_numpy(), rcond=None)[0]]


def error_of(shown: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(shown)["error"]
    return found


def test_a_simulated_run_gives_least_squares_and_writes_three_files(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regress("--standard-errors") == 0
    shown = capsys.readouterr().out
    assert "Regression of 'days' over the rows of 5 clients, protocol secure-sum" in shown
    assert (
        "standard error" in shown and "can infer" in shown and "Cost:" in shown and "Guaranteed if" in shown
    )
    assert sorted(path.name for path in (place / "out").iterdir()) == [
        "fit.json",
        "learned.json",
        "report.md",
    ]
    fit = Fit.from_dict(json.loads((place / "out" / "fit.json").read_text("utf-8")))
    assert fit.names == ("(intercept)", "age", "dose")
    assert fit.coefficients == pytest.approx(least_squares(pl.read_csv("stays.csv"), "age", "dose"), rel=1e-6)
    assert json.loads((place / "out" / "learned.json").read_text("utf-8"))["protocol"] == "secure-sum"
    assert "All parties ran in one process" in (place / "out" / "report.md").read_text("utf-8")


@pytest.mark.parametrize("protocol", ["masked", "delegated"])
def test_encrypted_protocols_give_the_same_coefficients(
    place: Path, capsys: pytest.CaptureFixture[str], protocol: str
) -> None:
    assert regress("--json", "--key-bits", "2048", protocol=protocol) == 0
    fit = Fit.from_dict(json.loads(capsys.readouterr().out)["fit"])
    assert fit.coefficients == pytest.approx(least_squares(pl.read_csv("stays.csv"), "age", "dose"), rel=1e-6)
    assert fit.cost["bytes_sent"] > 1000


def test_chosen_features_ridge_and_no_intercept_are_used(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        regress("--json", "--features", "dose", "--no-intercept", "--lambda", "2.5", bounds=[*BOUNDS[2:]])
        == 0
    )
    fit = Fit.from_dict(json.loads(capsys.readouterr().out)["fit"])
    table = pl.read_csv("stays.csv")
    dose, days = table["dose"].to_numpy(), table["days"].to_numpy()
    assert fit.names == ("dose",)
    assert fit.coefficients[0] == pytest.approx(float(dose @ days / (dose @ dose + 2.5)), rel=1e-5)


def test_predictions_are_written_for_every_row(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("-q") == 0
    assert run(["predict", "out/fit.json", "stays.csv", "-o", "scores.csv"]) == 0
    assert "120 predictions of 'days'" in capsys.readouterr().out
    scores = pl.read_csv("scores.csv")["predicted days"].to_numpy()
    table = pl.read_csv("stays.csv")
    one, age, dose = least_squares(table, "age", "dose")
    assert scores == pytest.approx(
        one + age * table["age"].to_numpy() + dose * table["dose"].to_numpy(), rel=1e-4
    )
    assert run(["predict", "out/fit.json", "stays.csv", "-o", "scores.csv"]) == 5
    assert run(["predict", "stays.csv", "stays.csv", "-o", "other.csv"]) == 3
    pl.read_csv("stays.csv").drop("dose").write_csv("fewer.csv")
    assert run(["predict", "out/fit.json", "fewer.csv", "-o", "other.csv", "--json"]) == 3
    assert "'dose'" in capsys.readouterr().out
    assert not Path("other.csv").exists()


def test_bounds_must_be_declared_or_asked_for_from_the_rows(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regress("--json", bounds=BOUNDS[:2]) == 2
    assert "'dose', 'days'" in str(error_of(capsys.readouterr().out)["what"])
    assert not Path("out").exists()
    assert regress(bounds=["--bounds-from-data"]) == 0
    assert "Real parties must declare them" in capsys.readouterr().err


def test_bounds_come_from_a_schema_too(place: Path) -> None:
    kinds = {"age": "[0, 120]", "dose": "[-5, 5]", "days": "[-100, 200]"}
    text = "".join(
        f'[columns.{n}]\nrole = "quasi"\nkind = "numeric"\nbounds = {b}\n' for n, b in kinds.items()
    )
    Path("schema.toml").write_text(text, "utf-8")
    assert regress("--schema", "schema.toml", bounds=[]) == 0
    fit = json.loads(Path("out/fit.json").read_text("utf-8"))
    assert fit["how"]["job"]["target"]["bounds"] == ["-100", "200"]


@pytest.mark.parametrize("protocol", ["secure-sum", "masked"])
def test_collinear_columns_are_named(place: Path, capsys: pytest.CaptureFixture[str], protocol: str) -> None:
    pl.read_csv("stays.csv").with_columns(twice=pl.col("age") * 2).write_csv("stays.csv")
    assert regress("--json", "--bounds", "twice=0:240", protocol=protocol) == 10
    error = error_of(capsys.readouterr().out)
    assert error["type"] == "SingularDesignError" and "age, twice" in str(error["what"])


def test_missing_values_are_named_by_column_and_counted(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Path("stays.csv").read_text("utf-8").splitlines()
    lines[3], lines[5] = "," + lines[3].split(",", 1)[1], "NA," + lines[5].split(",", 1)[1]
    Path("stays.csv").write_text("\n".join(lines) + "\n", "utf-8")
    assert regress("--json") == 3
    assert "'age' (2)" in str(error_of(capsys.readouterr().out)["what"])


def test_words_are_refused_with_the_advice_to_encode(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.read_csv("stays.csv").with_columns(ward=pl.lit("secretward")).write_csv("stays.csv")
    assert regress("--json") == 3
    shown = capsys.readouterr().out
    error = error_of(shown)
    assert "'ward'" in str(error["what"]) and "Encode" in str(error["fix"]) and "secretward" not in shown
    assert regress("--features", "age,dose") == 0


def test_a_value_outside_its_bounds_is_refused_without_being_shown(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.read_csv("stays.csv").with_columns(age=pl.lit(117.125)).write_csv("stays.csv")
    assert regress("--json", bounds=["--bounds", "age=0:100", *BOUNDS[2:]]) == 10
    shown = capsys.readouterr().out
    assert "'age'" in shown and "117.125" not in shown


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--lambda", "x"], 2),
        (["--lambda", "-1"], 2),
        (["--lambda", "inf"], 2),
        (["--lambda", "1", "--standard-errors"], 2),
        (["--features", "age,dose,age"], 2),
        (["--features", "age,days"], 2),
        (["--epsilon", "nan"], 2),
        (["--bounds", "age=5"], 2),
        (["--bounds", "nobody=0:1"], 2),
        (["--bounds", "age=9:3"], 2),
        (["--features", "height"], 3),
        (["--minimum-rows", "30"], 3),
        (["--schema", "absent.toml"], 3),
    ],
)
def test_wrong_settings_are_refused_and_nothing_is_written(place: Path, flags: list[str], code: int) -> None:
    assert regress(*flags) == code
    assert not Path("out").exists()


def test_what_a_protocol_cannot_do_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("--standard-errors", protocol="masked") == 2
    assert regress("--epsilon", "1", protocol="masked") == 2
    assert regress(protocol="mask") == 2
    assert "Did you mean 'masked'?" in capsys.readouterr().err
    assert run(["regress", "stays.csv", "--target", "days", *BOUNDS]) == 2
    assert run(["regress", "--simulate", "2", "stays.csv", "--target", "days", *BOUNDS]) == 2
    assert regress(target="height") == 3


def test_noise_is_promised_in_the_output(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("--epsilon", "50", "--lambda", "1") == 0
    shown = capsys.readouterr().out
    assert "Differential privacy: epsilon 50" in shown and "{" not in shown
    assert (
        json.loads(Path("out/fit.json").read_text("utf-8"))["promise"]["differential_privacy"]["epsilon"]
        == "50"
    )


def test_the_paper_protocol_says_that_it_is_not_private(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regress("--key-bits", "1024", protocol="paper-masked") == 0
    warned = capsys.readouterr().err
    assert "not private" in warned and "1024 bits" in warned
    assert "1024 bits" in Path("out/fit.json").read_text("utf-8")
    assert "1024 bits" in Path("out/report.md").read_text("utf-8")
    assert "**Not private.**" in Path("out/report.md").read_text("utf-8")


def test_noise_with_bounds_read_off_the_rows_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regress("--epsilon", "1", "--bounds-from-data", bounds=[]) == 2
    assert "--bounds-from-data do not go together" in capsys.readouterr().err
    assert not Path("out").exists()


def test_the_job_of_a_simulation_does_not_tell_how_many_rows_there_are(place: Path) -> None:
    assert regress("-q") == 0
    assert json.loads(Path("out/fit.json").read_text("utf-8"))["how"]["job"]["most_rows"] == 1000
    assert [public_most(n, 30, False) for n in (9, 999, 1000, 4321)] == [1000, 1000, 10_000, 10_000]
    assert {public_most(n, 30, True) for n in (9, 1000, 999_999)} == {1_000_000}
    assert public_most(5, 3000, False) == 3000


def test_an_existing_folder_is_not_overwritten(place: Path) -> None:
    Path("out").mkdir()
    assert regress() == 5


def test_portuguese_is_spoken_on_request(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("--lang", "pt") == 0
    shown = capsys.readouterr().out
    assert "O que cada parte viu e pode inferir" in shown
    report = Path("out/report.md").read_text("utf-8")
    for text in (shown, report):
        flat = " ".join(text.split())
        assert "Esconde: as linhas" in flat and "Revela: os coeficientes" in flat
        assert "guaranteed" not in flat and "hides" not in flat
