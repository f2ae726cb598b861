"""`velado query --paper`: the source's answers, apart from every promise."""

import json
from pathlib import Path

import pytest

from velado.apps.cli import run

from ..tables import column, toml

SCHEMA = toml(
    home=column("identifier text", group=True, max_rows=3),
    sex=column("quasi categorical", values=["F", "M"]),
    age=column("quasi numeric", bounds=[0, 100], step=1),
    pay=column("other numeric", bounds=[0, 1000]),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    rows = [f"h{at // 2},{'FM'[at % 2]},{at % 90},{at % 7 * 100}" for at in range(300)]
    (tmp_path / "people.csv").write_text("home,sex,age,pay\n" + "\n".join(rows) + "\n", "utf-8")
    (tmp_path / "schema.toml").write_text(SCHEMA, "utf-8")
    return tmp_path


def ask(*more: str, sql: str = "SELECT COUNT(*) AS n FROM people") -> int:
    return run(["query", "people.csv", "--schema", "schema.toml", sql, *more])


def test_an_answer_as_in_the_source_says_that_it_promises_nothing(place: Path, capsys) -> None:
    assert ask("--paper", "baseline", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["guarantee"]["type"] == "none" and answer["scales"]["n"] > 1
    assert "budget" not in json.dumps(answer) and not (place / "people.csv.ledger").exists()
    assert ask("--paper", "baseline", "--lang", "pt") == 0
    assert "Promessa: nenhuma" in capsys.readouterr().out


def test_a_table_with_a_ledger_is_not_answered_as_in_the_source(place: Path, capsys) -> None:
    assert ask("--epsilon", "1") == 0
    assert ask("--paper", "dbscan") == 2
    assert "has a ledger" in capsys.readouterr().err
    (place / "people.csv.ledger").unlink()
    # The seal remembers that there was one.
    assert ask("--paper", "dbscan") == 2


@pytest.mark.parametrize(
    "flags",
    [
        ("--paper", "baseline", "--epsilon", "1"),
        ("--paper", "baseline", "--budget", "1"),
        ("--paper", "baseline", "--eps", "0.4"),
        ("--paper", "nobody"),
        ("--paper", "baseline", "--min-points", "3"),
        ("--paper", "gmm", "--threshold", "0.2"),
        ("--paper", "gmm-rfe", "--coefficient", "pearson"),
        ("--paper", "baseline", "--coefficient", "kendall"),
        ("--paper", "baseline", "--threshold", "1"),
        ("--paper", "baseline", "--scale-parameter", "0"),
    ],
)
def test_settings_that_do_not_belong_to_the_source_are_refused(place: Path, capsys, flags) -> None:
    assert ask(*flags) == 2
    assert "What to do:" in capsys.readouterr().err


def test_an_extreme_without_noise_is_shown_only_when_asked_for(place: Path, capsys) -> None:
    sql = "SELECT MAX(pay) AS m FROM people"
    assert ask("--paper", "gmm", "--components", "2", sql=sql) == 2
    told = capsys.readouterr().err
    assert "without any noise" in told and "Pass --show-unprotected to see" in told
    assert ask("--paper", "gmm", "--components", "2", "--show-unprotected", "--json", sql=sql) == 0
    assert json.loads(capsys.readouterr().out)["guarantee"]["without_noise"] == ["m"]


def scale_of(capsys, *flags: str, sql: str = "SELECT SUM(age) AS n FROM people") -> float:
    assert ask("--paper", *flags, "--json", sql=sql) == 0
    return float(json.loads(capsys.readouterr().out)["scales"]["n"])


def test_the_sources_settings_have_flags_that_change_the_scale(place: Path, capsys) -> None:
    whole = scale_of(capsys, "baseline")
    assert scale_of(capsys, "baseline", "--threshold", "0.9") < whole
    assert scale_of(capsys, "baseline", "--coefficient", "pearson") != whole
    near = scale_of(capsys, "dbscan", "--eps", "0.05", "--min-points", "2")
    assert scale_of(capsys, "dbscan", "--eps", "0.05", "--min-points", "200") < near <= whole


def test_the_source_asks_for_no_bounds(place: Path, capsys) -> None:
    bounded = scale_of(capsys, "baseline", sql="SELECT AVG(pay) AS n FROM people WHERE age < 40")
    plain = SCHEMA.replace("bounds = [0, 100]", "").replace("bounds = [0, 1000]", "")
    assert "bounds" not in plain
    (place / "schema.toml").write_text(plain, "utf-8")
    assert scale_of(capsys, "baseline", sql="SELECT AVG(pay) AS n FROM people WHERE age < 40") == bounded
    # A question that promises something still asks for them.
    assert ask("--epsilon", "1", sql="SELECT SUM(pay) AS n FROM people") != 0
    assert "bounds" in capsys.readouterr().err


def test_blanks_are_filled_on_request_and_only_as_in_the_source(place: Path, capsys) -> None:
    rows = (place / "people.csv").read_text("utf-8").splitlines()
    rows[1] = rows[1].rsplit(",", 1)[0] + ","
    (place / "people.csv").write_text("\n".join(rows) + "\n", "utf-8")
    assert ask("--paper", "baseline") == 3
    assert "--impute COLUMN" in capsys.readouterr().err
    assert ask("--paper", "baseline", "--impute", "pay:mean") == 0
    assert "1 blank of 'pay' (0.3%) was filled" in capsys.readouterr().err
    assert ask("--paper", "baseline", "--impute", "pya") == 3
    assert "'pay'" in capsys.readouterr().err
    assert ask("--epsilon", "1", "--impute", "pay") == 2
    assert "--impute goes with --paper alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--paper", "dbscan", "--target", "nada"), 3, "no column 'nada'"),
        (("--paper", "gmm", "--components", "5000"), 2, "5000 Gaussians cannot be fitted to 300 rows"),
        (("--paper", "gmm", "--keep", "2"), 2, "--keep does not go with --paper gmm"),
        (("--epsilon", "1", "--eps", "1"), 2, "--eps needs --paper"),
        (("--epsilon", "1", "--show-unprotected"), 2, "--show-unprotected needs --paper"),
    ],
)
def test_a_flag_of_the_source_that_does_not_fit_is_told_by_its_name(
    place: Path, capsys, flags, code: int, words: str
) -> None:
    assert ask(*flags) == code
    assert words in " ".join(capsys.readouterr().err.split())
    assert not (place / "people.csv.ledger").exists()


def test_numbers_are_written_as_the_language_writes_them(place: Path, capsys) -> None:
    for lang, sign in (("en", "."), ("pt", ",")):
        assert ask("--paper", "baseline", "--scale-parameter", "0.7", "--lang", lang) == 0
        line = next(one for one in capsys.readouterr().out.splitlines() if one.split()[:1] == ["n"])
        assert sign in line and {".": ",", ",": "."}[sign] not in line
