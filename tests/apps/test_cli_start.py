"""The command line as a process of its own, its words, its flags and its manual page."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest

from velado.apps.cli import reference
from velado.apps.cli.options import split_flags
from velado.apps.cli.words import EXIT_CODES, WORDS, number
from velado.errors import ParameterError
from velado.settings import Setting, flags, settings

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
        assert re.search(rf"^\s+{code}\s+{re.escape(text['en'])}$", done.stdout, re.MULTILINE)


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


def test_both_languages_have_the_same_words_with_the_same_places() -> None:
    assert set(WORDS["en"]) == set(WORDS["pt"])
    for key, text in WORDS["en"].items():
        assert set(re.findall(r"\{(\w+)\}", text)) == set(re.findall(r"\{(\w+)\}", WORDS["pt"][key])), key
    assert all(set(text) == {"en", "pt"} for text in EXIT_CODES.values())


def test_every_word_is_used() -> None:
    folder = ROOT / "src" / "velado"
    texts = "".join(
        path.read_text("utf-8")
        for room in ("apps", "anonymize")
        for path in folder.joinpath(room).rglob("*.py")
        if not path.name.startswith("words")
    )
    # The list of words itself does not count, what follows it in its file does.
    texts += folder.joinpath("apps/cli/words.py").read_text("utf-8").rpartition("WORDS: Mapping")[2]
    # A family of words is used by a name put together at run time: f"query_need_{what}".
    families = tuple(re.findall(r'f"([a-z]+_[a-z_]*)\{', texts))
    unused = [
        key
        for key in WORDS["en"]
        if f'"{key}"' not in texts and f"'{key}'" not in texts and not key.startswith(families)
    ]
    assert unused == []


def test_numbers_are_written_as_the_language_does() -> None:
    assert (number(1234.5, "en", 1), number(1234.5, "pt", 1)) == ("1,234.5", "1.234,5")


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
