"""A consortium for tests: keys, job file, tables and free ports, and every party as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from velado.learning.crypto.fixed_point import Bounded
from velado.learning.net._https import Caller
from velado.learning.net._line import Asked, asked_bytes, read_answer
from velado.learning.net._mutual_tls import Pins
from velado.learning.net.identity import Identity, make_identity, open_identity
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.regression import design_matrix as design
from velado.learning.regression import fit as exact
from velado.learning.regression.job import Job, Party

ROOT = Path(__file__).resolve().parents[3]
PASSPHRASE = "four words and more"
# The least cost of guessing that is accepted: tests open many keys.
LOG2_N = 15
PATIENCE = 120.0


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, all different, found by binding port 0."""
    held = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def rows(client: int, count: int = 40) -> dict[str, list[str]]:
    """A client's rows, as text, with negative values; different for each client."""
    rng = np.random.default_rng(client)
    age = rng.integers(18, 90, count)
    level = np.round(rng.normal(0, 2, count).clip(-9, 9), 2)
    stay = np.round(3 + 0.1 * age - 1.5 * level + rng.normal(0, 1, count), 3)
    return {
        "age": [str(v) for v in age],
        "level": [repr(float(v)) for v in level],
        "stay": [str(v) for v in stay],
    }


@dataclass
class Consortium:
    """Everything the parties need, in one folder."""

    folder: Path
    job: Job
    tables: Mapping[str, Mapping[str, Sequence[str]]]
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    @property
    def expected(self) -> dict[str, float]:
        """The coefficients of exact least squares on the encoded rows."""
        parts = [
            design.moments_of({k: np.array(v, dtype=object) for k, v in t.items()}, self.job)
            for t in self.tables.values()
        ]
        found = exact.solve(design.total(parts), self.job)
        return {name: float(value) for name, value in zip(self.job.unknowns, found, strict=True)}

    def identity(self, name: str) -> Identity:
        """The opened keys of a party."""
        return open_identity(self.folder / name, PASSPHRASE)

    def arguments(self, name: str, job: str = "job.toml") -> list[str]:
        """The command line of a party."""
        role = self.job.party(name).role
        given = ["--job", job, "--identity", name, "-o", f"out-{name}", "--passphrase-file", "passphrase"]
        return [
            sys.executable,
            "-m",
            "velado",
            "party",
            role,
            *given,
            *(["--table", f"{name}.csv"] if role == "client" else []),
        ]

    def start(self, *names: str, job: str = "job.toml") -> None:
        """The parties run, each as a process."""
        for name in names or [party.name for party in self.job.parties]:
            with (self.folder / f"{name}.log").open("a") as log:
                self.running[name] = subprocess.Popen(
                    self.arguments(name, job),
                    cwd=self.folder,
                    env=environment(),
                    stdout=log,
                    stderr=log,
                    text=True,
                )

    def wait(self, *names: str, seconds: float = PATIENCE) -> dict[str, int]:
        """The exit codes; a party that does not end in time fails the test."""
        end = time.monotonic() + seconds
        codes = {}
        for name in names or list(self.running):
            try:
                codes[name] = self.running[name].wait(timeout=max(0.01, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{name} does not end:\n{self.log(name)}\n{self.audit(name)}") from None
        return codes

    def kill(self, name: str, how: int = signal.SIGKILL) -> None:
        """The party is gone, as if the power had failed."""
        self.running[name].send_signal(how)
        self.running[name].wait(timeout=30)

    def end(self) -> None:
        """No process is left."""
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
                process.wait(timeout=30)

    def audit(self, name: str) -> list[dict[str, Any]]:
        """The whole lines of a party's audit log so far."""
        path = self.folder / f"out-{name}" / "audit.log"
        if not path.exists():
            return []
        return [
            json.loads(line)
            for line in path.read_text("utf-8").splitlines(keepends=True)
            if line.endswith("\n")
        ]

    def log(self, name: str) -> str:
        """What a party printed."""
        return (self.folder / f"{name}.log").read_text("utf-8")

    def fit(self, name: str) -> dict[str, float]:
        """The coefficients a party holds."""
        return json.loads((self.folder / f"out-{name}" / "fit.json").read_text("utf-8"))["coefficients"]

    def __enter__(self) -> Consortium:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def environment() -> dict[str, str]:
    """The environment of a process that runs the source tree."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}


class Visitor:
    """Somebody who calls the evaluator with the keys of a party, and says what it likes."""

    def __init__(self, identity: Identity, job: Job) -> None:
        self._name = identity.name
        self._caller = Caller(identity, Pins(job), threading.Event())

    def say(self, *data: bytes, wait: float = 0.0, marks: Sequence[bytes] = ()) -> list[tuple[str, bytes]]:
        """What waits for it, once the evaluator has kept what was said; Undelivered where it does not."""
        asked = Asked(wait, tuple(marks), tuple((self._name, one) for one in data))
        try:
            return list(read_answer(self._caller.exchange(asked_bytes(asked), wait, 1 << 24)))
        finally:
            self._caller.close()


def toml(job: Job) -> str:
    """The job as a file; what `velado.learning.regression.job` writes is read back the same."""
    import tomli_w

    return tomli_w.dumps(job.to_dict())


def consortium(
    folder: Path,
    clients: int = 3,
    protocol: str = "delegated",
    minutes: float = 1.0,
    tables: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    bounds: Mapping[str, tuple[int, int]] | None = None,
    target: str = "stay",
    **settings: Any,
) -> Consortium:
    """Keys for an evaluator, a provider and clients, their tables, and a job of 2048 bits that names them all."""
    (folder / "passphrase").write_text(PASSPHRASE + "\n")
    names = [
        ("hub", "evaluator"),
        ("vault", "provider"),
        *((f"clinic-{i}", "client") for i in range(clients)),
    ]
    if PROTOCOLS[protocol].provider is None:
        names.remove(("vault", "provider"))
    parties = []
    (port,) = free_ports(1)
    for name, role in names:
        address = f"localhost:{port}" if role == "evaluator" else ""
        party = Party(name, role, address)  # type: ignore[arg-type]
        parties.append(make_identity(folder / name, party, PASSPHRASE, log2_n=LOG2_N))
    if PROTOCOLS[protocol].client_holds_key:
        settings = {"key_holder": "clinic-0", **settings}
    tables = tables or {f"clinic-{i}": rows(i) for i in range(clients)}
    bounds = bounds or {"age": (0, 120), "level": (-10, 10), "stay": (-50, 50)}
    columns = [Bounded(name, (Fraction(low), Fraction(high))) for name, (low, high) in bounds.items()]
    job = Job(
        name="stay",
        protocol=PROTOCOLS[protocol],
        features=tuple(column for column in columns if column.name != target),
        target=next(column for column in columns if column.name == target),
        parties=tuple(parties),
        **{"bits": 16, "key_bits": 2048, "most_rows": 1000, "minutes": minutes, **settings},
    )
    (folder / "job.toml").write_text(toml(job))
    for name, table in tables.items():
        lines = [",".join(table), *(",".join(row) for row in zip(*table.values(), strict=True))]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return Consortium(folder, job, tables)
