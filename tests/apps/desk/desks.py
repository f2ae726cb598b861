"""A desk for tests: its application spoken to without a socket, or a process of its own on a free port."""

import asyncio
import contextlib
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from velado.apps.desk import profile
from velado.apps.desk.answers import Source
from velado.apps.desk.desk_app import DeskSettings, create_app
from velado.apps.desk.door import Session
from velado.apps.desk.project import Project, digest_of, source_digest, with_source

HOST = "127.0.0.1:8001"


def people_csv(people: int = 60) -> str:
    """A made-up table: two rows for every third person, nothing that gives anything away."""
    draw = random.Random(people)
    lines = ["patient_id,age,sex,city,illness"]
    for i in range(people):
        row = f"P{i:04d},{draw.randrange(20, 70)},{draw.choice('FM')},{draw.choice(['Recife', 'Belém', 'Viçosa'])}"
        for _ in range(2 if i % 3 == 0 else 1):
            lines.append(f"{row},{draw.choice(['flu', 'gout', 'cold', 'asthma'])}")
    return "\n".join(lines) + "\n"


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    cookies: list[str]

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """What a person reads."""
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", self.text)).split())

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Desk:
    """The application of a project, and a browser that keeps its cookie."""

    folder: Path
    session: Session = field(default_factory=lambda: Session(port=8001))
    largest: int = 1 << 20
    memory: int = 0
    key: Path | None = None

    def __post_init__(self) -> None:
        settings = DeskSettings(
            project=Project(self.folder), largest_upload=self.largest, memory=self.memory, key=self.key
        )
        self.app = create_app(settings, self.session)
        self.project = settings.project
        self.cookie = f"{self.session.name}={self.session.cookie}"

    def call(self, method: str, path: str, body: bytes = b"", parts: int = 1, **headers: str) -> Reply:
        given = {"host": HOST, "cookie": self.cookie, **{k.replace("_", "-"): v for k, v in headers.items()}}
        place, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": place,
            "raw_path": place.encode(),
            "query_string": query.encode(),
            "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in given.items() if v],
            "scheme": "http",
            "server": ("127.0.0.1", 8001),
            "client": ("127.0.0.1", 50_000),
        }
        size = -(-len(body) // parts) if body else 0
        pieces = [body[at : at + size] for at in range(0, len(body), size)] if body else [b""]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if pieces:
                piece = pieces.pop(0)
                return {"type": "http.request", "body": piece, "more_body": bool(pieces)}
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        raw = sent[0]["headers"]
        return Reply(
            sent[0]["status"],
            {name.decode(): value.decode("latin-1") for name, value in raw},
            b"".join(message.get("body", b"") for message in sent[1:]),
            [value.decode() for name, value in raw if name == b"set-cookie"],
        )

    def get(self, path: str, **headers: str) -> Reply:
        return self.call("GET", path, **headers)

    def state(self) -> str:
        return self.project.state()

    def post(self, path: str, state: str | None = None, **fields: Any) -> Reply:
        sent = {"csrf": self.session.csrf, "state": self.state() if state is None else state, **fields}
        return self.call("POST", path, urlencode(sent, doseq=True).encode())

    # ---- steps of the walk

    def opened(self, text: str | bytes, name: str = "people.csv", **reading: Any) -> "Desk":
        """The table was opened and profiled in this process, as the worker does it."""
        data = text.encode() if isinstance(text, str) else text
        (self.folder / name).write_bytes(data)
        source = Source(file=name, digest=source_digest(self.folder / name), **reading)
        key = digest_of([source.digest, source.reading(), Path(name).suffix])
        place = self.project.desk / "profiles" / key
        place.mkdir(parents=True, exist_ok=True)
        profile.make(self.folder / name, source.reading(), place)
        self.project.change(
            lambda answers, recipe: (replace(with_source(answers, source), profile=key), recipe)
        )
        return self

    def read(self) -> "Desk":
        assert self.post("/open/right").headers["location"] == "/people"
        return self

    def person(self, column: str = "patient_id") -> "Desk":
        reply = self.post("/people", answer="column", column=column)
        assert reply.status == 303, reply.words
        return self

    def roles(self, **changed: str) -> Reply:
        """The roles as the page shows them, with some changed."""
        return self.post("/roles", **{**self.role_fields(), **changed})

    def role_fields(self) -> dict[str, str]:
        text = self.get("/roles").text
        fields = {}
        for found in re.finditer(r'<select id="[^"]+" name="([^"]+)">(.*?)</select>', text, re.S):
            chosen = re.search(r'value="(\w+)" selected', found[2]) or re.search(r'value="(\w+)"', found[2])
            assert chosen is not None
            fields[found[1]] = chosen[1]
        fields |= {name: "yes" for name in re.findall(r'name="(hold-\w+)" value="yes" checked', text)}
        return fields | dict(re.findall(r'name="(member-\d+)" value="(\d+)"', text))

    def number(self, column: str) -> int:
        recipe = self.project.recipe()
        assert recipe is not None
        return list(recipe.schema.columns).index(column)

    def ready(self, text: str | None = None) -> "Desk":
        """Everything is answered; a run may begin."""
        self.opened(text or people_csv()).read().person()
        assert self.roles().status == 303
        return self


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.startswith("part-")]


@dataclass
class Running:
    """A desk in a process of its own."""

    process: subprocess.Popen[str]
    address: str

    @property
    def origin(self) -> str:
        return self.address.partition("/?")[0]


@contextlib.contextmanager
def running(folder: Path, *flags: str) -> Iterator[Running]:
    """`velado desk FOLDER`, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "velado", "desk", str(folder), "--no-browser", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = ""
        while "http://" not in line:
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
        found = re.search(r"http://\S+", line)
        assert found is not None
        yield Running(process, found[0])
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def run_a_stream(project: Path, windows: int) -> Path:
    """The folder of a stream in the project, after so many windows of made-up people."""
    from velado.release.stream.connectors.runner import run_stream

    from ...release.stream.test_running import SCHEMA, STREAM, write_lines

    ward = project / "ward"
    ward.mkdir()
    (ward / "schema.toml").write_text(SCHEMA)
    (ward / "owner.key").write_bytes(bytes(range(40)))
    (ward / "stream.toml").write_text(STREAM)
    write_lines(ward, windows)
    run_stream(ward / "stream.toml")
    return ward


def copy_sample(folder: Path, rows: int | None = None) -> Path:
    """The sample hospital table, or its first rows, as a project."""
    from velado.data.samples import hospital_csv

    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "hospital.csv"
    if rows is None:
        shutil.copy(hospital_csv(), target)
    else:
        lines = hospital_csv().read_text("utf-8").splitlines(keepends=True)
        target.write_text("".join(lines[: rows + 1]), "utf-8")
    return target
