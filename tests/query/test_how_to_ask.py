"""The page that shows how to ask: its schema, its commands and its Python run as they stand."""

import re
import shlex
from pathlib import Path

import pytest

from velado.apps.cli import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ask-a-private-question.md"


def blocks(kind: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.S | re.M)
    return [body for name, body in fenced if name == kind]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(blocks("toml")[0], "utf-8")
    rows = [f"p{at // 2},{at % 90},{'FM'[at % 2]}" for at in range(500)]
    (tmp_path / "patients.csv").write_text("patient,age,sex\n" + "\n".join(rows) + "\n", "utf-8")
    return tmp_path


def test_the_commands_run_in_order(place: Path) -> None:
    commands = [line for block in blocks("") for line in block.splitlines()]
    assert len(commands) > 10
    (place / "questions.sql").write_text(blocks("sql")[0], "utf-8")
    (place / "reports.txt").write_text("calm\npain\npanic\npain\n" * 10, "utf-8")
    for line in commands:
        program, *arguments = shlex.split(line)
        assert program == "velado" and run(arguments) == 0, line


def test_the_python_runs(place: Path) -> None:
    names: dict[str, object] = {}
    exec(blocks("python")[0], names)
    assert names["answer"].frame.height == 3 and names["answer"].guarantee.most_rows == 4
    names["session"].close()
    names["ledger"].close()


def test_the_readmes_question_runs_on_the_schema_that_inspect_wrote(place: Path) -> None:
    (place / "schema.toml").unlink()
    readme = (PAGE.parents[2] / "README.md").read_text("utf-8")
    lines = [line.split("  #")[0] for line in readme.splitlines()]
    inspect = next(line for line in lines if line.startswith("velado inspect patients.csv"))
    asked = next(line for line in lines if line.startswith("velado query patients.csv"))
    for line in (inspect, asked, "velado ledger show patients.csv.ledger"):
        assert run(shlex.split(line)[1:]) == 0, line
    written = (place / "schema.toml").read_text("utf-8")
    # Two rows a person, which is a round number; to be confirmed, and no other cell is in it.
    assert "max_rows = 2\n" in written and "Confirm max_rows" in written and "p17" not in written
