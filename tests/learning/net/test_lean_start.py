"""Fifty parties may start on one machine: what a party loads before its first word is the price of each of them."""

from __future__ import annotations

import subprocess
import sys


def _loaded(code: str) -> set[str]:
    """The modules a fresh interpreter holds after *code*."""
    ask = f"{code}\nimport sys\nprint(*sys.modules, file=sys.__stdout__)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_party_starts_without_compilers_and_servers() -> None:
    loaded = _loaded(
        "import velado.learning.net.runner, velado.learning.net.outputs, velado.data.io\n"
        "import velado.papers.regression.paper_masked"
    )
    assert "velado.learning.net.runner" in loaded
    assert not loaded & {"numba", "pyarrow", "scipy", "sklearn", "duckdb", "jinja2", "rich", "flwr", "pandas"}


def test_a_run_loads_the_command_it_was_asked_for_and_no_other() -> None:
    loaded = _loaded("from velado.apps.cli.main import run\nrun(['party', 'client', '--quiet'])")
    assert "velado.apps.cli.commands._party" in loaded
    assert not loaded & {f"velado.apps.cli.commands._{name}" for name in ("anonymize", "query", "serve")}


def test_help_and_unknown_words_still_see_every_command() -> None:
    for words in ("['--help']", "['anonymise']"):
        loaded = _loaded(f"from velado.apps.cli.main import ORDER, run\nrun({words})")
        assert {"velado.apps.cli.commands._anonymize", "velado.apps.cli.commands._serve"} <= loaded
