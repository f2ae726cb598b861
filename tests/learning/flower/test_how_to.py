"""The page about federated training does what it says: its commands are run as they stand, on free ports."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="federated runs need velado[federated]")

from .machines import free_port

pytestmark = pytest.mark.slow  # it starts processes

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "federate.md"


def run_block(language: str, body: str, folder: Path) -> str:
    settings = {**os.environ, "HOME": str(folder), "NO_COLOR": "1"}
    settings["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if language == "python":
        command = [sys.executable, "-c", body]
    else:
        command = ["bash", "-euc", re.sub(r"^velado ", f"{sys.executable} -m velado ", body, flags=re.M)]
    with (folder / "printed").open("w+", encoding="utf-8") as said:
        block = subprocess.Popen(
            command,
            cwd=folder,
            env=settings,
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code: int | str = block.wait(timeout=600)
        except subprocess.TimeoutExpired:
            os.killpg(block.pid, signal.SIGKILL)
            block.wait(timeout=20)
            code = "too slow"
        said.seek(0)
        printed = said.read()
    logs = "".join(path.read_text("utf-8")[-2000:] for path in folder.glob("*.log"))
    assert code == 0, f"{body}\n{printed}\n{logs}"
    return printed


def stop(folder: Path) -> None:
    """Everything the page put into the background ends, with what it started."""
    numbers = (folder / "started").read_text().split() if (folder / "started").exists() else []
    for number in numbers:
        try:
            os.kill(int(number), signal.SIGTERM)
        except ProcessLookupError:
            continue
    end = time.monotonic() + 20
    while time.monotonic() < end and any(Path(f"/proc/{number}").exists() for number in numbers):
        time.sleep(0.2)
    for number in numbers:
        try:
            os.kill(int(number), signal.SIGKILL)
        except ProcessLookupError:
            continue


@pytest.mark.slow
def test_the_simulation_on_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.M | re.S)
    assert [language for language, _ in blocks[:2]] == ["python", "sh"]
    printed = run_block(*blocks[0], tmp_path)
    assert "FederatedFit(logistic on gfkmc, " in printed and "secure-sum" in printed
    assert "a round needs 2 answers" in run_block(*blocks[1], tmp_path)
    printed = run_block(*blocks[2], tmp_path)
    assert "Debited: rho " in printed and "A membership attack by the loss told" in printed
    fit = json.loads((tmp_path / "private" / "fit.json").read_text("utf-8"))
    assert fit["promise"]["type"] == "guaranteed" and fit["rounds"][-1]["accuracy"] > fit["majority"] + 0.1


def test_three_hospitals_on_the_page_train_one_model(tmp_path: Path) -> None:
    for tool in ("openssl", "ssh-keygen"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: the page uses it.")
    text = PAGE.read_text("utf-8").replace("9443", str(free_port()))
    text = text.replace("18020", str(free_port()))
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.M | re.S)
    blocks = [blocks[1], *blocks[3:]]  # the simulations have a test of their own
    try:
        printed = [run_block(language, body, tmp_path) for language, body in blocks]
    finally:
        stop(tmp_path)
    # What was planned before the hospitals had keys has another digest: who takes part is agreed on too.
    digests = {found for part in printed[1:] for found in re.findall(r"terms: ([0-9a-f]{64})", part)}
    assert len(digests) == 1
    fit = json.loads((tmp_path / "out" / "fit.json").read_text("utf-8"))
    assert fit["how"]["digest"] in digests
    assert [one["applied"] for one in fit["rounds"]] == [True, True]
    assert fit["rounds"][-1]["accuracy"] > fit["majority"]
    assert "## Not promised" in printed[-2]
