"""`velado query` from the shell: answers, prices, ledgers beside files, and refusals that cost nothing."""

import json
import math
import re
from pathlib import Path

import polars as pl
import pytest

from velado.apps.cli import run
from velado.query.answer import Answer

from ..tables import column, toml

SCHEMA = toml(
    home=column("identifier text", group=True, max_rows=3),
    sex=column("quasi categorical", values=["F", "M"]),
    age=column("quasi numeric", bounds=[0, 100], step=1),
)
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    rows = [f"h{at // 2},{'FM'[at % 2]},{at % 90}" for at in range(400)]
    (tmp_path / "people.csv").write_text("home,sex,age\n" + "\n".join(rows) + "\n", "utf-8")
    (tmp_path / "schema.toml").write_text(SCHEMA, "utf-8")
    return tmp_path


def ask(*more: str, sql: str = COUNT, epsilon: str = "2") -> int:
    return run(["query", "people.csv", "--schema", "schema.toml", "--epsilon", epsilon, sql, *more])


def test_an_answer_is_shown_with_promise_cost_and_ledger(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("--budget", "5") == 0
    shown = capsys.readouterr().out
    assert "Promise (guaranteed)" in shown and "'home' (at most 3 count)" in shown
    assert "Cost: epsilon 2" in shown and "of 5" in shown and "people.csv.ledger" in shown
    assert (place / "people.csv.ledger").is_file()


def test_the_same_question_again_shows_the_same_numbers_for_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("--json") == 0
    first = Answer.from_dict(json.loads(capsys.readouterr().out))
    assert ask("--json", sql="select count(*) as people from people") == 0
    again = Answer.from_dict(json.loads(capsys.readouterr().out))
    assert again.stored and not first.stored and again.value == first.value
    assert abs(first.value - 400) < 100 and first.guarantee.covers.startswith("every answer recorded")


def test_the_schema_names_the_ledger_once_and_a_flag_says_another(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "schema.toml").write_text('[dataset]\nledger = "accounts.ledger"\n' + SCHEMA, "utf-8")
    assert ask("--budget", "5") == 0
    assert "Ledger: " in (shown := capsys.readouterr().out) and "accounts.ledger" in shown
    assert (place / "accounts.ledger").is_file() and not (place / "people.csv.ledger").exists()
    # A second ledger for the same table would be a second budget.
    assert ask("--ledger", "other.ledger") == 8
    assert run(["query", "people.csv", "--schema", "schema.toml", "--paper", "baseline", COUNT]) != 0
    (place / "schema.toml").write_text('[dataset]\nledger = "../accounts.ledger"\n' + SCHEMA, "utf-8")
    assert ask() == 3
    assert "The ledger in [dataset]" in capsys.readouterr().err


def test_without_a_budget_the_first_question_uses_it_up(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask() == 0
    assert "used up" in capsys.readouterr().out
    assert ask(sql="SELECT AVG(age) FROM people") == 7
    assert "What to do:" in capsys.readouterr().err


def test_a_later_budget_is_not_applied_in_silence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("--budget", "5") == 0
    assert ask("--budget", "50", sql="SELECT COUNT(*) FROM people WHERE age > 3") == 0
    assert "--budget was not applied" in capsys.readouterr().out


def test_a_price_makes_no_ledger_and_needs_no_rows(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "people.csv").unlink()
    assert ask("--price", sql="SELECT AVG(age), COUNT(*) FROM people") == 0
    assert "laplace" in capsys.readouterr().out
    assert ask("--price", "--json") == 0
    assert json.loads(capsys.readouterr().out)["draws"][0]["sensitivity"] == 3
    assert not (place / "people.csv.ledger").exists()
    assert ask("--price", "--extremes", "bound", sql="SELECT MAX(age) FROM people") == 0
    assert "costs nothing" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_the_answer_is_written_where_asked(place: Path, ending: str) -> None:
    path = place / f"answer.{ending}"
    assert ask("-o", str(path), "--quiet", sql="SELECT sex, COUNT(*) AS n FROM people GROUP BY sex") == 0
    if ending == "json":
        frame = Answer.from_dict(json.loads(path.read_text("utf-8"))).frame
    else:
        frame = pl.read_csv(path) if ending == "csv" else pl.read_parquet(path)
    assert frame.columns == ["sex", "n", "n_low", "n_high"] and frame.height == 3


@pytest.mark.parametrize(
    ("more", "sql", "code"),
    [
        ((), "SELECT home FROM people", 2),
        ((), "SELECT COUNT(*) FROM elsewhere", 2),
        (("--unit", "sex"), COUNT, 2),
        (("--rows", "3"), COUNT, 2),
        (("--unit", "record", "--rows", "3"), COUNT, 2),
        (("--unit", "nowhere", "--rows", "3"), COUNT, 2),
        (("--delta", "1e-9"), COUNT, 2),
        (("--rho", "0.1"), COUNT, 2),
        (("--extremes", "exact"), COUNT, 2),
        (("--confidence", "1"), COUNT, 2),
        (("--engine", "oracle"), COUNT, 2),
        (("--engine", "postgresql://nowhere/x"), COUNT, 2),
        (("-o", "answer.xlsx"), COUNT, 2),
        (("-o", "schema.toml.json"), COUNT, 5),
        (("--budget", "nothing"), COUNT, 2),
    ],
)
def test_what_is_refused_makes_no_ledger(
    place: Path, more: tuple[str, ...], sql: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "schema.toml.json").write_text("{}", "utf-8")
    assert ask(*more, sql=sql) == code
    assert "Traceback" not in capsys.readouterr().err
    assert not (place / "people.csv.ledger").exists()


def test_a_missing_file_makes_no_ledger(place: Path) -> None:
    (place / "people.csv").unlink()
    assert ask() == 3 and not (place / "people.csv.ledger").exists()


def test_strict_mode_warns_of_the_group_the_schema_names(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("--unit", "record") == 0
    shown = capsys.readouterr()
    assert "one record, if rows tell nothing of one another" in shown.out and "'home'" in shown.err


def test_rho_is_an_account_of_its_own(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["query", "people.csv", "--schema", "schema.toml", COUNT]
    assert run([*base, "--rho", "0.5", "--delta", "1e-9", "--budget", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["guarantee"]["definition"] == "rho-zCDP" and "implies" in found["guarantee"]["budget"]
    assert run([*base, "--epsilon", "0.1"]) == 2
    assert "counts in rho" in capsys.readouterr().err


def test_portuguese_says_the_same(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("--lang", "pt", "--budget", "2.5") == 0
    shown = capsys.readouterr().out
    assert "Promessa (garantida)" in shown and "Custo: épsilon 2" in shown and "2,5" in shown


def test_a_parquet_file_is_asked_the_same_way(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.read_csv(place / "people.csv").write_parquet(place / "people.parquet")
    assert run(["query", "people.parquet", "-s", "schema.toml", "-e", "2", COUNT, "--json"]) == 0
    assert abs(json.loads(capsys.readouterr().out)["rows"][0][0] - 400) < 100


def test_extremes_and_quantiles_are_named_with_their_rank_error(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("--budget", "9", sql="SELECT MIN(age), MEDIAN(age) FROM people") == 0
    shown = capsys.readouterr().out
    assert "MIN is answered as the 1% quantile" in shown and "median_age: the 50% quantile" in shown
    assert shown.count("may miss the asked rank by") == 2 and "at least 95%" in shown
    # No interval, so nothing is said of one and no column is empty.
    assert "interval" not in shown and "_low" not in shown
    assert ask("--lang", "pt", sql="SELECT MAX(age), COUNT(*) FROM people") == 0
    shown = capsys.readouterr().out
    assert "MAX é respondido como o quantil de 99%" in shown and "Pode errar o posto pedido em" in shown
    assert "Cada intervalo contém o valor exato sobre as linhas que contam (no máximo 3" in shown


def test_an_interval_is_explained_by_the_rows_that_count(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("--confidence", "0.9999") == 0
    shown = capsys.readouterr().out
    assert "over the rows that count (at most 3 with one value of 'home')" in shown
    assert "declared bounds and steps" in shown and "at least 99.99%" in shown


def test_a_declared_bound_is_called_one(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--price",)):
        assert ask("--extremes", "bound", *more, sql="SELECT MAX(age) FROM people") == 0
        shown = capsys.readouterr().out
        assert "max_age is the declared bound of 'age'; no rows were looked at" in shown
        assert "interval" not in shown


def test_a_price_is_told_in_words_with_ranks_instead_of_scores(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT MIN(age), SUM(age), COUNT(*) FROM people"
    assert ask("--price", sql=sql) == 0
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("1% quantile of 'age'", "sum of 'age'", "may miss the rank by"))
    assert "Grid" not in shown and "Rows" not in shown
    assert ask("--price", "--json", sql=sql) == 0
    told = json.loads(capsys.readouterr().out)["draws"][0]
    assert f"{math.ceil(told['rank_error']['rows'])} rows" in shown
    assert f"{told['scale']:,.4f}" not in shown
    assert ask("--price", "--lang", "pt", sql=sql) == 0
    shown = capsys.readouterr().out
    assert "quantil de 1% de 'age'" in shown and "soma de 'age'" in shown and "linhas" in shown


def test_rho_with_delta_says_which_epsilon_it_implies(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["query", "people.csv", "--schema", "schema.toml", COUNT, "--rho", "0.1"]
    assert run([*base, "--delta", "1e-9", "--budget", "1"]) == 0
    assert re.search(r"At delta 1e-09 .* epsilon of 2\.97\d*, .* 10\.104", capsys.readouterr().out)


def test_a_remainder_is_told_without_exponents(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(epsilon="0.1") == 0
    shown = capsys.readouterr().out
    assert not re.search(r"\de-\d", shown)
    assert "less than 0.000001 of 0.1" in shown or "Left: 0 of 0.1" in shown


def test_an_answer_wider_than_the_terminal_stands_in_lines(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"{kind}_of_the_age_of_everybody" for kind in ("sum", "average", "number")]
    sql = f"SELECT sex, SUM(age) AS {names[0]}, AVG(age) AS {names[1]}, COUNT(*) AS {names[2]} FROM people GROUP BY sex"
    assert ask(sql=sql) == 0
    shown = capsys.readouterr().out.splitlines()
    for name in names:
        # Whole, on one line for each key, with its ends beside it.
        assert sum(line.startswith(("F ", "M ", "- ")) and name in line for line in shown) == 3
    assert not any("_low" in line for line in shown)


def wish(*more: str, sql: str = COUNT) -> int:
    return run(["query", "people.csv", "--schema", "schema.toml", sql, *more])


def test_an_accuracy_finds_its_own_spend_and_says_the_width_before_it_is_paid(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wish("--within", "30", "--price") == 0
    shown = capsys.readouterr().out
    assert "n: off by up to ±30 (95%)." in shown and "'home' at most 3 count" in shown
    assert not (place / "people.csv.ledger").exists()
    assert wish("--within", "30", "--budget", "5", "--json") == 0
    first = Answer.from_dict(json.loads(capsys.readouterr().out))
    assert first.frame["n_high"][0] - first.frame["n_low"][0] == 60 and first.how.plan["within"] == "30"
    assert wish("--within", "30", "--json") == 0
    assert Answer.from_dict(json.loads(capsys.readouterr().out)).stored
    assert wish("--within", "30", "--epsilon", "0.01") == 2
    assert "more than the 0.01 allowed" in capsys.readouterr().err
    assert wish("--within", "30", "--rho", "2", "--price", "--lang", "pt") == 0
    assert "n: erra até ±30 (95%)." in capsys.readouterr().out


def test_a_percentage_needs_the_declared_size_and_noise_is_warned_of(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wish("--within", "5%", "--price") == 2
    assert "rows = N in [dataset]" in capsys.readouterr().err
    assert wish() == 2
    assert "how exact" in capsys.readouterr().err
    (place / "schema.toml").write_text("[dataset]\nrows = 400\n" + SCHEMA, "utf-8")
    assert wish("--within", "5%", "--price") == 0
    assert "±20 (95%)" in capsys.readouterr().out
    # Nothing said: as much as the square root of the table's size needs.
    assert wish("--price") == 0
    assert "±20 (95%)" in capsys.readouterr().out
    assert ask("--price", epsilon="0.01") == 0
    assert "Mostly noise: n." in capsys.readouterr().out


@pytest.mark.parametrize("within", ["0", "-1", "x", "5%%", ""])
def test_a_wish_that_is_none_is_refused_by_its_flag(
    place: Path, within: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wish("--within", within) == 2
    assert "--within" in capsys.readouterr().err and not (place / "people.csv.ledger").exists()


def test_declared_bounds_within_anything_cost_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wish("--within", "3", "--extremes", "bound", "--price", sql="SELECT MAX(age) FROM people") == 0
    assert "costs nothing" in capsys.readouterr().out
    assert (
        wish("--within", "3", "--extremes", "bound", "--budget", "1", sql="SELECT MAX(age) FROM people") == 0
    )
    assert "declared bound" in capsys.readouterr().out


def test_a_price_says_how_many_such_questions_the_rest_of_the_budget_pays(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("--price", "--budget", "7", "--lang", "en") == 0
    assert "epsilon 7 is left: enough for 3 such questions" in capsys.readouterr().out
    assert ask("--budget", "7") == 0
    capsys.readouterr()
    assert ask("--price", epsilon="1") == 0
    assert "epsilon 5 is left: enough for 5 such questions" in capsys.readouterr().out
    assert ask("--price", "--json", epsilon="1") == 0
    assert json.loads(capsys.readouterr().out)["questions"] == 5
    # Another measure than the ledger's is no part of it.
    assert run(["query", "people.csv", "-s", "schema.toml", "--price", "--rho", "1", COUNT]) == 0
    assert "such question" not in capsys.readouterr().out


@pytest.mark.parametrize(("within", "measure"), [("5", "epsilon"), ("150", "rho")])
def test_an_epsilon_with_a_delta_is_held_as_what_pays_more_such_questions(
    place: Path, capsys: pytest.CaptureFixture[str], within: str, measure: str
) -> None:
    base = ["query", "people.csv", "-s", "schema.toml", "--within", within, COUNT, "--json"]
    owner = [*base, "--budget", "4", "--delta", "1e-9"]
    pure = [*base, "--budget", "4", "--price"]
    assert run([*owner, "--price"]) == 0
    priced = json.loads(capsys.readouterr().out)
    assert priced["measure"] == priced["account"]["measure"] == measure
    assert run(pure) == 0
    told = json.loads(capsys.readouterr().out)
    # Without a delta nothing but a pure promise is ever made, however much more another would pay.
    assert told["measure"] == "epsilon"
    assert (priced["questions"] > told["questions"]) == (measure == "rho")
    assert run(owner) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["guarantee"]["budget"]["measure"] == measure
    if measure == "rho":
        assert 3.99 < first["guarantee"]["budget"]["implies"]["epsilon"] <= 4
    # The next question needs neither total nor delta: it is counted as the ledger counts.
    assert run([*base, "--price"]) == 0
    later = json.loads(capsys.readouterr().out)
    assert later["measure"] == measure and later["questions"] == priced["questions"] - 1


def test_a_key_that_is_missing_is_told_and_a_spend_is_not_told_twice(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "A key shown as - stands for rows whose value is missing or not declared."
    assert ask("--budget", "9", sql="SELECT sex, COUNT(*) FROM people GROUP BY sex") == 0
    assert told in capsys.readouterr().out
    assert ask() == 0
    assert told not in capsys.readouterr().out
    assert ask("--price") == 0
    assert "In all: epsilon 2." in capsys.readouterr().out
