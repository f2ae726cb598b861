"""`velado reproduce`: the list, a run, and errors that say what to do."""

import json

import click
import polars as pl
import pytest
import typer

from velado.apps.cli.commands.reproduce import reproduce
from velado.apps.cli.options import Command
from velado.errors import OutputError, ParameterError, TableError

QUICK = "correlated-figure-12-adult"


@pytest.fixture
def velado(capsys, monkeypatch):
    """Runs the command and returns what it printed."""
    monkeypatch.delenv("VELADO_DATA", raising=False)
    app = typer.Typer()
    app.command(cls=Command)(reproduce)
    command = typer.main.get_command(app)
    assert isinstance(command, click.Command)

    def run(*arguments: str) -> str:
        command.main([str(a) for a in arguments], standalone_mode=False)
        return capsys.readouterr().out

    return run


@pytest.fixture
def data(tmp_path):
    """A folder with a file of Adult's shape."""
    rows = range(300)
    cells = {
        name: [(7 * n + 3 * at) % 11 for n in rows]
        for at, name in enumerate(
            [
                "age",
                "workclass",
                "final_weight",
                "education",
                "education_num",
                "marital_status",
                "occupation",
                "relationship",
                "race",
                "sex",
                "capital_gain",
                "capital_loss",
                "hours_per_week",
                "native_country",
            ]
        )
    }
    (tmp_path / "adult").mkdir()
    pl.DataFrame({**cells, "income": [n % 2 for n in rows]}).write_csv(tmp_path / "adult" / "adult_clean.csv")
    return tmp_path


def test_the_list_names_every_experiment_and_its_file(velado) -> None:
    assert "correlated-figure-11-adult" in velado("--list")
    listed = json.loads(velado("--list", "--json"))["reproductions"]
    assert {"name": "correlated-table-11-ccc", "needs": ["uci/credit_card_clients.csv"]}.items() <= next(
        one for one in listed if one["name"] == "correlated-table-11-ccc"
    ).items()


def test_a_run_shows_published_ours_and_promise(velado, data) -> None:
    text = velado(QUICK, "--quick", "--data", data)
    assert "published" in text and "ours" in text
    assert "Promise: none: as in the paper" in text
    found = json.loads(velado(QUICK, "--quick", "--data", data, "--json"))
    assert found["rows"][2]["published"] == "figure only"
    assert found["rows"][2]["ours: baseline"] > 0


def test_the_result_can_be_written_and_is_not_overwritten(velado, data, tmp_path) -> None:
    for name, start in (("out.md", "## Figure 12"), ("out.json", "{")):
        assert velado(QUICK, "--quick", "--data", data, "-o", tmp_path / name) == ""
        assert (tmp_path / name).read_text("utf-8").startswith(start)
        with pytest.raises(OutputError):
            velado(QUICK, "--quick", "--data", data, "-o", tmp_path / name)


def test_an_unknown_name_gets_the_nearest(velado, data) -> None:
    with pytest.raises(ParameterError, match="Did you mean 'correlated-table-11-adult'"):
        velado("correlated-table-11-adul", "--data", data)


def test_a_missing_file_or_folder_is_named(velado, data, tmp_path) -> None:
    with pytest.raises(TableError, match=r"uci/credit_card_clients\.csv"):
        velado("correlated-table-11-ccc", "--data", data)
    with pytest.raises(ParameterError, match="VELADO_DATA"):
        velado("correlated-table-11-ccc")
    with pytest.raises(ParameterError, match="does not exist"):
        velado("correlated-table-11-ccc", "--data", tmp_path / "nowhere")
    with pytest.raises(ParameterError, match="--list"):
        velado()


def test_the_data_folder_may_come_from_the_environment(velado, data, monkeypatch) -> None:
    monkeypatch.setenv("VELADO_DATA", str(data))
    assert "published" in velado(QUICK, "--quick")
