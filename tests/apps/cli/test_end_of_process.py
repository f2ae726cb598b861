"""A command's process ends without a word that is not velado's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_question_read_by_duckdb_leaves_nothing_but_its_answer(tmp_path: Path) -> None:
    """DuckDB's binding counts, at the end, what was not let go, and would print a page of it."""
    (tmp_path / "people.csv").write_text("sex\n" + "F\nM\n" * 50, "utf-8")
    (tmp_path / "schema.toml").write_text('[columns.sex]\nrole = "quasi"\nvalues = ["F", "M"]\n', "utf-8")
    asked = [
        "query",
        "people.csv",
        "SELECT COUNT(*) FROM people",
        "--schema",
        "schema.toml",
        "--epsilon",
        "1",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "velado", *asked, "--quiet"],
        cwd=tmp_path,
        env={**os.environ, "VELADO_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
