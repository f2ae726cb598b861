"""Fifty parties may start on one machine: what a party loads before its first word is the price of each of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from velado.data.io import read_table
from velado.errors import TableError
from velado.learning.net.runner import read_columns
from velado.learning.regression.simulate import small_job


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


def test_a_client_with_a_plain_table_reads_it_without_a_data_frame_library() -> None:
    loaded = _loaded(
        "from pathlib import Path\n"
        "import velado.apps.cli.commands._party, velado.learning.net.outputs, velado.papers.regression.paper_masked\n"
        "from velado.learning.net.runner import read_columns\n"
        "from velado.learning.regression.simulate import small_job\n"
        "import tempfile\n"
        "path = Path(tempfile.mkdtemp()) / 'rows.csv'\n"
        "_ = path.write_text('x,y\\n0.5,2\\n')\n"
        "assert set(read_columns(path, small_job())) == {'x', 'y'}"
    )
    assert "velado.data.plain_csv" in loaded
    assert not loaded & {"polars", "narwhals", "velado.data.io"}


def test_a_run_loads_the_command_it_was_asked_for_and_no_other() -> None:
    loaded = _loaded("from velado.apps.cli.main import run\nrun(['party', 'client', '--quiet'])")
    assert "velado.apps.cli.commands._party" in loaded
    assert not loaded & {f"velado.apps.cli.commands._{name}" for name in ("anonymize", "query", "serve")}


def test_help_and_unknown_words_still_see_every_command() -> None:
    for words in ("['--help']", "['anonymise']"):
        loaded = _loaded(f"from velado.apps.cli.main import ORDER, run\nrun({words})")
        assert {"velado.apps.cli.commands._anonymize", "velado.apps.cli.commands._serve"} <= loaded


def test_a_table_that_is_not_plain_goes_through_the_door_and_is_refused_by_it(tmp_path: Path) -> None:
    job = small_job()
    plain, quoted = tmp_path / "plain.csv", tmp_path / "quoted.csv"
    plain.write_text("x,y,z\n0.50,2,a\n07,3,\n")
    quoted.write_text('x,y,z\n"0.50",2,a\n07,3,\n')
    one, other = read_columns(plain, job), read_columns(quoted, job)
    assert {name: np.asarray(cells).tolist() for name, cells in one.items()} == {
        "x": ["0.50", "07"],
        "y": ["2", "3"],
    }
    assert all(np.array_equal(one[name], other[name]) for name in ("x", "y"))
    assert all(np.asarray(one[name]).dtype == np.asarray(other[name]).dtype for name in ("x", "y"))
    read_table(quoted).frame.write_parquet(tmp_path / "t.parquet")
    assert np.array_equal(read_columns(tmp_path / "t.parquet", job)["x"], one["x"])
    for name, data in (("short.csv", b"x,y\n1\n"), ("twice.csv", b"x,x\n1,2\n"), ("empty.csv", b"")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(TableError):
            read_columns(tmp_path / name, job)
    with pytest.raises(TableError):
        read_columns(tmp_path / "nowhere.csv", job)
