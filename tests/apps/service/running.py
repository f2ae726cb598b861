"""A real service in a process of its own, on a free port of this machine, and a small client for it."""

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from velado.apps.service.tokens import Role, add_token

from ...tables import column, toml

START = "from velado.apps.cli.commands._serve import commands; commands()()"
BOUND = 60.0

SCHEMA = toml(
    household=column("identifier text", group=True, max_rows=2),
    age=column("quasi numeric", bounds=[0, 100], step=1),
    sex=column("quasi categorical", values=["F", "M"]),
    city=column("quasi categorical", values=["Recife", "Belém", "Viçosa"]),
    note="other text",
)
SECRET = "Zebedeu"
"""A value of the table that no reply, log or audit line may hold."""


def rows(count: int = 200, shift: int = 0) -> str:
    """A made-up table as CSV."""
    lines = ["household,age,sex,city,note"]
    for i in range(count):
        city = ("Recife", "Belém", "Viçosa")[i % 3]
        lines.append(f"h{i // 2},{(i * 7 + shift) % 90},{'FM'[i % 2]},{city},{SECRET}{i}")
    return "\n".join(lines) + "\n"


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Running:
    """A service at work."""

    process: subprocess.Popen[str]
    address: str
    folder: Path
    tokens: dict[str, str]
    context: ssl.SSLContext | None = None
    stopped: dict[str, Any] = field(default_factory=dict)

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    def connect(self) -> http.client.HTTPConnection:
        if self.address.startswith("https"):
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=BOUND, context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)

    def call(
        self, method: str, path: str, body: Any = None, who: str | None = "ana", **headers: str
    ) -> Reply:
        """One request; *who* names a token of this service, or is a token itself."""
        connection = self.connect()
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        if who is not None:
            sent["Authorization"] = f"Bearer {self.tokens.get(who, who)}"
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, data, sent)
            reply = connection.getresponse()
            return Reply(
                reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read().decode("utf-8")
            )
        finally:
            connection.close()

    def ask(self, sql: str, who: str = "ana", **more: Any) -> Reply:
        return self.call("POST", "/v1/answers", {"dataset": "people", "sql": sql, **more}, who)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """The exit code and the private log, once; within bounds."""
        if not self.stopped:
            if self.process.poll() is None:
                self.process.send_signal(number)
            try:
                _, log = self.process.communicate(timeout=BOUND)
            except subprocess.TimeoutExpired:
                self.process.kill()
                _, log = self.process.communicate()
            self.stopped = {"code": self.process.returncode, "log": log}
        return self.stopped["code"], self.stopped["log"]


def raw(service: Running, sent: bytes, wait: float = 10.0) -> bytes:
    """What comes back for these bytes until the connection ends or nothing comes."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=wait) as connection:
        connection.sendall(sent)
        got = b""
        try:
            while part := connection.recv(65_536):
                got += part
        except TimeoutError:
            pass
        return got


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "VELADO_STATE": str(folder / "state"), "VELADO_LANG": "en"}


def write_service(
    folder: Path,
    *,
    budget: str = "{ epsilon = 10 }",
    limits: str = "",
    data: str | None = None,
    more: str = "",
) -> Path:
    """A folder with a table, its schema and a service file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "people.csv").write_text(rows() if data is None else data, encoding="utf-8")
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    file = folder / "service.toml"
    file.write_text(
        f"""
title = "Teste"
[limits]
requests_per_minute = 100000
burst = 10000
failed_tokens_per_minute = 1000
query_seconds = 20
{limits}
[datasets.people]
file = "people.csv"
schema = "schema.toml"
ledger = "people.ledger"
budget = {budget}
each = 0.1
{more}
""",
        encoding="utf-8",
    )
    return file


def with_folder(folder: Path) -> Path:
    """A service file that lets the owner add tables from a folder, which holds one, its schema, and a way out of it."""
    file = write_service(folder)
    tables = folder / "tables"
    tables.mkdir()
    (tables / "more.csv").write_text(rows(60, shift=3), encoding="utf-8")
    (tables / "more.toml").write_text(SCHEMA, encoding="utf-8")
    (tables / "out.csv").symlink_to(folder / "people.csv")
    file.write_text('folder = "tables"\n' + file.read_text("utf-8"), encoding="utf-8")
    return file


def command(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A sub-command of serve, to its end."""
    return subprocess.run(
        [sys.executable, "-c", START, *arguments],
        env=environment(file.parent),
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


def token(file: Path, analyst: str, role: Role = "analyst", days: float | None = None, *datasets: str) -> str:
    return add_token(file.parent / "tokens.json", analyst, role, days, datasets)[0]


@contextlib.contextmanager
def running(
    file: Path,
    tokens: dict[str, str] | None = None,
    *flags: str,
    context: ssl.SSLContext | None = None,
    without: str = "",
) -> Iterator[Running]:
    """The service of *file* until the block ends; with tokens for an owner (root) and two analysts unless given.

    *without* names a library that the service's process is not to find.
    """
    if tokens is None:
        tokens = {
            "root": token(file, "root", "owner"),
            "ana": token(file, "ana"),
            "bia": token(file, "bia"),
        }
    hidden = f"import sys; sys.modules[{without!r}] = None; " if without else ""
    process = subprocess.Popen(
        [sys.executable, "-c", hidden + START, str(file), "--port", "0", "--json", *flags],
        env=environment(file.parent),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    service = Running(process, "", file.parent, tokens, context)
    try:
        said = ""
        assert process.stdout is not None
        while not said.endswith("}\n"):
            line = process.stdout.readline()
            if not line:
                code, log = service.stop()
                raise AssertionError(f"The service did not start (code {code}):\n{log}")
            said += line
        service.address = json.loads(said)["address"]
        _until_it_answers(service)
        yield service
    finally:
        service.stop()


def _until_it_answers(service: Running) -> None:
    end = time.monotonic() + BOUND
    while time.monotonic() < end:
        try:
            if service.call("GET", "/healthz", who=None).status == 200:
                return
        except OSError:
            time.sleep(0.02)
    raise AssertionError("The service did not answer in time.")
