"""`velado query --workload`: several counts for one charge from the shell."""

import json
from pathlib import Path

import polars as pl
import pytest

from velado.apps.cli import run

from ..tables import column, toml

SCHEMA = "[dataset]\nrows = 400\n" + toml(
    home=column("identifier text", group=True, max_rows=2),
    sex=column("quasi categorical", values=["F", "M"]),
    age=column("quasi numeric", bounds=[0, 100], step=1),
)
QUESTIONS = """-- who comes
SELECT COUNT(*) AS n FROM people WHERE age > 30;
SELECT COUNT(*) AS n FROM people WHERE age > 60;
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex;
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    rows = [f"h{at // 2},{'FM'[at % 2]},{at % 90}" for at in range(400)]
    (tmp_path / "people.csv").write_text("home,sex,age\n" + "\n".join(rows) + "\n", "utf-8")
    (tmp_path / "schema.toml").write_text(SCHEMA, "utf-8")
    (tmp_path / "questions.sql").write_text(QUESTIONS, "utf-8")
    return tmp_path


def ask(*more: str) -> int:
    return run(["query", "people.csv", "-s", "schema.toml", "--workload", "questions.sql", *more])


def test_a_price_says_the_half_width_of_each_question_and_asks_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("--within", "20", "--price") == 0
    shown = capsys.readouterr().out
    assert "Question 1, n: off by up to" in shown and "Question 3" in shown and "In all: epsilon" in shown
    assert not (place / "people.csv.ledger").exists()


def test_a_workload_is_paid_once_and_answers_are_written_one_file_for_each_question(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("--epsilon", "3", "--budget", "5", "-o", "answers") == 0
    shown = capsys.readouterr().out
    assert "Question 3" in shown and "Promise (guaranteed)" in shown and "of 5" in shown
    files = sorted(one.name for one in (place / "answers").iterdir())
    assert files == ["question-1.csv", "question-2.csv", "question-3.csv"]
    by_sex = pl.read_csv(place / "answers" / "question-3.csv")
    assert by_sex.columns == ["sex", "n", "n_low", "n_high"] and by_sex.height == 3
    assert ask("--epsilon", "3", "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["stored"] and [row[1] for row in again["answers"][2]["rows"]] == by_sex["n"].to_list()
    assert ask("--epsilon", "3", "-o", "answers.json") == 0
    assert json.loads((place / "answers.json").read_text())["answers"] == again["answers"]


def test_rho_has_a_ledger_of_rho(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("--rho", "0.5", "--delta", "1e-6") == 0
    shown = capsys.readouterr().out
    assert "zero-concentrated" in shown and "At delta 1e-06" in shown


@pytest.mark.parametrize(
    "more",
    [
        ("SELECT COUNT(*) FROM people", "--epsilon", "1"),
        ("--paper", "baseline"),
        ("--epsilon", "1", "--extremes", "bound"),
        ("--epsilon", "1", "-o", "answers.csv"),
    ],
)
def test_what_does_not_go_with_a_workload_is_refused_before_anything_is_paid(
    place: Path, more: tuple[str, ...]
) -> None:
    assert ask(*more) != 0
    assert not (place / "people.csv.ledger").exists()


def test_a_file_that_is_not_there_or_is_empty_is_said_in_three_parts(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "questions.sql").write_text("-- nothing\n")
    assert ask("--epsilon", "1") != 0
    assert "holds no question" in capsys.readouterr().err
    (place / "questions.sql").unlink()
    assert ask("--epsilon", "1") != 0
    assert "What to do:" in capsys.readouterr().err
    assert not (place / "people.csv.ledger").exists()
