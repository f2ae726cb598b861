"""The packaging job tries what the README says, on Pythons that truly run, and stops at what fails."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

import velado

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def package():
    loader = SourceFileLoader("package_job", str(ROOT / ".ci" / "package"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("package_job", loader))
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = written
    return module


def test_the_commands_tried_are_those_of_the_readme(package):
    readme = (ROOT / "README.md").read_text("utf-8")
    for command in package.COMMANDS:
        line = " ".join(["velado", *command]).replace("sample/hospital.schema.toml", "schema.toml")
        assert line in readme


def test_the_package_and_its_metadata_tell_one_version(package):
    assert package.version() == velado.__version__


@pytest.mark.parametrize(
    ("answer", "code", "runs"), [("3.77", 0, True), ("3.12", 0, False), ("", 127, False)]
)
def test_a_name_on_the_path_is_a_python_only_if_it_says_so(
    package, monkeypatch, tmp_path, answer, code, runs
):
    program = tmp_path / "python3.77"
    program.write_text(f"#!/bin/sh\necho '{answer}'\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    assert package.interpreter("3.77") == (program if runs else None)


def test_pythons_that_pyenv_keeps_aside_are_found(package, monkeypatch, tmp_path):
    program = tmp_path / "versions" / "3.77.1" / "bin" / "python3.77"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 3.77\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert package.interpreter("3.77") == program


def test_a_step_that_fails_stops_the_job_and_shows_what_it_said(package, tmp_path):
    with pytest.raises(package.Failed, match="ended with 3"):
        package.run([sys.executable, "-c", "print('why'); raise SystemExit(3)"], tmp_path)


def test_what_is_tried_is_what_the_metadata_promise(package):
    listed = (ROOT / "pyproject.toml").read_text("utf-8")
    assert all(f"Programming Language :: Python :: {one}" in listed for one in package.TRIED)
