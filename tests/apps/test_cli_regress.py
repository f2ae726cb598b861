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


@pytest.mark.parametrize("protocol", ["masked", "delegated", "delegated-to-client"])
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
    assert regress("--json", "--declared-bounds", bounds=BOUNDS[:2]) == 2
    assert "'dose', 'days'" in str(error_of(capsys.readouterr().out)["what"])
    assert not Path("out").exists()
    assert regress("--json", "--epsilon", "9", bounds=BOUNDS[:2]) == 2  # noise follows the bounds
    assert "'dose', 'days'" in str(error_of(capsys.readouterr().out)["what"])
    assert not Path("out").exists()
    assert regress(bounds=BOUNDS[:2]) == 0
    assert (
        "bounds or categories of dose, days were read off the rows. Real parties must declare"
        in capsys.readouterr().err
    )


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
    assert (
        "'ward'" in str(error["what"])
        and "values in a schema" in str(error["fix"])
        and "secretward" not in shown
    )
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
        (["--minimum-rows", "30"], 2),
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
    assert regress("--epsilon", "50") == 0
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


SCHEMA = """
[columns.sex]
role = "quasi"
kind = "categorical"
values = ["f", "m", "x"]
"""


@pytest.fixture
def mixed(place: Path) -> pl.DataFrame:
    """A table with a category, a boolean, a weight and an outcome of two values."""
    draw = seeded(9, "mixed")
    count = 600
    age, sex = draw.integers(20, 90, count), draw.choice(["f", "m", "x"], count, p=[0.45, 0.45, 0.1])
    smokes = draw.uniform(size=count) < 0.3
    eta = -4 + 0.05 * age + 0.8 * (sex == "m") + 0.5 * smokes
    ill = (draw.uniform(size=count) < 1 / (1 + np.exp(-eta))).astype(int)
    weight = draw.integers(1, 4, count)
    table = pl.DataFrame({"age": age, "sex": sex, "smokes": smokes, "ill": ill, "weight": weight})
    table.write_csv("mixed.csv")
    Path("schema.toml").write_text(SCHEMA, "utf-8")
    return table


def mixed_run(*more: str) -> int:
    return run(["regress", "--simulate", "4", "mixed.csv", "--schema", "schema.toml", "-o", "out", *more])


def test_categories_booleans_interactions_and_weights_make_the_design(mixed: pl.DataFrame) -> None:
    flags = ["--target", "ill", "--features", "age,sex,smokes", "--interactions", "age:sex=m"]
    assert mixed_run(*flags, "--weight", "weight", "--bits", "40") == 0
    fit = Fit.from_dict(json.loads(Path("out/fit.json").read_text("utf-8")))
    assert fit.names == ("(intercept)", "age", "sex=m", "sex=x", "smokes", "age:sex=m")
    age, sex = mixed["age"].to_numpy(), mixed["sex"].to_numpy()
    design = np.column_stack([np.ones(600), age, sex == "m", sex == "x", mixed["smokes"], age * (sex == "m")])
    root = np.sqrt(mixed["weight"].to_numpy())
    plain = np.linalg.lstsq(design * root[:, None], mixed["ill"].to_numpy() * root, rcond=None)[0]
    assert fit.coefficients == pytest.approx(plain.tolist(), rel=1e-5)


def test_a_logistic_fit_tells_odds_ratios_with_intervals(
    mixed: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mixed_run("--target", "ill", "--features", "age,sex,smokes", "--family", "logistic") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "odds ratio" in shown and "standard error" in shown and "rounds" in shown
    assert "odds ratio" in Path("out/report.md").read_text("utf-8")
    fit = json.loads(Path("out/fit.json").read_text("utf-8"))
    assert fit["family"] == "logistic" and 4 <= fit["facts"]["rounds"] <= 9
    assert run(["predict", "out/fit.json", "mixed.csv", "-s", "schema.toml", "-o", "scores.csv"]) == 0
    scores = pl.read_csv("scores.csv")["predicted ill"]
    assert scores.min() > 0 and scores.max() < 1
    assert scores.mean() == pytest.approx(mixed["ill"].mean(), rel=1e-4)  # the likelihood's first equation


def test_a_category_nobody_listed_is_refused_without_being_shown(
    mixed: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed.with_columns(sex=pl.lit("secret")).write_csv("mixed.csv")
    assert mixed_run("--target", "ill", "--json") == 3
    shown = capsys.readouterr().out
    assert "'sex'" in str(error_of(shown)["what"]) and "secret" not in shown


def test_r_squared_t_p_and_intervals_are_the_textbook_s(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert regress("--bits", "40") == 0
    shown = capsys.readouterr().out
    table = pl.read_csv("stays.csv")
    x = np.column_stack([np.ones(120), table["age"], table["dose"]])
    y = table["days"].to_numpy()
    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    rest = y - x @ beta
    fit = Fit.from_dict(json.loads(Path("out/fit.json").read_text("utf-8")))
    assert fit.facts["r_squared"] == pytest.approx(1 - rest @ rest / ((y - y.mean()) ** 2).sum(), rel=1e-9)
    r = np.corrcoef(table["age"], table["dose"])[0, 1]
    assert fit.inflation[1:] == pytest.approx([1 / (1 - r**2)] * 2, rel=1e-6)
    from velado.learning.regression.coefficient_table import intervals, quantile, two_sided

    for degrees in (1, 5, 117, 5000):
        assert quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-9)
        for value in (0.1, 1.0, 2.5, 8.0):
            assert two_sided(value, degrees) == pytest.approx(2 * stats.t.sf(value, degrees), rel=1e-9)
    error = np.sqrt(rest @ rest / 117 * np.diag(np.linalg.inv(x.T @ x)))
    ends = np.array(intervals(fit))
    assert ends[:, 0] == pytest.approx(beta - stats.t.ppf(0.975, 117) * error, rel=1e-6)
    assert "R2 0.9" in shown and "VIF" in shown and "95% from" in shown


def test_a_column_of_tiny_values_has_all_its_digits(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its coefficient was 3.3 % off where the bounds were whole numbers; too wide bounds are refused."""
    table = pl.read_csv("stays.csv").with_columns(dose=pl.col("dose") * 2e-8)
    table.write_csv("stays.csv")
    assert regress("--json", bounds=[]) == 0
    fit = Fit.from_dict(json.loads(capsys.readouterr().out)["fit"])
    assert fit.coefficients == pytest.approx(least_squares(table, "age", "dose"), rel=1e-5)
    assert run(["regress", "--simulate", "5", "stays.csv", "--target", "days", "--bounds", "dose=-1:1", "-o", "wide", "--json"]) == 10  # fmt: skip
    assert "dose are far wider" in str(error_of(capsys.readouterr().out)["what"])


def test_columns_that_differ_by_rounding_are_refused_and_near_ones_warned_of(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv("stays.csv")
    table.with_columns(same=(pl.col("dose") / 3).round(9)).write_csv("stays.csv")
    assert regress("--json", bounds=[]) == 10
    assert "dose, same each follows from the others but for rounding" in str(
        error_of(capsys.readouterr().out)["what"]
    )
    near = table.with_columns(near=(pl.col("dose") + pl.int_range(120) % 7 / 50))
    near.write_csv("stays.csv")
    assert regress(bounds=[]) == 0
    assert "dose, near nearly follow from the other columns" in capsys.readouterr().err


def test_noise_is_debited_from_the_ledger_of_the_queries(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELADO_STATE", str(place / "state"))
    assert regress("--rho", "2", "--budget", "3") == 0
    assert "Debited: rho 2" in capsys.readouterr().out
    assert run(["ledger", "show", "stays.csv.ledger", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spent"] == "2"
    assert run(["regress", "--simulate", "5", "stays.csv", "--target", "days", *BOUNDS, "--rho", "2", "-o", "again"]) != 0  # fmt: skip
    assert not Path("again").exists()
    assert regress("--ledger", "x.ledger") in (2, 5)
    assert run(["regress", "--simulate", "5", "stays.csv", "--target", "days", *BOUNDS, "--budget", "2", "-o", "other"]) == 2  # fmt: skip


def test_a_rare_member_is_not_fitted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.read_csv("stays.csv").with_columns(rare=(pl.int_range(120) == 5).cast(pl.Int8)).write_csv("stays.csv")
    assert regress("--json", bounds=[]) == 10
    assert "In rare fewer than 10 rows" in str(error_of(capsys.readouterr().out)["what"])
    assert not Path("out").exists()


def test_a_logistic_fit_with_noise_is_debited_once_for_all_rounds(
    mixed: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [
        "--target",
        "ill",
        "--features",
        "age,sex,smokes",
        "--family",
        "logistic",
        "--bounds",
        "age=0:100",
    ]
    noisy = [*flags, "--bounds", "smokes=0:1", "--rho", "1.5", "--budget", "2"]
    assert mixed_run(*noisy) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "With noise in each of 6 rounds" in shown and "odds ratio" in shown and "Debited: rho 1.5" in shown
    fit = json.loads(Path("out/fit.json").read_text("utf-8"))
    assert fit["promise"]["differential_privacy"]["rho"] == "1.5"
    assert run(["ledger", "show", "mixed.csv.ledger", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left"] == "1/2"
    # What is left does not pay for another run, and nothing is written then.
    assert mixed_run(*noisy[:-2], "-o", "again") != 0
    assert not Path("again").exists()


def test_a_path_is_told_drawn_and_used_to_predict(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert regress("--path", "lasso") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Path of penalties" in shown and "BIC chose penalty" in shown and "path.svg" in shown
    fit, chosen = (
        Fit.from_dict(json.loads(Path(f"out/{name}.json").read_text("utf-8"))) for name in ("fit", "chosen")
    )
    assert fit.path is not None and chosen.coefficients == fit.path.best and chosen.standard_errors is None
    assert Path("out/path.svg").read_text("utf-8").startswith("<svg xmlns=")
    assert "](path.svg)" in Path("out/report.md").read_text("utf-8")
    assert run(["predict", "out/chosen.json", "stays.csv", "-o", "scores.csv"]) == 0
    assert run(["regress", "--simulate", "5", "stays.csv", "--target", "days", *BOUNDS, "--path", "laso", "-o", "x"]) == 2  # fmt: skip


def test_columns_that_nearly_repeat_are_warned_of_where_nobody_sees_the_sums(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv("stays.csv")
    table.with_columns(twice=(pl.col("age") * 2 + pl.col("dose") / 50).round(2)).write_csv("near.csv")
    flags = ["--protocol", "masked", "--key-bits", "2048", "-o", "near"]
    assert run(["regress", "--simulate", "3", "near.csv", "--target", "days", "--features", "age,twice", *flags]) == 0  # fmt: skip
    shown = " ".join("".join(capsys.readouterr()).split())
    assert "age, twice nearly follow from the other columns" in shown
    assert json.loads(Path("near/fit.json").read_text("utf-8"))["inflation"] is None
