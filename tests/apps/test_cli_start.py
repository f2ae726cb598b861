"""The command line as a process of its own, its words, its flags and its manual page."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import click
import pytest

from velado.apps.cli import reference, run
from velado.apps.cli.error_display import EXIT_CODES
from velado.apps.cli.main import command
from velado.apps.cli.options import split_flags
from velado.errors import ParameterError
from velado.settings import Setting, flags, settings
from velado.text import speaking

ROOT = Path(__file__).resolve().parents[2]


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with the source tree on its path, in a process of its own."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8", **environment},
    )


def test_help_needs_no_heavy_library_and_names_the_exit_codes() -> None:
    done = start("-X", "importtime", "-m", "velado", "--help")
    assert done.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "velado.apps.cli.main" in loaded
    assert loaded & {"numpy", "polars", "numba", "scipy", "pyarrow", "rich.console", "jinja2"} == set()
    for code, text in EXIT_CODES.items():
        assert re.search(rf"^\s+{code}\s+{re.escape(text)}$", done.stdout, re.MULTILINE)


def test_a_process_that_has_used_an_engine_ends_without_a_word_of_its_libraries(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("ward,age\n" + "a,31\nb,40\n" * 50)
    schema = tmp_path / "s.toml"
    schema.write_text('[columns.ward]\nrole = "other"\n[columns.age]\nrole = "other"\n')
    words = (
        "query",
        str(table),
        "-s",
        str(schema),
        "--epsilon",
        "1",
        "--budget",
        "2",
        "SELECT COUNT(*) FROM t",
    )
    code = f"import sys; sys.argv[1:] = {words!r}; from velado.apps.cli import main; main()"
    done = start("-c", code)
    assert done.returncode == 0, done.stderr
    assert "Cost: " in done.stdout
    assert "leaked" not in done.stderr and len(done.stderr.splitlines()) < 4, done.stderr


@pytest.mark.slow  # a process of its own
def test_a_process_shows_no_progress_bar_where_nobody_watches(tmp_path: Path) -> None:
    done = start("-m", "velado", "demo", "-o", str(tmp_path / "demo"))
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 10
    assert all(line.startswith("Warning: ") for line in done.stderr.splitlines())
    assert "\x1b" not in done.stdout + done.stderr


def test_a_failing_process_leaves_with_its_code(tmp_path: Path) -> None:
    done = start("-m", "velado", "inspect", str(tmp_path / "none.csv"), "--json", VELADO_LANG="pt")
    assert done.returncode == 3 == json.loads(done.stdout)["error"]["exit_code"]
    assert "O que fazer: " in done.stderr and "Traceback" not in done.stderr


def parts(group: click.Group) -> list[click.Command]:
    """Every command, and every group of them."""
    inner = [parts(one) if isinstance(one, click.Group) else [one] for one in group.commands.values()]
    return [group, *(one for several in inner for one in several)]


def test_every_help_text_is_told_in_portuguese() -> None:
    english = parts(command())
    with speaking("pt"):
        portuguese = parts(command())
    for one, other in zip(english, portuguese, strict=True):
        assert one.help != other.help, one.help
        for mine, theirs in zip(one.params, other.params, strict=True):
            assert vars(mine)["help"] != vars(theirs)["help"], vars(mine)["help"]


def test_help_and_errors_speak_portuguese_with_clicks_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["anonymize", "--help", "--lang", "pt"]) == 0
    shown = capsys.readouterr().out
    assert "Uso: velado anonymize" in shown and "Opções:" in shown and "padrão:" in shown
    assert "Show this" not in shown and "default" not in shown
    assert run(["inspect", "--lang", "pt", "--nothing"]) == 2
    assert "não tem a opção" in capsys.readouterr().err
    assert run(["verify", "none.csv", "--lang", "pt"]) == 2
    assert "Falta a opção '--schema'" in capsys.readouterr().err


def test_a_language_ends_with_its_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--lang", "pt", "--help"]) == 0
    assert "Códigos de saída:" in capsys.readouterr().out
    assert run(["--help"]) == 0
    assert "Exit codes:" in capsys.readouterr().out


@settings
class Example:
    """A method with one field of each type."""

    name: ClassVar[str] = "example"
    promise: ClassVar[str] = "guaranteed"
    cut: Literal["strict", "relaxed"] = "strict"
    share: Annotated[float, Setting(ge=0, le=1)] = 0.5
    merge_small: bool = True
    bins: int | None = None


OPTIONS = {"--schema": True, "--json": False, "--seed": True, "-k": True, "--method": True}


def split(*arguments: str) -> tuple[list[str], dict[str, object]]:
    return split_flags(arguments, OPTIONS, lambda name: Example)


def test_flags_of_a_method_come_from_its_fields() -> None:
    assert [flag.flag for flag in flags(Example)] == ["--cut", "--share", "--merge-small", "--bins"]
    assert {flag.field: flag.kind for flag in flags(Example)}["bins"] is int


def test_flags_of_a_method_may_stand_anywhere() -> None:
    for arguments in (
        ["--cut", "relaxed", "t.csv", "--json", "--share=0.25", "--no-merge-small", "--bins", "7"],
        ["t.csv", "--bins", "7", "--no-merge-small", "--json", "--share", "0.25", "--cut=relaxed"],
        ["--no-merge-small", "t.csv", "--json", "--bins=7", "--cut", "relaxed", "--share", "0.25"],
    ):
        kept, values = split(*arguments)
        assert kept == ["t.csv", "--json"]
        assert values == {"cut": "relaxed", "share": 0.25, "merge_small": False, "bins": 7}
    assert split("t.csv", "--seed", "--cut")[0] == ["t.csv", "--seed", "--cut"]
    assert split("--bins", "none", "t.csv")[1] == {"bins": None}


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--cutt", "strict"], "Did you mean '--cut'?"),
        (["--seeed", "1"], "Did you mean '--seed'?"),
        (["--zzz", "1"], "--share"),
        (["--cut", "relaxd"], "Did you mean 'relaxed'?"),
        (["--share", "2"], "from 0 to 1"),
        (["--share", "nan"], "finite"),
        (["--bins", "many"], "a whole number"),
        (["--bins"], "no value"),
        (["--bins", "--json"], "no value"),
    ],
)
def test_a_wrong_flag_of_a_method_is_explained(arguments: list[str], part: str) -> None:
    with pytest.raises(ParameterError) as caught:
        split("t.csv", *arguments)
    assert part in str(caught.value)


def test_the_manual_page_is_what_the_commands_say() -> None:
    assert (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8") == reference.page()
