"""A shell that reads what velado prints completes commands, flags, words and files, and waits for nothing heavy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from velado.apps.cli import run
from velado.apps.cli.main import ASKED, ORDER, SHELLS, script

ROOT = Path(__file__).resolve().parents[2]


def words_typed(line: str) -> dict[str, str]:
    """What a shell tells of the words typed so far, the last of which is to be completed."""
    words = line.split()
    if line.endswith(" "):
        words.append("")
    return {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}


def completed(line: str, monkeypatch, capsys, shell: str = "bash") -> list[str]:
    for name, value in {**words_typed(line), ASKED: f"{shell}_complete"}.items():
        monkeypatch.setenv(name, value)
    assert run([]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("velado ", [f"plain,{name}" for name in ORDER]),
        ("velado ano", ["plain,anonymize"]),
        ("velado party k", ["plain,keygen"]),
        ("velado anonymize patients.csv --form", ["plain,--format", "plain,--formulas"]),
        ("velado anonymize patients.csv --format ", ["plain,csv", "plain,parquet"]),
        ("velado anonymize patients.csv --format p", ["plain,parquet"]),
        ("velado anonymize pat", ["file,pat"]),
        ("velado anonymize patients.csv --schema s", ["file,s"]),
        ("velado anonymize --no-such", []),
        ("velado anonymize patients.csv --method progressive --see", ["plain,--seed"]),
    ],
)
def test_bash_is_offered_what_may_follow(line, offered, monkeypatch, capsys):
    assert completed(line, monkeypatch, capsys) == offered


def test_every_flag_of_a_command_is_offered(monkeypatch, capsys):
    offered = completed("velado anonymize --", monkeypatch, capsys)
    assert {"plain,--schema", "plain,--suppression", "plain,--lang", "plain,--show-values"} <= set(offered)


def test_a_question_of_no_known_shell_is_answered_with_nothing(monkeypatch, capsys):
    monkeypatch.setenv(ASKED, "tcsh_complete")
    assert run([]) == 1
    assert capsys.readouterr().out == ""


def test_an_unknown_shell_is_refused_by_its_name(capsys):
    assert run(["--show-completion", "bsh"]) == 2
    assert "'bash'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def shell_home(tmp_path_factory):
    """A folder with a `velado` on its path and a table beside it."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "bin").mkdir()
    program = folder / "bin" / "velado"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m velado "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (folder / "patients.csv").write_text("age\n31\n", encoding="utf-8")
    for shell in SHELLS:
        (folder / f"velado.{shell}").write_text(script(shell), encoding="utf-8")
    return folder


def in_shell(folder: Path, *command: str) -> list[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    python = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": python, "HOME": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [("velado veri", ["verify"]), ("velado verify --sche", ["--schema"]), ("velado party k", ["keygen"])],
)
def test_bash_itself_completes(words, offered, shell_home):
    last = len(words.split()) - 1
    code = f'. ./velado.bash; COMP_WORDS=({words}); COMP_CWORD={last}; _velado_completion velado; echo "${{COMPREPLY[@]}}"'
    assert in_shell(shell_home, "bash", "-c", code) == offered


def test_fish_itself_completes(shell_home):
    code = 'source velado.fish; complete -C "velado veri"; complete -C "velado inspect pat"'
    found = in_shell(shell_home, "fish", "--no-config", "-c", code)
    assert "verify" in found and "patients.csv" in found


def test_zsh_reads_what_is_printed_and_is_answered(shell_home, monkeypatch, capsys):
    offered = completed("velado veri", monkeypatch, capsys, "zsh")
    assert offered[:2] == ["plain", "verify"]
    code = "autoload -Uz compinit && compinit -u -d .dump; . ./velado.zsh; echo ${_comps[velado]}"
    assert in_shell(shell_home, "zsh", "-f", "-c", code) == ["_velado_completion"]


def test_an_answer_loads_no_heavy_library():
    environment = {**os.environ, **words_typed("velado anonymize --s"), ASKED: "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "velado"], capture_output=True, text=True, env=environment
    )
    assert "plain,--schema" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "velado.apps.cli.main" in loaded
    assert loaded & {"numpy", "polars", "numba", "pydantic", "rich.console", "jinja2"} == set()
