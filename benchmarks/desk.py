"""Does the desk stay quick and small on 1,000,000 rows: opened, roles counted live, and the server beside the jobs?"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, ProxyHandler, Request, build_opener

import numpy as np
import polars as pl

from benchmarks.timing import Row, print_rows, synthetic, velado

_COUNTS = 12
_LONGEST = 240.0
"""Seconds that a job may take before the benchmark gives up."""


@dataclass
class Browser:
    """What a browser asks of a desk, without its pictures: a cookie, the fields of a page's form, a job that is watched."""

    origin: str
    opener: OpenerDirector = field(
        default_factory=lambda: build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
    )
    page: str = ""

    def get(self, path: str) -> str:
        """A page; the next form is read from it."""
        with self.opener.open(f"{self.origin}{path}", timeout=60) as reply:
            self.page = reply.read().decode()
        return self.page

    def post(self, path: str, **fields: str) -> str:
        """A form of the page is sent, and what follows is the page."""
        hidden = {name: self._hidden(name) for name in ("csrf", "state")}
        body = urlencode({**hidden, **fields}).encode()
        asked = Request(f"{self.origin}{path}", body, {"x-desk-token": hidden["csrf"]})
        with self.opener.open(asked, timeout=60) as reply:
            said: str = reply.read().decode()
        if said.startswith("<!doctype"):
            self.page = said
        return said

    def waited(self, path: str) -> None:
        """The job that the page at *path* watches has ended, as its script asks for it."""
        end = time.monotonic() + _LONGEST
        while (watched := re.search(r'data-job="([^"]+)"', self.page)) and time.monotonic() < end:
            time.sleep(0.1)
            if '"running"' not in self._told(f"/jobs/{watched[1]}"):
                self.get(path)

    def _told(self, path: str) -> str:
        with self.opener.open(f"{self.origin}{path}", timeout=60) as reply:
            said: str = reply.read().decode()
        return said

    def _hidden(self, name: str) -> str:
        found = re.search(f'name="{name}" value="([^"]*)"', self.page)
        return unescape(found[1]) if found else ""


def _cpu(pid: int) -> tuple[float, float]:
    """The CPU seconds of a process, and of its children that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    own, ended = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return own / tick, ended / tick


def _spent(pid: int, before: tuple[float, float]) -> tuple[float, float]:
    """The CPU seconds since *before*, once the job that was waited for is counted among the children that ended."""
    end = time.monotonic() + 10
    while _cpu(pid)[1] == before[1] and time.monotonic() < end:
        time.sleep(0.1)  # the result stands before its process has ended
    own, jobs = _cpu(pid)
    return own - before[0], jobs - before[1]


def _peak(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def _table(rows: int, file: Path) -> None:
    """Two rows for each person, in no order: nine columns that a person must decide about, and one that names."""
    numbers = np.random.default_rng(1).permutation(rows) // 2
    people = pl.Series("patient_id", numbers).cast(pl.String).str.zfill(7)
    pl.DataFrame({"patient_id": "P" + people, **synthetic(rows)}).write_csv(file)


def _role_fields(page: str) -> dict[str, str]:
    fields = {}
    for found in re.finditer(r'<select id="[^"]+" name="([^"]+)">(.*?)</select>', page, re.S):
        chosen = re.search(r'value="(\w+)" selected', found[2]) or re.search(r'value="(\w+)"', found[2])
        fields[found[1]] = chosen[1] if chosen else ""
    fields |= {name: "yes" for name in re.findall(r'name="(hold-\w+)" value="yes" checked', page)}
    return fields | dict(re.findall(r'name="(member-\d+)" value="(\d+)"', page))


def _counted(browser: Browser) -> list[float]:
    """Seconds for each count while one column after the other is held back and given free again."""
    fields = _role_fields(browser.get("/roles"))
    roles = [name.removeprefix("role-") for name in fields if name.startswith("role-")]
    times = []
    for at in range(_COUNTS):
        name = f"hold-{roles[at % len(roles)]}"
        changed = {key: value for key, value in fields.items() if key != name}
        given = changed if name in fields else {**fields, name: "yes"}
        begun = time.perf_counter()
        browser.post("/roles/count", **given)
        times.append(time.perf_counter() - begun)
    browser.post("/roles", **fields)
    return times


def main(rows: int = 1_000_000) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        folder.mkdir()
        _table(rows, folder / "people.csv")
        command = velado("desk", str(folder), "--no-browser")
        state = {**os.environ, "VELADO_STATE": f"{name}/state"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=state) as process:
            try:
                measured = _measured(process)
            finally:
                process.terminate()
    load = f"load {os.getloadavg()[0]:.1f}"
    print_rows(f"The desk on {rows:,} rows x 10 columns ({load})", measured)


def _measured(process: subprocess.Popen[str]) -> list[Row]:
    address = None
    while address is None and process.stdout is not None and (line := process.stdout.readline()):
        address = re.search(r"(http://[^/\s]+)(/\S*)", line)
    if address is None:
        raise SystemExit("The desk did not start.")
    browser = Browser(address[1])
    browser.get(address[2])
    browser.get("/open")
    begun, before = time.perf_counter(), _cpu(process.pid)
    browser.post("/open/choose", file="people.csv")
    browser.waited("/open")
    wall = time.perf_counter() - begun
    own, jobs = _spent(process.pid, before)
    browser.post("/open/right", column="patient_id")
    idle = _cpu(process.pid)[0]
    times = _counted(browser)
    counted = (_cpu(process.pid)[0] - idle) / _COUNTS
    counting = _peak(process.pid)
    browser.get("/promise")
    begun, idle = time.perf_counter(), _cpu(process.pid)[0]
    browser.post("/promise/preview", k="7", suppression="1")
    preview, previewed = time.perf_counter() - begun, _cpu(process.pid)[0] - idle
    browser.post("/promise", k="5", method="mondrian", do="run")
    before = _cpu(process.pid)
    browser.waited("/look")
    _, made = _spent(process.pid, before)
    if "/sign" not in browser.get("/look") or 'class="both"' not in browser.page:
        raise SystemExit("The release was not made.")
    return [
        Row(
            "opened: chosen to first rows shown",
            wall,
            "s",
            6.0,
            note=f"CPU: job {jobs:.1f} s, server {own:.1f} s",
        ),
        Row(
            "live counter, slowest of 12",
            max(times),
            "s",
            1.0,
            note=f"median {statistics.median(times):.2f} s, CPU {counted:.2f} s each",
        ),
        Row("promise's preview on the sample", preview, "s", 1.0, note=f"CPU {previewed:.2f} s"),
        Row("server's peak memory, roles counted", counting, "MB", 400.0),
        Row(
            "server's peak memory, release looked at",
            _peak(process.pid),
            "MB",
            400.0,
            note=f"job: {made:.1f} CPU s",
        ),
    ]


if __name__ == "__main__":
    main()
