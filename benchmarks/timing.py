"""How the benchmarks time, and how they print: CPU seconds, best of a few, bar and peer beside."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One measured figure: what, how much, the bar it should stay under, and a peer's figure for the ratio."""

    what: str
    measured: float
    unit: str = "CPU s"
    bar: float | None = None
    peer: float | None = None
    peer_name: str = ""
    note: str = ""

    @property
    def met(self) -> str:
        """Whether the bar was met, in one word."""
        if self.bar is None:
            return ""
        return "met" if self.measured <= self.bar else "MISSED"


def cpu_seconds(work: Callable[[], Any], repeat: int = 3, warm: bool = True) -> float:
    """The least CPU time of *repeat* runs, after one run that compiles what must be compiled."""
    if warm:
        work()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def run_process(arguments: Sequence[str], **environment: str) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak megabytes of a command, which must succeed."""
    start = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **environment}
    ) as process:
        _, usage = None, None
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        message = process.stderr.read().decode() if process.stderr else ""
    wall = time.perf_counter() - start
    del before
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments[:4])} ended with {process.returncode}: {message[-500:]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


@dataclass(frozen=True)
class TreeRun:
    """What a command and all processes it started took; *ended* is False where it was stopped at its limit."""

    wall: float
    cpu: float
    peak: float
    ended: bool
    said: str


def run_tree(arguments: Sequence[str], limit: float, **environment: str) -> TreeRun:
    """A command with every process it starts (Spark's are not its children), looked at five times a second.

    It is stopped after *limit* CPU seconds: how busy the machine is does not matter.
    """
    start = time.perf_counter()
    with (
        tempfile.TemporaryFile() as told,
        subprocess.Popen(
            arguments,
            stdout=told,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        ) as process,
    ):
        spent: dict[int, float] = {}
        peak = 0.0
        while process.poll() is None and sum(spent.values()) < limit:
            peak = max(peak, _look(process.pid, spent))
            time.sleep(0.2)
        ended = process.poll() is not None
        wall = time.perf_counter() - start
        if not ended:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        told.seek(0)
        said = told.read().decode(errors="replace")
    if ended and process.returncode:
        raise RuntimeError(f"{' '.join(arguments[:4])} ended with {process.returncode}: {said[-2000:]}")
    return TreeRun(wall, sum(spent.values()), peak, ended, said)


def _look(session: int, spent: dict[int, float]) -> float:
    """The megabytes that the processes of a session hold now; *spent* gets the CPU seconds of each."""
    held, tick = 0.0, os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == session:
            spent[int(folder.name)] = (int(fields[11]) + int(fields[12])) / tick
            held += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return held


def velado(*arguments: str) -> list[str]:
    """The command line of this environment."""
    return [sys.executable, "-m", "velado", *arguments]


def data_folder() -> Path:
    """The folder of public tables, from VELADO_DATA."""
    folder = os.environ.get("VELADO_DATA")
    if not folder or not Path(folder).is_dir():
        raise SystemExit(
            "These benchmarks read public tables: set VELADO_DATA to the folder that holds them."
        )
    return Path(folder)


def print_rows(title: str, rows: Sequence[Row]) -> None:
    """The figures as a Markdown table."""
    print_head(title)
    print_lines(rows)


def print_head(title: str) -> None:
    """The head of a Markdown table of figures."""
    print(f"\n## {title}\n")
    print("| what | measured | bar | | peer | ratio | note |")
    print("|---|---|---|---|---|---|---|", flush=True)


def print_lines(rows: Sequence[Row]) -> None:
    """Figures as lines of a Markdown table."""
    for row in rows:
        bar = "" if row.bar is None else f"<= {row.bar:g}"
        peer = "" if row.peer is None else f"{row.peer_name} {row.peer:.3g} {row.unit}"
        ratio = "" if row.peer is None or not row.measured else f"{row.peer / row.measured:.3g} x"
        print(
            f"| {row.what} | {row.measured:.4g} {row.unit} | {bar} | {row.met} | {peer} | {ratio} | {row.note} |",
            flush=True,
        )


def synthetic(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Eight quasi-identifiers and a sensitive column, skewed and correlated like a census extract."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(6, 7, rows), 0, 99).astype(int)
    return {
        "age": age,
        "hours": np.clip(rng.normal(40, 12, rows), 1, 99).astype(int),
        "income_k": np.round(rng.lognormal(3.4, 0.7, rows), 1),
        "children": rng.poisson(np.minimum(age, 40) / 25),
        "zone": rng.zipf(1.6, rows) % 60,
        "sex": rng.integers(0, 2, rows),
        "schooling": np.clip(rng.normal(9, 3, rows), 0, 16).astype(int),
        "height_cm": np.clip(rng.normal(168, 9, rows), 130, 210).astype(int),
        "disease": rng.zipf(1.7, rows) % 40,
    }
