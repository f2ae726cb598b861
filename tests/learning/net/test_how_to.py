"""The page about three hospitals does what it says: its commands are run as they stand, on free ports."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .parties import ROOT, environment, free_ports

pytestmark = pytest.mark.slow  # it starts processes

PAGE = ROOT / "docs" / "how-to" / "regress-with-three-hospitals.md"


@pytest.mark.slow
def test_the_page_runs_as_it_is_written(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    named = sorted(set(re.findall(r"localhost:(\d+)", text)))
    for port, free in zip(named, free_ports(len(named)), strict=True):
        text = text.replace(f"localhost:{port}", f"localhost:{free}")
    printed = []
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.M | re.S):
        if language == "python":
            command = [sys.executable, "-c", body]
        else:
            assert language == "sh"
            command = ["bash", "-euc", re.sub(r"^velado ", f"{sys.executable} -m velado ", body, flags=re.M)]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert "Digest: " in printed[2] and "west" in printed[2]
    rows = np.concatenate(
        [
            np.loadtxt(tmp_path / f"{name}.csv", delimiter=",", skiprows=1)
            for name in ("north", "south", "west")
        ]
    )
    design = np.column_stack([np.ones(len(rows)), rows[:, :2]])
    plain = np.linalg.lstsq(design, rows[:, 2], rcond=None)[0]
    for name in ("north", "south", "west", "hub"):
        fit = json.loads((tmp_path / f"{name}-out" / "fit.json").read_text())
        assert np.allclose(list(fit["coefficients"].values()), plain, rtol=1e-4)
        assert fit["facts"]["r_squared"] > 0.9
        assert fit["how"]["summed"] == ["north", "south", "west"] and fit["how"]["not_summed"] == []
    assert "What each party saw and can infer" in printed[-2] and "| age | " in printed[-2]
    assert "Summed: north, south, west." in printed[-2]
    scores = [float(line) for line in (tmp_path / "scores.csv").read_text().split("\n")[1:] if line]
    assert np.allclose(scores, [plain @ (1, 64, -1.5), plain @ (1, 35, 2.25)], rtol=1e-4)
