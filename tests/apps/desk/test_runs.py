"""Runs are processes of their own: they survive the server, can be cancelled and killed, and keep to their memory."""

import json
import os
import re
import shlex
import signal
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from velado.apps.cli.main import run as command_line
from velado.apps.desk import jobs
from velado.apps.desk.jobs import Job

from .desks import Desk, leftovers, people_csv

pytestmark = pytest.mark.slow


def until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def begin(desk: Desk, method: str = "mondrian", k: str = "3") -> str:
    assert desk.post("/promise", do="run", k=k, method=method).headers["location"] == "/look"
    return desk.project.answers().run


def ended(desk: Desk, name: str) -> Job:
    until(lambda: jobs.look(desk.project.runs, name).state != "running")
    return jobs.look(desk.project.runs, name)


def test_a_run_outlives_the_server_and_is_signed_from_the_next_one(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path_factory.mktemp("the keys") / "owner's own.key"
    key.write_bytes(bytes(range(40)))
    key.chmod(0o600)
    desk = Desk(tmp_path, key=key).ready()
    name = begin(desk)
    later = Desk(tmp_path, key=key)  # another server over the same folder
    assert ended(later, name).state == "done"
    page = later.get("/look")
    assert "Before and after" in page.words and 'class="changed' in page.text
    group = next(part.split('"')[0] for part in page.text.split("/look?group=")[1:])
    assert "The rows of one crowd." in later.get(f"/look?group={group}").words
    result = jobs.look(later.project.runs, name).result()
    doors = {f"door-{door['name']}": "accept" for door in result["doors"]}
    if doors:
        reasons = {f"reason-{door['name']}": "made up" for door in result["doors"]}
        assert later.post("/look/doors", run=name, **doors, **reasons).status == 303
        name = later.project.answers().run
        assert ended(later, name).state == "done"
        result = jobs.look(later.project.runs, name).result()
    said = {"name": "Ana", "recipient": "all", "purpose": "study", "legal_basis": "research", "law": "lgpd"}
    reply = later.post("/sign", run=name, sha256=result["sha256"], second="yes", **said)
    assert reply.status == 303, reply.words
    reply = later.post("/sign/approve", run=name, sha256=result["sha256"], name="Bia", do="approve")
    assert reply.status == 303, reply.words
    (release,) = later.project.releases.iterdir()
    signature = json.loads((release / "signature.json").read_bytes())
    assert (signature["name"], signature["approved_by"]) == ("Ana", "Bia")
    assert {path.name for path in release.iterdir()} == {
        "release",
        "private",
        "signature.json",
        "evidence-lgpd.zip",
    }
    assert (release / "private").stat().st_mode & 0o077 == 0
    assert leftovers(tmp_path) == []
    from velado.study.evidence import verify_evidence

    assert verify_evidence(release / "evidence-lgpd.zip", table=release / "release" / "table.csv").facts()
    assert "Ana" in later.get("/history").words
    # The line for next month is one that a shell takes, and it gives this month's table for this month's file.
    line = re.search(r"<code>velado (apply [^<]*)</code>", later.get("/sign").text)
    assert line is not None
    monkeypatch.chdir(tmp_path)
    asked = [{"NEXT.csv": "people.csv"}.get(one, one) for one in shlex.split(unescape(line[1]))]
    assert command_line([*asked, "--quiet"]) == 0
    table = Path("NEXT", "release", "table.csv").read_bytes()
    assert table == (release / "release" / "table.csv").read_bytes()


def test_a_run_can_be_cancelled_and_killed(tmp_path: Path) -> None:
    desk = Desk(tmp_path).ready()
    name = begin(desk)
    assert desk.post(f"/jobs/{name}/cancel", back="look").status == 303
    assert ended(desk, name).state == "cancelled"
    assert "cancelled" in desk.get("/look").words
    again = begin(desk)
    pid = json.loads((desk.project.runs / again / "process.json").read_bytes())["pid"]
    os.kill(pid, signal.SIGKILL)
    assert ended(desk, again).state == "killed"
    page = desk.get("/look")
    assert "ended before its time" in page.words and desk.post("/sign", run=again, sha256="").status == 409
    assert desk.post("/look/again").status == 303
    assert ended(desk, desk.project.answers().run).state == "done"
    assert leftovers(tmp_path) == []


def test_a_run_that_takes_too_much_memory_is_stopped_in_words(tmp_path: Path) -> None:
    desk = Desk(tmp_path, memory=60 << 20).ready()
    job = ended(desk, begin(desk))
    assert job.state == "failed"
    assert "memory" in desk.get("/look").words and not (job.folder / "out").exists()


def test_a_refused_run_says_why_and_the_column_can_be_decided_there(tmp_path: Path) -> None:
    lines = people_csv().splitlines()
    copied = [lines[0] + ",years"] + [f"{line},{line.split(',')[1]}" for line in lines[1:]]
    desk = Desk(tmp_path).opened("\n".join(copied) + "\n").read().person()
    assert (
        desk.roles(
            **{f"role-{desk.number('years')}": "other"}, **{f"hold-{desk.number('years')}": "no"}
        ).status
        == 303
    )
    job = ended(desk, begin(desk))
    assert job.state == "failed" and not (job.folder / "out").exists()
    page = desk.get("/look")
    assert "'years'" in page.words and "Decide about a column" in page.words
    assert "without a reason" in desk.post("/look/column", column="years", decision="accept").words
    assert desk.post("/look/column", column="years", decision="hold").status == 303
    assert ended(desk, desk.project.answers().run).state == "done"


def test_a_file_is_uploaded_profiled_and_shown(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    body = people_csv().encode()
    reply = desk.call(
        "PUT",
        "/open/upload/pessoas.csv",
        body,
        3,
        x_desk_token=desk.session.csrf,
        content_length=str(len(body)),
    )
    assert reply.status == 200, reply.text
    ended(desk, desk.project.answers().profile_job)
    assert "80 rows" in desk.get("/open").words and leftovers(tmp_path) == []
    assert desk.post("/open/reading", separator=";").status == 303
    ended(desk, desk.project.answers().profile_job)
    assert "1 column" in desk.get("/open").words


def test_methods_are_compared_and_one_is_chosen(tmp_path: Path) -> None:
    desk = Desk(tmp_path).ready()
    assert desk.post("/compare", method=["mondrian", "mdav"], k=["2", "5"], rows="sample").status == 303
    ended(desk, desk.project.answers().compared)
    page = desk.get("/compare")
    assert page.text.count('data-method="mdav"') == 2 and "Least loss" in page.text
    assert desk.post("/compare/choose", choice="mdav@5").status == 303
    recipe = desk.project.recipe()
    assert recipe is not None and (recipe.method.name, recipe.k) == ("mdav", 5)
    lines = desk.post("/promise/preview", k="5").json["lines"]
    assert any("Loss" in line for line in lines)
