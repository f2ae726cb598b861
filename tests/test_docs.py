"""Documentation that cannot lie: pages made from code are up to date, links lead somewhere, tutorials run."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from velado.data import samples
from velado.release.methods import METHODS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])


def make_reference():
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["methods.md", "python.md", "study.md", "stream.md", "protocols.md"])
def test_reference_pages_say_what_the_code_says(page):
    made = make_reference().PAGES[page]()
    assert (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8") == made, (
        "run python docs/make_reference.py"
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_every_method_has_a_page_that_says_what_it_does_not_do(method):
    text = (ROOT / "docs" / "explanation" / f"{method.name}.md").read_text(encoding="utf-8")
    for words in ("**Promise", "**Cost", "**When not to use it"):
        assert words in text


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http", "mailto")):
            assert (page.parent / target).exists(), f"{target} is not there"


def blocks(path: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def matches(expected: str, printed: str) -> bool:
    """Whether every expected line stands in what was printed, in order; `...` stands for anything."""
    # Each piece is looked for after the one before it. One pattern of `.*` would say the same, after hours of
    # going back where a line is missing.
    at, text = 0, printed.replace("\n", " ")
    for piece in re.split(r"\.\.\.|\n", expected):
        found = text.find(piece.strip(), at)
        if found < 0:
            return False
        at = found + len(piece.strip())
    return True


RUN_AS_WRITTEN = [
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *(
        ROOT / "docs" / "how-to" / f"{name}.md"
        for name in (
            "settle-identifiers-and-people",
            "signals",
            "transform-columns",
            "samples-and-households",
            "a-parquet-lake",
            "make-taxonomies",
            "choose-a-preset",
            "evidence-for-an-auditor",
            "make-a-synthetic-table",
            "repeat-on-the-next-delivery",
        )
    ),
    ROOT / "docs" / "explanation" / "progressive.md",
]


@pytest.mark.slow  # half a dozen processes each
@pytest.mark.parametrize("tutorial", RUN_AS_WRITTEN, ids=lambda p: p.stem)
def test_the_tutorial_runs_as_it_is_written(tutorial, tmp_path):
    environment = {
        **os.environ,
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    environment["SAMPLES"] = str(samples.SAMPLE_FOLDER)
    printed, ran = "", 0
    for language, body in blocks(tutorial):
        if language == "sh":
            command = body.replace("velado ", f"{sys.executable} -m velado ")
            done = subprocess.run(
                ["bash", "-euc", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=600,
            )
            printed = done.stdout + done.stderr
            assert done.returncode == 0, f"{body}\n{printed}"
            ran += 1
        elif language == "python":
            done = subprocess.run(
                [sys.executable, "-c", body],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=600,
            )
            printed = done.stdout + done.stderr
            assert done.returncode == 0, f"{body}\n{printed}"
            ran += 1
        elif language == "text":
            assert matches(body, printed), f"expected\n{body}\nbut the command printed\n{printed}"
    assert ran >= 3
