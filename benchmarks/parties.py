"""How long does a whole job of ten client processes, an evaluator and a provider take, with mutual TLS on one machine?

Auto MPG (392 rows, 7 features) cut into ten tables, key of 2048 bits, q = 20. The clock runs from the first process's
start to the last one's end; twelve Python processes start in that time, so the share of starting is printed beside.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.timing import Row, data_folder, print_rows, velado
from velado.learning.crypto.fixed_point import Bounded
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.regression.job import Job, Party

CLIENTS = 10
BAR = 20.0
PASSPHRASE = "only for this benchmark"


def table() -> pl.DataFrame:
    """Auto MPG as the source used it: no name, no rows without horsepower, the origin as a number."""
    frame = pl.read_csv(data_folder() / "regression" / "auto-mpg.csv", null_values="?").drop_nulls()
    origin = pl.col("origin").replace_strict({"America": 1, "Europe": 2, "Asia": 3}, default=3)
    return frame.with_columns(origin).drop("name")


def prepare(folder: Path, frame: pl.DataFrame, protocol: str) -> Job:
    """Keys, tables and the job file stand in *folder*."""
    from velado.learning.net.identity import make_identity

    names = [("hub", "evaluator"), ("vault", "provider"), *((f"c{i}", "client") for i in range(CLIENTS))]
    (folder / "passphrase").write_text(PASSPHRASE)
    parties = tuple(
        make_identity(folder / name, Party(name, role, f"localhost:{port}"), PASSPHRASE)  # type: ignore[arg-type]
        for (name, role), port in zip(names, _free_ports(len(names)), strict=True)
    )

    def bounded(name: str) -> Bounded:
        values = frame[name].to_numpy()
        return Bounded(name, (Fraction(int(np.floor(values.min()))), Fraction(int(np.ceil(values.max())))))

    features = tuple(bounded(name) for name in frame.columns if name != "mpg")
    job = Job("auto", PROTOCOLS[protocol], features, bounded("mpg"), parties, key_bits=2048, most_rows=400)
    import tomli_w

    (folder / "job.toml").write_text(tomli_w.dumps(job.to_dict()))
    for i in range(CLIENTS):
        frame[i::CLIENTS].write_csv(folder / f"c{i}.csv")
    return job


def _free_ports(count: int) -> list[int]:
    import socket

    held = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def run(folder: Path, job: Job) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds of all processes, and wall seconds until the last party listened."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start, clock = time.perf_counter(), time.time()
    processes = {}
    for party in job.parties:
        given = ["--job", "job.toml", "--identity", party.name, "-o", f"out-{party.name}", "--quiet"]
        given += ["--passphrase-file", "passphrase"]
        given += ["--table", f"{party.name}.csv"] if party.role == "client" else []
        processes[party.name] = subprocess.Popen(
            velado("party", party.role, *given), cwd=folder, env=os.environ.copy()
        )
    codes = {name: process.wait(timeout=300) for name, process in processes.items()}
    wall = time.perf_counter() - start
    if any(codes.values()):
        raise RuntimeError(f"a party failed: {codes}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return wall, cpu, _last_start(folder, job) - clock


def _last_start(folder: Path, job: Job) -> float:
    from datetime import datetime

    times = []
    for party in job.parties:
        first = (folder / f"out-{party.name}" / "audit.log").read_text().splitlines()[0]
        times.append(datetime.fromisoformat(json.loads(first)["time"]).timestamp())
    return max(times)


def agrees(folder: Path, frame: pl.DataFrame) -> float:
    """The largest relative difference of a client's coefficients from plain least squares in floats."""
    features = [name for name in frame.columns if name != "mpg"]
    design = np.column_stack([np.ones(frame.height), *(frame[name].to_numpy() for name in features)])
    plain = np.linalg.lstsq(design, frame["mpg"].to_numpy(), rcond=None)[0]
    found = json.loads((folder / "out-c0" / "fit.json").read_text())["coefficients"]
    return float(np.max(np.abs(np.array(list(found.values())) - plain) / np.abs(plain)))


def main() -> None:
    """Run and print."""
    frame, rows = table(), []
    for protocol in ("delegated", "masked"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            job = prepare(folder, frame, protocol)
            wall, cpu, started = run(folder, job)
            note = f"{cpu:.3g} CPU s; all listened after {started:.3g} s; relative difference {agrees(folder, frame):.1g}"
            rows.append(Row(f"Auto, {CLIENTS} clients, {protocol}", wall, "s", BAR, note=note))
    print_rows("A job among real parties", rows)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
