"""How long does a whole job of client processes take, who call one evaluator over mutual TLS, and what does it cost the processor?

Auto MPG (392 rows, 7 features), key of 2048 bits, q = 20: ten clients, an evaluator and a provider; the clock runs from the
first process's start to the last one's end. Then fifty clients of a secure sum, twice: as processes, where starting
Python and opening keys is counted too, and as threads of one process, where only the protocol and its network are left.
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
from velado.learning.net.identity import RANDOM_LOG2_N, random_passphrase
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.regression.job import Job, Party

CLIENTS, MANY = 10, 50
BAR, BAR_CPU = 20.0, 30.0
PASSPHRASE = random_passphrase()


def table() -> pl.DataFrame:
    """Auto MPG as the source used it: no name, no rows without horsepower, the origin as a number."""
    frame = pl.read_csv(data_folder() / "regression" / "auto-mpg.csv", null_values="?").drop_nulls()
    origin = pl.col("origin").replace_strict({"America": 1, "Europe": 2, "Asia": 3}, default=3)
    return frame.with_columns(origin).drop("name")


def prepare(folder: Path, frame: pl.DataFrame, protocol: str, clients: int = CLIENTS) -> Job:
    """Keys, tables and the job file stand in *folder*."""
    from velado.learning.net.identity import make_identity

    names = [("hub", "evaluator"), *((f"c{i}", "client") for i in range(clients))]
    names += [] if PROTOCOLS[protocol].provider is None else [("vault", "provider")]
    (folder / "passphrase").write_text(PASSPHRASE)
    port = _free_port()
    parties = tuple(
        make_identity(
            folder / name,
            Party(name, role, f"localhost:{port}" if role == "evaluator" else ""),  # type: ignore[arg-type]
            PASSPHRASE,
            log2_n=RANDOM_LOG2_N,  # as `keygen --new-passphrase-file` seals keys for parties that run unattended
        )
        for name, role in names
    )

    def bounded(name: str) -> Bounded:
        values = frame[name].to_numpy()
        return Bounded(name, (Fraction(int(np.floor(values.min()))), Fraction(int(np.ceil(values.max())))))

    features = tuple(bounded(name) for name in frame.columns if name != "mpg")
    limits = {"key_bits": 2048, "most_rows": 400, "minimum_rows": min(10, 392 // clients)}
    job = Job("auto", PROTOCOLS[protocol], features, bounded("mpg"), parties, minutes=30.0, **limits)
    import tomli_w

    (folder / "job.toml").write_text(tomli_w.dumps(job.to_dict()))
    for i in range(clients):
        frame[i::clients].write_csv(folder / f"c{i}.csv")
    return job


def _free_port() -> int:
    import socket

    with socket.create_server(("localhost", 0)) as held:
        return int(held.getsockname()[1])


def run(folder: Path, job: Job) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds of all processes, and wall seconds until the last party listened."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start, clock = time.perf_counter(), time.time()
    processes = {}
    # As an installed velado runs: from compiled modules, which pip makes once and a checkout may be told not to keep.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(folder.parent / "velado-compiled")
    for party in job.parties:
        given = ["--job", "job.toml", "--identity", party.name, "-o", f"out-{party.name}", "--quiet"]
        given += ["--passphrase-file", "passphrase"]
        given += ["--table", f"{party.name}.csv"] if party.role == "client" else []
        processes[party.name] = subprocess.Popen(velado("party", party.role, *given), cwd=folder, env=env)
    codes = {name: process.wait(timeout=1500) for name, process in processes.items()}
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


def in_one_process(folder: Path, job: Job) -> float:
    """CPU seconds of the whole job with every party a thread of this process: no start, no keys to open."""
    import threading

    from velado.learning.net.identity import open_identity
    from velado.learning.net.runner import Runner, read_columns

    runners = [
        Runner(
            job=job,
            identity=open_identity(folder / party.name, PASSPHRASE),
            role=party.role,
            folder=folder / f"thread-{party.name}",
            columns=read_columns(folder / f"{party.name}.csv", job) if party.role == "client" else None,
        )
        for party in job.parties
    ]
    threads = [threading.Thread(target=runner.run) for runner in runners]
    before = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.process_time() - before


def start_alone(folder: Path) -> tuple[float, float]:
    """CPU seconds of one client that imports what it needs, and of one that also opens its keys and reads its table."""
    load = "import velado.apps.cli.commands._party, velado.learning.net.runner\n"
    load += "import velado.learning.net.outputs, velado.papers.regression.paper_masked\n"
    more = "from pathlib import Path\nfrom velado.learning.net.identity import open_identity, read_job\n"
    more += "from velado.learning.net.runner import read_columns\n"
    more += f"open_identity(Path('c0'), {PASSPHRASE!r})\n"
    more += "read_columns(Path('c0.csv'), read_job(Path('job.toml')))\n"
    found = []
    for code in (load, load + more):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)
    return found[0], found[1]


def many(frame: pl.DataFrame) -> list[Row]:
    """Fifty clients of a secure sum, all in: as processes, and as threads."""
    out = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = prepare(folder, frame, "secure-sum", MANY)
        imports, opened = start_alone(folder)
        wall, cpu, _ = run(folder, job)
        summed = len(json.loads((folder / "out-c0" / "fit.json").read_text())["how"]["summed"])
        note = f"{summed} summed, {wall:.3g} s in all; one start: imports {imports:.2g}, with keys {opened:.2g} CPU s"
        out.append(Row(f"Auto, {MANY} clients, secure-sum, processes", cpu, "CPU s", BAR_CPU, note=note))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = prepare(folder, frame, "secure-sum", MANY)
        cpu = in_one_process(folder, job)
        note = "the protocol, its network and its files alone"
        out.append(Row(f"Auto, {MANY} clients, secure-sum, threads", cpu, "CPU s", BAR_CPU, note=note))
    return out


def main() -> None:
    """Run and print."""
    frame = table()
    if sys.argv[1:] == ["many"]:
        print_rows("Fifty parties", many(frame))
        return
    rows = []
    for protocol in ("delegated", "masked"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            job = prepare(folder, frame, protocol)
            wall, cpu, started = run(folder, job)
            note = f"{cpu:.3g} CPU s; all listened after {started:.3g} s; relative difference {agrees(folder, frame):.1g}"
            rows.append(Row(f"Auto, {CLIENTS} clients, {protocol}", wall, "s", BAR, note=note))
    print_rows("A job among real parties", [*rows, *many(frame)])
    sys.stdout.flush()


if __name__ == "__main__":
    main()
