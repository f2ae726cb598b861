"""`velado evaluate` as a person types it: the grid and its cost, the result, JSON, both languages."""

import json
import re
import signal
import subprocess
import sys
import time
from contextvars import copy_context
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

pytest.importorskip("sklearn", reason="studies train models: they need velado[ml]")

from velado.apps.cli.app import Command
from velado.apps.cli.commands import _evaluate as evaluate
from velado.data.samples import hospital_csv, hospital_schema
from velado.errors import OutputError, SchemaError

STUDY = """
[data]
table = "{table}"
schema = "{schema}"
target = "desfecho"
[anonymization]
methods = ["mondrian"]
k = [5]
seeds = [0]
[models]
use = ["decision-tree"]
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    text = STUDY.format(table=hospital_csv().as_posix(), schema=hospital_schema().as_posix())
    path.write_text(text, "utf-8")
    return path


def velado(*words: object):
    app = typer.Typer()
    app.command("evaluate", cls=Command)(evaluate.evaluate)
    done = copy_context().run(CliRunner().invoke, app, [str(word) for word in words], env={"VELADO_LANG": ""})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_a_dry_run_shows_the_grid_and_its_cost_and_writes_nothing(study: Path, tmp_path: Path) -> None:
    done = velado(study, "-o", tmp_path / "out", "--dry-run")
    assert re.search(r"mondrian\s+1\s+2", done.stdout)
    assert re.search(r"5 cells, 5 to compute: about \d+\.\d min", done.stdout)
    assert not (tmp_path / "out").exists()
    plan = json.loads(velado(study, "-o", tmp_path / "out", "--dry-run", "--json", "--jobs", 2).stdout)
    assert (plan["cells"], plan["missing"], plan["workers"]) == (5, 5, 2)


def test_runs_across_clients_stand_in_the_grid_where_there_are_any(study: Path, tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="runs across clients need velado[federated]")
    text = study.read_text("utf-8")
    assert "runs across clients" not in velado(study, "-o", tmp_path / "out", "--dry-run").stdout
    study.write_text(f"{text}[federated]\nsplits = ['iid', 'dirichlet']\n", "utf-8")
    done = velado(study, "-o", tmp_path / "out", "--dry-run")
    assert "runs across clients" in done.stdout
    assert re.search(r"mondrian\s+1\s+2\s+4", done.stdout)
    assert "9 cells, 9 to compute" in done.stdout
    assert "treinos entre clientes" in velado(study, "--dry-run", "--lang", "pt").stdout


def test_a_study_is_written_and_said(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = velado(study, "-o", out, "--jobs", 1)
    assert "mondrian, k = 5" in done.stdout and "results.parquet" in done.stdout
    assert "The page to decide from, for a browser" in done.stdout and done.stderr == ""
    names = {path.name for path in out.iterdir()}
    assert {"results.parquet", "study.json", "study.md", "cells"} <= names
    found = json.loads(velado(study, "-o", out, "--json").stdout)
    assert found["cells"] == {"planned": 5, "done": 5, "gaps": 0}
    assert "outras promessas" in velado(study, "-o", out, "--lang", "pt").stdout
    assert "Avaliação de hospital.csv" in (out / "study.md").read_text("utf-8")
    assert velado(study, "-o", out, "--quiet").stdout == ""


@pytest.mark.slow
def test_damaged_cells_are_counted_in_the_plan_and_when_they_are_computed_again(
    study: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    velado(study, "-o", out, "--jobs", 1)
    cells = sorted((out / "cells").iterdir())[:2]
    for path in cells:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert "2 stored cells were damaged" in velado(study, "-o", out, "--dry-run").stdout
    assert "2 células" in velado(study, "-o", out, "--dry-run", "--lang", "pt").stdout
    done = velado(study, "-o", out, "--json", "--jobs", 1)
    assert "2 stored cells were damaged" in done.stderr
    assert json.loads(done.stdout)["cells"] == {"planned": 5, "done": 5, "gaps": 0}
    assert velado(study, "-o", out, "--json", "--jobs", 1).stderr == ""


def test_a_dry_run_refuses_the_folders_that_a_run_refuses(study: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out, words in ((tmp_path / "file", "cannot be used"), (tmp_path, "not of a study")):
        with pytest.raises(OutputError, match=words):
            velado(study, "-o", out, "--dry-run")


@pytest.mark.slow  # a process of its own for each language
@pytest.mark.parametrize(("lang", "words"), [("en", "finished cells are kept"), ("pt", "ficam guardadas")])
def test_an_interrupted_study_says_that_what_it_has_is_kept(
    study: Path, tmp_path: Path, lang: str, words: str
) -> None:
    text = study.read_text("utf-8").replace("seeds = [0]", f"seeds = {list(range(200))}")
    study.write_text(text, "utf-8")
    out = tmp_path / "out"
    code = "import sys; from velado.apps.cli.main import run; sys.exit(run(sys.argv[1:]))"
    line = ["evaluate", str(study), "-o", str(out), "--jobs", "1", "--lang", lang]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 240
    while not (out / "cells").is_dir() or not any((out / "cells").glob("*.cell")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert words in said and "Traceback" not in said


def test_a_study_in_which_no_release_could_be_made_fails_with_its_code(study: Path, tmp_path: Path) -> None:
    study.write_text(study.read_text("utf-8").replace("k = [5]", "k = [5000]"), "utf-8")
    done = velado(study, "-o", tmp_path / "out", "--jobs", 1)
    assert done.exit_code == 4
    assert "2 of 5 cells could not be computed" in done.stdout


def test_errors_are_the_librarys(study: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="not of a study"):
        velado(study, "-o", tmp_path)
    study.write_text(study.read_text("utf-8").replace("[models]", "[model]"), "utf-8")
    with pytest.raises(SchemaError, match="Did you mean 'models'"):
        velado(study, "-o", tmp_path / "out")
