"""How many fresh questions a second does the service answer, debits durable, with 16 clients on this machine?

The clients share the machine's cores with the service, so they do as little as they can: prepared bytes over a kept
connection. Every question is a different one, so every answer is reserved, computed, drawn and recorded.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.timing import Row, print_rows
from velado.apps.service.tokens import add_token
from velado.randomness import seeded

CLIENTS = 16
SECONDS = float(os.environ.get("VELADO_BENCH_SECONDS", "10"))
ROWS = 30_162
START = "from velado.apps.cli.commands._serve import commands; commands()()"

SCHEMA = """
[columns.household]
role = "identifier"
kind = "text"
group = true
max_rows = 4
[columns.age]
role = "quasi"
kind = "numeric"
bounds = [0, 100]
step = 1
[columns.hours]
role = "quasi"
kind = "numeric"
bounds = [0, 100]
step = 1
[columns.sex]
role = "quasi"
kind = "categorical"
values = ["F", "M"]
"""
SERVICE = """
[limits]
requests_per_minute = 10000000
burst = 1000000
concurrent_queries = {threads}
[datasets.people]
file = "people.csv"
schema = "schema.toml"
ledger = "people.ledger"
seal = "people.seal"
budget = {{ epsilon = 1000 }}
each = 0.0001
"""
QUESTIONS = (
    "SELECT COUNT(*) FROM people WHERE age >= {a} AND hours < {b}.{c}",
    "SELECT SUM(hours) FROM people WHERE age < {a} AND hours < {b}.{c}",
    "SELECT AVG(age) FROM people WHERE sex = 'F' AND hours > {b}.{c} AND age > {a}",
)


def make_table(folder: Path) -> None:
    """A made-up table of as many rows as Adult."""
    source = seeded(0, "service-benchmark")
    ages, hours = source.integers(17, 91, ROWS), source.integers(1, 100, ROWS)
    lines = [f"h{i // 3},{ages[i]},{hours[i]},{'FM'[i % 2]}" for i in range(ROWS)]
    (folder / "people.csv").write_text("household,age,hours,sex\n" + "\n".join(lines) + "\n")
    (folder / "schema.toml").write_text(SCHEMA)


def client(port: int, token: str, number: int, until: float, times: list[float]) -> None:
    """Asks one fresh question after the other over one connection until the time is up."""
    connection = socket.create_connection(("127.0.0.1", port))
    asked = 0
    while time.time() < until:
        sql = QUESTIONS[asked % 3].format(
            a=asked % 83, b=(asked // 83) % 97, c=f"{asked // 8051}{number:02d}"
        )
        body = json.dumps({"dataset": "people", "sql": sql}).encode()
        head = f"POST /v1/answers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        started = time.perf_counter()
        connection.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65_536)
        top, rest = data.split(b"\r\n\r\n", 1)
        length = int(top.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(rest) < length:
            rest += connection.recv(65_536)
        times.append(time.perf_counter() - started)
        if not top.startswith(b"HTTP/1.1 200") or b'"stored":true' in rest:
            raise RuntimeError(f"no fresh answer: {rest[:300]!r}")
        asked += 1


def clients(port: int, token: str, first: int, count: int, until: float) -> list[float]:
    """Several clients as threads of one process; the times of all their answers."""
    times: list[float] = []
    threads = [
        threading.Thread(target=client, args=(port, token, first + i, until, times)) for i in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def cpu_seconds(leader: int) -> float:
    """What a process and its children have used of the processors so far."""
    family = [leader, *map(int, Path(f"/proc/{leader}/task/{leader}/children").read_text().split())]
    total = 0
    for process in family:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure(folder: Path, workers: int, threads: int) -> tuple[float, float, float, float]:
    """Answers a second, median and 95th percentile of the wait, and the service's CPU time an answer, in milliseconds."""
    folder.mkdir()
    make_table(folder)
    (folder / "service.toml").write_text(SERVICE.format(threads=threads))
    token, _ = add_token(folder / "tokens.json", "bench")
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(folder / "service.toml"), "--port", "0", "--workers", str(workers)],
        stdout=subprocess.PIPE,
        text=True,
        # A state folder of its own: the same table under another ledger would rightly be refused.
        env={**os.environ, "VELADO_STATE": str(folder / "state")},
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        clients(port, token, 50, 2, time.time() + 1)
        with get_context("spawn").Pool(2) as pool:
            pool.starmap(int, [("1",), ("2",)])
            before = cpu_seconds(process.pid)
            until = time.time() + SECONDS
            jobs = [(port, token, first, CLIENTS // 2, until) for first in (0, CLIENTS // 2)]
            times = np.concatenate([np.array(part) for part in pool.starmap(clients, jobs)])
            used = cpu_seconds(process.pid) - before
    finally:
        process.terminate()
        process.wait(60)
    middle, slow = np.percentile(times, [50, 95]) * 1000
    return len(times) / SECONDS, float(middle), float(slow), used / len(times) * 1000


def main() -> None:
    """Print the table."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for workers in (1, 2):
            rate, middle, slow, used = measure(Path(name) / str(workers), workers, 8)
            told = f"{rate:.0f} answers/s, median {middle:.0f} ms, p95 {slow:.0f} ms, CPU {used:.1f} ms; bar 200/s"
            rows.append(
                Row(f"{CLIENTS} clients, {workers} worker(s)", 1000 / rate, "ms an answer", 5.0, note=told)
            )
    print_rows("Service: fresh questions with durable debit", rows)


if __name__ == "__main__":
    main()
