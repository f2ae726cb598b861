"""`velado reproduce`: the list, a run, and errors that say what to do."""

import json
from contextvars import copy_context

import click
import polars as pl
import pytest
import typer

from velado.apps.cli.app import Command
from velado.apps.cli.commands._reproduce import reproduce
from velado.errors import MissingExtra, OutputError, ParameterError, TableError

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
        copy_context().run(command.main, [str(a) for a in arguments], standalone_mode=False)
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
    assert found["rows"][2]["ours: paper profile, baseline"] > 0


def test_the_result_can_be_written_and_is_not_overwritten(velado, data, tmp_path) -> None:
    for name, start in (("out.md", "## Figure 12"), ("out.json", "{")):
        told = velado(QUICK, "--quick", "--data", data, "-o", tmp_path / name)
        assert "".join(told.split()) == "".join(f"Written to {tmp_path / name}.".split())
        assert (tmp_path / name).read_text("utf-8").startswith(start)
        with pytest.raises(OutputError):
            velado(QUICK, "--quick", "--data", data, "-o", tmp_path / name)


def test_a_folder_gets_the_table_and_the_figure_in_the_language_asked_for(velado, data, tmp_path) -> None:
    out = tmp_path / "out"
    told = velado(QUICK, "--quick", "--data", data, "-o", out, "--lang", "pt")
    assert all(f"{QUICK}{end}" in "".join(told.split()) for end in (".csv", ".md", ".svg"))
    assert sorted(place.name for place in out.iterdir()) == [
        f"{QUICK}{end}" for end in (".csv", ".md", ".svg")
    ]
    table, figure = ((out / f"{QUICK}{end}").read_text("utf-8") for end in (".csv", ".svg"))
    assert table.startswith("épsilon da fonte,publicado,") and len(table.splitlines()) == 6
    assert figure.startswith("<svg xmlns=") and "nosso: perfil do artigo, baseline" in figure
    with pytest.raises(OutputError):
        velado(QUICK, "--quick", "--data", data, "-o", out)


def test_one_file_is_written_by_its_ending_and_words_are_not_drawn(velado, data, tmp_path) -> None:
    velado(QUICK, "--quick", "--data", data, "-o", tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text("utf-8").startswith("<svg xmlns=")
    with pytest.raises(ParameterError, match="not drawn"):
        velado("das-table-1", "-o", tmp_path / "two.svg")
    velado("das-table-1", "-o", tmp_path / "three")
    assert sorted(place.suffix for place in (tmp_path / "three").iterdir()) == [".csv", ".md"]


def test_an_ending_that_cannot_be_written_makes_no_folder(velado, data, tmp_path) -> None:
    with pytest.raises(ParameterError, match="no ending of a file"):
        velado("das-table-1", "-o", tmp_path / "x.pdf")
    assert not (tmp_path / "x.pdf").exists()
    (tmp_path / "results.2024").mkdir()
    velado("das-table-1", "-o", tmp_path / "results.2024")
    assert len(list((tmp_path / "results.2024").iterdir())) == 2


def test_a_run_is_portuguese_all_through(velado, data) -> None:
    told = velado(QUICK, "--quick", "--data", data, "--lang", "pt")
    assert (
        "Figura 12: o erro conforme o épsilon (Adult)" in told and "Promessa: nenhuma: como no artigo" in told
    )
    for word in ("published", "ours", "Why", "promise", "figure only", "queries"):
        assert word not in told


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


def test_the_list_names_data_sets_and_speaks_portuguese(velado) -> None:
    listed = json.loads(velado("--list", "--json"))["reproductions"]
    (one,) = [entry for entry in listed if entry["name"] == "gfkmc-figure-6.3"]
    assert one["data_sets"] == ["adult", "adult-hierarchies"] and len(one["needs"]) == 9
    assert "velado data get NAME" in velado("--list")
    assert "velado data get NOME" in velado("--list", "--lang", "pt")


def test_missing_files_are_answered_with_the_commands_that_fetch_them(velado, tmp_path) -> None:
    with pytest.raises(TableError) as caught:
        velado("gfkmc-figure-6.3", "--data", tmp_path)
    assert "adult/adult_clean.csv" in caught.value.what and "7 other files" in caught.value.what
    assert "velado data get adult` and `velado data get adult-hierarchies" in caught.value.fix
    with pytest.raises(TableError) as caught:
        velado("gok-figure-3-icu", "--data", tmp_path)
    assert "icu/icu.csv" in caught.value.what
    assert "patientMonitoring.csv" in caught.value.fix and "https://doi.org/" in caught.value.fix


@pytest.mark.parametrize(
    ("experiment", "library", "extra"),
    [("gfkmc-figure-6.10", "xgboost", "ml"), ("gok-figure-3-adult", "sklearn", "ml"), ("gfkmc-figure-6.13", "flwr", "federated")],
)  # fmt: skip
def test_a_missing_library_is_named_with_its_extra(
    velado, tmp_path, monkeypatch, experiment, library, extra
) -> None:
    from velado.learning.flower import deployment as quiet
    from velado.measures.models import _model as registry
    from velado.papers.paper_registry import ADULT_FILES

    for name in ADULT_FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for module in (registry, quiet):
        there = module.find_spec
        monkeypatch.setattr(
            module, "find_spec", lambda name, there=there: None if name == library else there(name)
        )
    with pytest.raises(MissingExtra) as caught:
        velado(experiment, "--data", tmp_path)
    assert f"velado[{extra}]" in caught.value.fix


def test_a_data_folder_that_is_a_file_is_said(velado, tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ParameterError, match="is a file"):
        velado("das-table-3", "--data", tmp_path / "file")
