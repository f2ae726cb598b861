"""The how-to of Spark, run as it is written: the job by spark-submit, and the command line in a session of its own."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

if find_spec("pyspark") is None:
    pytest.skip("pyspark is not installed: `make test-spark` runs these", allow_module_level=True)
if shutil.which("java") is None:
    pytest.skip("Java is not installed, and Spark runs on it", allow_module_level=True)

pytestmark = pytest.mark.slow
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "spark-job.md"


def run(command: list[str], folder: Path) -> tuple[str, str]:
    """What a command printed and what it complained of, after it went well."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    local = {"PATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **local, "COLUMNS": "110", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


def said(expected: str, printed: str) -> bool:
    return all(line.strip() in printed for line in expected.splitlines())


def test_the_how_to_runs_as_it_is_written(tmp_path: Path) -> None:
    found = re.findall(r"^```(\w+)\n(.*?)^```", HOW_TO.read_text("utf-8"), re.M | re.S)
    table, job = (body for language, body in found if language == "python")
    submit, command = (body.strip() for language, body in found if language == "sh")
    by_job, by_command = (body for language, body in found if language == "text")
    run([sys.executable, "-c", table], tmp_path)
    (tmp_path / "job.py").write_text(job, "utf-8")
    quiet = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    printed, _ = run(["spark-submit", *quiet, *submit.split()[1:]], tmp_path)
    assert said(by_job, printed)
    published = pl.read_parquet(tmp_path / "published" / "*.parquet")
    assert published.height == 2000
    assert published.group_by("age", "sex", "town").len()["len"].min() >= 5

    before = sorted(path.name for path in tmp_path.iterdir())
    line = command.replace("velado ", f"{sys.executable} -m velado ", 1)
    printed, complained = run(["bash", "-euc", line], tmp_path)
    assert said(by_command, printed)
    # Spark's own talk, which may quote cells, does not reach the terminal, and nothing is left beside the release.
    assert "WARN" not in printed + complained
    assert "incubator" not in printed + complained
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "out"])
    command_line = pl.read_parquet(tmp_path / "out" / "release" / "table.parquet")
    assert sorted(command_line.cast(pl.String).rows()) == sorted(published.cast(pl.String).rows())
