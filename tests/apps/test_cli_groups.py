"""`velado groups` suggests, and says that it only suggests."""

import csv
import json
from pathlib import Path

import pytest

from velado.apps.cli import run

SCHEMA = '[columns.x]\nrole = "quasi"\nkind = "numeric"\nbounds = [0, 100]\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "homes.csv").write_text(
        "x\n" + "\n".join(["1", "1.2", "1.1", "50", "50.5", "99"]) + "\n", "utf-8"
    )
    (tmp_path / "schema.toml").write_text(SCHEMA, "utf-8")
    return tmp_path


def ask(*more: str) -> int:
    return run(["groups", "homes.csv", "--schema", "schema.toml", *more])


def test_groups_are_listed_by_size_and_called_unsigned(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("--made-from", "public", "--reach", "0.1", "-o", "groups.csv", "--column", "home") == 0
    assert "not signed off" in capsys.readouterr().out
    with (place / "groups.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    labels = [row["home"] for row in rows]
    assert [row["row"] for row in rows] == list("123456")
    assert labels[0] == labels[1] == labels[2] != labels[3] == labels[4] != labels[5]


def test_json_says_that_nobody_signed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("--made-from", "other", "--method", "gmm", "--components", "2", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["signed_off"] is False and told["made_from"] == "other" and told["groups"] <= 2


@pytest.mark.parametrize("more", [(), ("--made-from", "private"), ("--made-from", "public", "--by", "y")])
def test_where_the_rows_come_from_must_be_said(place: Path, more: tuple[str, ...]) -> None:
    assert ask(*more) == 2


def test_a_file_with_a_ledger_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "homes.csv", "-s", "schema.toml", "-e", "1", "SELECT COUNT(*) FROM homes"]) == 0
    assert ask("--made-from", "other", "-o", "groups.csv") == 2
    assert "ledger" in capsys.readouterr().err and not (place / "groups.csv").exists()


def test_an_owner_signs_with_a_name_and_a_reason(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signing = ("--made-from", "public", "--reach", "0.1", "--sign", "ana", "--reason", "the public register")
    assert ask(*signing, "--rows", "4", "-o", "groups.csv") == 0
    shown = capsys.readouterr().out
    assert "signed by ana" in shown and "max_rows = 4" in shown and "not signed" not in shown
    told = json.loads((place / "groups.csv.signed.json").read_text("utf-8"))
    assert (told["signed_by"], told["reason"], told["rows"]) == ("ana", "the public register", 4)
    assert (place / "groups.csv").is_file()
    assert ask(*signing, "--lang", "pt") == 0
    assert "assinados por ana" in capsys.readouterr().out
    assert ask(*signing, "-o", "groups.csv") == 5


@pytest.mark.parametrize(
    "more", [("--sign", "ana"), ("--reason", "x"), ("--rows", "4"), ("--sign", " ", "--reason", "x")]
)
def test_half_a_signature_is_none(place: Path, more: tuple[str, ...]) -> None:
    assert ask("--made-from", "public", "-o", "groups.csv", *more) == 2
    assert not (place / "groups.csv").exists()
