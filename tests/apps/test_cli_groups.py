"""`velado groups` suggests, and says that it only suggests."""

import csv
import json
from pathlib import Path

import pytest

from velado.apps.cli import run

SCHEMA = '[columns.x]\nrole = "quasi"\nkind = "numeric"\nbounds = [0, 100]\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
